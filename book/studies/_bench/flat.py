"""Eighteen flat networks, one for each category: N(0, 1) priors, two hidden layers, no biases, nothing shared.

Two ways to sample them all: one `pm.sample` after another, as a reader would write it first, and one compiled program
in JAX that walks through all of them at once. Both return a dict:

- "posterior": dict of ``w1`` (group, chain, draw, feature, hidden_1), ``w2`` (…, hidden_1, hidden_2) and
  ``w3`` (…, hidden_2); `join_chains` makes of one category what `hbnn.prediction.predict_probability` takes
- "diverging": (group, chain, draw) of bool
- "n_steps": (group, chain, draw) of int, leapfrog steps, each of one gradient
- "n_gradients": int, all of them, warm-up included
- "compile_seconds", "cpu_seconds": CPU seconds before the first draw, and of warm-up and sampling
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
from hbnn._checks import check_data

from studies._bench.peers import (
    LOG_2PI,
    check_grouped,
    check_n_hidden,
    check_run,
    compile_jax,
    draw_normals,
    run_blackjax,
    stack_trees,
    time_cpu,
)

WEIGHTS = ("w1", "w2", "w3")


def model_flat(X, y, n_hidden):
    """One flat network as a reader of PyMC would write it, with variables ``w1``, ``w2``, ``w3`` and ``y``.

    Parameters
    ----------
    X : (obs, feature)
    y : (obs,), 0 or 1
    n_hidden : two ints
    """
    X, y = check_flat(X, y)
    check_n_hidden(n_hidden)
    coords = {"feature": range(X.shape[1]), "hidden_1": range(n_hidden[0]), "hidden_2": range(n_hidden[1])}
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", X, dims=("obs", "feature"))
        w1 = pm.Normal("w1", dims=("feature", "hidden_1"))
        w2 = pm.Normal("w2", dims=("hidden_1", "hidden_2"))
        w3 = pm.Normal("w3", dims="hidden_2")
        pm.Bernoulli("y", logit_p=pm.math.tanh(pm.math.tanh(x @ w1) @ w2) @ w3, observed=y)
    return model


def list_flat_shapes(n_feature, n_hidden):
    """Shapes of a flat network's weights: dict of name to tuple."""
    return {"w1": (n_feature, n_hidden[0]), "w2": tuple(n_hidden), "w3": (n_hidden[1],)}


def loglik_flat(weights, points, sign):
    """Log likelihood of a flat network in JAX, points on the last axis (2.8 times as fast on 500 points as ``X @ w``).

    Parameters
    ----------
    weights : dict with ``w1`` (feature, hidden_1), ``w2`` (hidden_1, hidden_2), ``w3`` (hidden_2,)
    points : (feature, obs)
    sign : (obs,), -1 for label 0 and +1 for label 1
    """
    h2 = jnp.tanh(weights["w2"].T @ jnp.tanh(weights["w1"].T @ points))
    return jax.nn.log_sigmoid(sign * (weights["w3"] @ h2)).sum()


def logdensity_flat(weights, points, sign):
    """Log posterior density of a flat network in JAX, constants included; parameters as `loglik_flat`."""
    prior = sum(-(w**2).sum() / 2 - w.size * LOG_2PI / 2 for w in weights.values())
    return prior + loglik_flat(weights, points, sign)


def flat_loop_pymc(X, y, *, seed, chains, draws, tune, n_hidden=(5, 5), target_accept=0.8):
    """A model and a `pm.sample` for each category, with PyMC's defaults: nutpie, Numba, compiled anew each time.

    Parameters
    ----------
    X : (group, obs, feature)
    y : (group, obs), 0 or 1
    seed : int
    chains, draws, tune : int, `draws` kept and `tune` discarded in each chain
    n_hidden : two ints
    target_accept : float between 0 and 1

    Returns
    -------
    dict
        See the module. nutpie samples in threads of its own, so "compile_seconds" is the main thread's time.

    Raises
    ------
    ValueError
        For data, widths or settings that make no run.
    """
    X, y = check_grouped(X, y)
    check_n_hidden(n_hidden)
    check_run(seed=seed, chains=chains, draws=draws, tune=tune, target_accept=target_accept)
    process, main_thread = time.process_time(), time.thread_time()
    seeds = np.random.SeedSequence(seed).generate_state(len(X))
    results = [
        pm.sample(
            draws=draws, tune=tune, chains=chains, cores=1, random_seed=int(group_seed),
            model=model_flat(X_group, y_group, n_hidden), nuts={"target_accept": target_accept},
            discard_tuned_samples=False, progressbar=False, quiet=True, compute_convergence_checks=False,
        )
        for X_group, y_group, group_seed in zip(X, y, seeds, strict=True)
    ]  # fmt: skip
    process, main_thread = time.process_time() - process, time.thread_time() - main_thread
    n_steps, n_warmup = (
        np.stack([result[part]["n_steps"].values for result in results]).astype(int)
        for part in ("sample_stats", "warmup_sample_stats")
    )
    return {
        "posterior": {name: np.stack([result["posterior"][name].values for result in results]) for name in WEIGHTS},
        "diverging": np.stack([result["sample_stats"]["diverging"].values for result in results]),
        "n_steps": n_steps,
        "n_gradients": int(n_steps.sum() + n_warmup.sum()),
        "compile_seconds": main_thread,
        "cpu_seconds": process - main_thread,
    }


def flat_vmap_jax(X, y, *, seed, chains, draws, tune, n_hidden=(5, 5), target_accept=0.8):
    """BlackJAX's NUTS on all categories at once (`jax.vmap`), one chain after the other; as `flat_loop_pymc`.

    In step, all categories wait for the longest trajectory: the machine computes more gradients than "n_gradients",
    which counts those that are used.
    """
    X, y = check_grouped(X, y)
    check_n_hidden(n_hidden)
    check_run(seed=seed, chains=chains, draws=draws, tune=tune, target_accept=target_accept)
    points, sign = jnp.asarray(X.swapaxes(1, 2)), jnp.asarray(2.0 * y - 1)
    shapes = list_flat_shapes(X.shape[2], n_hidden)

    def run_group(key, points, sign):
        start_key, chain_key = jax.random.split(key)

        def logdensity(weights):
            return logdensity_flat(weights, points, sign)

        start = draw_normals(start_key, shapes)
        return run_blackjax(logdensity, chain_key, start, draws=draws, tune=tune, target_accept=target_accept)

    keys = jax.random.split(jax.random.key(seed), (chains, len(X)))
    compiled, compile_seconds = compile_jax(jax.vmap(run_group), keys[0], points, sign)
    results, cpu_seconds = time_cpu(lambda: [compiled(chain_keys, points, sign) for chain_keys in keys])
    # chain, group, draw -> group, chain, draw
    parts = [jax.tree.map(lambda a: a.swapaxes(0, 1), stack_trees(part)) for part in zip(*results, strict=True)]
    posterior, diverging, n_steps, n_warmup = parts
    return {
        "posterior": {name: posterior[name] for name in WEIGHTS},
        "diverging": diverging,
        "n_steps": n_steps,
        "n_gradients": int(n_steps.sum() + n_warmup.sum()),
        "compile_seconds": compile_seconds,
        "cpu_seconds": cpu_seconds,
    }


def join_chains(posterior, g):
    """The weights of category `g`, chains joined: dict of name to array (chain * draw, …)."""
    return {name: draws[g].reshape(-1, *draws.shape[3:]) for name, draws in posterior.items()}


def check_flat(X, y):
    """Check features (obs, feature) and labels (obs,), and return them as float64 and int32 arrays."""
    X, y = check_data(X, y)
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; wanted: (obs, feature)")
    return X, y
