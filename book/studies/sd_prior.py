"""What does the prior of the group sds decide? HalfNormal(1), (2.5), (5), and one sd for each connection.

The book's network, on three data sets. With one sd for each connection, a layer's sd is their root mean square.
"""

import numpy as np
from hbnn import diagnostics, prediction

from studies import _fits

MEASURED = False
PRIORS = {
    "HalfNormal(1)": {},
    "HalfNormal(2.5)": {"sd_scale": 2.5},
    "HalfNormal(5)": {"sd_scale": 5.0},
    "HalfNormal(1), each connection": {"sd_per": "connection"},
}
DATA_SETS = ("legacy", "1", "2")
CASES = [{"data": name, "prior": prior, "seed": 1} for name in DATA_SETS for prior in PRIORS]
RECOMPUTED = CASES[:1]  # a minute and more each; the tests of `data_sets` compute others


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 300 if case["prior"].endswith("connection") else 100


def compute(data, prior, seed):
    """Mean and Monte Carlo error of each layer's sd, its order, test scores, verdict."""
    moons = _fits.load_moons(data)
    tree = _fits.fit_hierarchical(moons, seed, **PRIORS[prior])
    posterior = tree["posterior"]
    sds = np.stack([_measure_sd(posterior[f"sd{k}"].values) for k in (1, 2, 3)], axis=-1)
    mcse = diagnostics.diagnose(sds)["mcse"]
    row = {f"sd{k}": float(sds[..., k - 1].mean()) for k in (1, 2, 3)}
    row |= {f"sd{k}_mcse": float(mcse[k - 1]) for k in (1, 2, 3)}
    row |= {f"sd{k}_spread": float(sds[..., k - 1].std()) for k in (1, 2, 3)}
    row |= {"p_last_largest": float((sds[..., 2] > sds[..., :2].max(axis=-1)).mean())}
    p_train, p_test = (prediction.predict_groups(posterior, X).mean(axis=(0, 1)) for X in (moons.X_train, moons.X_test))
    gradients = {"gradients_per_draw": float(tree["sample_stats"]["n_steps"].mean())}
    return row | _fits.score_probabilities(p_train, p_test, moons) | _fits.check_hierarchical(tree, moons) | gradients


def _measure_sd(sd):
    return sd if sd.ndim == 2 else np.sqrt((sd**2).mean(axis=tuple(range(2, sd.ndim))))
