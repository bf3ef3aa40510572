"""From draws of the weights to probabilities, in plain NumPy."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike
from scipy.special import expit, softmax

from hbnn._checks import check_images, refuse_masked
from hbnn._types import Array, Floats, Named

WEIGHTS = ("w1", "w2", "w3")
_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"tanh": np.tanh, "relu": lambda z: np.maximum(z, 0)}
BLOCK = 100  # draws


def flatten_chains(posterior: xr.Dataset | xr.DataTree) -> dict[str, Array]:
    """Join the chains of the weights w1, w2 and w3 of a NUTS posterior.

    Parameters
    ----------
    posterior : Dataset or DataTree, with arrays of shape (chain, draw, …)

    Returns
    -------
    dict of arrays, shape (chain * draw, …)

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from hbnn import prediction
    >>> rng = np.random.default_rng(1)
    >>> posterior = xr.Dataset({
    ...     "w1": (("chain", "draw", "feature", "hidden_1"), rng.normal(size=(4, 10, 2, 5))),
    ...     "w2": (("chain", "draw", "hidden_1", "hidden_2"), rng.normal(size=(4, 10, 5, 5))),
    ...     "w3": (("chain", "draw", "hidden_2"), rng.normal(size=(4, 10, 5))),
    ... })
    >>> {name: w.shape for name, w in prediction.flatten_chains(posterior).items()}
    {'w1': (40, 2, 5), 'w2': (40, 5, 5), 'w3': (40, 5)}
    """
    arrays = {name: np.asarray(posterior[name]) for name in WEIGHTS}
    return {name: w.reshape(-1, *w.shape[2:]) for name, w in arrays.items()}


def combine_weights(posterior: Named | xr.DataTree) -> dict[str, Array]:
    """The weights of every group of a hierarchical posterior, w = mu + sd z, and its biases likewise.

    Parameters
    ----------
    posterior : Dataset, DataTree or mapping of arrays, shape (chain, draw, …)
        ``mu1``, ``sd1``, ``z1``, ``mu2``, …, and ``bias_mu1``, ``bias_z1``, … where there are biases. An sd is one
        number a layer, or one for each connection.

    Returns
    -------
    dict of arrays, shape (chain, draw, group, …)
        w1, w2, …, the last without an axis for its single output; with b1, b2, … where there are biases.

    Raises
    ------
    ValueError
        When there is no such variable.

    Examples
    --------
    Four chains of ten draws, for three groups:

    >>> import numpy as np
    >>> from hbnn import prediction
    >>> rng = np.random.default_rng(1)
    >>> posterior = {
    ...     "mu1": rng.normal(size=(4, 10, 2, 5)), "mu2": rng.normal(size=(4, 10, 5)),
    ...     "sd1": np.ones((4, 10)), "sd2": np.zeros((4, 10)),
    ...     "z1": rng.normal(size=(4, 10, 3, 2, 5)), "z2": rng.normal(size=(4, 10, 3, 5)),
    ... }
    >>> weights = prediction.combine_weights(posterior)
    >>> {name: w.shape for name, w in weights.items()}
    {'w1': (4, 10, 3, 2, 5), 'w2': (4, 10, 3, 5)}
    >>> bool(np.ptp(weights["w2"], axis=2).any())  # with an sd of 0 groups do not differ
    False
    """
    if "mu1" not in posterior:
        raise ValueError(f"posterior holds {', '.join(posterior)}; wanted: mu1, sd1, z1, mu2, …")
    weights, k = {}, 1
    while f"mu{k}" in posterior:
        sd = np.asarray(posterior[f"sd{k}"])
        for name, prefix in {f"w{k}": "", f"b{k}": "bias_"}.items():
            if f"{prefix}mu{k}" in posterior:
                mu, z = (np.asarray(posterior[f"{prefix}{part}{k}"]) for part in ("mu", "z"))
                one_a_layer = sd.ndim == 2  # else one for each connection
                wide = sd.reshape(*sd.shape, *[1] * (z.ndim - 2)) if one_a_layer else sd[:, :, None]
                weights[name] = mu[:, :, None] + wide * z
        k += 1
    return weights


def _list_layers(weights: Named | xr.DataTree) -> list[str]:
    """The names w1, w2, … that are there."""
    return [name for name in (f"w{k}" for k in range(1, len(weights) + 1)) if name in weights]


def _check_layers(arrays: dict[str, Array], axes: tuple[str, ...]) -> None:
    """Raise ValueError unless w1, b1, w2, … all begin with the axes of w1, named in `axes`, and fit the layer below."""
    first, before = arrays["w1"], "X"
    if first.ndim != len(axes) + 1 + ("w2" in arrays):
        raise ValueError(f"w1 has shape {first.shape}; wanted: ({', '.join(axes)}, in, out)")
    start, below = first.shape[: len(axes)], first.shape[len(axes) : len(axes) + 1]
    for name in sorted(arrays, key=lambda name: (int(name[1:]), name[0] == "b")):
        shape = arrays[name].shape
        out = shape[len(axes) + 1 : len(axes) + 2] if name[0] == "w" else ()  # a single output has no axis
        if shape != (wanted := (*start, *below, *out)):
            raise ValueError(f"{name} has shape {shape}; wanted: {wanted}, to fit {before}")
        if name[0] == "w":
            below, before = out, name


def predict_groups(
    posterior: Named | xr.DataTree, X: ArrayLike, *, activation: Literal["tanh", "relu"] = "tanh"
) -> Floats:
    """P(y = 1) of each group's network, draw by draw.

    Parameters
    ----------
    posterior : Dataset, DataTree or mapping of arrays, shape (chain, draw, …)
        Of a hierarchical network, as for `combine_weights`; or the weights w1, w2, … of every group, (chain, draw,
        group, …), the last without an axis for its single output, and the biases b1, b2, … where there are any.
    X : array_like, shape (group, obs, feature) or (obs, feature)
        The latter: the same points for every group.
    activation : {"tanh", "relu"}
        Of the model that the draws come from.

    Returns
    -------
    array, shape (chain, draw, group, obs)

    Raises
    ------
    ValueError
        For points that are masked or do not fit the weights, layers that are missing or do not fit together, and an
        activation that is unknown.

    Examples
    --------
    Goes on from `combine_weights`.

    >>> X = rng.normal(size=(100, 2))
    >>> p = prediction.predict_groups(posterior, X)
    >>> p.shape  # chains, draws, groups, points
    (4, 10, 3, 100)
    >>> bool(((p > 0) & (p < 1)).all())
    True
    """
    found = posterior if "w1" in posterior else combine_weights(posterior)
    names = _list_layers(found)
    wanted = [f"w{k}" for k in range(1, len(names) + 1)]
    if any(f"b{name[1:]}" in found for name in names):
        wanted += [f"b{k}" for k in range(1, len(names) + 1)]
    if lacking := [name for name in wanted if name not in found]:
        raise ValueError(
            f"posterior lacks {', '.join(lacking)}; wanted: weights of each layer, and biases of each or none"
        )
    arrays = {name: np.asarray(found[name]) for name in wanted}
    _check_layers(arrays, ("chain", "draw", "group"))
    weights, biases = [arrays[name] for name in names], [arrays.get(f"b{name[1:]}") for name in names]
    n_chains, n_draws, n_groups, n_feature = weights[0].shape[:4]
    refuse_masked(X, "X")
    X = np.asarray(X, dtype=float)
    if X.ndim not in (2, 3) or X.shape[-1] != n_feature or (X.ndim == 3 and len(X) != n_groups):
        raise ValueError(f"X has shape {X.shape}; wanted: ({n_groups}, obs, {n_feature}) or (obs, {n_feature})")
    if activation not in _ACTIVATIONS:
        raise ValueError(f"activation={activation!r}; wanted: one of {', '.join(_ACTIVATIONS)}")
    activate = _ACTIVATIONS[activation]
    p = np.empty((n_chains * n_draws, n_groups, X.shape[-2]))
    flat = [w.reshape(-1, *w.shape[2:]) for w in weights]
    flat[-1] = flat[-1][..., None]
    shifts = [None if b is None else b.reshape(len(p), n_groups, 1, -1) for b in biases]
    for start in range(0, len(p), BLOCK):
        block, h = slice(start, start + BLOCK), X
        for k, (w, b) in enumerate(zip(flat, shifts, strict=True), 1):
            h = h @ w[block] if b is None else h @ w[block] + b[block]
            h = activate(h) if k < len(flat) else h
        p[block] = expit(h)[..., 0]
    return p.reshape(n_chains, n_draws, *p.shape[1:])


def predict_probability(weights: Named, X: ArrayLike) -> Floats:
    """P(y = 1) of a tanh network of two hidden layers without biases at each point, draw by draw.

    Parameters
    ----------
    weights : mapping of arrays
        ``w1`` (draw, feature, hidden_1), ``w2`` (draw, hidden_1, hidden_2), ``w3`` (draw, hidden_2).
    X : array_like, shape (obs, feature)

    Returns
    -------
    array, shape (draw, obs)

    Raises
    ------
    ValueError
        For layers that are missing or do not fit together, and points that are masked or do not fit them.

    Examples
    --------
    Goes on from `flatten_chains`. Without biases, the opposite point has the opposite answer.

    >>> weights, X = prediction.flatten_chains(posterior), rng.normal(size=(100, 2))
    >>> p, opposite = (prediction.predict_probability(weights, points) for points in (X, -X))
    >>> p.shape  # draws, points
    (40, 100)
    >>> bool(np.allclose(p + opposite, 1))
    True
    """
    missing = [name for name in WEIGHTS if name not in weights]
    if missing:
        raise ValueError(f"weights lacks {', '.join(missing)}; wanted: {', '.join(WEIGHTS)}")
    arrays = {name: np.asarray(weights[name]) for name in WEIGHTS}
    _check_layers(arrays, ("draw",))
    refuse_masked(X, "X")
    X, (w1, w2, w3) = np.asarray(X, dtype=float), arrays.values()
    if X.ndim != 2 or X.shape[1] != w1.shape[1]:
        raise ValueError(f"X has shape {X.shape}; wanted: (obs, {w1.shape[1]}), as the first layer's weights")
    p = np.empty((len(w1), len(X)))
    for start in range(0, len(w1), BLOCK):  # the hidden units of all draws at once would fill a Binder pod
        block = slice(start, start + BLOCK)
        h2 = np.tanh(np.tanh(X @ w1[block]) @ w2[block])
        p[block] = expit(h2 @ w3[block, :, None])[..., 0]
    return p


def predict_classes(weights: Named, X: ArrayLike) -> Floats:
    """Class probabilities of a tanh network of two hidden layers, draw by draw.

    Parameters
    ----------
    weights : mapping of arrays
        ``w1`` (draw, pixel, hidden_1), ``b1`` (draw, hidden_1), … to ``w3`` and ``b3`` (draw, class).
    X : array_like, shape (obs, pixel) or (obs, rows, columns)
        Images from 0 to 1.

    Returns
    -------
    array, shape (draw, obs, class)

    Raises
    ------
    ValueError
        For images of another size, NaN or values outside [0, 1]; for layers that are missing or do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import prediction
    >>> rng = np.random.default_rng(1)
    >>> shapes = {"w1": (64, 8), "w2": (8, 8), "w3": (8, 10),
    ...           "b1": (8,), "b2": (8,), "b3": (10,)}
    >>> weights = {name: rng.normal(size=(5, *shape)) for name, shape in shapes.items()}
    >>> p = prediction.predict_classes(weights, rng.uniform(size=(3, 8, 8)))
    >>> p.shape  # draws, images, classes
    (5, 3, 10)
    >>> bool(np.allclose(p.sum(axis=2), 1))
    True
    """
    names = ("w1", "b1", "w2", "b2", "w3", "b3")
    if missing := [name for name in names if name not in weights]:
        raise ValueError(f"weights lacks {', '.join(missing)}; wanted: {', '.join(names)}")
    arrays = {name: np.asarray(weights[name]) for name in names}
    _check_layers(arrays, ("draw",))
    w1, b1, w2, b2, w3, b3 = arrays.values()
    X = check_images(X, w1.shape[1])
    p = np.empty((len(w1), len(X), w3.shape[2]))
    for k in range(len(w1)):  # one draw at a time: the hidden units of all would fill a Binder pod
        h2 = np.tanh(np.tanh(X @ w1[k] + b1[k]) @ w2[k] + b2[k])
        p[k] = softmax(h2 @ w3[k] + b3[k], axis=-1)
    return p


def join_groups(trees: Sequence[xr.DataTree]) -> dict[str, Array]:
    """The weights of groups that were sampled one by one, as `predict_groups` takes them.

    Parameters
    ----------
    trees : sequence of DataTree
        What `sampling.sample_groups` returns.

    Returns
    -------
    dict of arrays, shape (chain, draw, group, …)
        w1, w2, … (and b1, …).

    Raises
    ------
    ValueError
        For an empty list, posteriors without ``w1``, and one whose weights have another shape than the first one's.

    Examples
    --------
    Random numbers stand for the posteriors of three groups:

    >>> import numpy as np
    >>> import xarray as xr
    >>> from hbnn import prediction
    >>> rng, trees = np.random.default_rng(1), []
    >>> for _ in range(3):
    ...     w1 = ("chain", "draw", "feature", "hidden"), rng.normal(size=(4, 10, 2, 5))
    ...     w2 = ("chain", "draw", "hidden"), rng.normal(size=(4, 10, 5))
    ...     trees.append(xr.DataTree.from_dict({"posterior": xr.Dataset({"w1": w1, "w2": w2})}))
    >>> weights = prediction.join_groups(trees)
    >>> weights["w1"].shape  # chains, draws, groups, features, units
    (4, 10, 3, 2, 5)
    >>> prediction.predict_groups(weights, rng.normal(size=(100, 2))).shape
    (4, 10, 3, 100)
    """
    if not len(trees):
        raise ValueError("trees is empty; wanted: results of sampling.sample_groups")
    posteriors = [tree["posterior"].to_dataset() for tree in trees]
    first = posteriors[0]
    names = _list_layers(first)
    if not names:
        raise ValueError("the posteriors hold no w1; wanted: results of sampling.sample_groups")
    names = [*names, *(name for layer in names if (name := f"b{layer[1:]}") in first)]
    for k, posterior in enumerate(posteriors):
        for name in names:
            shape = posterior[name].shape if name in posterior else "no"
            if shape != first[name].shape:
                raise ValueError(f"trees[{k}] has {name} of shape {shape}; wanted: {first[name].shape}, as trees[0]")
    return {name: np.stack([posterior[name].values for posterior in posteriors], axis=2) for name in names}
