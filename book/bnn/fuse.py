"""A network typed in plain PyMC gets the fused likelihood: its graph is read, and its likelihood exchanged.

A network can be typed in many ways: `X @ w`, `pt.einsum`, `(h * w).sum(-1)`, axes added here and dropped there. We do
not keep a pattern for each. Every expression on the way from the logit to the points is read together with names for
its axes. What only moves, adds or drops axes hands the names on. A product of any kind has two factors and an axis that
is summed over; the factor that carries the next layer's units is the weights. The names say in the end which axis
counts groups and which counts points, and in what order `bnn.fused.network_loglik` wants them.
"""

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from pymc.data import MinibatchOp
from pymc.model.fgraph import fgraph_from_model, model_from_fgraph, model_potential
from pymc.variational.minibatch_rv import MinibatchRandomVariable, get_scaling
from pytensor.compile.mode import Mode
from pytensor.compile.ops import ViewOp
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Constant, Variable, clone_get_equiv, equal_computations
from pytensor.graph.op import Op
from pytensor.graph.traversal import ancestors
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key
from pytensor.tensor.basic import Nonzero
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.einsum import Einsum
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.random.basic import BernoulliRV
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor

from bnn.fused import DTYPES, network_loglik

OUTSIDE = np.iinfo("int64").min  # the group of a row that belongs to none


# --- axes, and what is read


@dataclass(eq=False)
class Axis:
    """An axis, known by identity; it may hold several others one after the other, or those elements under a mask."""

    parts: tuple = ()
    mask: Variable | None = None


@dataclass(eq=False)
class Taken:
    """An axis of which one element is used: the one that has length 1, or the one that an index takes."""

    index: int = 0


@dataclass(eq=False)
class Rows:
    """The axis of groups of `w` in ``w[index]``, where `axis` counts rows."""

    index: Variable
    axis: Axis


@dataclass
class Leaf:
    """An expression that is used as it is, and its axes."""

    value: Variable
    axes: list


@dataclass
class Layer:
    weights: Leaf
    below: Axis  # the units or features that the sum goes over
    above: Axis | None  # the units that it feeds; None: the logit
    biases: list = field(default_factory=list)  # to be added up


@dataclass
class Network:
    points: Leaf
    layers: list  # first to last
    activation: str


@dataclass(frozen=True)
class Outcome:
    """How the distribution's parameters lead to the network, and the likelihood that takes its place."""

    read: Callable  # name, parameters, axes -> the network's output and its axes
    loglik: Callable  # as `network_loglik`


def _unfold(axes):
    """The axes without those of which one element is taken; in place of an axis of several, these."""
    for axis in axes:
        if isinstance(axis, Rows):
            axis = axis.axis
        if isinstance(axis, Axis):
            yield from _unfold(axis.parts) if axis.parts else (axis,)


def _list_rows(leaves):
    return [axis for leaf in leaves for axis in leaf.axes if isinstance(axis, Rows)]


def _same(a, b):
    return a is b or (a is not None and b is not None and equal_computations([a], [b]))


def _op(var, kind):
    """Whether `var` is made by an Op, or an elementwise scalar Op, of this kind."""
    op = var.owner.op if var.owner else None
    return isinstance(op, kind) or (isinstance(op, Elemwise) and isinstance(op.scalar_op, kind))


def _describe(var):
    """An expression as an error calls it."""
    if var.name or var.owner is None:
        return var.name or str(var)
    op = var.owner.op
    names = [v.name for v in ancestors(var.owner.inputs) if v.name and getattr(v, "ndim", 0) > 0]
    return (
        f"{type(getattr(op, 'scalar_op', op)).__name__} of {', '.join(list(dict.fromkeys(names))[:3]) or 'constants'}"
    )


def _is_random(var):
    return any(isinstance(v.type, RandomType) for v in ancestors([var]))


# --- expressions that only move axes


def _step(var, axes):
    """The expression that `var` rearranges, with its axes; None where `var` does more than that."""
    if var.owner is None or not var.owner.inputs:
        return None
    op, (source, *rest) = var.owner.op, var.owner.inputs
    if isinstance(op, DimShuffle):
        found = [Taken() for _ in range(source.ndim)]
        for axis, k in zip(axes, op.new_order, strict=True):
            if k != "x":
                found[k] = axis
        return source, found
    if isinstance(op, ViewOp | SpecifyShape) or _op(var, ps.Identity):
        return source, axes
    if _op(var, ps.Cast) and source.type.numpy_dtype.kind == "f":
        return source, axes
    if isinstance(op, Einsum):
        return inline_ofg_node(var.owner)[0], axes
    if isinstance(op, Subtensor):
        return _step_index(source, indices_from_subtensor(rest, op.idx_list), axes)
    if isinstance(op, AdvancedSubtensor):
        return _step_mask(source, indices_from_subtensor(rest, op.idx_list), axes)
    return _step_reshape(source, var, axes) if isinstance(op, Reshape) else None


def _step_index(source, indices, axes):
    found, axes = [], iter(axes)
    for index in (*indices, *[slice(None)] * (source.ndim - len(indices))):
        if isinstance(index, Constant):
            found.append(Taken(int(index.data)))
        elif index == slice(None):
            found.append(next(axes))
        else:
            return None
    return source, found


def _step_mask(source, indices, axes):
    """``logit[mask]``, and ``logit[mask.nonzero()]``."""
    mask = indices[0]
    if len(indices) > 1 and all(isinstance(i, Variable) and _op(i, Nonzero) for i in indices):
        node = mask.owner
        mask, indices = (node.inputs[0], [mask]) if list(indices) == node.outputs else (mask, indices)
    if len(indices) > 1 or isinstance(mask, slice) or mask.type.dtype != "bool":
        return None
    parts = _split(axes[0], mask.ndim, mask)
    return parts and (source, [*parts, *axes[1:]])


def _split(axis, n, mask=None):
    if not isinstance(axis, Axis):
        return None
    if not axis.parts:
        axis.parts, axis.mask = tuple(Axis() for _ in range(n)), mask
    return list(axis.parts) if len(axis.parts) == n and _same(axis.mask, mask) else None


def _step_reshape(source, var, axes):
    """Axes that are merged, and axes of length 1 that come and go, told by their lengths."""
    before, after, found = _get_lengths(source), _get_lengths(var), []
    i = j = 0
    while i < len(before) or j < len(after):
        left, right = before[i:], after[j:]
        if left and right and left[0] == right[0]:
            found.append(axes[j])
            i, j = i + 1, j + 1
        elif left and left[0] == 1:
            found.append(Taken())
            i += 1
        elif right and right[0] == 1:
            j += 1
        elif not left or not right:
            return None
        elif left[0] < right[0]:
            n = _count_factors(left, right[0])
            parts = n and _split(axes[j], n)
            if not parts:
                return None
            found += parts
            i, j = i + n, j + 1
        else:
            n = _count_factors(right, left[0])
            parts = tuple(axes[j : j + n])
            if not n or not all(isinstance(axis, Axis) for axis in parts):
                return None
            found.append(Axis(parts))
            i, j = i + 1, j + n
    return source, found


def _count_factors(lengths, wanted):
    """How many of the first lengths have the product that is wanted; 0 where none."""
    products = np.cumprod(lengths).tolist()
    return products.index(wanted) + 1 if wanted in products else 0


def _get_lengths(var):
    shape = var.type.shape
    return tuple(var.shape.eval(mode="FAST_COMPILE").tolist()) if None in shape else shape


def _peel(var, axes):
    """The first expression that does more than to rearrange another one, and its axes."""
    while (found := _step(var, axes)) is not None:
        var, axes = found
    return var, axes


def _peel_weights(var, axes):
    """Weights are not looked into: only added axes and an index of groups are taken off."""
    while _op(var, DimShuffle):
        var, axes = _step(var, axes)
    if _op(var, AdvancedSubtensor):
        source, *rest = var.owner.inputs
        indices = indices_from_subtensor(rest, var.owner.op.idx_list)
        at = [k for k, index in enumerate(indices) if index != slice(None)]
        index = indices[at[0]]
        is_index = len(at) == 1 and not isinstance(index, slice) and index.ndim == 1 and index.type.dtype != "bool"
        if is_index and isinstance(axes[at[0]], Axis):
            return Leaf(source, [Rows(index, a) if k == at[0] else a for k, a in enumerate(axes)])
    return Leaf(var, list(axes))


def _list_operands(var, axes):
    """What an expression is made of; an operand has no part in an axis along which it is broadcast."""
    for source in var.owner.inputs:
        flags = zip(axes, source.type.broadcastable, var.type.broadcastable, strict=False)
        yield source, [Taken() if narrow and not wide else axis for axis, narrow, wide in flags]


# --- from the logit to the points


def _read_sum(name, var, axes):
    """A sum of one expression with a value for each point, and of biases: the first, its axes, and the biases."""
    var, axes = _peel(var, axes)
    if not _op(var, ps.Add):
        return var, axes, []
    terms = list(_list_operands(var, axes))
    leaves = [_peel_weights(*term) for term in terms]
    every = {axis for leaf in leaves for axis in _unfold(leaf.axes)}
    full = [k for k, leaf in enumerate(leaves) if set(_unfold(leaf.axes)) == every and not _list_rows([leaf])]
    if len(full) != 1:
        both = " and ".join(_describe(terms[k][0]) for k in full) or _describe(var)
        raise ValueError(
            f"{name}: a sum of {both}, each with a value for every point; wanted: one product of points and weights, "
            "and biases, such as X @ w + b, or b[group] for rows"
        )
    var, axes, biases = _read_sum(name, *terms[full[0]])
    return var, axes, biases + [leaf for k, leaf in enumerate(leaves) if k != full[0]]


def _read_product(var, axes):
    """The factors of a sum of products with their axes, and the axis summed over; None where there is none."""
    op, below = var.owner.op if var.owner else None, Axis()
    if isinstance(op, Dot) or (isinstance(op, Blockwise) and isinstance(op.core_op, Dot)):
        (a, left), (b, right) = _list_operands(var, axes[:-2])
        return [(a, [*left, axes[-2], below]), (b, [*right, below, axes[-1]])], below
    if isinstance(op, Sum):
        product, summed = var.owner.inputs[0], op.axis if op.axis is not None else range(var.owner.inputs[0].ndim)
        if len(summed) == 1 and _op(product, ps.Mul) and len(product.owner.inputs) == 2:
            axes = list(axes)
            axes.insert(summed[0], below)
            return list(_list_operands(product, axes)), below
    return None


def _find_weights(factors, axes, above):
    """Which of the two factors is the weights, 0 or 1; None where it cannot be told."""
    tests = _list_signs(factors, [axis for axis in axes if isinstance(axis, Taken)], above)
    return next((test.index(True) for test in tests if sum(test) == 1), None)


def _list_signs(factors, taken, above):
    """What tells weights from units, from the surest sign to the weakest: for both factors whether it is there."""
    leaves = [_peel_weights(*factor) for factor in factors]
    rows = [set(_unfold(leaf.axes)) for leaf in leaves]
    yield [above in found for found in rows]
    yield [bool(_list_rows([leaf])) and _is_random(leaf.value) for leaf in leaves]
    yield [rows[0] < rows[1], rows[1] < rows[0]]
    yield [_read_activation(*_peel(*factor)) is not None for factor in reversed(factors)]
    yield [any(axis in taken for axis in leaf.axes) for leaf in leaves]
    yield [_is_random(leaf.value) for leaf in leaves]


def _read_activation(var, axes):
    """ "tanh" or "relu", and what it is applied to with its axes; None where it is something else."""
    operands = list(_list_operands(var, axes)) if var.owner and isinstance(var.owner.op, Elemwise) else []
    values = [value for value, _ in operands]
    if _op(var, ps.Tanh):
        return "tanh", *operands[0]
    if _op(var, ps.Maximum | ps.Mul) and len(values) == 2:
        for z, other in (operands, operands[::-1]):
            gate = _peel_gate(other[0])
            if _is_number(other[0], 0) if _op(var, ps.Maximum) else gate is not None and _same(gate, z[0]):
                return "relu", *z
    if _op(var, ps.Switch) and _is_number(values[2], 0) and _same(_peel_gate(values[0]), values[1]):
        return "relu", *operands[1]
    if _op(var, ps.Clip) and _is_number(values[1], 0) and _is_number(values[2], np.inf):
        return "relu", *operands[0]
    return None


def _peel_gate(var):
    """z of ``z > 0``."""
    while _op(var, ps.Cast):
        var = var.owner.inputs[0]
    if _op(var, ps.GT | ps.GE) and _is_number(var.owner.inputs[1], 0):
        return var.owner.inputs[0]
    if _op(var, ps.LT | ps.LE) and _is_number(var.owner.inputs[0], 0):
        return var.owner.inputs[1]
    return None


def _is_number(var, number):
    while _op(var, DimShuffle | ps.Cast):
        var = var.owner.inputs[0]
    return isinstance(var, Constant) and np.all(var.data == number)


def _read_network(name, var, axes):
    """The network whose logit is `var`; ValueError with what stands there instead."""
    layers, activations, above = [], [], None
    while True:
        var, axes, biases = _read_sum(name, var, axes)
        product = _read_product(var, axes)
        if product is None:
            raise ValueError(
                f"{name}: {_describe(var)} stands where layer {len(layers) + 1} from the end should be; wanted: a "
                "product of units and weights such as h @ w, pt.dot(h, w), or (h * w).sum(-1), and biases"
            )
        factors, below = product
        which = _find_weights(factors, axes, above)
        if which is None:
            both = " and ".join(_describe(factor) for factor, _ in factors)
            raise ValueError(f"{name}: a product of {both}, neither of them like weights; wanted: h @ w")
        layers.insert(0, Layer(_peel_weights(*factors[which]), below, above, biases))
        var, axes = factors[1 - which]
        if not _is_random(var):
            break
        var, axes = _peel(var, axes)
        found = _read_activation(var, axes)
        if found is None:
            if _op(var, RandomVariable):
                raise ValueError(f"{name}: the points {_describe(var)} are random; wanted: pm.Data or an array")
            raise ValueError(
                f"{name}: {_describe(var)} stands where a hidden layer should be; wanted: pt.tanh(...) or "
                "pt.maximum(..., 0) of a product of units and weights"
            )
        activation, var, axes = found
        activations.append(activation)
        above = below
    if len(set(activations)) > 1:
        raise ValueError(f"{name}: layers of tanh and of ReLU; wanted: one activation in all hidden layers")
    while _op(var, DimShuffle) or (_op(var, Reshape) and any(isinstance(axis, Axis) and axis.parts for axis in axes)):
        var, axes = _step(var, axes)
    return Network(Leaf(var, axes), layers, activations[0] if activations else "tanh")


def _read_sigmoid(name, parameters, axes):
    """The logit, and its axes, of a Bernoulli variable's probability."""
    p, axes = _peel(parameters[0], axes)
    z = p.owner.inputs[0] if _op(p, ps.Sigmoid) else _peel_logistic(p)
    if z is None:
        raise ValueError(
            f"{name}: its probability is {_describe(p)}; wanted: logit_p=..., or p=pm.math.sigmoid(...), of a network"
        )
    return z, axes


def _peel_logistic(p):
    """z of ``1 / (1 + exp(-z))``."""
    if _op(p, ps.TrueDiv) and _is_number(p.owner.inputs[0], 1):
        total = p.owner.inputs[1]
        if _op(total, ps.Add) and len(total.owner.inputs) == 2 and _is_number(total.owner.inputs[0], 1):
            e = total.owner.inputs[1]
            if _op(e, ps.Exp) and _op(e.owner.inputs[0], ps.Neg):
                return e.owner.inputs[0].owner.inputs[0]
    return None


OUTCOMES = {BernoulliRV: Outcome(_read_sigmoid, network_loglik)}  # another outcome is another line


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
            f"{_describe(leaf.value)} has an axis too many; wanted: points (group, obs, feature), weights (group, "
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


def _build(name, network, labels, loglik):
    """The fused log likelihood of what was read; ValueError where points and weights have other axes than it knows."""
    leaves = [leaf for layer in network.layers for leaf in (layer.weights, *layer.biases)]
    rows = list(_unfold(labels.axes))
    indices = _list_rows(leaves)
    own = [axis for axis in rows if any(axis in leaf.axes for leaf in leaves)]
    lengths = {}
    for leaf in (*leaves, network.points):
        for axis, n in zip(leaf.axes, leaf.value.shape, strict=True):
            lengths.setdefault(axis.axis if isinstance(axis, Rows) else axis, n)
    if any(not (i.axis is indices[0].axis and _same(i.index, indices[0].index)) for i in indices):
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
    if any(map(_is_random, known)):
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


def fuse(model, *, strict=True, check=True):
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
    strict : bool; False gives the model itself back, with a UserWarning, where it cannot be fused
    check : bool; compare the likelihood that was typed and the fused one, and their gradients, at two random points of
        the weights and biases. It takes about a second, and some more the first time on a machine, for the kernel

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
    try:
        found = {rv: _read_outcome(model, rv) for rv in model.observed_RVs}
        if not found:
            raise ValueError("the model has no observed variable; wanted: pm.Bernoulli('y', ..., observed=y)")
        fast = _exchange(model, {rv: loglik for rv, (loglik, _) in found.items()})
        for rv, (loglik, parameters) in found.items() if check else ():
            _compare(rv, model.rvs_to_values[rv], loglik, parameters)
    except ValueError as error:
        if strict:
            raise
        warnings.warn(str(error), UserWarning, stacklevel=2)
        return model
    return fast


def _read_outcome(model, rv):
    """The fused log likelihood of an observed variable, and the weights and biases that it is a function of."""
    name, value, total_size, node = rv.name, model.rvs_to_values[rv], [], rv.owner
    if any(_op(v, MinibatchOp) for v in ancestors([rv, value])):
        raise ValueError(
            f"{name} is observed on a pm.Minibatch, other points at each evaluation; wanted: all points, or pm.fit on "
            "the model as it is"
        )
    if f"{name.removesuffix('_observed')}_unobserved" in model.named_vars:
        raise ValueError(f"{name.removesuffix('_observed')} has missing values; wanted: observed without masked or NaN")
    for other in (*model.basic_RVs, *model.deterministics, *model.potentials):
        if other is not rv and rv in ancestors([other]):
            raise ValueError(f"{other.name} is computed from {name}, which will be no variable; wanted: from its data")
    if _op(rv, MinibatchRandomVariable):
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
    network = _read_network(name, *outcome.read(name, parameters, axes))
    loglik = _build(name, network, Leaf(value, axes), outcome.loglik)
    loglik = loglik * get_scaling(total_size, value.shape) if total_size else loglik
    parameters = [leaf.value for layer in network.layers for leaf in (layer.weights, *layer.biases)]
    return loglik, [parameter for parameter in dict.fromkeys(parameters) if _is_random(parameter)]


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


def _compare(rv, value, loglik, parameters, n_points=2, seed=0):
    """RuntimeError where the two likelihoods of weights and biases, or their gradients, differ."""
    stock, rng = pm.logp(rv, value).sum(), np.random.default_rng(seed)
    functions = [  # Numba keeps the compiled kernel for the sampler
        pytensor.function(parameters, [total, *pt.grad(total, parameters)], mode=mode, on_unused_input="ignore")
        for total, mode in ((stock, "FAST_COMPILE"), (loglik, Mode("numba", "fast_compile")))
    ]
    shapes, scale = [_get_lengths(parameter) for parameter in parameters], 1.0
    tolerance = 1e-6 if all(parameter.dtype == "float64" for parameter in parameters) else 1e-3
    while n_points and scale > 1e-9:
        values = [
            (scale * rng.normal(size=shape) / np.sqrt(max(1, *shape, 1))).astype(parameter.dtype)
            for parameter, shape in zip(parameters, shapes, strict=True)
        ]
        expected, found = (function(*values) for function in functions)
        if not all(np.isfinite(a).all() for a in expected):
            scale /= 10  # log(1 - p) where p is rounded to 1
            continue
        n_points -= 1
        for what, a, b in zip(("value", *map(_describe, parameters)), expected, found, strict=True):
            off = np.max(np.abs(a - b)) / max(1.0, np.max(np.abs(a)))
            if not off <= tolerance:
                what = what if what == "value" else f"gradient with respect to {what}"
                raise RuntimeError(
                    f"the log likelihood of {rv.name} and the fused one differ in their {what}, by {off:.1e} of its "
                    "size; wanted: equal. This is a mistake in bnn.fuse: sample the model as it is, and report it"
                )
