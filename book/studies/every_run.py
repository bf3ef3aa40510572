"""Does every run of the hierarchical network pass? Twenty new data sets, three sampler seeds each, until one does.

The chapters' network and settings (`hierarchical_nuts`). Each row is a run that goes on, by four more chains at a time,
as `sampling.sample_until` does: the verdict after the first four chains and at the end, CPU-seconds of sampling, and
whether a chain sat in a place of its own. All data sets are sampled with the shorter runs of today's chapters, too, and
half of them with half the warm-up and more draws.
Since the truth of these data is known, the last columns are how often 90 % intervals of the probability hold it.
"""

import time
import warnings
from functools import lru_cache

import numpy as np
from bookkit import data, models
from hbnn import diagnostics, fuse, prediction, sampling

from studies import _fits

MEASURED = False
DATA_SEEDS = tuple(range(401, 421))
SEEDS = (11, 12, 13)  # other data sets and other seeds than any page's or study's
SETTINGS = {
    "600 + 850": {"draws": 850, "tune": 600, "target_accept": 0.9},  # the chapters' when the study was made
    "500 + 600": {"draws": 600, "tune": 500, "target_accept": 0.9},  # and today
    "300 + 1400": {"draws": 1400, "tune": 300, "target_accept": 0.9},
}
FOREIGN = 4  # sds: a chain whose mean of a group sd is so far from the other chains' is in a place of its own
CASES = [
    *({"settings": "600 + 850", "data_seed": d, "seed": seed} for d in DATA_SEEDS for seed in SEEDS),
    *({"settings": "500 + 600", "data_seed": d, "seed": SEEDS[0]} for d in DATA_SEEDS),
    *({"settings": "300 + 1400", "data_seed": d, "seed": SEEDS[0]} for d in DATA_SEEDS[:10]),
]
UNCOMPARED = ("cpu_first", "cpu_seconds")


def block(case):
    """The seeds of a data set are one task."""
    return case["settings"], case["data_seed"]


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 75


@lru_cache
def compile_network():
    """Compiled once; data sets are swapped."""
    moons = data.rotated_moons(seed=DATA_SEEDS[0])
    return sampling.compile_nuts(fuse(models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=_fits.N_HIDDEN)))


def compute(settings, data_seed, seed):
    """Verdicts, costs, places of chains, and coverage (%, with the standard error over categories) of one run."""
    moons = data.rotated_moons(seed=data_seed)
    compiled = compile_network().with_data(X=moons.X_train, labels=moons.y_train)
    first, spent = {}, 0.0

    def identify(posterior):
        return _fits.list_quantities({"posterior": posterior}, moons)

    def sample(random_seed):
        nonlocal spent
        start = time.process_time()
        tree = sampling.sample_nuts(compiled, seed=random_seed, **SETTINGS[settings])
        spent += time.process_time() - start
        if not first:
            first.update(_describe(diagnostics.verdict(identify(tree["posterior"].to_dataset()), tree)))
            first["cpu"] = round(spent, 1)
        return tree

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The verdict still fails")  # column "converged" says it
        tree = sampling.sample_until(identify, random_seed=seed, sample=sample)
    posterior = tree["posterior"].to_dataset()
    found = _describe(diagnostics.verdict(identify(posterior), tree))
    row = {"runs": len(tree.attrs["verdicts"]), "cpu_seconds": round(spent, 1)} | found
    row |= {f"{name}_first": value for name, value in first.items()}
    row |= {"foreign": find_foreign(posterior), "gradients": int(tree["sample_stats"]["n_steps"].sum())}
    row |= {f"sd{k}": [round(float(m), 4) for m in posterior[f"sd{k}"].mean("draw")] for k in (1, 2, 3)}
    return row | _fits.measure_coverage(lambda X: prediction.predict_groups(posterior, X, activation="tanh"), moons)


def _describe(found):
    return {
        "rhat": found.rhat, "rhat_at": found.rhat_at.split("[")[0], "ess": found.ess, "ess_tail": found.ess_tail,
        "divergences": found.divergences, "converged": found.converged,
    }  # fmt: skip


def find_foreign(posterior):
    """Numbers of chains in a place of their own, judged by the logs of the group sds (list of int)."""
    sds = np.log(np.stack([posterior[f"sd{k}"].values for k in (1, 2, 3)], axis=-1))
    means, within = sds.mean(axis=1), np.median(sds.std(axis=1), axis=0)
    apart = np.abs(means - np.median(means, axis=0)) / within
    return [int(c) for c in np.flatnonzero((apart > FOREIGN).any(axis=1))]
