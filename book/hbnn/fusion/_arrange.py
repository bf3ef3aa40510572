"""From what `_read` found to the fused likelihood, or the fused outputs: axes in the order that the kernels want.

Where there are groups, the number of the group of each point goes with it; with several indices, such as
``w[g1] + u[g2]``, each combination of groups has weights.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from hbnn._refused import Refused
from hbnn.fusion._layers import CHUNK, DTYPES, is_faster
from hbnn.fusion._loglik import network_loglik
from hbnn.fusion._output import network_output
from hbnn.fusion._read import (
    AnyAxis,
    Axes,
    Axis,
    Layer,
    Leaf,
    Network,
    Rows,
    describe,
    is_random,
    list_axes,
    list_rows,
    merge_rows,
    order_axes,
)
from hbnn.fusion._rows import OUTSIDE


class Plan:
    """Where the points of a network are, and which of its axes count groups.

    Attributes
    ----------
    rows : axes of the points, without features
    columns : axes of the outputs
    cells : axes of groups: some of the rows, and indices of rows
    lengths : symbolic lengths of all axes
    sizes : features, units of each hidden layer, outputs
    """

    def __init__(self, name: str, network: Network, axes: Axes) -> None:
        self.network = network
        self.lengths: dict[AnyAxis, Variable] = {}
        leaves, last = network.list_leaves(), network.layers[-1]
        merge_rows(leaves)
        indices = list(dict.fromkeys(list_rows(leaves)))
        for leaf in (*leaves, network.points):
            for axis, n in zip(leaf.axes, leaf.value.shape, strict=True):
                self.lengths.setdefault(axis, n)
        for index in indices:
            self.lengths.setdefault(index.axis, index.index.shape[0])
        for layer in network.layers:
            self.lengths.setdefault(layer.below, pt.constant(1))
        of_last = {axis for leaf in last.list_leaves() for axis in leaf.axes}
        rest = {axis for layer in network.layers[:-1] for leaf in layer.list_leaves() for axis in leaf.axes}
        rest |= {*list_axes(network.points.axes), last.below, *(index.axis for index in indices)}
        every = [axis for axis in list_axes(axes) if axis in rest or axis in of_last]  # any other one was added
        self.columns = [axis for axis in every if axis not in rest]
        self.rows: list[Axis] = [axis for axis in every if axis not in self.columns]
        own = [axis for axis in self.rows if any(axis in leaf.axes for leaf in leaves)]
        self.cells: list[Axis | Rows] = [*own, *indices]
        covered = {*own, *(index.axis for index in indices)}
        is_each = bool(self.rows) and len(own) == len(self.rows)
        if is_each or not covered <= set(self.rows) or {*own} & {index.axis for index in indices}:
            self._refuse(
                f"{name}: each point has weights of its own; wanted: weights (group, n_in, n_out) and points (group, "
                "obs, feature), or for points in rows weights indexed by group, w[group]"
            )
        if any(is_random(index.index) for index in indices):
            self._refuse(f"{name}: the groups of the points are random; wanted: pm.Data or an array")
        if len(self.cells) > 1 and 2 * self.count_elements(self.rows) < self.count_elements(self.cells):
            self._refuse(
                f"{name}: more than twice as many combinations of groups as points; wanted: one index, w[group]"
            )
        sizes = [*(self.count_elements([layer.below]) for layer in network.layers), self.count_elements(self.columns)]
        self.sizes = tuple(sizes)
        per_group = self.count_elements(self.rows) / max(self.count_elements(self.cells), 1) if self.cells else CHUNK
        if not is_faster(sizes, network.activations or ["tanh"], per_group):
            few = f" on {per_group:.2g} points a group" if self.cells else ""
            self._refuse(
                f"{name}: with ReLU layers of {max(sizes)} features or units{few} the model is as fast as it is; "
                "wanted: narrower ones, or another activation"
            )
        if not all(axis in self.lengths for axis in self.rows):
            self._refuse(f"{name}: axes are merged, and points are not; wanted: points (group, obs, feature)")

    def count_elements(self, axes: Sequence[AnyAxis]) -> int:
        """The number of elements that these axes hold, now."""
        return int(self.multiply_lengths(axes).eval(mode="FAST_COMPILE")) if axes else 1

    def _refuse(self, text: str) -> NoReturn:
        error = Refused(text)
        error.depth = len(self.network.layers)
        raise error

    def is_hidden(self) -> bool:
        """Whether hidden layers have all groups."""
        return self._list_cells(self.network.layers[:-1]) == set(self.cells)

    def list_intercepts(self) -> set[Axis | Rows]:
        """The groups that have biases of the last layer only."""
        last = self.network.layers[-1]
        return set(self.cells) - self._list_cells([*self.network.layers[:-1], replace(last, biases=[])])

    def _list_cells(self, layers: Iterable[Layer]) -> set[AnyAxis]:
        return {axis for layer in layers for leaf in layer.list_leaves() for axis in leaf.axes if axis in self.cells}

    def multiply_lengths(self, axes: Iterable[AnyAxis]) -> Variable:
        """The number of elements that these axes hold."""
        total = pt.constant(1)
        for k, axis in enumerate(axes):
            total = total * self.lengths[axis] if k else self.lengths[axis]
        return total

    def multiply_leaves(self, leaves: Sequence[Leaf], order: Sequence[AnyAxis]) -> Variable:
        """The product of leaves, with these axes in this order."""
        value, known = order_axes(leaves[0], order), {axis for leaf in leaves for axis in leaf.axes}
        for leaf in leaves[1:]:
            value = value * order_axes(leaf, order)
        if all(axis in known for axis in order):
            return value
        return pt.alloc(value, *(value.shape[k] if a in known else self.lengths[a] for k, a in enumerate(order)))

    def is_stacked(self) -> bool:
        """Whether the first of the rows counts groups, and others points in each, so that none needs a number."""
        return len(self.cells) == 1 and self.cells[0] in self.rows[:1]

    def arrange_points(self) -> Variable:
        """X (row, feature), or (group, obs, feature)."""
        X = self.multiply_leaves([self.network.points], [*self.rows, self.network.layers[0].below])
        shape = [X.shape[0]] * self.is_stacked() + [-1, X.shape[-1]]
        return X if X.ndim == len(shape) else X.reshape(shape)

    def number_rows(self, mask: Variable | None = None) -> Variable | None:
        """The group of each row, or None; `OUTSIDE` where there is none."""
        if mask is None and (not self.cells or self.is_stacked()):
            return None
        if mask is None and len(self.cells) == len(self.rows) == 1 and isinstance(self.cells[0], Rows):
            return self.cells[0].index
        group, outside = pt.constant(0), pt.constant(0)
        for cell in self.cells:
            n = self.lengths[cell]
            number, along = (cell.index, cell.axis) if isinstance(cell, Rows) else (pt.arange(n), cell)
            number = number.dimshuffle([0 if axis is along else "x" for axis in self.rows])
            if isinstance(cell, Rows):  # a negative one counts from the end
                number = pt.switch(number < 0, number + n, number)
                outside = outside + (number < 0) + (number >= n)
            group = group * n + number
        group = pt.switch(outside, self.multiply_lengths(self.cells), group)
        group = group if mask is None else pt.switch(mask, group, OUTSIDE)
        return pt.broadcast_to(group, [self.lengths[axis] for axis in self.rows]).flatten()

    def has_bias(self) -> bool:
        """Whether any layer has biases."""
        return any(layer.biases for layer in self.network.layers)

    def arrange_layers(self, has_bias: bool) -> tuple[list[Variable], list[Variable]]:
        """Weights (group, n_in, n_out) and biases (group, n_out), or both without group."""
        layers, weights, biases = self.network.layers, [], []
        for layer, above in zip(layers, [*([upper.below] for upper in layers[1:]), self.columns], strict=True):
            weights.append(self._merge_cells(layer.weights, [layer.below], above))
            if has_bias:
                found = [self._merge_cells(bias, [], above) for bias in layer.biases]
                biases.append(sum(found[1:], found[0]) if found else self._make_zeros(weights[-1]))
        return weights, biases

    def _merge_cells(self, leaves: Sequence[Leaf], below: Sequence[AnyAxis], above: Sequence[AnyAxis]) -> Variable:
        value = self.multiply_leaves(leaves, [*self.cells, *below, *above])
        if len(self.cells) < 2 and len(above) == 1:
            return value
        shape = [self.multiply_lengths(self.cells)] * bool(self.cells) + [self.lengths[axis] for axis in below] + [-1]
        return value.reshape(shape)

    def _make_zeros(self, weights: Variable) -> Variable:
        return pt.zeros([*weights.shape[:-2], weights.shape[-1]], weights.dtype)


type Head = tuple[Variable, Axes, Plan]  # what a network's outputs, or units, are, and its axes


def _find_options(network: Network, weights: Sequence[Variable], dtype: str | None) -> dict[str, Any]:
    dtype = dtype or np.result_type(*(w.dtype for w in weights)).name
    kinds = network.activations or ["tanh"]
    return {
        "activation": kinds[0] if len(set(kinds)) == 1 else tuple(kinds),
        "dtype": dtype if dtype in DTYPES else "float64",
    }


def build_loglik(name: str, plan: Plan, labels: Leaf, dtype: str | None) -> Variable:
    """The Bernoulli log likelihood of labels."""
    merged = [axis for axis in labels.axes if isinstance(axis, Axis) and axis.parts]
    if any(part.parts for axis in merged for part in axis.parts):
        raise Refused(f"{name}: axes are merged, and then masked or merged again; wanted: logit[mask]")
    mask = next((axis.mask for axis in merged if axis.mask is not None), None)
    if mask is not None and is_random(mask):
        raise Refused(f"{name}: the mask of the points is random; wanted: pm.Data or an array")
    if mask is not None and (len(labels.axes) > 1 or len(merged[0].parts) != len(plan.rows)):
        raise Refused(f"{name}: some axes are under a mask; wanted: all of them, logit[mask]")
    weights, biases = plan.arrange_layers(plan.has_bias())
    X, group = plan.arrange_points(), plan.number_rows(mask)
    if mask is not None and not plan.cells:
        weights, biases = [w[None] for w in weights], [b[None] for b in biases]
    if mask is not None and X.ndim == 3:
        X = X.reshape((-1, X.shape[-1]))
    y = labels.value if labels.value.ndim == X.ndim - 1 else labels.value.reshape([*X.shape[: X.ndim - 2], -1])
    options = _find_options(plan.network, weights, dtype)
    return network_loglik(X, y, weights, biases=biases, group=group, **options)


def build_outputs(heads: Sequence[Head], dtype: str | None) -> list[Variable]:
    """The fused outputs, or units, of networks that share all but the last layer; rows and groups of all are in the
    same order.
    """
    plan, has_bias = heads[0][2], any(plan.has_bias() for *_, plan in heads)
    weights, biases = plan.arrange_layers(has_bias)
    for _, _, other in heads[1:]:
        w, b = other.arrange_layers(has_bias)
        weights[-1] = pt.concatenate([weights[-1], w[-1]], axis=-1)
        biases[-1:] = [pt.concatenate([biases[-1], b[-1]], axis=-1)] if biases else []
    if plan.network.is_ended():  # units are read out as they are
        n, groups = weights[-1].shape[-1], weights[-1].shape[:-2]
        weights.append(pt.alloc(pt.eye(n, dtype=weights[-1].dtype), *groups, n, n))
        biases += [pt.zeros([*groups, n], weights[-1].dtype)] if biases else []
    options = _find_options(plan.network, weights, dtype)
    if is_random(plan.network.points.value):
        options["differentiate_points"] = True
    out = network_output(plan.arrange_points(), weights, biases=biases, group=plan.number_rows(), **options)
    out = out.reshape((-1, out.shape[-1])) if out.ndim == 3 else out
    found, start = list[Variable](), 0
    for var, axes, other in heads:
        n = other.multiply_lengths(other.columns)
        found.append(_shape_output(out[:, start : start + n] if len(heads) > 1 else out, var, axes, other))
        start = start + n
    return found


def _shape_output(out: Variable, var: Variable, axes: Axes, plan: Plan) -> Variable:
    """Outputs (row, output) in the shape of `var`."""
    if any(axis.mask is not None for axis in axes if isinstance(axis, Axis)):
        raise Refused(f"{describe(var)} has points under a mask; wanted: a mask on top of the outputs")
    order = [*plan.rows, *plan.columns]
    out = out.reshape([plan.lengths[axis] for axis in order])
    parts = [[axis for axis in list_axes([whole]) if axis in order] for whole in axes]
    out = out.dimshuffle([order.index(axis) for some in parts for axis in some])
    out = out.reshape([plan.multiply_lengths(some) for some in parts])
    return pt.specify_shape(pt.cast(out, var.dtype), var.type.shape)
