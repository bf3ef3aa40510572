"""One hierarchical posterior by five engines, by both likelihoods and in single precision: do they agree?

The articles' data, the book's network. Compared are identified numbers: probabilities at six points of six categories,
the group sds, the log likelihood of the training points. Each mean has its Monte Carlo standard error.
"""

from functools import partial

import numpy as np
from bnn import data, diagnose, inference, models, predict

from studies.nuts_width import DRAWS, N_HIDDEN, TARGET, TUNE, check_run

MEASURED = False
WAYS = {
    "nutpie, fused": ("nutpie", "fused", "float64"),
    "nutpie, fused, float32": ("nutpie", "fused", "float32"),
    "nutpie, graph": ("nutpie", "graph", "float64"),
    "PyMC, fused": ("pymc", "fused", "float64"),
    "NumPyro, fused (as JAX)": ("numpyro", "fused", "float64"),
    "BlackJAX, fused (as JAX)": ("blackjax", "fused", "float64"),
}
CASES = [{"way": way, "seed": 1} for way in WAYS]
RECOMPUTED = CASES[:2]  # the others take minutes
POINTS = ((0, 14), (2, 44), (5, 55), (9, 27), (12, 72), (17, 90))  # category, point of a grid of 10 x 10


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 60 if case["way"].startswith("nutpie, fused") else 300


def compute(way, seed):
    """Mean and Monte Carlo error of each quantity; R-hat and ESS of all that is identified."""
    engine, likelihood, dtype = WAYS[way]
    moons = data.legacy_rotated_moons()
    build = partial(models.hierarchical_bnn, moons.X_train, moons.y_train, n_hidden=(N_HIDDEN, N_HIDDEN))
    model = build(likelihood=likelihood, dtype=dtype)
    settings = {"draws": DRAWS, "tune": TUNE, "target_accept": TARGET}
    tree = inference.sample_nuts(model, seed=seed, engine=engine, **settings)
    found, loglik = check_run(tree, moons)
    grid = predict.predict_groups(tree["posterior"], data.grid(10))
    values = {f"p_{g}_{n}": grid[:, :, g, n] for g, n in POINTS}
    values |= {f"sd{k}": tree["posterior"][f"sd{k}"].values for k in (1, 2, 3)} | {"loglik": loglik}
    checked = diagnose.diagnose(np.stack(list(values.values()), axis=-1))
    means = {name: float(value.mean()) for name, value in values.items()}
    errors = {f"{name}_mcse": float(mcse) for name, mcse in zip(values, checked["mcse"], strict=True)}
    return found | means | errors | {"gradients_per_draw": float(tree["sample_stats"]["n_steps"].mean())}
