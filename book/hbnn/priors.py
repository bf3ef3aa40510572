"""From a hierarchical posterior to a prior for a new group: draws of its weights, aligned, and their normal."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import xarray as xr

from hbnn import symmetry
from hbnn._checks import check_count, check_seed
from hbnn._types import Array, Floats, Named

_RIDGE = 1e-6  # of the mean variance, added to the diagonal of a covariance estimated from draws


def draw_new_category(posterior: Named, *, seed: int, n_per_draw: int = 1) -> dict[str, Floats]:
    """Weights of a group that was not seen, from the group posterior predictive: w = mu + sd * N(0, 1).

    Parameters
    ----------
    posterior : Dataset or mapping of arrays, shape (chain, draw, …)
        ``mu1``, ``sd1``, ``mu2``, … of a hierarchical network without biases.
    seed : int
    n_per_draw : int
        New groups for each draw of what groups share.

    Returns
    -------
    dict of arrays, shape (draw, …)
        w1, w2, …, draws in the order of chains, hidden units labelled as in the posterior.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import priors
    >>> rng = np.random.default_rng(1)
    >>> posterior = {
    ...     "mu1": rng.normal(size=(4, 10, 2, 5)), "sd1": np.ones((4, 10)),
    ...     "mu2": rng.normal(size=(4, 10, 5)), "sd2": np.ones((4, 10)),
    ... }
    >>> weights = priors.draw_new_category(posterior, seed=1, n_per_draw=3)
    >>> {name: w.shape for name, w in weights.items()}
    {'w1': (120, 2, 5), 'w2': (120, 5)}
    """
    check_seed(seed)
    check_count(n_per_draw, "n_per_draw")
    if not isinstance(posterior, Mapping):
        raise ValueError(f"posterior is a {type(posterior).__name__}; wanted: mu1, sd1, … in a Dataset or dict")
    if "mu1" not in posterior or "bias_mu1" in posterior:
        raise ValueError(f"posterior holds {', '.join(posterior)}; wanted: mu1, sd1, mu2, … and no biases")
    rng, weights, k = np.random.default_rng(seed), {}, 1
    while f"mu{k}" in posterior:
        mu, sd = np.asarray(posterior[f"mu{k}"]), np.asarray(posterior[f"sd{k}"])
        mu = np.repeat(mu.reshape(-1, *mu.shape[2:]), n_per_draw, axis=0)
        sd = np.repeat(sd.reshape(-1, *sd.shape[2:]), n_per_draw, axis=0)
        sd = sd if sd.ndim > 1 else sd.reshape(-1, *[1] * (mu.ndim - 1))
        weights[f"w{k}"] = mu + sd * rng.normal(size=mu.shape)
        k += 1
    return weights


def align_posterior(posterior: xr.Dataset | xr.DataTree, *, seed: int) -> symmetry.Labelling:
    """Align the group means of a hierarchical posterior, by `symmetry.align`.

    Parameters
    ----------
    posterior : Dataset, DataTree or mapping of arrays, shape (chain, draw, …)
        ``mu1``, ``mu2``, …
    seed : int

    Returns
    -------
    Labelling
        Of each draw (chain * draw): the one in which its means are nearest to the mean of all.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from hbnn import priors
    >>> rng = np.random.default_rng(1)
    >>> posterior = xr.Dataset({
    ...     "mu1": (("chain", "draw", "feature", "hidden"), rng.normal(size=(4, 10, 2, 5))),
    ...     "mu2": (("chain", "draw", "hidden"), rng.normal(size=(4, 10, 5))),
    ... })
    >>> priors.align_posterior(posterior, seed=1).order[0].shape  # draws, units
    (40, 5)
    """
    means: dict[str, Array] = {}
    while f"mu{len(means) + 1}" in posterior:
        mu = np.asarray(posterior[f"mu{len(means) + 1}"])
        means[f"w{len(means) + 1}"] = mu.reshape(-1, *mu.shape[2:])
    return symmetry.align(means, seed=seed)[0]


def flatten(weights: Named) -> Array:
    """Lay all weights of a network side by side.

    Parameters
    ----------
    weights : mapping of arrays, shape (draw, …)

    Returns
    -------
    array, shape (draw, weight)

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import priors
    >>> priors.flatten({"w1": np.ones((10, 2, 5)), "w2": np.ones((10, 5))}).shape
    (10, 15)
    """
    return np.concatenate([np.reshape(w, (np.shape(w)[0], -1)) for w in weights.values()], axis=1)


def fit_normal(weights: Named, *, joint: bool = True) -> tuple[Floats, Floats]:
    """Fit a normal distribution to draws of a network's weights.

    Parameters
    ----------
    weights : mapping of arrays, shape (draw, …)
        w1, w2, …, aligned, or the result has no meaning.
    joint : bool
        One covariance over all weights; otherwise one for each layer, layers independent.

    Returns
    -------
    mean : array, shape (weight,)
    cholesky : array, shape (weight, weight)
        Lower Cholesky factor of the covariance.

    Raises
    ------
    ValueError
        For no more draws than weights, whose covariance has no such factor; and for NaN or infinite weights.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import priors
    >>> rng = np.random.default_rng(1)
    >>> weights = {"w1": rng.normal(1, 0.5, (500, 2, 3)), "w2": rng.normal(-1, 0.5, (500, 3))}
    >>> mean, cholesky = priors.fit_normal(weights, joint=False)
    >>> mean.shape, cholesky.shape
    ((9,), (9, 9))
    >>> bool(np.allclose(mean, [1] * 6 + [-1] * 3, atol=0.1))
    True
    >>> bool(np.allclose(np.diag(cholesky), 0.5, atol=0.1))
    True
    """
    flat = flatten(weights)
    if not np.isfinite(flat).all():
        raise ValueError("weights holds NaN or infinite numbers; wanted: finite numbers")
    n_draws, n_weights = flat.shape
    if n_draws <= n_weights:
        raise ValueError(f"{n_draws} draws of {n_weights} weights; wanted: more draws than weights")
    covariance = np.cov(flat.T)
    if not joint:
        layer = np.repeat(np.arange(len(weights)), [np.prod(np.shape(w)[1:], dtype=int) for w in weights.values()])
        covariance = np.where(layer[:, None] == layer, covariance, 0.0)
    covariance[np.diag_indices(n_weights)] += _RIDGE * np.diag(covariance).mean()
    return flat.mean(axis=0), np.linalg.cholesky(covariance)


def scale_prior(scales: Sequence[float] | Floats, n_feature: int, n_hidden: Sequence[int]) -> tuple[Floats, Floats]:
    """Make a prior with mean zero and one standard deviation for each layer, in the form of `fit_normal`.

    Parameters
    ----------
    scales : sequence of float
        Above 0, one for each layer of weights.
    n_feature : int
    n_hidden : sequence of int
        Units in each hidden layer.

    Returns
    -------
    mean : array, shape (weight,)
    cholesky : array, shape (weight, weight)

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import priors
    >>> mean, cholesky = priors.scale_prior([1.0, 0.5], n_feature=2, n_hidden=(2,))
    >>> mean, np.diag(cholesky)
    (array([0., 0., 0., 0., 0., 0.]), array([1. , 1. , 1. , 1. , 0.5, 0.5]))
    """
    sizes = [n_feature, *n_hidden, 1]
    if len(scales) != len(sizes) - 1 or not np.all(np.asarray(scales) > 0):
        raise ValueError(f"scales={scales}; wanted: {len(sizes) - 1} standard deviations above 0")
    sd = np.repeat(np.asarray(scales, dtype=float), [a * b for a, b in pairwise(sizes)])
    return np.zeros(len(sd)), np.diag(sd)


def measure_scales(weights: Named) -> Floats:
    """Root mean square of each layer's weights over draws, groups and connections.

    Parameters
    ----------
    weights : mapping of arrays, shape (draw, …)

    Returns
    -------
    array, shape (layer,)

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import priors
    >>> priors.measure_scales({"w1": np.full((10, 2, 5), 3.0), "w2": np.full((10, 5), -0.5)})
    array([3. , 0.5])
    """
    return np.array([np.sqrt(np.mean(np.square(w))) for w in weights.values()])
