"""Mistakes that show in which rows depend on which part of a variable."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pytensor.scalar as ps
from numpy.typing import NDArray
from pytensor.graph.basic import Variable
from pytensor.tensor.subtensor import AdvancedSubtensor, IncSubtensor, Subtensor

from hbnn._text import join
from hbnn.checking._findings import Finding, make_finding
from hbnn.checking._model import MOVES, Graph, ModelVariable, PriorRun, unmove
from hbnn.fusion._read import is_made_by

# for each unknown of a group; with fewer, the prior's sd and not the rows decide where it may be. Lines through three
# rows each, as in PyMC's gallery, sample without a divergence
FUNNEL_ROWS = 1.5
LEAST_GROUPS = 3  # fewer are arms of an experiment rather than groups


def find_groups(graph: Graph, run: PriorRun) -> Iterator[Finding]:
    """Groups without rows, with few rows, and values for a row each.

    Limits: `FUNNEL_ROWS` is ours; that the form of a hierarchy should follow how much its data tell is Betancourt's and
    Girolami's (2015). Of a count or of many trials one row tells as much as several.
    """
    if graph.full:
        return  # a batch does not hold all rows
    response = _RowDependence(graph, run)
    unused, centred = defaultdict(list), defaultdict(list)
    for k, variable in enumerate(graph.free.values()):
        if not response.is_clear(variable):
            continue
        cells, shape = response.find_cells(k)
        n_cells, used = int(np.prod(shape)), cells >= 0
        if n_cells < LEAST_GROUPS:
            continue
        rows = np.bincount(cells[used], minlength=n_cells)
        told = np.bincount(cells[used], response.get_weights(variable)[used], minlength=n_cells)
        is_unknown = variable.scale is not None and graph.get_unknowns(variable.scale)
        if rows.max() == 1 and (names := _list_noisy(graph, variable)):
            yield make_finding(
                "noise for each row", f"{variable.name} has an sd for each of {n_cells} rows of {join(names)}"
            )
            continue
        if np.any(rows == 0) and not _is_overwritten(graph, variable.rv):
            places = [tuple(map(int, np.unravel_index(k, shape))) for k in np.flatnonzero(rows == 0)]
            which = join([str(k if len(k) > 1 else k[0]) for k in places], limit=5)
            unused[f"group {which} of {n_cells}"].append(variable.name)
        if is_unknown and not _is_imputed(graph, variable):
            centred[cells.tobytes()].append((variable.name, run.prior[0][k].size / n_cells, np.median(told)))
        elif rows.max() == 1 and not is_unknown and _is_added(graph, variable.rv):
            yield make_finding(
                "bias for each row",
                f"{variable.name} has a value for each of {n_cells} rows, and takes up what the rest leaves over",
            )
    for which, whose in unused.items():
        yield make_finding("group without rows", f"no row uses {which} in {join(whose)}")
    for alike in centred.values():
        called, counts, (each, *_) = zip(*alike, strict=True)
        if each < FUNNEL_ROWS * sum(counts):
            yield make_finding(
                "funnel",
                f"{join(called)}: {sum(counts):g} for each group, drawn around a mean with an unknown sd, and {each:g} "
                "rows to tell; where that sd is small there is no room to move",
            )


def find_batched_groups(graph: Graph, run: PriorRun) -> Iterator[Finding]:
    """Minibatches along an axis that weights have: groups in another order at each step, weights in one order for ever.

    Limit: none; the same place of the variable goes with the same place of the batch, whichever rows these are
    (pymc-devs/pymc, issue 3934).
    """
    sizes = {batch.type.shape[0] for batch in graph.full} - {None, 1}
    if not sizes:
        return
    response = _RowDependence(graph, run)
    suspects = {
        k: v for k, v in enumerate(graph.free.values()) if response.is_clear(v) and sizes & set(run.prior[0][k].shape)
    }
    found: list[dict[int, NDArray]] = []
    for batches in ({batch: v[::-1] for batch, v in graph.thinned.items()}, graph.thinned):
        run.use_batches(batches)
        found.append({k: response.find_cells(k)[0] for k in suspects})
    names = [
        v.name for k, v in suspects.items() if np.array_equal(found[0][k], found[1][k]) and response.varies(found[0][k])
    ]
    if names:
        yield make_finding(
            "minibatch of groups",
            f"{join(names)} has an axis as long as the minibatch, and in one order, while the minibatch draws at "
            "random",
        )


def _list_noisy(graph: Graph, variable: ModelVariable) -> list[str]:
    """The outcomes that have a variable as their sd, and it has no prior in common with other rows."""
    if graph.get_unknowns(*variable.params):
        return []
    found = {v.name: unmove(v.scale) for v in graph.outcomes if v.scale is not None}
    for name, scale in found.items():
        if scale.owner and isinstance(scale.owner.op, Subtensor | AdvancedSubtensor):  # of rows that are not missing
            found[name] = unmove(scale.owner.inputs[0])
    return [name for name, scale in found.items() if scale is variable.rv]


def _is_overwritten(graph: Graph, rv: Variable) -> bool:
    """Whether elements of a variable are set to something, as loadings are to 1."""
    return any(isinstance(node.op, IncSubtensor) and unmove(node.inputs[0]) is rv for node in graph.live_nodes)


def _is_imputed(graph: Graph, variable: ModelVariable) -> bool:
    """Whether PyMC made a variable of missing values, whose sd the other values tell."""
    name = variable.name.removesuffix("_unobserved")
    return name != variable.name and f"{name}_observed" in graph.names


def _is_added(graph: Graph, rv: Variable) -> bool:
    """Whether a variable is used once, and added to something else that is unknown."""
    users = graph.users[rv]
    while len(users) == 1 and isinstance(users[0].op, MOVES):
        users = graph.users[users[0].outputs[0]]
    sums = [node.outputs[0] for node in users if is_made_by(node.outputs[0], ps.Add)]
    return len(users) == len(sums) == 1 and len(graph.get_unknowns(*sums)) > 1


class _RowDependence:
    """Which rows, of outcomes and of variables that have it in their prior, depend on a part of a variable."""

    def __init__(self, graph: Graph, run: PriorRun) -> None:
        live = [v for v in run.variables if v.rv in graph.live]
        self._unclear = graph.get_unknowns(*graph.potentials, *(p for v in live if not v.is_simple for p in v.params))
        self._graph = graph
        self._run, self._targets = run, [v for v in live if v.is_simple]
        shapes = dict(zip(graph.free, (x.shape for x in run.prior[0]), strict=True))
        shapes |= {v.rv: run.draws[0][v.value].shape for v in graph.outcomes}
        self._shapes = [self._broadcast(v, shapes[v.rv]) for v in self._targets]
        self._bases = [
            [np.nan_to_num(x / np.hypot(1, x), nan=1) if x.dtype.kind == "f" else x for x in values]
            for values in run.prior[:2]
        ]

    def _broadcast(self, target: ModelVariable, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The rows of a variable and of its parameters."""
        found = [self._run.draws[0][v].shape for v in target.params]
        rows = (of_param[: len(of_param) - n] for of_param, n in zip(found, target.cores, strict=True))
        return np.broadcast_shapes(shape, *rows)

    def is_clear(self, variable: ModelVariable) -> bool:
        """Whether all that depends on a variable can be looked at."""
        return variable.is_univariate and variable.rv in self._graph.live and variable.rv not in self._unclear

    def get_weights(self, variable: ModelVariable) -> NDArray:
        """How many rows each row is worth: a count of nine or nine trials have nine yes or no, and exact ones more."""
        draw, found = self._run.draws[0], []
        for target, shape in zip(self._targets, self._shapes, strict=True):
            size: NDArray | float = 1.0
            noise = self._graph.get_number(target.scale)
            if target.value is None:
                pass
            elif target.kind == "binomial":
                size = draw[target.params[0]]
            elif target.kind in ("poisson", "negative_binomial"):
                size = draw[target.value]
            elif noise is not None and variable.scale is not None:  # how far groups are apart, in sds of their rows
                size = np.median([np.median(draw[variable.scale]) for draw in self._run.draws]) ** 2 / noise**2
            found += [np.maximum(np.broadcast_to(size, shape), 1).ravel()] * len(target.params)
        return np.concatenate(found)

    def varies(self, cells: NDArray[np.intp]) -> bool:
        """Whether the cell that a row depends on differs along the first axis of an outcome."""
        start = 0
        for target, shape in zip(self._targets, self._shapes, strict=True):
            for _ in target.params:
                part = cells[start : start + int(np.prod(shape))].reshape(shape)
                start += part.size
                if target.value is not None and part.ndim and np.any(part != part[:1]):
                    return True
        return False

    def _evaluate(self, values: Sequence[NDArray]) -> list[NDArray] | None:
        """All parameters, each as (row, value); None where NaN is refused on the way."""
        found = []
        try:
            draw = self._run.evaluate(values)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            return None
        for target, shape in zip(self._targets, self._shapes, strict=True):
            for v, n_core in zip(target.params, target.cores, strict=True):
                part = draw[v].reshape(*draw[v].shape[: draw[v].ndim - n_core], -1)
                found.append(np.broadcast_to(part, (*shape, part.shape[-1])).reshape(-1, part.shape[-1]))
        return found

    def _find_rows(self, k: int, part: tuple) -> NDArray[np.bool_]:
        """Which rows change with a part of variable k; NaN goes through everything but a switch, so try numbers too."""
        found = []
        for base in self._bases:
            before = self._evaluate(base)
            for other in (np.nan, 0.37):
                values = list(base)
                values[k] = base[k].copy()
                values[k][part] = values[k][part] / 2 + other
                after = self._evaluate(values)
                if before is not None and after is not None:
                    same = [(a == b) | (np.isnan(a) & np.isnan(b)) for a, b in zip(before, after, strict=True)]
                    found.append(np.concatenate([~values.all(axis=1) for values in same]))
        return np.any(found, axis=0) if found else np.ones(1, bool)

    def find_cells(self, k: int) -> tuple[NDArray[np.intp], tuple[int, ...]]:
        """The cell of variable k that each row depends on, -1 for none, and the lengths of the axes that count groups.

        An axis counts groups where no row depends on two of its elements. Halves of the axis, by each binary digit of
        an element's number, tell both whether this is so and which element a row depends on.
        """
        value, cells = self._bases[0][k], np.zeros((), int)
        shape: tuple[int, ...] = ()
        for axis, length in enumerate(value.shape if value.dtype.kind == "f" else ()):
            place = np.zeros((), int)
            for digit in range((length - 1).bit_length()):
                half = np.arange(length) >> digit & 1 == 1
                on, off = (self._find_rows(k, (slice(None),) * axis + (part,)) for part in (half, ~half))
                place = place + np.where(on, 1 << digit, 0)
                if np.any(on & off):
                    break
            else:
                if length > 1:
                    cells, shape = cells * length + place, (*shape, length)
                    cells = np.where(on | off, cells, -1)
        return cells, shape
