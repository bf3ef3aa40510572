"""Curves of individuals that a model has not seen: the hierarchical networks of `growth_curves`.

The same curves, folds and scores as in `curve_rivals`. Three networks: "network", whose shapes are 0 where the curves
begin, so that the level is what an individual begins with; "changing noise", the same with noise that grows or falls
along the curve; and "free", whose shapes are tanh units as they come, on the two sets on which choices were made.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from hbnn import sampling
from hbnn.fusion.readouts import integrate_readouts, predict_group

from studies.curve_rivals import DATA, DIAGNOSTICS, N_FOLDS, N_PREDICT, judge, leave_out, pick_draws, score_all

MEASURED = False
CHOSEN_ON = ("theophylline", "chicks")  # scores on the first, R-hat on both
NOISY = ("chicks", "dialysers", "theophylline")  # on the soybean a fit takes minutes
METHODS = {"network": (DATA, (1, 2)), "changing noise": (NOISY, (1,)), "free": (CHOSEN_ON, (1,))}
CASES = [
    {"data": name, "method": method, "split": split, "fold": fold, "seed": 1}
    for method, (names, splits) in METHODS.items() for split in splits for name in names for fold in range(N_FOLDS)
]  # fmt: skip
N_HIDDEN = 4
SAMPLER = {"draws": 700, "tune": 700, "target_accept": 0.9}


def block(case):
    """Every row is a task of its own."""
    return tuple(case.values())


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 150 if case["data"] == "soybean" else 30


def build(known, *, is_free=False, is_changing=False):
    """A network with one hidden layer that all share; an individual's read-outs are normal, and integrated out.

    Parameters
    ----------
    known : curve_rivals.Curves
    is_free : bool, whether shapes are tanh units as they come, and not 0 at the smallest x of the training rows
    is_changing : bool, whether the noise is an exponential of x

    Returns
    -------
    pm.Model
    """
    x, y, _, _ = known.standardise()
    x, y = x[known.train], y[known.train]
    with pm.Model() as model:
        w, b = pm.Normal("w", 0, 1, shape=N_HIDDEN), pm.Normal("b", 0, 1, shape=N_HIDDEN)
        mu = pm.Normal("mu", 0, 1, shape=N_HIDDEN + 1)
        tau_shape, tau_level = pm.HalfNormal("tau_shape", 1), pm.HalfNormal("tau_level", 1)
        sigma = pm.HalfNormal("sigma", 1)
        h = pt.tanh(x[:, None] * w + b) - (0 if is_free else pt.tanh(x.min() * w + b))
        units = pt.concatenate([h, np.ones((len(x), 1))], axis=1)
        taus = pt.concatenate([tau_shape * pt.ones(N_HIDDEN), tau_level[None]])
        noise = sigma * pt.exp(pm.Normal("delta", 0, 1) * x) if is_changing else sigma
        pm.Potential("y", integrate_readouts(units, y, known.train_group(), mu, taus, noise))
    return model


def find_units(p, x, start, is_free):
    """Hidden units at x, and a last one that is 1: (draw, row, unit)."""
    w, b = p["w"][:, None], p["b"][:, None]
    h = np.tanh(x[:, None] * w + b) - (0 if is_free else np.tanh(start * w + b))
    return np.concatenate([h, np.ones((*h.shape[:2], 1))], axis=2)


def find_taus(p):
    """The sd over individuals of each read-out: (draw, unit)."""
    return np.column_stack([np.repeat(p["tau_shape"][:, None], N_HIDDEN, axis=1), p["tau_level"]])


def find_noise(p, x):
    """The noise at x: (draw, row)."""
    return p["sigma"][:, None] * np.exp(p.get("delta", np.zeros(len(p["sigma"])))[:, None] * x)


def fit(known, seed, method):
    """Diagnostics, and a function of (individual, k) as the rivals' in `curve_rivals`."""
    is_free = method == "free"
    model = build(known, is_free=is_free, is_changing=method == "changing noise")
    tree = pm.sample(model=model, random_seed=seed, **SAMPLER, **sampling.ONE_CORE)
    posterior = tree["posterior"].to_dataset()
    x, y, mean, sd = known.standardise()
    start, grid = x[known.train].min(), np.quantile(x[known.train], np.linspace(0, 1, 15))
    every = {name: posterior[name].values.reshape(-1, *posterior[name].shape[2:]) for name in posterior.data_vars}
    units = find_units(every, grid, start, is_free)
    asked = {
        "curve": np.einsum("dru,du->dr", units, every["mu"]),
        "apart": np.sqrt(np.einsum("dru,du->dr", units**2, find_taus(every) ** 2)),
        "noise": find_noise(every, grid[[0, -1]]),
    }
    chains = posterior["sigma"].shape
    found = judge({name: values.reshape(*chains, *values.shape[1:]) for name, values in asked.items()}, tree)
    p = pick_draws(posterior, N_PREDICT)

    def predict(one, k):
        at = known.rows(one)
        units, noise = find_units(p, x[at], start, is_free), find_noise(p, x[at])
        shared = p["mu"], find_taus(p), noise[:, k:]
        log_weight, m, s = predict_group(units[:, :k], y[at][:k], units[:, k:], *shared, sigma_seen=noise[:, :k])
        return log_weight, mean + sd * m, sd * s

    return found, predict


def compute(data, method, split, fold, seed):
    """Scores of each individual left out by how many of its points are known, and diagnostics of the fit."""
    known = leave_out(data, split, fold)
    found, predict = fit(known, seed, method)
    return dict.fromkeys(DIAGNOSTICS) | found | score_all(known, predict)
