"""A network typed in plain PyMC becomes a fast one, whichever way it is typed.

`_read` reads the model's graph and names its axes; here points, labels and weights are brought into the order that
`_loglik` and `_output` want. A Bernoulli outcome's whole likelihood is exchanged; under any other outcome
the network is, and what was typed on top of it stays.
"""

import warnings

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.data import MinibatchOp
from pymc.model.fgraph import fgraph_from_model, model_from_fgraph, model_potential
from pymc.variational.minibatch_rv import MinibatchRandomVariable, get_scaling
from pytensor.compile.mode import Mode
from pytensor.graph.basic import clone_get_equiv
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import BernoulliRV
from pytensor.tensor.random.op import RandomVariable

from hbnn._refused import Refused
from hbnn.fusion._layers import DTYPES
from hbnn.fusion._loglik import network_loglik
from hbnn.fusion._output import network_output
from hbnn.fusion._read import (
    Axis,
    Leaf,
    Rows,
    Taken,
    describe,
    get_lengths,
    is_made_by,
    is_product,
    is_random,
    is_same,
    list_rows,
    read_network,
    read_sigmoid,
    unfold,
)
from hbnn.fusion._rows import OUTSIDE, StackRows

# --- from what was read to the fused likelihood, or output


def _arrange(leaf, order, lengths):
    """The expression with these axes in this order; along those that it lacks, it is repeated to their lengths."""
    axes = [axis.axis if isinstance(axis, Rows) else axis for axis in leaf.axes if not isinstance(axis, Taken)]
    if len(set(axes)) < len(axes) or not set(axes) <= set(order):
        raise Refused(
            f"{describe(leaf.value)} has an axis too many; wanted: points (group, obs, feature), weights (group, "
            "n_in, n_out), biases (group, n_out), or all without group; for points in rows w[group] and b[group]"
        )
    taken = tuple(axis.index if isinstance(axis, Taken) else slice(None) for axis in leaf.axes)
    value = leaf.value[taken] if len(axes) < len(leaf.axes) else leaf.value
    pattern = [axes.index(axis) if axis in axes else "x" for axis in order]
    value = value.dimshuffle(pattern) if pattern != list(range(len(axes))) else value
    if "x" in pattern:
        shape = [lengths[axis] if k == "x" else n for axis, k, n in zip(order, pattern, value.shape, strict=True)]
        value = pt.alloc(value, *shape)
    return value


def _find_groups(name, network, rows):
    """The index of groups, axes that count groups, and the lengths of all axes; Refused for axes that do not fit."""
    leaves = [leaf for layer in network.layers for leaf in (layer.weights, *layer.biases)]
    indices = list_rows(leaves)
    own = [axis for axis in rows if any(axis in leaf.axes for leaf in leaves)]
    lengths = {}
    for leaf in (*leaves, network.points):
        for axis, n in zip(leaf.axes, leaf.value.shape, strict=True):
            lengths.setdefault(axis.axis if isinstance(axis, Rows) else axis, n)
    if any(not (i.axis is indices[0].axis and is_same(i.index, indices[0].index)) for i in indices):
        raise Refused(f"{name}: weights are indexed by different groups; wanted: one index, w1[group], w2[group], …")
    if (indices and (own or len(rows) > 1)) or len(own) == len(rows):
        raise Refused(
            f"{name}: each point has weights of its own; wanted: weights (group, n_in, n_out) and points (group, obs, "
            "feature), or for points in rows weights indexed last, w[group], not mu + sd * z[group]"
        )
    if len(rows) > 2:
        raise Refused(f"{name} has {len(rows)} axes; wanted: (group, obs) or (obs,)")
    if any(is_random(axis.index) for axis in indices):
        raise Refused(f"{name}: the groups of the points are random; wanted: pm.Data or an array")
    return indices, own, lengths


def _build(name, network, labels, dtype):
    """The fused log likelihood of what was read; Refused where points and weights have other axes than it knows."""
    rows = list(unfold(labels.axes))
    indices, own, lengths = _find_groups(name, network, rows)
    if any(part.parts for axis in labels.axes for part in axis.parts):
        raise Refused(f"{name}: axes are merged, and then masked or merged again; wanted: logit[mask]")
    if any(axis.mask is not None and is_random(axis.mask) for axis in labels.axes):
        raise Refused(f"{name}: the mask of the points is random; wanted: pm.Data or an array")
    X, y, n_obs, group = _arrange_points(network, labels, rows, own, indices, lengths)
    weights, biases, dtype = _arrange_layers(network, group, lengths, dtype)
    return network_loglik(X, y, weights, biases=biases, n_obs=n_obs, activation=network.activation, dtype=dtype)


def _arrange_layers(network, group, lengths, dtype):
    """Weights and biases as `_loglik` wants them, and the type of numbers."""
    axis, has_bias = [group] * (group is not None), any(layer.biases for layer in network.layers)
    weights, biases = [], []
    for layer in network.layers:
        above = [layer.above] * (layer.above is not None)
        weights.append(_arrange(layer.weights, [*axis, layer.below, *above], lengths))
        if has_bias:
            shape = [lengths[a] for a in (*axis, *above)]
            found = [_arrange(leaf, [*axis, *above], lengths) for leaf in layer.biases]
            biases.append(sum(found[1:], found[0]) if found else pt.zeros(shape))
    if dtype is None:
        dtype = np.result_type(*(w.dtype for w in weights)).name
        dtype = dtype if dtype in DTYPES else "float64"
    return weights, biases, dtype


def _build_output(name, var, network, axes, dtype):
    """The fused outputs in place of `var`, whose axes these are."""
    last = network.layers[-1]
    before = {axis for layer in network.layers[:-1] for axis in layer.weights.axes} | {*unfold(network.points.axes)}
    known = before | {*unfold(last.weights.axes)}  # any other one was added, and has length 1
    above = [a for a in last.weights.axes if isinstance(a, Axis) and a is not last.below and a not in before]
    if len(above) > 1:
        raise Refused(f"{name}: {describe(var)} has {len(above)} axes of outputs; wanted: weights (n_in, n_out)")
    rows = [axis for axis in unfold(axes) if axis in known and axis not in above]
    indices, own, lengths = _find_groups(name, network, rows)
    first, group, index = network.layers[0].below, own[0] if own else None, None
    if indices:
        group, index = indices[0].axis, indices[0].index
    elif own:
        index = pt.arange(lengths[group]).dimshuffle([0 if axis is group else "x" for axis in rows])
        index = pt.broadcast_to(index, [lengths[axis] for axis in rows]).flatten()
    last.above = above[0] if above else None
    weights, biases, dtype = _arrange_layers(network, group, lengths, dtype)
    if not above:
        weights, biases = [*weights[:-1], weights[-1][..., None]], [*biases[:-1], *(b[..., None] for b in biases[-1:])]
    X = _arrange(network.points, [*rows, first], lengths)
    points = X.reshape((-1, X.shape[-1]))
    out = network_output(points, weights, biases=biases, group=index, activation=network.activation, dtype=dtype)
    out = out.reshape([*X.shape[:-1], -1])
    out = out if above else out[..., 0]
    order = [*rows, *above]
    pattern = [order.index(axis) if axis in order else "x" for axis in axes]
    return pt.specify_shape(pt.cast(out.dimshuffle(pattern), var.dtype), var.type.shape)


def _arrange_points(network, labels, rows, own, indices, lengths):
    """X, y and n_obs as `network_loglik` wants them, and the axis of groups; None for n_obs and groups without."""
    points, first = network.points, network.layers[0].below
    if indices:
        group, X = indices[0].axis, _arrange(points, [*rows, first], lengths)
        return *StackRows()(X, labels.value, indices[0].index, lengths[group]), group
    group = own[0] if own else rows[0] if len(rows) == 2 else None
    merged = labels.axes[0] if labels.axes[0].parts else None
    if merged and merged.mask is not None:
        mask = merged.mask
        if group is None:
            group = Axis()
            lengths[group], number = 1, pt.zeros((1,), "int64")
        else:
            number = pt.arange(lengths[group]).dimshuffle([0 if axis is group else "x" for axis in rows])
        X = _arrange(points, [*rows, first], lengths)
        X = X.reshape((-1, X.shape[-1]))
        return *StackRows()(X, labels.value, pt.switch(mask, number, OUTSIDE).flatten(), lengths[group]), group
    if merged:
        shape = [lengths[axis] if axis is group else -1 for axis in rows]
        labels = Leaf(labels.value.reshape(shape), rows)
    order = [group] * (group is not None) + [axis for axis in rows if axis is not group]
    return _arrange(points, [*order, first], lengths), _arrange(labels, order, lengths), None, group


# --- the model


def fuse(model, *, strict=True, check=True, dtype=None):
    """The same model with a fused network: one posterior, a fraction of the time for a gradient.

    Parameters
    ----------
    model : pm.Model
        With observed variables that are outcomes of a network of points that are data. A Bernoulli outcome
        (``logit_p=``, or ``p=`` a sigmoid) gets the fused likelihood of `_loglik`. Under any other outcome (Normal
        with any noise, Categorical, counts) each network with a hidden layer gets the fused outputs of
        `_output`, and what was typed on top of them stays; they may be several, ``w3 (hidden_2, output)``.
        The network has any number of layers, all hidden ones tanh or all ReLU, with biases or without; under a
        Bernoulli outcome none at all is logistic regression. Weights are any expressions of their parents. There is

        - one network: X (obs, feature), weights (n_in, n_out), biases (n_out,), y (obs,); or
        - one for each group: X (group, obs, feature) or (obs, feature), weights (group, n_in, n_out), biases (group,
          n_out), y (group, obs). Weights or biases that lack the group axis are shared. Groups of unequal size are
          filled up, and what counts is picked by a mask (group, obs):
          ``pm.Bernoulli("y", logit_p=logit[mask], observed=y[mask])``, or ``p=pm.math.sigmoid(logit)[mask]``; or
        - one for each group and points in rows: X (obs, feature), y (obs,), the group of each row in `g` (obs,), and
          weights ``w[g]``, biases ``b[g]``, indexed last. Rows may stand in any order.
    strict : bool
        Whether a model that cannot be fused is an error. False gives it back as it is, with a UserWarning.
    check : bool
        Whether to compare the likelihood that was typed and the fused one, and their gradients, at two random points of
        the weights and biases. It takes about a second, and some more the first time on a machine, for the kernel.
    dtype : "float64" or "float32"
        Of the arithmetic inside the likelihood; None: that of the weights.

    Returns
    -------
    pm.Model
        A new one with the same free variables, names, coords, dims, deterministics and data, for `pm.sample` with any
        sampler, `nutpie.compile_pymc_model` and `pm.fit`; `pm.set_data` works on it, and its data are its own. A
        Bernoulli variable is a potential of the same name there; other observed variables stay. What needs the variable
        takes the original model, whose free variables have the same names::

            fast = fuse(model)
            with fast:
                idata = pm.sample()
            pm.compute_log_likelihood(idata, model=model)
            pm.sample_posterior_predictive(idata, model=model, extend_inferencedata=True)

        `model` is not changed.

    Raises
    ------
    TypeError
        When `model` is no PyMC model.
    Refused
        (a ValueError) When there is no observed variable, or no network is understood that leads to one: it names the
        expression, and the nearest one that is. Minibatches are refused, as each evaluation has other points, and so
        are missing labels and labels other than 0 and 1.
    ValueError
        For another `dtype`.
    RuntimeError
        When the two likelihoods differ where they are compared: in what, and by how much.

    Source: `_loglik.network_loglik` and `_output.network_output`; reading the graph is this book's.

    Examples
    --------
    >>> import pymc as pm
    >>> from bookkit import data
    >>> from hbnn.fusion import _arrange
    >>> moons = data.flat_moons(seed=0)
    >>> with pm.Model() as model:
    ...     w1, w2 = pm.Normal("w1", shape=(2, 3)), pm.Normal("w2", shape=3)
    ...     logit = pm.math.tanh(moons.X_train @ w1) @ w2
    ...     y = pm.Bernoulli("y", logit_p=logit, observed=moons.y_train)
    >>> fast = hbnn.fuse(model)  # compares both, their gradients too, before it gives one back
    >>> [variable.name for variable in fast.free_RVs]
    ['w1', 'w2']
    """
    if not isinstance(model, pm.Model):
        raise TypeError(f"model is a {type(model).__name__}; wanted: a pm.Model")
    if dtype not in (None, *DTYPES):
        raise ValueError(f"dtype={dtype!r}; wanted: one of {', '.join(DTYPES)}, or None")
    try:
        found, refused = {}, []
        for rv in model.observed_RVs:
            found |= _read_outcome(model, rv, refused, dtype)
        if not found:
            none = "the model has no observed variable; wanted: pm.Bernoulli('y', ..., observed=y), or another outcome"
            raise Refused(refused[0] if refused else none)
        fast = _exchange(model, {old: new for old, (new, _) in found.items()})
        for old, (new, parameters) in found.items() if check else ():
            _compare(model, old, new, parameters, dtype)
    except Refused as error:
        if strict:
            raise
        warnings.warn(str(error), UserWarning, stacklevel=2)
        return model
    return fast


def _read_outcome(model, rv, refused, dtype):
    """What takes the place of an observed variable, or of each network under it, which may be none: {old: (new,
    the weights and biases that both are functions of)}. What is no network that we know is named in `refused`.
    """
    name, value, total_size, node = rv.name, model.rvs_to_values[rv], [], rv.owner
    if any(is_made_by(v, MinibatchOp) for v in ancestors([rv, value])):
        raise Refused(
            f"{name} is observed on a pm.Minibatch, other points at each evaluation; wanted: all points, or pm.fit on "
            "the model as it is"
        )
    if f"{name.removesuffix('_observed')}_unobserved" in model.named_vars:
        raise Refused(f"{name.removesuffix('_observed')} has missing values; wanted: observed without masked or NaN")
    if is_made_by(rv, MinibatchRandomVariable):
        node, total_size = rv.owner.inputs[0].owner, rv.owner.inputs[1:]
    if not isinstance(node.op, BernoulliRV):
        found = _find_networks(name, node.inputs, {}, refused, dtype)
        if not found:
            refused.append(f"{name}: no network leads to it; wanted: pt.tanh(X @ w1) @ w2, or deeper")
        return found
    for other in (*model.basic_RVs, *model.deterministics, *model.potentials):
        if other is not rv and rv in ancestors([other]):
            raise Refused(f"{other.name} is computed from {name}, which will be no variable; wanted: from its data")
    axes = [Axis() for _ in range(rv.ndim)]
    parameters = node.op.dist_params(node)
    if any(parameter.ndim != rv.ndim for parameter in parameters) or not axes:
        raise Refused(f"{name} has {rv.ndim} axes and its probability {parameters[0].ndim}; wanted: one for each label")
    network = read_network(name, *read_sigmoid(name, parameters, axes))
    loglik = _build(name, network, Leaf(value, axes), dtype)
    loglik = loglik * get_scaling(total_size, value.shape) if total_size else loglik
    return {rv: (loglik, _list_parameters(network))}


def _find_networks(name, variables, found, refused, dtype):
    """Every network with a hidden layer that these expressions hold, the largest first: {outputs: (new, parameters)}.

    What looks like a network and is none that we know is named in `refused`, and searched in turn.
    """
    for var in variables:
        if var in found or var.owner is None or not is_random(var) or is_made_by(var, RandomVariable):
            continue
        if is_product(var):
            axes = [Axis() for _ in range(var.ndim)]
            try:
                network = read_network(name, var, axes)
                if len(network.layers) > 1:
                    found[var] = _build_output(name, var, network, axes, dtype), _list_parameters(network)
                    continue
            except Refused as error:
                refused += error.complaints
        _find_networks(name, var.owner.inputs, found, refused, dtype)
    return found


def _list_parameters(network):
    """The random ones of its weights and biases, each once."""
    parameters = [leaf.value for layer in network.layers for leaf in (layer.weights, *layer.biases)]
    return [parameter for parameter in dict.fromkeys(parameters) if is_random(parameter)]


def _exchange(model, exchanged):
    """A new model in which observed variables are potentials, and the outputs of networks those of fused ones."""
    starts, bare = model.rvs_to_initial_values, object.__new__(type(model))
    # PyMC does not copy a model with initial values: here is the same one without
    vars(bare).update(vars(model) | {"rvs_to_initial_values": dict.fromkeys(starts)})
    graph, copies = fgraph_from_model(bare)
    for old, new in exchanged.items():
        new = clone_get_equiv([], [new], copy_orphans=False, memo=dict(copies))[new]
        if old in model.observed_RVs:
            graph.remove_output(graph.outputs.index(copies[old]))
            graph.add_output(model_potential(new, old.name), import_missing=True)
        else:
            graph.replace(copies[old], new, import_missing=True)
    fast = model_from_fgraph(graph, mutate_fgraph=True)
    for variables in (fast.free_RVs, fast.observed_RVs, fast.deterministics, fast.potentials, fast.data_vars):
        variables.sort(key=lambda variable: list(model.named_vars).index(variable.name))
    for rv, start in starts.items():
        if start is not None:
            fast.set_initval(fast[rv.name], start)
    return fast


def _compare(model, old, new, parameters, dtype=None, n_points=2, seed=0):
    """RuntimeError where the two likelihoods or outputs, functions of weights and biases, or their gradients differ."""
    rng, is_outcome = np.random.default_rng(seed), old in model.observed_RVs
    name, both = (old.name, f"the log likelihood of {old.name}") if is_outcome else [describe(old)] * 2
    if is_outcome:
        stock, loglik = pm.logp(old, model.rvs_to_values[old]).sum(), new
    else:
        factors = rng.normal(size=get_lengths(old))
        stock, loglik = (factors * old).sum(), (factors * new).sum()
    functions = [  # Numba keeps the compiled kernel for the sampler
        pytensor.function(parameters, [total, *pt.grad(total, parameters)], mode=mode, on_unused_input="ignore")
        for total, mode in ((stock, "FAST_COMPILE"), (loglik, Mode("numba", "fast_compile")))
    ]
    shapes, scale = [get_lengths(parameter) for parameter in parameters], 1.0
    exact = dtype != "float32" and all(parameter.dtype == "float64" for parameter in parameters)
    tolerance = 1e-6 if exact else 1e-3
    while n_points:
        values = [
            (scale * rng.normal(size=shape) / np.sqrt(max(1, *shape, 1))).astype(parameter.dtype)
            for parameter, shape in zip(parameters, shapes, strict=True)
        ]
        expected, found = (function(*values) for function in functions)
        if not all(np.isfinite(a).all() for a in expected):
            scale /= 10  # log(1 - p) where p is rounded to 1
            if scale < 1e-9:
                raise Refused(f"{name}: its log likelihood is not finite at any weights; wanted: finite points")
            continue
        n_points -= 1
        for what, a, b in zip(("value", *map(describe, parameters)), expected, found, strict=True):
            off = np.max(np.abs(a - b)) / max(1.0, np.max(np.abs(a)))
            if not off <= tolerance:
                what = what if what == "value" else f"gradient with respect to {what}"
                raise RuntimeError(
                    f"{both} and the fused one differ in their {what}, by {off:.1e} of its size; wanted: "
                    "equal. This is a mistake in hbnn.fusion._arrange: sample the model as it is, and report it"
                )
