"""Pages that ask a stored posterior: the pad of `digits` and the maps of `flat_advi`, before there is a page.

What JavaScript computes, in the Node of Playwright, is compared with Python from the same numbers; what was lost when
they were stored, with the errors that the chapter prints. `test_live_pages.py` looks at what is shown of it.
"""

import re
from functools import cache
from io import BytesIO

import nbformat
import numpy as np
from bookkit import digits
from bookkit.repo import BOOK
from hbnn import metrics
from PIL import Image
from scipy.special import expit, softmax
from studies._node import LIVE, run_in_node
from tools import packing, pictures

ABOUT = {name: pictures.read_json(name) for name in ("digits", "flat_advi")}


def read_whole(name, first, count, step):
    """Numbers of 16 bits."""
    return np.frombuffer((LIVE / f"{name}.bin").read_bytes(), "<i2", count, 2 * first) * step


@cache
def read_digits():
    """The networks of the pad: dict of (draw, …) arrays."""
    about = ABOUT["digits"]
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


def ask_plane(method, points):
    """P(class 1) at points of the plane, (draw, obs)."""
    about = ABOUT["flat_advi"]
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


@cache
def predict_known(name):
    """Class probabilities of the images of this name, which several tests ask for."""
    return predict(load_images()[1][name])


def read_output(name):
    """What the cells of a chapter print: str."""
    cells = nbformat.read(BOOK / f"{name}.ipynb", as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "\n".join(o.get("text", "") + o.get("data", {}).get("text/plain", "") for o in outputs)


def find_printed(name, start):
    """The numbers with an error on the line of a chapter's output that starts so: list of (value, error)."""
    (line,) = re.findall(rf"^{re.escape(start)}(?::|  ).*±.*$", read_output(name), flags=re.MULTILINE)
    return [tuple(map(float, pair)) for pair in re.findall(r"(-?[\d.]+) ± ([\d.]+)", line)]


def find_row(name, start):
    """The numbers in the row of a chapter's table that starts so: list of float."""
    (line,) = re.findall(rf"^{re.escape(start)}  (.*)$", read_output(name), flags=re.MULTILINE)
    return [float(value) for value in line.split()]


# --- what is stored is the chapter's (its cells' and files' digests: tests/tools/test_pictures.py)


def test_no_figure_that_the_chapter_prints_moves_by_more_than_its_error():
    """Two hundred draws, each weight at one of five levels, stand for those that the chapter has."""
    data, limit, p = load_images()[0], ABOUT["digits"]["limit"], predict_known("test digits")
    right = 100 * np.mean(p.mean(axis=0).argmax(axis=1) == data.y_test)
    found = {"digits read right": right, "sure of its answers, on average": 100 * p.mean(axis=0).max(axis=1).mean()}
    rows = {"digits in white on black": "inverted", "digits on their side": "rotated", "random pixels": "noise"}
    for row in ("test digits", "letters", *rows):  # as the chapter calls them
        found[row] = 100 * np.mean(metrics.split_uncertainty(predict_known(rows.get(row, row)))["ignorance"] > limit)
    printed = {name: find_printed("digits", name)[0] for name in found}
    off = {name: abs(found[name] - value) / error for name, (value, error) in printed.items()}
    assert max(off.values()) < 1, off


def test_at_the_crosses_the_maps_say_what_the_chapter_prints_and_they_are_where_the_pictures_have_them():
    """The picture is that of the notebook, the axes' left and lower spine are dark, and so are the crosses."""
    for name, point in ABOUT["flat_advi"]["crosses"].items():
        p = ask_plane("ADVI", np.array([point]))
        parts = metrics.split_uncertainty(p)
        found = [p.mean(), parts["noise"][0], parts["ignorance"][0]]
        np.testing.assert_allclose(found, find_row("flat_advi", name)[1:], atol=0.006)  # printed to two decimals
    for figure in ABOUT["flat_advi"]["figures"]:
        picture = pictures.read_figure("flat_advi", figure["figure"])
        grey = np.asarray(Image.open(BytesIO(picture)).convert("L"))
        high, wide = grey.shape
        for panel in figure["panels"]:
            left, top, width, height = panel["box"] * np.array([wide, high, wide, high])
            column, row = round(left), round(top + height)
            assert grey[round(top) + 9 : row - 9, column - 2 : column + 3].min(axis=1).max() < 120
            assert grey[row - 2 : row + 3, column + 9 : round(left + width) - 9].min(axis=0).max() < 120
            if figure["figure"] not in ("fig-flat-advi-uncertainty", "fig-flat-advi-missed"):
                continue
            for x, y in ABOUT["flat_advi"]["crosses"].values():
                across = (x - panel["x"][0]) / np.ptp(panel["x"]), (panel["y"][1] - y) / np.ptp(panel["y"])
                column, row = round(left + across[0] * width), round(top + across[1] * height)
                assert grey[row - 2 : row + 3, column - 2 : column + 3].max() < 120


def test_a_weight_keeps_its_mean_and_its_sd_when_it_is_rounded():
    weights = np.random.default_rng(1).normal(size=(200, 50)) * np.linspace(0.1, 2, 50) + np.linspace(-3, 3, 50)
    levels, mean, sd, code = packing.round_draws(weights)
    again = mean + sd * levels[code]
    np.testing.assert_allclose(again.mean(axis=0), weights.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(again.std(axis=0), weights.std(axis=0))


def test_thirteen_codes_go_into_a_word_the_first_as_the_digit_that_counts_least():
    codes = np.array([[1, 2, 3, 4, *[0] * 9], [4] * 13])
    words = [1 + 2 * 5 + 3 * 25 + 4 * 125, 5**13 - 1]
    assert np.frombuffer(packing.pack_codes(codes), "<u4").tolist() == words
    assert len(packing.pack_codes(codes.ravel()[:-1])) == 8


# --- what JavaScript computes is what Python computes

LOAD = """
  const { readFileSync } = await import("node:fs"), read = (file) => readFileSync(new URL(data.base + file));
  const load = (name) => new Uint8Array(read(`${name}.bin`)).buffer;
  const about = (name) => JSON.parse(read(`${name}.json`)), use = (name) => import(`${data.base}${name}.js`);
"""


def run(code, **data):
    """What a piece of code returns that may `use` modules, and `load` what is stored `about` a chapter."""
    return run_in_node(LOAD + code, base=f"{LIVE.as_uri()}/", **data)


def test_every_test_digit_and_every_letter_gets_the_answer_that_python_gives():
    images = np.vstack([load_images()[1][name] for name in ("test digits", "letters")])
    code = """const { ask, unpackNetworks } = await use("digits");
      const networks = unpackNetworks(about("digits"), load("digits"));
      const plain = ({ p, ...rest }) => rest;
      return data.images.map((image) => plain(ask(networks, image, about("digits").limit)))"""
    answers = run(code, images=images.tolist())
    p = np.concatenate([predict_known(name) for name in ("test digits", "letters")], axis=1)
    np.testing.assert_allclose([answer["mean"] for answer in answers], p.mean(axis=0), atol=1e-9)
    parts = metrics.split_uncertainty(p)
    for name, values in parts.items():
        np.testing.assert_allclose([answer[name] for answer in answers], values, atol=1e-9)
    assert [answer["best"] for answer in answers] == p.mean(axis=0).argmax(axis=1).tolist()
    assert [answer["knows"] for answer in answers] == (parts["ignorance"] <= ABOUT["digits"]["limit"]).tolist()


def test_every_method_says_of_a_point_what_python_says():
    points = [(-0.5, 0.7), (0.9, -1.2), (-2.5, -2.5), (0.0, 0.0), (4.0, -4.0)]
    code = """const plane = await use("plane"), methods = plane.unpackMethods(about("flat_advi"), load("flat_advi"));
      return Object.fromEntries(Object.keys(methods).map((name) => [name, data.points.map((point) => {
        const { mean, noise, ignorance } = plane.askNetworks(methods[name], ...point);
        return [mean, noise, ignorance]; })]))"""
    for name, rows in run(code, points=points).items():
        p = ask_plane(name, np.array(points))
        parts = metrics.split_uncertainty(p)
        wanted = np.column_stack([p.mean(axis=0), parts["noise"], parts["ignorance"]])
        np.testing.assert_allclose(rows, wanted, atol=1e-9)


DRAWN = [  # a seven with a bar, a dot, a long line, a scribble
    [[(0.2, 0.2), (0.8, 0.2), (0.4, 0.9)], [(0.35, 0.5), (0.7, 0.5)]],
    [[(0.4, 0.4)]],
    [[(0.1, 0.5), (0.9, 0.52)]],
    [[(x / 40, 0.5 + 0.4 * np.sin(x / 3) * np.cos(x)) for x in range(40)]],
]


def test_a_drawing_becomes_the_image_that_the_pad_in_a_notebook_makes_of_it():
    """Matplotlib moves lines to whole pixels of its canvas and smooths edges in another way: some hundredths of ink."""
    drawn = [*DRAWN, *(e["strokes"] for e in ABOUT["digits"]["examples"] if "strokes" in e)]
    code = "const ink = await use('ink'); return data.drawn.map((strokes) => Array.from(ink.drawStrokes(strokes, 8)))"
    for strokes, image in zip(drawn, run(code, drawn=drawn), strict=True):
        off = np.abs(np.array(image) - digits.draw_strokes(strokes)[0])
        assert off.max() < 0.06, off.max()
        assert off.mean() < 0.02


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


def test_what_is_on_the_pad_after_each_move():
    code = """const pad = new (await use("ink")).Drawing();
      return data.moves.map(([name, given]) => {
        pad[name](given);
        const { strokes, image, down, cursor } = pad;
        return structuredClone({ strokes, image, down, cursor }); })"""
    pads = run(code, moves=MOVES)
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


def test_an_answer_in_words_has_as_many_digits_as_tell_it_from_the_limit():
    code = """const { describe } = await use("digits");
      return data.doubts.map((ignorance) => describe(
        { mean: [0.1, 0.9], best: 1, knows: ignorance <= 1.3573, ignorance }, 1.3573))"""
    few, near, above, far = run(code, doubts=[0.4, 1.3, 1.3612, 2.0])
    assert few["short"] == near["short"] == "1, 90\xa0%"
    assert "ignorance 0.40 bits, below its limit of 1.36" in few["why"]
    assert "ignorance 1.30 bits, below its limit of 1.36" in near["why"]
    assert above["short"] == far["short"] == "I don’t know"
    assert "ignorance 1.3612 bits, above its limit of 1.3573. Best guess: 1, 90\xa0%" in above["why"]
    assert "ignorance 2.00 bits, above its limit of 1.36" in far["why"]
