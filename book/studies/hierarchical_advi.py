"""ADVI on the hierarchical network: does it tell the story that NUTS tells? Mean field, over seeds.

The articles' data. "failed" is a fit whose loss or weights became NaN; its other numbers are missing.
"""

import numpy as np
from bookkit import models
from hbnn import fuse, prediction, sampling

from studies import _fits

MEASURED = False
N_STEPS, N_DRAWS = 30_000, 1000
WAYS = {
    "mean field": (12, "random"),
    "mean field, start at zero": (12, "zero"),
    "mean field, 5 units": (5, "random"),
}
SEEDS = {"mean field": 6, "mean field, start at zero": 3, "mean field, 5 units": 6}
CASES = [{"way": way, "seed": seed} for way, n_seeds in SEEDS.items() for seed in range(1, n_seeds + 1)]


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 15


def compute(way, seed):
    """Final loss, group sds and test scores."""
    n_hidden, start = WAYS[way]
    moons = _fits.load_moons("legacy")
    model = fuse(models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(n_hidden, n_hidden)))
    try:
        fit = sampling.fit_advi(model, N_STEPS, seed=seed, start=start)
        loss, draws = fit.loss[-1000:].mean(), fit.draw(N_DRAWS, seed=seed)
    except FloatingPointError:  # PyMC's word for NaN
        loss, draws = np.nan, {}
    failed = not (np.isfinite(loss) and all(np.isfinite(value).all() for value in draws.values()))
    row = {"failed": failed, "loss": None if failed else float(loss)}
    if failed:
        names = ("sd1", "sd2", "sd3", "train_accuracy", "accuracy", "accuracy_se", "lpd", "lpd_se")
        return row | dict.fromkeys((*names, "brier", "brier_se"))
    posterior = {name: value[None] for name, value in draws.items()}
    row |= {f"sd{k}": float(draws[f"sd{k}"].mean()) for k in (1, 2, 3)}
    p = [
        prediction.predict_groups(posterior, X, activation="tanh").mean(axis=(0, 1))
        for X in (moons.X_train, moons.X_test)
    ]
    scores = _fits.score_probabilities(*p, moons)
    return row | {name: value for name, value in scores.items() if not name.endswith("_groups")}
