"""Digits and what is none: the split, images made small (against Pillow and integrals), MNIST without a network."""

from json import JSONDecodeError
from pathlib import Path
from urllib.error import URLError

import matplotlib
import numpy as np
import pytest
from bookkit import digits
from hbnn import _checks
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


def join_parts(data):
    """Images and labels of the three parts, one after the other, sorted."""
    X, y = (np.concatenate([getattr(data, f"{name}_{part}") for part in PARTS]) for name in "Xy")
    return sort_rows(X, y)


def sort_rows(X, y):
    rows = np.column_stack([X, y])
    return rows[np.lexsort(rows.T)]


# --- the split


def test_the_parts_hold_each_image_once_and_each_digit_in_proportion(sklearns):
    images, labels = load_digits(return_X_y=True)
    np.testing.assert_array_equal(join_parts(sklearns), sort_rows(images / 16, labels))
    counts = np.array([np.bincount(getattr(sklearns, f"y_{part}"), minlength=10) for part in PARTS])
    assert counts.sum(axis=1).tolist() == [1000, 397, 400]
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    assert abs(counts - expected).max() < 2  # rounded twice: first the test part is taken out, then the rest is split


def test_one_seed_gives_the_same_bits_and_another_seed_another_split(sklearns):
    again, other = digits.load(seed=0), digits.load(seed=1)
    for name in [f"{kind}_{part}" for kind in "Xy" for part in PARTS]:
        np.testing.assert_array_equal(getattr(again, name), getattr(sklearns, name))
        assert not np.array_equal(getattr(other, name), getattr(sklearns, name))


# --- images and labels that are checked


def test_images_may_be_flat_or_square_and_labels_of_any_number_type():
    X = np.random.default_rng(0).integers(0, 17, size=(5, 64)) / 16
    for given_images in (X.tolist(), X.reshape(5, 8, 8)):
        np.testing.assert_array_equal(_checks.check_images(given_images, 64), X)
    y = _checks.check_classes([0.0, 9.0], 2)
    assert (y.dtype, y.tolist()) == (np.int32, [0, 9])


ONES = np.ones((20, 20))
LINE = [[1.0, 2], [4, 9], [7, 3]]
REFUSED = {
    "no seed": (lambda: digits.load(seed=None), "seed=None"),
    "unknown source": (lambda: digits.load(seed=0, source="usps"), "'usps'; wanted: one of 'sklearn', 'mnist'"),
    "tiny part": (lambda: digits.load(seed=0, sizes=(100, 9, 100)), r"100, 9, 100.*at least 10"),
    "large parts": (lambda: digits.load(seed=0, sizes=(1000, 398, 400)), r"398.* more than the 1797"),
    "no image": (lambda: _checks.check_images(np.empty((0, 8, 8)), 64), "empty batch"),
    "one image": (lambda: _checks.check_images(np.zeros(64), 64), r"\(64,\).*X\[None\]"),
    "large images": (lambda: _checks.check_images(np.zeros((2, 784)), 64), "784.*wanted: 64, 8 x 8"),
    "NaN": (lambda: _checks.check_images(np.full((2, 64), np.nan), 64), "128 values that are NaN"),
    "grey levels": (lambda: _checks.check_images(np.full((2, 64), 16.0), 64), "16 to 16.*divide"),
    "ragged": (lambda: _checks.check_images([[0.0] * 64, [0.0] * 63], 64), "no array of images"),
    "masked": (lambda: _checks.check_images(np.ma.array(np.zeros((1, 64)), mask=True), 64), "64 masked"),
    "other labels": (lambda: _checks.check_classes([1, 2, 3], 2), r"\(3,\).*each of 2 images"),
    "a 10": (lambda: _checks.check_classes([0, 10], 2), r"\[10\]; wanted: the numbers 0 to 9"),
    "3 classes": (lambda: _checks.check_classes([0, 3], 2, n_classes=3, name="z"), r"z .*\[3\].*0 to 2"),
    "shape": (lambda: digits.fit_image(ONES, (9, 9)), r"\(9, 9\); wanted: one of \(8, 8\), \(28, 28\)"),
    "blank": (lambda: digits.fit_image(0 * ONES, SMALL), r"\(20, 20\) and no ink"),
    "pale": (lambda: digits.fit_image(0.4 * ONES, SMALL), "nowhere above 0.4"),
    "unknown font": (lambda: digits.render("A", fonts=["Comic"]), r"\['Comic'\].*DejaVuSans"),
    "no character": (lambda: digits.render(""), "characters=''"),
    "a space": (lambda: digits.render(" ", fonts=FEW_FONTS), "' ' leaves no ink in DejaVuSans"),
    "no stroke": (lambda: digits.draw_strokes([]), "nothing to draw"),
    "strokes in space": (lambda: digits.draw_strokes([[[1, 2, 3]]]), r"\(point, 2\)"),
    "broad pen": (lambda: digits.draw_strokes([LINE], width=0.3), "0.3; wanted: .*at most 0.25"),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


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


INK = arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=40), elements=st.sampled_from([0.0, 0.25, 1.0]))
INK = INK.filter(lambda ink: (ink == 1).any())


@DERANDOMIZED
@given(INK, st.tuples(*[st.integers(0, 9)] * 4))
def test_a_small_image_is_the_average_over_blocks_of_the_inks_square(ink, paper):
    square = cut_square(ink)
    small, large = (digits.fit_image(np.pad(ink, [paper[:2], paper[2:]]), shape) for shape in (SMALL, LARGE))
    np.testing.assert_allclose(small, average(square, 8), atol=1e-12)
    box = average(square, 20)
    top, left = (np.argmax((large > 0).any(axis=axis)) - np.argmax((box > 1e-9).any(axis=axis)) for axis in (1, 0))
    np.testing.assert_allclose(large[top : top + 20, left : left + 20], box, atol=1e-12)
    assert large.sum() == pytest.approx(box.sum())  # and paper around it
    for image in (small, large):
        _checks.check_images(image[None], image.size)


# --- characters and strokes


def paint(character, font):
    """The character in large, by Pillow."""
    file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{font}.ttf"
    page = Image.new("L", (700, 700))
    ImageDraw.Draw(page).text((200, 150), character, font=ImageFont.truetype(str(file), 300), fill=255)
    return np.asarray(page) / 255


def test_characters_are_those_of_pillow():
    for image, character, font in zip(*digits.render("AQg7"), strict=True):
        # edges are smoothed in two ways: a pixel of the canvas on either side
        wanted = average(cut_square(paint(character, font)), 8)
        np.testing.assert_allclose(image.reshape(SMALL), wanted, atol=2 * PIXEL, err_msg=f"{character} in {font}")


def test_the_centre_of_mass_of_a_large_character_is_in_the_middle():
    X, *_ = digits.render("17LQ", shape=LARGE, fonts=FEW_FONTS)
    at = np.indices(LARGE).reshape(2, -1)
    # as near as whole pixels allow; the middle of 28 pixels lies between the 14th and the 15th
    assert abs(X @ at.T / X.sum(axis=1, keepdims=True) - 13.5).max() <= 0.5 + 1e-9


def draw(strokes, shape=SMALL, **options):
    return digits.draw_strokes(strokes, shape=shape, **options).reshape(shape)


@pytest.mark.parametrize(("shape", "n", "width"), [(SMALL, 8, 0.12), (LARGE, 20, 0.24)])
def test_a_stroke_like_a_one_is_a_vertical_bar_as_wide_as_the_pen(shape, n, width):
    image = draw([[[3, 0], [3, 5], [3, 10]]], shape, width=width)
    assert (image.sum(axis=1) > 0).sum() == n
    middle = image[len(image) // 2 - 2 : len(image) // 2 + 2]
    # the pen's round ends make the stroke longer by its width; edges lie within a pixel of the canvas each
    np.testing.assert_allclose(middle.sum(axis=1), n * width / (1 + width), atol=n / 251)
    away = len(image) // 2 - 3
    assert (image[:, :away].max(), image[:, -away:].max()) == (0, 0)


def test_strokes_are_drawn_with_y_running_down():
    image = draw([[[0, 0], [0, 10], [6, 10]]])  # an L
    assert image[-3:, 4:].max() > 0.4  # the foot
    assert image[:3, 4:].max() == 0


def test_a_dot_is_a_disc():
    for strokes in ([[[3.0, 4.0]]], [[[3.0, 4.0], [3.0, 4.0]]]):
        image = draw(strokes)
        assert image.mean() == pytest.approx(np.pi / 4, abs=2 / 27)  # 27 pixels wide, give or take one on either side
        assert image[3:5, 3:5].min() == 1


@DERANDOMIZED
@given(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), st.floats(1e-2, 1e2), st.sampled_from([SMALL, LARGE]))
def test_neither_place_nor_size_of_a_drawing_matters(shift, size, shape):
    strokes = [np.array(LINE), np.array([[2.0, 5], [6, 5]])]
    moved = [size * stroke + shift for stroke in strokes]
    # rounding may move an edge by a pixel of the canvas, which is 1 / 31 of a small and 1 / 12 of a large image's block
    np.testing.assert_allclose(draw(moved, shape), draw(strokes, shape), atol=PIXEL if shape == SMALL else 1 / 12)


# --- images from outside


@pytest.fixture(scope="module")
def outside(sklearns):
    with pytest.MonkeyPatch.context() as patch:  # of 24 letters and ten digits; characters take time to paint
        patch.setattr(digits, "LETTERS", "AQ")
        patch.setattr(digits, "DIGITS", "07")
        return digits.make_outsiders(sklearns, seed=0)


def test_a_character_in_all_fonts_is_one_cluster_and_elsewhere_each_image_is_its_own(outside):
    sizes = {"letters": (2, 10), "printed digits": (2, 10), "noise": (200, 1), "inverted": (400, 1)}
    for name, (n_clusters, n) in (sizes | {"rotated": (400, 1)}).items():
        X, cluster = outside[name]
        assert _checks.check_images(X, 64).shape == (n_clusters * n, 64)
        np.testing.assert_array_equal(np.unique(cluster, return_counts=True)[1], np.full(n_clusters, n))
    X, cluster = outside["printed digits"]
    np.testing.assert_array_equal(X[cluster == 1], digits.render("7")[0])


def test_test_images_are_inverted_and_turned_by_a_quarter(sklearns, outside):
    np.testing.assert_array_equal(outside["inverted"][0] + sklearns.X_test, 1)
    upright, turned = (X.reshape(-1, 8, 8) for X in (sklearns.X_test, outside["rotated"][0]))
    np.testing.assert_array_equal(turned[:, 1, 3], upright[:, 3, 6])
    np.testing.assert_array_equal(turned[:, ::-1].transpose(0, 2, 1), upright)


def test_noise_is_uniform_and_has_its_seed(sklearns, outside, monkeypatch):
    noise = outside["noise"][0]
    assert kstest(noise.ravel(), "uniform").pvalue > 1e-3
    monkeypatch.setattr(digits, "LETTERS", "A")
    monkeypatch.setattr(digits, "DIGITS", "0")
    again, other = (digits.make_outsiders(sklearns, seed=seed)["noise"][0] for seed in (0, 1))
    np.testing.assert_array_equal(again, noise)
    assert not np.isin(other, noise).any()


# --- MNIST, through a stand-in

SIZES = (600, 200, 200)


@pytest.fixture(scope="module")
def stand_in():
    """1,000 noisy images of printed digits as openml.org would give them: grey levels, and labels that are text."""
    rng = np.random.default_rng(0)
    order = rng.permutation(1000)
    X, labels, _ = digits.render(digits.DIGITS, shape=LARGE, fonts=FEW_FONTS[:2])
    grey = np.clip(255 * np.tile(X, (50, 1))[order] + rng.normal(0, 25, (1000, 784)), 0, 255).round()
    return Bunch(data=grey, target=np.tile(labels, 50)[order].astype(object))


@pytest.fixture
def mnist(stand_in, monkeypatch, tmp_path):
    """Digits that think they come from openml.org."""

    def fetch(name, *, version, as_frame, data_home, **_):
        assert (name, version, as_frame, data_home) == ("mnist_784", 1, False, tmp_path)
        return Bunch(data=stand_in.data.copy(), target=stand_in.target.copy())  # read from disk anew, each time

    monkeypatch.setattr("bookkit.digits.datasets.fetch_openml", fetch)
    return digits.load(seed=0, source="mnist", sizes=SIZES, data_home=tmp_path)


def test_mnists_test_images_are_the_last_ones_and_the_others_are_split(mnist, stand_in):
    np.testing.assert_array_equal(mnist.X_test, stand_in.data[-200:] / 255)
    np.testing.assert_array_equal(mnist.y_test, stand_in.target[-200:].astype(int))
    np.testing.assert_array_equal(join_parts(mnist), sort_rows(stand_in.data / 255, stand_in.target.astype(int)))
    assert mnist.shape == LARGE
    train, validation = (np.bincount(y, minlength=10) for y in (mnist.y_train, mnist.y_validation))
    assert abs(train - 3 * validation).max() <= 4  # 600 to 200, each rounded


def test_images_from_outside_have_mnists_size(mnist, monkeypatch):
    monkeypatch.setattr(digits, "LETTERS", "AL")
    monkeypatch.setattr(digits, "DIGITS", "7")
    for X, _ in digits.make_outsiders(mnist, seed=0, n_noise=20).values():
        _checks.check_images(X, 784)


@pytest.mark.parametrize("error", [URLError("no route to host"), JSONDecodeError("Expecting value", "<html>", 0)])
def test_without_mnist_the_reader_is_told_what_to_do(error, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("bookkit.digits.datasets.fetch_openml", fail)
    with pytest.raises(ConnectionError, match=r"could not be fetched .*; wanted: a network, or a copy") as told:
        digits.load(seed=0, source="mnist")
    assert told.value.__cause__ is error
    assert str(error) in str(told.value)
