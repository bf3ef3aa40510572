"""The hierarchical network by other means: one density, two layouts, four samplers.

The model, the same for every engine: ``mu ~ N(0, 1)`` and ``sd ~ HalfNormal(1)`` for each of three layers,
``z ~ N(0, 1)`` for each category, weights ``mu + sd z``, ``logit = tanh(tanh(X w1) w2) w3`` without biases.

Sources: T. Wiecki (2018), "Hierarchical Bayesian Neural Networks with Informative Priors"; its BlackJAX version in the
Sampling Book (window adaptation; there the last layer is shared by all categories, here it is hierarchical as the
others); its NumPyro version in the notebooks of K. Murphy's "Probabilistic Machine Learning".
"""

import time

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import nutpie
import pymc as pm
from blackjax.adaptation.base import get_filter_adapt_info_fn
from hbnn._checks import check_data, check_seed

LAYOUTS = ("article", "points_last")
LAYERS = (1, 2, 3)
NAMES = tuple(f"{kind}{layer}" for kind in ("mu", "sd", "z") for layer in LAYERS)
LOG_2PI = float(np.log(2 * np.pi))
LOG_HALF_NORMAL = float(0.5 * np.log(2 / np.pi))


# --- the model, in JAX and in PyMC


def list_shapes(n_groups, n_feature, n_hidden):
    """Shapes of the unconstrained parameters: dict of name to tuple, ``mu1`` … ``log_sd1`` … ``z1`` …"""
    weights = {1: (n_feature, n_hidden[0]), 2: tuple(n_hidden), 3: (n_hidden[1],)}
    means = {f"mu{layer}": shape for layer, shape in weights.items()}
    scales = {f"log_sd{layer}": () for layer in weights}
    offsets = {f"z{layer}": (n_groups, *shape) for layer, shape in weights.items()}
    return means | scales | offsets


def logdensity_jax(X, y, n_hidden, *, layout="article", dtype="float64"):
    """The log posterior density on the unconstrained scale, constants included, as a JAX function.

    Parameters
    ----------
    X : (group, obs, feature)
    y : (group, obs), 0 or 1
    n_hidden : two ints, units in the first and the second hidden layer
    layout : "article" computes ``X @ w`` with the units on the last axis, as the BlackJAX article does;
        "points_last" computes ``w.T @ X.T``, where the last axis is long enough to fill a vector register
    dtype : "float64" or "float32", of the data and so of the density (the position must be of the same type)

    Returns
    -------
    function of a dict with the names and shapes of `list_shapes`, to a scalar in nats

    Raises
    ------
    ValueError
        For what `check_grouped` and `check_n_hidden` refuse, an unknown layout or type; when called (or traced), for a
        position of other shapes.
    """
    X, y = check_grouped(X, y)
    check_n_hidden(n_hidden)
    if layout not in LAYOUTS:
        raise ValueError(f"layout={layout!r}; wanted: one of {', '.join(LAYOUTS)}")
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype={dtype!r}; wanted: 'float64' or 'float32'")
    wanted = list_shapes(len(X), X.shape[-1], n_hidden)
    compute_logit = _logit_units_last if layout == "article" else _logit_points_last
    points = jnp.asarray(X if layout == "article" else X.swapaxes(1, 2), dtype)
    sign = jnp.asarray(2 * y - 1, dtype)

    def logdensity(position):
        shapes = {name: jnp.shape(value) for name, value in position.items()}
        if shapes != wanted:
            raise ValueError(f"position has shapes {shapes}; wanted: {wanted}")
        logp, weights = 0.0, []
        for layer in LAYERS:
            mu, log_sd, z = (position[f"{kind}{layer}"] for kind in ("mu", "log_sd", "z"))
            sd = jnp.exp(log_sd)
            logp += _log_normal(mu) + _log_normal(z)
            logp += LOG_HALF_NORMAL - sd**2 / 2 + log_sd  # log_sd: the Jacobian of sd = exp(log_sd)
            weights.append(mu + sd * z)
        return logp + jax.nn.log_sigmoid(sign * compute_logit(points, *weights)).sum()

    return logdensity


def _log_normal(value):
    return -(value**2).sum() / 2 - value.size * LOG_2PI / 2


def _logit_units_last(X, w1, w2, w3):
    h2 = jnp.tanh(jnp.tanh(X @ w1) @ w2)
    return (h2 @ w3[:, :, None])[:, :, 0]


def _logit_points_last(X, w1, w2, w3):
    h2 = jnp.tanh(w2.swapaxes(1, 2) @ jnp.tanh(w1.swapaxes(1, 2) @ X))
    return (w3[:, None] @ h2)[:, 0]


def model_pymc(X, y, n_hidden):
    """The same model as a reader of PyMC would write it: matrix products and a Bernoulli variable ``y``.

    Parameters
    ----------
    X : (group, obs, feature)
    y : (group, obs), 0 or 1
    n_hidden : two ints

    Returns
    -------
    pm.Model
        With ``mu1`` …, ``sd1`` …, ``z1`` …, and `pm.Data` ``X``.
    """
    X, y = check_grouped(X, y)
    check_n_hidden(n_hidden)
    coords = {"group": range(len(X)), "feature": range(X.shape[-1])}
    coords |= {"hidden_1": range(n_hidden[0]), "hidden_2": range(n_hidden[1])}
    dims = {1: ("feature", "hidden_1"), 2: ("hidden_1", "hidden_2"), 3: ("hidden_2",)}
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", X, dims=("group", "obs", "feature"))
        mu = {layer: pm.Normal(f"mu{layer}", dims=dims[layer]) for layer in LAYERS}
        sd = {layer: pm.HalfNormal(f"sd{layer}") for layer in LAYERS}
        z = {layer: pm.Normal(f"z{layer}", dims=("group", *dims[layer])) for layer in LAYERS}
        w1, w2, w3 = (mu[layer] + sd[layer] * z[layer] for layer in LAYERS)
        h2 = pm.math.tanh(pm.math.tanh(x @ w1) @ w2)
        pm.Bernoulli("y", logit_p=(h2 @ w3[:, :, None])[:, :, 0], observed=y)
    return model


def model_numpyro(X, y, n_hidden):
    """The same model as a NumPyro program, a function without arguments; parameters as `model_pymc`."""
    X, y = check_grouped(X, y)
    check_n_hidden(n_hidden)
    shapes = list_shapes(len(X), X.shape[-1], n_hidden)
    X, y = jnp.asarray(X), jnp.asarray(y)

    def draw_normal(name):
        shape = shapes[name]
        return numpyro.sample(name, dist.Normal().expand(shape).to_event(len(shape)))

    def program():
        mu = {layer: draw_normal(f"mu{layer}") for layer in LAYERS}
        sd = {layer: numpyro.sample(f"sd{layer}", dist.HalfNormal()) for layer in LAYERS}
        z = {layer: draw_normal(f"z{layer}") for layer in LAYERS}
        w1, w2, w3 = (mu[layer] + sd[layer] * z[layer] for layer in LAYERS)
        numpyro.sample("y", dist.Bernoulli(logits=_logit_units_last(X, w1, w2, w3)).to_event(2), obs=y)

    return program


# --- the samplers; each returns what `sample_blackjax` documents


def sample_blackjax(X, y, *, seed, chains, draws, tune, n_hidden, target_accept=0.8, layout="article"):
    """NUTS by BlackJAX as its article sets it up: window adaptation, diagonal mass matrix, one chain after the other.

    Parameters
    ----------
    X : (group, obs, feature)
    y : (group, obs), 0 or 1
    seed : int
    chains, draws, tune : int, `draws` kept and `tune` discarded in each chain
    n_hidden : two ints
    target_accept : float between 0 and 1
    layout : as in `logdensity_jax`

    Returns
    -------
    dict
        - "posterior": dict of ``mu1`` … ``sd1`` … ``z1`` … to float64 arrays (chain, draw, …)
        - "diverging": (chain, draw) of bool
        - "n_steps": (chain, draw) of int, leapfrog steps, each of one gradient
        - "n_gradients": int, all of them, warm-up included; PyMC's also counts the gradient at the start of each draw
        - "compile_seconds": CPU seconds of what comes before the first draw: building, tracing, compiling
        - "cpu_seconds": CPU seconds of warm-up and sampling, without "compile_seconds"

    Raises
    ------
    ValueError
        For what `logdensity_jax` and `check_run` refuse.
    """
    check_run(seed=seed, chains=chains, draws=draws, tune=tune, target_accept=target_accept)
    logdensity = logdensity_jax(X, y, n_hidden, layout=layout)
    shapes = list_shapes(len(X), np.shape(X)[-1], n_hidden)

    def run_chain(key):
        start_key, chain_key = jax.random.split(key)
        start = draw_normals(start_key, {name: s for name, s in shapes.items() if not name.startswith("log_sd")})
        start |= {f"log_sd{layer}": jnp.zeros(()) for layer in LAYERS}  # the article starts at sd = 1
        return run_blackjax(logdensity, chain_key, start, draws=draws, tune=tune, target_accept=target_accept)

    keys = jax.random.split(jax.random.key(seed), chains)
    compiled, compile_seconds = compile_jax(run_chain, keys[0])
    results, cpu_seconds = time_cpu(lambda: [compiled(key) for key in keys])
    positions, diverging, n_steps, n_warmup = (stack_trees(part) for part in zip(*results, strict=True))
    posterior = {name: value for name, value in positions.items() if not name.startswith("log_sd")}
    posterior |= {f"sd{layer}": np.exp(positions[f"log_sd{layer}"]) for layer in LAYERS}
    return {
        "posterior": {name: posterior[name] for name in NAMES},
        "diverging": diverging,
        "n_steps": n_steps,
        "n_gradients": int(n_steps.sum() + n_warmup.sum()),
        "compile_seconds": compile_seconds,
        "cpu_seconds": cpu_seconds,
    }


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


def sample_numpyro(X, y, *, seed, chains, draws, tune, n_hidden, target_accept=0.8):
    """NUTS by NumPyro, one chain after the other; parameters and return as `sample_blackjax`.

    The loop is our own, so that it can be compiled before the clock starts; from the same keys it makes the draws of
    ``MCMC(kernel, …, chain_method="sequential")``, to rounding. The gradients of NumPyro's searches for a first step
    size are not in "n_gradients" (a handful at each change of the mass matrix).
    """
    check_run(seed=seed, chains=chains, draws=draws, tune=tune, target_accept=target_accept)
    kernel = numpyro.infer.NUTS(model_numpyro(X, y, n_hidden), target_accept_prob=target_accept)
    root = jax.random.key(seed)
    keys = jax.random.split(root, chains) if chains > 1 else [root]  # as MCMC does
    starts, init_seconds = time_cpu(lambda: [kernel.init(key, tune, None, (), {}) for key in keys])

    def run_chain(state):
        def draw_one(state, _):
            state = kernel.sample(state, (), {})
            return state, (state.z, state.diverging, state.num_steps)

        _, (z, diverging, n_steps) = jax.lax.scan(draw_one, state, None, length=tune + draws)
        kept = {name: value[tune:] for name, value in z.items()}
        return jax.vmap(kernel.postprocess_fn((), {}))(kept), diverging[tune:], n_steps[tune:], n_steps[:tune].sum()

    compiled, compile_seconds = compile_jax(run_chain, starts[0])
    results, cpu_seconds = time_cpu(lambda: [compiled(start) for start in starts])
    posterior, diverging, n_steps, n_warmup = (stack_trees(part) for part in zip(*results, strict=True))
    return {
        "posterior": {name: posterior[name] for name in NAMES},
        "diverging": diverging,
        "n_steps": n_steps,
        "n_gradients": int(n_steps.sum() + n_warmup.sum()),
        "compile_seconds": init_seconds + compile_seconds,
        "cpu_seconds": cpu_seconds,
    }


def sample_pymc(X, y, *, seed, chains, draws, tune, n_hidden, target_accept=0.8, backend="c"):
    """PyMC's own NUTS on the plain PyMC model, one chain after the other; the rest as `sample_blackjax`.

    `backend` is "c" (needs a compiler) or "numba".
    """
    check_run(seed=seed, chains=chains, draws=draws, tune=tune, target_accept=target_accept)
    if backend not in ("c", "numba"):
        raise ValueError(f"backend={backend!r}; wanted: 'c' or 'numba'")
    first_draw = []

    def note_first_draw(trace, draw):
        if not first_draw:  # when it began, on the clock of the process
            first_draw.append(time.process_time() - draw.stats[0]["process_time_diff"])

    start = time.process_time()
    result = pm.sample(
        draws=draws, tune=tune, chains=chains, cores=1, random_seed=seed, model=model_pymc(X, y, n_hidden),
        nuts_sampler="pymc", backend=backend, nuts={"target_accept": target_accept}, callback=note_first_draw,
        discard_tuned_samples=False, progressbar=False, quiet=True, compute_convergence_checks=False,
    )  # fmt: skip
    end = time.process_time()
    costs = {"compile_seconds": first_draw[0] - start, "cpu_seconds": end - first_draw[0]}
    return _read_datatree(result, NAMES, n_extra=chains * (draws + tune)) | costs


def sample_nutpie(X, y, *, seed, chains, draws, tune, n_hidden, target_accept=0.8, backend="numba"):
    """nutpie's NUTS on the plain PyMC model, which is what `pm.sample` does where nutpie is installed.

    One chain after the other; `backend` is "numba" or "jax"; the rest as `sample_blackjax`.
    """
    check_run(seed=seed, chains=chains, draws=draws, tune=tune, target_accept=target_accept)
    if backend not in ("numba", "jax"):
        raise ValueError(f"backend={backend!r}; wanted: 'numba' or 'jax'")

    def compile_model():
        compiled = nutpie.compile_pymc_model(model_pymc(X, y, n_hidden), backend=backend)
        run(compiled, chains=1, draws=1, tune=1)  # the JAX backend compiles at its first gradient
        return compiled

    def run(compiled, **sizes):
        return nutpie.sample(compiled, seed=seed, cores=1, target_accept=target_accept, progress_bar=False, **sizes)

    compiled, compile_seconds = time_cpu(compile_model)
    result, cpu_seconds = time_cpu(lambda: run(compiled, chains=chains, draws=draws, tune=tune))
    return _read_datatree(result, NAMES) | {"compile_seconds": compile_seconds, "cpu_seconds": cpu_seconds}


def _read_datatree(result, names, n_extra=0):
    """What PyMC and nutpie return, in plain arrays. `n_extra`: gradients that are no leapfrog steps."""
    n_steps, n_warmup = (result[group]["n_steps"].values for group in ("sample_stats", "warmup_sample_stats"))
    return {
        "posterior": {name: result["posterior"][name].values for name in names},
        "diverging": result["sample_stats"]["diverging"].values,
        "n_steps": n_steps.astype(int),
        "n_gradients": int(n_steps.sum() + n_warmup.sum()) + n_extra,
    }


# --- clocks, trees and checks, also for the other modules of this package


def time_cpu(function):
    """Call `function` and wait for its arrays. Returns its result and the CPU seconds of the process."""
    start = time.process_time()
    result = jax.block_until_ready(function())
    return result, time.process_time() - start


def compile_jax(function, *arguments):
    """Compile a JAX function for arguments of these shapes. Returns it and the CPU seconds."""
    return time_cpu(lambda: jax.jit(function).lower(*arguments).compile())


def draw_normals(key, shapes):
    """Standard normal arrays of the given shapes: dict of name to tuple, to dict of name to array."""
    keys = jax.random.split(key, len(shapes))
    return {name: jax.random.normal(k, shape) for k, (name, shape) in zip(keys, shapes.items(), strict=True)}


def stack_trees(trees):
    """Trees of JAX arrays, one for each chain, as one tree of NumPy arrays with a leading chain axis."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def check_grouped(X, y):
    """Check features (group, obs, feature) and labels (group, obs), and return them as float64 and int32 arrays."""
    X, y = check_data(X, y)
    if X.ndim != 3:
        raise ValueError(f"X has shape {X.shape}; wanted: (group, obs, feature)")
    return X, y


def check_n_hidden(n_hidden):
    """Raise ValueError unless `n_hidden` is two ints of at least 1."""
    if np.shape(n_hidden) != (2,) or not all(isinstance(n, int | np.integer) and n > 0 for n in n_hidden):
        raise ValueError(f"n_hidden={n_hidden}; wanted: two numbers of units, each at least 1")


def check_run(*, seed, chains, draws, tune, target_accept):
    """Raise ValueError unless a NUTS run can have these settings."""
    check_seed(seed)
    for name, value in {"chains": chains, "draws": draws, "tune": tune}.items():
        if value < 1:
            raise ValueError(f"{name}={value}; wanted: at least 1")
    if not 0 < target_accept < 1:
        raise ValueError(f"target_accept={target_accept}; wanted: between 0 and 1, both excluded")
