"""Make the figures that sell the book, for the README and the front page: one is drawn, two come from chapters.

    python -m tools.cover [--draw] [--boxes]

With ``--boxes`` the boxes of the handouts are drawn, too: axes and points, for a pencil.
"""

import base64
import sys

import arviz as az
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pymc as pm
from bookkit import data, models, plots
from bookkit.repo import BOOK
from hbnn import fuse, metrics, prediction, sampling
from studies import new_categories

PICTURES = {
    "lonely.png": ("unpooled", "fig-unpooled-surfaces"),
    "together.png": ("hierarchical_nuts", "fig-hierarchical-nuts-before-after"),
}
SEED, N_LINES, EXTENT = 1, 50, 4
C = (-2.5, -2.5)  # the place of chapter 2 where no point has been seen, and the network does not know that


def find_picture(notebook, figure):
    """The PNG, as bytes, of the cell whose figure has this name."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == figure:
            return base64.b64decode(cell.outputs[0].data["image/png"])
    raise SystemExit(f"{notebook.name} has no figure named {figure}")


def draw_cover():
    """Noise and ignorance of chapter 2's network, as its four chains of NUTS know them: a figure."""
    moons = data.flat_moons(seed=0)
    model = fuse(models.flat_bnn(moons.X_train, moons.y_train))
    trace = pm.sample(500, tune=600, target_accept=0.95, model=model, random_seed=SEED, **sampling.ONE_CORE)
    draws = az.extract(trace, var_names=["w1", "w2", "w3"], num_samples=800, random_seed=SEED)
    weights = {name: np.moveaxis(draws[name].values, -1, 0) for name in ("w1", "w2", "w3")}
    p = prediction.predict_probability(weights, data.grid(100, extent=EXTENT))
    doubt = metrics.split_uncertainty(p)
    plots.use_style()
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharey=True)
    for ax, (part, vmax) in zip(axes, {"noise": 1, "ignorance": 0.6}.items(), strict=True):
        image = plots.plot_surface(doubt[part], ax, kind="uncertainty", extent=EXTENT, vmax=vmax)
        plots.plot_points(moons.X_train, moons.y_train, ax, size=5, label=False)
        ax.set(title=part, xlabel="first measurement (scaled)")
        fig.colorbar(image, ax=ax, label="bits", shrink=0.8)
    for one in p[:N_LINES]:
        axes[1].contour(one.reshape(100, 100), [0.5], extent=(-EXTENT, EXTENT) * 2, colors="k", linewidths=0.6,
                        alpha=0.3)  # fmt: skip
    axes[1].plot(*C, "kx", markersize=8, markeredgewidth=2)
    axes[1].annotate("C", C, (-14, 5), textcoords="offset points", weight="bold")
    axes[0].set_ylabel("second measurement (scaled)")
    return fig


def draw_box(X, y, crosses=()):
    """Axes and points without a colour, to be drawn on with a pencil: a figure of 7 by 7 centimetres."""
    plots.use_style()
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "box", "font.family": "sans-serif"})
    fig, ax = plt.subplots(figsize=(7 / 2.54, 7 / 2.54))
    size = 9 if len(X) > 100 else 22
    ax.scatter(*X[y == 0].T, s=size, marker="o", facecolor="none", edgecolor="#555555", linewidth=0.6)
    ax.scatter(*X[y == 1].T, s=size, marker="^", facecolor="#555555", linewidth=0)
    for name, place in dict(crosses).items():
        ax.plot(*place, "kx", markersize=7, markeredgewidth=1.6)
        ax.annotate(name, place, (5, 4), textcoords="offset points", weight="bold", fontsize=10)
    ax.set(xlim=(-3, 3), ylim=(-3, 3), aspect="equal", xticks=(-2, 0, 2), yticks=(-2, 0, 2))
    ax.set_xlabel("first measurement", fontsize=8)
    ax.set_ylabel("second measurement", fontsize=8)
    ax.tick_params(labelsize=8)
    return fig


def draw_boxes():
    """The boxes of the handouts, as files of ``book/_static/handouts``."""
    one, patient = data.flat_moons(seed=0), data.legacy_rotated_moons()
    new = new_categories.draw_categories("alike").group(0)
    boxes = {
        "places": {
            "X": one.X_train[::2],
            "y": one.y_train[::2],
            "crosses": {"A": (-0.5, 0.7), "B": (0.9, -1.2), "C": C},
        },
        "patient": {"X": patient.X_train[2], "y": patient.y_train[2]},
        "newcomer": {"X": new.X_train[:5], "y": new.y_train[:5]},
    }
    folder = BOOK / "_static" / "handouts"
    folder.mkdir(exist_ok=True)
    for name, what in boxes.items():
        draw_box(**what).savefig(folder / f"{name}.svg", metadata={"Date": None})


def main(arguments=()):
    """Copy the pictures of chapters; with ``--draw`` sample and draw the cover, with ``--boxes`` draw those, too."""
    if "--boxes" in arguments:
        draw_boxes()
    for name, (chapter, figure) in PICTURES.items():
        (BOOK / "_static" / name).write_bytes(find_picture(BOOK / f"{chapter}.ipynb", figure))
    if "--draw" in arguments:
        png, _ = plots.draw_png(draw_cover())
        (BOOK / "_static" / "cover.png").write_bytes(png)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
