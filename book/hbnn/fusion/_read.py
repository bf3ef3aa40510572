"""Which network does a model hold? Its graph is read from the logit to the points, for `_arrange`.

A network can be typed in many ways: `X @ w`, `pt.einsum`, `(h * w).sum(-1)`, axes added here and dropped there. We do
not keep a pattern for each. Every expression on the way from the logit to the points is read together with names for
its axes. What only moves, adds or drops axes hands the names on. A product of any kind has two factors and an axis that
is summed over; the factor that carries the next layer's units is the weights. The names say in the end which axis
counts groups and which counts points, and in what order `_loglik.network_loglik` wants them.
"""

from dataclasses import dataclass, field

import numpy as np
import pytensor.scalar as ps
from pytensor.compile.ops import ViewOp
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Constant, Variable, equal_computations
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import Nonzero
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.einsum import Einsum
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor

from hbnn._refused import Refused

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


def unfold(axes):
    """The axes without those of which one element is taken; in place of an axis of several, these."""
    for axis in axes:
        if isinstance(axis, Rows):
            axis = axis.axis
        if isinstance(axis, Axis):
            yield from unfold(axis.parts) if axis.parts else (axis,)


def list_rows(leaves):
    """The axes of these that are groups, indexed by rows."""
    return [axis for leaf in leaves for axis in leaf.axes if isinstance(axis, Rows)]


def is_same(a, b):
    """Whether two expressions compute the same."""
    return a is b or (a is not None and b is not None and equal_computations([a], [b]))


def is_made_by(var, kind):
    """Whether `var` is made by an Op, or an elementwise scalar Op, of this kind."""
    op = var.owner.op if var.owner else None
    return isinstance(op, kind) or (isinstance(op, Elemwise) and isinstance(op.scalar_op, kind))


def describe(var):
    """An expression as an error calls it."""
    if var.name or var.owner is None:
        return var.name or str(var)
    op = var.owner.op
    names = [v.name for v in ancestors(var.owner.inputs) if v.name and getattr(v, "ndim", 0) > 0]
    kind = type(getattr(op, "scalar_op", getattr(op, "core_op", op))).__name__
    return f"{kind} of {', '.join(list(dict.fromkeys(names))[:3]) or 'constants'}"


def is_random(var):
    """Whether an expression depends on a random variable, observed or not."""
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
    if isinstance(op, ViewOp | SpecifyShape) or is_made_by(var, ps.Identity):
        return source, axes
    if is_made_by(var, ps.Cast) and source.type.numpy_dtype.kind == "f":
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
    if len(indices) > 1 and all(isinstance(i, Variable) and is_made_by(i, Nonzero) for i in indices):
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
    return list(axis.parts) if len(axis.parts) == n and is_same(axis.mask, mask) else None


def _step_reshape(source, var, axes):
    """Axes that are merged, and axes of length 1 that come and go, told by their lengths."""
    before, after, found = get_lengths(source), get_lengths(var), []
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


def get_lengths(var):
    """The lengths of an expression's axes (tuple of int), computed where its type does not tell."""
    shape = var.type.shape
    return tuple(var.shape.eval(mode="FAST_COMPILE").tolist()) if None in shape else shape


def _peel(var, axes):
    """The first expression that does more than to rearrange another one, and its axes."""
    while (found := _step(var, axes)) is not None:
        var, axes = found
    return var, axes


def _peel_weights(var, axes):
    """Weights are not looked into: only added axes and an index of groups are taken off."""
    while is_made_by(var, DimShuffle):
        var, axes = _step(var, axes)
    if is_made_by(var, AdvancedSubtensor):
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
    if not is_made_by(var, ps.Add):
        return var, axes, []
    terms = list(_list_operands(var, axes))
    leaves = [_peel_weights(*term) for term in terms]
    every = {axis for leaf in leaves for axis in unfold(leaf.axes)}
    full = [k for k, leaf in enumerate(leaves) if set(unfold(leaf.axes)) == every and not list_rows([leaf])]
    if len(full) != 1:
        both = " and ".join(describe(terms[k][0]) for k in full) or describe(var)
        raise Refused(
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
        if len(summed) == 1 and is_made_by(product, ps.Mul) and len(product.owner.inputs) == 2:
            axes = list(axes)
            axes.insert(summed[0], below)
            return list(_list_operands(product, axes)), below
    return None


def is_product(var):
    """Whether `var` is a product of matrices as `read_network` knows it, or a sum that may hold one."""
    return is_made_by(var, ps.Add | Einsum) or _read_product(var, [Axis() for _ in range(var.ndim)]) is not None


def _find_weights(factors, axes, above):
    """Which of the two factors is the weights, 0 or 1; None where it cannot be told."""
    tests = _list_signs(factors, [axis for axis in axes if isinstance(axis, Taken)], above)
    return next((test.index(True) for test in tests if sum(test) == 1), None)


def _list_signs(factors, taken, above):
    """What tells weights from units, from the surest sign to the weakest: for both factors whether it is there."""
    leaves = [_peel_weights(*factor) for factor in factors]
    rows = [set(unfold(leaf.axes)) for leaf in leaves]
    yield [above in found for found in rows]
    yield [bool(list_rows([leaf])) and is_random(leaf.value) for leaf in leaves]
    yield [rows[0] < rows[1], rows[1] < rows[0]]
    yield [_read_activation(*_peel(*factor)) is not None for factor in reversed(factors)]
    yield [any(axis in taken for axis in leaf.axes) for leaf in leaves]
    yield [is_random(leaf.value) for leaf in leaves]


def _read_activation(var, axes):
    """ "tanh" or "relu", and what it is applied to with its axes; None where it is something else."""
    operands = list(_list_operands(var, axes)) if var.owner and isinstance(var.owner.op, Elemwise) else []
    values = [value for value, _ in operands]
    if is_made_by(var, ps.Tanh):
        return "tanh", *operands[0]
    if is_made_by(var, ps.Maximum | ps.Mul) and len(values) == 2:
        for z, other in (operands, operands[::-1]):
            gate = _peel_gate(other[0])
            if _is_number(other[0], 0) if is_made_by(var, ps.Maximum) else gate is not None and is_same(gate, z[0]):
                return "relu", *z
    if is_made_by(var, ps.Switch) and _is_number(values[2], 0) and is_same(_peel_gate(values[0]), values[1]):
        return "relu", *operands[1]
    if is_made_by(var, ps.Clip) and _is_number(values[1], 0) and _is_number(values[2], np.inf):
        return "relu", *operands[0]
    return None


def _peel_gate(var):
    """z of ``z > 0``."""
    while is_made_by(var, ps.Cast):
        var = var.owner.inputs[0]
    if is_made_by(var, ps.GT | ps.GE) and _is_number(var.owner.inputs[1], 0):
        return var.owner.inputs[0]
    if is_made_by(var, ps.LT | ps.LE) and _is_number(var.owner.inputs[0], 0):
        return var.owner.inputs[1]
    return None


def _is_number(var, number):
    while is_made_by(var, DimShuffle | ps.Cast):
        var = var.owner.inputs[0]
    return isinstance(var, Constant) and np.all(var.data == number)


def read_network(name, var, axes):
    """The network whose logit is `var`; Refused with what stands there instead."""
    layers, activations, above = [], [], None
    while True:
        var, axes, biases = _read_sum(name, var, axes)
        product = _read_product(var, axes)
        if product is None:
            raise Refused(
                f"{name}: {describe(var)} stands where layer {len(layers) + 1} from the end should be; wanted: a "
                "product of units and weights such as h @ w, pt.dot(h, w), or (h * w).sum(-1), and biases"
            )
        factors, below = product
        which = _find_weights(factors, axes, above)
        if which is None:
            both = " and ".join(describe(factor) for factor, _ in factors)
            raise Refused(f"{name}: a product of {both}, neither of them like weights; wanted: h @ w")
        layers.insert(0, Layer(_peel_weights(*factors[which]), below, above, biases))
        var, axes = factors[1 - which]
        if not is_random(var):
            break
        var, axes = _peel(var, axes)
        found = _read_activation(var, axes)
        if found is None:
            if is_made_by(var, RandomVariable):
                raise Refused(f"{name}: the points {describe(var)} are random; wanted: pm.Data or an array")
            raise Refused(
                f"{name}: {describe(var)} stands where a hidden layer should be; wanted: pt.tanh(...) or "
                "pt.maximum(..., 0) of a product of units and weights"
            )
        activation, var, axes = found
        activations.append(activation)
        above = below
    if len(set(activations)) > 1:
        raise Refused(f"{name}: layers of tanh and of ReLU; wanted: one activation in all hidden layers")
    while is_made_by(var, DimShuffle) or (
        is_made_by(var, Reshape) and any(isinstance(axis, Axis) and axis.parts for axis in axes)
    ):
        var, axes = _step(var, axes)
    return Network(Leaf(var, axes), layers, activations[0] if activations else "tanh")


def read_sigmoid(name, parameters, axes):
    """The logit, and its axes, of a Bernoulli variable's probability."""
    p, axes = _peel(parameters[0], axes)
    z = p.owner.inputs[0] if is_made_by(p, ps.Sigmoid) else _peel_logistic(p)
    if z is None:
        raise Refused(
            f"{name}: its probability is {describe(p)}; wanted: logit_p=..., or p=pm.math.sigmoid(...), of a network"
        )
    return z, axes


def _peel_logistic(p):
    """z of ``1 / (1 + exp(-z))``."""
    if is_made_by(p, ps.TrueDiv) and _is_number(p.owner.inputs[0], 1):
        total = p.owner.inputs[1]
        if is_made_by(total, ps.Add) and len(total.owner.inputs) == 2 and _is_number(total.owner.inputs[0], 1):
            e = total.owner.inputs[1]
            if is_made_by(e, ps.Exp) and is_made_by(e.owner.inputs[0], ps.Neg):
                return e.owner.inputs[0].owner.inputs[0]
    return None
