"""What does stopping at a verdict do to errors? Two hundred repetitions on a posterior that is cheap.

A small network, 30 points, four short chains at a time. Its means are known from a run eighty times as long. For
each repetition and each number of runs: whether the verdict held, and how the error of each mean compares with the
Monte Carlo error that is reported for it. So the table can be read with any stopping rule, and with none.
"""

from functools import lru_cache

import numpy as np
from bookkit import data, models
from hbnn import diagnostics, fuse, prediction, sampling

from studies import _fits

MEASURED = False
N_RUNS = 4
SHORT = {"draws": 150, "tune": 200, "target_accept": 0.9}
LONG = {"draws": 12_000, "tune": 1000, "target_accept": 0.9}
CASES = [{"seed": seed} for seed in range(1, 201)]
FIRST = 45  # CPU-seconds of the long run, once for each process
GRID = data.grid(6)


def block(case):
    """A hundred repetitions are one task, since each process needs the long run first."""
    return (case["seed"] - 1) // 100


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 2


@lru_cache
def compile_network():
    """A network of 3 hidden units on 30 points of the two moons, and those points."""
    moons = data.flat_moons(seed=501, n_obs=60)
    return sampling.compile_nuts(fuse(models.flat_bnn(moons.X_train, moons.y_train, n_hidden=(3, 3)))), moons


def list_quantities(posterior):
    """Probabilities at 36 places, and the log likelihood: dict of name to (chain, draw, …)."""
    _, moons = compile_network()
    shape = posterior["w3"].shape[:2]
    weights = prediction.flatten_chains(posterior)
    p = prediction.predict_probability(weights, moons.X_train, activation="tanh").reshape(*shape, -1)
    grid = prediction.predict_probability(weights, GRID, activation="tanh").reshape(*shape, -1)
    return {"grid": grid, "log likelihood": _fits.log_likelihood(p, moons.y_train)}


@lru_cache
def find_means():
    """The means of all quantities from a long run, and their Monte Carlo errors: (quantity,) each."""
    tree = sampling.sample_nuts(compile_network()[0], seed=0, **LONG)
    values = join(list_quantities(tree["posterior"].to_dataset()))
    return values.mean(axis=(0, 1)), diagnostics.diagnose(values[:, ::5])["mcse"]


def join(quantities):
    """All quantities side by side: (chain, draw, quantity)."""
    return np.concatenate([v.reshape(*v.shape[:2], -1) for v in quantities.values()], axis=2)


def compute(seed):
    """After each number of runs: verdict, least ESS, share of |z| below 1.96, and root mean square z of all means."""
    compiled, _ = compile_network()
    truth, error = find_means()
    found = {name: [] for name in ("converged", "ess", "rhat", "covered", "rms_z", "mcse")}
    trees = []
    for run_seed in (seed, *np.random.SeedSequence(seed).generate_state(N_RUNS)[1:].tolist()):
        trees.append(sampling.sample_nuts(compiled, seed=int(run_seed), **SHORT))
    for n in range(1, N_RUNS + 1):
        tree = trees[0]
        for run in trees[1:n]:
            tree = sampling.join_chains(tree, run)
        quantities = list_quantities(tree["posterior"].to_dataset())
        verdict = diagnostics.verdict(quantities, tree)
        values = join(quantities)
        mcse = diagnostics.diagnose(values)["mcse"]
        z = (values.mean(axis=(0, 1)) - truth) / np.hypot(mcse, error)
        found["converged"].append(verdict.converged)
        found["ess"].append(round(min(verdict.ess, verdict.ess_tail), 1))
        found["rhat"].append(round(verdict.rhat, 5))
        found["covered"].append(round(float((abs(z) < 1.96).mean()), 5))
        found["rms_z"].append(round(float(np.sqrt((z**2).mean())), 5))
        found["mcse"].append(round(float(np.mean(mcse)), 7))
    return found
