"""The hierarchical network by other means: its density written in JAX, and NUTS by nutpie, NumPyro and BlackJAX.

The model, the same for every engine: ``mu ~ N(0, 1)`` and ``sd ~ HalfNormal(1)`` for each of three layers,
``z ~ N(0, 1)`` for each category, weights ``mu + sd z``, ``logit = tanh(tanh(X w1) w2) w3`` without biases.

Each sampler returns a dict:

- "posterior": dict of ``mu1`` … ``sd1`` … ``z1`` … to float64 arrays (chain, draw, …)
- "diverging", "n_steps": (chain, draw), leapfrog steps, each of one gradient
- "n_warmup": int, leapfrog steps of all warm-ups
- "compile_seconds", "cpu_seconds": CPU seconds before the first draw, and of warm-up and sampling
- "wall_seconds": of warm-up and sampling, by the clock

Chains run one after the other, or side by side where `cores` says so.
"""

import time
from functools import partial

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import nutpie
from blackjax.adaptation.base import get_filter_adapt_info_fn

LAYERS = (1, 2, 3)
NAMES = tuple(f"{kind}{layer}" for kind in ("mu", "sd", "z") for layer in LAYERS)
ACTIVATIONS = {"tanh": jnp.tanh, "relu": jax.nn.relu}
LOG_2PI = float(np.log(2 * np.pi))
LOG_HALF_NORMAL = float(0.5 * np.log(2 / np.pi))


def list_shapes(n_groups, n_feature, n_hidden):
    """Shapes of the unconstrained parameters: dict of name to tuple, ``mu1`` … ``log_sd1`` … ``z1`` …"""
    weights = {1: (n_feature, n_hidden[0]), 2: tuple(n_hidden), 3: (n_hidden[1],)}
    means = {f"mu{layer}": shape for layer, shape in weights.items()}
    scales = {f"log_sd{layer}": () for layer in weights}
    offsets = {f"z{layer}": (n_groups, *shape) for layer, shape in weights.items()}
    return means | scales | offsets


def logdensity_jax(X, y, n_hidden, activation="tanh", layout="points last"):
    """The log posterior density on the unconstrained scale, constants included, as a JAX function.

    Parameters
    ----------
    X : (group, obs, feature)
    y : (group, obs), 0 or 1
    n_hidden : two ints, units in the first and the second hidden layer
    activation : "tanh" or "relu"
    layout : "points last" computes ``w.T @ X.T``, whose last axis is long enough to fill a vector register; "units
        last" computes ``X @ w``, as the BlackJAX article does. Which is faster depends on the width and the processor

    Returns
    -------
    function of a dict with the names and shapes of `list_shapes`, to a scalar in nats
    """
    X, sign, bend = jnp.asarray(X), jnp.asarray(2.0 * y - 1), ACTIVATIONS[activation]
    compute_logit = LAYOUTS[layout]
    sizes = {name: np.prod(shape) for name, shape in list_shapes(len(X), X.shape[-1], n_hidden).items()}

    def logdensity(position):
        logp, weights = 0.0, []
        for layer in LAYERS:
            mu, log_sd, z = (position[f"{kind}{layer}"] for kind in ("mu", "log_sd", "z"))
            sd = jnp.exp(log_sd)
            logp -= ((mu**2).sum() + (z**2).sum() + (sizes[f"mu{layer}"] + sizes[f"z{layer}"]) * LOG_2PI) / 2
            logp += LOG_HALF_NORMAL - sd**2 / 2 + log_sd  # log_sd: the Jacobian of sd = exp(log_sd)
            weights.append(mu + sd * z)
        return logp + jax.nn.log_sigmoid(sign * compute_logit(X, *weights, bend)).sum()

    return logdensity


def _logit_points_last(X, w1, w2, w3, bend):
    h2 = bend(w2.swapaxes(1, 2) @ bend(w1.swapaxes(1, 2) @ X.swapaxes(1, 2)))
    return (w3[:, None] @ h2)[:, 0]


def _logit_units_last(X, w1, w2, w3, bend):
    return (bend(bend(X @ w1) @ w2) @ w3[:, :, None])[:, :, 0]


LAYOUTS = {"points last": _logit_points_last, "units last": _logit_units_last}


# --- the samplers


def sample_nutpie(model, *, seed, chains, draws, tune, target_accept, cores=1, **backend):
    """nutpie's NUTS on a PyMC model, stock or fused; `backend` as nutpie takes it."""

    def compile_model():
        compiled = nutpie.compile_pymc_model(model, **backend)
        run(compiled, chains=1, draws=1, tune=1)  # JAX compiles at its first gradient
        return compiled

    def run(compiled, **sizes):
        return nutpie.sample(compiled, seed=seed, cores=cores, target_accept=target_accept, progress_bar=False, **sizes)

    compiled, compile_seconds = time_cpu(compile_model)
    start = time.perf_counter()
    tree, cpu_seconds = time_cpu(lambda: run(compiled, chains=chains, draws=draws, tune=tune))
    return {
        "posterior": {name: tree["posterior"][name].values for name in NAMES},
        "diverging": tree["sample_stats"]["diverging"].values,
        "n_steps": tree["sample_stats"]["n_steps"].values.astype(int),
        "n_warmup": int(tree["warmup_sample_stats"]["n_steps"].sum()),
        "compile_seconds": compile_seconds,
        "cpu_seconds": cpu_seconds,
        "wall_seconds": time.perf_counter() - start,
    }


def sample_numpyro(X, y, n_hidden, *, seed, chains, draws, tune, target_accept, cores=1):
    """NUTS by NumPyro on `logdensity_jax`: its own warm-up, diagonal, compiled whole.

    With several cores XLA must have been told to show a device for each chain.
    """
    logdensity = logdensity_jax(X, y, n_hidden)
    kernel = numpyro.infer.NUTS(
        potential_fn=lambda position: -logdensity(position), target_accept_prob=target_accept
    )  # fmt: skip
    keys = jax.random.split(jax.random.key(seed), (chains, 2))
    starts = [draw_start(key, X, n_hidden) for key, _ in keys]
    states, init_seconds = time_cpu(
        lambda: [kernel.init(key, tune, start, (), {}) for (_, key), start in zip(keys, starts, strict=True)]
    )

    def run_chain(state):
        def draw_one(state, _):
            state = kernel.sample(state, (), {})
            return state, (state.z, state.diverging, state.num_steps)

        _, (z, diverging, n_steps) = jax.lax.scan(draw_one, state, None, length=tune + draws)
        kept = {name: value[tune:] for name, value in z.items()}
        return kept, diverging[tune:], n_steps[tune:], n_steps[:tune].sum()

    return _run_chains(run_chain, states, init_seconds, side_by_side=cores > 1)


def sample_blackjax(X, y, n_hidden, *, seed, chains, draws, tune, target_accept):
    """NUTS by BlackJAX on `logdensity_jax`: window adaptation, diagonal, one chain after the other, compiled whole."""
    logdensity = logdensity_jax(X, y, n_hidden)

    def run_chain(keys):
        start = draw_start(keys[0], X, n_hidden)
        return run_blackjax(logdensity, keys[1], start, draws=draws, tune=tune, target_accept=target_accept)

    return _run_chains(run_chain, list(jax.random.split(jax.random.key(seed), (chains, 2))), 0.0)


def run_blackjax(logdensity, key, start, *, draws, tune, target_accept):
    """One chain of BlackJAX's NUTS, for `jax.jit`: window adaptation from `start`, then a scan over the draws.

    Returns positions (a dict of (draw, …) arrays), diverging (draw,), leapfrog steps (draw,), and the leapfrog steps
    of the warm-up, a scalar.
    """
    tune_key, draw_key = jax.random.split(key)
    adaptation = blackjax.window_adaptation(
        blackjax.nuts, logdensity, target_acceptance_rate=target_accept,
        adaptation_info_fn=get_filter_adapt_info_fn(info_keys={"num_integration_steps"}),
    )  # fmt: skip
    (state, tuned), warmup = adaptation.run(tune_key, start, tune)
    step = blackjax.nuts(logdensity, **tuned).step

    def draw_one(state, key):
        state, info = step(key, state)
        return state, (state.position, info.is_divergent, info.num_integration_steps)

    _, (positions, diverging, n_steps) = jax.lax.scan(draw_one, state, jax.random.split(draw_key, draws))
    return positions, diverging, n_steps, warmup.info.num_integration_steps.sum()


def draw_start(key, X, n_hidden):
    """Standard normal weights, and group sds of 1, where the articles start."""
    start = draw_normals(key, list_shapes(len(X), X.shape[-1], n_hidden))
    return {name: 0 * value if name.startswith("log_sd") else value for name, value in start.items()}


def _run_chains(run_chain, arguments, seconds, side_by_side=False):
    """Compile a chain, run it for each argument, and return what the module's docstring says."""
    stack = partial(jax.tree.map, lambda *chains: jnp.stack(chains))
    if side_by_side:
        compiled, compile_seconds = time_cpu(lambda: jax.pmap(run_chain).lower(stack(*arguments)).compile())
        start = time.perf_counter()
        found, cpu_seconds = time_cpu(lambda: compiled(stack(*arguments)))
    else:
        compiled, compile_seconds = time_cpu(lambda: jax.jit(run_chain).lower(arguments[0]).compile())
        start = time.perf_counter()
        found, cpu_seconds = time_cpu(lambda: stack(*[compiled(argument) for argument in arguments]))
    wall_seconds = time.perf_counter() - start
    positions, diverging, n_steps, n_warmup = jax.tree.map(np.asarray, found)
    posterior = {
        name.removeprefix("log_"): np.exp(value) if name.startswith("log_") else value
        for name, value in positions.items()
    }
    return {
        "posterior": {name: posterior[name] for name in NAMES},
        "diverging": diverging,
        "n_steps": n_steps,
        "n_warmup": int(n_warmup.sum()),
        "compile_seconds": seconds + compile_seconds,
        "cpu_seconds": cpu_seconds,
        "wall_seconds": wall_seconds,
    }


# --- also for the studies that sample with JAX


def time_cpu(function):
    """Call `function` and wait for its arrays. Returns its result and the CPU seconds of the process."""
    start = time.process_time()
    result = jax.block_until_ready(function())
    return result, time.process_time() - start


def draw_normals(key, shapes):
    """Standard normal arrays of the given shapes: dict of name to tuple, to dict of name to array."""
    keys = jax.random.split(key, len(shapes))
    return {name: jax.random.normal(k, shape) for k, (name, shape) in zip(keys, shapes.items(), strict=True)}
