"""Did the chains agree? Asked of what is identified (probabilities), never of raw weights.

A network's weights can be relabelled (hidden units permuted, signs flipped) without changing a single
prediction, so two perfect chains may sit in different labelings. Predictions do not know about labels.
"""

import numpy as np
from arviz_stats.base import array_stats

RHAT_LIMIT = 1.01
ESS_LIMIT = 400


def diagnose(values):
    """Rank-normalised R-hat, bulk ESS and MCSE of the mean, for each quantity.

    Parameters
    ----------
    values : (chain, draw, quantity) array of identified quantities, e.g. class probabilities on a grid

    Returns
    -------
    dict
        "rhat", "ess" (draws), "mcse" (units of `values`), each of shape (quantity,).

    Source: Vehtari et al. (2021), Rank-Normalization, Folding, and Localization, Bayesian Analysis 16.
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 3:
        raise ValueError(f"values has shape {values.shape}; wanted: (chain, draw, quantity)")
    if values.shape[0] < 2 or values.shape[1] < 4:
        n_chains, n_draws, _ = values.shape
        raise ValueError(f"values has {n_chains} chains of {n_draws} draws; wanted: at least 2 chains of 4 draws")
    if values.shape[2] == 0:
        raise ValueError(f"values has shape {values.shape}; wanted: at least one quantity")
    if not np.isfinite(values).all():
        raise ValueError("values holds NaN or infinite numbers; wanted: finite numbers")
    columns = [values[:, :, i] for i in range(values.shape[2])]
    return {
        "rhat": np.array([array_stats.rhat(c) for c in columns]),
        "ess": np.array([array_stats.ess(c) for c in columns]),
        "mcse": np.array([array_stats.mcse(c) for c in columns]),
    }


def judge(values, n_divergent):
    """The book's verdict on a NUTS run, with the figures behind it.

    Parameters
    ----------
    values : as in `diagnose`
    n_divergent : int, divergent draws after tuning

    Returns
    -------
    dict
        "max R-hat", "min bulk ESS", "divergences" and "converged" (bool: R-hat and ESS within the limits;
        divergences are shown beside it and judged where they are located).
    """
    found = diagnose(values)
    rhat, ess = float(found["rhat"].max()), float(found["ess"].min())
    return {
        "max R-hat": rhat,
        "min bulk ESS": ess,
        "divergences": int(n_divergent),
        "converged": rhat < RHAT_LIMIT and ess > ESS_LIMIT,
    }
