"""A network typed in plain PyMC gets the fused likelihood, whichever way it is typed.

`bnn.typed` reads the model's graph and names its axes; here points, labels and weights are brought into the order that
`bnn.fused.network_loglik` wants, and the likelihood is exchanged. Points in rows are sorted into groups at each
gradient, so that data may be exchanged.
"""

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.data import MinibatchOp
from pymc.model.fgraph import fgraph_from_model, model_from_fgraph, model_potential
from pymc.variational.minibatch_rv import MinibatchRandomVariable, get_scaling
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, clone_get_equiv
from pytensor.graph.op import Op
from pytensor.graph.traversal import ancestors
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key
from pytensor.tensor.random.basic import BernoulliRV

from bnn.fused import DTYPES, network_loglik
from bnn.typed import (
    Axis,
    Leaf,
    Rows,
    Taken,
    describe,
    get_lengths,
    is_made_by,
    is_random,
    is_same,
    list_rows,
    read_network,
    read_sigmoid,
    unfold,
)

OUTSIDE = np.iinfo("int64").min  # the group of a row that belongs to none


@dataclass(frozen=True)
class Outcome:
    """How the distribution's parameters lead to the network, and the likelihood that takes its place."""

    read: Callable  # name, parameters, axes -> the network's output and its axes
    loglik: Callable  # as `network_loglik`


OUTCOMES = {BernoulliRV: Outcome(read_sigmoid, network_loglik)}  # another outcome is another line


# --- from what was read to the fused likelihood


class StackRows(Op):
    """Rows of points, each with the number of its group, as `network_loglik` wants them: group after group.

    Inputs are X (row, feature), y (row,), group (row,), and the number of groups. A row whose group is `OUTSIDE` is
    left out and has no element in y. Outputs are X (group, obs, feature), y (group, obs), n_obs (group,); the longest
    group is as long as the obs axis, and short ones are filled up with zeros. A counting sort: it costs a few
    microseconds for a thousand rows, so it runs at each gradient, and data may be exchanged.
    """

    __props__ = ()

    def make_node(self, X, y, group, n_groups):
        inputs = [pt.as_tensor(X), pt.cast(y, "int32"), pt.cast(group, "int64"), pt.cast(n_groups, "int64")]
        X = pt.tensor(dtype=inputs[0].dtype, shape=(None, None, inputs[0].type.shape[1]))
        return Apply(self, inputs, [X, pt.imatrix(), pt.lvector()])

    def perform(self, node, inputs, outputs):
        for output, value in zip(outputs, _stack_rows(*inputs), strict=True):
            output[0] = value


def _stack_rows(X, y, group, number):
    """`StackRows` of arrays, in Python and in Numba."""
    n_groups, kept = number.item(), 0
    n_obs = np.zeros(n_groups, np.int64)
    if group.shape[0] != X.shape[0]:
        raise ValueError("the index of groups has another length than X; wanted: one group for each row")
    for g in group:
        if g != OUTSIDE:
            if g < -n_groups or g >= n_groups:
                raise ValueError("a row has a group that has no weights; wanted: 0 to the number of groups - 1")
            n_obs[g] += 1  # a negative one counts from the end, as an index does
            kept += 1
    if y.shape[0] != kept:
        raise ValueError("y has another length than X; wanted: one label for each row that counts")
    longest = n_obs.max() if n_groups else 0
    points, labels = np.zeros((n_groups, longest, X.shape[1]), X.dtype), np.zeros((n_groups, longest), np.int32)
    n_obs[:] = 0
    kept = 0
    for row, g in enumerate(group):
        if g != OUTSIDE:
            for f in range(X.shape[1]):
                points[g, n_obs[g], f] = X[row, f]
            labels[g, n_obs[g]] = y[kept]
            n_obs[g] += 1
            kept += 1
    return points, labels, n_obs


@register_funcify_and_cache_key(StackRows)
def _dispatch_numba(op, node, **kwargs):
    return numba_njit(_stack_rows), hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _register_jax():
    """The same Op for NumPyro and BlackJAX, where JAX is installed; PyMC hands it data as constants."""
    try:
        import jax
    except ImportError:
        return
    from pytensor.link.jax.dispatch import jax_funcify

    @jax_funcify.register(StackRows)
    def _dispatch_jax(op, node, **kwargs):
        def stack_rows(*inputs):
            with jax.ensure_compile_time_eval():
                return tuple(jax.numpy.asarray(value) for value in _stack_rows(*map(np.asarray, inputs)))

        return stack_rows


_register_jax()


def _arrange(leaf, order, lengths):
    """The expression with these axes in this order; along those that it lacks, it is repeated to their lengths."""
    axes = [axis.axis if isinstance(axis, Rows) else axis for axis in leaf.axes if not isinstance(axis, Taken)]
    if len(set(axes)) < len(axes) or not set(axes) <= set(order):
        raise ValueError(
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


def _build(name, network, labels, loglik, dtype):
    """The fused log likelihood of what was read; ValueError where points and weights have other axes than it knows."""
    leaves = [leaf for layer in network.layers for leaf in (layer.weights, *layer.biases)]
    rows = list(unfold(labels.axes))
    indices = list_rows(leaves)
    own = [axis for axis in rows if any(axis in leaf.axes for leaf in leaves)]
    lengths = {}
    for leaf in (*leaves, network.points):
        for axis, n in zip(leaf.axes, leaf.value.shape, strict=True):
            lengths.setdefault(axis.axis if isinstance(axis, Rows) else axis, n)
    if any(not (i.axis is indices[0].axis and is_same(i.index, indices[0].index)) for i in indices):
        raise ValueError(f"{name}: weights are indexed by different groups; wanted: one index, w1[group], w2[group], …")
    if (indices and (own or len(rows) > 1)) or len(own) == len(rows):
        raise ValueError(
            f"{name}: each point has weights of its own; wanted: weights (group, n_in, n_out) and points (group, obs, "
            "feature), or for points in rows weights indexed last, w[group], not mu + sd * z[group]"
        )
    if any(part.parts for axis in labels.axes for part in axis.parts):
        raise ValueError(f"{name}: axes are merged, and then masked or merged again; wanted: logit[mask]")
    if len(rows) > 2:
        raise ValueError(f"{name} has {len(rows)} axes; wanted: (group, obs) or (obs,)")
    known = [axis.index for axis in indices] + [axis.mask for axis in labels.axes if axis.mask is not None]
    if any(map(is_random, known)):
        raise ValueError(f"{name}: the groups or the mask of the points are random; wanted: pm.Data or an array")
    X, y, n_obs, group = _arrange_points(network, labels, rows, own, indices, lengths)
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
    return loglik(X, y, weights, biases=biases, n_obs=n_obs, activation=network.activation, dtype=dtype)


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
    """The same model with the fused likelihood of `bnn.fused`: one posterior, a fraction of the time for a gradient.

    Parameters
    ----------
    model : pm.Model
        With observed variables that are all of them Bernoulli outcomes of a network (``logit_p=``, or ``p=`` a sigmoid)
        of points that are data. The network has any number of layers, all hidden ones tanh or all ReLU, with
        biases or without; none at all is logistic regression. Weights are any expressions of their parents. There is

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
        sampler, `nutpie.compile_pymc_model` and `pm.fit`; `pm.set_data` works on it, and its data are its own. An
        observed variable is a potential of the same name there. What needs the variable takes the original model, whose
        free variables have the same names::

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
    ValueError
        When there is no observed variable, or one whose graph is not understood: it names the expression, and the
        nearest one that is. Minibatches are refused, as each evaluation has other points, and so are missing labels
        and labels other than 0 and 1.
    RuntimeError
        When the two likelihoods differ where they are compared: in what, and by how much.

    Source: the likelihood is that of `bnn.fused.network_loglik`; reading the graph is this book's.
    """
    if not isinstance(model, pm.Model):
        raise TypeError(f"model is a {type(model).__name__}; wanted: a pm.Model")
    if dtype not in (None, *DTYPES):
        raise ValueError(f"dtype={dtype!r}; wanted: one of {', '.join(DTYPES)}, or None")
    try:
        found = {rv: _read_outcome(model, rv, dtype) for rv in model.observed_RVs}
        if not found:
            raise ValueError("the model has no observed variable; wanted: pm.Bernoulli('y', ..., observed=y)")
        fast = _exchange(model, {rv: loglik for rv, (loglik, _) in found.items()})
        for rv, (loglik, parameters) in found.items() if check else ():
            _compare(rv, model.rvs_to_values[rv], loglik, parameters, dtype)
    except ValueError as error:
        if strict:
            raise
        warnings.warn(str(error), UserWarning, stacklevel=2)
        return model
    return fast


def _read_outcome(model, rv, dtype):
    """The fused log likelihood of an observed variable, and the weights and biases that it is a function of."""
    name, value, total_size, node = rv.name, model.rvs_to_values[rv], [], rv.owner
    if any(is_made_by(v, MinibatchOp) for v in ancestors([rv, value])):
        raise ValueError(
            f"{name} is observed on a pm.Minibatch, other points at each evaluation; wanted: all points, or pm.fit on "
            "the model as it is"
        )
    if f"{name.removesuffix('_observed')}_unobserved" in model.named_vars:
        raise ValueError(f"{name.removesuffix('_observed')} has missing values; wanted: observed without masked or NaN")
    for other in (*model.basic_RVs, *model.deterministics, *model.potentials):
        if other is not rv and rv in ancestors([other]):
            raise ValueError(f"{other.name} is computed from {name}, which will be no variable; wanted: from its data")
    if is_made_by(rv, MinibatchRandomVariable):
        node, total_size = rv.owner.inputs[0].owner, rv.owner.inputs[1:]
    outcome = next((found for kind, found in OUTCOMES.items() if isinstance(node.op, kind)), None)
    if outcome is None:
        raise ValueError(f"{name} is a {type(node.op).__name__}; wanted: pm.Bernoulli, 0 and 1 with a network's logit")
    axes = [Axis() for _ in range(rv.ndim)]
    parameters = node.op.dist_params(node)
    if any(parameter.ndim != rv.ndim for parameter in parameters) or not axes:
        raise ValueError(
            f"{name} has {rv.ndim} axes and its probability {parameters[0].ndim}; wanted: one for each label"
        )
    network = read_network(name, *outcome.read(name, parameters, axes))
    loglik = _build(name, network, Leaf(value, axes), outcome.loglik, dtype)
    loglik = loglik * get_scaling(total_size, value.shape) if total_size else loglik
    parameters = [leaf.value for layer in network.layers for leaf in (layer.weights, *layer.biases)]
    return loglik, [parameter for parameter in dict.fromkeys(parameters) if is_random(parameter)]


def _exchange(model, logliks):
    """A new model in which observed variables are potentials."""
    starts = dict(model.rvs_to_initial_values)
    try:  # PyMC does not copy a model with initial values
        for rv in starts:
            model.set_initval(rv, None)
        graph, copies = fgraph_from_model(model)
    finally:
        for rv, start in starts.items():
            model.set_initval(rv, start)
    for rv, loglik in logliks.items():
        loglik = clone_get_equiv([], [loglik], copy_orphans=False, memo=dict(copies))[loglik]
        graph.remove_output(graph.outputs.index(copies[rv]))
        graph.add_output(model_potential(loglik, rv.name), import_missing=True)
    fast = model_from_fgraph(graph, mutate_fgraph=True)
    for variables in (fast.free_RVs, fast.deterministics, fast.potentials, fast.data_vars):
        variables.sort(key=lambda variable: list(model.named_vars).index(variable.name))
    for rv, start in starts.items():
        if start is not None:
            fast.set_initval(fast[rv.name], start)
    return fast


def _compare(rv, value, loglik, parameters, dtype=None, n_points=2, seed=0):
    """RuntimeError where the two likelihoods of weights and biases, or their gradients, differ."""
    stock, rng = pm.logp(rv, value).sum(), np.random.default_rng(seed)
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
                raise ValueError(f"{rv.name}: its log likelihood is not finite at any weights; wanted: finite points")
            continue
        n_points -= 1
        for what, a, b in zip(("value", *map(describe, parameters)), expected, found, strict=True):
            off = np.max(np.abs(a - b)) / max(1.0, np.max(np.abs(a)))
            if not off <= tolerance:
                what = what if what == "value" else f"gradient with respect to {what}"
                raise RuntimeError(
                    f"the log likelihood of {rv.name} and the fused one differ in their {what}, by {off:.1e} of its "
                    "size; wanted: equal. This is a mistake in bnn.fuse: sample the model as it is, and report it"
                )
