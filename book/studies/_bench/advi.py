"""Mean-field ADVI on the flat network: PyMC's loop in Python, and compiled loops of PyMC's steps and of our own.

All fits return a dict:

- "loss": (step,) the negative ELBO in nats, estimated at each step from that step's one draw
- "mean", "sd": dict of ``w1``, ``w2``, ``w3`` to arrays, the fitted normal distribution
- "compile_seconds": CPU seconds until the first step can begin
- "cpu_seconds": CPU seconds of all steps; they cost the same, so the time to reach a loss is in proportion to its step
"""

import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
from hbnn import sampling
from hbnn._checks import check_seed
from jax.flatten_util import ravel_pytree
from pytensor.compile.mode import get_mode

from studies._bench.flat import WEIGHTS, check_flat, list_flat_shapes, logdensity_flat, loglik_flat, model_flat
from studies._bench.peers import LOG_2PI, check_n_hidden, compile_jax, draw_normals, time_cpu

ADAM = {"decay_mean": 0.9, "decay_square": 0.999, "tiny": 1e-8}  # Kingma and Ba's


def advi_pymc(X, y, *, n_steps, seed, backend="numba", n_hidden=(5, 5), start_sd=0.1):
    """`pm.fit` through `hbnn.sampling.fit_advi`: windowed Adagrad, one draw a step, the loop in Python.

    Parameters
    ----------
    X : (obs, feature)
    y : (obs,), 0 or 1
    n_steps : int, optimisation steps
    seed : int, for the start (standard normal means) and for the draws of each step
    backend : "c" (needs a compiler), "numba" or "jax"
    n_hidden : two ints
    start_sd : float > 0, standard deviation of every weight before the first step

    Returns
    -------
    dict
        See the module. "compile_seconds" includes the first step.

    Raises
    ------
    ValueError
        For what `studies._bench.flat.model_flat` and `hbnn.sampling.fit_advi` refuse.
    """
    first_step = []

    def note_first_step(approx, losses, step):
        if not first_step:
            first_step.append(time.process_time())

    start = time.process_time()
    model = model_flat(X, y, n_hidden)
    fit = sampling.fit_advi(
        model, n_steps, seed=seed, start_sd=start_sd, backend=backend, callbacks=[note_first_step]
    )  # fmt: skip
    end = time.process_time()
    return {
        "loss": fit.loss,
        "mean": {name: value.values for name, value in fit.approx.mean_data.items()},
        "sd": {name: value.values for name, value in fit.approx.std_data.items()},
        "compile_seconds": first_step[0] - start,
        "cpu_seconds": end - first_step[0],
    }


def advi_pymc_scan(X, y, *, n_steps, seed, n_hidden=(5, 5), start_sd=0.1):
    """The steps of ``advi_pymc(backend="jax")``, bit for bit, in one compiled loop instead of PyMC's loop in Python.

    PyTensor compiles a step to a pure function in JAX, from the shared variables (means, standard deviations, Adagrad's
    memory, the generator) to the loss and their updates. `pm.fit` calls it from Python at each step; here it is the
    body of `jax.lax.scan`. Parameters and return as `advi_pymc`. It leans on PyTensor's insides (``vm.jit_fn``).
    """
    check_seed(seed)
    if n_steps < 1:
        raise ValueError(f"n_steps={n_steps}; wanted: at least 1")
    if not start_sd > 0:
        raise ValueError(f"start_sd={start_sd}; wanted: above 0")
    model = model_flat(X, y, n_hidden)

    def compile_loop():
        advi = _start_advi(model, seed, start_sd)
        with warnings.catch_warnings():  # that the compiled step has its own copy of the generator: so be it
            warnings.filterwarnings("ignore", "The RandomType SharedVariables")
            step = advi.objective.step_function(score=True, compile_kwargs={"mode": get_mode("JAX")})
        updates = step.maker.fgraph.update_mapping  # place among the outputs to place among the inputs; the loss is 0

        def move(state, _):
            outputs = step.vm.jit_fn(*state)
            state = list(state)
            for output, place in updates.items():
                state[place] = outputs[output]
            return tuple(state), outputs[0]

        start = jax.tree.map(jnp.asarray, tuple(storage[0] for storage in step.vm.inputs))
        compiled, _ = compile_jax(lambda start: jax.lax.scan(move, start, None, length=n_steps), start)
        return advi.approx, compiled, start, [variable.name for variable in step.maker.fgraph.inputs]

    (approx, compiled, start, names), compile_seconds = time_cpu(compile_loop)
    (end, loss), cpu_seconds = time_cpu(lambda: compiled(start))
    for parameter in approx.params:  # mu and rho
        parameter.set_value(np.asarray(end[names.index(parameter.name)]))
    return {
        "loss": np.asarray(loss),
        "mean": {name: value.values for name, value in approx.mean_data.items()},
        "sd": {name: value.values for name, value in approx.std_data.items()},
        "compile_seconds": compile_seconds,
        "cpu_seconds": cpu_seconds,
    }


def _start_advi(model, seed, start_sd):
    """PyMC's ADVI where `hbnn.sampling.fit_advi` starts it."""
    start_seed, fit_seed = np.random.SeedSequence(seed).generate_state(2)
    rng = np.random.default_rng(start_seed)
    means = {name: rng.normal(size=value.shape) for name, value in model.initial_point().items()}
    sds = {name: np.full(value.size, start_sd) for name, value in means.items()}
    return pm.ADVI(model=model, start=means, start_sigma=sds, random_seed=int(fit_seed))


def advi_scan(X, y, *, n_steps, seed, n_hidden=(5, 5), start_sd=0.1, learning_rate=0.01):
    """The same in JAX, one draw a step, Adam, all steps in one compiled loop; float64. The rest as `advi_pymc`.

    Sources: Kucukelbir et al. (2017), Automatic Differentiation Variational Inference, JMLR 18; Kingma and Ba (2015),
    Adam, ICLR.
    """
    X, y = check_flat(X, y)
    check_n_hidden(n_hidden)
    check_seed(seed)
    if n_steps < 1:
        raise ValueError(f"n_steps={n_steps}; wanted: at least 1")
    for name, value in {"start_sd": start_sd, "learning_rate": learning_rate}.items():
        if not value > 0:
            raise ValueError(f"{name}={value}; wanted: above 0")
    points, sign = jnp.asarray(X.T), jnp.asarray(2.0 * y - 1)
    zeros = {name: jnp.zeros(shape) for name, shape in list_flat_shapes(X.shape[1], n_hidden).items()}
    flat, unravel = ravel_pytree(zeros)  # one vector of all weights: few operations, and they are what costs

    def compute_loss(parameters, noise):
        mean, sd = parameters[0], jax.nn.softplus(parameters[1])
        log_q = -(noise**2 + LOG_2PI).sum() / 2 - jnp.log(sd).sum()
        return log_q - logdensity_flat(unravel(mean + sd * noise), points, sign)

    def step(state, noise_and_number):
        noise, number = noise_and_number
        parameters, *moments = state
        loss, slope = jax.value_and_grad(compute_loss)(parameters, noise)
        return _step_adam(parameters, *moments, slope, number, learning_rate), loss

    def optimise(key):
        start_key, noise_key = jax.random.split(key)
        start = jnp.stack([jax.random.normal(start_key, flat.shape), jnp.full(flat.shape, np.log(np.expm1(start_sd)))])
        noise = jax.random.normal(noise_key, (n_steps, flat.size))
        state = (start, jnp.zeros_like(start), jnp.zeros_like(start))
        ((mean, raw_sd), *_), loss = jax.lax.scan(step, state, (noise, jnp.arange(1, n_steps + 1)))
        return loss, unravel(mean), unravel(jax.nn.softplus(raw_sd))

    key = jax.random.key(seed)
    compiled, compile_seconds = compile_jax(optimise, key)
    result, cpu_seconds = time_cpu(lambda: compiled(key))
    loss, mean, sd = jax.tree.map(np.asarray, result)
    return {"loss": loss, "mean": mean, "sd": sd, "compile_seconds": compile_seconds, "cpu_seconds": cpu_seconds}


def _step_adam(parameters, mean, square, slope, number, learning_rate):
    """One step of Adam, downhill: arrays of one shape; `number` counts from 1. Returns parameters and both moments."""
    by_mean, by_square = ADAM["decay_mean"], ADAM["decay_square"]
    mean = by_mean * mean + (1 - by_mean) * slope
    square = by_square * square + (1 - by_square) * slope**2
    centred_mean, centred_square = mean / (1 - by_mean**number), square / (1 - by_square**number)
    return parameters - learning_rate * centred_mean / (jnp.sqrt(centred_square) + ADAM["tiny"]), mean, square


def estimate_elbo(mean, sd, X, y, *, seed, n_draws=10_000):
    """The ELBO of any mean-field normal on the flat network's weights under N(0, 1) priors, in nats.

    The expected log likelihood comes from draws, the divergence from the prior from its formula.

    Parameters
    ----------
    mean, sd : dicts with ``w1`` (feature, hidden_1), ``w2`` (hidden_1, hidden_2), ``w3`` (hidden_2,)
    X : (obs, feature)
    y : (obs,), 0 or 1
    seed : int
    n_draws : int

    Returns
    -------
    dict
        "elbo" and "mcse", its Monte Carlo standard error.

    Raises
    ------
    ValueError
        For bad data, names or shapes, a standard deviation that is not above 0, fewer than 2 draws.
    """
    X, y = check_flat(X, y)
    check_seed(seed)
    if n_draws < 2:
        raise ValueError(f"n_draws={n_draws}; wanted: at least 2")
    mean, sd = _check_weights(mean, "mean", X.shape[1]), _check_weights(sd, "sd", X.shape[1])
    if any(mean[name].shape != sd[name].shape for name in WEIGHTS):
        raise ValueError("mean and sd have other shapes; wanted: the same")
    if not all((value > 0).all() for value in sd.values()):
        raise ValueError("sd holds values that are not above 0; wanted: standard deviations")
    points, sign = jnp.asarray(X.T), jnp.asarray(2.0 * y - 1)

    keys = jax.random.split(jax.random.key(seed), n_draws)
    logliks = np.asarray(_draw_logliks(mean, sd, points, sign, keys))
    divergence = sum(((mean[n] ** 2 + sd[n] ** 2 - 1) / 2 - np.log(sd[n])).sum() for n in WEIGHTS)
    return {
        "elbo": float(logliks.mean() - divergence),
        "mcse": float(logliks.std(ddof=1) / np.sqrt(n_draws)),
    }


@jax.jit  # once for all calls of one shape
def _draw_logliks(mean, sd, points, sign, keys):
    """Log likelihoods (draw,) of draws from a mean-field normal."""

    def draw_one(key):
        noise = draw_normals(key, {name: value.shape for name, value in mean.items()})
        return loglik_flat({name: mean[name] + sd[name] * noise[name] for name in mean}, points, sign)

    return jax.lax.map(draw_one, keys)  # one after another: the hidden units of all draws at once would take 400 MB


def _check_weights(weights, name, n_feature):
    """Return one network's weights as float64 arrays, or raise what is wrong with them."""
    if sorted(weights) != sorted(WEIGHTS):
        raise ValueError(f"{name} holds {', '.join(weights)}; wanted: {', '.join(WEIGHTS)}")
    weights = {key: np.asarray(weights[key], dtype=float) for key in WEIGHTS}
    shapes = {key: value.shape for key, value in weights.items()}
    n_hidden = (shapes["w2"] + (0, 0))[:2]
    if shapes != list_flat_shapes(n_feature, n_hidden):
        raise ValueError(f"{name} has shapes {shapes}; wanted: (feature, hidden_1), (hidden_1, hidden_2), (hidden_2,)")
    return weights
