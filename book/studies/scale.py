"""A thousand groups, and a million rows: what NUTS costs there, and what minibatch ADVI has to say by then.

The network and the generator of the chapters, with more groups or more rows in each, on one core; compiling is apart.
NUTS is run where it ends within minutes, with two short chains: enough for what a draw costs and for predictions, not
for a verdict. At the larger sizes only its gradient is timed.
"""

import time
from itertools import pairwise

import numpy as np
import pymc as pm
from bookkit import data, models
from hbnn import diagnostics, fuse, metrics, prediction, sampling

from studies import _fits
from studies.readouts_cost import time_gradient

MEASURED = True
SIZES = {"1,000 x 50": (1_000, 50), "2,000 x 50": (2_000, 50), "1,000 x 1,000": (1_000, 1_000)}
CASES = [{"size": size, "method": method} for size in SIZES for method in ("gradient", "minibatch ADVI")]
CASES.insert(1, {"size": "1,000 x 50", "method": "NUTS"})
DATA_SEED, SEED, N_TEST = 451, 1, 20
NUTS = {"draws": 200, "tune": 200, "chains": 2, "target_accept": 0.8}
BATCH, STEPS, RATE, N_DRAWS = 1_000, 15_000, 0.01, 200


def compute(size, method):
    """CPU-seconds, what they were spent on, and the lpd at test points with its error over groups."""
    n_groups, n_train = SIZES[size]
    moons = data.rotated_moons(seed=DATA_SEED, n_groups=n_groups, n_train=n_train, n_test=N_TEST)
    row = dict.fromkeys(("us_gradient", "gradients_draw", "ess", "cpu_seconds", "lpd", "lpd_error"))
    if method == "minibatch ADVI":
        return row | fit_minibatch(moons)
    model = fuse(models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=_fits.N_HIDDEN))
    if method == "gradient":
        return row | {"us_gradient": round(time_gradient(model))}
    return row | sample(model, moons)


def sample(model, moons):
    """Two short chains of NUTS."""
    compiled = sampling.compile_nuts(model)
    start = time.process_time()
    tree = sampling.sample_nuts(compiled, seed=SEED, **NUTS)
    seconds = time.process_time() - start
    p = prediction.predict_groups(tree["posterior"].to_dataset(), moons.X_test, activation="tanh")
    found = diagnostics.diagnose(p.reshape(*p.shape[:2], -1)[:, :, ::37])
    row = {"gradients_draw": round(float(tree["sample_stats"]["n_steps"].mean())), "ess": float(found["ess"].min())}
    return row | {"cpu_seconds": round(seconds)} | score(p, moons)


def fit_minibatch(moons):
    """Mean-field ADVI by batches of rows, the weights of each row's own group looked up."""
    n_groups, n_train = moons.y_train.shape
    widths = (2, *_fits.N_HIDDEN)
    shapes = [*pairwise(widths), widths[-1:]]
    rows, labels = moons.X_train.reshape(-1, 2), moons.y_train.ravel()
    rng = np.random.default_rng(SEED)  # at zero, every unit is every other's twin
    start = {f"mu{k}": rng.normal(size=shape) for k, shape in enumerate(shapes, start=1)}
    with pm.Model():
        X, group, y = pm.Minibatch(rows, np.repeat(np.arange(n_groups), n_train), labels, batch_size=BATCH)
        a = X
        for k, shape in enumerate(shapes, start=1):
            mu, sd = pm.Normal(f"mu{k}", 0, 1, shape=shape), pm.HalfNormal(f"sd{k}", 1)
            w = mu + sd * pm.Normal(f"z{k}", 0, 1, shape=(n_groups, *shape))[group]
            a = pm.math.tanh((a[:, :, None] * w).sum(axis=1)) if len(shape) == 2 else (a * w).sum(axis=1)
        pm.Bernoulli("y", logit_p=a, observed=y, total_size=len(labels))
        start_time = time.process_time()
        approx = pm.fit(
            STEPS, obj_optimizer=pm.adam(learning_rate=RATE), start=start, random_seed=SEED, progressbar=False
        )
        seconds = time.process_time() - start_time
        posterior = approx.sample(N_DRAWS, random_seed=SEED)["posterior"].to_dataset()
    return {"cpu_seconds": round(seconds)} | score(
        prediction.predict_groups(posterior, moons.X_test, activation="tanh"), moons
    )


def score(p, moons):
    """The lpd at test points, nats a point, and its standard error over groups."""
    each = metrics.score_groups(p.mean(axis=(0, 1)), moons.y_test)["lpd"]
    return {"lpd": float(each.mean()), "lpd_error": float(each.std(ddof=1) / np.sqrt(len(each)))}
