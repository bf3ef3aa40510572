"""Pages that ask a stored posterior: the pad of `digits` and the maps of `flat_advi` that answer.

What a browser computes is compared with Python, from the same numbers; what was lost when they were stored, with the
errors that the chapter prints.
"""

import hashlib
import json
import re
import subprocess
from base64 import b64decode
from functools import cache
from io import BytesIO

import nbformat
import numpy as np
import pytest
from bnn import digits, score
from book_stored import find_script
from marionette import PLACES, SHOW, TEXT, firefox
from PIL import Image
from playwright._impl._driver import compute_driver_executable
from scipy.special import expit, softmax
from test_site import ROOT, WIDTH, address, chromium, expect_none, site
from tools import stored
from tools.browser import COLOUR_RULES, FORM, _run_axe, open_context, open_tab
from tools.repo import digest as digest_rows

__all__ = ["address", "chromium", "firefox", "site"]  # fixtures

LIVE = ROOT / "book" / "_static" / "live"
NAMES = ("digits", "flat_advi")
LAST = {"digits": "STROKES", "flat_advi": "fig-flat-advi-missed"}  # of the cells that were run
PLUS_MINUS = r"(-?[\d.]+) ± ([\d.]+)"


# --- what is stored, as Python reads it


@cache
def read_about(name):
    """How a posterior is packed, and what else its page shows."""
    return json.loads((LIVE / f"{name}.json").read_text(encoding="utf8"))


def read_whole(name, first, count, step):
    """Numbers of 16 bits."""
    return np.frombuffer((LIVE / f"{name}.bin").read_bytes(), "<i2", count, 2 * first) * step


@cache
def read_digits():
    """The networks of the pad: dict of (draw, …) arrays."""
    about = read_about("digits")
    sizes = [int(np.prod(shape)) for shape in about["shapes"].values()]
    n = sum(sizes)
    mean, sd = (read_whole("digits", k * n, n, about["steps"][name]) for k, name in enumerate(("mean", "sd")))
    words = np.frombuffer((LIVE / "digits.bin").read_bytes(), "<u4", offset=4 * n).astype(int)
    codes = words[:, None] // len(about["levels"]) ** np.arange(about["digits"]) % len(about["levels"])
    codes = codes.ravel()[: about["draws"] * n].reshape(-1, n)
    weights = (mean + sd * np.array(about["levels"])[codes]).astype("float32").astype(float)
    parts = np.split(weights, np.cumsum(sizes)[:-1], axis=1)
    shapes = about["shapes"].items()
    return {name: part.reshape(-1, *shape) for part, (name, shape) in zip(parts, shapes, strict=True)}


def predict(X):
    """Class probabilities, (draw, obs, class): the chapter's formula."""
    w = read_digits()
    h1 = np.tanh(X @ w["w1"] + w["b1"][:, None])
    h2 = np.tanh(h1 @ w["w2"] + w["b2"][:, None])
    return softmax(h2 @ w["w3"] + w["b3"][:, None], axis=-1)


@cache
def predict_known(name):
    """Class probabilities of the images of this name, which several tests ask for."""
    return predict(load_images()[1][name])


@cache
def _paint(strokes):
    return digits.draw_strokes(json.loads(strokes))


def paint(strokes):
    """The image of a drawing as a notebook's pad makes it, (1, pixel), once for all tests: it takes its time."""
    return _paint(json.dumps(strokes))


def ask_plane(method, points):
    """P(class 1) at points of the plane, (draw, obs)."""
    about = read_about("flat_advi")
    sizes = [int(np.prod(shape)) for shape in about["shapes"].values()]
    draws, step, first = (about["methods"][method][key] for key in ("draws", "step", "first"))
    weights = read_whole("flat_advi", first, draws * sum(sizes), step).reshape(draws, -1)
    parts = np.split(weights, np.cumsum(sizes)[:-1], axis=1)
    w1, w2, w3 = (p.reshape(-1, *s) for p, s in zip(parts, about["shapes"].values(), strict=True))
    return expit((np.tanh(np.tanh(points @ w1) @ w2) @ w3[..., None])[..., 0])


@cache
def load_images():
    """The chapter's images: what it tests on, and what is no digit."""
    data = digits.load(seed=0)
    outside = {name: X for name, (X, _) in digits.make_outsiders(data, seed=1).items()}
    return data, outside | {"test digits": data.X_test, "validation": data.X_validation}


def read_outputs(name):
    """What the cells of a notebook print, one text."""
    cells = nbformat.read(ROOT / "book" / f"{name}.ipynb", as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "\n".join(o.get("text", "") + o.get("data", {}).get("text/plain", "") for o in outputs)


def find_printed(name, start):
    """The numbers with an error on the line of an output that starts so: list of (value, error)."""
    (line,) = re.findall(rf"^{re.escape(start)}(?::|  ).*±.*$", read_outputs(name), flags=re.MULTILINE)
    return [tuple(map(float, pair)) for pair in re.findall(PLUS_MINUS, line)]


# --- what is stored is the chapter's


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_is_stored_was_changed_since_it_was_made(name):
    about = dict(read_about(name))
    assert about.pop("digest") == digest_rows(about)
    assert about["bytes"] == hashlib.sha256((LIVE / f"{name}.bin").read_bytes()).hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_comes_from_the_cells_that_stand_in_the_chapter(name):
    assert read_about(name)["code"] == stored.digest_cells(name, LAST[name]), "run: make stored"


def test_the_draws_are_small():
    assert (LIVE / "digits.bin").stat().st_size < 600_000
    assert (LIVE / "flat_advi.bin").stat().st_size < 200_000


def test_no_figure_that_the_chapter_prints_moves_by_more_than_its_error():
    """Two hundred draws, each weight at one of five levels, stand for those that the chapter has."""
    data, limit, p = load_images()[0], read_about("digits")["limit"], predict_known("test digits")
    right = 100 * np.mean(p.mean(axis=0).argmax(axis=1) == data.y_test)
    found = {"digits read right": right, "sure of its answers, on average": 100 * p.mean(axis=0).max(axis=1).mean()}
    rows = {"digits in white on black": "inverted", "digits on their side": "rotated"}  # as the chapter calls them
    for row in ("test digits", "letters", "noise", *rows):
        found[row] = 100 * np.mean(score.split_uncertainty(predict_known(rows.get(row, row)))["ignorance"] > limit)
    printed = {name: find_printed("digits", name)[0] for name in found}
    off = {name: abs(found[name] - value) / error for name, (value, error) in printed.items()}
    assert max(off.values()) < 1, off


def test_the_limit_would_be_the_same_from_what_is_stored():
    """Its own error is that of a quantile of 397 images, some 0.07 bits; what is stored moves it by less."""
    ignorance = score.split_uncertainty(predict_known("validation"))["ignorance"]
    rng = np.random.default_rng(1)
    again = [np.quantile(rng.choice(ignorance, len(ignorance)), 1 - stored.PRICE) for _ in range(200)]
    assert abs(np.quantile(ignorance, 1 - stored.PRICE) - read_about("digits")["limit"]) < np.std(again)


def test_at_the_crosses_the_maps_say_what_the_chapter_prints():
    for name, point in read_about("flat_advi")["crosses"].items():
        p = ask_plane("ADVI", np.array([point]))
        parts = score.split_uncertainty(p)
        printed = find_printed("flat_advi", name)
        found = [p.mean(), parts["noise"][0], parts["ignorance"][0]]
        for value, (shown, error) in zip(found, printed, strict=True):
            assert abs(value - shown) < error / 10


@pytest.mark.parametrize("figure", read_about("flat_advi")["figures"], ids=lambda figure: figure["figure"])
def test_the_maps_are_where_the_pictures_have_them(figure):
    """The picture is that of the notebook, the axes' left and lower spine are dark, and so are the crosses."""
    picture = stored.read_picture("flat_advi", figure["figure"])
    assert figure["picture"] == hashlib.sha256(picture).hexdigest(), "run: make stored"
    grey = np.asarray(Image.open(BytesIO(picture)).convert("L"))
    high, wide = grey.shape
    for panel in figure["panels"]:
        left, top, width, height = panel["box"] * np.array([wide, high, wide, high])
        column, row = round(left), round(top + height)
        assert grey[round(top) + 9 : row - 9, column - 2 : column + 3].min(axis=1).max() < 120
        assert grey[row - 2 : row + 3, column + 9 : round(left + width) - 9].min(axis=0).max() < 120
        if figure["figure"] in ("fig-flat-advi-uncertainty", "fig-flat-advi-missed"):
            for x, y in read_about("flat_advi")["crosses"].values():
                across = (x - panel["x"][0]) / np.ptp(panel["x"]), (panel["y"][1] - y) / np.ptp(panel["y"])
                column, row = round(left + across[0] * width), round(top + across[1] * height)
                assert grey[row - 2 : row + 3, column - 2 : column + 3].max() < 120


def test_a_weight_keeps_its_mean_and_its_sd_when_it_is_rounded():
    weights = np.random.default_rng(1).normal(size=(200, 50)) * np.linspace(0.1, 2, 50) + np.linspace(-3, 3, 50)
    levels, mean, sd, code = stored.round_draws(weights)
    again = mean + sd * levels[code]
    np.testing.assert_allclose(again.mean(axis=0), weights.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(again.std(axis=0), weights.std(axis=0))
    assert set(code.ravel()) == set(range(stored.LEVELS))


def test_thirteen_codes_go_into_a_word_the_first_as_the_digit_that_counts_least():
    codes = np.array([[1, 2, 3, 4, *[0] * 9], [4] * 13])
    words = [1 + 2 * 5 + 3 * 25 + 4 * 125, 5**13 - 1]
    assert np.frombuffer(stored.pack_codes(codes), "<u4").tolist() == words
    assert len(stored.pack_codes(codes.ravel()[:-1])) == 8


def test_a_page_has_the_script_that_its_chapter_names_and_others_have_none():
    pages = ("book/digits", "book/flat_advi", "book/moons", "digits", "book/teach/digits")
    assert [find_script(page) for page in pages] == ["digit_pad.js", "hover.js", None, None, None]


# --- what a browser computes is what Python computes

PROGRAM = """
import { readFileSync } from "node:fs";
const live = process.argv[2], read = (file) => readFileSync(`${live}/${file}`);
const load = (name) => { const b = read(`${name}.bin`); return b.buffer.slice(b.byteOffset, b.byteOffset + b.length); };
const about = (name) => JSON.parse(read(`${name}.json`));
const [digits, plane, ink, drawing] = await Promise.all(
  ["digits", "plane", "ink", "drawing"].map((name) => import(`${live}/${name}.js`)));
const asked = JSON.parse(readFileSync(0)), networks = digits.unpackNetworks(about("digits"), load("digits"));
const methods = plane.unpackMethods(about("flat_advi"), load("flat_advi"));
const plain = ({ p, mean, ...rest }) => ({ mean: Array.from(mean), ...rest }), pad = new drawing.Drawing();
console.log(JSON.stringify({
  answers: asked.images.map((image) => plain(digits.ask(networks, image, about("digits").limit))),
  words: asked.doubts.map((ignorance) => digits.describe(
    { mean: [0.1, 0.9], best: 1, knows: ignorance <= 1.3573, ignorance }, 1.3573)),
  pads: asked.moves.map(([name, given]) => {
    pad[name](given);
    const { strokes, image, down, cursor } = pad;
    return structuredClone({ strokes, image, down, cursor });
  }),
  images: asked.strokes.map((strokes) => Array.from(ink.drawStrokes(strokes, 8))),
  plane: Object.fromEntries(Object.keys(methods).map((name) => [name, asked.points.map((point) => {
    const { mean, noise, ignorance } = plane.askNetworks(methods[name], ...point);
    return [mean, noise, ignorance];
  })])),
}));
"""
DRAWN = {  # drawings of a pen
    "a seven with a bar": [[(0.2, 0.2), (0.8, 0.2), (0.4, 0.9)], [(0.35, 0.5), (0.7, 0.5)]],
    "a dot": [[(0.4, 0.4)]],
    "a long line": [[(0.1, 0.5), (0.9, 0.52)]],
    "a scribble": [[(x / 40, 0.5 + 0.4 * np.sin(x / 3) * np.cos(x)) for x in range(40)]],
}
MOVES = [  # on one pad, one after another
    ("show", {"image": [0.5] * 64}),
    ("press", (0.1, 0.2)),
    ("move", (0.3, 0.2)),
    ("show", {"strokes": [[(0, 0), (4, 2)], [(2, 1)]]}),
    ("move", (0.9, 0.9)),
    ("undo", None),
    ("show", {"image": [0.5] * 64}),
    ("undo", None),
    ("step", (-99, 99)),
    ("press", (0.5, 0.5)),
    ("step", (1, -1)),
]
DOUBTS = [0.4, 1.3, 1.3612, 2.0]  # bits
POINTS = [(-0.5, 0.7), (0.9, -1.2), (-2.5, -2.5), (0.0, 0.0), (4.0, -4.0)]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What Node, from Playwright's wheel, makes of all images, drawings and points."""
    folder = tmp_path_factory.mktemp("node")
    (folder / "ask.mjs").write_text(PROGRAM)
    (folder / "live").mkdir()
    (folder / "live" / "package.json").write_text('{"type": "module"}')
    for path in LIVE.iterdir():
        (folder / "live" / path.name).write_bytes(path.read_bytes())
    _, images = load_images()
    strokes = [*DRAWN.values(), *(e["strokes"] for e in read_about("digits")["examples"] if "strokes" in e)]
    asked = {
        "images": np.vstack([images["test digits"], images["letters"]]).tolist(),
        "strokes": strokes,
        "points": POINTS,
        "moves": MOVES,
        "doubts": DOUBTS,
    }
    command = [compute_driver_executable()[0], folder / "ask.mjs", folder / "live"]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return asked | {"said": json.loads(done.stdout)}


def test_every_test_digit_and_every_letter_gets_the_answer_that_python_gives(told):
    p = np.concatenate([predict_known(name) for name in ("test digits", "letters")], axis=1)
    answers = told["said"]["answers"]
    np.testing.assert_allclose([answer["mean"] for answer in answers], p.mean(axis=0), atol=1e-9)
    for name, values in score.split_uncertainty(p).items():
        np.testing.assert_allclose([answer[name] for answer in answers], values, atol=1e-9)
    ignorance = score.split_uncertainty(p)["ignorance"]
    assert [answer["best"] for answer in answers] == p.mean(axis=0).argmax(axis=1).tolist()
    assert [answer["knows"] for answer in answers] == (ignorance <= read_about("digits")["limit"]).tolist()


def test_a_drawing_becomes_the_image_that_the_pad_in_a_notebook_makes_of_it(told):
    """Matplotlib moves lines to whole pixels of its canvas and smooths edges in another way: some hundredths of ink."""
    for strokes, image in zip(told["strokes"], told["said"]["images"], strict=True):
        off = np.abs(np.array(image) - paint(strokes)[0])
        assert off.max() < 0.06, off.max()
        assert off.mean() < 0.02


def test_what_is_on_the_pad_after_each_move(told):
    pads = told["said"]["pads"]
    assert (pads[0]["image"], pads[0]["strokes"]) == ([0.5] * 64, [])
    assert (pads[1]["image"], pads[1]["strokes"]) == (None, [[[0.1, 0.2]]])  # a line takes an example's place
    assert pads[2]["strokes"] == [[[0.1, 0.2], [0.3, 0.2]]]
    fitted = [[[0.125, 0.3125], [0.875, 0.6875]], [[0.5, 0.5]]]
    assert [pad["strokes"] for pad in pads[3:6]] == [fitted, fitted, fitted[:1]]  # no pen is down
    assert (pads[7]["image"], pads[7]["strokes"]) == (None, [])
    np.testing.assert_allclose(pads[8]["cursor"], (0.04, 0.96))  # a whole pen from the edge
    np.testing.assert_allclose(pads[10]["cursor"], (0.04 + 0.92 / 12, 0.96 - 0.92 / 12))
    assert pads[10]["strokes"] == [[[0.5, 0.5], pads[10]["cursor"]]]
    assert [pad["down"] for pad in pads] == [False, True, True, *[False] * 6, True, True]


def test_an_answer_in_words_has_as_many_digits_as_tell_it_from_the_limit(told):
    few, near, above, far = told["said"]["words"]
    assert few["short"] == near["short"] == "1, 90\xa0%"
    assert "ignorance 0.40 bits, below its limit of 1.36" in few["why"]
    assert "ignorance 1.30 bits, below its limit of 1.36" in near["why"]
    assert above["short"] == far["short"] == "I don’t know"
    assert "ignorance 1.3612 bits, above its limit of 1.3573. Best guess: 1, 90\xa0%" in above["why"]
    assert "ignorance 2.00 bits, above its limit of 1.36" in far["why"]


def test_every_method_says_of_a_point_what_python_says(told):
    for name, rows in told["said"]["plane"].items():
        p = ask_plane(name, np.array(POINTS))
        parts = score.split_uncertainty(p)
        wanted = np.column_stack([p.mean(axis=0), parts["noise"], parts["ignorance"]])
        np.testing.assert_allclose(rows, wanted, atol=1e-9)


# --- the pad, by mouse, finger and keyboard

READY = "() => document.querySelector('.pad-why')?.textContent.startsWith('Try')"
SAID = "() => document.querySelector('.pad [role=status]').textContent"
IN_CHROMIUM = """async ([images, limit]) => {
    const [{ ask, unpackNetworks }, { fetchAbout, fetchDraws }] = await Promise.all(
        ["digits", "stored"].map((name) => import(new URL(`../_static/live/${name}.js`, location.href))));
    const networks = unpackNetworks(await fetchAbout("digits"), await fetchDraws("digits"));
    return images.map((image) => ask(networks, image, limit)).map(({ mean, ignorance }) => [...mean, ignorance]);
}"""


@pytest.fixture(scope="module")
def window(chromium):
    """One window with a touch screen: what pages share is fetched once."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, has_touch=True, reduced_motion="reduce")
    yield context
    context.close()


@pytest.fixture(scope="module")
def pad_tab(window, address):
    """The pad, whose networks have come, and the tab's log."""
    with open_tab(window, f"{address}book/digits.html") as (page, log):
        page.wait_for_selector(".pad-paper")
        far = list(log.requests)
        page.locator(".pad").scroll_into_view_if_needed()
        page.wait_for_function(READY)
        assert not [url for url in far if url.endswith(".bin")]  # fetched when it is near
        yield page, log


@pytest.fixture
def pad(pad_tab):
    """An empty pad."""
    page, log = pad_tab
    page.locator(".pad-clear").click()
    page.locator(".pad-paper").scroll_into_view_if_needed()
    log.requests.clear()
    yield page
    expect_none(log.complaints)
    assert log.requests == []  # whatever was drawn, nothing was asked of anybody


def list_pixels(page, strokes):
    """Points of a drawing as pixels of the window."""
    box = page.locator(".pad-paper").bounding_box()
    return [[(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke] for stroke in strokes]


def draw_by_mouse(page, strokes):
    for first, *others in list_pixels(page, strokes):
        page.mouse.move(*first)
        page.mouse.down()
        for point in others:
            page.mouse.move(*point)
        page.mouse.up()


def draw_by_finger(page, strokes):
    session = page.context.new_cdp_session(page)

    def touch(kind, *points):
        points = [{"x": x, "y": y} for x, y in points]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    for first, *others in list_pixels(page, strokes):
        touch("touchStart", first)
        for point in others:
            touch("touchMove", point)
        touch("touchEnd")


def draw_by_keyboard(page, keys):
    page.locator(".pad-paper").focus()
    for key in keys.split():
        page.keyboard.press(key)


def expect_answer(page, strokes):
    """The pad says what Python says of these strokes, in large, aloud, and digit by digit."""
    p = predict(paint(strokes))
    mean, ignorance = p.mean(axis=0)[0], score.split_uncertainty(p)["ignorance"][0]
    said, limit = page.evaluate(SAID), read_about("digits")["limit"]
    assert abs(ignorance - limit) > 0.05, "wanted: a drawing that is not at the limit"
    bits = float(re.search(r"ignorance ([\d.]+) bits", said)[1])
    assert bits == pytest.approx(ignorance, abs=0.05)  # edges are smoothed in another way, see above
    assert said.startswith(
        f"{mean.argmax()}, " if ignorance <= limit else "I don’t know, because the networks disagree"
    )
    assert page.locator(".pad-answer").inner_text() in said
    shown = [float(text.rstrip("%\xa0 ")) for text in page.locator(".pad-classes .percents").all_inner_texts()]
    np.testing.assert_allclose(shown, 100 * mean, atol=2)
    assert page.locator(".pad-doubts .ignorance b").inner_text() == f"{bits:.2f}"
    assert f"limit {limit:.2f}" in page.locator(".pad-doubts .ignorance").inner_text()


@pytest.mark.parametrize("draw", [draw_by_mouse, draw_by_finger])
@pytest.mark.parametrize("name", ["a seven with a bar", "a scribble", "a dot"])
def test_what_is_drawn_is_answered(pad, draw, name):
    draw(pad, DRAWN[name])
    expect_answer(pad, DRAWN[name])


def test_the_keyboard_draws_a_one_takes_it_back_and_clears(pad):
    up, down = "ArrowUp " * 4, "ArrowDown " * 8
    draw_by_keyboard(pad, f"{up} Space {down}")
    assert pad.evaluate(SAID) == "Row 11, column 7, pen down"
    draw_by_keyboard(pad, "Space")
    expect_answer(pad, [[(0.5, 0.2), (0.5, 0.8)]])
    draw_by_keyboard(pad, "ArrowRight ArrowRight Space Space")
    two = pad.evaluate(SAID)
    draw_by_keyboard(pad, "Backspace")
    assert pad.evaluate(SAID) != two
    expect_answer(pad, [[(0.5, 0.2), (0.5, 0.8)]])
    draw_by_keyboard(pad, "Delete")
    assert pad.evaluate(SAID) == "The pad is empty."


def test_each_example_gets_the_answer_that_python_gives(pad):
    for k, example in enumerate(read_about("digits")["examples"]):
        image = example.get("image")
        X = np.array([image]) if image else paint(example["strokes"])
        p = predict(X)
        refuses = score.split_uncertainty(p)["ignorance"][0] > read_about("digits")["limit"]
        pad.locator(".pad-examples button").nth(k).press("Enter")
        said = pad.locator(".pad-answer").inner_text()
        assert said.startswith("I don’t know" if refuses else f"{p.mean(axis=0).argmax()}, "), example["name"]


@pytest.mark.parametrize("k", [0, 2])  # it answers, it refuses
def test_the_charts_show_every_network_the_mean_and_the_marks(pad, k):
    about = read_about("digits")
    p = predict(np.array([about["examples"][k]["image"]]))[:, 0]
    pad.locator(".pad-examples button").nth(k).press("Enter")
    rows = pad.locator(".pad-classes li").evaluate_all(
        "rows => rows.map(row => [...['dots', 'mean'].map(name => row.querySelector(`.${name}`).getAttribute('d')),"
        " row.className])"
    )
    dots = np.array([re.findall(r"M([\d.]+) ([\d.]+)h0", row[0]) for row in rows], float)
    np.testing.assert_allclose(dots[..., 0], 1.5 + 97 * p.T, atol=0.06)
    assert dots[..., 1].min() >= 1
    assert dots[..., 1].max() <= 9
    assert dots[..., 1].std(axis=1).min() > 2  # they lie beside one another
    ends = [float(re.fullmatch(r"M0 0H([\d.]+)v10H0z", row[1])[1]) for row in rows]
    np.testing.assert_allclose(ends, 1.5 + 97 * p.mean(axis=0), atol=0.06)
    assert [digit for digit, row in enumerate(rows) if row[2] == "best"] == [p.mean(axis=0).argmax()]
    for key, (value,) in score.split_uncertainty(p[:, None]).items():
        track, mark = pad.locator(f".pad-doubts .{key} .track"), about["marks"][key]
        shown = track.evaluate(
            "track => ['--bits', '--mark'].map(name => parseFloat(track.style.getPropertyValue(name)))"
        )
        np.testing.assert_allclose(shown, 100 * np.array([value, mark]) / np.log2(10), atol=1e-4)
        assert (track.get_attribute("class") == "track above") == (value > mark)
    refuses = score.split_uncertainty(p[:, None])["ignorance"][0] > about["limit"]
    assert pad.locator(".pad-said.refuses").count() == refuses


def read_canvas(page, selector):
    """The pixels of a canvas, (row, column, RGB), once they are painted."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    data = page.locator(selector).evaluate("canvas => canvas.toDataURL()").split(",")[1]
    return np.asarray(Image.open(BytesIO(b64decode(data))).convert("RGB")).astype(float)


def pick(pixels, x, y):
    """The colour at shares of a canvas' width and height."""
    return pixels[int(y * len(pixels)), int(x * len(pixels))].tolist()


def test_the_paper_shows_an_example_as_the_networks_see_it(pad):
    pad.locator(".pad-examples button").first.press("Enter")
    wanted = 255 * (1 - np.reshape(read_about("digits")["examples"][0]["image"], (8, 8)))
    paper, centres = read_canvas(pad, ".pad-paper"), (np.arange(8) + 0.5) / 8
    shown = [[pick(paper, x, y)[0] for x in centres] for y in centres]
    np.testing.assert_allclose(shown, wanted, atol=2)
    np.testing.assert_allclose(read_canvas(pad, ".pad-seen canvas")[..., 0], wanted, atol=2)
    button = read_canvas(pad, ".pad-examples button:first-of-type canvas")
    np.testing.assert_allclose(button[..., 0], wanted, atol=2)


def test_the_paper_shows_lines_as_wide_as_the_pen_and_where_it_is(pad):
    draw_by_mouse(pad, DRAWN["a long line"])
    paper = read_canvas(pad, ".pad-paper")
    for x, y in ((0.1, 0.5), (0.5, 0.48), (0.5, 0.51), (0.5, 0.54), (0.9, 0.52)):
        assert max(pick(paper, x, y)) < 40
    for x, y in ((0.03, 0.5), (0.5, 0.45), (0.5, 0.57), (0.97, 0.52), (0.51, 0.1)):
        assert min(pick(paper, x, y)) == 255
    draw_by_keyboard(pad, "Delete ArrowUp ArrowDown")
    # the tests before have moved the keyboard's pen
    row, column = map(int, re.findall(r"\d+", pad.evaluate(SAID)))
    x, y = (0.04 + 0.92 * (place - 1) / 12 for place in (column, row))
    paper = read_canvas(pad, ".pad-paper")
    assert pick(paper, x, y) == [255] * 3
    assert max(pick(paper, x + 0.04, y)) < 240
    draw_by_keyboard(pad, "Space")
    assert pick(read_canvas(pad, ".pad-paper"), x, y) == [194, 65, 12]
    draw_by_keyboard(pad, "Space")


def test_a_stroke_takes_the_place_of_an_example(pad):
    pad.locator(".pad-examples button").first.click()
    draw_by_mouse(pad, DRAWN["a seven with a bar"])
    expect_answer(pad, DRAWN["a seven with a bar"])


def test_chromium_says_of_test_digits_what_python_says(pad_tab):
    """Of each fifth: Node, whose engine is Chromium's, is asked about all of them above."""
    page, _ = pad_tab
    X, p = load_images()[0].X_test[::5], predict_known("test digits")[:, ::5]
    said = np.array(page.evaluate(IN_CHROMIUM, [X.tolist(), read_about("digits")["limit"]]))
    np.testing.assert_allclose(said[:, :10], p.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(said[:, 10], score.split_uncertainty(p)["ignorance"], atol=1e-9)


# --- the maps, by mouse, finger and keyboard

MAPS = [figure["figure"] for figure in read_about("flat_advi")["figures"]]


@pytest.fixture(scope="module")
def maps_tab(window, address):
    """The page of the maps, and its log."""
    with open_tab(window, f"{address}book/flat_advi.html") as (page, log):
        page.wait_for_selector(".hover-said")
        yield page, log
        expect_none(log.complaints)


def look_at(page, label):
    """A figure in view, whose networks have come; its panels as they are stored."""
    figure = page.locator(f"#{label}")
    figure.scroll_into_view_if_needed()
    return figure, next(f["panels"] for f in read_about("flat_advi")["figures"] if f["figure"] == label)


def find_pixel(figure, panels, k, point):
    """Where in the window a point of the k-th panel is."""
    box, panel = figure.locator(".hover-pane").nth(k).bounding_box(), panels[k]
    across = (point[0] - panel["x"][0]) / np.ptp(panel["x"])
    down = (panel["y"][1] - point[1]) / np.ptp(panel["y"])
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def expect_words(figure, panels):
    """Below the figure stands what Python says of the point that is named there, method by method."""
    figure.locator(".hover-words b").first.wait_for()
    where = figure.locator(".hover-where").inner_text().replace("−", "-")
    point = np.array([[float(number) for number in re.findall(r"-?\d\.\d\d", where)]])
    methods = list(dict.fromkeys(panel["method"] for panel in panels))
    for method, words in zip(methods, figure.locator(".hover-words").all_inner_texts(), strict=True):
        p = ask_plane(method, point)
        parts = score.split_uncertainty(p)
        shown = [float(number) for number in re.findall(r"\d\.\d\d", words)]
        np.testing.assert_allclose(shown, [p.mean(), parts["noise"][0], parts["ignorance"][0]], atol=0.03)
    return point[0]


@pytest.mark.parametrize("by", ["mouse", "touchscreen"])
@pytest.mark.parametrize("label", MAPS)
def test_a_map_says_what_the_networks_say_where_it_is_touched(maps_tab, label, by):
    page, _ = maps_tab
    figure, panels = look_at(page, label)
    last = len(panels) - 1
    x, y = find_pixel(figure, panels, last, (-1.0, 2.0))
    if by == "mouse":
        page.mouse.move(x, y)
    else:
        page.touchscreen.tap(x, y)
    found = expect_words(figure, panels)
    np.testing.assert_allclose(found, (-1.0, 2.0), atol=0.05)
    at = figure.locator(".hover-pane").evaluate_all(
        "es => es.map(e => [e.style.getPropertyValue('--x'), e.style.getPropertyValue('--y')])"
    )
    assert len({tuple(place) for place in at}) == 1  # the cross is at one place of all panels
    assert len(at) == len(panels)
    box = panels[last]
    wanted = 100 * np.array([(-1.0 - box["x"][0]) / np.ptp(box["x"]), (box["y"][1] - 2.0) / np.ptp(box["y"])])
    np.testing.assert_allclose([float(place.rstrip("%")) for place in at[0]], wanted, atol=1)
    assert figure.locator(".hover-layer.on").count() == 1


@pytest.mark.parametrize("label", MAPS)
def test_the_arrow_keys_move_the_cross_and_letters_lead_to_the_three_places(maps_tab, label):
    page, _ = maps_tab
    figure, panels = look_at(page, label)
    figure.locator(".hover-pane").first.focus()
    page.keyboard.press("b")
    np.testing.assert_allclose(expect_words(figure, panels), read_about("flat_advi")["crosses"]["B"], atol=0.01)
    assert "the cross B" in figure.locator("[role=status]").inner_text()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowUp")
    np.testing.assert_allclose(expect_words(figure, panels), (0.8, -0.7), atol=0.01)
    assert "P(attack)" in figure.locator("[role=status]").inner_text()
    for _ in range(20):
        page.keyboard.press("Shift+ArrowDown")
    assert expect_words(figure, panels)[1] == panels[0]["y"][0]  # it stays on the map


@pytest.mark.parametrize("label", ["fig-flat-advi-missed", "fig-flat-advi-prior"])
def test_a_strip_shows_how_many_networks_say_what(maps_tab, label):
    page, _ = maps_tab
    figure, panels = look_at(page, label)
    figure.locator(".hover-pane").first.focus()
    page.keyboard.press("b")
    expect_words(figure, panels)
    rows = figure.locator(".hover-row")
    for k, method in enumerate(dict.fromkeys(panel["method"] for panel in panels)):
        p = ask_plane(method, np.array([read_about("flat_advi")["crosses"]["B"]]))[:, 0]
        bars, mean = (rows.nth(k).locator(f".{name}").get_attribute("d") for name in ("bars", "mean"))
        places, heights = np.array(re.findall(r"M([\d.]+) 20v-([\d.]+)h", bars), float).T
        if len(p) > 20:
            counts = np.histogram(p, 40, (0, 1))[0]
            np.testing.assert_allclose(places, 2.5 * np.flatnonzero(counts))
            np.testing.assert_allclose(heights, 2 + 18 * counts[counts > 0] / counts.max())
        else:
            np.testing.assert_allclose(places, 99 * p, atol=0.006)
        np.testing.assert_allclose(float(re.fullmatch(r"M([\d.]+) 0v20", mean)[1]), 100 * p.mean())
        assert rows.nth(k).locator(".hover-method").inner_text() == (method if len(p) > 20 else "the 6 maps")


def test_the_networks_of_the_maps_are_fetched_once_and_when_a_map_is_near(window, address):
    with open_tab(window, f"{address}book/flat_advi.html") as (page, log):
        page.wait_for_selector(".hover-said")
        assert not [url for url in log.requests if url.endswith(".bin")]
        for label in MAPS:
            look_at(page, label)
        page.locator(f"#{MAPS[-1]} .hover-pane").first.focus()
        page.locator(f"#{MAPS[-1]} .hover-words b").first.wait_for(state="attached")
        assert len([url for url in log.requests if url.endswith("flat_advi.bin")]) == 1
        expect_none([url for url in log.requests if not url.startswith((address, "data:", "blob:"))])


# --- both, in Firefox


@pytest.fixture(scope="module")
def pad_in_firefox(firefox, address):
    """The pad, whose networks have come."""
    firefox.open(f"{address}book/digits.html")
    firefox.wait("document.querySelector('.pad-paper')")
    firefox.evaluate(SHOW, ".pad")
    firefox.wait(f"({READY})()")
    return firefox


def expect_answer_in_firefox(firefox, strokes):
    """The pad says aloud and in large what Python says."""
    p = predict(paint(strokes))
    ignorance, said = score.split_uncertainty(p)["ignorance"][0], firefox.evaluate(TEXT, ".pad [role=status]")
    assert float(re.search(r"ignorance ([\d.]+) bits", said)[1]) == pytest.approx(ignorance, abs=0.05)
    refuses = ignorance > read_about("digits")["limit"]
    assert said.startswith("I don’t know, because" if refuses else f"{p.mean(axis=0)[0].argmax()}, ")
    assert said.startswith(firefox.evaluate(TEXT, ".pad-answer"))


@pytest.mark.parametrize("kind", ["mouse", "touch"])
@pytest.mark.parametrize("name", ["a seven with a bar", "a scribble"])
def test_firefox_answers_what_is_drawn(pad_in_firefox, name, kind):
    firefox = pad_in_firefox
    firefox.evaluate("document.querySelector('.pad-clear').click()")
    ((left, top, wide, high),) = firefox.evaluate(PLACES, ".pad-paper")
    for stroke in DRAWN[name]:
        firefox.stroke([(left + x * wide, top + y * high) for x, y in stroke], kind)
    expect_answer_in_firefox(firefox, DRAWN[name])


def test_firefox_draws_by_keyboard(pad_in_firefox):
    firefox = pad_in_firefox
    firefox.evaluate("(document.querySelector('.pad-clear').click(), document.querySelector('.pad-paper').focus())")
    firefox.press("ArrowUp " * 4 + "Space" + " ArrowDown" * 8 + " Space")
    expect_answer_in_firefox(firefox, [[(0.5, 0.2), (0.5, 0.8)]])
    firefox.press("Delete")
    assert firefox.evaluate(TEXT, ".pad [role=status]") == "The pad is empty."


@pytest.mark.parametrize("by", ["mouse", "touch", "keyboard"])
def test_firefox_says_what_the_networks_say_of_a_point(firefox, address, by):
    figure = read_about("flat_advi")["figures"][-1]
    label, panels = f"#{figure['figure']}", figure["panels"]
    firefox.open(f"{address}book/flat_advi.html")
    firefox.wait(f"document.querySelector('{label} .hover-pane')?.clientWidth")  # it has its place on the picture
    firefox.evaluate(SHOW, label)
    if by == "keyboard":
        firefox.evaluate(f"document.querySelector('{label} .hover-pane').focus()")
        firefox.press("a ArrowLeft Shift+ArrowUp")
    else:
        left, top, wide, high = firefox.evaluate(PLACES, f"{label} .hover-pane")[1]
        firefox.stroke(
            [(left + 0.4 * wide, top + 0.4 * high), (left + 0.45 * wide, top + 0.3 * high)], by, by == "touch"
        )
    firefox.wait(f"document.querySelector('{label} .hover-words b')")
    said = firefox.evaluate(TEXT, f"{label} .hover-said").replace("−", "-")
    point = np.array([[float(number) for number in re.findall(r"-?\d\.\d\d", said)[:2]]])
    panel, wanted = panels[0], (-0.6, 1.2)
    if by != "keyboard":
        wanted = [panel["x"][0] + 0.45 * np.ptp(panel["x"]), panel["y"][1] - 0.3 * np.ptp(panel["y"])]
    np.testing.assert_allclose(point[0], wanted, atol=0.05)
    for method in ("ADVI", "NUTS"):
        p = ask_plane(method, point)
        parts = score.split_uncertainty(p)
        shown = re.search(rf"{method}.*?P\(attack\) ([\d.]+) *noise ([\d.]+) *ignorance ([\d.]+)", said).groups()
        wanted = [p.mean(), parts["noise"][0], parts["ignorance"][0]]
        np.testing.assert_allclose(np.array(shown, float), wanted, atol=0.03)


# --- for everybody


def find_colour_violations(page, part):
    """What axe-core says of the colours in a part of a page, all of its text included."""
    return _run_axe(page, f"document.querySelector({part!r})", {"runOnly": COLOUR_RULES})


def find_violations(page, part):
    """What axe-core says of a part of a page; tests/test_site.py asks of the rest."""
    return _run_axe(page, f"document.querySelector({part!r})", FORM) + find_colour_violations(page, part)


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (390, "light"),
        (1280, "dark"),
        pytest.param(390, "dark", marks=pytest.mark.slow),
        pytest.param(1280, "light", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_and_a_phone_has_room(chromium, address, width, theme):
    with open_context(chromium, width=width, theme=theme) as context:
        with open_tab(context, f"{address}book/digits.html") as (page, log):
            page.locator(".pad").scroll_into_view_if_needed()
            page.wait_for_function(READY)
            page.locator(".pad-examples button").first.press("Enter")  # it answers
            expect_none(find_violations(page, ".pad"))
            page.locator(".pad-examples button").nth(2).press("Enter")  # it refuses, in other colours
            expect_none(find_colour_violations(page, ".pad"))
            assert page.evaluate(WIDTH) <= width
            assert page.evaluate("document.getAnimations().length") == 0
            expect_none(log.complaints)
        with open_tab(context, f"{address}book/flat_advi.html") as (page, log):
            page.locator(f"#{MAPS[-1]} .hover-pane").first.focus()
            page.keyboard.press("a")
            page.locator(f"#{MAPS[-1]} .hover-words b").first.wait_for()
            expect_none(find_violations(page, f"#{MAPS[-1]}"))
            assert page.evaluate(WIDTH) <= width
            expect_none(log.complaints)


def test_without_javascript_the_pictures_stand_alone(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    for name, figure in (("digits", "fig-digits-drawn"), ("flat_advi", "fig-flat-advi-missed")):
        page.goto(f"{address}book/{name}.html")
        assert page.locator(f"#{figure} img").is_visible()
        assert page.locator(".pad, .hover-said").count() == 0
    context.close()


@pytest.mark.parametrize(("tab", "part"), [("pad_tab", ".pad"), ("maps_tab", ".hover-said")])
def test_in_print_the_pictures_stand_alone(request, tab, part):
    page, _ = request.getfixturevalue(tab)
    assert page.locator(f"{part}:visible").count()
    page.emulate_media(media="print")
    assert page.locator(f"{part}:visible").count() == 0
    page.emulate_media(media="screen")


def test_the_page_says_that_nothing_is_sent(pad_tab):
    page, _ = pad_tab
    assert "What you draw stays in this browser; nothing is sent." in page.locator(".pad").inner_text()
