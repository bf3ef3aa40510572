"""Microseconds for one gradient of the hierarchical network's log posterior, by other means than the book's.

Each function returns a dict: "microseconds", CPU time for one value and gradient, the least over repetitions (what
disturbs a clock only adds); and "compile_seconds". What PyMC compiles is called from Python, as PyMC's own NUTS calls
it. JAX is timed inside a compiled loop, as samplers written in JAX run it: there a call from Python costs nothing.
"""

import jax
import jax.numpy as jnp
import numpy as np
from hbnn._checks import check_seed
from pymc.sampling.jax import get_jaxified_logp

from studies._bench.peers import compile_jax, list_shapes, logdensity_jax, model_pymc, time_cpu

MODES = {"c": "CVM", "numba": "NUMBA", "jax": "JAX"}
SPREAD = 0.3  # of the random position: the units are neither linear nor saturated
STEP = 1e-6  # the loop moves along the gradient, so that no compiler can leave anything out


def time_gradient_pymc(X, y, *, n_hidden, seed, backend="c", n_calls=500, repetitions=5):
    """The plain PyMC model, compiled by PyTensor and called from Python.

    Parameters
    ----------
    X : (group, obs, feature)
    y : (group, obs), 0 or 1
    n_hidden : two ints
    seed : int, of the position
    backend : "c" (needs a compiler), "numba" or "jax"
    n_calls, repetitions : int, gradients in a repetition, and repetitions

    Returns
    -------
    dict
        "microseconds" and "compile_seconds".

    Raises
    ------
    ValueError
        For what `studies._bench.peers.model_pymc` refuses, an unknown backend, a number below 1.
    """
    _check_sizes(seed, n_calls, repetitions)
    if backend not in MODES:
        raise ValueError(f"backend={backend!r}; wanted: one of {', '.join(MODES)}")
    model = model_pymc(X, y, n_hidden)
    position = SPREAD * np.random.default_rng(seed).normal(size=sum(v.size for v in model.initial_point().values()))

    def compile_model():
        gradient = model.logp_dlogp_function(ravel_inputs=True, mode=MODES[backend])
        gradient._pytensor_function.trust_input = True  # no check of the argument's type at each call
        gradient(position)  # Numba and JAX compile at the first call
        return gradient

    gradient, compile_seconds = time_cpu(compile_model)

    def call():
        for _ in range(n_calls):
            value = gradient(position)
        return value

    return _find_least(call, n_calls, repetitions) | {"compile_seconds": compile_seconds}


def time_gradient_jax(X, y, *, n_hidden, seed, layout="article", dtype="float64", n_calls=500, repetitions=5):
    """The density written in JAX, inside a compiled loop.

    `layout` and `dtype` as in `studies._bench.peers.logdensity_jax`; the rest as `time_gradient_pymc`.
    """
    _check_sizes(seed, n_calls, repetitions)
    logdensity = logdensity_jax(X, y, n_hidden, layout=layout, dtype=dtype)
    position = _draw_position(list_shapes(len(X), np.shape(X)[-1], n_hidden), seed, dtype)
    return _time_loop(logdensity, position, n_calls, repetitions)


def time_gradient_jaxified(X, y, *, n_hidden, seed, n_calls=500, repetitions=5):
    """The plain PyMC model, translated to JAX by PyTensor (float64), inside a compiled loop.

    This is what `pm.sample` hands to NumPyro and BlackJAX. Parameters as `time_gradient_pymc`.
    """
    _check_sizes(seed, n_calls, repetitions)
    model = model_pymc(X, y, n_hidden)
    shapes = {name: value.shape for name, value in model.initial_point().items()}  # in the order of its value variables
    logp = get_jaxified_logp(model, negative_logp=False)
    position = _draw_position(shapes, seed, "float64")
    return _time_loop(
        lambda position: logp([position[v.name] for v in model.value_vars]), position, n_calls, repetitions
    )


def _draw_position(shapes, seed, dtype):
    rng = np.random.default_rng(seed)
    return {name: jnp.asarray(SPREAD * rng.normal(size=shape), dtype) for name, shape in shapes.items()}


def _time_loop(logdensity, position, n_calls, repetitions):
    differentiate = jax.value_and_grad(logdensity)

    def move(position, _):
        value, slope = differentiate(position)
        return jax.tree.map(lambda place, along: place + STEP * along, position, slope), value

    compiled, compile_seconds = compile_jax(lambda start: jax.lax.scan(move, start, None, length=n_calls), position)
    return _find_least(lambda: compiled(position), n_calls, repetitions) | {"compile_seconds": compile_seconds}


def _find_least(call, n_calls, repetitions):
    seconds = min(time_cpu(call)[1] for _ in range(repetitions))
    return {"microseconds": seconds / n_calls * 1e6}


def _check_sizes(seed, n_calls, repetitions):
    check_seed(seed)
    for name, value in {"n_calls": n_calls, "repetitions": repetitions}.items():
        if value < 1:
            raise ValueError(f"{name}={value}; wanted: at least 1")
