"""Images of handwritten digits, and of things that are no handwritten digits.

Everywhere ``X`` has the shape (obs, pixel), one image a row, from 0 (paper) to 1 (ink); ``y`` the shape (obs,) with the
labels 0 to 9; and ``shape`` is (rows, columns) of an image: (8, 8) as in scikit-learn's digits, (28, 28) as in MNIST.
"""

from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import matplotlib
import numpy as np
from hbnn._checks import check_classes, check_images, check_seed
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.textpath import TextPath, text_to_path
from matplotlib.transforms import Affine2D
from sklearn import datasets
from sklearn.model_selection import train_test_split

N_CLASSES = 10
SHAPES = {"sklearn": (8, 8), "mnist": (28, 28)}
SIZES = {"sklearn": (1000, 397, 400), "mnist": (50_000, 10_000, 10_000)}  # train, validation, test
# faces that come with Matplotlib, so that a letter looks the same on every machine
FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSerif", "STIXGeneral", "STIXGeneralBol",
         "cmr10", "cmss10", "cmtt10", "cmb10")  # fmt: skip
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # no I and no O, which in most faces are a one and a zero
DIGITS = "0123456789"
CANVAS = 280  # pixels a side on which strokes and glyphs are painted before they are made small
MNIST_BOX = 20  # of 28 pixels, what a digit of MNIST fills


@dataclass(frozen=True)
class Digits:
    """Images of digits, split three ways.

    Attributes
    ----------
    X_train, X_validation, X_test : float64, (obs, pixel), 0 to 1
    y_train, y_validation, y_test : int32, (obs,), 0 to 9
    shape : (rows, columns) of an image

    Examples
    --------
    >>> from bookkit import digits
    >>> images = digits.load(seed=1)
    >>> images.X_train.shape, images.X_validation.shape, images.X_test.shape
    ((1000, 64), (397, 64), (400, 64))
    >>> images.shape
    (8, 8)
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_validation: np.ndarray
    y_validation: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    shape: tuple[int, int]


def load(*, seed, source="sklearn", sizes=None, data_home=None):
    """Handwritten digits, in three parts: to learn from, to choose by, to be tested on.

    Parameters
    ----------
    seed : int, for the split
    source : "sklearn", the 1,797 images of 8 x 8 pixels that come with scikit-learn (Alpaydin and Kaynak 1998); or
        "mnist", 70,000 images of 28 x 28 (LeCun et al. 1998) from openml.org, which takes a network the first time.
        Its test images are the last ones, as usual; of the smaller set they are drawn, stratified by class
    sizes : three ints, images to train, validate and test; default 1,000, 397, 400 and 50,000, 10,000, 10,000
    data_home : folder where scikit-learn keeps what it fetches; default its own, ~/scikit_learn_data

    Returns
    -------
    Digits

    Raises
    ------
    ValueError
        For an unknown source, or sizes that are not there.
    ConnectionError
        When MNIST is not on disk and cannot be fetched.

    Examples
    --------
    >>> import numpy as np
    >>> from bookkit import digits
    >>> images = digits.load(seed=1, sizes=(200, 100, 100))
    >>> images.X_train.shape
    (200, 64)
    >>> float(images.X_train.min()), float(images.X_train.max())
    (0.0, 1.0)
    >>> np.unique(images.y_test)
    array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], dtype=int32)
    """
    check_seed(seed)
    if source not in SHAPES:
        raise ValueError(f"source={source!r}; wanted: one of {', '.join(map(repr, SHAPES))}")
    n_train, n_validation, n_test = sizes or SIZES[source]
    if min(n_train, n_validation, n_test) < N_CLASSES:
        raise ValueError(f"sizes={(n_train, n_validation, n_test)}; wanted: at least {N_CLASSES} images in each part")
    images, labels = _fetch_mnist(data_home) if source == "mnist" else datasets.load_digits(return_X_y=True)
    n_pixels = SHAPES[source][0] * SHAPES[source][1]
    X = np.array(images, dtype=float, copy=None)
    X /= 255 if source == "mnist" else 16  # in place: a second copy of MNIST takes half a gigabyte
    X = check_images(X, n_pixels)
    y = check_classes(np.asarray(labels).astype(int), len(X))
    if n_train + n_validation + n_test > len(X):
        raise ValueError(f"sizes={(n_train, n_validation, n_test)} add up to more than the {len(X)} images of {source}")
    if source == "mnist":
        X, X_test, y, y_test = X[:-n_test], X[-n_test:], y[:-n_test], y[-n_test:]
    else:
        X, X_test, y, y_test = train_test_split(X, y, test_size=n_test, random_state=seed, stratify=y)
    X_train, X_validation, y_train, y_validation = train_test_split(
        X, y, train_size=n_train, test_size=n_validation, random_state=seed, stratify=y
    )
    return Digits(X_train, y_train, X_validation, y_validation, X_test, y_test, SHAPES[source])


def _fetch_mnist(data_home):
    try:
        found = datasets.fetch_openml("mnist_784", version=1, as_frame=False, data_home=data_home)
    except (OSError, HTTPException, ValueError) as error:  # no network, a broken download, a login page for an answer
        raise ConnectionError(
            f"MNIST could not be fetched from openml.org ({error}); wanted: a network, or a copy that scikit-learn has "
            "fetched before (data_home=…). source='sklearn' needs neither"
        ) from error
    return found.data, found.target


# --- what is no handwritten digit


def render(characters, *, shape=(8, 8), fonts=FONTS):
    """Characters in several fonts, as big in their image as the handwritten digits are in theirs.

    Parameters
    ----------
    characters : str
    shape : (8, 8) or (28, 28)
    fonts : names of files in Matplotlib's folder of fonts, without their end

    Returns
    -------
    (X, character, font)
        Images (obs, pixel), and for each its character and its font, (obs,) arrays of str; all fonts of the first
        character, then of the next.

    Examples
    --------
    >>> from bookkit import digits
    >>> X, character, font = digits.render("AB", fonts=("DejaVuSans", "cmr10"))
    >>> X.shape
    (4, 64)
    >>> character.tolist(), font.tolist()
    (['A', 'A', 'B', 'B'], ['DejaVuSans', 'cmr10', 'DejaVuSans', 'cmr10'])
    """
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    files = [folder / f"{font}.ttf" for font in fonts]
    if missing := [file.stem for file in files if not file.exists()]:
        there = ", ".join(sorted(file.stem for file in folder.glob("*.ttf")))
        raise ValueError(f"fonts={missing} are not among those of Matplotlib; wanted: some of {there}")
    if not characters or not files:
        raise ValueError(f"characters={characters!r}, fonts={fonts!r}; wanted: at least one of each")
    pairs = [(character, file) for character in characters for file in files]
    X = np.stack([fit_image(_paint_glyph(*pair), shape) for pair in pairs]).reshape(len(pairs), -1)
    return X, np.array([pair[0] for pair in pairs]), np.array([pair[1].stem for pair in pairs])


def draw_strokes(strokes, *, shape=(8, 8), width=0.12):
    """Strokes of a pen, as big in their image as the handwritten digits are in theirs.

    Parameters
    ----------
    strokes : list of (point, 2) arrays, x to the right and y *down*, in any unit
    shape : (8, 8) or (28, 28)
    width : float, of the pen, as a share of the drawing's longer side, at most 0.25

    Returns
    -------
    (1, pixel) array

    Examples
    --------
    A line from top to bottom fills the middle of an image of 8 x 8:

    >>> from bookkit import digits
    >>> image = digits.draw_strokes([[(0, 0), (0, 10)]])
    >>> image.shape
    (1, 64)
    >>> (image.reshape(8, 8) > 0.1).sum(axis=0)  # rows with ink in each column
    array([0, 0, 0, 8, 8, 0, 0, 0])
    """
    if not 0 < width <= 0.25:
        raise ValueError(f"width={width}; wanted: above 0, at most 0.25")
    strokes = [np.asarray(stroke, dtype=float) for stroke in strokes]
    if not strokes or any(stroke.ndim != 2 or stroke.shape[1:] != (2,) or len(stroke) == 0 for stroke in strokes):
        raise ValueError("strokes holds nothing to draw; wanted: a list of (point, 2) arrays, none of them empty")
    points = np.concatenate(strokes)
    low, extent = points.min(axis=0), np.ptp(points, axis=0).max() or 1.0
    lines = [(stroke - low) / extent * (1, -1) for stroke in strokes]
    lines = [np.concatenate([line, line[-1:] + 1e-6]) for line in lines]  # a dot is a short line
    center = (np.concatenate(lines).min(axis=0) + np.concatenate(lines).max(axis=0)) / 2
    scale = 0.8 * CANVAS
    lines = [(line - center) * scale + CANVAS / 2 for line in lines]
    pen = LineCollection(lines, linewidths=width * scale, colors="black", capstyle="round", joinstyle="round")
    return fit_image(_paint(pen), shape).reshape(1, -1)


def _paint_glyph(character, file):
    font = FontProperties(fname=file)
    if not len(text_to_path.get_text_path(font, character)[0]):  # without a line, TextPath fails
        raise ValueError(f"character {character!r} leaves no ink in {file.stem}; wanted: characters that one can see")
    path = TextPath((0, 0), character, size=100, prop=font)
    box = path.get_extents()
    scale = 0.9 * CANVAS / max(box.width, box.height)
    move = Affine2D().translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2).scale(scale)
    move = move.translate(CANVAS / 2, CANVAS / 2)
    return _paint(PathPatch(move.transform_path(path), facecolor="black", linewidth=0))


def _paint(artist):
    """Ink (CANVAS, CANVAS) from 0 to 1, first row on top."""
    figure = Figure(figsize=(1, 1), dpi=CANVAS, layout="none")
    canvas = FigureCanvasAgg(figure)
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, CANVAS), ylim=(0, CANVAS))
    ax.axis("off")
    if isinstance(artist, LineCollection):
        artist.set_linewidths([72 / CANVAS * width for width in artist.get_linewidths()])  # pixels to points
        ax.add_collection(artist)
    else:
        ax.add_patch(artist)
    canvas.draw()
    return 1 - np.asarray(canvas.buffer_rgba())[:, :, 0] / 255


def fit_image(ink, shape):
    """Make an image small the way the data set was made.

    Parameters
    ----------
    ink : (rows, columns) array, 0 (paper) to 1 (ink), of any size
    shape : (8, 8): the ink's box fills the height or the width, blocks are averaged; (28, 28): its longer side
        becomes 20 pixels, and its centre of mass comes to the middle

    Returns
    -------
    `shape` array

    Raises
    ------
    ValueError
        For another shape, or an image without ink.

    Examples
    --------
    >>> import numpy as np
    >>> from bookkit import digits
    >>> ink = np.zeros((40, 40))
    >>> ink[10:30, 15:20] = 1
    >>> digits.fit_image(ink, (8, 8)).sum(axis=0)  # as high as the image, a quarter as wide
    array([0. , 0. , 1.6, 8. , 6.4, 0. , 0. , 0. ])
    """
    if tuple(shape) not in SHAPES.values():
        raise ValueError(f"shape={shape}; wanted: one of {', '.join(map(str, SHAPES.values()))}")
    ink = np.asarray(ink, dtype=float)
    if ink.ndim != 2 or not ink.size or not (ink > 0).any():
        raise ValueError(f"ink has shape {ink.shape} and no ink in it; wanted: (rows, columns) with something drawn")
    rows, columns = np.flatnonzero((ink > 0.5).any(axis=1)), np.flatnonzero((ink > 0.5).any(axis=0))
    if not len(rows):
        raise ValueError(f"ink is nowhere above {ink.max():g}; wanted: 0 (paper) to 1 (ink)")
    box = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    side = max(box.shape)
    square = np.zeros((side, side))
    top, left = ((side - n) // 2 for n in box.shape)
    square[top : top + box.shape[0], left : left + box.shape[1]] = box
    if tuple(shape) == (8, 8):
        return _average(square, 8)
    small, (row, column) = _average(square, MNIST_BOX), np.indices((MNIST_BOX, MNIST_BOX))
    image = np.zeros(shape)
    # where the box goes so that its centre of mass is as near to the middle as whole pixels allow, and all of it inside
    top, left = (
        int(np.clip(round((n - 1) / 2 - np.sum(small * index) / small.sum()), 0, n - MNIST_BOX))
        for n, index in zip(shape, (row, column), strict=True)
    )
    image[top : top + MNIST_BOX, left : left + MNIST_BOX] = small
    return image


def _average(square, n):
    """Mean over n x n blocks of a square image whose side need not be a multiple of n."""
    side = len(square)
    first, pixel = np.arange(n)[:, None] * side, np.arange(side) * n  # in units of a pixel's n-th part, which are whole
    overlap = np.minimum(first + side, pixel + n) - np.maximum(first, pixel)
    share = np.maximum(overlap, 0) / side  # (block, pixel), each row adds up to one
    return np.minimum(share @ square @ share.T, square.max())  # which rounding may exceed


def make_outsiders(digits, *, seed, n_noise=200):
    """Images that a classifier of handwritten digits has never seen.

    Parameters
    ----------
    digits : Digits; inverted and rotated images are made of its test images
    seed : int, for the noise
    n_noise : int, images of noise

    Returns
    -------
    dict of name to (X, cluster)
        "letters" and "printed digits" in `FONTS`, "noise" (every pixel uniform on [0, 1]), "inverted" (ink and paper
        exchanged), "rotated" (by a quarter turn). Images of one cluster, an int for each, are no independent draws: all
        fonts of one character are one cluster, elsewhere each image is its own.

    Examples
    --------
    >>> from bookkit import digits
    >>> outside = digits.make_outsiders(digits.load(seed=1), seed=1, n_noise=50)
    >>> for name, (X, cluster) in outside.items():
    ...     print(name, X.shape)
    letters (240, 64)
    printed digits (100, 64)
    noise (50, 64)
    inverted (400, 64)
    rotated (400, 64)
    """
    check_seed(seed)
    outside = {}
    for name, characters in {"letters": LETTERS, "printed digits": DIGITS}.items():
        X, character, _ = render(characters, shape=digits.shape)
        outside[name] = X, np.array([characters.index(c) for c in character])
    test = digits.X_test
    turned = np.rot90(test.reshape(-1, *digits.shape), axes=(1, 2)).reshape(test.shape)
    noise = np.random.default_rng(seed).random((n_noise, test.shape[1]))
    for name, X in {"noise": noise, "inverted": 1 - test, "rotated": turned}.items():
        outside[name] = X, np.arange(len(X))
    return outside
