"""Make the pictures that a reader moves with a slider: ``book/_static/frames/<name>-<k>.png`` and ``<name>.json``.

    python -m tools.frames            all: growth_curve, group_sd, new_category
    python -m tools.frames new_category

Each picture is computed here, with the book's models and verdicts; the page shows one at a time.
"""

import hashlib
import json
import sys

import matplotlib
import numpy as np
import pymc as pm

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from bookkit import data, models, plots, versions
from bookkit.cache import cached
from bookkit.repo import BOOK
from bookkit.repo import digest as digest_rows
from hbnn import diagnostics, fuse, metrics, prediction, priors, sampling, symmetry

from tools.stills import shrink
from tools.stored import list_cells, run_cells

FOLDER = BOOK / "_static" / "frames"
N_HIDDEN = (12, 12)
SIZES = (0, 1, 2, 5, 10, 20, 50)  # points in the new category
FACTORS = (0, 0.25, 0.5, 1, 4, 16)  # times the mean group sds of the posterior
SEED = 1
CELLS = {"growth_curve": ("growth_curves", "fig-growth-curves-result")}  # drawn by a chapter's cells, up to this one
N_GRID = 40
N_DRAWS = 1200  # of each of four chains, enough for the verdict to pass at every factor


def fit_hierarchical():
    """The posterior that the chapters share, and its data."""
    moons = data.legacy_rotated_moons()
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=N_HIDDEN)
    settings = {"draws": 850, "tune": 600, "target_accept": 0.9, **sampling.ONE_CORE}
    return moons, cached(pm.sample)(model=fuse(model), random_seed=SEED, **settings)


def write_frames(name, label, frames):
    """Write the pictures of a slider: `frames` are tuples (value as text, figure, alternative text)."""
    found = []
    for k, (value, figure, alt) in enumerate(frames):
        path = FOLDER / f"{name}-{k}.png"
        figure.savefig(path, dpi=200)  # sharp on screens of double density; not cut, so that all have one size
        shrink(path, dpi=None)
        plt.close(figure)
        width, height = (round(100 * inches) for inches in figure.get_size_inches())
        found.append({"file": path.name, "value": value, "alt": alt, "width": width, "height": height})
    slider = {"label": label, "frames": found} | ({"stamp": stamp(name)} if name in CELLS else {})
    (FOLDER / f"{name}.json").write_text(json.dumps(slider | {"digest": digest(slider)}, indent=1) + "\n")


def stamp(name):
    """What a slider that a chapter's own cells draw is made under (dict), as `bookkit.versions.stamp` tells it."""
    return versions.stamp("\n".join(cell.source for cell in list_cells(*CELLS[name])))


def digest(slider):
    """SHA-256 of what a slider says and shows: its texts, and the bytes of its pictures."""
    pictures = [hashlib.sha256((FOLDER / frame["file"]).read_bytes()).hexdigest() for frame in slider["frames"]]
    return digest_rows([slider["label"], slider["frames"], pictures])


def draw_group_sd():
    """Eighteen networks whose group sds are not learned but fixed, at a factor times their posterior means."""
    moons, tree = fit_hierarchical()
    learned = {f"sd{k}": float(tree["posterior"][f"sd{k}"].mean()) for k in (1, 2, 3)}
    grid = data.grid(N_GRID)
    for factor in FACTORS:
        fit = tree
        if factor != 1:
            model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=N_HIDDEN)
            fixed = {name: np.float64(factor * sd) for name, sd in learned.items()}
            settings = {"draws": N_DRAWS, "tune": 800, "target_accept": 0.9, **sampling.ONE_CORE}
            fit = pm.sample(model=fuse(pm.do(model, fixed)), random_seed=SEED, **settings)
        posterior = fit["posterior"].dataset
        if factor != 1:
            posterior = posterior.assign(
                {name: (("chain", "draw"), np.full((4, N_DRAWS), sd)) for name, sd in fixed.items()}
            )
        weights = prediction.combine_weights(posterior.isel(draw=slice(None, None, 5)))
        coarse = prediction.predict_groups(prediction.combine_weights(posterior), data.grid(8))
        verdict = diagnostics.verdict({"grid": coarse}, fit)
        p_test = prediction.predict_groups(weights, moons.X_test).mean(axis=(0, 1))
        right = metrics.score(p_test.ravel(), moons.y_test.ravel())["accuracy"]
        print(factor, right, verdict)
        surface = prediction.predict_groups(weights, grid).mean(axis=(0, 1))
        figure, _ = plots.plot_groups(surface, moons.X_train, moons.y_train, size=2)
        figure.suptitle(f"group sds times {factor:g}: {right:.0f} % of the test points right", fontsize=10)
        note = "" if verdict.converged else " (chains disagree)"
        yield f"{factor:g}{note}", figure, describe_factor(factor, right, verdict.converged)


def describe_factor(factor, right, converged):
    """Alternative text of one picture of `draw_group_sd`."""
    kind = {0: "All eighteen are one and the same. ", 1: "This is what the data ask for. "}.get(factor, "")
    doubt = "" if converged else " The chains of this fit disagree."
    return (
        f"Eighteen class probability surfaces, group sds fixed at {factor:g} times their posterior means. "
        f"{kind}{right:.0f} percent of the test points are right.{doubt}"
    )


def draw_new_category():
    """A newcomer with 0 to 50 labelled moments: N(0, 1) beside the learned prior of `informed_priors`."""
    _, tree = fit_hierarchical()
    posterior = tree["posterior"].dataset
    new = data.rotated_moons(seed=201, n_groups=1, n_train=50, n_test=500).group(0)
    grid, n_weights = data.grid(N_GRID), 180
    known = {"N(0, 1)": (np.zeros(n_weights), np.eye(n_weights)), "the learned prior": find_learned_prior(posterior)}
    compiled = None
    for n in SIZES:
        figure, axes = plt.subplots(1, 2, figsize=(7.2, 4.1), sharex=True, sharey=True)
        found = {}
        for ax, (name, (mean, cholesky)) in zip(axes, known.items(), strict=True):
            X, y = new.X_train[:n], new.y_train[:n]
            if n == 0:
                draws = mean + np.random.default_rng(SEED).normal(size=(1000, n_weights)) @ cholesky.T
                weights = cut(draws)
            else:
                if compiled is None:
                    model = models.informed_bnn(X, y, mean=mean, cholesky=cholesky, n_hidden=N_HIDDEN)
                    compiled = sampling.compile_nuts(fuse(model))
                told = compiled.with_data(X=X, labels=y, mean=mean, cholesky=cholesky)
                fit = sampling.sample_nuts(told, seed=SEED, draws=500, tune=500, target_accept=0.9)
                joined = prediction.join_groups([fit])
                verdict = diagnostics.verdict({"grid": prediction.predict_groups(joined, data.grid(12))}, fit)
                if not verdict.converged:
                    raise SystemExit(f"{name}, {n} points: {verdict}; a fit that fails is not shown")
                weights = {key: np.concatenate(value[:, :, 0]) for key, value in joined.items()}
            p_test = prediction.predict_probability(weights, new.X_test).mean(axis=0)
            found[name] = metrics.score(p_test, new.y_test)["accuracy"]
            plots.plot_surface(prediction.predict_probability(weights, grid).mean(axis=0), ax)
            if n:
                plots.plot_points(X, y, ax, size=26, label=False)
            ax.set_title(f"{name}: {found[name]:.0f} % right" if n else f"{name}, before any moment", fontsize=10)
        figure.supxlabel("first measurement (scaled)", fontsize=9)
        figure.supylabel("second measurement (scaled)", fontsize=9)
        yield str(n), figure, describe_size(n, found)


def cut(draws):
    """Weights w1, w2, w3 of flat draws (draw, weight)."""
    w1, w2, w3 = np.split(draws, [24, 168], axis=1)
    return {"w1": w1.reshape(-1, 2, 12), "w2": w2.reshape(-1, 12, 12), "w3": w3}


def find_learned_prior(posterior):
    """Centre of the aligned group means, and the group sds around it, as in the chapter `informed_priors`."""
    labelling = priors.align_posterior(posterior, seed=SEED)
    means = {f"w{k}": np.concatenate(posterior[f"mu{k}"].values) for k in (1, 2, 3)}
    centre = priors.flatten(symmetry.relabel(labelling, means)).mean(axis=0)
    sds = [np.sqrt(np.mean(posterior[f"sd{k}"].values ** 2)) for k in (1, 2, 3)]
    return centre, np.diag(np.repeat(sds, [24, 144, 12]))


def describe_size(n, found):
    """Alternative text of one picture of `draw_new_category`."""
    right = " and ".join(f"{value:.0f} percent with {name}" for name, value in found.items())
    if n == 0:
        return (
            "Two maps of the probability of an attack, for a newcomer without a labelled moment. "
            "N(0, 1) has no opinion anywhere; the learned prior is pale, with an S-shaped boundary."
        )
    moments = "one labelled moment" if n == 1 else f"{n} labelled moments"
    return (
        f"Two maps of the probability of an attack, for a newcomer with {moments}. "
        f"Of 500 other moments {right} are right."
    )


def draw_growth_curve():
    """One chick of `growth_curves` after 0 to 10 weighings, with the bands of the page."""
    page = run_cells(*CELLS["growth_curve"])
    if not page["verdict"].converged:
        raise SystemExit(f"{page['verdict']}; a fit that fails is not shown")
    own, draws = page["own"], page["draws"]
    for k in range(len(own) - 1):
        figure, ax = plt.subplots(figsize=(6.4, 3.8))
        page["draw_old"](ax)
        page["draw_chick"](own, k, ax, draws)
        ax.set(xlabel="age (days)", ylabel="weight (g)")
        found = page["predict_chick"](own[:k], [21], draws)
        low, high = page["find_quantiles"](*found, (0.05, 0.95))[:, 0]
        yield str(k), figure, describe_weighings(k, low, high, own["grams"].iloc[-1])


def describe_weighings(k, low, high, grams):
    """Alternative text of one picture of `draw_growth_curve`; the band and the weight on day 21, in grams."""
    after = "before any weighing" if k == 0 else f"after {k} weighing{'s' * (k > 1)}"
    return (
        f"The curve of one chick {after}, among the grey curves of forty others. The band of 90 percent ends on day 21 "
        f"between {low:.0f} and {high:.0f} grams; the chick is to weigh {grams} there."
    )


SLIDERS = {
    "growth_curve": ("Weighings so far", draw_growth_curve),
    "group_sd": ("Group standard deviations, times", draw_group_sd),
    "new_category": ("Labelled moments of the newcomer", draw_new_category),
}


def main(names):
    plots.use_style()
    for name in names or SLIDERS:
        if name not in SLIDERS:
            raise SystemExit(f"there is no slider {name!r}; there are: {', '.join(SLIDERS)}")
        label, draw = SLIDERS[name]
        write_frames(name, label, draw())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
