"""Digits and what is none: the split, images made small (against Pillow and integrals), MNIST without a network."""

import string
from functools import lru_cache
from http.client import IncompleteRead
from io import BytesIO
from json import JSONDecodeError
from pathlib import Path
from urllib.error import URLError

import matplotlib
import numpy as np
import pymc as pm
import pytest
from bnn import digits, inference, models, predict, score
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image, ImageDraw, ImageFont
from scipy.stats import kstest
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

DERANDOMIZED = settings(deadline=None, max_examples=25, derandomize=True)
SMALL, LARGE = (8, 8), (28, 28)
PARTS = ("train", "validation", "test")
PIXEL = 1 / 31  # of a block: 8 blocks a side are made of 0.9 * 280 pixels of the canvas
FEW_FONTS = ("DejaVuSans", "STIXGeneral", "cmtt10")


@pytest.fixture(scope="module")
def sklearns():
    return digits.load(seed=0)


def list_parts(data):
    """[(images, labels)] of the three parts."""
    return [(getattr(data, f"X_{part}"), getattr(data, f"y_{part}")) for part in PARTS]


def same(a, b):
    return all(np.array_equal(x, z) for one, other in zip(list_parts(a), list_parts(b), strict=True)
               for x, z in zip(one, other, strict=True))  # fmt: skip


def sort_rows(X, y):
    rows = np.column_stack([X, y])
    return rows[np.lexsort(rows.T)]


def render(characters, fonts=FEW_FONTS, shape=SMALL):
    """Images (image, row, column)."""
    return digits.render(characters, shape=shape, fonts=fonts)[0].reshape(-1, *shape)


# --- the split


def test_the_parts_together_are_scikit_learns_digits_each_image_once(sklearns):
    images, labels = load_digits(return_X_y=True)
    X, y = (np.concatenate(arrays) for arrays in zip(*list_parts(sklearns), strict=True))
    np.testing.assert_array_equal(sort_rows(X, y), sort_rows(images / 16, labels))


def test_sizes_shapes_and_types_are_as_documented(sklearns):
    assert sklearns.shape == SMALL
    for (X, y), n in zip(list_parts(sklearns), (1000, 397, 400), strict=True):
        assert (X.shape, y.shape, X.dtype, y.dtype) == ((n, 64), (n,), np.float64, np.int32)


def test_values_run_from_paper_to_ink(sklearns):
    X = np.concatenate([X for X, _ in list_parts(sklearns)])
    assert (X.min(), X.max()) == (0, 1)


def test_each_part_holds_each_digit_in_proportion(sklearns):
    counts = np.array([np.bincount(y, minlength=10) for _, y in list_parts(sklearns)])
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    assert abs(counts - expected).max() < 2  # rounded twice: first the test part is taken out, then the rest is split


def test_one_seed_gives_the_same_bits_and_another_seed_another_split(sklearns):
    assert same(sklearns, digits.load(seed=0))
    other = digits.load(seed=1)
    assert not any(np.array_equal(getattr(sklearns, f"y_{part}"), getattr(other, f"y_{part}")) for part in PARTS)


def test_other_sizes_are_as_asked_and_parts_stay_apart():
    data = digits.load(seed=0, sizes=(30, 20, 10))
    assert [len(y) for _, y in list_parts(data)] == [30, 20, 10]
    X = np.concatenate([X for X, _ in list_parts(data)])
    assert len(np.unique(X, axis=0)) == 60  # no image twice


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": None}, r"seed=None; wanted: an integer of at least 0"),
        ({"seed": 0, "source": "usps"}, r"source='usps'; wanted: one of 'sklearn', 'mnist'"),
        ({"seed": 0, "sizes": (100, 9, 100)}, r"sizes=\(100, 9, 100\); wanted: at least 10 images in each part"),
        ({"seed": 0, "sizes": (1000, 398, 400)}, r"sizes=\(1000, 398, 400\) add up to more than the 1797 images"),
    ],
)
def test_a_split_that_cannot_be_made_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        digits.load(**options)


# --- images and labels that are checked


@pytest.mark.parametrize("convert", [np.asarray, np.ndarray.tolist, lambda X: X.reshape(5, 8, 8), np.float32])
def test_images_may_be_flat_or_square_and_of_any_type(convert):
    X = np.random.default_rng(0).integers(0, 17, size=(5, 64)) / 16
    checked = digits.check_images(convert(X), 64)
    np.testing.assert_array_equal(checked, X)
    assert checked.dtype == np.float64


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.empty((0, 64)), r"X is an empty batch, shape \(0, 64\); wanted: at least one image"),
        (np.empty((0, 8, 8)), r"X is an empty batch, .*; wanted: at least one image"),
        (np.empty((0, 8, 0)), r"X is an empty batch, .*; wanted: at least one image"),
        (np.zeros(64), r"X has shape \(64,\); wanted: \(obs, pixel\); a single image is X\[None\]"),
        (np.zeros((1, 8, 8, 1)), r"X has shape \(1, 8, 8, 1\); wanted: \(obs, pixel\)"),
        (np.zeros((2, 784)), r"X has images of 784 pixels; wanted: 64, 8 x 8; `digits.fit_image` makes an image small"),
        (np.full((2, 64), np.nan), r"X holds 128 values that are NaN; wanted: numbers from 0 to 1"),
        (np.full((2, 64), 16.0), r"X runs from 16 to 16; wanted: 0 \(paper\) to 1 \(ink\), so divide grey levels by"),
        (np.full((2, 64), -0.5), r"X runs from -0.5 to -0.5; wanted"),
        (np.full((2, 64), np.inf), r"X runs from inf to inf; wanted"),
        ([[0.0] * 64, [0.0] * 63], r"X is no array of images: .*; wanted: numbers, \(obs, pixel\)"),
        (np.ma.array(np.zeros((1, 64)), mask=True), r"X has 64 masked values; wanted: none, so drop or fill them"),
        ([["ink"] * 64], r"X is no array of images: could not convert .*; wanted: numbers"),
    ],
)
def test_wrong_images_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        digits.check_images(X, 64)


def test_images_that_are_not_square_have_no_side_in_the_message():
    with pytest.raises(ValueError, match=r"X_new has images of 3 pixels; wanted: 6; "):
        digits.check_images(np.zeros((1, 3)), 6, name="X_new")


@pytest.mark.parametrize("labels", [[0, 9], [0.0, 9.0], np.array([0, 9], dtype="uint8")])
def test_labels_of_any_number_type_become_int32(labels):
    y = digits.check_classes(labels, 2)
    assert (y.dtype, y.tolist()) == (np.int32, [0, 9])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 2, 3], r"y has shape \(3,\); wanted: one label for each of 2 images"),
        ([[1], [2]], r"y has shape \(2, 1\); wanted: one label for each of 2 images"),
        ([0, 10], r"y holds the labels \[10\]; wanted: the numbers 0 to 9"),
        ([-1, 1], r"y holds the labels \[-1\]; wanted"),
        ([0, 2.5], r"y holds the labels \[2.5\]; wanted"),
        ([0, np.nan], r"y holds the labels \[nan\]; wanted"),
        (["1", "2"], r"y holds the labels \['1', '2'\]; wanted"),
        ([True, False], r"y holds the labels bool; wanted"),
        (np.ma.array([1, 2], mask=[0, 1]), r"y has 1 masked values; wanted: none"),
    ],
)
def test_wrong_labels_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        digits.check_classes(y, 2)


def test_labels_are_checked_against_the_classes_that_there_are():
    assert digits.check_classes([0, 2], 2, n_classes=3).tolist() == [0, 2]
    with pytest.raises(ValueError, match=r"labels holds the labels \[3\]; wanted: the numbers 0 to 2"):
        digits.check_classes([0, 3], 2, n_classes=3, name="labels")


# --- images made small


def average(square, n):
    """Mean over n x n blocks of a square image, from the integral of its rows and columns."""
    edges = np.linspace(0, len(square), n + 1)
    for _ in range(2):  # along the rows, then, turned over, along the columns
        integral = np.vstack([np.zeros(square.shape[1]), np.cumsum(square, axis=0)])
        at = np.array([np.interp(edges, np.arange(len(integral)), column) for column in integral.T])
        square = np.diff(at, axis=1) / (edges[1] - edges[0])
    return square


def cut_square(ink):
    """The ink's box in the middle of a square of paper."""
    rows, columns = np.flatnonzero((ink > 0.5).any(axis=1)), np.flatnonzero((ink > 0.5).any(axis=0))
    box = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    more = [max(box.shape) - n for n in box.shape]
    return np.pad(box, [(n // 2, n - n // 2) for n in more])


def find_center(image):
    """Centre of mass: (row, column)."""
    index = np.arange(len(image))
    return np.array([image.sum(axis=1) @ index, image.sum(axis=0) @ index]) / image.sum()


INK = arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=40), elements=st.sampled_from([0.0, 0.25, 1.0]))
INK = INK.filter(lambda ink: (ink == 1).any())


@DERANDOMIZED
@given(INK)
def test_a_small_image_is_the_average_over_blocks_of_the_inks_square(ink):
    square = cut_square(ink)
    np.testing.assert_allclose(digits.fit_image(ink, SMALL), average(square, 8), atol=1e-12)
    large = digits.fit_image(ink, LARGE)
    box = average(square, 20)
    top, left = (np.argmax((large > 0).any(axis=axis)) - np.argmax((box > 1e-9).any(axis=axis)) for axis in (1, 0))
    np.testing.assert_allclose(large[top : top + 20, left : left + 20], box, atol=1e-12)
    assert large.sum() == pytest.approx(box.sum())  # and paper around it


@DERANDOMIZED
@given(INK)
def test_ink_stays_in_proportion(ink):
    share = cut_square(ink).mean()
    assert digits.fit_image(ink, SMALL).mean() == pytest.approx(share, rel=1e-9)
    assert digits.fit_image(ink, LARGE).sum() / 20**2 == pytest.approx(share, rel=1e-9)


@DERANDOMIZED
@given(INK, st.tuples(*[st.integers(0, 9)] * 4), st.sampled_from([SMALL, LARGE]))
def test_blank_paper_around_a_drawing_changes_nothing(ink, paper, shape):
    wide = np.pad(ink, [paper[:2], paper[2:]])
    np.testing.assert_array_equal(digits.fit_image(wide, shape), digits.fit_image(ink, shape))


@DERANDOMIZED
@given(INK)
def test_a_drawing_that_is_turned_over_gives_an_image_that_is_turned_over(ink):
    np.testing.assert_allclose(digits.fit_image(ink.T, SMALL), digits.fit_image(ink, SMALL).T, atol=1e-12)


@DERANDOMIZED
@given(INK, st.sampled_from([SMALL, LARGE]))
def test_a_small_image_is_an_image(ink, shape):
    image = digits.fit_image(ink, shape)
    assert digits.check_images(image[None], np.prod(shape)).shape == (1, np.prod(shape))


@pytest.mark.parametrize("shape", digits.SHAPES.values())
def test_a_photograph_is_made_small_in_little_memory(shape):
    import tracemalloc

    ink = np.zeros((600, 500))
    ink[40:560, 100:300] = 1
    tracemalloc.start()
    try:
        image = digits.fit_image(ink, shape)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert image.max() == pytest.approx(1)
    assert peak < 50e6  # the drawing takes 2.4 MB, a Binder pod has 2 GB


@pytest.mark.parametrize(
    ("ink", "shape", "message"),
    [
        (np.ones((20, 20)), (9, 9), r"shape=\(9, 9\); wanted: one of \(8, 8\), \(28, 28\)"),
        (np.zeros((20, 20)), SMALL, r"ink has shape \(20, 20\) and no ink in it; wanted: .* something drawn"),
        (np.empty((0, 20)), SMALL, r"ink has shape \(0, 20\) and no ink in it"),
        (np.ones(20), SMALL, r"ink has shape \(20,\) and no ink in it; wanted: \(rows, columns\)"),
        (np.full((20, 20), 0.4), SMALL, r"ink is nowhere above 0.4; wanted: 0 \(paper\) to 1 \(ink\)"),
    ],
)
def test_an_image_that_cannot_be_made_small_is_refused(ink, shape, message):
    with pytest.raises(ValueError, match=message):
        digits.fit_image(ink, shape)


# --- characters


@pytest.fixture(scope="module")
def printed():
    """All digits in all fonts, in both sizes: dict of shape to (image, row, column)."""
    with pytest.MonkeyPatch.context() as patch:  # each is painted once and made small twice
        patch.setattr(digits, "_paint_glyph", lru_cache(digits._paint_glyph))
        return {shape: render(digits.DIGITS, digits.FONTS, shape) for shape in digits.SHAPES.values()}


def paint(character, font):
    """The character in large, by Pillow."""
    file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{font}.ttf"
    page = Image.new("L", (700, 700))
    ImageDraw.Draw(page).text((200, 150), character, font=ImageFont.truetype(str(file), 300), fill=255)
    return np.asarray(page) / 255


@pytest.mark.parametrize("font", digits.FONTS)
def test_characters_are_those_of_pillow(font):
    for character, image in zip("AQg7", render("AQg7", [font]), strict=True):
        # edges are smoothed in two ways: a pixel of the canvas on either side
        np.testing.assert_allclose(image, average(cut_square(paint(character, font)), 8), atol=2 * PIXEL)


def test_each_image_has_its_character_and_its_font():
    X, character, font = digits.render("L7", fonts=FEW_FONTS)
    assert X.shape == (6, 64)
    assert list(character) == ["L"] * 3 + ["7"] * 3
    assert list(font) == [*FEW_FONTS, *FEW_FONTS]
    np.testing.assert_array_equal(X[4], render("7", FEW_FONTS[1:2])[0].ravel())


def test_letters_of_each_font_differ(printed):
    assert len(np.unique(printed[SMALL].reshape(100, -1), axis=0)) == 100


def test_one_character_gives_the_same_bits_twice(printed):
    np.testing.assert_array_equal(render("07", digits.FONTS), printed[SMALL][[*range(10), *range(70, 80)]])


def test_a_small_character_touches_both_edges_in_its_longer_direction(printed):
    for image in printed[SMALL]:
        ink = image > 0
        upright, across = ink.any(axis=1), ink.any(axis=0)
        assert (upright[0] and upright[-1]) or (across[0] and across[-1])


def test_a_large_character_is_20_pixels_long_with_paper_around(printed):
    for image in printed[LARGE]:
        inked = [np.flatnonzero((image > 0).any(axis=axis)) for axis in (0, 1)]
        assert max(1 + np.ptp(index) for index in inked) == 20


def test_the_centre_of_mass_of_a_large_character_is_in_the_middle(printed):
    for image in printed[LARGE]:
        # as near as whole pixels allow; the middle of 28 pixels lies between the 14th and the 15th
        assert abs(find_center(image) - 13.5).max() <= 0.5 + 1e-9


def test_characters_are_upright():
    for image in render("L"):
        assert image[5:, :3].max() > 0.9  # the corner of an L
        assert image[:3, 5:].max() == 0


def test_an_o_survives_half_a_turn_and_an_l_does_not():
    change = [[abs(image - np.rot90(image, 2)).mean() for image in render(character)] for character in "OL"]
    assert max(change[0]) < PIXEL  # an O is symmetrical but for a pixel of the canvas
    assert min(change[1]) > 0.2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: digits.render("A", fonts=["Comic"]), r"fonts=\['Comic'\] are not among .*; wanted: some of .*DejaVuS"),
        (lambda: digits.render(""), r"characters='', fonts=.*; wanted: at least one of each"),
        (lambda: digits.render("A", fonts=()), r"characters='A', fonts=\(\); wanted: at least one of each"),
        (lambda: digits.render(" ", fonts=FEW_FONTS), r"character ' ' leaves no ink in DejaVuSans; wanted: characters"),
        (lambda: digits.render("A\u200b", fonts=FEW_FONTS), r"character '.*200b' leaves no ink in DejaVuSans; wanted"),
        (lambda: digits.render("A", shape=(9, 9)), r"shape=\(9, 9\); wanted: one of \(8, 8\), \(28, 28\)"),
    ],
)
def test_a_character_that_cannot_be_rendered_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- strokes

ANGULAR_L = [np.array([[0.0, 0], [0, 10], [6, 10]])]  # down, then to the right
TWO_STROKES = [np.array([[1.0, 2], [4, 9], [7, 3]]), np.array([[2.0, 5], [6, 5]])]


def draw(strokes, shape=SMALL, **options):
    return digits.draw_strokes(strokes, shape=shape, **options).reshape(shape)


def test_strokes_are_drawn_with_y_running_down():
    image = draw(ANGULAR_L)
    assert min(image[0].max(), image[-1].max()) > 0.4
    assert image[-3:, 4:].max() > 0.4  # the foot
    assert image[:3, 4:].max() == 0


def test_a_stroke_like_a_one_is_a_vertical_bar_as_wide_as_the_pen():
    strokes = [[[3, 0], [3, 5], [3, 10]]]
    for shape, n in ((SMALL, 8), (LARGE, 20)):
        image = draw(strokes, shape, width=0.12)
        assert (image.sum(axis=1) > 0).sum() == n
        middle = image[len(image) // 2 - 2 : len(image) // 2 + 2]
        # the pen's round ends make the stroke longer by its width; edges lie within a pixel of the canvas each
        np.testing.assert_allclose(middle.sum(axis=1), n * 0.12 / 1.12, atol=n / 251)
        assert (image[:, : len(image) // 2 - 2].max(), image[:, len(image) // 2 + 2 :].max()) == (0, 0)


def test_a_dot_is_a_disc():
    for strokes in ([[[3.0, 4.0]]], [[[3.0, 4.0], [3.0, 4.0]]]):
        image = draw(strokes)
        assert image.mean() == pytest.approx(np.pi / 4, abs=2 / 27)  # 27 pixels wide, give or take one on either side
        np.testing.assert_allclose(image, image[::-1, ::-1], atol=0.15)
        assert image[3:5, 3:5].min() == 1


@DERANDOMIZED
@given(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), st.floats(1e-2, 1e2), st.sampled_from([SMALL, LARGE]))
def test_neither_place_nor_size_of_a_drawing_matters(shift, size, shape):
    moved = [size * stroke + shift for stroke in TWO_STROKES]
    # rounding may move an edge by a pixel of the canvas, which is 1 / 31 of a small and 1 / 12 of a large image's block
    np.testing.assert_allclose(draw(moved, shape), draw(TWO_STROKES, shape), atol=PIXEL if shape == SMALL else 1 / 12)


def test_neither_order_nor_direction_of_strokes_matters():
    backwards = [stroke[::-1] for stroke in reversed(TWO_STROKES)]
    np.testing.assert_allclose(draw(backwards), draw(TWO_STROKES), atol=PIXEL)


def test_a_broader_pen_leaves_more_ink():
    ink = [draw(TWO_STROKES, width=width).sum() for width in (0.05, 0.1, 0.2)]
    assert ink == sorted(ink)
    assert 2 * ink[0] < ink[-1]


@pytest.mark.parametrize("strokes", [[], [[]], [np.empty((0, 2))], [[[1, 2, 3]]], [[1, 2]], [TWO_STROKES[0], []]])
def test_strokes_with_nothing_to_draw_are_refused(strokes):
    with pytest.raises(ValueError, match=r"strokes holds nothing to draw; wanted: a list of \(point, 2\) arrays"):
        digits.draw_strokes(strokes)


# --- images from outside


@pytest.fixture(scope="module")
def outside(sklearns):
    with pytest.MonkeyPatch.context() as patch:  # of 24 letters and ten digits; characters take time to paint
        patch.setattr(digits, "LETTERS", "AQZ")
        patch.setattr(digits, "DIGITS", "07")
        return digits.make_outsiders(sklearns, seed=0)


def test_letters_are_those_that_no_digit_looks_like():
    assert set(string.ascii_uppercase) - set(digits.LETTERS) == {"I", "O"}


def test_there_are_five_sets_from_outside_all_of_them_images(sklearns, outside):
    sizes = {"letters": 30, "printed digits": 20, "noise": 200, "inverted": 400, "rotated": 400}
    assert {name: len(X) for name, (X, _) in outside.items()} == sizes
    for X, cluster in outside.values():
        assert digits.check_images(X, 64).shape == (len(cluster), 64)


def test_a_character_in_all_fonts_is_one_cluster_and_elsewhere_each_image_is_its_own(outside):
    for name, (X, cluster) in outside.items():
        n_fonts = 10 if name in ("letters", "printed digits") else 1
        np.testing.assert_array_equal(np.unique(cluster, return_counts=True)[1], np.full(len(X) // n_fonts, n_fonts))
    X, cluster = outside["printed digits"]
    np.testing.assert_array_equal(X[cluster == 1], render("7", digits.FONTS).reshape(10, -1))


def test_inverted_images_exchange_ink_and_paper(sklearns, outside):
    np.testing.assert_array_equal(outside["inverted"][0] + sklearns.X_test, 1)


def test_rotated_images_are_turned_by_a_quarter(sklearns, outside):
    upright, turned = (X.reshape(-1, 8, 8) for X in (sklearns.X_test, outside["rotated"][0]))
    for row in range(8):
        for column in range(8):
            np.testing.assert_array_equal(turned[:, row, column], upright[:, column, 7 - row])


def test_noise_is_uniform_and_has_its_seed(sklearns, outside, monkeypatch):
    noise = outside["noise"][0]
    assert kstest(noise.ravel(), "uniform").pvalue > 1e-3
    monkeypatch.setattr(digits, "LETTERS", "A")
    monkeypatch.setattr(digits, "DIGITS", "0")
    again, other = (digits.make_outsiders(sklearns, seed=seed, n_noise=200)["noise"][0] for seed in (0, 1))
    np.testing.assert_array_equal(again, noise)
    assert not np.isin(other, noise).any()
    with pytest.raises(ValueError, match=r"seed=None; wanted: an integer"):
        digits.make_outsiders(sklearns, seed=None)


# --- MNIST, through a stand-in

SIZES = (600, 200, 200)


@pytest.fixture(scope="module")
def stand_in(printed):
    """1,000 noisy images of printed digits as openml.org would give them: grey levels, and labels that are text."""
    rng = np.random.default_rng(0)
    order = rng.permutation(1000)
    images = np.tile(printed[LARGE].reshape(100, -1), (10, 1))[order]
    labels = np.tile(np.repeat(np.arange(10), 10), 10)[order]
    grey = np.clip(255 * images + rng.normal(0, 25, images.shape), 0, 255).round()
    return Bunch(data=grey, target=labels.astype(str).astype(object))


@pytest.fixture
def mnist(stand_in, monkeypatch, tmp_path):
    """Digits that think they come from openml.org."""

    def fetch(name, *, version, as_frame, data_home, **_):
        assert (name, version, as_frame, data_home) == ("mnist_784", 1, False, tmp_path)
        return Bunch(data=stand_in.data.copy(), target=stand_in.target.copy())  # read from disk anew, each time

    monkeypatch.setattr("bnn.digits.datasets.fetch_openml", fetch)
    return digits.load(seed=0, source="mnist", sizes=SIZES, data_home=tmp_path)


def test_mnists_test_images_are_the_last_ones(mnist, stand_in):
    np.testing.assert_array_equal(mnist.X_test, stand_in.data[-200:] / 255)
    np.testing.assert_array_equal(mnist.y_test, stand_in.target[-200:].astype(int))


def test_mnists_other_images_are_split_with_each_image_once(mnist, stand_in):
    assert mnist.shape == LARGE
    assert [X.shape for X, _ in list_parts(mnist)] == [(n, 784) for n in SIZES]
    X, y = (np.concatenate(arrays) for arrays in zip(*list_parts(mnist), strict=True))
    np.testing.assert_array_equal(sort_rows(X, y), sort_rows(stand_in.data / 255, stand_in.target.astype(int)))
    counts = np.array([np.bincount(y, minlength=10) for _, y in list_parts(mnist)[:2]])
    assert abs(counts[0] - 3 * counts[1]).max() <= 4  # 600 to 200, each rounded


@pytest.fixture
def strangers(mnist, monkeypatch):
    """Images of MNIST's size from outside."""
    monkeypatch.setattr(digits, "LETTERS", "AL")
    monkeypatch.setattr(digits, "DIGITS", "7")
    return digits.make_outsiders(mnist, seed=0, n_noise=20)


def test_a_network_for_mnist_takes_its_images_and_those_from_outside(mnist, strangers):
    model = models.digit_bnn(mnist.X_train, mnist.y_train, n_hidden=(4, 4))
    weights = {name: np.zeros((2, *value.shape)) for name, value in model.initial_point().items()}
    for X in (mnist.X_test, *(X for X, _ in strangers.values())):
        np.testing.assert_allclose(predict.predict_classes(weights, X), np.full((2, len(X), 10), 0.1))


@pytest.mark.slow
def test_mnist_goes_all_the_way_from_the_images_to_probabilities(mnist, strangers):
    X, y = pm.Minibatch(mnist.X_train, mnist.y_train, batch_size=64)
    model = models.digit_bnn(X, y, n_hidden=(16, 16), total_size=600)
    fit = inference.fit_advi(model, 400, seed=1, start="fan-in", start_sd=0.03, optimizer=pm.adam(learning_rate=2e-3))
    weights = fit.draw(10, seed=1)
    p = predict.predict_classes(weights, mnist.X_test)
    assert p.shape == (10, 200, 10)
    # chance is 10 ± 2 % (200 images); one class learned perfectly and nothing else would be below 20 %
    assert score.score_classes(p.mean(axis=0), mnist.y_test)["accuracy"][0] > 50
    for name, (X, cluster) in strangers.items():
        assert predict.predict_classes(weights, X).shape == (10, len(cluster), 10), name


@pytest.mark.parametrize(
    "error",
    [
        URLError("no route to host"),
        TimeoutError("timed out"),
        PermissionError("no folder"),
        IncompleteRead(b"half"),
        JSONDecodeError("Expecting value", "<html>the hotel's login</html>", 0),
    ],
)
def test_without_mnist_the_reader_is_told_what_to_do(error, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("bnn.digits.datasets.fetch_openml", fail)
    with pytest.raises(ConnectionError, match=r"could not be fetched .*; wanted: a network, or a copy") as told:
        digits.load(seed=0, source="mnist")
    assert told.value.__cause__ is error
    assert str(error) in str(told.value)


class Stream(BytesIO):
    """An answer from the network that breaks off."""

    def info(self):
        return {}

    def read(self, *_):
        if self.tell():
            raise ConnectionResetError("half way")
        return super().read(5)


@pytest.mark.filterwarnings("ignore:A network error occurred", "ignore:Invalid cache")
@pytest.mark.parametrize("answer", [None, b'{"data": {}}'])
def test_a_fetch_that_fails_leaves_nothing_behind(answer, monkeypatch, tmp_path):
    def open_url(*_, **__):
        if answer is None:
            raise URLError("no route to host")
        return Stream(answer)

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", open_url)  # scikit-learn's own code up to the network
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda seconds: None)  # between its attempts
    with pytest.raises(ConnectionError, match="could not be fetched"):
        digits.load(seed=0, source="mnist", data_home=tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
