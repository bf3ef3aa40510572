"""Where new data enter a typed model: the points of its networks, and the numbers of the groups of their rows."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors, walk
from pytensor.tensor.basic import Nonzero
from pytensor.tensor.subtensor import AdvancedSubtensor, indices_from_subtensor

from hbnn._refused import Refused
from hbnn.fusion._read import (
    Axes,
    Axis,
    Network,
    describe,
    is_made_by,
    is_product,
    is_random,
    is_sum,
    list_axes,
    list_rows,
    read_network,
)


@dataclass
class Inputs:
    """Data, or unknowns, that are the points of networks; which of its axes count points, and which groups."""

    root: Variable
    rows: list[int]
    groups: list[int]


def walk_to(var: Variable, unknowns: Collection[Variable]) -> Iterator[Variable]:
    """What an expression is computed from, down to the unknowns."""
    return walk([var], lambda v: v.owner.inputs if v.owner and v not in unknowns else None)


def list_data(var: Variable, unknowns: Collection[Variable]) -> list[Variable]:
    """The arrays of data among it, `pm.Data` and constants, without those of one number."""
    found = [
        v for v in walk_to(var, unknowns) if isinstance(v, Constant | SharedVariable) and bool(getattr(v, "ndim", 0))
    ]
    return [v for v in found if get_data(v).size > 1]


def get_data(var: Variable) -> np.ndarray:
    """The numbers of data."""
    return np.asarray(var.data if isinstance(var, Constant) else var.get_value(borrow=True))


def list_equal(var: Variable, others: Iterable[Variable]) -> list[Variable]:
    """Itself, and constants that hold the same: `X @ w1 + X @ w2` has the array X twice."""
    same = lambda v: isinstance(v, Constant) and np.array_equal(get_data(v), get_data(var))  # noqa: E731
    return [var, *(v for v in others if v is not var and isinstance(var, Constant) and same(v))]


def list_distinct(found: Iterable[Variable]) -> list[Variable]:
    """Data, each once."""
    distinct: list[Variable] = []
    for var in found:
        if not any(var in list_equal(known, [var]) for known in distinct):
            distinct.append(var)
    return distinct


def list_indices(mean: Variable, unknowns: Collection[Variable]) -> list[Variable]:
    """The data that say in which group a row is: g of `w[g]`, where `w` is unknown."""
    found: list[Variable] = []
    for v in walk_to(mean, unknowns):
        if v not in unknowns and is_made_by(v, AdvancedSubtensor) and is_random(v.owner.inputs[0]):
            indices = indices_from_subtensor(v.owner.inputs[1:], v.owner.op.idx_list)
            for index in indices:
                if isinstance(index, Variable) and index.ndim == 1 and index.type.dtype != "bool":
                    found += list_data(index, unknowns)
    return list_distinct(found)


def find_masks(mean: Variable, unknowns: Collection[Variable]) -> dict[Variable, Variable]:
    """What is taken out under a mask of the data, ``logit[mask]``, and the whole of it."""
    found: dict[Variable, Variable] = {}
    for v in walk_to(mean, unknowns):
        if is_made_by(v, AdvancedSubtensor) and set(unknowns) & set(ancestors(v.owner.inputs[:1])):
            source, *rest = v.owner.inputs
            mask = indices_from_subtensor(rest, v.owner.op.idx_list)[0]
            if isinstance(mask, Variable) and (is_made_by(mask, Nonzero) or mask.type.dtype == "bool"):
                found[v] = source
    return found


def find_inputs(name: str, mean: Variable, unknowns: Collection[Variable]) -> Inputs:
    """The points of the networks of which `mean` is made; Refused where there are none, or several."""
    networks = _find_networks(name, mean, unknowns)
    deep = [network for network in networks if network.activations] or networks
    if not deep:
        raise Refused(f"{name}: no network leads to it; wanted: pt.tanh(X @ w1) @ w2, or deeper")
    indices = list_indices(mean, unknowns)
    found = {root: network for network in deep for root in _choose_roots(network.points.value, unknowns, indices)}
    roots = list_distinct(found)
    if len(roots) != 1:
        raise Refused(
            f"{name}: {' and '.join(map(describe, roots)) or 'nothing'} could be the inputs; wanted: one array, or "
            'pm.Data and new data by their names, {"X": X_new, …}'
        )
    return _sort_axes(roots[0], found[roots[0]])


def _find_networks(name: str, mean: Variable, unknowns: Collection[Variable]) -> list[Network]:
    """Networks, the lowest ones: none whose points are another one's outputs or units."""
    found: dict[Variable, Network] = {}
    seen: set[Variable] = set()
    stack = [mean]
    while stack:
        var = stack.pop()
        if var in seen or var.owner is None or var in unknowns or not is_random(var):
            continue
        seen.add(var)
        below = var.owner.inputs
        if is_product(var) or is_sum(var):
            with suppress(Refused):
                axes: Axes = [Axis() for _ in range(var.ndim)]
                found[var] = read_network(name, var, axes)
                below = [found[var].points.value]
        stack += below
    below_points = [set(walk_to(network.points.value, unknowns)) for network in found.values()]
    return [n for n, below in zip(found.values(), below_points, strict=True) if below.isdisjoint(found)]


def _choose_roots(points: Variable, unknowns: Collection[Variable], indices: Collection[Variable]) -> list[Variable]:
    """Points that are unknown; or the `pm.Data` that they are computed from, or else constants."""
    if points in unknowns:
        return [points]
    data = [v for v in list_data(points, unknowns) if not any(v in list_equal(index, [v]) for index in indices)]
    return [v for v in data if isinstance(v, SharedVariable)] or data


def _sort_axes(root: Variable, network: Network) -> Inputs:
    axes, below = network.points.axes, network.layers[0].below
    if len(axes) != root.ndim:
        return Inputs(root, [0], [])
    of_weights = {axis for leaf in network.list_leaves() for axis in list_axes(leaf.axes)}
    of_weights -= {index.axis for index in list_rows(network.list_leaves())}
    kinds = [{*list_axes([axis])} for axis in axes]
    groups = [k for k, kind in enumerate(kinds) if kind & of_weights and below not in kind]
    rows = [k for k, kind in enumerate(kinds) if kind and not kind & of_weights and below not in kind]
    return Inputs(root, rows, groups)
