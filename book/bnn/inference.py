"""Fit a model: ADVI and NUTS, always seeded."""

import logging
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pymc as pm

from bnn.data import check_seed

BACKENDS = ("numba", "c", "jax")
ENGINES = ("nutpie", "pymc")


@dataclass(frozen=True)
class Advi:
    """A fitted mean-field normal approximation.

    Attributes
    ----------
    approx : PyMC's approximation
    loss : (step,) array, the negative ELBO in nats, estimated at each step from one draw
    model : the `pm.Model` it was fitted to
    """

    approx: pm.variational.Approximation
    loss: np.ndarray
    model: pm.Model

    def draw(self, n_draws, *, seed):
        """Independent draws of the weights: dict of name to array (draw, …)."""
        check_seed(seed)
        posterior = self.approx.sample(n_draws, random_seed=seed)["posterior"]
        return {rv.name: posterior[rv.name].values[0] for rv in self.model.free_RVs}


@contextmanager
def _quiet():
    """Keep PyMC's progress lines, which carry timings, out of stored outputs; warnings still show."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def fit_advi(model, n_steps, *, seed, start="random", start_sd=0.1, backend="numba", callbacks=()):
    """Mean-field ADVI with PyMC's optimiser (one draw a step, windowed Adagrad) from a narrow start.

    Parameters
    ----------
    model : pm.Model
    n_steps : int, optimisation steps
    seed : int, for the start and for the draws of each step
    start : "random", standard normal means; or "zero", all means 0, where a network without biases is stuck at a saddle
    start_sd : float > 0, standard deviation of every weight before the first step. PyMC's own is log(2) = 0.69,
        from which a third of the fits of this book's flat network end in a nearly straight boundary
    backend : "numba", "c" (needs a compiler) or "jax"
    callbacks : functions of (approx, losses, step), called after each step

    Returns
    -------
    Advi

    Source: Kucukelbir et al. (2017), Automatic Differentiation Variational Inference, JMLR 18.
    """
    check_seed(seed)
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r}; wanted: one of {', '.join(BACKENDS)}")
    if start not in ("random", "zero"):
        raise ValueError(f"start={start!r}; wanted: 'random' or 'zero'")
    if not start_sd > 0:
        raise ValueError(f"start_sd={start_sd}; wanted: a standard deviation above 0")
    if n_steps < 1:
        raise ValueError(f"n_steps={n_steps}; wanted: at least 1")
    start_seed, fit_seed = np.random.SeedSequence(seed).generate_state(2)
    rng = np.random.default_rng(start_seed)
    shapes = {name: value.shape for name, value in model.initial_point().items()}
    means = {name: rng.normal(size=shape) if start == "random" else np.zeros(shape) for name, shape in shapes.items()}
    sds = {name: np.full(int(np.prod(shape)), start_sd) for name, shape in shapes.items()}  # PyMC wants them flat
    with _quiet():
        approx = pm.fit(
            n_steps, method="advi", model=model, start=means, start_sigma=sds, random_seed=int(fit_seed),
            backend=backend, callbacks=list(callbacks), progressbar=False,
        )  # fmt: skip
    return Advi(approx, np.asarray(approx.hist), model)


def sample_nuts(model, *, seed, engine="nutpie", chains=4, draws=1000, tune=1000, target_accept=0.8):
    """NUTS, chain after chain on one core.

    Parameters
    ----------
    model : pm.Model
    seed : int
    engine : "nutpie" or "pymc"
    chains, draws, tune : int, `draws` kept and `tune` discarded in each chain
    target_accept : float between 0 and 1

    Returns
    -------
    DataTree
        With ``posterior`` (chain, draw, …) and ``sample_stats``.

    Source: Hoffman and Gelman (2014), The No-U-Turn Sampler, JMLR 15.
    """
    check_seed(seed)
    if engine not in ENGINES:
        raise ValueError(f"engine={engine!r}; wanted: one of {', '.join(ENGINES)}")
    if not 0 < target_accept < 1:
        raise ValueError(f"target_accept={target_accept}; wanted: between 0 and 1, both excluded")
    if tune < 0:
        raise ValueError(f"tune={tune}; wanted: at least 0")
    for name, value in {"chains": chains, "draws": draws}.items():
        if value < 1:
            raise ValueError(f"{name}={value}; wanted: at least 1")
    return pm.sample(
        draws=draws, tune=tune, chains=chains, cores=1, random_seed=seed, model=model, nuts_sampler=engine,
        target_accept=target_accept, progressbar=False, quiet=True, compute_convergence_checks=False,
    )  # fmt: skip
