"""How many CPU-seconds until the verdict holds? Lean runs and the chapters' of then, side by side, on twenty data sets.

The lean settings, two thirds of the warm-up, half of the draws, and single precision in the likelihood, were chosen on
two other data sets (seeds 7001 and 7002, by gradients until the verdict held). A run goes on, by four more chains at a
time, as `sampling.sample_until` does. Since the truth of these data is known, the last columns are how often 90 %
intervals of the probability hold it: leaner runs should do no worse.
"""

import time
import warnings
from functools import lru_cache

from bookkit import data, models
from hbnn import diagnostics, fuse, prediction, sampling

from studies import _fits

MEASURED = True
SETTINGS = {
    "600 + 850": {"draws": 850, "tune": 600, "target_accept": 0.9},  # the chapters' when the study was made
    "400 + 500, float32": {"draws": 500, "tune": 400, "target_accept": 0.9},
}
SEED = 11
CASES = [{"data_seed": d, "settings": settings} for d in range(431, 451) for settings in SETTINGS]


@lru_cache
def compile_network(dtype):
    """Compiled once; data sets are swapped."""
    moons = data.rotated_moons(seed=CASES[0]["data_seed"])
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=_fits.N_HIDDEN)
    return sampling.compile_nuts(fuse(model, dtype=dtype))


def compute(data_seed, settings):
    """The verdict, what it cost, and coverage (%, with the standard error over categories)."""
    moons = data.rotated_moons(seed=data_seed)
    network = compile_network("float32" if "float32" in settings else None)
    compiled = network.with_data(X=moons.X_train, labels=moons.y_train)
    spent = []

    def identify(posterior):
        return _fits.list_quantities({"posterior": posterior}, moons)

    def sample(random_seed):
        start = time.process_time()
        tree = sampling.sample_nuts(compiled, seed=random_seed, **SETTINGS[settings])
        spent.append(round(time.process_time() - start, 1))
        return tree

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The verdict still fails")  # column "converged" says it
        tree = sampling.sample_until(identify, random_seed=SEED, sample=sample)
    posterior = tree["posterior"].to_dataset()
    found = diagnostics.verdict(identify(posterior), tree)
    row = {"cpu_seconds": round(sum(spent), 1), "runs": len(spent), "converged": found.converged, "rhat": found.rhat}
    row |= {"ess": found.ess, "ess_tail": found.ess_tail, "divergences": found.divergences}
    return row | _fits.measure_coverage(lambda X: prediction.predict_groups(posterior, X, activation="tanh"), moons)
