"""The figures, one function each. The same colour means the same thing in the whole book.

Class 0 is a blue circle, class 1 an orange triangle; a probability runs from the one colour through white
to the other; uncertainty runs from white to purple. All are safe for colour-blind readers.
"""

from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from IPython import get_ipython
from matplotlib import font_manager
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image

from bookkit.data import EXTENT

CLASS_COLORS = ("#0072B2", "#D55E00")
CLASS_MARKERS = ("o", "^")
LINE_COLORS = ("#333333", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")  # lines, in order; never by colour alone
METHOD_COLORS = {  # one method, one colour, on every page; truth is black, classes keep theirs
    "hierarchical": "#009E73", "separate": "#CC79A7", "control": "#56B4E9", "pooled": "#E69F00", "line": "#8C6D31",
    "kNN": "#7F7F7F", "truth": "#222222", "NUTS": "#5B3A8C", "ADVI": "#C2410C", "learned prior": "#14505C",
    "fitted normal": "#6B7A00",
}  # fmt: skip
LINE_STYLES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
# tints of the class colours, so that points in the full colour stay visible on them
PROBABILITY = LinearSegmentedColormap.from_list("probability", ["#5FA8D3", "white", "#F0935C"])
UNCERTAINTY = LinearSegmentedColormap.from_list("uncertainty", ["white", "#9A7BC8", "#3F007D"])
FONT = "Hbnn Sans"  # the pages' own, Source Sans 3, as Matplotlib can read it: fonts/README.md
# of a figure's every word, in points: a figure of 7.4 inches has it as large as its caption, 16 pixels, on a wide page
FONT_SIZE = 11


def use_style():
    """Set the book's figure style; in a notebook figures get double density. Call it once, after the imports.

    Every word of a figure has one size, so that no cell needs to say one.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from bookkit import plots
    >>> plots.use_style()
    >>> plt.rcParams["figure.figsize"], plt.rcParams["axes.spines.top"]
    ([6.4, 4.0], False)
    """
    sns.set_theme(context="notebook", style="ticks")
    for file in sorted((Path(__file__).parent / "fonts").glob("*.ttf")):
        font_manager.fontManager.addfont(file)
    words = ("axes.labelsize", "axes.titlesize", "figure.labelsize", "figure.titlesize", "font.size", "legend.fontsize",
             "legend.title_fontsize", "xtick.labelsize", "ytick.labelsize")  # fmt: skip
    plt.rcParams.update(dict.fromkeys(words, FONT_SIZE))
    plt.rcParams.update({
        "font.family": [FONT, "DejaVu Sans"],  # signs that the first lacks are taken from the second
        "mathtext.fontset": "custom", "mathtext.rm": FONT, "mathtext.sf": FONT, "mathtext.bf": f"{FONT}:bold",
        "mathtext.it": f"{FONT}:italic", "mathtext.cal": f"{FONT}:italic",
        "figure.figsize": (6.4, 4.0), "figure.dpi": 110, "figure.constrained_layout.use": True,
        "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    })  # fmt: skip
    shell = get_ipython()
    if shell is not None:
        plt.switch_backend(plt.get_backend())  # Jupyter's own brings its own way to draw when it is loaded: do it now
        shell.display_formatter.formatters["image/png"].for_type(Figure, draw_png)


def draw_png(figure):
    """A figure as a notebook shows it: sharp on screens of double density, and no heavier than at single density.

    It keeps 256 colours, which the eye cannot tell from all of them, and takes a third of the bytes.

    Returns
    -------
    bytes, dict
        A PNG, which says its pixels to the inch; the width and the height at which to show it, in CSS pixels.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from bookkit import plots
    >>> png, size = plots.draw_png(Figure(figsize=(2, 1)))
    >>> png[1:4], sorted(size)
    (b'PNG', ['height', 'width'])
    """
    whole, small = BytesIO(), BytesIO()
    figure.savefig(whole, format="png", dpi=2 * figure.dpi, bbox_inches="tight")
    picture = _reduce_colors(np.asarray(Image.open(whole).convert("RGB")))
    picture.save(small, "png", optimize=True, dpi=(2 * figure.dpi,) * 2)
    width, height = picture.size
    return small.getvalue(), {"width": width // 2, "height": height // 2}


def _reduce_colors(pixels, n=256):
    """A picture of the `n` colours that serve best, from pixels (height, width, 3); a paletted Image.

    Each colour counts by a root of its share: a point of a few pixels on a large map keeps its own. Median cut, then
    two rounds of k-means.
    """
    colors, which, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    weights = counts**0.4
    weighted = np.repeat(colors, np.ceil(weights).astype(int), axis=0)[None]
    first = Image.fromarray(weighted).quantize(n, method=Image.Quantize.MEDIANCUT).getpalette()
    palette = np.reshape(first, (-1, 3)).astype(float)
    for _ in range(3):
        nearest = ((colors[:, None] - palette) ** 2).sum(axis=-1).argmin(axis=1)
        total = np.bincount(nearest, weights, len(palette))
        sums = [np.bincount(nearest, weights * channel, len(palette)) for channel in colors.T]
        palette = np.where(total[:, None] > 0, np.transpose(sums) / np.maximum(total, 1)[:, None], palette)
    picture = Image.fromarray(nearest.astype(np.uint8)[which].reshape(pixels.shape[:2]))
    picture.putpalette(np.rint(palette).astype(int).ravel().tolist())
    return picture


def plot_points(X, y, ax=None, *, size=14, label=True):
    """Points of both classes, by colour and by marker.

    Parameters
    ----------
    X : (obs, 2), y : (obs,), 0 and 1
    ax : axes, default the current ones
    size : marker area in points squared
    label : bool, whether the classes get an entry in a legend

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from bookkit import data, plots
    >>> moons = data.flat_moons(seed=0)
    >>> fig, ax = plt.subplots()
    >>> ax = plots.plot_points(moons.X_train, moons.y_train, ax)
    >>> [points.get_label() for points in ax.collections]
    ['class 0', 'class 1']
    """
    X, y, ax = np.asarray(X), np.asarray(y), ax or plt.gca()
    for c in (0, 1):
        rim = {"edgecolor": "white", "linewidth": 0.5}
        label_c = f"class {c}" if label else None
        ax.scatter(*X[y == c].T, s=size, c=CLASS_COLORS[c], marker=CLASS_MARKERS[c], label=label_c, **rim)
    return ax


def plot_surface(values, ax=None, *, kind="probability", extent=EXTENT, vmax=None):
    """A picture of one value per grid point, as `bookkit.data.grid` orders them.

    Parameters
    ----------
    values : (n * n,)
    kind : "probability" (0 to 1, with the line at 0.5) or "uncertainty" (0 to `vmax`)
    vmax : float, top of the uncertainty scale; default the largest value

    Returns
    -------
    The image, for a colour bar.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from bookkit import data, plots
    >>> moons = data.flat_moons(seed=0)
    >>> p = data.bayes_probability(data.grid(40), moons, noise=0.2)
    >>> fig, ax = plt.subplots()
    >>> image = plots.plot_surface(p, ax)
    >>> image.get_array().shape, image.get_clim()
    ((40, 40), (0.0, 1.0))
    """
    if kind not in ("probability", "uncertainty"):
        raise ValueError(f"kind={kind!r}; wanted: 'probability' or 'uncertainty'")
    values = np.asarray(values)
    n = round(np.sqrt(values.size))
    if n * n != values.size:
        raise ValueError(f"values has {values.size} entries; wanted: a square grid of n * n")
    ax = ax or plt.gca()
    square, box = np.reshape(values, (n, n)), (-extent, extent, -extent, extent)
    # the outermost grid points are the centres of the outermost pixels
    edge = extent * n / max(n - 1, 1)
    pixels = (-edge, edge, -edge, edge)
    cmap, top = (PROBABILITY, 1) if kind == "probability" else (UNCERTAINTY, vmax)
    image = ax.imshow(square, origin="lower", extent=pixels, cmap=cmap, vmin=0, vmax=top, interpolation="bilinear")
    if kind == "probability" and values.min() < 0.5 < values.max():
        ax.contour(square, levels=[0.5], extent=box, colors="#222222", linewidths=1)
    ax.set(xlim=(-extent, extent), ylim=(-extent, extent))
    return image


def make_group_axes(n_groups=18, *, n_columns=6, width=7.4):
    """Axes for all categories, always in the same place: category g in row g // 6, column g % 6.

    They have no ticks: the page says once that both measurements run from -3 to 3.

    Returns
    -------
    figure and (group,) array of axes

    Examples
    --------
    >>> from bookkit import plots
    >>> fig, axes = plots.make_group_axes(6, n_columns=3)
    >>> len(axes), axes[5].get_title()
    (6, '5')
    """
    n_rows = -(-n_groups // n_columns)
    size = (width, (width / n_columns + 0.18) * n_rows)
    fig, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False)
    for g, ax in enumerate(axes.flat[:n_groups]):
        ax.set(xlim=(-EXTENT, EXTENT), ylim=(-EXTENT, EXTENT), aspect="equal", xticks=[], yticks=[])
        ax.set_title(f"{g}", pad=2)
        ax.spines[:].set(visible=True, color="#999999", linewidth=0.6)
    for ax in axes.flat[n_groups:]:
        ax.set_axis_off()
    return fig, axes.flat[:n_groups]


def plot_groups(values, X, y, *, kind="probability", vmax=None, size=9):
    """One surface for each category, always in the same place, with its points on top.

    The colour bar lies below the left half, so that a phone can show the halves below each other (``figure.halves``).

    Parameters
    ----------
    values : (group, n * n) values on `bookkit.data.grid(n)`
    X : (group, obs, 2), y : (group, obs)
    kind, vmax : as in `plot_surface`; `vmax` defaults to the largest value of all categories
    size : marker area in points squared

    Returns
    -------
    figure and (group,) array of axes

    Examples
    --------
    >>> import numpy as np
    >>> from bookkit import data, plots
    >>> moons = data.rotated_moons(seed=1, n_groups=3)
    >>> p = [data.bayes_probability(data.grid(20), moons, noise=0.3, g=g) for g in range(3)]
    >>> fig, axes = plots.plot_groups(p, moons.X_train, moons.y_train)
    >>> len(axes), len(axes[0].images)
    (3, 1)
    """
    values = np.asarray(values)
    if values.ndim != 2 or len(values) != len(X):
        raise ValueError(f"values has shape {values.shape} for {len(X)} categories; wanted: (group, n * n)")
    fig, axes = make_group_axes(len(values))
    top = (values.max() if vmax is None else vmax) if kind == "uncertainty" else None
    for surface, points, labels, ax in zip(values, X, y, axes, strict=True):
        image = plot_surface(surface, ax, kind=kind, vmax=top)
        plot_points(points, labels, ax, size=size, label=False)
    width, height = fig.get_size_inches()
    fig.set_size_inches(width, height + 0.6)
    fig.set_layout_engine("constrained", rect=(0, 0.6 / (height + 0.6), 1, height / (height + 0.6)))
    bar = fig.colorbar(image, cax=fig.add_axes((0.1, 0.45 / (height + 0.6), 0.3, 0.025)), orientation="horizontal")
    name = "probability of an attack"
    bar.set_label(name if kind == "probability" else "sd of the probability over draws")
    return fig, axes


def plot_calibration(calibration, ax=None, *, label=None, color=CLASS_COLORS[0]):
    """Observed share of class 1 against predicted probability, with two standard errors, and the diagonal.

    Parameters
    ----------
    calibration : dict from `hbnn.metrics.calibrate`

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from bookkit import plots
    >>> from hbnn import metrics
    >>> found = metrics.calibrate([0.1, 0.1, 0.1, 0.1, 0.8, 0.8], [0, 0, 0, 1, 1, 1])
    >>> fig, ax = plt.subplots()
    >>> plots.plot_calibration(found, ax).get_ylabel()
    'observed share'
    """
    ax = ax or plt.gca()
    ax.plot([0, 1], [0, 1], color="#999999", linewidth=1, linestyle="--")
    share, error = calibration["share"], 2 * calibration["error"]
    bars = [np.minimum(error, share), np.minimum(error, 1 - share)]  # a share ends at 0 and 1
    ax.errorbar(calibration["p"], share, yerr=bars, fmt="o-", markersize=4, linewidth=1, capsize=2, color=color,
                label=label)  # fmt: skip
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="predicted probability of class 1", ylabel="observed share")
    return ax


def plot_image(image, shape, ax=None):
    """An image of `shape` (rows, columns), given as its pixels (pixel,) from 0, paper, to 1, ink, without axes.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from bookkit import digits, plots
    >>> images = digits.load(seed=1)
    >>> fig, ax = plt.subplots()
    >>> ax = plots.plot_image(images.X_test[0], images.shape, ax)
    >>> ax.images[0].get_array().shape
    (8, 8)
    """
    ax = ax or plt.gca()
    ax.imshow(np.reshape(image, shape), cmap="gray_r", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def smooth(values, window):
    """Means of consecutive blocks of `window` values; what is left over at the end is dropped.

    Examples
    --------
    >>> from bookkit import plots
    >>> plots.smooth([1.0, 3.0, 5.0, 7.0, 100.0], window=2)
    array([2., 6.])
    """
    if not 1 <= window <= len(values):
        raise ValueError(f"window={window} for {len(values)} values; wanted: at least 1 and at most as many")
    n = len(values) // window
    return np.reshape(values[: n * window], (n, window)).mean(axis=1)
