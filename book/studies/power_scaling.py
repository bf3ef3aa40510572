"""What one fit of the book's network says of other priors for its group sds, to be held against refits (`sd_prior`).

A HalfNormal(s) is a HalfNormal(1) raised to the power 1 / s². So draws under HalfNormal(1), weighted by the prior to
the power 1 / s² - 1, are draws under HalfNormal(s): what power-scaling does for powers near 1, here for the refits'.

Source: Kallioinen et al. (2024), Detecting and diagnosing prior and likelihood sensitivity with power-scaling,
Statistics and Computing 34; Vehtari et al. (2024), Pareto Smoothed Importance Sampling, JMLR 25.
"""

import arviz as az
import numpy as np
from arviz_stats.base import array_stats
from scipy import stats

from studies import _fits, sd_prior

MEASURED = False
CASES = [{"data": name, "seed": 1} for name in sd_prior.DATA_SETS]
SCALES = (2.5, 5.0)


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 100


def compute(data, seed):
    """Sensitivity of each layer's sd to its prior, and its mean under wider priors, with error and Pareto k."""
    posterior = _fits.fit_hierarchical(_fits.load_moons(data), seed)["posterior"]
    return ask({f"sd{k}": posterior[f"sd{k}"].values for k in (1, 2, 3)}, seed)


def ask(sds, seed):
    """The columns of a row, of draws (chain, draw) of each sd under HalfNormal(1)."""
    log_prior = {name: stats.halfnorm.logpdf(draws) for name, draws in sds.items()}
    tree = az.from_dict({"posterior": sds, "log_prior": log_prior})
    found = az.psense(tree, group="prior")
    row = {f"sensitivity of {name}": float(found[name]) for name in sds}
    for scale in SCALES:
        mean, error, khat = reweight(sds, scale, seed)
        row[f"{scale:g}: Pareto k"] = khat
        for name in sds:
            row[f"{scale:g}: {name}"], row[f"{scale:g}: {name}_mcse"] = mean[name], error[name]
    return row


def reweight(sds, scale, seed, n_blocks=20):
    """Means of sds (dict of name to (chain, draw)) under HalfNormal(scale), their errors, and Pareto's k.

    The errors are a jackknife's over blocks of neighbouring draws, so that draws need not be independent.
    """
    draws = np.stack(list(sds.values()))
    ratio = (1 - 1 / scale**2) * (draws**2).sum(axis=0) / 2
    logw, khat = array_stats.psislw(-ratio, axis=[-2, -1])
    w = np.exp(logw)
    blocks = np.arange(w.size).reshape(w.shape) * n_blocks // w.size
    left = np.array([[np.average(d[blocks != b], weights=w[blocks != b]) for d in draws] for b in range(n_blocks)])
    errors = np.sqrt((n_blocks - 1) * left.var(axis=0))
    means = [float(np.average(d, weights=w)) for d in draws]
    return dict(zip(sds, means, strict=True)), dict(zip(sds, map(float, errors), strict=True)), float(khat)
