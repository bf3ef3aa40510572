"""From draws of the weights to probabilities, in plain NumPy."""

import numpy as np
from scipy.special import expit

WEIGHTS = ("w1", "w2", "w3")
BLOCK = 100  # draws


def flatten_chains(posterior):
    """The weights of a NUTS posterior with chains joined: dict of name to array (chain * draw, …)."""
    return {name: posterior[name].values.reshape(-1, *posterior[name].shape[2:]) for name in WEIGHTS}


def predict_probability(weights, X):
    """P(y = 1) of a flat network at each point, draw by draw.

    Parameters
    ----------
    weights : dict with ``w1`` (draw, feature, hidden_1), ``w2`` (draw, hidden_1, hidden_2), ``w3`` (draw, hidden_2)
    X : (obs, feature)

    Returns
    -------
    (draw, obs) array of probabilities
    """
    missing = [name for name in WEIGHTS if name not in weights]
    if missing:
        raise ValueError(f"weights lacks {', '.join(missing)}; wanted: {', '.join(WEIGHTS)}")
    X, (w1, w2, w3) = np.asarray(X, dtype=float), (np.asarray(weights[name]) for name in WEIGHTS)
    if (w1.ndim, w2.ndim, w3.ndim) != (3, 3, 2):
        raise ValueError(
            f"weights has shapes {w1.shape}, {w2.shape}, {w3.shape}; "
            "wanted: (draw, feature, hidden_1), (draw, hidden_1, hidden_2), (draw, hidden_2)"
        )
    if X.ndim != 2 or X.shape[1] != w1.shape[1]:
        raise ValueError(f"X has shape {X.shape}; wanted: (obs, {w1.shape[1]}), as the first layer's weights")
    p = np.empty((len(w1), len(X)))
    for start in range(0, len(w1), BLOCK):  # the hidden units of all draws at once would fill a Binder pod
        block = slice(start, start + BLOCK)
        h2 = np.tanh(np.tanh(X @ w1[block]) @ w2[block])
        p[block] = expit(h2 @ w3[block, :, None])[..., 0]
    return p
