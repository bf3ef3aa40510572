"""Make the figures that sell the book, for the README and the front page: one is drawn, two come from chapters."""

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


def main(arguments=()):
    """Copy the pictures of chapters; with ``--draw`` sample and draw the cover, too."""
    for name, (chapter, figure) in PICTURES.items():
        (BOOK / "_static" / name).write_bytes(find_picture(BOOK / f"{chapter}.ipynb", figure))
    if "--draw" in arguments:
        png, _ = plots.draw_png(draw_cover())
        (BOOK / "_static" / "cover.png").write_bytes(png)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
