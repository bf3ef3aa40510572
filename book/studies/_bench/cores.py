"""What a gradient costs on one core and on two, by the clock and in CPU time, each engine in a process of its own.

`gradients` times all forms in one process on one core, where they disturb each other alike. But JAX hands its work from
thread to thread, and what that costs depends on where the threads may run, and on who else is in the process. So here
nobody else is, and the process either stays on one core or goes where it likes, as a user's does.
"""

import time

import numpy as np
from bookkit import data, models
from hbnn import fuse

from studies._bench import gradients, peers

N_HIDDEN = (12, 12)
FORMS = ("fuse", "stock, Numba", "stock, JAX, called", "stock, JAX, in a loop", "JAX by hand, points last, in a loop",
         "JAX by hand, units last, in a loop")  # fmt: skip
ENGINES = ("nutpie, fuse", "nutpie, stock Numba", "nutpie, stock JAX", "NumPyro, JAX by hand")
RUN = {"tune": 100, "draws": 100, "target_accept": 0.9}


def time_form(form, n_cores, rounds, seconds):
    """One form of the book's network alone: "us" and "cpu_us" of a gradient, medians of the rounds, and quartiles.

    Parameters
    ----------
    form : str, one of `FORMS`
    n_cores : int, on which the process may run; the harness sees to it
    rounds, seconds : blocks of gradients: at most so many, and no new one when so much time is gone
    """
    moons = data.legacy_rotated_moons()
    X, y = moons.X_train, moons.y_train
    model = models.hierarchical_bnn(X, y, n_hidden=N_HIDDEN)
    if form in gradients.BY_HAND:
        position = gradients.draw_position(peers.list_shapes(len(X), X.shape[-1], N_HIDDEN))
        layout, _ = gradients.BY_HAND[form]
        run = gradients.make_loop(peers.logdensity_jax(X, y, N_HIDDEN, layout=layout), position)
    elif form == gradients.IN_A_LOOP:
        logp = gradients.get_jaxified_logp(model, negative_logp=False)
        run = gradients.make_loop(logp, gradients.draw_values(model))
    else:
        values = gradients.draw_values(model)
        _, gradient = gradients.compile_form(model, form, gradients.MODES[form], values)
        run = gradients.make_calls(gradient, values)
    run(1)
    _, wall = time_both(lambda: run(20))
    n, start, found = max(1, int(20 * gradients.BLOCK / wall)), time.perf_counter(), []
    while len(found) < rounds and (len(found) < 5 or time.perf_counter() - start < seconds):
        found.append(time_both(lambda: run(n)))
    cpu, wall = 1e6 / n * np.transpose(found)
    low, us, high = map(float, np.quantile(wall, (0.25, 0.5, 0.75)))
    return {"low": low, "us": us, "high": high, "cpu_us": float(np.median(cpu))}


def time_chains(engine, n_chains, n_cores):
    """A short run of one chain or several, side by side where there are cores for them.

    Parameters
    ----------
    engine : str, one of `ENGINES`
    n_chains, n_cores : int

    Returns
    -------
    dict
        n_gradients, of all chains with their warm-ups; "us" and "cpu_us", the time of the whole run, by the clock and
        in CPU time, for each of them. Compiling is not in it.
    """
    moons = data.legacy_rotated_moons()
    X, y = moons.X_train, moons.y_train
    run = {"seed": 1, "chains": n_chains, "cores": n_cores, **RUN}
    if engine.startswith("NumPyro"):
        found = peers.sample_numpyro(X, y, N_HIDDEN, **run)
    else:
        model = models.hierarchical_bnn(X, y, n_hidden=N_HIDDEN)
        jax = {"backend": "jax", "gradient_backend": "jax"}
        kind = jax if engine.endswith("JAX") else {"backend": "numba"}
        found = peers.sample_nutpie(fuse(model) if engine.endswith("fuse") else model, **run, **kind)
    n = found["n_warmup"] + int(found["n_steps"].sum())
    return {"n_gradients": n} | {
        name: 1e6 * found[seconds] / n for name, seconds in (("us", "wall_seconds"), ("cpu_us", "cpu_seconds"))
    }


def time_both(function):
    """CPU seconds of the process and seconds of the clock that `function` takes."""
    start = time.process_time(), time.perf_counter()
    function()
    return time.process_time() - start[0], time.perf_counter() - start[1]
