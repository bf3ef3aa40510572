"""The live boxes, as readers use them: by mouse, by finger, by keyboard, and where they cannot be had.

Nothing is timed. What a chain computes is the business of `test_live_engine.py`; here is what becomes of it on a page.
"""

import re
from contextlib import contextmanager

import numpy as np
import pytest
from book_live import has_live_box
from docutils import nodes
from docutils.utils import new_document
from PIL import Image
from test_site import PAGES, ROOT, address, chromium, expect_none, parse, site
from tools.browser import find_axe_violations, open_page, open_tab, serve
from tools.stills import shrink

__all__ = ["address", "chromium", "site"]  # fixtures of the site's tests
PATIENCE = 240_000  # ms for a verdict, on a machine that has other things to do
AGREE = re.compile(r"^Four chains agree: R-hat 1\.0\d\d, ESS [\d,]+\. These pictures can be trusted\.$")
CHAPTER, FRONT, TIE = "book/flat_advi.html", "book/index.html", "book/hierarchical_nuts.html"
START = "#moons=1.5.4.0.0.IqqeVV"  # one seed, five units, prior sd 1, and two points: a run of a second or two


BARE = """<!doctype html><html lang="en"><title>A live box and nothing else</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/_static/live.css">
<body class="bd-content"><p style="height: 120vh">above</p><figure class="live-KIND" id="fig-KIND">
<img src="/_static/live/KIND.png" alt="a still" width="300"><figcaption>A caption.</figcaption></figure>
<p style="height: 150vh">below</p><script type="module" src="/_static/live/start.js"></script>"""


@pytest.fixture(scope="module")
def bare():
    """Where the sources are served; `open_box` shows a page there that has a box and no more, so no site is built."""
    with serve(ROOT / "book") as url:
        yield f"{url}bare/"


def show_bare(route):
    """Answer with the page of the box that the address names."""
    kind = route.request.url.rpartition("/")[2].partition("#")[0]
    route.fulfill(body=BARE.replace("KIND", kind), content_type="text/html")


@contextmanager
def open_box(chromium, url, **options):
    """A page whose live box is in sight; yields the tab, the box and the log of the tab."""
    settings = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"} | options
    context = chromium.new_context(**settings)
    context.route("**/bare/*", show_bare)
    with open_tab(context, url) as (page, log):
        page.locator("figure[class*=live-]").first.scroll_into_view_if_needed()
        box = page.locator(".live-box").first
        box.wait_for()
        box.scroll_into_view_if_needed()
        yield page, box, log
    context.close()


@pytest.fixture(scope="module")
def tab(chromium, bare):
    """A box for a mouse and a keyboard; all tests share it."""
    with open_box(chromium, f"{bare}moons{START}") as opened:
        yield opened


@pytest.fixture
def opened(tab):
    """The shared box as a reader finds it who comes by a link."""
    page, box, log = tab
    for name in ("Move a class", "What would ADVI say?"):
        if box.get_by_role("button", name=name).get_attribute("aria-pressed") == "true":
            press(box, name)
    press(box, "attack")
    page.evaluate("start => { location.hash = '#'; location.hash = start; }", START)
    page.wait_for_function("([box, start]) => `#${box.dataset.drawing}` === start", arg=[box.element_handle(), START])
    box.scroll_into_view_if_needed()
    yield page, box
    expect_none(log.complaints)


@pytest.fixture(scope="module")
def tied(chromium, bare):
    """The box of six categories; all tests share it."""
    with open_box(chromium, f"{bare}tie") as (page, box, log):
        yield page, box
        expect_none(log.complaints)


@pytest.fixture(scope="module")
def modules(tab):
    """A page that can import modules."""
    return tab[0]


def press(box, name):
    """Press a button of a box by its name."""
    box.get_by_role("button", name=name, exact=True).click()


def read_points(box):
    """What is drawn: list of (x, y, class), as the address says it."""
    drawn = box.get_attribute("data-drawing")
    return [
        (round(p["x"], 1), round(p["y"], 1), p["label"])
        for p in box.page.evaluate(
            "async text => (await import('/_static/live/points.js')).readHash(text).points", drawn
        )
    ]


def find_place(pad, x, y):
    """Where a place of the plane is in the window, in pixels."""
    at = pad.bounding_box()
    return at["x"] + at["width"] * (x + 3) / 6, at["y"] + at["height"] * (3 - y) / 6


def read_status(box):
    """The line that says how far the chains are."""
    return box.locator(".live-status").inner_text()


def await_verdict(box):
    """Wait until the chains have been compared; returns the words."""
    box.page.wait_for_function("box => box.dataset.state !== 'running'", arg=box.element_handle(), timeout=PATIENCE)
    return read_status(box)


# --- what a page ships


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_script_of_live_boxes_where_it_has_one(site, name):
    page = parse(site, name)
    scripts = [script for script in page.select("script[type=module]") if "live/start.js" in script["src"]]
    styles = [link for link in page.select("link[rel=stylesheet]") if "live.css" in link["href"]]
    assert len(scripts) == len(styles) == bool(page.select("figure[class*=live-]"))


@pytest.mark.parametrize(
    ("classes", "found"), [(["live-moons"], True), (["align-left", "alive-x"], False), ([], False)]
)
def test_a_live_box_is_known_by_the_class_of_its_figure(classes, found):
    doctree = new_document("a page")
    doctree += nodes.figure(classes=classes)
    doctree += nodes.container(classes=["live-moons"])
    assert has_live_box(doctree) is found
    assert not has_live_box(None)


def test_a_still_keeps_its_size_and_is_shown_at_half_of_it(tmp_path):
    path = tmp_path / "still.png"
    pixels = np.linspace(0, 255, 60 * 40 * 3).reshape(40, 60, 3).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    shrink(path)
    with Image.open(path) as picture:
        assert picture.size == (60, 40)
        assert picture.info["dpi"][0] >= 200
        assert np.abs(np.asarray(picture.convert("RGB"), float) - pixels).mean() < 8


# --- to draw


def test_a_mouse_puts_moves_and_removes_points(opened):
    page, box = opened
    pad = box.locator("[data-view=pad]")
    press(box, "Clear")
    assert read_points(box) == []
    page.mouse.click(*find_place(pad, 1, 2))
    assert read_points(box) == [(1, 2, 1)]
    press(box, "calm")
    page.mouse.click(*find_place(pad, -2, -1))
    assert read_points(box) == [(1, 2, 1), (-2, -1, 0)]
    page.mouse.move(*find_place(pad, 1, 2))
    page.mouse.down()
    page.mouse.move(*find_place(pad, 2, 0.5), steps=5)
    page.mouse.up()
    assert read_points(box) == [(2, 0.5, 1), (-2, -1, 0)]
    page.mouse.click(*find_place(pad, 2, 0.5))
    assert read_points(box) == [(-2, -1, 0)]


def test_a_class_moves_as_one(opened):
    page, box = opened
    pad = box.locator("[data-view=pad]")
    press(box, "Clear")
    for x in (-1, 0, 1):
        page.mouse.click(*find_place(pad, x, 1))
    press(box, "calm")
    page.mouse.click(*find_place(pad, 0, -1))
    press(box, "Move a class")
    page.mouse.move(*find_place(pad, 0, 1))
    page.mouse.down()
    page.mouse.move(*find_place(pad, 0, 2), steps=5)
    page.mouse.up()
    assert read_points(box) == [(-1, 2, 1), (0, 2, 1), (1, 2, 1), (0, -1, 0)]


def test_a_finger_puts_moves_and_removes_points_and_scrolls_between_them(chromium, bare):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
    with open_box(chromium, f"{bare}moons", **phone) as (page, box, log):
        pad, cdp = box.locator("[data-view=pad]"), page.context.new_cdp_session(page)

        def swipe(start, end):
            for kind, place in (("touchStart", start), *(("touchMove", between(start, end, k)) for k in range(1, 9))):
                cdp.send(
                    "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [dict(zip("xy", place, strict=True))]}
                )
            cdp.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

        def between(start, end, k):
            return tuple(a + (b - a) * k / 8 for a, b in zip(start, end, strict=True))

        press(box, "Clear")
        pad.scroll_into_view_if_needed()
        page.touchscreen.tap(*find_place(pad, 1, 1))
        assert read_points(box) == [(1, 1, 1)]
        swipe(find_place(pad, 1, 1), find_place(pad, -1, 2))
        ((x, y, _),) = read_points(box)
        assert (round(x), round(y)) == (-1, 2)
        before = page.evaluate("scrollY")
        swipe(find_place(pad, 1, -1), find_place(pad, 1, 1))
        assert len(read_points(box)) == 1
        assert page.evaluate("scrollY") > before
        pad.scroll_into_view_if_needed()
        page.touchscreen.tap(*find_place(pad, x, y))
        assert read_points(box) == []
        expect_none(log.complaints)


@pytest.mark.parametrize("cancelable", [True, False])
def test_a_finger_on_a_point_stops_the_page_unless_it_is_scrolling_already(opened, cancelable):
    page, box = opened
    press(box, "Clear")
    pad = box.locator("[data-view=pad]")
    place = find_place(pad, 1, 1)
    page.mouse.click(*place)
    assert len(read_points(box)) == 1
    stopped = pad.evaluate(
        """(pad, [[x, y], cancelable]) => {
          let stopped = false;
          const touch = new Touch({identifier: 1, target: pad, clientX: x, clientY: y});
          const event = new TouchEvent("touchstart", {touches: [touch], cancelable, bubbles: true});
          event.preventDefault = () => { stopped = true; };
          pad.dispatchEvent(event);
          return stopped;
        }""",
        [list(place), cancelable],
    )
    assert stopped == cancelable


def test_the_keyboard_puts_moves_and_removes_points_and_is_spoken_to(opened):
    page, box = opened
    pad, spoken = box.locator("[data-view=pad]"), box.locator("[role=status]")
    press(box, "Clear")
    pad.focus()
    for key in ("ArrowRight", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    assert spoken.inner_text().startswith("column 8, row 9: ")
    page.keyboard.press("Enter")
    assert spoken.inner_text().startswith("Put attack. column 8, row 9: attack here, ")
    assert read_points(box) == [(0.5, 1, 1)]
    for key in ("m", "ArrowLeft", "m", "ArrowDown", "c", "Space"):
        page.keyboard.press(key)
    assert read_points(box) == [(0, 1, 1), (0, 0.5, 0)]
    page.keyboard.press("Delete")
    assert read_points(box) == [(0, 1, 1)]


def test_presets_put_points_of_their_classes(opened):
    _, box = opened
    classes = {}
    for name in ("Two moons", "Circles", "Crosswise", "One class", "Nothing"):
        press(box, name)
        classes[name] = {label for *_, label in read_points(box)}
    both = {key: {0, 1} for key in ("Two moons", "Circles", "Crosswise")}
    assert classes == both | {"One class": {1}, "Nothing": set()}


def test_sliders_say_what_they_are_set_to(opened):
    page, box = opened
    box.get_by_label("prior sd").focus()
    page.keyboard.press("End")
    box.get_by_label("units in a layer").focus()
    page.keyboard.press("Home")
    assert [output.inner_text() for output in box.locator(".live-sliders output").all()] == ["4", "2"]
    assert box.get_by_label("prior sd").get_attribute("aria-valuetext") == "4"


# --- to compute


def test_four_chains_agree_and_one_point_in_a_corner_colours_both(opened):
    page, box = opened
    pad = box.locator("[data-view=pad]")
    press(box, "Clear")
    page.mouse.click(*find_place(pad, 2.5, 2.5))
    assert AGREE.match(await_verdict(box))
    said = []
    for corner in ((2.7, 2.7), (-2.7, -2.7)):
        page.mouse.move(*find_place(pad, *corner))
        said.append(int(re.search(r"attack (\d+) %", box.locator(".live-readout output").inner_text())[1]))
    assert said[0] > 55
    assert abs(said[0] + said[1] - 100) <= 1  # p(-x) = 1 - p(x)


def test_a_link_gives_the_same_points_and_the_same_numbers(chromium, bare):
    with open_box(chromium, f"{bare}moons", permissions=["clipboard-read", "clipboard-write"]) as (page, box, _):
        press(box, "Clear")
        for x, y in ((1, 1), (0, 2), (-1, -2)):
            page.mouse.click(*find_place(box.locator("[data-view=pad]"), x, y))
        words = await_verdict(box)
        press(box, "Another seed")
        other = await_verdict(box)
        press(box, "Copy link")
        page.wait_for_function("navigator.clipboard.readText().then((text) => text.includes('#moons='))")
        link, points = page.evaluate("navigator.clipboard.readText()"), read_points(box)
    assert words != other
    with open_box(chromium, link) as (_, box, _):
        assert read_points(box) == points
        assert await_verdict(box) == other


@pytest.mark.parametrize(
    "text", ["#moons=x", "#moons=1.5.4.0.0.!!", "#moons=1.5.4.0.0.AAAA", "#moons=1.5.9.0.0.", "#fig"]
)
def test_an_address_that_says_no_drawing_is_left_alone(modules, text):
    assert modules.evaluate("async text => (await import('/_static/live/points.js')).readHash(text)", text) is None


def test_an_address_holds_all_that_was_drawn(modules):
    kept = """async () => {
        const { PRESETS, readHash, snap, writeHash } = await import("/_static/live/points.js");
        const points = [...PRESETS.circles.draw(), snap(-9, 9, 1)];
        const drawing = { points, sd: 0.7, width: 8, biases: true, seed: 12, longer: 2 };
        return JSON.stringify(drawing) === JSON.stringify({ ...drawing, ...readHash(`#${writeHash(drawing)}`) });
    }"""
    assert modules.evaluate(kept)


def test_no_word_of_the_last_picture_stands_when_a_point_has_moved(opened):
    page, box = opened
    assert AGREE.match(await_verdict(box))
    page.mouse.click(*find_place(box.locator("[data-view=pad]"), 2, -2))
    assert read_status(box).endswith("Not yet to be trusted.")


def test_a_run_that_is_stopped_is_not_to_be_trusted(opened):
    _, box = opened
    box.get_by_label("prior sd").press("End")  # the slowest
    press(box, "Stop")
    assert read_status(box).endswith("Not yet to be trusted.")
    assert box.locator("[role=status]").inner_text() == read_status(box)


VERDICT = {"rhat": 1.004, "rhatLimit": 1.04, "ess": 1500, "essTail": 1400, "divergences": 0}
VERDICT |= {"converged": True, "reasons": []}
FAILED = {"rhat": 1.2, "ess": 30, "converged": False, "reasons": ["rhat", "ess"]}
ASTRAY = {"divergences": 40, "converged": False, "reasons": ["divergences"]}


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        ({}, "Four chains agree: R-hat 1.004, ESS 1,500. These pictures can be trusted."),
        (FAILED, "Not yet: R-hat 1.200 (wanted: below 1.04), ESS 30 (above 400). Do not trust these pictures yet."),
        (ASTRAY, "Not yet: R-hat 1.004 (wanted: below 1.04), ESS 1,500 (above 400), 40 draws went astray. "
                 "Do not trust these pictures yet."),
    ],
)  # fmt: skip
def test_a_verdict_says_what_it_found(modules, verdict, words):
    said = "async verdict => (await import('/_static/live/words.js')).sayVerdict(verdict)"
    assert modules.evaluate(said, VERDICT | verdict) == words


def test_advi_shows_its_maps_and_its_elbo_beside_the_chains(opened):
    _, box = opened
    await_verdict(box)
    press(box, "What would ADVI say?")
    said = box.locator(".live-advi")
    said.filter(has_text="These three maps are ADVI's now. Its ELBO is").wait_for(timeout=PATIENCE)
    assert re.search(r"mean ignorance 0\.\d\d bit \(the four chains: 0\.\d\d\)\.$", said.inner_text())
    press(box, "One class")
    assert said.inner_text() == "ADVI climbs …"  # what was said of the last points is gone with them
    press(box, "What would ADVI say?")
    assert said.inner_text() == ""


# --- to tie


def read_tie(box):
    """What the slider says, and the points that are drawn."""
    return box.locator(".tie-slider output").inner_text(), box.get_attribute("data-drawing").rpartition(".")[2]


def test_six_categories_have_a_picture_a_dial_and_what_is_their_own(tied):
    page, box = tied
    page.wait_for_function("document.querySelectorAll('.tie-own:not(:empty)').length === 6", timeout=PATIENCE)
    assert box.locator("canvas[data-group]").count() == box.locator(".tie-dial").count() == 6
    assert [bool(re.fullmatch(r"own way \d+\u00a0%", text)) for text in box.locator(".tie-own").all_inner_texts()] == [
        True
    ] * 6
    assert len(box.locator(".tie-sds meter").all()) == 3


def test_a_slider_goes_from_one_network_for_all_to_each_alone(tied):
    _, box = tied
    slider = box.get_by_label("how tied")
    said = [read_tie(box)[0]]
    for key in ("Home", "End"):
        slider.press(key)
        said.append(read_tie(box)[0])
        assert slider.get_attribute("aria-valuetext") == said[-1]
    assert said == ["learned from the data", "one network for all", "each alone"]


def test_one_network_for_all_leaves_nobody_an_own_way(tied):
    page, box = tied
    box.get_by_label("how tied").press("Home")
    press(box, "None")
    page.wait_for_function(
        "[...document.querySelectorAll('.tie-own')].every((own) => own.textContent === 'own way 0\u00a0%')",
        timeout=PATIENCE,
    )
    assert box.locator(".tie-sds output").all_inner_texts() == ["0.00"] * 3


def test_the_reader_draws_in_a_category_of_their_own(tied):
    page, box = tied
    pad = box.locator("[data-group='5']")
    press(box, "None")
    pad.scroll_into_view_if_needed()
    page.mouse.click(*find_place(pad, 1, 2))
    pad.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert len(read_tie(box)[1]) == 2 * 3  # three letters a point
    assert box.locator("[role=status]").inner_text().startswith("Put attack. column 6, row 7: attack here, ")
    press(box, "Four points")
    assert len(read_tie(box)[1]) == 4 * 3


def test_a_link_brings_back_ties_and_points(chromium, bare):
    with open_box(chromium, f"{bare}tie#tie=3.6.0.IqqeVV") as (_, box, log):
        assert read_tie(box) == ("each alone", "IqqeVV")
        press(box, "Stop")
        assert read_status(box).endswith("Not yet to be trusted.")
        expect_none(log.complaints)


HAND = """async ([right, up]) => {
    const { readHand, measureDeviations } = await import("/_static/live/groups.js");
    const { makeGrid } = await import("/_static/live/paint.js");
    const grid = makeGrid(20), map = Float32Array.from({ length: 400 }, (_, i) =>
        grid[2 * i] * right + grid[2 * i + 1] * up > 0 ? 1 : 0);
    return [readHand(map).angle, readHand(map).length, ...measureDeviations([map, map.map((p) => 1 - p)])];
}"""


@pytest.mark.parametrize(("right", "up", "degrees"), [(1, 0, 0), (0, 1, 90), (1, 1, 45), (-1, -1, -135)])
def test_a_hand_points_to_where_attacks_lie(modules, right, up, degrees):
    angle, length, *own = modules.evaluate(HAND, [right, up])
    assert np.degrees(angle) == pytest.approx(degrees, abs=1.5)
    assert length == pytest.approx(1, abs=0.1)
    assert own == pytest.approx([0.5, 0.5])


BOUNDARY = """async ([right, up, past]) => {
    const { makeGrid, traceBoundary } = await import("/_static/live/paint.js");
    const grid = makeGrid(31);
    return [...traceBoundary(Float32Array.from({ length: 961 }, (_, i) =>
        0.5 + 0.05 * (grid[2 * i] * right + grid[2 * i + 1] * up - past)))];
}"""


@pytest.mark.parametrize(("right", "up", "past"), [(1, 0, 0.7), (0, 1, -1.3), (1, 2, 0.5), (-1, 1, 0.1)])
def test_a_boundary_is_traced_where_a_map_says_one_half(modules, right, up, past):
    ends = 6 * np.reshape(modules.evaluate(BOUNDARY, [right, up, past]), (-1, 2)) - 3
    assert len(ends) >= 60
    assert right * ends[:, 0] - up * ends[:, 1] == pytest.approx(past, abs=1e-5)  # y runs down on a canvas


# --- for everybody


def test_a_box_is_fetched_when_it_comes_near_and_not_before(chromium, bare):
    context = chromium.new_context(viewport={"width": 1280, "height": 500})
    context.route("**/bare/*", lambda route: route.fulfill(
        body=BARE.replace("KIND", "moons").replace("120vh", "300vh"), content_type="text/html"))  # fmt: skip
    with open_tab(context, f"{bare}moons") as (page, log):
        page.wait_for_timeout(500)
        assert not any("sampler.js" in url for url in log.requests)
        page.locator("figure").scroll_into_view_if_needed()
        page.locator(".live-box").wait_for()
        assert any("sampler.js" in url for url in log.requests)
    context.close()


def test_nothing_is_fetched_before_the_box_is_near_and_nothing_from_elsewhere(chromium, address):
    with open_page(chromium, address + CHAPTER) as (page, log):
        assert not any("live/sampler.js" in url for url in log.requests)
        page.locator("figure.live-moons").scroll_into_view_if_needed()
        box = page.locator(".live-box")
        box.wait_for()
        press(box, "Nothing")
        await_verdict(box)
        assert any("live/sampler.js" in url for url in log.requests)
        expect_none([url for url in log.requests if not url.startswith((address, "data:", "blob:"))])
        expect_none(log.complaints)


HIDE = """hidden => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
REACHED = "Number(document.querySelector('.live-box progress').value)"


@pytest.mark.parametrize("how", ["scrolled away", "in the background"])
def test_chains_rest_where_nobody_sees_them(opened, how):
    page, box = opened
    box.get_by_label("prior sd").press("End")  # slow: there is something left to rest from
    page.wait_for_function(f"{REACHED} > 0", timeout=PATIENCE)
    page.evaluate("scrollTo(0, 0)") if how == "scrolled away" else page.evaluate(HIDE, True)
    page.wait_for_selector(".live-box[data-resting]", state="attached")
    page.wait_for_timeout(500)  # what was on its way arrives
    reached = page.evaluate(REACHED)
    page.wait_for_timeout(1000)
    assert page.evaluate(REACHED) == reached < 1
    box.scroll_into_view_if_needed() if how == "scrolled away" else page.evaluate(HIDE, False)
    page.wait_for_function(f"{REACHED} > {reached}", timeout=PATIENCE)


@pytest.mark.parametrize(
    ("name", "theme", "width"),
    [(CHAPTER, "light", 1280), (CHAPTER, "dark", 390), (FRONT, "dark", 1280), (TIE, "dark", 1280), (TIE, "light", 390)],
)
def test_axe_finds_nothing_in_a_live_box_and_a_phone_does_not_scroll_sideways(chromium, address, name, theme, width):
    look = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
    with open_box(chromium, address + name, **look) as (page, box, log):
        press(box, "Stop")
        expect_none(find_axe_violations(page))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        expect_none(log.complaints)


@pytest.mark.parametrize(
    ("name", "without"),
    [
        (CHAPTER, "scripts"),
        (FRONT, "scripts"),
        (TIE, "scripts"),
        (FRONT, "workers"),
        (FRONT, "a screen"),
        (TIE, "a screen"),
    ],
)
def test_a_picture_and_its_words_stand_where_the_box_cannot(chromium, address, name, without):
    context = chromium.new_context(java_script_enabled=without != "scripts")
    if without == "workers":
        context.add_init_script("delete window.Worker")
    page = context.new_page()
    page.goto(address + name)
    figure = page.locator("figure[class*=live-]")
    figure.scroll_into_view_if_needed()
    if without == "a screen":
        page.locator(".live-box").wait_for()
        page.emulate_media(media="print")
    assert figure.locator("img").first.is_visible()
    assert figure.locator("figcaption").is_visible()
    assert figure.locator(".live-box").filter(visible=True).count() == 0
    context.close()


COUNT = """{
    let paints = 0;
    const put = CanvasRenderingContext2D.prototype.putImageData;
    CanvasRenderingContext2D.prototype.putImageData = function (...all) { paints += 1; return put.apply(this, all); };
    window.countPaints = () => paints;
}"""


def test_who_wants_less_motion_sees_a_few_pictures_and_no_walk(opened):
    page, box = opened
    await_verdict(box)
    page.evaluate(COUNT)
    press(box, "Another seed")
    await_verdict(box)
    page.wait_for_timeout(200)
    maps = 3 + 4  # noise, ignorance and probability, and a network of each chain
    assert maps <= page.evaluate("countPaints()") <= 7 * maps  # when pressed, at four stages, in the end
