"""Which network does a model hold? Its graph is read from the logit to the points, for `_arrange`.

A network can be typed in many ways: `X @ w`, `pt.einsum`, `(h * w).sum(-1)`, axes added here and dropped there. We do
not keep a pattern for each. Every expression on the way from the logit to the points is read together with names for
its axes. What only moves, adds or drops axes hands the names on. A product of any kind has two factors and an axis that
is summed over; the factor that carries the next layer's units is the weights. The names say in the end which axis
counts groups and which counts points, and in what order `_loglik.network_loglik` wants them.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pymc.data import MinibatchOp
from pytensor.compile.ops import ViewOp
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Constant, Variable, equal_computations
from pytensor.graph.traversal import ancestors, walk
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
from hbnn.fusion._activations import Activation
from hbnn.fusion._recognise import get_number, read_activation

LONGEST = 200  # nodes of an expression of weights

# --- axes, and what is read

type AnyAxis = Axis | Taken | Rows
type Axes = list[AnyAxis]
type Term = tuple[Variable, Axes]  # an expression and its axes


@dataclass(eq=False)
class Axis:
    """An axis, known by identity; it may hold several others one after the other, or those elements under a mask."""

    parts: tuple["Axis", ...] = ()
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
    """An expression that is used as it is, and its axes; what it is computed from, where it is none of the model's."""

    value: Variable
    axes: Axes
    sources: list[Variable] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sources = self.sources or [self.value]


@dataclass
class Layer:
    weights: list[Leaf]  # to be multiplied
    below: Axis  # the units or features that the sum goes over
    biases: list[list[Leaf]]  # to be added up, each of them leaves to be multiplied

    def list_leaves(self) -> list[Leaf]:
        return [*self.weights, *(leaf for bias in self.biases for leaf in bias)]


@dataclass
class Network:
    points: Leaf
    layers: list[Layer]  # first to last
    activations: list[Activation]  # of all layers but the last; of the last one too, where the network has no read-out
    units: list[Variable]  # what the activations give, in the same order
    top_axes: Axes = field(default_factory=list)  # of the last of these

    def is_ended(self) -> bool:
        """Whether it ends with units that are not read out."""
        return len(self.activations) == len(self.layers)

    def list_leaves(self) -> list[Leaf]:
        """Weights and biases of all layers."""
        return [leaf for layer in self.layers for leaf in layer.list_leaves()]


def list_axes(axes: Iterable[AnyAxis]) -> Iterator[Axis]:
    """The axes without those of which one element is taken; in place of an axis of several, these."""
    for axis in axes:
        if isinstance(axis, Rows):
            axis = axis.axis
        if isinstance(axis, Axis):
            yield from list_axes(axis.parts) if axis.parts else (axis,)


def list_rows(leaves: Iterable[Leaf]) -> list[Rows]:
    """The axes of these that are groups, indexed by rows."""
    return [axis for leaf in leaves for axis in leaf.axes if isinstance(axis, Rows)]


def is_same(a: Variable | None, b: Variable | None) -> bool:
    """Whether two expressions compute the same."""
    return a is b or (a is not None and b is not None and equal_computations([a], [b]))


def is_made_by(var: Variable, kind: Any) -> bool:
    """Whether `var` is made by an Op, or an elementwise scalar Op, of this kind."""
    op = var.owner.op if var.owner else None
    return isinstance(op, kind) or (isinstance(op, Elemwise) and isinstance(op.scalar_op, kind))


def describe(var: Variable) -> str:
    """An expression as an error calls it."""
    if var.name or var.owner is None:
        return var.name or (f"an array {var.type.shape}" if getattr(var, "ndim", 0) else str(var))
    op = var.owner.op
    names = [v.name for v in ancestors(var.owner.inputs) if v.name and getattr(v, "ndim", 0) > 0]
    kind = type(getattr(op, "scalar_op", getattr(op, "core_op", op))).__name__
    return f"{kind} of {', '.join(list(dict.fromkeys(names))[:3]) or 'constants'}"


def is_random(var: Variable) -> bool:
    """Whether an expression depends on a random variable, observed or not; a minibatch is data."""
    ways = walk([var], lambda v: v.owner.inputs if v.owner and not isinstance(v.owner.op, MinibatchOp) else None)
    return any(isinstance(v.type, RandomType) for v in ways)


# --- expressions that only move axes


def _undo_one_move(var: Variable, axes: Axes) -> Term | None:
    """The expression that `var` rearranges, with its axes; None where `var` does more than that."""
    if var.owner is None or not var.owner.inputs:
        return None
    op, (source, *rest) = var.owner.op, var.owner.inputs
    if isinstance(op, DimShuffle):
        found: Axes = [Taken() for _ in range(source.ndim)]
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
        return _undo_index(source, indices_from_subtensor(rest, op.idx_list), axes)
    if isinstance(op, AdvancedSubtensor):
        return _undo_mask(source, indices_from_subtensor(rest, op.idx_list), axes)
    return _undo_reshape(source, var, axes) if isinstance(op, Reshape) else None


def _undo_index(source: Variable, indices: Sequence[Any], axes: Axes) -> Term | None:
    found: Axes = []
    left = iter(axes)
    for index in (*indices, *[slice(None)] * (source.ndim - len(indices))):
        if isinstance(index, Constant):
            found.append(Taken(int(index.data)))
        elif index == slice(None):
            found.append(next(left))
        else:
            return None
    return source, found


def _undo_mask(source: Variable, indices: Sequence[Any], axes: Axes) -> Term | None:
    """``logit[mask]``, and ``logit[mask.nonzero()]``."""
    mask = indices[0]
    if len(indices) > 1 and all(isinstance(i, Variable) and is_made_by(i, Nonzero) for i in indices):
        node = mask.owner
        mask, indices = (node.inputs[0], [mask]) if list(indices) == node.outputs else (mask, indices)
    if len(indices) > 1 or isinstance(mask, slice) or mask.type.dtype != "bool":
        return None
    parts = _split_merged_axis(axes[0], mask.ndim, mask)
    return (source, [*parts, *axes[1:]]) if parts else None


def _split_merged_axis(axis: AnyAxis, n: int, mask: Variable | None = None) -> list[Axis] | None:
    if not isinstance(axis, Axis):
        return None
    if not axis.parts:
        axis.parts, axis.mask = tuple(Axis() for _ in range(n)), mask
    return list(axis.parts) if len(axis.parts) == n and is_same(axis.mask, mask) else None


def _undo_reshape(source: Variable, var: Variable, axes: Axes) -> Term | None:
    """Axes that are merged, and axes of length 1 that come and go, told by their lengths."""
    before, after = get_lengths(source), get_lengths(var)
    found: Axes = []
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
            if not n or not (parts := _split_merged_axis(axes[j], n)):
                return None
            found += parts
            i, j = i + n, j + 1
        else:
            n = _count_factors(right, left[0])
            merged = [axis for axis in axes[j : j + n] if isinstance(axis, Axis)]
            if not n or len(merged) < n:
                return None
            found.append(Axis(tuple(merged)))
            i, j = i + 1, j + n
    return source, found


def _count_factors(lengths: Sequence[int], wanted: int) -> int:
    """How many of the first lengths have the product that is wanted; 0 where none."""
    products = np.cumprod(lengths).tolist()
    return products.index(wanted) + 1 if wanted in products else 0


def get_lengths(var: Variable) -> tuple[int, ...]:
    """The lengths of an expression's axes, computed where its type does not tell."""
    shape = var.type.shape
    return tuple(var.shape.eval(mode="FAST_COMPILE").tolist()) if None in shape else shape


def _undo_moves(var: Variable, axes: Axes) -> Term:
    """The first expression that does more than to rearrange another one, and its axes."""
    while (found := _undo_one_move(var, axes)) is not None:
        var, axes = found
    return var, axes


def _undo_added_axes(var: Variable, axes: Axes) -> Term:
    """The expression in which axes were added, or merged into one."""
    while (
        is_made_by(var, DimShuffle)
        or (is_made_by(var, Reshape) and any(isinstance(axis, Axis) and axis.parts for axis in axes))
    ) and (moved := _undo_one_move(var, axes)):
        var, axes = moved
    return var, list(axes)


def _read_leaf(var: Variable, axes: Axes) -> Leaf:
    """Weights are not looked into: only added or merged axes and indices of groups are taken off, as from within
    `mu + z[g]`.
    """
    var, axes = _undo_added_axes(var, axes)
    leaf = Leaf(var, axes)
    if is_made_by(var, AdvancedSubtensor):
        return _read_index(leaf) or leaf
    if is_made_by(var, Elemwise) and _holds_index(var):
        return _move_index_outward(leaf) or leaf
    return leaf


def _read_index(leaf: Leaf) -> Leaf | None:
    """``w[g]`` and ``w[g1, g2]``: axes that rows index in place of the axis of rows."""
    source, *rest = leaf.value.owner.inputs
    indices = indices_from_subtensor(rest, leaf.value.owner.op.idx_list)
    at = [k for k, index in enumerate(indices) if index != slice(None)]
    is_index = all(not isinstance(indices[k], slice) and indices[k].ndim == 1 for k in at)
    if not is_index or any(indices[k].type.dtype == "bool" for k in at) or at != [*range(at[0], at[-1] + 1)]:
        return None
    axis = leaf.axes[at[0]]
    if not isinstance(axis, Axis) or axis.parts:
        return None
    groups = [Rows(indices[k], axis) for k in at]
    return Leaf(source, [*leaf.axes[: at[0]], *groups, *leaf.axes[at[0] + 1 :]])


def _holds_index(var: Variable) -> bool:
    """Whether an elementwise expression has an index, written out in full, which steps of time make too long."""
    nodes = [var]
    for v in nodes:
        if is_made_by(v, Elemwise | DimShuffle):
            nodes += v.owner.inputs
        if len(nodes) > LONGEST:
            return False
    return any(is_made_by(v, AdvancedSubtensor) for v in nodes)


def _move_index_outward(leaf: Leaf) -> Leaf | None:
    """An elementwise expression of indexed weights as the same one before the index; None where rows have a part."""
    leaves = [_read_leaf(*operand) for operand in _list_operands(leaf.value, leaf.axes)]
    leaves = [Leaf(order_axes(a, a.axes), [x for x in a.axes if not isinstance(x, Taken)], a.sources) for a in leaves]
    merge_rows(leaves)
    indexed = list_rows(leaves)
    if not indexed or {axis.axis for axis in indexed} & {axis for a in leaves for axis in a.axes}:
        return None
    order = list(dict.fromkeys(axis for a in leaves for axis in a.axes))
    value = leaf.value.owner.op(*[order_axes(a, order) for a in leaves])
    return Leaf(value, order, [source for a in leaves for source in a.sources])


def merge_rows(leaves: Iterable[Leaf]) -> None:
    """The same index of the same rows becomes one axis in all of them."""
    known: list[Rows] = []
    for leaf in leaves:
        for k, axis in enumerate(leaf.axes):
            if isinstance(axis, Rows):
                same = (a for a in known if a.axis is axis.axis and is_same(a.index, axis.index))
                leaf.axes[k] = found = next(same, axis)
                known += [found] * (found not in known)


def order_axes(leaf: Leaf, order: Iterable[AnyAxis]) -> Variable:
    """The expression with these axes in this order, of length 1 where it lacks one."""
    taken = tuple(axis.index if isinstance(axis, Taken) else slice(None) for axis in leaf.axes)
    axes = [axis for axis in leaf.axes if not isinstance(axis, Taken)]
    order = [axis for axis in order if not isinstance(axis, Taken)]
    if len(set(axes)) < len(axes) or not set(axes) <= set(order):
        raise Refused(
            f"{describe(leaf.value)} has an axis too many; wanted: points (group, obs, feature), weights (group, "
            "n_in, n_out), biases (group, n_out), or all without group; for points in rows w[group] and b[group]"
        )
    value = leaf.value[taken] if len(axes) < len(leaf.axes) else leaf.value
    pattern = [axes.index(axis) if axis in axes else "x" for axis in order]
    return value.dimshuffle(pattern) if pattern != list(range(len(axes))) else value


def _list_operands(var: Variable, axes: Axes) -> Iterator[Term]:
    """What an expression is made of; an operand has no part in an axis along which it is broadcast."""
    for source in var.owner.inputs:
        flags = zip(axes, source.type.broadcastable, var.type.broadcastable, strict=False)
        yield source, [Taken() if narrow and not wide else axis for axis, narrow, wide in flags]


# --- from the logit to the points

MINUS, SCALES = pt.constant(np.int8(-1)), ps.Mul | ps.TrueDiv | ps.Neg
_SUM_LINKS = ps.Add | ps.Sub | ps.Identity | ps.Cast | DimShuffle | Reshape | SpecifyShape | Subtensor | ViewOp


def _read_linear(
    name: str, var: Variable, axes: Axes, above: Axis | None
) -> tuple[Variable, Axes, list[Leaf], list[list[Leaf]]]:
    """What is multiplied and shifted to give `var`, its axes, the factors of that, and the biases."""
    scale: list[Leaf] = []
    biases: list[list[Leaf]] = []
    while True:
        var, axes = _undo_moves(var, axes)
        found = _split_terms(var, axes, above) if is_made_by(var, ps.Add | ps.Sub | SCALES) else None
        if found is None and is_made_by(var, ps.Add | ps.Sub):
            raise Refused(
                f"{name}: a sum of {' and '.join(map(describe, var.owner.inputs))}, each with a value for every point; "
                "wanted: one product of points and weights, and biases, such as X @ w + b, or b[group] for rows"
            )
        if found is None:
            return var, axes, scale, biases
        k, terms, others = found
        if is_made_by(var, SCALES):
            scale += others
        else:
            minus = [Leaf(MINUS, [])] * is_made_by(var, ps.Sub)
            biases += [[leaf, *scale, *(minus if k == 0 else [])] for leaf in others]
            scale += minus if k == 1 else []
        var, axes = terms[k]


def _split_terms(var: Variable, axes: Axes, above: Axis | None) -> tuple[int, list[Term], list[Leaf]] | None:
    """Which of its terms a sum, or a product, of one expression and of biases, or factors, is about; all terms, and the
    others as leaves.
    """
    terms = list(_list_operands(var, axes))
    leaves = [_read_leaf(*term) for term in terms]
    every = {axis for leaf in leaves for axis in list_axes(leaf.axes)}
    full = [k for k, leaf in enumerate(leaves) if set(list_axes(leaf.axes)) == every and not list_rows([leaf])]
    others = [leaf for k, leaf in enumerate(leaves) if full != [k]]
    points = every - {above}
    is_one = len(full) == 1 and not any(
        points and points <= set(list_axes(x.axes)) and not list_rows([x]) for x in others
    )
    if is_made_by(var, ps.TrueDiv):
        one = np.ones((), var.dtype)
        is_one, others = is_one and full == [0], [Leaf(one / x.value, x.axes, x.sources) for x in others]
    if not is_one:
        return None
    return full[0], terms, [Leaf(MINUS, [])] if is_made_by(var, ps.Neg) else others


def _read_product(var: Variable, axes: Axes) -> tuple[list[Term], Axis] | None:
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


def is_product(var: Variable) -> bool:
    """Whether `var` is a product of matrices as `read_network` knows it."""
    return is_made_by(var, Einsum) or _read_product(var, [Axis() for _ in range(var.ndim)]) is not None


def is_sum(var: Variable) -> bool:
    """Whether something is added to such a product."""
    ways = walk([var], lambda v: v.owner.inputs if is_made_by(v, _SUM_LINKS) else None)
    return is_made_by(var, ps.Add | ps.Sub) and any(map(is_product, ways))


def _read_outer(var: Variable, axes: Axes, above: AnyAxis | None) -> tuple[list[Term], Axis] | None:
    """``x[:, None] * w``, a product of one feature."""
    above = axes[-1] if above is None and axes else above
    if not is_made_by(var, ps.Mul) or len(var.owner.inputs) != 2:
        return None
    factors = list(_list_operands(var, axes))
    plain = [{a for a in _read_leaf(*factor).axes if not isinstance(a, Rows | Taken)} for factor in factors]
    if [above in found for found in plain].count(True) != 1 or plain[0] <= plain[1] or plain[1] <= plain[0]:
        return None
    return factors, Axis()


def _find_weights(factors: list[Term], axes: Axes, above: Axis | None) -> int | None:
    """Which of the two factors is the weights, 0 or 1; None where it cannot be told."""
    tests = _list_signs(factors, axes, above)
    return next((test.index(True) for test in tests if sum(test) == 1), None)


def _list_signs(factors: list[Term], axes: Axes, above: Axis | None) -> Iterator[list[bool]]:
    """What tells weights from units, from the surest sign to the weakest: for both factors whether it is there."""
    leaves = [_read_leaf(*factor) for factor in factors]
    rows = [set(list_axes(leaf.axes)) for leaf in leaves]
    yield [above in found for found in rows]
    yield [bool(list_rows([leaf])) and _is_any_random(leaf) for leaf in leaves]
    yield [rows[0] < rows[1], rows[1] < rows[0]]
    yield [_read_units(var, its, None)[-1] is not None for var, its in reversed(factors)]
    yield [any(isinstance(axis, Taken) and axis in axes for axis in leaf.axes) for leaf in leaves]
    yield [_is_any_random(leaf) for leaf in leaves]
    yield [above is None and len(axes) > 1 and axes[-1] in found for found in rows]


def _is_any_random(leaf: Leaf) -> bool:
    return any(map(is_random, leaf.sources))


def _read_layer(name: str, var: Variable, axes: Axes, above: Axis | None, depth: int) -> tuple[Layer, Term]:
    """A layer, and the units or points below it with their axes; Refused with what stands there instead."""
    var, axes, scale, biases = _read_linear(name, var, axes, above)
    product = _read_product(var, axes) or _read_outer(var, axes, above)
    if product is None:
        raise Refused(
            f"{name}: {describe(var)} stands where layer {depth + 1} from the end should be; wanted: a "
            "product of units and weights such as h @ w, pt.dot(h, w), or (h * w).sum(-1), and biases"
        )
    factors, below = product
    which = _find_weights(factors, axes, above)
    if which is None:
        both = " and ".join(describe(factor) for factor, _ in factors)
        raise Refused(f"{name}: a product of {both}, neither of them like weights; wanted: h @ w")
    return Layer([_read_leaf(*factors[which]), *scale], below, biases), factors[1 - which]


def _read_units(
    var: Variable, axes: Axes, below: Axis | None
) -> tuple[Variable, Axes, list[Leaf], tuple[Activation, Variable, float] | None]:
    """Units with their axes, what they are multiplied by, and of which activation of what, times which number, they
    are; None: of none.
    """
    factors: list[Leaf] = []
    while True:
        whole = var, axes
        if not is_random(var):
            return *whole, factors, None
        var, axes = _undo_moves(var, axes)
        found = read_activation(var)
        if found:
            return var, axes, factors, found
        split = _split_terms(var, axes, below) if is_made_by(var, SCALES) else None
        if split is None:
            return *whole, factors, None
        k, terms, others = split
        var, axes = terms[k]
        factors += others


def read_network(
    name: str, var: Variable, axes: Axes, cuts: Collection[Variable] = (), activation: Activation | None = None
) -> Network:
    """The network whose outputs `var` is, or the layer below its last units where `activation` is theirs; Refused with
    what stands there instead, which has the number of layers read as `depth`. Units among `cuts` are points.
    """
    network, above, refused = Network(Leaf(var, axes), [], [], []), None, None
    pending: tuple[Activation, Variable, list[Leaf]] | None = (activation, var, []) if activation else None
    while True:
        try:
            layer, units = _read_layer(name, var, axes, above, len(network.layers))
        except Refused as error:
            refused = error
            break
        network.layers.insert(0, layer)
        if pending:
            network.activations.insert(0, pending[0])
            network.units.insert(0, pending[1])
            for upper in network.layers[1:2]:  # what units are times is theirs where they are points after all
                upper.weights += pending[2]
        top, axes, factors, found = _read_units(*units, layer.below)
        layer.weights += factors
        network.points = Leaf(top, axes)
        if not is_random(top):
            break
        if found is None or top in cuts:
            refused = Refused(_say_missing_layer(name, top))
            break
        scale = [Leaf(pt.constant(np.asarray(found[2], top.dtype)), [])] * (found[2] != 1)
        pending, var, above = (found[0], top, scale), found[1], layer.below
        network.top_axes = network.top_axes or axes
    if refused and not network.activations:
        refused.depth = len(network.layers)
        raise refused
    network.layers[0].below.parts = ()  # embeddings that are laid flat are features as they are
    network.points = Leaf(*_undo_added_axes(network.points.value, network.points.axes))
    return network


def _say_missing_layer(name: str, var: Variable) -> str:
    if is_made_by(var, RandomVariable):
        return f"{name}: the points {describe(var)} are random; wanted: pm.Data or an array"
    return (
        f"{name}: {describe(var)} stands where a hidden layer should be; wanted: an activation such as pt.tanh(...) of "
        "a product of units and weights"
    )


def read_sigmoid(name: str, parameters: Sequence[Variable], axes: Axes) -> Term:
    """The logit, and its axes, of a Bernoulli variable's probability."""
    p, axes = _undo_moves(parameters[0], axes)
    z = p.owner.inputs[0] if is_made_by(p, ps.Sigmoid) else _find_logistic_argument(p)
    if z is None:
        raise Refused(
            f"{name}: its probability is {describe(p)}; wanted: logit_p=..., or p=pm.math.sigmoid(...), of a network"
        )
    return z, axes


def _find_logistic_argument(p: Variable) -> Variable | None:
    """z of ``1 / (1 + exp(-z))``."""
    if is_made_by(p, ps.TrueDiv) and get_number(p.owner.inputs[0]) == 1:
        total = p.owner.inputs[1]
        if is_made_by(total, ps.Add) and len(total.owner.inputs) == 2 and get_number(total.owner.inputs[0]) == 1:
            e = total.owner.inputs[1]
            if is_made_by(e, ps.Exp) and is_made_by(e.owner.inputs[0], ps.Neg):
                return e.owner.inputs[0].owner.inputs[0]
    return None
