"""Unpooled, control, hierarchical and informed networks on nine data sets: the articles' and eight of ours.

All networks are 2-12-12-1 but for the articles' five units. Test scores are of the mean probability; their standard
errors are over the 18 categories.
"""

from functools import lru_cache

import numpy as np
from hbnn import prediction, sampling

from studies import _fits

MEASURED = False
UNPOOLED = {
    "unpooled, N(0, 1), 5 units": (1.0, 1.0, 1.0),
    "unpooled, N(0, 1)": (1.0, 1.0, 1.0),
    "control, 1/sqrt(fan-in)": _fits.fan_in_scales(),
    "control, learned scales": None,
}
INFORMED = ("informed per layer", "informed jointly", "informed, one raw chain")
METHODS = (*UNPOOLED, "hierarchical", *INFORMED)
DATA_SETS = ("legacy", *(str(seed) for seed in range(1, 9)))
CASES = [{"data": name, "method": method, "seed": 1} for name in DATA_SETS for method in METHODS]
RECOMPUTED = [case for case in CASES if case["method"] in UNPOOLED]  # the others need the hierarchical posterior first


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return {"hierarchical": 120}.get(case["method"], 40 if case["method"] in UNPOOLED else 180)


def compute(data, method, seed):
    """Train accuracy, test scores with errors, and diagnostics."""
    moons = _fits.load_moons(data)
    if method == "hierarchical":
        tree = _fits.fit_hierarchical(moons, seed)
        weights, checked = tree["posterior"], _fits.check_hierarchical(tree, moons)
        checked |= {"passed": 18 * checked["converged"]}
        sds = [tree["posterior"][f"sd{k}"].values for k in (1, 2, 3)]
        checked |= {f"sd{k}": float(sd.mean()) for k, sd in enumerate(sds, 1)}
        checked |= {"p_last_largest": float((sds[2] > np.maximum(sds[0], sds[1])).mean())}
    else:
        trees = sampling.sample_groups(
            _prepare(data, method, seed), moons.X_train, moons.y_train, seed=seed, **_fits.SHORT
        )
        weights, checked = prediction.join_groups(trees), _fits.check_groups(trees, moons)
        checked |= dict.fromkeys(("sd1", "sd2", "sd3", "p_last_largest"))
    p = prediction.predict_groups(weights, moons.X_train, activation="tanh")
    loo = _fits.leave_one_out(np.log(np.where(moons.y_train == 1, p, 1 - p)))
    p_test = prediction.predict_groups(weights, moons.X_test, activation="tanh").mean(axis=(0, 1))
    return _fits.score_probabilities(p.mean(axis=(0, 1)), p_test, moons) | checked | loo


def _prepare(data, method, seed):
    """A compiled network with the prior of a method."""
    if method in UNPOOLED:
        scales = UNPOOLED[method] or _fits.read_scales()
        return _fits.compile_unpooled((5, 5) if "5 units" in method else _fits.N_HIDDEN).with_data(prior_sd=scales)
    mean, cholesky = _learn(data, seed)[method]
    return _fits.compile_informed().with_data(mean=mean, cholesky=cholesky)


@lru_cache(maxsize=1)
def _learn(data, seed):
    return _fits.learn_priors(_fits.fit_hierarchical(_fits.load_moons(data), seed)["posterior"])
