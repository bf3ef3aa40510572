"""Do the book's claims hold up? Twenty data sets that no other page shows, five methods.

The hierarchical network is sampled until its verdict holds, by four more chains at a time and sixteen at most.
"""

import time
from functools import lru_cache

from bookkit import data, models
from hbnn import fuse

from studies import _fits, _replicate

MEASURED = False
DATA_SEEDS = tuple(range(301, 321))
SAMPLER = {"draws": 1000, "tune": 600}  # the hierarchical network, four chains at a time
SAMPLER_ONE = {"draws": 500, "tune": 300}  # the network of one category
POSTERIORS = ("unpooled, N(0, 1)", "control, learned scales", "hierarchical", "informed per layer", "informed jointly")
CASES = [{"method": method, "data_seed": data_seed, "seed": 1} for data_seed in DATA_SEEDS for method in POSTERIORS]
RECOMPUTED = [case for case in CASES if not case["method"].startswith("informed")]  # they need another posterior first
UNCOMPARED = ("cpu_seconds",)


def block(case):
    """What one task computes: rows that need the same posterior belong together."""
    method = "hierarchical" if case["method"].startswith("informed") else case["method"]
    return method, case["data_seed"]


def estimate(case):
    """CPU-seconds that a row takes on the machine of the tables, roughly: for the progress bar and the tests."""
    return {"hierarchical": 80, "unpooled, N(0, 1)": 22, "control, learned scales": 37}.get(case["method"], 55)


PLACES = ("train", "test", "ring1", "ring2", "ring3", "ring4")
COVERAGE = [f"cover_{place}{end}" for place in PLACES for end in ("", "_se")]
EMPTY = _replicate.EMPTY | dict.fromkeys([*COVERAGE, "too_sure"])


def compute(method, data_seed, seed):
    """Scores with their errors, calibration, coverage, diagnostics, group sds and CPU-seconds of one fit.

    Columns as in `_replicate`; None where a fit has no such thing. `cover_…` is how often 90 % intervals hold the true
    probability (`_fits.measure_coverage`). `cpu_seconds` is all that the fit takes, compiling included; an informed
    row's has the alignment in it where it is the first to need it, but not the hierarchical run, whose draws it shares.
    """
    moons = data.rotated_moons(seed=data_seed)
    start = time.process_time()
    p_train, p_test, found, predict_at = _sample(method, data_seed, seed, moons)
    row = EMPTY | {"failed": False, "cpu_seconds": round(time.process_time() - start, 1)} | found
    return row | _fits.measure_coverage(predict_at, moons) | _replicate.score_fit(p_train, p_test, moons)


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
