"""Simulation-based calibration in function space: are model, likelihood, sampler and prediction right together?

Draw networks from the prior, labels from the networks, and sample the posterior of those labels. Then the truth's rank
among the posterior's draws must be uniform, for every function of the unknowns. We ask functions that no relabelling of
hidden units changes: logits at three points, the log likelihood and, in the hierarchical network, the group sds. Raw
weights would tell nothing: their posterior is symmetric, and their rank uniform, even for a sampler that never learns.

Source: Talts et al. (2018), Validating Bayesian Inference Algorithms with Simulation-Based Calibration; and Modrák et
al. (2023), who show that the log likelihood finds what parameters miss.
"""

from functools import lru_cache

import numpy as np
from bookkit import models
from hbnn import fuse, prediction, sampling
from scipy.special import expit, logit

MEASURED = False
N_RANKS = 100  # thinned draws, so that ranks run from 0 to 100
SHAPES = {"flat": (1, 50, (5, 5)), "hierarchical": (6, 20, (4, 4))}  # categories, points, hidden units
N_SIMULATIONS = {"flat": 200, "hierarchical": 100}
CASES = [{"model": model, "seed": seed} for model, n in N_SIMULATIONS.items() for seed in range(1, n + 1)]
POINTS = np.array([[0.5, 0.0], [-1.0, 1.0], [2.0, 1.5]])
SETTINGS = {"draws": 500, "tune": 500, "target_accept": 0.9}
FIRST = 8  # CPU-seconds to compile


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 2 if case["model"] == "flat" else 6


def draw_truth(model, seed):
    """A network from the prior with its points and labels: unknowns, X (group, obs, 2), y (group, obs)."""
    n_groups, n_obs, n_hidden = SHAPES[model]
    rng = np.random.default_rng([seed, len(model)])
    sizes = [2, *n_hidden]
    shapes = [(2, n_hidden[0]), n_hidden, (n_hidden[1],)]
    truth = {}
    for k, shape in enumerate(shapes, 1):
        mu = rng.normal(size=shape)
        if model == "flat":
            truth[f"w{k}"] = mu[None]
            continue
        truth[f"mu{k}"], truth[f"sd{k}"] = mu, abs(rng.normal())
        truth[f"w{k}"] = mu + truth[f"sd{k}"] * rng.normal(size=(n_groups, *shape))
    X = rng.normal(size=(n_groups, n_obs, sizes[0]))
    return truth, X, rng.binomial(1, expit(compute_logit(truth, X)))


def compute_logit(truth, X):
    """Logits (group, obs) of one network for each category."""
    h = np.tanh(np.tanh(X @ truth["w1"]) @ truth["w2"])
    return (h @ truth["w3"][..., None])[..., 0]


@lru_cache
def compile_model(model):
    """Compiled once; data are swapped."""
    _, X, y = draw_truth(model, 1)
    n_hidden = SHAPES[model][2]
    if model == "flat":
        return sampling.compile_nuts(fuse(models.flat_bnn(X[0], y[0], n_hidden=n_hidden)))
    return sampling.compile_nuts(fuse(models.hierarchical_bnn(X, y, n_hidden=n_hidden)))


def compute(model, seed):
    """The rank of the truth among 100 thinned draws, for each quantity, and the run's divergences."""
    truth, X, y = draw_truth(model, seed)
    arrays = {"X": X[0], "labels": y[0]} if model == "flat" else {"X": X, "labels": y}
    tree = sampling.sample_nuts(compile_model(model).with_data(**arrays), seed=seed, **SETTINGS)
    posterior = tree["posterior"]
    if model == "flat":
        posterior = {name: posterior[name].values[:, :, None] for name in ("w1", "w2", "w3")}
    p, p_points = (prediction.predict_groups(posterior, points, activation="tanh") for points in (X, POINTS))
    logits = logit(np.clip(p_points[:, :, 0], 1e-15, 1 - 1e-15))
    draws = {f"logit {k}": logits[..., k] for k in range(len(POINTS))}
    tiny = 1e-300
    draws["log likelihood"] = np.log(np.maximum(np.where(y == 1, p, 1 - p), tiny)).sum(axis=(2, 3))
    at_points, at_data = compute_logit(truth, POINTS[None]), compute_logit(truth, X)
    true = {f"logit {k}": at_points[0, k] for k in range(len(POINTS))}
    true["log likelihood"] = -np.logaddexp(0, np.where(y == 1, -at_data, at_data)).sum()
    for k in (1, 2, 3):
        draws[f"sd{k}"] = tree["posterior"][f"sd{k}"].values if model != "flat" else None
        true[f"sd{k}"] = truth.get(f"sd{k}")
    row = {f"rank of {name}": _rank(draws[name], true[name]) for name in draws}
    return row | {"divergences": int(tree["sample_stats"]["diverging"].sum())}


def _rank(draws, true):
    if draws is None:
        return None
    flat = draws.reshape(-1)
    return int((flat[:: len(flat) // N_RANKS][:N_RANKS] < true).sum())
