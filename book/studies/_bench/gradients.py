"""Microseconds of one gradient of a log posterior, by stock PyMC's backends, by JAX and by `fuse`.

All forms are timed in one process and take turns, so that a busy machine disturbs them alike: what to read are ratios.
The position is random. At zero a tanh is cheap, and stock PyMC looks twice as fast as it is.
"""

import time
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from bookkit import models
from hbnn import fuse
from pymc.sampling.jax import get_jaxified_logp

from studies._bench import bound, libmvec
from studies._bench.peers import LAYOUTS, list_shapes, logdensity_jax, time_cpu

SPREAD = 0.3  # of the position: the units are neither linear nor saturated
STEP = 1e-9  # a loop in JAX moves along the gradient, so that no compiler can leave anything out
MODES = {"stock, C": "CVM", "stock, Numba": "NUMBA", "stock, Numba with libmvec": "NUMBA", "stock, JAX, called": "JAX",
         "fuse": "NUMBA", "fuse, float32": "NUMBA"}  # fmt: skip
MVEC, IN_A_LOOP = "stock, Numba with libmvec", "stock, JAX, in a loop"
BY_HAND = {f"JAX by hand, {layout}, {how}": (layout, how) for layout in LAYOUTS for how in ("called", "in a loop")}
BLOCK = 0.02  # CPU seconds of a form's turn
N_FEATURE, N_ROW_GROUPS = 2, 500


def time_gradients(n_hidden, activation, sizes, rounds, seconds):
    """Every form on hierarchical networks of one width, with random data of several sizes.

    Parameters
    ----------
    n_hidden : int, units in each of two hidden layers
    activation : "tanh" or "relu"
    sizes : list of (groups, points in each)
    rounds, seconds : turns of each form: at most so many, and after the fifth no new one when so much time is gone

    Returns
    -------
    dict
        "models": for each size a dict of n_groups, n_obs, unknowns and "rows": dicts with "form" and "us", "low",
        "high" (median and quartiles) or "skipped"; the arithmetic bound has "us" alone. "compile": CPU seconds of each.
    """
    widths, (X, y) = (n_hidden, n_hidden), draw_data(*sizes[0])
    forms = compile_forms(models.hierarchical_bnn(X, y, n_hidden=widths, activation=activation))
    found = []
    for n_groups, n_obs in sizes:
        X, y = draw_data(n_groups, n_obs)
        for model, _, _ in forms.values():
            pm.set_data({"X": X, "labels": y}, coords={"group": range(n_groups)}, model=model)
        position = draw_position(list_shapes(n_groups, N_FEATURE, widths))
        make = {"called": make_calls_jax, "in a loop": make_loop}
        by_hand = {
            form: make[how](logdensity_jax(X, y, widths, activation, layout), position)
            for form, (layout, how) in BY_HAND.items()
        }
        rows = time_forms(forms, by_hand, rounds, seconds)
        for dtype in ("float64", "float32"):
            operations = bound.count_operations(n_groups, n_obs, (N_FEATURE, *widths, 1), dtype, activation)
            rows.append({"form": f"bound, {dtype}", "us": 1e6 * operations / bound.measure_rate(dtype)})
        unknowns = sum(value.size for value in position.values())
        found.append({"n_groups": n_groups, "n_obs": n_obs, "unknowns": unknowns, "rows": rows})
    return {"models": found, "compile": {form: seconds for form, (_, _, seconds) in forms.items()}}


def time_rows(rounds, seconds):
    """The same for one table: 500 groups of unequal size in rows, one hidden layer, a Bernoulli outcome."""
    rng = np.random.default_rng(0)
    sizes = np.minimum(1 + rng.pareto(1.2, N_ROW_GROUPS) * 3, 1500).astype(int)
    group = rng.permutation(np.repeat(np.arange(N_ROW_GROUPS), sizes))
    X, y = rng.normal(size=(len(group), 5)), rng.integers(0, 2, len(group))
    with pm.Model() as model:
        g, weights = pm.Data("g", group), []
        for k, shape in enumerate([(5, 5), (5,)], 1):
            mu, sd = pm.Normal(f"mu{k}", shape=shape), pm.HalfNormal(f"sd{k}")
            weights.append(mu + sd * pm.Normal(f"z{k}", shape=(N_ROW_GROUPS, *shape)))
        h = pm.math.tanh(pt.einsum("nf,nfh->nh", pm.Data("X", X), weights[0][g]))  # as suits JAX best
        pm.Bernoulli("y", logit_p=(h * weights[1][g]).sum(axis=1), observed=y)
    forms = compile_forms(model)
    return {
        "n_obs": len(group),
        "largest": int(sizes.max()),
        "unknowns": sum(value.size for value in model.initial_point().values()),
        "rows": time_forms(forms, {}, rounds, seconds),
        "compile": {form: seconds for form, (_, _, seconds) in forms.items()},
    }


def draw_data(n_groups, n_obs):
    """Random points (group, obs, feature) and labels (group, obs)."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_groups, n_obs, N_FEATURE)), rng.integers(0, 2, (n_groups, n_obs)).astype("int32")


def draw_position(shapes):
    """A random position: dict of name to shape, to dict of name to array."""
    rng = np.random.default_rng(0)
    return {name: np.asarray(SPREAD * rng.normal(size=shape)) for name, shape in shapes.items()}


def compile_forms(model, modes=MODES):
    """PyTensor's forms of a model: dict of name to (the model, stock or fused; its compiled gradient; CPU seconds)."""
    forms, values = {}, draw_values(model)
    for form, mode in modes.items():
        if form != MVEC or not libmvec.find_reason():
            with libmvec.vectorised() if form == MVEC else nullcontext():
                (used, gradient), seconds = time_cpu(lambda: compile_form(model, form, mode, values))  # noqa: B023
            forms[form] = used, gradient, seconds
    return forms


def compile_form(model, form, mode, values):
    """The model, fused where the form asks for it and `fuse` does not leave it, and its log posterior's gradient."""
    names = [variable.name for variable in model.value_vars]
    if form.startswith("fuse"):
        model = fuse(model, strict=False, dtype="float32" if form.endswith("32") else "float64")
    gradient = model.logp_dlogp_function(ravel_inputs=False, mode=mode)._pytensor_function
    gradient.trust_input = True  # no check of the arguments' types at each call
    assert [variable.name for variable in model.value_vars] == names  # one position serves all
    gradient(*values)  # Numba and JAX compile at the first call
    return model, gradient


def draw_values(model):
    """`draw_position` for a PyMC model and the data that it has now: list of arrays."""
    point = model.initial_point()
    return list(
        draw_position({variable.name: np.shape(point[variable.name]) for variable in model.value_vars}).values()
    )


def time_forms(forms, others, rounds, seconds):
    """Median and quartiles of the microseconds of all forms, compiled before and timed in turn: list of dict."""
    stock = forms["stock, Numba"][0]
    logp = get_jaxified_logp(stock, negative_logp=False)  # what `pm.sample` hands to NumPyro
    values = draw_values(stock)
    runs = {form: make_calls(gradient, values) for form, (_, gradient, _) in forms.items()}
    runs |= {IN_A_LOOP: make_loop(logp, values), **others}
    for run in runs.values():
        run(1)
    counts = {form: max(1, int(BLOCK / time_call(run, 1))) for form, run in runs.items()}
    found, start = {form: [] for form in runs}, time.process_time()
    for k in range(rounds):
        if k >= 5 and time.process_time() - start > seconds:
            break
        for form, run in runs.items():
            found[form].append(1e6 * time_call(run, counts[form]) / counts[form])
    names, reason = ("low", "us", "high"), libmvec.find_reason()
    rows = [{"form": form, **dict(zip(names, map(float, np.quantile(us, (0.25, 0.5, 0.75))), strict=True))}
            for form, us in found.items()]  # fmt: skip
    return rows + ([{"form": MVEC, "skipped": reason}] if reason else [])


def time_call(run, n):
    """CPU seconds of `run(n)`."""
    start = time.process_time()
    run(n)
    return time.process_time() - start


def make_calls(gradient, values):
    """A function of n: n gradients, each called from outside."""

    def run(n):
        for _ in range(n):
            found = gradient(*values)
        jax.block_until_ready(found)

    return run


def make_calls_jax(logdensity, position):
    """`make_calls` for a density in JAX."""
    return make_calls(jax.jit(jax.value_and_grad(logdensity)), [jax.tree.map(jnp.asarray, position)])


def make_loop(logdensity, position):
    """A function of n: n gradients in a loop that JAX compiles, where a call from outside costs nothing."""
    position = jax.tree.map(jnp.asarray, position)

    def move(_, position):
        slope = jax.grad(logdensity)(position)
        return jax.tree.map(lambda place, along: place + STEP * along, position, slope)

    compiled = jax.jit(lambda n, start: jax.lax.fori_loop(0, n, move, start))
    return lambda n: jax.block_until_ready(compiled(n, position))
