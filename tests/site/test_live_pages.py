"""The live boxes, the pad and the maps that answer, as readers use them: by mouse, finger, keyboard, or not at all.

Nothing is timed. What is computed is the business of `test_live_engine.py` and `test_live_stored.py`; here is what
becomes of it on a page. Most pages here hold a box and nothing else, so that no site is built for them.
"""

import base64
import re
from contextlib import contextmanager
from io import BytesIO

import numpy as np
import pytest
from bookkit.repo import BOOK
from PIL import Image
from tools import pictures
from tools.browser import find_axe_violations, find_colour_violations, open_tab, serve

PATIENCE = 240_000  # ms, on a machine that has other things to do
AGREE = re.compile(r"^Four chains agree\. These pictures can be trusted\.\s+R-hat 1\.0\d\d, ESS [\d,]+$")
START = "#moons=1.5.4.0.0.IqqeVV"  # one seed, five units, prior sd 1, and two points: a run of a second or two
DIGITS, FLAT = (pictures.read_json(name) for name in ("digits", "flat_advi"))
MAPS = {figure["figure"]: figure["panels"] for figure in FLAT["figures"]}

BARE = """<!doctype html><html lang="en"><title>A live box and nothing else</title><link rel="icon" href="data:,">
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/_static/live.css">
<link rel="stylesheet" href="/_static/live/stored.css">
<body class="bd-content"><p style="height: 300vh">above</p>CONTENT
<p style="height: 150vh">below</p><script type="module" src="/_static/live/SCRIPT"></script>"""
BOX = """<figure class="live-KIND" id="fig-KIND"><img src="/_static/live/KIND.png" alt="a still" width="300">
<figcaption>A caption.</figcaption></figure>"""


def write_bare(name):
    """The page of the box, the pad or the maps of this name."""
    if name == "digits":
        content = '<div class="cell"><figure id="fig-digits-drawn"></figure></div>'
    elif name == "small":
        content = BOX.replace("live-KIND", "live-moons live-small").replace("KIND", "moons")
    elif name == "flat_advi":
        encoded = {label: base64.b64encode(pictures.read_figure(name, label)).decode() for label in MAPS}
        content = "".join(
            f'<div id="{label}"><span style="display: block; position: relative" class="growing">'
            f'<img src="data:image/png;base64,{picture}" alt="" width="700"></span></div>'
            for label, picture in encoded.items()
        )
    else:
        content = BOX.replace("KIND", name)
    script = pictures.read_json(name)["script"] if name in ("digits", "flat_advi") else "start.js"
    return BARE.replace("CONTENT", content).replace("SCRIPT", script)


def show_bare(route):
    """Answer with the page that the address names."""
    name = route.request.url.rpartition("/")[2].partition("#")[0]
    route.fulfill(body=write_bare(name), content_type="text/html")


@pytest.fixture(scope="module")
def bare():
    """Where the sources are served, and below it pages that have a box and no more."""
    with serve(BOOK) as url:
        yield f"{url}bare/"


@contextmanager
def open_bare(chromium, url, **options):
    """A page in a window of its own; yields the tab and its log."""
    settings = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"} | options
    context = chromium.new_context(**settings)
    context.set_default_timeout(PATIENCE)
    if "/bare/" in url:
        context.route("**/bare/*", show_bare)
    with open_tab(context, url) as (page, log):
        yield page, log
        assert log.complaints == []
    context.close()


def find_box(page):
    """The live box of a page, in sight."""
    page.locator("figure[class*=live-]").first.scroll_into_view_if_needed()
    box = page.locator(".live-box").first
    box.wait_for()
    box.scroll_into_view_if_needed()
    return box


@pytest.fixture(scope="module")
def moons(chromium, bare):
    """A box for a mouse and a keyboard; all tests share it."""
    with open_bare(chromium, f"{bare}moons{START}") as (page, _):
        yield page, find_box(page)


@pytest.fixture
def opened(moons):
    """The shared box as a reader finds it who comes by a link."""
    page, box = moons
    for name in ("Move a class", "What would ADVI say?"):
        if box.get_by_role("button", name=name).get_attribute("aria-pressed") == "true":
            press(box, name)
    press(box, "attack")
    page.evaluate("start => { location.hash = '#'; location.hash = start; }", START)
    page.wait_for_function("([box, start]) => `#${box.dataset.drawing}` === start", arg=[box.element_handle(), START])
    box.scroll_into_view_if_needed()
    return page, box


@pytest.fixture(scope="module")
def tied(chromium, bare):
    """The box of six categories; all tests share it."""
    with open_bare(chromium, f"{bare}tie") as (page, _):
        yield page, find_box(page)


def choose(box, name):
    """Begin with a preset, by its name."""
    box.get_by_label("Begin with").select_option(label=name)


def press(box, name):
    """Press a button of a box by its name."""
    box.get_by_role("button", name=name, exact=True).click()


def press_keys(page, keys):
    """Press keys one after another: "Space Shift+ArrowUp b"."""
    for key in keys.split():
        page.keyboard.press(key)


def read_points(box):
    """What is drawn: list of (x, y, class), as the address says it."""
    read = "async text => (await import('/_static/live/points.js')).readHash(text).points"
    points = box.page.evaluate(read, box.get_attribute("data-drawing"))
    return [(round(p["x"], 1), round(p["y"], 1), p["label"]) for p in points]


def find_place(pad, x, y):
    """Where a place of the plane is in the window, in pixels."""
    at = pad.bounding_box()
    return at["x"] + at["width"] * (x + 3) / 6, at["y"] + at["height"] * (3 - y) / 6


def stroke(page, points, by="mouse"):
    """Draw a line through points of the window, by mouse or by finger."""
    if by == "mouse":
        page.mouse.move(*points[0])
        page.mouse.down()
        for point in points[1:]:
            page.mouse.move(*point)
        page.mouse.up()
        return
    session = page.context.new_cdp_session(page)
    for kind, places in (("touchStart", points[:1]), *(("touchMove", [p]) for p in points[1:]), ("touchEnd", [])):
        touches = [{"x": x, "y": y} for x, y in places]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})


def read_status(box):
    """The line that says how far the chains are."""
    return box.locator(".live-verdict > div").inner_text().strip()


def await_verdict(box):
    """Wait until the chains have been compared; returns the words."""
    box.page.wait_for_function("box => box.dataset.state !== 'running'", arg=box.element_handle())
    return read_status(box)


# --- to draw


def test_a_mouse_puts_moves_and_removes_points_and_moves_a_class_as_one(opened):
    page, box = opened
    pad = box.locator("[data-view=pad]")
    press(box, "Clear")
    page.mouse.click(*find_place(pad, 1, 2))
    press(box, "calm")
    page.mouse.click(*find_place(pad, -2, -1))
    assert read_points(box) == [(1, 2, 1), (-2, -1, 0)]
    stroke(page, [find_place(pad, 1, 2), find_place(pad, 1.5, 1), find_place(pad, 2, 0.5)])
    assert read_points(box) == [(2, 0.5, 1), (-2, -1, 0)]
    page.mouse.click(*find_place(pad, 2, 0.5))
    assert read_points(box) == [(-2, -1, 0)]
    page.mouse.click(*find_place(pad, 0, -1))
    press(box, "attack")
    page.mouse.click(*find_place(pad, 1, 1))
    press(box, "Move a class")
    stroke(page, [find_place(pad, 0, -1), find_place(pad, 0, -0.5), find_place(pad, 0.5, 0)])
    assert read_points(box) == [(-1.5, 0, 0), (0.5, 0, 0), (1, 1, 1)]


def test_a_finger_puts_moves_and_removes_points_and_scrolls_between_them(chromium, bare):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
    with open_bare(chromium, f"{bare}moons", **phone) as (page, _):
        box = find_box(page)
        pad = box.locator("[data-view=pad]")

        def swipe(start, end):
            stroke(page, [find_place(pad, *place) for place in np.linspace(start, end, 9)], "finger")

        press(box, "Clear")
        pad.scroll_into_view_if_needed()
        page.touchscreen.tap(*find_place(pad, 1, 1))
        assert read_points(box) == [(1, 1, 1)]
        swipe((1, 1), (-1, 2))
        ((x, y, _),) = read_points(box)
        assert (round(x), round(y)) == (-1, 2)
        before = page.evaluate("scrollY")
        swipe((1, -1), (1, 1))
        assert len(read_points(box)) == 1
        assert page.evaluate("scrollY") > before
        pad.scroll_into_view_if_needed()
        page.touchscreen.tap(*find_place(pad, x, y))
        assert read_points(box) == []


def test_the_keyboard_puts_moves_and_removes_points_and_is_spoken_to(opened):
    page, box = opened
    spoken = box.locator("[role=status]")
    press(box, "Clear")
    box.locator("[data-view=pad]").focus()
    press_keys(page, "ArrowRight ArrowUp ArrowUp")
    assert spoken.inner_text().startswith("column 8, row 9: ")
    press_keys(page, "Enter")
    assert spoken.inner_text().startswith("Put attack. column 8, row 9: attack here, ")
    press_keys(page, "m ArrowLeft m ArrowDown c Space")
    assert read_points(box) == [(0, 1, 1), (0, 0.5, 0)]
    press_keys(page, "Delete")
    assert read_points(box) == [(0, 1, 1)]


def test_presets_put_points_of_their_classes_and_sliders_say_what_they_are_set_to(opened):
    _, box = opened
    preset, constants = box.get_by_label("Begin with"), box.get_by_label("constants")
    for name, wanted in {"Two moons": {0, 1}, "Crosswise": {0, 1}, "One class": {1}}.items():
        choose(box, name)
        assert {label for *_, label in read_points(box)} == wanted, name
        assert constants.is_checked() == (name == "Crosswise")
        assert preset.evaluate("select => select.selectedOptions[0].label") == name
    constants.check()
    assert box.get_attribute("data-drawing").startswith("moons=1.5.4.1.")
    press(box, "Clear")
    assert read_points(box) == []
    assert preset.evaluate("select => select.selectedOptions[0].label") == "Your points"
    box.get_by_label("prior sd").press("End")
    assert box.locator(".live-sliders output").first.inner_text() == "4"
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
    with open_bare(chromium, f"{bare}moons{START}", permissions=["clipboard-read", "clipboard-write"]) as (page, _):
        box = find_box(page)
        page.mouse.click(*find_place(box.locator("[data-view=pad]"), 1, 1))
        words = await_verdict(box)
        press(box, "Run again")
        other = await_verdict(box)
        box.locator(".live-help summary").click()
        press(box, "Copy link")
        page.wait_for_function("navigator.clipboard.readText().then((text) => text.includes('#moons='))")
        link, points = page.evaluate("navigator.clipboard.readText()"), read_points(box)
    assert words != other
    with open_bare(chromium, link) as (page, _):
        box = find_box(page)
        assert (read_points(box), await_verdict(box)) == (points, other)


def test_an_address_holds_all_that_was_drawn_and_one_that_says_no_drawing_is_left_alone(moons):
    kept = """async () => {
      const { PRESETS, readHash, snap, writeHash } = await import("/_static/live/points.js");
      const drawing = { points: [...PRESETS.circles.draw(), snap(-9, 9, 1)], sd: 0.7, width: 8, biases: true, seed: 12,
        longer: 2 };
      const wrong = ["#moons=x", "#moons=1.5.4.0.0.!!", "#moons=1.5.4.0.0.AAAA", "#moons=1.5.9.0.0.", "#fig"];
      return [JSON.stringify(drawing) === JSON.stringify({ ...drawing, ...readHash(`#${writeHash(drawing)}`) }),
        wrong.map(readHash)];
    }"""
    assert moons[0].evaluate(kept) == [True, [None] * 5]


def test_what_is_not_finished_is_not_to_be_trusted(opened):
    page, box = opened
    assert AGREE.match(await_verdict(box))
    page.mouse.click(*find_place(box.locator("[data-view=pad]"), 2, -2))
    assert "Not yet to be trusted." in read_status(box)
    box.get_by_label("prior sd").press("End")  # the slowest
    press(box, "Stop")
    assert read_status(box).endswith("Not yet to be trusted.")
    assert box.locator("[role=status]").inner_text() == read_status(box)


def test_a_verdict_says_what_it_found(moons):
    say = "async verdict => Object.values((await import('/_static/live/report.js')).sayVerdict(verdict)).join(' ')"
    fine = {"rhat": 1.004, "ess": 1500, "essTail": 1400, "converged": True, "reasons": []}
    failed = fine | {"rhat": 1.2, "ess": 9, "divergences": 40, "converged": False, "reasons": ["ess", "divergences"]}
    assert AGREE.match(moons[0].evaluate(say, fine))
    said = moons[0].evaluate(say, failed)
    assert said == (
        "Not yet. Do not trust these pictures. R-hat 1.200, ESS 9 (wanted: above 400), 40 draws went astray"
    )


def test_under_advis_maps_stands_advis_verdict_and_under_the_chains_theirs(opened):
    _, box = opened
    chains = await_verdict(box)
    assert AGREE.match(chains)
    press(box, "What would ADVI say?")
    assert "trusted" not in read_status(box)
    box.page.wait_for_function("['arrived', 'astray'].includes(document.querySelector('.live-box').dataset.state)")
    said = read_status(box)
    assert said.startswith("ADVI’s maps. It has stopped climbing")
    assert re.search(r"ELBO −\d\.\d ± 0\.\d nats \(a coin −1\.4\), mean ignorance 0\.\d\d bits", said)
    assert re.search(r"\(chains 0\.\d\d\)$", said)
    assert "trusted" not in said
    choose(box, "One class")
    assert read_status(box).startswith("ADVI climbs.")  # what was said of the last points is gone with them
    press(box, "What would ADVI say?")  # it asks, and does not take back
    assert "ADVI" in read_status(box)
    press(box, "Chains again")
    assert "ADVI" not in read_status(box)


def test_a_drawing_survives_a_reload_and_a_damaged_link_says_so(chromium, bare):
    with open_bare(chromium, f"{bare}moons") as (page, _):
        box = find_box(page)
        page.wait_for_function("document.querySelector('.live-box progress').value > 0")
        assert page.evaluate("location.hash") == ""  # nothing was drawn
        choose(box, "Circles")
        page.mouse.click(*find_place(box.locator("[data-view=pad]"), 2, 2))
        page.wait_for_function("location.hash === '#' + document.querySelector('.live-box').dataset.drawing")
        points = read_points(box)
        page.reload()
        assert read_points(find_box(page)) == points
        page.goto("about:blank")
        page.go_back()
        assert read_points(find_box(page)) == points
        page.evaluate("location.hash = '#moons=1.99.9'")
        page.get_by_text("This link is damaged").first.wait_for()
    with open_bare(chromium, f"{bare}moons#moons=1.5.4.0.0.!!") as (page, _):
        assert "This link is damaged" in find_box(page).locator(".live-shared").inner_text()


def test_on_the_front_page_a_box_waits_to_be_seen_and_tells_of_blue_and_orange(chromium, bare):
    with open_bare(chromium, f"{bare}small") as (page, _):
        box = page.locator(".live-box")
        page.evaluate("scrollTo(0, document.querySelector('figure').offsetTop - innerHeight - 50)")  # near
        box.wait_for(state="attached")
        pad = box.locator("[data-view=pad]")
        page.evaluate("pad => scrollBy(0, pad.getBoundingClientRect().top - innerHeight + 60)", pad.element_handle())
        page.wait_for_timeout(700)
        assert page.evaluate(REACHED) == 0  # a strip of the pad is not enough
        pad.scroll_into_view_if_needed()
        page.wait_for_selector(".live-box[data-state=agree]")
        words = box.inner_text()
        assert "Now you:" in words
        assert not re.search(r"attack|calm|ADVI|R-hat|prior", words)


def test_a_box_that_nobody_touches_puts_a_point_where_nobody_knows_and_a_click_on_that_map_puts_the_next(
    chromium, bare
):
    with open_bare(chromium, f"{bare}small", reduced_motion="no-preference") as (page, _):
        box, said = find_box(page), page.locator(".live-shared")
        before = len(read_points(box))
        said.get_by_text("fell by").wait_for()
        assert int(re.search(r"fell by (\d+) %", said.inner_text())[1]) > 10
        assert len(read_points(box)) == before + 1
        assert page.evaluate("location.hash") == ""  # nobody has drawn anything
        page.mouse.click(*find_place(box.locator("[data-view=ignorance]"), 2.5, -2.5))
        x, y, label = read_points(box)[-1]
        assert (x, y, label) == (pytest.approx(2.5, abs=0.1), pytest.approx(-2.5, abs=0.1), 1)


def test_words_of_the_prose_set_what_a_box_is_set_to(moons):
    page, box = moons
    link = '<a href="#fig-moons" data-drives="sd" data-value="8">up to 4</a>'
    page.evaluate("link => document.querySelector('figure').insertAdjacentHTML('beforebegin', link)", link)
    page.locator("a[data-drives]").click()
    assert box.locator(".live-sliders output").first.inner_text() == "4"
    assert page.evaluate("location.hash") != "#fig-moons"


@pytest.mark.parametrize("name", ["moons", "small", "tie", "funnel", "names", "layers"])
def test_on_a_phone_all_is_large_enough_for_a_finger_and_nothing_scrolls_sideways(chromium, bare, name):
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    with open_bare(chromium, f"{bare}{name}", **phone) as (page, _):
        parts = find_box(page).locator("button, select, summary, input[type=range]").filter(visible=True).all()
        assert min(part.bounding_box()["height"] for part in parts) >= 44
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_six_categories_are_tied_from_one_network_for_all_to_each_alone(tied):
    page, box = tied
    own, slider, said = box.locator(".tie-own"), box.get_by_label("how tied"), box.locator(".tie-slider output")
    page.wait_for_function("document.querySelectorAll('.tie-own b:not(:empty)').length === 6")
    assert box.locator("canvas[data-group]").count() == box.locator(".tie-dial").count() == 6
    assert all(re.fullmatch(r"own way \d+\u00a0%", text) for text in own.all_inner_texts())
    assert box.locator(".tie-sds meter").count() == 3
    assert said.inner_text() == "learned from the data"
    for key, words in (("End", "each alone"), ("Home", "one network for all")):
        slider.press(key)
        assert said.inner_text() == slider.get_attribute("aria-valuetext") == words
    press(box, "Clear")
    none = "[...document.querySelectorAll('.tie-own b')].every((own) => own.textContent === '0\u00a0%')"
    page.wait_for_function(none)
    assert box.locator(".tie-sds.is-set").inner_text().startswith("group sds, set by the slider")
    assert box.locator(".tie-sds output").all_inner_texts() == ["0.00"] * 3


def test_the_reader_draws_in_a_category_of_their_own_and_a_link_brings_it_back(tied):
    page, box = tied
    pad = box.locator("[data-group='5']")
    press(box, "Clear")
    pad.scroll_into_view_if_needed()
    page.mouse.click(*find_place(pad, 1, 2))
    pad.focus()
    press_keys(page, "ArrowLeft Enter")
    assert box.locator("[role=status]").inner_text().startswith("Put attack. column 6, row 7: attack here, ")
    assert len(box.get_attribute("data-drawing").rpartition(".")[2]) == 2 * 3  # three letters a point
    page.evaluate("location.hash = '#tie=3.6.0.IqqeVV'")
    page.wait_for_function("document.querySelector('.live-box').dataset.drawing.endsWith('IqqeVV')")
    assert box.locator(".tie-slider output").inner_text() == "each alone"


def test_a_hand_points_to_where_attacks_lie_and_a_boundary_is_traced_where_a_map_says_one_half(moons):
    ask = """async ([right, up]) => {
      const { readHand, measureDeviations } = await import("/_static/live/tie.js");
      const { makeGrid, traceBoundary } = await import("/_static/live/paint.js");
      const grid = makeGrid(31);
      const height = Array.from({ length: 961 }, (_, i) => grid[2 * i] * right + grid[2 * i + 1] * up);
      const map = Float32Array.from(height, (h) => (h > 0 ? 1 : 0)), { angle, length } = readHand(map);
      return [[angle, length, ...measureDeviations([map, map.map((p) => 1 - p)])],
        [...traceBoundary(Float32Array.from(height, (h) => 0.5 + 0.05 * (h - 0.7)))]];
    }"""
    for (right, up), degrees in (((1, 0), 0), ((0, 1), 90), ((-1, -1), -135)):
        (angle, length, *own), line = moons[0].evaluate(ask, [right, up])
        assert np.degrees(angle) == pytest.approx(degrees, abs=1.5)
        assert length == pytest.approx(1, abs=0.1)
        assert own == pytest.approx([0.5, 0.5], abs=0.03)
        ends = 6 * np.reshape(line, (-1, 2)) - 3
        assert len(ends) >= 50
        assert right * ends[:, 0] - up * ends[:, 1] == pytest.approx(0.7, abs=1e-5)  # y runs down on a canvas


# --- small boxes: a question and one instruction


@pytest.fixture(scope="module")
def funnel(chromium, bare):
    """The box of two walkers; all tests share it."""
    with open_bare(chromium, f"{bare}funnel") as (page, _):
        yield page, find_box(page)


def test_both_forms_of_the_funnel_are_one_density_whose_slopes_are_right(funnel):
    code = """async ([thetas, centred]) => {
      const { makeFunnel } = await import("/_static/live/funnel.js"), { logDensity } = makeFunnel(centred, 1, 3);
      return thetas.map((theta) => {
        const gradient = new Float64Array(4);
        return [logDensity(Float64Array.from(theta), gradient), ...gradient];
      });
    }"""
    theta = np.random.default_rng(1).normal(size=(5, 4))
    weights = np.column_stack([theta[:, 0], np.exp(theta[:, :1]) * theta[:, 1:]])
    nudge, forms = 1e-5, {}
    for centred, at in ((False, theta), (True, weights)):
        found = np.array(funnel[0].evaluate(code, [at.tolist(), centred]))
        for k in range(4):
            step = nudge * np.eye(4)[k]
            both = [np.array(funnel[0].evaluate(code, [(at + s).tolist(), centred]))[:, 0] for s in (step, -step)]
            np.testing.assert_allclose(found[:, 1 + k], (both[0] - both[1]) / (2 * nudge), rtol=1e-5, atol=1e-6)
        forms[centred] = found[:, 0]
    np.testing.assert_allclose(forms[True], forms[False] - 3 * theta[:, 0], rtol=1e-12)  # three weights that shrink


def test_a_walker_in_the_weights_gets_stuck_where_the_sd_is_small_and_one_in_the_offsets_nowhere(funnel):
    code = """async (sds) => {
      const { walk } = await import("/_static/live/funnel.js");
      const reach = (...start) => { const { ups } = walk(...start); return Math.max(...ups) - Math.min(...ups); };
      return sds.map((sd) => [[1, 2, 3].map((seed) => reach(true, sd, 150, seed)),
        [1, 2, 3].map((seed) => reach(false, sd, 150, seed))]);
    }"""
    wide, narrow = np.array(funnel[0].evaluate(code, [1, 0.05]))
    assert (narrow[0] < 0.1 * wide[0]).all()
    assert min(wide[1].min(), narrow[1].min()) > 4


def test_keys_drag_the_sd_and_it_is_told_who_got_stuck(funnel):
    page, box = funnel
    slider = box.get_by_label("group sd")
    for key, sd, word in (("Home", "0.008", "stuck"), ("End", "4.00", "sees a part")):
        slider.press(key)
        assert slider.get_attribute("aria-valuetext") == box.locator("output").inner_text() == sd
        page.wait_for_selector(".live-box[data-state=done]")
        assert box.locator(".funnel-said b").all_inner_texts() == [word, "walks freely"]
        assert f"in the weights: {word}, sd from" in box.locator("[role=status]").inner_text()
    canvas = box.locator("canvas").last
    at = canvas.bounding_box()
    page.mouse.click(at["x"] + 9, at["y"] + at["height"] / 2)
    assert float(box.locator("output").inner_text()) == pytest.approx(np.sqrt(0.008 * 4), abs=0.01)


@pytest.fixture(scope="module")
def names(chromium, bare):
    """The box of five units; all tests share it."""
    with open_bare(chromium, f"{bare}names") as (page, _):
        yield page, find_box(page)


def test_new_names_move_weights_and_correlations_and_no_probability(names):
    code = """async (draws) => {
      const { correlate, makeModel, predict, rename } = await import("/_static/live/names.js"), model = makeModel();
      const before = draws.map((w) => Float64Array.from(w));
      const after = before.map((w) => rename(w, { order: [2, 1, 0, 4, 3], sign: [1, -1, 1, 1, -1] }));
      const most = (a, b) => Math.max(...Array.from(a, (x, i) => Math.abs(x - b[i])));
      return [most(before[0], after[0]), most(correlate(before), correlate(after)),
        most(predict(model, before), predict(model, after))];
    }"""
    draws = 2 * np.random.default_rng(1).normal(size=(30, 15))
    weights, correlations, map_ = names[0].evaluate(code, draws.tolist())
    assert weights > 1
    assert correlations > 0.3
    assert map_ < 1e-12


def test_keys_rename_units_and_two_chains_are_lined_up(names):
    page, box = names
    said, done = box.locator("[role=status]"), ".live-box[data-state=done]"
    page.wait_for_selector(done)
    assert box.locator("canvas").filter(visible=True).count() == 3
    for name in ("Swap two units", "Turn a sign"):
        box.get_by_role("button", name=name).press("Enter")
        moved = re.fullmatch(r"The weights moved by up to (\d+\.\d), what they say by 0\.000\.", said.inner_text())
        assert float(moved[1]) > 0.5
    box.get_by_role("button", name="Run a second chain").press("Enter")
    page.wait_for_selector(done)
    assert box.locator("canvas").filter(visible=True).count() == 6
    read = lambda: [float(number) for number in re.findall(r"\d\.\d\d", said.inner_text())]  # noqa: E731
    apart = read()
    box.get_by_role("button", name="Line them up").press("Space")
    lined = read()
    assert apart[0] == lined[0] < 0.05  # the map
    assert lined[1] < 0.5 * apart[1]  # the mean of a weight


@pytest.fixture(scope="module")
def layers(chromium, bare):
    """The box of six patients; all tests share it."""
    with open_bare(chromium, f"{bare}layers") as (page, _):
        yield page, find_box(page)


def test_of_each_chain_another_part_may_be_frozen_and_what_is_turned_is_another_patients_network(layers):
    code = """async () => {
      const { predict, score, unpack } = await import("/_static/live/layers.js");
      const { fetchAbout, fetchDraws } = await import("/_static/live/stored.js");
      const patients = unpack(await fetchAbout("camps"), await fetchDraws("camps")), turned = patients.angles.slice(1);
      const mean = (list) => list.reduce((sum, x) => sum + x, 0) / list.length, still = patients.angles.map(() => 0);
      const parts = [[1, 1], [0, 1], [1, 0]].map(([hidden, readout]) => ({ hidden, readout }));
      const found = patients.chains.map((draws) => [draws[0].differs,
        ...parts.map((shares) => mean(score(patients, draws, shares, still))),
        mean(turned.map((angle, k) => {  // the first patient's network, turned to each of the others
          const moments = patients.moments[k + 1], places = Float64Array.from(moments.flatMap(({ x, y }) => [x, y]));
          const p = predict(patients, draws, 0, parts[0], angle - patients.angles[0], places);
          return 100 * mean(moments.map(({ label }, i) => Number((p[i] > 0.5) === (label === 1))));
        }))]);
      return Object.fromEntries(found.map(([differs, ...rest]) => [differs, rest]));
    }"""
    found = layers[0].evaluate(code)
    for differs, frozen in (("readout", 2), ("hidden", 1)):
        whole, *others = found[differs]
        harmless = others[2 - frozen]
        assert whole > 85
        assert abs(harmless - whole) < 3
        assert others[frozen - 1] < whole - 15
        assert others[2] > whole - 8


def test_buttons_freeze_keys_turn_and_the_other_chain_begins_anew(layers):
    page, box = layers
    said, first = box.locator("[role=status]"), box.get_by_role("slider").first
    read = lambda: [int(number) for number in re.findall(r"(\d+) %", said.inner_text())]  # noqa: E731
    (whole,) = read()
    box.get_by_role("button", name="read-out").press("Enter")
    page.wait_for_function("document.querySelector('.layers-said').textContent.includes('share the read-out now')")
    assert read()[0] < whole - 15
    first.press("ArrowRight")
    assert first.get_attribute("aria-valuenow") == "10"
    assert said.inner_text().startswith("Nothing is left of patient 1 to turn")
    box.get_by_role("button", name="chain 2").press("Enter")
    assert first.get_attribute("aria-valuenow") == "0"
    assert read()[1] > whole - 3  # still frozen, which costs this chain nothing


# --- the pad of the digits

SAID = "document.querySelector('.pad [role=status]').textContent"
ASK = """async drawn => {
  const names = ["digits", "ink", "stored"], path = (name) => `/_static/live/${name}.js`;
  const [digits, ink, { fetchAbout, fetchDraws }] = await Promise.all(names.map((name) => import(path(name))));
  const about = await fetchAbout("digits"), networks = digits.unpackNetworks(about, await fetchDraws("digits"));
  const { p, mean, ...rest } = digits.ask(networks, drawn.image ?? ink.drawStrokes(drawn.strokes, 8), about.limit);
  return { p: [...p], mean: [...mean], ...rest };
}"""
SEVEN = [[(0.2, 0.2), (0.8, 0.2), (0.4, 0.9)], [(0.35, 0.5), (0.7, 0.5)]]
SCRIBBLE = [[(x / 40, 0.5 + 0.4 * np.sin(x / 3) * np.cos(x)) for x in range(40)]]


@pytest.fixture(scope="module")
def pad_tab(chromium, bare):
    """The pad, whose networks have come."""
    with open_bare(chromium, f"{bare}digits", has_touch=True) as (page, log):
        page.wait_for_selector(".pad-paper")
        page.locator(".pad").scroll_into_view_if_needed()
        page.wait_for_function("document.querySelector('.pad-why')?.textContent.startsWith('Try')")
        yield page, log


@pytest.fixture
def pad(pad_tab):
    """An empty pad."""
    page, log = pad_tab
    page.locator(".pad-clear").click()
    page.locator(".pad-paper").scroll_into_view_if_needed()
    log.requests.clear()
    return page


def draw(page, strokes, by="mouse"):
    """Draw on the pad."""
    box = page.locator(".pad-paper").bounding_box()
    for line in strokes:
        stroke(page, [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in line], by)


def expect_answer(page, strokes):
    """The pad says what the networks say of these strokes, in large, aloud, and digit by digit."""
    wanted = page.evaluate(ASK, {"strokes": strokes})
    said = page.evaluate(SAID)
    assert float(re.search(r"ignorance ([\d.]+) bits", said)[1]) == pytest.approx(wanted["ignorance"], abs=0.02)
    assert said.startswith(f"{wanted['best']}, " if wanted["knows"] else "I don’t know, because the networks disagree")
    assert page.locator(".pad-answer").inner_text() in said
    shown = [float(text.rstrip("%\xa0 ")) for text in page.locator(".pad-classes .percents").all_inner_texts()]
    np.testing.assert_allclose(shown, 100 * np.array(wanted["mean"]), atol=2)


@pytest.mark.parametrize(("strokes", "by"), [(SEVEN, "mouse"), (SCRIBBLE, "finger")], ids=["mouse", "finger"])
def test_what_is_drawn_is_answered_and_nobody_is_asked(pad, pad_tab, strokes, by):
    pad.locator(".pad-examples button").first.click()  # a stroke takes its place
    draw(pad, strokes, by)
    assert pad_tab[1].requests == []
    expect_answer(pad, strokes)
    assert "What you draw stays in this browser; nothing is sent." in pad.locator(".pad").inner_text()


def test_the_keyboard_draws_a_one_takes_it_back_and_clears(pad):
    pad.locator(".pad-paper").focus()
    press_keys(pad, "ArrowUp " * 4 + "Space" + " ArrowDown" * 8)
    assert pad.evaluate(SAID) == "Row 11, column 7, pen down"
    press_keys(pad, "Space")
    one = [[(0.5, 0.04 + 0.92 * row / 12) for row in range(2, 11)]]
    expect_answer(pad, one)
    press_keys(pad, "ArrowRight ArrowRight Space Space")
    two = pad.evaluate(SAID)
    press_keys(pad, "Backspace")
    assert pad.evaluate(SAID) != two
    expect_answer(pad, one)
    press_keys(pad, "Delete")
    assert pad.evaluate(SAID) == "The pad is empty."


@pytest.mark.parametrize("k", [0, 2], ids=["an answer", "a refusal"])
def test_the_charts_show_every_network_the_mean_and_the_marks(pad, k):
    wanted = pad.evaluate(ASK, DIGITS["examples"][k])
    assert wanted["knows"] == (k == 0)
    pad.locator(".pad-examples button").nth(k).press("Enter")
    assert pad.locator(".pad-said.refuses").count() == (k == 2)
    rows = pad.locator(".pad-classes li").evaluate_all(
        "rows => rows.map(row => [...['dots', 'mean'].map(name => row.querySelector(`.${name}`).getAttribute('d')),"
        " row.className])"
    )
    dots = np.array([re.findall(r"M([\d.]+) ([\d.]+)h0", row[0]) for row in rows], float)
    np.testing.assert_allclose(dots[..., 0], 1.5 + 97 * np.reshape(wanted["p"], (-1, 10)).T, atol=0.06)
    ends = [float(re.fullmatch(r"M0 0H([\d.]+)v10H0z", row[1])[1]) for row in rows]
    np.testing.assert_allclose(ends, 1.5 + 97 * np.array(wanted["mean"]), atol=0.06)
    assert [digit for digit, row in enumerate(rows) if row[2] == "best"] == [wanted["best"]]
    read = "track => ['--bits', '--mark'].map(name => parseFloat(track.style.getPropertyValue(name)))"
    for key, mark in DIGITS["marks"].items():
        track = pad.locator(f".pad-doubts .{key} .track")
        shown = track.evaluate(read)
        np.testing.assert_allclose(shown, 100 * np.array([wanted[key], mark]) / np.log2(10), atol=1e-4)
        assert (track.get_attribute("class") == "track above") == (wanted[key] > mark)


def read_canvas(page, selector):
    """The pixels of a canvas, (row, column, RGB), once they are painted."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    data = page.locator(selector).evaluate("canvas => canvas.toDataURL()").split(",")[1]
    return np.asarray(Image.open(BytesIO(base64.b64decode(data))).convert("RGB")).astype(float)


def pick(pixels, x, y):
    """The colour at shares of a canvas' width and height."""
    return pixels[int(y * len(pixels)), int(x * len(pixels))].tolist()


def test_the_paper_shows_an_example_as_the_networks_see_it_and_lines_as_wide_as_the_pen(pad):
    pad.locator(".pad-examples button").first.press("Enter")
    wanted, centres = 255 * (1 - np.reshape(DIGITS["examples"][0]["image"], (8, 8))), (np.arange(8) + 0.5) / 8
    paper = read_canvas(pad, ".pad-paper")
    np.testing.assert_allclose([[pick(paper, x, y)[0] for x in centres] for y in centres], wanted, atol=2)
    for small in (".pad-seen canvas", ".pad-examples button:first-of-type canvas"):
        np.testing.assert_allclose(read_canvas(pad, small)[..., 0], wanted, atol=2)
    draw(pad, [[(0.1, 0.5), (0.9, 0.52)]])
    paper = read_canvas(pad, ".pad-paper")
    assert max(pick(paper, x, y)[0] for x, y in ((0.1, 0.5), (0.5, 0.48), (0.5, 0.54), (0.9, 0.52))) < 40
    assert min(pick(paper, x, y)[0] for x, y in ((0.03, 0.5), (0.5, 0.45), (0.5, 0.57), (0.97, 0.52))) == 255


# --- the maps of the flat network

ASK_MAPS = """async ([method, x, y]) => {
  const names = ["plane", "stored"], path = (name) => `/_static/live/${name}.js`;
  const [plane, { fetchAbout, fetchDraws }] = await Promise.all(names.map((name) => import(path(name))));
  const methods = plane.unpackMethods(await fetchAbout("flat_advi"), await fetchDraws("flat_advi"));
  const { p, mean, noise, ignorance } = plane.askNetworks(methods[method], x, y);
  return [[...p], mean, noise, ignorance];
}"""


@pytest.fixture(scope="module")
def maps(chromium, bare):
    """The page of the maps, and its log."""
    with open_bare(chromium, f"{bare}flat_advi", has_touch=True) as (page, log):
        page.wait_for_selector(".hover-said")
        yield page, log


def expect_words(figure, panels):
    """Below a figure stands what the networks say of the point that is named there, method by method; returns it."""
    figure.locator(".hover-words b").first.wait_for()
    where = figure.locator(".hover-where").inner_text().replace("−", "-")
    point = [float(number) for number in re.findall(r"-?\d\.\d\d", where)]
    methods = list(dict.fromkeys(panel["method"] for panel in panels))
    for method, words in zip(methods, figure.locator(".hover-words").all_inner_texts(), strict=True):
        _, *wanted = figure.page.evaluate(ASK_MAPS, [method, *point])
        shown = [float(number) for number in re.findall(r"\d\.\d\d", words)]
        np.testing.assert_allclose(shown, wanted, atol=0.03)
    return point


@pytest.mark.parametrize(("label", "by"), [("fig-flat-advi-missed", "mouse"), ("fig-flat-advi-prior", "finger")])
def test_a_map_says_what_the_networks_say_where_it_is_touched(maps, label, by):
    page, _ = maps
    figure, panels = page.locator(f"#{label}"), MAPS[label]
    figure.scroll_into_view_if_needed()
    box, panel = figure.locator(".hover-pane").last.bounding_box(), panels[-1]
    share = (-1.0 - panel["x"][0]) / np.ptp(panel["x"]), (panel["y"][1] - 2.0) / np.ptp(panel["y"])
    at = box["x"] + share[0] * box["width"], box["y"] + share[1] * box["height"]
    page.mouse.move(*at) if by == "mouse" else page.touchscreen.tap(*at)
    np.testing.assert_allclose(expect_words(figure, panels), (-1.0, 2.0), atol=0.05)
    crosses = figure.locator(".hover-pane").evaluate_all(
        "panes => panes.map(pane => ['--x', '--y'].map(name => parseFloat(pane.style.getPropertyValue(name))))"
    )
    np.testing.assert_allclose(crosses, [100 * np.array(share)] * len(panels), atol=1)  # at one place of all panels
    assert figure.locator(".hover-layer.on").count() == 1


@pytest.mark.parametrize("label", ["fig-flat-advi-missed", "fig-flat-advi-prior"])
def test_keys_move_the_cross_and_a_strip_shows_how_many_networks_say_what(maps, label):
    page, _ = maps
    figure, panels, crosses = page.locator(f"#{label}"), MAPS[label], FLAT["crosses"]
    figure.locator(".hover-pane").first.focus()
    page.keyboard.press("b")
    np.testing.assert_allclose(expect_words(figure, panels), crosses["B"], atol=0.01)
    assert "the cross B" in figure.locator("[role=status]").inner_text()
    for k, method in enumerate(dict.fromkeys(panel["method"] for panel in panels)):
        p, average, *_ = page.evaluate(ASK_MAPS, [method, *crosses["B"]])
        row = figure.locator(".hover-row").nth(k)
        bars, mean = (row.locator(f".{name}").get_attribute("d") for name in ("bars", "mean"))
        places, heights = np.array(re.findall(r"M([\d.]+) 20v-([\d.]+)h", bars), float).T
        counts = np.histogram(p, 40, (0, 1))[0]
        many = len(p) > 20
        np.testing.assert_allclose(places, 2.5 * np.flatnonzero(counts) if many else 99 * np.array(p), atol=0.006)
        np.testing.assert_allclose(heights, 2 + 18 * counts[counts > 0] / counts.max() if many else 14)
        np.testing.assert_allclose(float(re.fullmatch(r"M([\d.]+) 0v20", mean)[1]), 100 * average)
        assert row.locator(".hover-method").inner_text() == (method if many else "the 6 maps")
    press_keys(page, "ArrowLeft Shift+ArrowUp")
    np.testing.assert_allclose(expect_words(figure, panels), (0.8, -0.7), atol=0.01)
    press_keys(page, "Shift+ArrowDown " * 20)
    assert expect_words(figure, panels)[1] == panels[0]["y"][0]  # it stays on the map


# --- for everybody


LOADED = "name => performance.getEntriesByType('resource').some((e) => e.name.endsWith(name))"


@pytest.mark.parametrize(
    ("name", "there", "late"),
    [("moons", "figure", "sampler.js"), ("digits", ".pad", "digits.bin"), ("flat_advi", ".hover-said", ".bin")],
)
def test_what_is_large_is_fetched_when_it_comes_near_and_not_before(chromium, bare, name, there, late):
    with open_bare(chromium, f"{bare}{name}", viewport={"width": 1280, "height": 300}) as (page, log):
        page.wait_for_selector(there, state="attached")
        page.wait_for_timeout(500)
        asked = lambda: [url for url in log.requests if url.endswith(late)]  # noqa: E731
        assert not asked()
        for part in page.locator(there).all():
            part.scroll_into_view_if_needed()
        page.wait_for_function(LOADED, arg=late)
        assert len(asked()) == 1


HIDE = """hidden => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
REACHED = "Number(document.querySelector('.live-box progress').value)"


@pytest.mark.parametrize("how", ["scrolled away", "in the background"])
def test_chains_rest_where_nobody_sees_them(opened, how):
    page, box = opened
    box.get_by_label("prior sd").press("End")  # slow: there is something left to rest from
    page.wait_for_function(f"{REACHED} > 0")
    page.evaluate("scrollTo(0, 0)") if how == "scrolled away" else page.evaluate(HIDE, True)
    page.wait_for_selector(".live-box[data-resting]", state="attached")
    page.wait_for_timeout(500)  # what was on its way arrives
    reached = page.evaluate(REACHED)
    page.wait_for_timeout(1000)
    assert page.evaluate(REACHED) == reached < 1
    box.scroll_into_view_if_needed() if how == "scrolled away" else page.evaluate(HIDE, False)
    page.wait_for_function(f"{REACHED} > {reached}")


def test_who_wants_less_motion_sees_a_few_pictures_and_no_walk(opened):
    page, box = opened
    await_verdict(box)
    page.evaluate("""{
      let paints = 0;
      const put = CanvasRenderingContext2D.prototype.putImageData;
      CanvasRenderingContext2D.prototype.putImageData = function (...all) { paints += 1; return put.apply(this, all); };
      window.countPaints = () => paints;
    }""")
    press(box, "Run again")
    await_verdict(box)
    page.wait_for_timeout(200)
    maps = 3 + 4  # noise, ignorance and probability, and a network of each chain
    assert maps <= page.evaluate("countPaints()") <= 7 * maps  # when pressed, at four stages, in the end


def test_a_page_has_the_scripts_of_what_is_live_on_it_and_no_others(site):
    for path in site.glob("book/**/*.html"):
        text, name = path.read_text(encoding="utf8"), str(path.relative_to(site / "book").with_suffix(""))
        has_box = bool(re.search(r'<figure[^>]* class="[^"]*live-', text))
        asked = {"start.js": has_box, "sheet.js": name == "teach/entry_test"}
        asked |= {
            script: name == chapter for chapter, script in (("digits", "digit_pad.js"), ("flat_advi", "hover.js"))
        }
        assert {script: f"live/{script}" in text for script in asked} == asked, name
        sheets = {"live.css": has_box, "live/stored.css": asked["digit_pad.js"] or asked["hover.js"]}
        assert {sheet: f"_static/{sheet}" in text for sheet in sheets} == sheets, name


def test_a_still_keeps_its_size_and_is_shown_at_half_of_it(tmp_path):
    path = tmp_path / "still.png"
    pixels = np.linspace(0, 255, 60 * 40 * 3).reshape(40, 60, 3).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    pictures.shrink(path, path)
    with Image.open(path) as picture:
        assert picture.size == (60, 40)
        assert picture.info["dpi"][0] >= 200
        assert np.abs(np.asarray(picture.convert("RGB"), float) - pixels).mean() < 8


def wake_page(page, name):
    """Use what is live on a page of the site."""
    if name in ("flat_advi", "hierarchical_nuts"):
        press(find_box(page), "Stop")
    elif name != "digits":
        find_box(page)
        page.wait_for_selector(".live-box[data-state=done]")
    if name == "flat_advi":
        page.locator("#fig-flat-advi-missed .hover-pane").first.focus()
        page.keyboard.press("a")
        page.locator("#fig-flat-advi-missed .hover-words b").first.wait_for()
    if name == "digits":
        page.locator(".pad").scroll_into_view_if_needed()
        page.wait_for_function("document.querySelector('.pad-why')?.textContent.startsWith('Try')")
        page.locator(".pad-examples button").nth(2).press("Enter")  # it refuses, in other colours


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("flat_advi", 390),
        ("hierarchical_nuts", 1280),
        ("digits", 390),
        ("hierarchical_trust", 390),
        ("weight_correlations", 1280),
    ],
)
def test_axe_finds_nothing_a_phone_has_room_and_nothing_comes_from_elsewhere(chromium, address, name, width):
    with open_bare(chromium, f"{address}book/{name}.html", viewport={"width": width, "height": 900}) as (page, log):
        wake_page(page, name)
        assert find_axe_violations(page) == []
        page.emulate_media(color_scheme="dark")
        page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
        assert find_colour_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert [url for url in log.requests if not url.startswith((address, "data:", "blob:"))] == []


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("index", "scripts"),
        ("digits", "scripts"),
        ("index", "workers"),
        ("index", "worker.js"),
        ("flat_advi", "a screen"),
    ],
)
def test_a_picture_and_its_words_stand_where_nothing_can_be_live(chromium, address, name, without):
    context = chromium.new_context(java_script_enabled=without != "scripts")
    context.set_default_timeout(PATIENCE)
    if without == "workers":
        context.add_init_script("delete window.Worker")
    if without == "worker.js":
        context.route("**/worker.js", lambda route: route.abort())
    page, refused = context.new_page(), []
    page.on("requestfailed", lambda request: refused.append(request.url))
    page.goto(f"{address}book/{name}.html")
    figure = page.locator("#fig-digits-drawn" if name == "digits" else "figure[class*=live-]")
    figure.scroll_into_view_if_needed()
    if without == "worker.js":  # the box asks for it, and then takes itself away
        if not any("worker.js" in url for url in refused):
            page.wait_for_event("requestfailed", lambda request: "worker.js" in request.url)
        page.wait_for_function("!document.querySelector('.live-box')")
    if without == "a screen":
        page.locator(".live-box").wait_for()
        assert page.locator(".hover-said").count()
        page.emulate_media(media="print")
    assert figure.locator("img").first.is_visible()
    assert figure.locator("figcaption").first.is_visible()
    assert page.locator(".live-box, .pad, .hover-said").filter(visible=True).count() == 0
    if (name, without) == ("index", "scripts"):  # nor is there a slider
        page.goto(f"{address}book/hierarchical_trust.html")
        assert page.locator(".frames img").first.is_visible()
        assert not page.locator(".frames-control").first.is_visible()
    context.close()
