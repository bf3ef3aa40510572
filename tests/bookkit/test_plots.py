"""The figures: that each draws, puts things where they are, and always uses the same colours."""

import warnings
from io import BytesIO

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from bookkit import data, plots
from hbnn import metrics
from matplotlib.colors import rgb_to_hsv, to_rgb, to_rgba
from matplotlib.font_manager import findfont
from PIL import Image


@pytest.fixture(autouse=True)
def ax():
    """Fresh axes in the book's style, drawn at the end."""
    with mpl.rc_context():
        plots.use_style()
        fig, ax = plt.subplots()
        yield ax
        fig.canvas.draw()
        plt.close("all")


def test_a_notebook_gets_a_picture_of_twice_the_pixels_that_it_shows(ax):
    content, shown = plots.draw_png(ax.figure)
    picture = Image.open(BytesIO(content))
    assert picture.size == (1433, 905)
    assert shown == {"width": 716, "height": 452}
    assert picture.info["dpi"] == pytest.approx((220, 220), abs=0.1)


def test_words_are_in_the_pages_font_and_signs_that_it_lacks_in_another(ax):
    title = ax.set_title(r"P(x ∈ A) − 0.5, and $\sigma_2 \in \mathbf{R}$")
    assert findfont(title.get_fontproperties()).endswith("hbnn-sans-regular.ttf")
    with warnings.catch_warnings(action="error"):
        ax.figure.canvas.draw()


def test_the_colours_of_a_picture_are_those_that_were_drawn(ax):
    points = data.grid(40)
    plots.plot_surface(np.clip(points[:, 0] / 6 + 0.5, 0, 1), ax)
    plots.plot_points(points[[600, 700]], [0, 1], ax, size=18)  # two points on a large map
    drawn = BytesIO()
    ax.figure.savefig(drawn, format="png", dpi=220, bbox_inches="tight")
    kept = [
        np.array(Image.open(file).convert("RGB"), dtype=int) for file in (drawn, BytesIO(plots.draw_png(ax.figure)[0]))
    ]
    differs = abs(kept[0] - kept[1]).max(axis=-1)
    assert np.quantile(differs, 0.999) <= 6  # of 255
    for color in plots.CLASS_COLORS:
        point = abs(kept[0] - 255 * np.array(to_rgb(color))).max(axis=-1) <= 60  # an edge is white, and mixes
        assert point.sum() > 20
        assert differs[point].max() <= 24


def test_each_class_has_its_colour_its_marker_and_its_points(ax):
    moons = data.flat_moons(seed=0, n_obs=40)
    plots.plot_points(moons.X_train, moons.y_train, ax)
    for c, drawn in enumerate(ax.collections):
        np.testing.assert_array_equal(drawn.get_offsets(), moons.X_train[moons.y_train == c])
        assert to_rgb(drawn.get_facecolor()[0]) == to_rgb(plots.CLASS_COLORS[c])
        assert drawn.get_label() == f"class {c}"
    assert len({path.get_paths()[0].vertices.tobytes() for path in ax.collections}) == 2


def test_a_probability_runs_from_a_tint_of_class_0_through_white_to_one_of_class_1():
    for value, color in ((0.0, plots.CLASS_COLORS[0]), (1.0, plots.CLASS_COLORS[1])):
        tint, (hue, *_) = rgb_to_hsv(to_rgb(plots.PROBABILITY(value))), rgb_to_hsv(to_rgb(color))
        assert tint[0] == pytest.approx(hue, abs=0.03)
        assert tint[1] < 0.7  # pale enough for points in the full colour
    np.testing.assert_allclose(plots.PROBABILITY(0.5), to_rgba("white"), atol=0.01)
    np.testing.assert_allclose(plots.UNCERTAINTY(0.0), to_rgba("white"), atol=1e-6)


def test_a_surface_shows_each_value_at_its_grid_point(ax):
    points = data.grid(13)
    image = plots.plot_surface(points[:, 0] + 100 * points[:, 1], ax, kind="uncertainty")
    left, right, bottom, top = image.get_extent()
    shown = np.asarray(image.get_array())
    n_rows, n_columns = shown.shape
    x = left + (np.arange(n_columns) + 0.5) * (right - left) / n_columns
    y = bottom + (np.arange(n_rows) + 0.5) * (top - bottom) / n_rows
    np.testing.assert_allclose(shown, x[None] + 100 * y[:, None], atol=1e-9)
    assert image.origin == "lower"
    assert (ax.get_xlim(), ax.get_ylim()) == ((-3, 3), (-3, 3))
    plots.plot_surface(1 / (1 + np.exp(-4 * (data.grid(21)[:, 0] - 1))), ax)
    np.testing.assert_allclose(ax.collections[-1].get_paths()[0].vertices[:, 0], 1, atol=0.02)  # the line at one half


def test_every_category_has_its_place():
    for n_groups, n_columns in ((1, 6), (7, 6), (18, 3)):
        fig, axes = plots.make_group_axes(n_groups, n_columns=n_columns)
        assert sum(ax.axison for ax in fig.axes) == len(axes) == n_groups
        width = min(n_groups, n_columns)
        for g, place in enumerate(ax.get_subplotspec() for ax in axes):
            assert (place.rowspan.start, place.colspan.start) == (g // width, g % width)
            assert axes[g].get_title() == str(g)


@pytest.mark.parametrize("kind", ["probability", "uncertainty"])
def test_every_category_shows_its_own_surface_on_one_scale_with_its_points(kind):
    moons = data.rotated_moons(seed=0, n_groups=7, n_train=5)
    values = np.linspace(0, 0.4, 7)[:, None] * np.ones(16)
    fig, axes = plots.plot_groups(values, moons.X_train, moons.y_train, kind=kind)
    for g, ax in enumerate(axes):
        assert (ax.images[0].get_array() == values[g, 0]).all()
        assert ax.images[0].get_clim() == ((0, 1) if kind == "probability" else (0, 0.4))
        assert sum(len(drawn.get_offsets()) for drawn in ax.collections) == 5
    assert len(fig.axes) == 12 + 1  # two rows of six, and the colour bar


def test_calibration_shows_share_against_probability(ax):
    found = metrics.calibrate(np.linspace(0.01, 0.99, 50), np.arange(50) % 2)
    assert plots.plot_calibration(found, ax, label="a network") is ax
    diagonal, shares = ax.lines[:2]
    np.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    np.testing.assert_array_equal(shares.get_xydata(), np.column_stack([found["p"], found["share"]]))
    bar = ax.containers[0][2][0].get_segments()[0]
    assert bar[1, 1] - bar[0, 1] == pytest.approx(4 * found["error"][0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.plot_surface(np.zeros(9), kind="entropy"), "'entropy'; wanted: 'probability' or"),
        (lambda: plots.plot_surface(np.zeros(10)), "10 entries; wanted: a square grid"),
        (lambda: plots.plot_groups(np.ones((2, 9)), np.ones((3, 1, 2)), np.ones((3, 1))), "3 categories"),
        (lambda: plots.smooth(np.zeros(3), 4), "window=4 for 3 values"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
