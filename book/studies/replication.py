"""Do the book's claims hold up? Twenty data sets, and cheaper ways to the posterior.

Three parts, one row for each fit of a data set by a method:

- "data sets": twenty data sets that no other page shows, five methods;
- "approximations": the hierarchical network on the same data sets by other ways than NUTS, and peers that have no
  posterior; "tuning" is how the peers got their weight decay, on other data.

The hierarchical network is sampled until its verdict holds, by four more chains at a time and sixteen at most.
"""

import time
from functools import lru_cache

import numpy as np
from bnn import data, models, predict
from bnn.fuse import fuse

from studies import _approximations, _fits, _replicate

MEASURED = False
DATA_SEEDS = tuple(range(301, 321))
TUNING_SEEDS = (101, 102, 103)
SAMPLER = {"draws": 1000, "tune": 600}  # the hierarchical network, four chains at a time
SAMPLER_ONE = {"draws": 500, "tune": 300}  # the network of one category
ALPHAS = (0.01, 0.1, 0.3, 1, 3, 10)
ALPHA = {  # the best mean lpd on the tuning data, rows of part "tuning"
    "deep ensemble": 0.3, "one-hot MLP": 3, "one-hot ensemble": 3, "learned angles": 3,
}  # fmt: skip

POSTERIORS = ("unpooled, N(0, 1)", "control, learned scales", "hierarchical", "informed per layer", "informed jointly")
APPROXIMATIONS = {
    "mean-field ADVI": _approximations.fit_mean_field,
    "full-rank ADVI, 5 units": _approximations.fit_full_rank,
    "Pathfinder": _approximations.fit_pathfinder,
    "Laplace": _approximations.fit_laplace,
    "Laplace, linearised": _approximations.fit_laplace,
}
PEERS = {
    "deep ensemble": _approximations.fit_ensemble,
    "one-hot MLP": _approximations.fit_one_hot,
    "one-hot ensemble": _approximations.fit_one_hot_ensemble,
    "learned angles": _approximations.fit_angles,
}


def _list_cases():
    def case(part, method, level, data_seed):
        return {"part": part, "method": method, "level": level, "data_seed": data_seed, "seed": 1}

    for data_seed in DATA_SEEDS:
        yield from (case("data sets", method, "", data_seed) for method in POSTERIORS)
    for method in PEERS:
        for data_seed in TUNING_SEEDS:
            yield from (case("tuning", method, str(alpha), data_seed) for alpha in ALPHAS)
    for data_seed in DATA_SEEDS:
        yield from (case("approximations", method, "", data_seed) for method in (*APPROXIMATIONS, *PEERS))


CASES = list(_list_cases())
RECOMPUTED = [case for case in CASES if not case["method"].startswith("informed")]  # they need another posterior first
UNCOMPARED = ("cpu_seconds",)


def block(case):
    """What one task computes: rows that need the same posterior belong together."""
    method = "hierarchical" if case["method"].startswith("informed") else case["method"]
    if case["part"] == "tuning":
        return case["part"], method
    return case["part"], method, case["data_seed"]


def estimate(case):
    """CPU-seconds that a row takes on the machine of the tables, roughly: for the progress bar and the tests."""
    part, method = case["part"], case["method"]
    if method in PEERS:
        return {"deep ensemble": 8, "one-hot MLP": 1, "one-hot ensemble": 12, "learned angles": 20}[method]
    if part == "approximations":
        return {"mean-field ADVI": 12, "full-rank ADVI, 5 units": 35, "Pathfinder": 30}.get(method, 15)
    return {"hierarchical": 80, "unpooled, N(0, 1)": 22, "control, learned scales": 37}.get(method, 55)


PLACES = ("train", "test", "ring1", "ring2", "ring3", "ring4")
COVERAGE = [f"cover_{place}{end}" for place in PLACES for end in ("", "_se")]
EMPTY = _replicate.EMPTY | dict.fromkeys(["loss", "khat", "flat_directions", *COVERAGE, "too_sure"])


def compute(part, method, level, data_seed, seed):
    """Scores with their errors, calibration, coverage, diagnostics, group sds and CPU-seconds of one fit.

    Columns as in `_replicate`; None where a fit has no such thing. `level` is the weight decay that a peer of part
    "tuning" tries. `cover_…` is how often 90 % intervals hold the true probability (`_fits.measure_coverage`), not
    where a method has one probability and no interval. `cpu_seconds` is all that the fit takes, compiling included; an
    informed row's has the alignment in it where it is the first to need it, but not the hierarchical run, whose draws
    it shares.
    """
    moons = data.rotated_moons(seed=data_seed)
    start = time.process_time()
    try:
        if method in PEERS:
            predict_at = PEERS[method](moons, float(level) if part == "tuning" else ALPHA[method], seed)
            p_train, p_test = (predict_at(X).mean(axis=(0, 1)) for X in (moons.X_train, moons.X_test))
            found = {}
        elif method in APPROXIMATIONS:
            p_train, p_test, found, predict_at = _approximate(method, moons, seed)
        else:
            p_train, p_test, found, predict_at = _sample(method, data_seed, seed, moons)
    except FloatingPointError as error:
        seconds = round(time.process_time() - start, 1)
        return EMPTY | {"failed": True, "reason": str(error)[:200], "cpu_seconds": seconds}
    row = EMPTY | {"failed": False, "cpu_seconds": round(time.process_time() - start, 1)} | found
    if part != "tuning" and method != "one-hot MLP":
        row |= _fits.measure_coverage(predict_at, moons)
    return row | _replicate.score_fit(p_train, p_test, moons)


def _sample(method, data_seed, seed, moons):
    """Train probabilities, draws of test probabilities, what a row says of the run, and a function that predicts."""
    if method == "hierarchical":
        return _replicate.describe_hierarchical(_run_hierarchical(data_seed, seed), moons)
    if method.startswith("informed"):
        mean, cholesky = _learn(data_seed, seed)[method]
        compiled = _fits.compile_informed().with_data(mean=mean, cholesky=cholesky)
    else:
        compiled = _fits.compile_unpooled(dtype="float64")
        if method.startswith("control"):
            compiled = compiled.with_data(prior_sd=_fits.read_scales())
    return _replicate.sample_unpooled(compiled, moons, seed, **SAMPLER_ONE)


@lru_cache(maxsize=1)
def _run_hierarchical(data_seed, seed):
    moons = data.rotated_moons(seed=data_seed)
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=_fits.N_HIDDEN)
    return _replicate.sample_hierarchical(fuse(model), moons, seed, **SAMPLER)


@lru_cache(maxsize=1)
def _learn(data_seed, seed):
    return _fits.learn_priors(_run_hierarchical(data_seed, seed)["posterior"].to_dataset())


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
        return predict.predict_groups(posterior, X)

    p = [predict_at(X)[0] for X in (moons.X_train, moons.X_test)]
    return p[0].mean(axis=0), p[1], found, predict_at
