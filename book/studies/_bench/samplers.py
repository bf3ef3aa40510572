"""CPU seconds of effective draws of one posterior by NUTS in five ways, each with settings that suit it.

The posterior is that of the articles' 18 categories with 8 hidden units in each layer: the book's network, made narrow
enough for the slowest engine to finish. What is compared does not depend on a run's length: the seconds of four
warm-ups, and those of `WANTED` effective draws after them.
"""

from functools import partial

import numpy as np
import xarray as xr
from bookkit import data, models
from hbnn import diagnostics, fuse, prediction

from studies._bench import peers

N_HIDDEN, CHAINS, WANTED = (8, 8), 4, 400
# nutpie's are the book's. NumPyro's and BlackJAX's own windows, diagonal: tried on this posterior with seed 1 were 300
# steps at target 0.8 and 0.9, and for BlackJAX 600 at 0.8 (at 300 and 0.8 its scales had not met: 65 effective draws).
# These gave 400 effective draws in the fewest seconds, warm-up included.
BOOK = {"tune": 600, "draws": 850, "target_accept": 0.9}
SETTINGS = {
    "nutpie, fuse": BOOK,
    "nutpie, stock Numba": BOOK | {"draws": 500},  # no more than its price needs
    "nutpie, stock JAX": BOOK | {"draws": 500},
    "NumPyro, JAX by hand": {"tune": 300, "draws": 300, "target_accept": 0.8},
    "BlackJAX, JAX by hand": {"tune": 300, "draws": 300, "target_accept": 0.9},
}
GRID = data.grid(10)


def sample(engine, seed, quick=False):
    """One run of an engine: its settings, a verdict on all that is identified, and what it cost.

    Parameters
    ----------
    engine : str, one of `SETTINGS`
    seed : int
    quick : bool; 20 steps of warm-up and 20 draws in place of its own

    Returns
    -------
    dict
        The settings; rhat, ess and ess_tail, the worst over the quantities, and n_quantities; divergences;
        gradients_per_draw; us (CPU microseconds of a gradient, all of the sampler's work included); compile, warmup,
        sampling and seconds (CPU); seconds is the price of `WANTED` effective draws, warm-up included.
    """
    moons, settings = data.legacy_rotated_moons(), SETTINGS[engine] | ({"tune": 20, "draws": 20} if quick else {})
    X, y = moons.X_train, moons.y_train
    model, run = models.hierarchical_bnn(X, y, n_hidden=N_HIDDEN), {"seed": seed, "chains": CHAINS, **settings}
    ways = {
        "nutpie, fuse": lambda: peers.sample_nutpie(fuse(model), backend="numba", **run),
        "nutpie, stock Numba": lambda: peers.sample_nutpie(model, backend="numba", **run),
        "nutpie, stock JAX": lambda: peers.sample_nutpie(model, backend="jax", gradient_backend="jax", **run),
        "NumPyro, JAX by hand": partial(peers.sample_numpyro, X, y, N_HIDDEN, **run),
        "BlackJAX, JAX by hand": partial(peers.sample_blackjax, X, y, N_HIDDEN, **run),
    }
    found = ways[engine]()
    checked = diagnose(found["posterior"], X, y)
    ess, n_steps = float(checked["ess"].min()), int(found["n_steps"].sum())
    share = found["n_warmup"] / (found["n_warmup"] + n_steps)
    warmup, sampling = share * found["cpu_seconds"], (1 - share) * found["cpu_seconds"]
    return settings | {
        "rhat": float(checked["rhat"].max()),
        "ess": ess,
        "ess_tail": float(checked["ess_tail"].min()),
        "n_quantities": len(checked["rhat"]),
        "divergences": int(found["diverging"].sum()),
        "gradients_per_draw": n_steps / found["n_steps"].size,
        "us": 1e6 * found["cpu_seconds"] / (n_steps + found["n_warmup"]),
        "compile": found["compile_seconds"],
        "warmup": warmup,
        "sampling": sampling,
        "seconds": warmup + WANTED / ess * sampling,
    }


def diagnose(posterior, X, y):
    """R-hat and ESS of all that is identified: probabilities on a grid and at the data, sds, log likelihood."""
    named = xr.Dataset({
        name: (("chain", "draw", *(f"{name}_{k}" for k in range(value.ndim - 2))), value)
        for name, value in posterior.items()
    })  # fmt: skip
    p = prediction.predict_groups(named, X, activation="tanh")
    loglik = np.log(np.where(y == 1, p, 1 - p)).sum(axis=(2, 3))
    sds = [posterior[f"sd{layer}"] for layer in peers.LAYERS]
    quantities = [prediction.predict_groups(named, GRID, activation="tanh"), p, np.stack([*sds, loglik], axis=-1)]
    return diagnostics.diagnose(np.concatenate([values.reshape(*p.shape[:2], -1) for values in quantities], axis=-1))
