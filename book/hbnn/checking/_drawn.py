"""Mistakes that show at draws of the prior."""

from collections.abc import Iterator, Sequence
from itertools import permutations

import numpy as np
import pytensor.scalar as ps
from numpy.typing import NDArray
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.special import Softmax
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from hbnn._text import join
from hbnn.checking._domains import find_domain
from hbnn.checking._findings import Finding, make_finding
from hbnn.checking._model import (
    Graph,
    ModelVariable,
    PriorRun,
    is_product,
    list_nodes,
    list_products,
    list_units,
    unmove,
)
from hbnn.fusion._read import describe, is_made_by

CERTAIN = 0.01  # a probability that is nearer to 0 or 1 is called certain
CERTAIN_SHARE = (
    0.85  # two ReLU layers of N(0, 1) weights, which sample well, have 0.76; two tanh layers of N(0, 10) 0.89
)
WIDE = 100.0  # times the spread of the data; the vague priors of textbooks, N(0, 20) for a slope of 2, reach 30
OUTSIDE_SHARE = 0.5  # of the outcome
FAILED_SHARE = 0.1  # of the draws
BIG_INPUT = 10.0  # root mean square of a column; a standardised one has 1
BIG_UNIT = 10.0  # what a unit receives, as a median; tanh and the sigmoid are flat from 5 on
UNREACHED = 0.25  # of the outcome
NORMALISED = 1e-4  # the error of a sum of float32 probabilities
LEAST_ROWS = 3
FEW_DRAWS = 10  # of a covariance

PROBABILITIES = {"bernoulli": 0, "binomial": 1, "categorical": 0}  # and which parameter they are
REAL = {"normal", "t", "laplace", "logistic", "cauchy", "skewnormal"}  # may be anything
RANGES = {ps.Sigmoid: (0, 1), ps.Tanh: (-1, 1), ps.Sin: (-1, 1), ps.Erf: (-1, 1)}
RANGES |= dict.fromkeys((ps.Exp, ps.Softplus, ps.Sqr, ps.Abs), (0, np.inf))


def find_broadcasts(graph: Graph, run: PriorRun) -> Iterator[Finding]:
    """Rows in a column (n, 1) that meet rows (n,), of which PyTensor makes (1, n).

    Limit: none; NumPy's rules of broadcasting.
    """
    for outcome in graph.outcomes:
        shape = run.draws[0][outcome.value].shape
        for var, n_core in zip(outcome.params, outcome.cores, strict=False):
            rows = run.draws[0][var].shape[: run.draws[0][var].ndim - n_core] if outcome.is_simple else ()
            if not _fits(rows, shape):
                yield make_finding(
                    "broadcast", f"{outcome.name} has shape {shape}, and its parameter {describe(var)} {rows}"
                )
    pairs = []
    for node in graph.nodes:
        wide = [v for v in node.inputs if is_made_by(v, DimShuffle) and v.owner.op.new_order == ("x", 0)]
        columns = [v for v in node.inputs if getattr(v.type, "broadcastable", None) == (False, True)]
        columns = [v for v in columns if unmove(v).ndim > 1]  # x[:, None] is meant
        if isinstance(node.op, Elemwise) and wide and columns:
            pairs.append((wide[0], columns[0]))
    shapes = run.stack(*(v.shape for pair in pairs for v in pair)) if pairs else []
    for (row, column), of_row, of_column in zip(pairs, shapes[::2], shapes[1::2], strict=True):
        n = of_column[0, 0]
        if n == of_row[0, 1] > 1:
            yield make_finding(
                "broadcast",
                f"{describe(unmove(row))} has shape ({n},) and {describe(column)} ({n}, 1), together ({n}, {n})",
            )


def _fits(rows: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether parameters with these rows go with an outcome of this shape."""
    try:
        return np.broadcast_shapes(rows, shape) == shape
    except ValueError:
        return False


def find_collapsed_rows(graph: Graph, run: PriorRun) -> Iterator[Finding]:
    """A sum without an axis, which goes over rows, too: one mean for all of them.

    Limit: none; the parameter has one value, and was summed from an array with the outcome's rows.
    """
    for outcome in graph.outcomes:
        data = run.draws[0][outcome.value]
        n = data.shape[0] if data.ndim else 0
        for var in outcome.params if outcome.is_simple and n >= LEAST_ROWS else ():
            if run.draws[0][var].size > 1 or not graph.get_unknowns(var):
                continue
            sums = [
                node.inputs[0]
                for node in list_nodes([var])
                if isinstance(node.op, Sum) and node.outputs[0].ndim == 0 and graph.get_unknowns(node.inputs[0])
            ]
            summed = [v for v, shape in zip(sums, run.stack(*(v.shape for v in sums)), strict=True) if n in shape[0]]
            numbers = (graph.get_number(v) for v in ancestors(summed))
            if any(number is not None and n in number.shape for number in numbers):
                yield make_finding(
                    "one value for all rows",
                    f"{describe(summed[0])} is summed over all axes, and {n} rows of {outcome.name} share one value",
                )
                break


def find_probabilities(graph: Graph, run: PriorRun) -> Iterator[Finding]:
    """Probabilities and logits that are not.

    Limits: most are none; a share of certain probabilities as in `CERTAIN_SHARE`, by the prior predictive checks of
    Gabry and others (2019).
    """
    for outcome in graph.outcomes:
        if outcome.is_simple and outcome.kind in PROBABILITIES:
            yield from _judge_link(graph, run, outcome)
            yield from _judge_probabilities(graph, run, outcome)


def _judge_link(graph: Graph, run: PriorRun, outcome: ModelVariable) -> Iterator[Finding]:
    link = unmove(outcome.params[PROBABILITIES[outcome.kind]])
    if is_made_by(link, ps.Sigmoid | Softmax) and graph.get_unknowns(link):
        logit = link.owner.inputs[0]
        (z,) = run.stack(logit)
        if z.min() >= 0 and z.max() <= 1:
            yield make_finding(
                "probability as logit",
                f"the logit of {outcome.name}, {describe(logit)}, is {z.min():.2g} to {z.max():.2g} at draws of the "
                "prior, as a probability is",
            )


def _judge_probabilities(graph: Graph, run: PriorRun, outcome: ModelVariable) -> Iterator[Finding]:
    var, name, is_many = outcome.params[PROBABILITIES[outcome.kind]], outcome.name, outcome.kind == "categorical"
    p = np.stack([draw[var] for draw in run.draws])
    total, labels, n_classes = p.sum(axis=-1), run.draws[0][outcome.value], p.shape[-1] if is_many else 2
    if is_many and n_classes > 2 and labels.ndim > 1 and n_classes in labels.shape and set(labels.flat) <= {0, 1}:
        yield make_finding(
            "yes and no as classes",
            f"{name} has 0 and 1 only, in shape {labels.shape}: as classes they are the first two of {n_classes}",
        )
        return
    if outcome.kind != "binomial" and (labels.min() < 0 or labels.max() >= n_classes):
        yield make_finding(
            "label out of range", f"{name} has {labels.min()} to {labels.max()}, and {n_classes} classes"
        )
    if p.min() < 0 or p.max() > 1:
        yield make_finding(
            "logit as probability",
            f"p of {name}, {describe(var)}, is {p.min():.2g} to {p.max():.2g} at draws of the prior",
        )
    elif is_many and np.abs(total - 1).max() > NORMALISED:
        is_other = any(np.abs(p.sum(axis=k) - 1).max() < NORMALISED for k in range(1, p.ndim - 1))
        yield make_finding(
            "softmax axis" if is_other else "not normalised",
            f"p of {name}, {describe(var)}, has sums of {total.min():.2g} to {total.max():.2g} over classes, its "
            f"last axis{', and of 1 over another' * is_other}",
        )
    elif run.is_proper and graph.get_unknowns(var):
        certain = np.mean((p.max(axis=-1) if is_many else np.maximum(p, 1 - p)) > 1 - CERTAIN)
        if certain > CERTAIN_SHARE:
            yield make_finding(
                "prior too sure",
                f"before any data, {certain:.0%} of the probabilities of {name} are within {CERTAIN:.0%} of 0 or 1",
            )


def find_outcomes(graph: Graph, run: PriorRun) -> Iterator[Finding]:
    """Numbers that the prior predictive does not reach, or exceeds beyond measure.

    Limits: `WIDE`, `OUTSIDE_SHARE` and `FAILED_SHARE` are ours, far beyond what prior predictive checks ask for (Gabry
    and others 2019), so that textbooks' vague priors pass; parameters outside their domain are in `find_domain`.
    """
    rng = np.random.default_rng(0)
    for outcome in graph.outcomes:
        if outcome.is_simple and outcome.kind in PROBABILITIES:
            continue
        if finding := find_domain(graph, run, outcome):
            yield finding
        elif (outcome.is_simple or outcome.marginals) and run.is_proper and graph.get_unknowns(outcome.rv):
            draws = [[draw[v] for v in outcome.params] for draw in run.draws] if outcome.is_simple else []
            draws = draws or [
                [*params] for params in zip(*run.stack(*outcome.marginals, n_draws=FEW_DRAWS), strict=True)
            ]
            is_computed = [bool(graph.get_unknowns(v)) for v in outcome.marginals or outcome.params]
            drawn = [_draw_outcome(outcome, params, is_computed, rng) for params in draws]
            yield from _judge_size(outcome, drawn, run.draws[0][outcome.value].astype(float))


def _judge_size(outcome: ModelVariable, drawn: list[NDArray], data: NDArray) -> Iterator[Finding]:
    """Values of an outcome, by draw, against the data."""
    n_failed = sum(bool(np.isnan(values).any()) for values in drawn)
    if n_failed > FAILED_SHARE * len(drawn):
        yield make_finding(
            "prior too wide", f"{outcome.name}, drawn from the prior, overflows in {n_failed} of {len(drawn)} draws"
        )
        return
    reached = np.concatenate(drawn)
    reached = reached[np.isfinite(reached)]
    low, high, spread = reached.min(), reached.max(), data.std()
    outside = np.mean((data < low - (high - low)) | (data > high + (high - low)))
    distance = np.median(np.abs(reached - np.median(data)))
    if outside > OUTSIDE_SHARE:
        mend = "" if outcome.kind in REAL or outcome.marginals else "give its mean a prior of its size"
        yield make_finding(
            "outcome not scaled",
            f"{outcome.name} is {data.min():.3g} to {data.max():.3g}, drawn from the prior {low:.3g} to {high:.3g}",
            mend,
        )
    elif spread > 0 and distance > WIDE * spread:
        yield make_finding(
            "prior too wide",
            f"{outcome.name}, drawn from the prior, is {distance / spread:,.0f} sds of the data away from the data",
        )


def _draw_outcome(
    outcome: ModelVariable, params: Sequence[NDArray], is_computed: Sequence[bool], rng: np.random.Generator
) -> NDArray:
    """Values of an outcome (row,), or a NaN where parameters that are computed from unknowns have overflown."""
    if any(computed and not np.isfinite(param).all() for param, computed in zip(params, is_computed, strict=True)):
        return np.array([np.nan])  # a bound may be infinite
    try:
        return np.ravel(rng.normal(*params) if outcome.marginals else outcome.op.rng_fn(rng, *params, None))
    except ValueError:
        return np.array([np.nan])


def find_ranges(graph: Graph, run: PriorRun) -> Iterator[Finding]:
    """A mean that ends in a sigmoid or a ReLU, and an outcome beyond what these can give.

    Limit: a sure range, by interval arithmetic (Moore 1966). A quarter of the outcome beyond it is no noise: of a mean
    at the end of its range half the noise is beyond, and a mean is seldom there for half of the rows.
    """
    for outcome in graph.outcomes:
        if outcome.kind in REAL and outcome.mean is not None and graph.get_unknowns(outcome.mean):
            low, high = _find_range(graph, outcome.mean)
            data = run.draws[0][outcome.value]
            beyond = np.mean((data < low) | (data > high))
            if beyond > UNREACHED:
                yield make_finding(
                    "out of reach",
                    f"the mean of {outcome.name}, {describe(outcome.mean)}, can be {low:g} to {high:g} only, and "
                    f"{beyond:.0%} of {outcome.name} are beyond",
                )


def _find_range(graph: Graph, var: Variable) -> tuple[float, float]:
    """What an expression can be, whatever its unknowns are."""
    var, number = unmove(var), graph.get_number(var)
    if number is not None and number.size:
        return float(number.min()), float(number.max())
    if isinstance(var.owner.op if var.owner else None, Subtensor | AdvancedSubtensor):
        return _find_range(graph, var.owner.inputs[0])
    for kind, ends in RANGES.items():
        if is_made_by(var, kind):
            return ends
    inner = [_find_range(graph, v) for v in var.owner.inputs] if is_made_by(var, ps.Add | ps.Mul | ps.Maximum) else []
    if is_made_by(var, ps.Add):
        return sum(low for low, _ in inner), sum(high for _, high in inner)
    if is_made_by(var, ps.Maximum):
        return max(low for low, _ in inner), max(high for _, high in inner)
    scales = [low for low, high in inner if low == high]
    if len(inner) == 2 and len(scales) == 1 and scales[0]:
        ((low, high),) = [ends for ends in inner if ends[0] != ends[1]]
        return min(low * scales[0], high * scales[0]), max(low * scales[0], high * scales[0])
    return -np.inf, np.inf


def find_inputs(graph: Graph, run: PriorRun) -> Iterator[Finding]:
    """Columns so large that the hidden units which see them are flat nearly everywhere.

    Limit: `BIG_UNIT`; from 5 on tanh is flat (LeCun and others 1998, "Efficient BackProp", asks for inputs of sd 1).
    """
    seen, hidden = {}, set()
    for node in graph.live_nodes:
        if is_product(node.outputs[0]) or is_made_by(node.outputs[0], ps.Mul):
            for below, weights in permutations(node.inputs):
                hidden |= set(list_units(below)) if graph.get_unknowns(weights) else set()
    for received in [v for node in hidden for v in node.inputs]:
        for product in list_products([received]):
            for inputs, weights in permutations(product.inputs, 2):
                is_number = inputs.type.dtype.startswith(("float", "int", "uint"))
                if is_number and graph.get_unknowns(weights) and not graph.get_unknowns(inputs):
                    seen[unmove(inputs)] = received
    found, sizes = [], []
    shown = run.stack(*(v for pair in seen.items() for v in pair)) if seen else []
    for var, values, units in zip(seen, shown[::2], shown[1::2], strict=True):
        columns = values[0].reshape(-1, values.shape[-1] if values.ndim > 2 else 1).astype(float)
        size = np.sqrt(np.mean(columns**2, axis=0))
        if len(columns) > 1 and size.max() > BIG_INPUT and np.median(np.abs(units)) > BIG_UNIT:
            which = join([str(k) for k in np.flatnonzero(size > BIG_INPUT)], limit=5)
            found.append(f"{f'column {which} of ' * (len(size) > 1)}{describe(var)}")
            sizes.append(size.max())
    if found:
        yield make_finding(
            "inputs not scaled", f"values of {max(sizes):.3g} in {join(found, limit=5)} leave units flat"
        )
