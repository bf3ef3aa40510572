"""ADVI on the hierarchical network: does it tell the story that NUTS tells? Mean field, over starts.

The articles' data, and the optimiser that page `approximations` teaches. "failed" is a fit whose loss or weights became
NaN; its other numbers are missing.
"""

import numpy as np
from bookkit import models
from hbnn import fuse, prediction, sampling

from studies import _approximations, _fits

MEASURED = False
N_DRAWS = 1000
WAYS = {"mean field": 12, "mean field, 5 units": 5}  # units in each layer
CASES = [{"way": way, "seed": seed} for way in WAYS for seed in range(1, 11)]


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 15


def compute(way, seed):
    """Final loss, group sds and test scores."""
    moons = _fits.load_moons("legacy")
    model = fuse(models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(WAYS[way], WAYS[way])))
    try:
        fit = sampling.fit_advi(model, seed=seed, **_approximations.ADVI)
        loss, draws = _approximations.measure_loss(fit), fit.draw(N_DRAWS, seed=seed)
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
