"""How large are the weights of a hierarchical network? Root mean square of each layer, on data that no page shows.

The control of `unpooled` and `informed_priors` takes its scales from here: zero-mean priors whose scale was learned on
other data sets than those that it is judged on.
"""

from hbnn import prediction, priors

from studies import _fits

MEASURED = False
CASES = [{"data": str(seed), "seed": 1} for seed in (101, 102, 103)]
SETTINGS = {"draws": 700, "tune": 600}


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 60


def compute(data, seed):
    """Root mean square of the weights of all categories, by layer, and the verdict on the run."""
    moons = _fits.load_moons(data)
    tree = _fits.fit_hierarchical(moons, seed, **SETTINGS)
    scales = priors.measure_scales(prediction.combine_weights(tree["posterior"]))
    return {f"scale{k}": float(scale) for k, scale in enumerate(scales, 1)} | _fits.check_hierarchical(tree, moons)
