"""The PyMC models, one function each. A chapter that teaches a model shows the very source that stands here."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bnn.data import check_data
from bnn.fused import flat_loglik


def flat_bnn(X, y, *, n_hidden=(5, 5), prior_sd=1.0, total_size=None, likelihood="graph"):
    """One network 2-5-5-1 with tanh units and no biases, a normal prior on every weight, Bernoulli labels.

    Parameters
    ----------
    X : (obs, feature) array, or a `pm.Minibatch` of it
    y : (obs,) array of 0 and 1, or the same minibatch of it
    n_hidden : two ints, units in the first and the second hidden layer
    prior_sd : float > 0, one standard deviation for all weights
    total_size : int, points in the whole data set; required with a minibatch
    likelihood : "graph", the Bernoulli variable ``y`` as PyMC writes it; or "fused", the same number from
        `bnn.fused` in a fraction of the time, for NUTS on arrays: without ``y``, nothing to simulate or to batch

    Returns
    -------
    pm.Model
        With variables ``w1``, ``w2``, ``w3``, ``p`` (class probability at X) and ``y``. Where X is an array,
        ``pm.set_data({"X": X_new})`` moves the model to other points.

    Raises
    ------
    ValueError
        For wrong shapes, labels other than 0 and 1, NaN, an empty data set, widths or a scale below zero.
    """
    X, y, n_feature, is_array = _check_inputs(X, y, n_hidden, prior_sd, likelihood)
    coords = {
        "feature": range(n_feature),
        "hidden_1": range(n_hidden[0]),
        "hidden_2": range(n_hidden[1]),
    }
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", X, dims=("obs", "feature")) if is_array else X
        w1 = pm.Normal("w1", 0, prior_sd, dims=("feature", "hidden_1"))
        w2 = pm.Normal("w2", 0, prior_sd, dims=("hidden_1", "hidden_2"))
        w3 = pm.Normal("w3", 0, prior_sd, dims="hidden_2")
        h1 = pm.math.tanh(x @ w1)
        h2 = pm.math.tanh(h1 @ w2)
        p = pm.Deterministic("p", pm.math.sigmoid(h2 @ w3))
        if likelihood == "fused":
            pm.Potential("loglik", flat_loglik(x, y, w1, w2, w3))
        else:
            pm.Bernoulli("y", p, observed=y, shape=p.shape, total_size=total_size)
    return model


def _check_inputs(X, y, n_hidden, prior_sd, likelihood):
    """Raise what `flat_bnn` documents; else return X and y, the number of features, and whether X is an array."""
    if not (np.shape(n_hidden) == (2,) and all(isinstance(n, int | np.integer) and n > 0 for n in n_hidden)):
        raise ValueError(f"n_hidden={n_hidden}; wanted: two numbers of units, each at least 1")
    if not prior_sd > 0:
        raise ValueError(f"prior_sd={prior_sd}; wanted: a standard deviation above 0")
    if likelihood not in ("graph", "fused"):
        raise ValueError(f"likelihood={likelihood!r}; wanted: 'graph' or 'fused'")
    is_array = not isinstance(X, pt.TensorVariable)
    if is_array:
        X, y = check_data(X, y)
    elif getattr(y, "dtype", None) != "int32":
        raise ValueError(f"y has type {getattr(y, 'dtype', type(y))}; wanted: int32 in a minibatch")
    elif likelihood == "fused":
        raise ValueError("likelihood='fused' with a minibatch; wanted: 'graph', which knows total_size")
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; wanted: (obs, feature), one data set without categories")
    return X, y, X.shape[-1] if is_array else X.type.shape[-1], is_array
