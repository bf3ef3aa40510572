"""The PyMC models that several chapters and studies need, as the chapters type them; `hbnn.fuse` makes them fast."""

from itertools import pairwise

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from hbnn._checks import check_classes, check_data, check_images

from bookkit.digits import N_CLASSES

ACTIVATIONS = {"tanh": pm.math.tanh, "relu": lambda h: pt.switch(h > 0, h, 0)}
SD_PRIORS = {"halfnormal": pm.HalfNormal, "halfcauchy": pm.HalfCauchy}


def flat_bnn(X, y, *, n_hidden=(5, 5), prior_sd=1.0, total_size=None):
    """One network 2-5-5-1 with tanh units and no biases, a normal prior on every weight, Bernoulli labels.

    Parameters
    ----------
    X : (obs, feature) array, or a `pm.Minibatch` of it
    y : (obs,) array of 0 and 1, or the same minibatch of it
    n_hidden : two ints, units in the first and the second hidden layer
    prior_sd : float > 0, one standard deviation for all weights
    total_size : int, points in the whole data set; required with a minibatch

    Returns
    -------
    pm.Model
        With variables ``w1``, ``w2``, ``w3``, ``p`` (class probability at X) and ``y``. Where X is an array,
        ``pm.set_data({"X": X_new, "labels": y_new})`` moves the model to other points.

    Raises
    ------
    ValueError
        For wrong shapes, labels other than 0 and 1, NaN, an empty data set, widths, a scale or a total size that are
        no numbers above zero.

    Examples
    --------
    >>> from bookkit import data, models
    >>> moons = data.flat_moons(seed=0)
    >>> model = models.flat_bnn(moons.X_train, moons.y_train)
    >>> {name: value.shape for name, value in model.initial_point().items()}
    {'w1': (2, 5), 'w2': (5, 5), 'w3': (5,)}
    """
    X, y, n_feature, is_array = _check_inputs(X, y, n_hidden, prior_sd, total_size)
    coords = {
        "feature": range(n_feature),
        "hidden_1": range(n_hidden[0]),
        "hidden_2": range(n_hidden[1]),
    }
    with pm.Model(coords=coords) as model:
        x = pm.Data("X", X, dims=("obs", "feature")) if is_array else X
        labels = pm.Data("labels", y, dims="obs") if is_array else y
        w1 = pm.Normal("w1", 0, prior_sd, dims=("feature", "hidden_1"))
        w2 = pm.Normal("w2", 0, prior_sd, dims=("hidden_1", "hidden_2"))
        w3 = pm.Normal("w3", 0, prior_sd, dims="hidden_2")
        h1 = pm.math.tanh(x @ w1)
        h2 = pm.math.tanh(h1 @ w2)
        p = pm.Deterministic("p", pm.math.sigmoid(h2 @ w3))
        pm.Bernoulli("y", p, observed=labels, shape=p.shape, total_size=total_size)
    return model


def digit_bnn(X, y, *, n_hidden=(64, 64), prior_sd=1.0, total_size=None):
    """One network for ten classes: two layers of tanh units with biases, a normal prior on every weight and bias.

    Parameters
    ----------
    X : (obs, pixel) array of images from 0 to 1, or a `pm.Minibatch` of it
    y : (obs,) array of labels 0 to 9, or the same minibatch of it
    n_hidden : two ints, units in the first and the second hidden layer
    prior_sd : float > 0, one standard deviation for all weights and biases
    total_size : int, images in the whole data set; required with a minibatch

    Returns
    -------
    pm.Model
        With variables ``w1``, ``b1``, ``w2``, ``b2``, ``w3``, ``b3`` and ``y``.

    Raises
    ------
    ValueError
        For an empty batch, values outside [0, 1], unknown labels, widths, a scale or a total size that are no numbers
        above zero.

    Examples
    --------
    >>> from bookkit import digits, models
    >>> images = digits.load(seed=1)
    >>> model = models.digit_bnn(images.X_train, images.y_train, n_hidden=(16, 16))
    >>> [variable.name for variable in model.free_RVs]
    ['w1', 'b1', 'w2', 'b2', 'w3', 'b3']
    >>> model.coords["class"]
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
    """
    X, y = _check_images(X, y, n_hidden, prior_sd, total_size)
    coords = {
        "pixel": range(X.shape[1] if isinstance(X, np.ndarray) else X.type.shape[1]),
        "hidden_1": range(n_hidden[0]),
        "hidden_2": range(n_hidden[1]),
        "class": range(N_CLASSES),
    }
    with pm.Model(coords=coords) as model:
        w1 = pm.Normal("w1", 0, prior_sd, dims=("pixel", "hidden_1"))
        b1 = pm.Normal("b1", 0, prior_sd, dims="hidden_1")
        w2 = pm.Normal("w2", 0, prior_sd, dims=("hidden_1", "hidden_2"))
        b2 = pm.Normal("b2", 0, prior_sd, dims="hidden_2")
        w3 = pm.Normal("w3", 0, prior_sd, dims=("hidden_2", "class"))
        b3 = pm.Normal("b3", 0, prior_sd, dims="class")
        h1 = pm.math.tanh(X @ w1 + b1)
        h2 = pm.math.tanh(h1 @ w2 + b2)
        pm.Categorical("y", logit_p=h2 @ w3 + b3, observed=y, total_size=total_size)
    return model


def unpooled_bnn(X, y, *, n_hidden=(12, 12), prior_sd=1.0, activation="tanh", bias=False):
    """The network of one category that has nothing to do with the others: every weight has a zero-mean normal prior.

    Parameters
    ----------
    X : (obs, feature) array
    y : (obs,) array of 0 and 1
    n_hidden : ints, units in each hidden layer
    prior_sd : float > 0, or one for each layer of weights
    bias : bool; a layer's biases have the prior of its weights
    activation : as in `hierarchical_bnn`

    Returns
    -------
    pm.Model
        With ``w1``, ``w2``, …, ``b1``, … where there are biases, and ``y``. Data: ``X``, ``labels`` and ``prior_sd``
        (layer,), so that `sampling.sample_groups` samples one category after the other with one compiled model.

    Raises
    ------
    ValueError
        As `hierarchical_bnn`.

    Examples
    --------
    >>> from bookkit import data, models
    >>> moons = data.rotated_moons(seed=1)
    >>> model = models.unpooled_bnn(moons.X_train[0], moons.y_train[0], n_hidden=(4,), bias=True)
    >>> [variable.name for variable in model.free_RVs]
    ['w1', 'w2', 'b1', 'b2']
    >>> [variable.name for variable in model.data_vars]  # what can be exchanged
    ['X', 'labels', 'prior_sd']
    """
    X, y = _check_one_group(X, y)
    prior_sd = _check_network(n_hidden, prior_sd, activation, name="prior_sd")
    coords = {"feature": range(X.shape[-1])} | {f"hidden_{k}": range(n) for k, n in enumerate(n_hidden, 1)}
    with pm.Model(coords=coords) as model:
        data = _add_data(X, y)
        sd = pm.Data("prior_sd", prior_sd)
        layers = list(enumerate(_name_layers(n_hidden), 1))
        weights = [pm.Normal(f"w{k}", 0, sd[k - 1], dims=dims) for k, dims in layers]
        biases = [pm.Normal(f"b{k}", 0, sd[k - 1], dims=dims[1:]) for k, dims in layers if bias]
        _observe(data, weights, biases, activation)
    return model


def hierarchical_bnn(
    X,
    y,
    *,
    n_hidden=(12, 12),
    sd_scale=1.0,
    sd_prior="halfnormal",
    sd_per="layer",
    activation="tanh",
    bias=False,
):
    """One network for each category; the weights of all come from common normals that are learned.

    Parameters
    ----------
    X : (group, obs, feature) array, or a list of (obs, feature) arrays of unequal lengths
    y : (group, obs) array of 0 and 1, or a list of (obs,) arrays
    n_hidden : ints, units in each hidden layer. The articles have (5, 5); chains agree more easily with (12, 12)
    sd_scale : float > 0, or one for each layer of weights: scale of the prior of the group sds
    sd_prior : "halfnormal", as in the articles, or "halfcauchy"
    sd_per : "layer", one group sd for all weights of a layer, as in the articles; or "connection", one for each weight
    activation : "tanh" or "relu"
    bias : bool; a layer's biases have group means and offsets like its weights, and the sd of the layer

    Returns
    -------
    pm.Model
        For layer k = 1, 2, … with ``mu<k>`` (group means, N(0, 1)), ``sd<k>`` (HalfNormal or HalfCauchy) and ``z<k>``
        (offsets, N(0, 1), group axis first), and with ``bias_mu<k>``, ``bias_z<k>`` where there are biases. The weights
        of a category are mu + sd * z. Data: ``X`` and ``labels``; where groups are of unequal sizes also ``n_obs``, of
        each group only the first so many points count, and ``y`` has one axis, the points that count.

    Raises
    ------
    ValueError
        For wrong shapes, labels other than 0 and 1, NaN, an empty group, widths or scales below zero.

    Source: the non-centred form is Betancourt and Girolami (2015), Hamiltonian Monte Carlo for Hierarchical Models.

    Examples
    --------
    >>> from bookkit import data, models
    >>> moons = data.rotated_moons(seed=1, n_groups=3)
    >>> model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(4,))
    >>> [variable.name for variable in model.free_RVs]
    ['mu1', 'sd1', 'z1', 'mu2', 'sd2', 'z2']
    >>> {name: model.dim_lengths[name].eval().item() for name in ("group", "obs", "hidden_1")}
    {'group': 3, 'obs': 50, 'hidden_1': 4}
    """
    X, y, n_obs = stack_groups(X, y)
    scales = _check_network(n_hidden, sd_scale, activation)
    if sd_per not in ("layer", "connection") or (bias and sd_per == "connection"):
        raise ValueError(f"sd_per={sd_per!r}, bias={bias}; wanted: 'layer', or 'connection' without biases")
    if sd_prior not in SD_PRIORS:
        raise ValueError(f"sd_prior={sd_prior!r}; wanted: one of {', '.join(SD_PRIORS)}")
    layers = _name_layers(n_hidden)
    coords = {"group": range(len(X)), "feature": range(X.shape[-1])}
    coords |= {f"hidden_{k}": range(n) for k, n in enumerate(n_hidden, 1)}
    weights, biases = [], []
    with pm.Model(coords=coords) as model:
        data = _add_data(X, y, n_obs)
        for k, (scale, dims) in enumerate(zip(scales, layers, strict=True), 1):
            mu = pm.Normal(f"mu{k}", 0, 1, dims=dims)
            sd = SD_PRIORS[sd_prior](f"sd{k}", scale, dims=dims if sd_per == "connection" else None)
            z = pm.Normal(f"z{k}", 0, 1, dims=("group", *dims))
            weights.append(mu + sd * z)
            if bias:
                mu = pm.Normal(f"bias_mu{k}", 0, 1, dims=dims[1:])
                z = pm.Normal(f"bias_z{k}", 0, 1, dims=("group", *dims[1:]))
                biases.append(mu + sd * z)
        _observe(data, weights, biases, activation)
    return model


def informed_bnn(X, y, *, mean, cholesky, n_hidden=(12, 12), activation="tanh"):
    """A network for a new category, with a multivariate normal prior on all its weights together.

    Parameters
    ----------
    X : (obs, feature) array
    y : (obs,) array of 0 and 1
    mean : (weight,), prior mean of w1, w2, … flattened one after the other
    cholesky : (weight, weight), lower triangular factor of the prior's covariance, with a positive diagonal;
        block-diagonal where layers are independent
    n_hidden, activation : as in `hierarchical_bnn`

    Returns
    -------
    pm.Model
        With ``z`` (weight,), standard normal, ``w1``, ``w2``, …, cut from mean + cholesky z, and ``y``.
        Data: ``X``, ``labels``, ``mean``, ``cholesky``; all can be exchanged without compiling again.

    Raises
    ------
    ValueError
        As `hierarchical_bnn`, and for a mean or a factor of another size or shape.

    Examples
    --------
    >>> from bookkit import data, models
    >>> from hbnn import priors
    >>> moons = data.flat_moons(seed=0)
    >>> mean, cholesky = priors.scale_prior([1.0, 0.5], n_feature=2, n_hidden=(4,))
    >>> model = models.informed_bnn(
    ...     moons.X_train, moons.y_train, mean=mean, cholesky=cholesky, n_hidden=(4,)
    ... )
    >>> [variable.name for variable in model.free_RVs]
    ['z']
    >>> [variable.name for variable in model.deterministics]
    ['w1', 'w2']
    """
    X, y = _check_one_group(X, y)
    _check_network(n_hidden, 1.0, activation)
    sizes = [X.shape[-1], *n_hidden]
    shapes = [*pairwise(sizes), (sizes[-1],)]
    mean, cholesky = _check_prior(mean, cholesky, sum(int(np.prod(shape)) for shape in shapes))
    coords = {"feature": range(sizes[0]), "weight": range(len(mean))}
    coords |= {f"hidden_{k}": range(n) for k, n in enumerate(n_hidden, 1)}
    weights, start = [], 0
    with pm.Model(coords=coords) as model:
        data = _add_data(X, y)
        z = pm.Normal("z", 0, 1, dims="weight")
        flat = pm.Data("mean", mean, dims="weight") + pm.Data("cholesky", cholesky) @ z
        for k, (shape, dims) in enumerate(zip(shapes, _name_layers(n_hidden), strict=True), 1):
            size = int(np.prod(shape))
            weights.append(pm.Deterministic(f"w{k}", flat[start : start + size].reshape(shape), dims=dims))
            start += size
        _observe(data, weights, [], activation)
    return model


def stack_groups(X, y):
    """Groups as arrays of one length, and how many points of each count.

    Parameters
    ----------
    X : (group, obs, feature) array, or a list of (obs, feature) arrays of unequal lengths
    y : (group, obs) array of 0 and 1, or a list of (obs,) arrays

    Returns
    -------
    X (group, obs, feature), y (group, obs), n_obs (group,) : short groups are filled up with zeros that do not count

    Raises
    ------
    ValueError
        For points and labels that do not fit together, with the number of the group.

    Examples
    --------
    >>> import numpy as np
    >>> from bookkit import models
    >>> points, labels = [np.ones((3, 2)), np.ones((5, 2))], [[0, 1, 1], [1] * 5]
    >>> X, y, n_obs = models.stack_groups(points, labels)
    >>> X.shape, y.shape, n_obs.tolist()
    ((2, 5, 2), (2, 5), [3, 5])
    """
    if isinstance(X, np.ndarray) and X.ndim != 3:
        raise ValueError(f"X has shape {X.shape}; wanted: (group, obs, feature), or a list of (obs, feature)")
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} groups, y has {len(y)}; wanted: labels for each group")
    if len(X) == 0:
        raise ValueError("X has no groups; wanted: at least one")
    groups = [check_data(points, labels, name=f"y[{g}]") for g, (points, labels) in enumerate(zip(X, y, strict=True))]
    n_features = sorted({points.shape[-1] for points, _ in groups})
    if any(points.ndim != 2 for points, _ in groups) or len(n_features) > 1:
        raise ValueError(f"groups have {n_features} features; wanted: (obs, feature) each, one number of features")
    n_obs = np.array([len(labels) for _, labels in groups])
    stacked = np.zeros((len(groups), n_obs.max(), n_features[0])), np.zeros((len(groups), n_obs.max()), "int32")
    for g, (points, labels) in enumerate(groups):
        stacked[0][g, : n_obs[g]], stacked[1][g, : n_obs[g]] = points, labels
    return *stacked, n_obs


def _check_one_group(X, y):
    X, y = check_data(X, y)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; wanted: (obs, feature), one category")
    return X, y


def _name_layers(n_hidden):
    """The dimensions of each layer of weights; the last has a single output and no axis for it."""
    names = ["feature", *(f"hidden_{k}" for k in range(1, len(n_hidden) + 1))]
    return [*pairwise(names), (names[-1],)]


def _add_data(X, y, n_obs=None):
    """Points and labels as data that can be exchanged; ``n_obs`` only where groups are of unequal sizes."""
    group = ("group",) if X.ndim == 3 else ()
    data = {
        "X": pm.Data("X", X, dims=(*group, "obs", "feature")),
        "labels": pm.Data("labels", y, dims=(*group, "obs")),
    }
    if n_obs is not None and n_obs.min() < n_obs.max():
        data["n_obs"] = pm.Data("n_obs", n_obs, dims="group")
    return data


def _observe(data, weights, biases, activation):
    """Network and Bernoulli outcome, in the model whose context is open."""
    h = data["X"]
    for k, w in enumerate(weights):
        last = k == len(weights) - 1
        h = h @ (w[..., None] if last else w)
        if biases:
            h = h + (biases[k][..., None, None] if last else biases[k][..., None, :])
        h = h if last else ACTIVATIONS[activation](h)
    logit, labels = h[..., 0], data["labels"]
    if "n_obs" in data:
        counts = pt.arange(labels.shape[1]) < data["n_obs"][:, None]
        logit, labels = logit[counts], labels[counts]
    pm.Bernoulli("y", logit_p=logit, observed=labels, shape=logit.shape)


def _check_network(n_hidden, sd_scale, activation, name="sd_scale"):
    """Raise what `hierarchical_bnn` documents; else return one scale for each layer of weights."""
    if np.ndim(n_hidden) != 1 or not all(isinstance(n, int | np.integer) and n > 0 for n in n_hidden):
        raise ValueError(f"n_hidden={n_hidden}; wanted: numbers of units, each at least 1")
    scales = np.broadcast_to(sd_scale, len(n_hidden) + 1) if np.ndim(sd_scale) == 0 else np.asarray(sd_scale)
    if scales.shape != (len(n_hidden) + 1,) or scales.dtype.kind not in "iuf" or not (scales > 0).all():
        raise ValueError(f"{name}={sd_scale!r}; wanted: a scale above 0, or {len(n_hidden) + 1}, one for each layer")
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation={activation!r}; wanted: one of {', '.join(ACTIVATIONS)}")
    return [float(scale) for scale in scales]


def _check_prior(mean, cholesky, n_weights):
    """Raise what `informed_bnn` documents; else return mean and factor as arrays."""
    if np.ma.is_masked(mean) or np.ma.is_masked(cholesky):
        raise ValueError("mean or cholesky holds masked values; wanted: numbers without")
    mean, cholesky = np.asarray(mean, dtype=float), np.asarray(cholesky, dtype=float)
    if mean.shape != (n_weights,):
        raise ValueError(f"mean has shape {mean.shape}; wanted: ({n_weights},), all weights of the network")
    if cholesky.shape != (n_weights, n_weights):
        raise ValueError(f"cholesky has shape {cholesky.shape}; wanted: ({n_weights}, {n_weights})")
    if not (np.isfinite(mean).all() and np.isfinite(cholesky).all()):
        raise ValueError("mean or cholesky holds NaN or infinite numbers; wanted: finite numbers")
    if np.triu(cholesky, 1).any() or not (np.diag(cholesky) > 0).all():
        raise ValueError(
            "cholesky is not lower triangular with a positive diagonal; wanted: np.linalg.cholesky(covariance)"
        )
    return mean, cholesky


def _check_one(n_hidden, prior_sd, total_size):
    """Raise what the models of a single network document about these."""
    if not (np.shape(n_hidden) == (2,) and all(isinstance(n, int | np.integer) and n > 0 for n in n_hidden)):
        raise ValueError(f"n_hidden={n_hidden}; wanted: two numbers of units, each at least 1")
    if not (isinstance(prior_sd, int | float | np.number) and prior_sd > 0):
        raise ValueError(f"prior_sd={prior_sd!r}; wanted: a standard deviation above 0")
    if total_size is not None and not (isinstance(total_size, int | np.integer) and total_size > 0):
        raise ValueError(f"total_size={total_size!r}; wanted: the points of the whole data set, at least 1")


def _check_images(X, y, n_hidden, prior_sd, total_size):
    """Raise what `digit_bnn` documents; else return X and y."""
    _check_one(n_hidden, prior_sd, total_size)
    if not isinstance(X, pt.TensorVariable):
        X = check_images(X, None)
        return X, check_classes(y, len(X))
    if getattr(y, "dtype", None) != "int32":
        raise ValueError(f"y has type {getattr(y, 'dtype', type(y))}; wanted: int32 in a minibatch")
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; wanted: (obs, pixel) in a minibatch")
    if total_size is None:
        raise ValueError("total_size=None with a minibatch; wanted: the number of images in the whole data set")
    return X, y


def _check_inputs(X, y, n_hidden, prior_sd, total_size):
    """Raise what `flat_bnn` documents; else return X and y, the number of features, and whether X is an array."""
    _check_one(n_hidden, prior_sd, total_size)
    is_array = not isinstance(X, pt.TensorVariable)
    if is_array:
        X, y = check_data(X, y)
    elif getattr(y, "dtype", None) != "int32":
        raise ValueError(f"y has type {getattr(y, 'dtype', type(y))}; wanted: int32 in a minibatch")
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; wanted: (obs, feature), one data set without categories")
    return X, y, X.shape[-1] if is_array else X.type.shape[-1], is_array
