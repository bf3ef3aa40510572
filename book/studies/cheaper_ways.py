"""Rivals of the hierarchical network by NUTS on twenty data sets: cheaper posteriors of it, and other methods.

The data sets are those of study `replication`. Rows of part "tuning" are how methods got their weight decay, and where
they have one a rate, a width, a rank or a scale, on other data.
"""

import time

import numpy as np
from bookkit import data, models
from hbnn import fuse, prediction

from studies import _approximations, _fits, _replicate, _rivals, replication

MEASURED = False
RESCALED, TRUNK = "Gaussian process each, rescaled", "one trunk, a head each"
TUNING_SEEDS = (101, 102, 103)
TUNING = {RESCALED: range(101, 111)}  # as the process itself
ALPHAS = (0.01, 0.1, 0.3, 1, 3, 10)  # weight decay
ONE_NUMBER = {"Gaussian process, all": (2, 4, 6), RESCALED: (1.3, 1.35, 1.4, 1.45, 1.5, 1.55, 1.6)}  # rank, scale
WIDTHS = (12, 24)  # of the trunk's layers
RATES = {"one-hot, SWAG": (0.03, 0.1, 0.3, 1), "one-hot, dropout": (0.02, 0.05, 0.1, 0.2)}
CHOSEN = {  # the best mean lpd on the tuning data, rows of part "tuning"
    "deep ensemble": "0.3", "one-hot MLP": "3", "one-hot ensemble": "3", "learned angles": "3",
    "one-hot, last-layer Laplace": "3", "one-hot, SWAG": "1, 1", "one-hot, dropout": "1, 0.02",
    "Gaussian process, all": "2", RESCALED: "1.45", TRUNK: "1, 12",
}  # fmt: skip

APPROXIMATIONS = {
    "mean-field ADVI": _approximations.fit_mean_field,
    "full-rank ADVI, 5 units": _approximations.fit_full_rank,
    "Pathfinder": _approximations.fit_pathfinder,
    "Laplace": _approximations.fit_laplace,
    "Laplace, linearised": _approximations.fit_laplace,
}
PEERS = {  # tuned
    "deep ensemble": _approximations.fit_ensemble,
    "one-hot MLP": _approximations.fit_one_hot,
    "one-hot ensemble": _approximations.fit_one_hot_ensemble,
    "learned angles": _approximations.fit_angles,
    "one-hot, last-layer Laplace": _rivals.fit_last_layer,
    "one-hot, SWAG": _rivals.fit_swag,
    "one-hot, dropout": _rivals.fit_dropout,
    "Gaussian process, all": lambda moons, rank, seed: _rivals.fit_shared_process(moons, int(rank)),
    RESCALED: lambda moons, scale, seed: _rivals.fit_rescaled_process(moons, scale),
    TRUNK: lambda moons, alpha, seed, width: _rivals.fit_trunk(moons, alpha, seed, int(width)),
}
AS_THEY_ARE = {
    "7 weighted neighbours each": _rivals.fit_neighbours,
    "Gaussian process each": _rivals.fit_process,
    "Gaussian process, angles": _rivals.fit_shared_process,
}
SAMPLED, CUBIC = "learned angles, NUTS", "cubic terms, NUTS"
SOME = {SAMPLED: (301, *range(306, 311))}  # not all twenty, for time: three minutes each
NO_INTERVAL = ("one-hot MLP", "7 weighted neighbours each", RESCALED)


def list_levels(method):
    """What a method tries on the tuning data: ranks, scales, or weight decays, each with all of its rates or widths."""
    if method in ONE_NUMBER:
        return [str(number) for number in ONE_NUMBER[method]]
    if method == TRUNK:
        return [f"{alpha}, {width}" for alpha in ALPHAS for width in WIDTHS]
    if method in RATES:
        return [f"{alpha}, {rate}" for alpha in ALPHAS[1:] for rate in RATES[method]]
    return [str(alpha) for alpha in ALPHAS]


def _list_cases():
    def case(part, method, level, data_seed):
        return {"part": part, "method": method, "level": level, "data_seed": data_seed, "seed": 1}

    for method in PEERS:
        for data_seed in TUNING.get(method, TUNING_SEEDS):
            yield from (case("tuning", method, level, data_seed) for level in list_levels(method))
    for data_seed in replication.DATA_SEEDS:
        methods = (*APPROXIMATIONS, *PEERS, *AS_THEY_ARE, SAMPLED, CUBIC)
        asked = [method for method in methods if data_seed in SOME.get(method, replication.DATA_SEEDS)]
        yield from (case("data sets", method, "", data_seed) for method in asked)


CASES = list(_list_cases())
UNCOMPARED = ("cpu_seconds",)


def block(case):
    """What one task computes: one row, or a peer's tuning on one data set."""
    return case["part"], case["method"], case["data_seed"]


def estimate(case):
    """CPU-seconds that a row takes on the machine of the tables, roughly: for the progress bar and the tests."""
    seconds = {"deep ensemble": 8, "one-hot MLP": 1, "one-hot ensemble": 12, "learned angles": 20}
    seconds |= {"mean-field ADVI": 80, "full-rank ADVI, 5 units": 35, "Pathfinder": 30, SAMPLED: 120}
    seconds |= {"Gaussian process, all": 40, "Gaussian process, angles": 30} | dict.fromkeys(RATES, 8)
    seconds |= {"7 weighted neighbours each": 1, "Gaussian process each": 1, "one-hot, last-layer Laplace": 1}
    seconds |= {RESCALED: 1, TRUNK: 8, CUBIC: 25}
    return seconds.get(case["method"], 15)


EMPTY = replication.EMPTY | dict.fromkeys(["loss", "khat", "flat_directions"])


def compute(part, method, level, data_seed, seed):
    """Scores with their errors, calibration, coverage, group sds and CPU-seconds of one fit, as in `replication`.

    `level` is the rank, the scale, the weight decay, or the decay and the rate or width, that a row of part "tuning"
    tries. A method that has one probability and no interval has no coverage.
    """
    moons = data.rotated_moons(seed=data_seed)
    start = time.process_time()
    try:
        if method not in APPROXIMATIONS:
            predict_at, found = fit_rival(method, level or CHOSEN.get(method), moons, seed)
            p_train, p_test = (predict_at(X).mean(axis=(0, 1)) for X in (moons.X_train, moons.X_test))
        else:
            p_train, p_test, found, predict_at = _approximate(method, moons, seed)
    except FloatingPointError as error:
        seconds = round(time.process_time() - start, 1)
        return EMPTY | {"failed": True, "reason": str(error)[:200], "cpu_seconds": seconds}
    row = EMPTY | {"failed": False, "cpu_seconds": round(time.process_time() - start, 1)} | found
    if part != "tuning" and method not in NO_INTERVAL:
        row |= _fits.measure_coverage(predict_at, moons)
    return row | _replicate.score_fit(p_train, p_test, moons)


def fit_rival(method, level, moons, seed):
    """A function that predicts, and what a row says of the run."""
    if method == SAMPLED:
        return _rivals.sample_angles(moons, seed)
    if method == CUBIC:
        return _rivals.sample_cubic(moons, seed)
    if method in AS_THEY_ARE:
        return AS_THEY_ARE[method](moons), {}
    first, *second = map(float, level.split(", "))
    return PEERS[method](moons, first, seed, *second), {}


def _approximate(method, moons, seed):
    """Train probabilities, draws of test probabilities, what a row says of the fit, and a function that predicts."""
    n_hidden = (5, 5) if "5 units" in method else _fits.N_HIDDEN
    model = fuse(models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=n_hidden))
    draws, found = APPROXIMATIONS[method](model, seed)
    linear = {name: found.pop(name) for name in ("mode", "shifts") if name in found}
    if not all(np.isfinite(values).all() for values in draws.values()):
        raise FloatingPointError("draws are not finite")
    found |= _replicate.describe_sds([draws[f"sd{k}"] for k in (1, 2, 3)])
    posterior = {name: values[None] for name, values in draws.items()}

    def predict_at(X):
        if method.endswith("linearised"):
            return _approximations.predict_linearised(model, X=X, **linear)[None]
        return prediction.predict_groups(posterior, X, activation="tanh")

    p = [predict_at(X)[0] for X in (moons.X_train, moons.X_test)]
    return p[0].mean(axis=0), p[1], found, predict_at
