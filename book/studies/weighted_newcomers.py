"""New categories without a sampler: many networks from a prior, each weighted by how likely it makes the few labels.

The categories of `new_categories`, and two priors that the articles' eighteen have taught: the posterior's own draws of
a new category, and a narrow normal around their centre. Importance sampling; the effective draws tell how far to trust
it.
"""

from functools import lru_cache

import numpy as np
from hbnn import metrics, prediction, priors, symmetry
from scipy.special import logsumexp

from studies import _fits
from studies.new_categories import KINDS, SIZES, draw_categories

MEASURED = False
CASES = [{"kind": kind, "category": c, "seed": 1} for kind, n_categories in KINDS.items() for c in range(n_categories)]
SETTINGS = {"draws": 850, "tune": 600}
PER_DRAW = 20  # networks for each draw of the group's parameters
N_NARROW = 20_000  # networks from the narrow normal
N_PICKED = 1000  # networks that predict
FIRST = 200  # CPU-seconds: the posterior of eighteen categories


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 10


def sizes(kind):
    """With how many points a kind of category is tried."""
    return SIZES if kind == "alike" else SIZES[:3]


def learn_narrow(posterior):
    """Mean and sds (180,) of the narrow normal: the centre of the aligned group means, the group sds around it."""
    labelling = priors.align_posterior(posterior, seed=1)
    means = {f"w{k}": np.concatenate(posterior[f"mu{k}"].values) for k in (1, 2, 3)}
    flat = priors.flatten(symmetry.relabel(labelling, means))
    sds = [np.sqrt((posterior[f"sd{k}"].values ** 2).mean()) for k in (1, 2, 3)]
    return flat.mean(axis=0), np.repeat(sds, (24, 144, 12))


def cut(flat):
    """Rows of 180 weights as the layers of networks."""
    w1, w2, w3 = np.split(flat, [24, 168], axis=1)
    return {"w1": w1.reshape(-1, 2, 12), "w2": w2.reshape(-1, 12, 12), "w3": w3}


@lru_cache(maxsize=1)
def draw_networks(seed):
    """Networks from each prior, and how many of them share a draw of the group's parameters: dict of name to both."""
    posterior = _fits.fit_hierarchical(_fits.load_moons("legacy"), **SETTINGS)["posterior"]
    mean, sd = learn_narrow(posterior)
    narrow = cut(mean + sd * np.random.default_rng(seed).normal(size=(N_NARROW, len(mean))))
    drawn = priors.draw_new_category(posterior, seed=seed, n_per_draw=PER_DRAW)
    return {"draws": (drawn, PER_DRAW), "narrow normal": (narrow, 1)}


def pick(networks, loglik, near, seed):
    """Networks by their likelihood, and how many independent draws all are worth.

    Parameters
    ----------
    networks : dict of (network, …) arrays
    loglik : (network,) log likelihood of the labels
    near : int, how many networks, one after the other, count as one
    """
    weight = np.exp(loglik - logsumexp(loglik))
    picked = np.random.default_rng(seed).choice(len(weight), N_PICKED, p=weight)
    worth = 1 / np.sum(weight.reshape(-1, near).sum(axis=1) ** 2)
    return {name: w[picked] for name, w in networks.items()}, worth


def compute(kind, category, seed):
    """Test scores of both priors, and the effective draws, with the first 5, 10, … points."""
    one, row = draw_categories(kind).group(category), {}
    for method, (networks, near) in draw_networks(seed).items():
        p = prediction.predict_probability(networks, one.X_train[: sizes(kind)[-1]], activation="tanh")
        loglik = metrics.log_likelihood(p, one.y_train[: sizes(kind)[-1]]).cumsum(axis=1)
        for n in sizes(kind):
            picked, worth = pick(networks, loglik[:, n - 1], near, seed=category)
            found = metrics.score(
                prediction.predict_probability(picked, one.X_test, activation="tanh").mean(axis=0), one.y_test
            )
            row |= {f"{method}, {n}: {name}": value for name, value in found.items()}
            row[f"{method}, {n}: effective draws"] = float(worth)
    return row
