"""One density and gradient through PyTensor's backends and by both likelihoods: how many digits agree?

The articles' data, the book's network, one random position. The C backend needs a compiler; where there is none its row
says so.
"""

import numpy as np
import pytensor
from bookkit import data, models
from hbnn import fuse

from studies.nuts_width import N_HIDDEN

MEASURED = False
MODES = {"C": "CVM", "Numba": "NUMBA", "JAX": "JAX"}
CASES = [{"likelihood": "graph", "backend": backend} for backend in MODES]
CASES += [{"likelihood": "fused", "backend": backend} for backend in ("Numba", "JAX")]
RECOMPUTED = [case for case in CASES if case["backend"] != "C"]


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 12


def compute(likelihood, backend):
    """Log density in nats, and the largest difference of a slope to the reference, as a share of the largest slope."""
    if backend == "C" and not pytensor.config.cxx:
        return {"skipped": "no C compiler on this machine"}
    logp, slope = evaluate(likelihood, MODES[backend])
    _, reference = evaluate("graph", "FAST_COMPILE")
    return {"logp": float(logp), "difference": float(abs(slope - reference).max() / abs(reference).max())}


def evaluate(likelihood, mode):
    """Log density and gradient at a random position."""
    moons = data.legacy_rotated_moons()
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(N_HIDDEN, N_HIDDEN))
    model = fuse(model) if likelihood == "fused" else model
    function = model.logp_dlogp_function(ravel_inputs=True, mode=mode)
    size = sum(value.size for value in model.initial_point().values())
    return function(0.3 * np.random.default_rng(0).normal(size=size))
