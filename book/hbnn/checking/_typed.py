"""Mistakes that stand in the graph of a model."""

import re
from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pymc.data import MinibatchOp
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor

from hbnn._text import join
from hbnn.checking._findings import Finding, make_finding
from hbnn.checking._model import MOVES, UNITS, Graph, is_product, list_nodes, list_products, list_units, unmove
from hbnn.fusion._read import describe, is_made_by, is_same

NARROW = 100.0  # sds of its prior that the means of a weight's elements are spread over
LEAST_WEIGHTS = 6  # elements, to speak of a spread

VARIANCE = re.compile(r"(^|_)(var|variance|(sigma|sd)_?(2|sq|sqr|squared))$|^(prec|precision)(_|$)")
PRECISION = re.compile(r"(^|_)(tau|lam|lambda)(_|$)")


def find_unused_variables(graph: Graph) -> Iterator[Finding]:
    """Limit: none; what no outcome depends on has its prior as its posterior, exactly."""
    dead = [rv.name for rv in graph.free if rv not in graph.live and not graph.get_unknowns(rv) & graph.live]
    if dead:  # a variable that depends on live ones is a prediction
        yield make_finding(
            "leads nowhere", f"no outcome depends on {join(dead)}, so that posterior and prior are the same"
        )


def find_batches(graph: Graph) -> Iterator[Finding]:
    """Limit: none; both are how `pm.Minibatch` and ``total_size`` are documented."""
    for outcome in graph.outcomes:
        batches = [node for node in list_nodes([outcome.rv, outcome.value]) if isinstance(node.op, MinibatchOp)]
        if not batches:
            continue
        if len(batches) > 1:
            yield make_finding(
                "separate minibatches",
                f"{outcome.name} takes rows from {len(batches)} calls of pm.Minibatch, and each call draws other rows",
            )
        n_rows = int(graph.compile([batches[0].inputs[0].shape[0]])()[0])
        sizes = [v.data for v in outcome.total_size if isinstance(v, Constant) and v.data is not None]
        if not outcome.total_size or (sizes and n_rows not in sizes):
            yield make_finding(
                "total_size",
                f"{outcome.name} has batches out of {n_rows} rows, and total_size={sizes[0] if sizes else None}",
            )


def find_variances(graph: Graph) -> Iterator[Finding]:
    """A square or a precision as an sd.

    Limit: a name only, so it asks. ``tau`` is an sd to many (Gelman's eight schools); a gamma prior, conjugate to a
    precision, is what tells (Gelman 2006, "Prior distributions for variance parameters").
    """
    for variable in (*graph.free.values(), *graph.outcomes):
        if (scale := variable.scale) is None or isinstance(scale, Constant):
            continue
        scale = scale if scale.name else unmove(scale)
        name, inputs = (scale.name or "").lower(), list(scale.owner.inputs) if scale.owner else []
        a, b, *_ = [*inputs, None, None]
        is_power = is_made_by(scale, ps.Pow) and isinstance(unmove(b), Constant) and bool(np.all(unmove(b).data == 2))
        is_square = is_power or is_made_by(scale, ps.Sqr) or (is_made_by(scale, ps.Mul) and is_same(a, b))
        is_second = name.endswith("2") and f"{name[:-1]}1" in graph.names  # sd1, sd2
        if is_square or (VARIANCE.search(name) and not is_second):
            yield make_finding(
                "variance as sd",
                f"{variable.name} has {'the square ' * is_square}{describe(scale)} as its sigma, an sd",
            )
        elif PRECISION.search(name) and scale in graph.free and graph.free[scale].kind == "gamma":
            yield make_finding(
                "precision as sd",
                f"{variable.name} has {name} as its sigma, an sd; is {name}, with its gamma prior, a precision?",
            )


def find_products(graph: Graph) -> Iterator[Finding]:
    """Two unknowns of one shape that enter as their product only; a standard normal times an sd is meant so.

    Limit: none; the density has such a product's value and nothing else of the two.
    """
    for node in graph.live_nodes:
        pair = [unmove(source) for source in node.inputs]
        if not is_made_by(node.outputs[0], ps.Mul) or len(set(pair)) != 2 or not all(v in graph.free for v in pair):
            continue
        is_only = all(len(graph.users[v]) == 1 for v in (*pair, *node.inputs)) and pair[0].ndim == pair[1].ndim
        scales = [graph.get_number(graph.free[v].scale) for v in pair if graph.free[v].kind in ("normal", "t")]
        if is_only and not any(scale is not None and np.all(scale == 1) for scale in scales):
            yield make_finding(
                "only a product",
                f"{pair[0].name} and {pair[1].name} enter as their product only, so that neither can be learned",
            )


def find_linear_layers(graph: Graph) -> Iterator[Finding]:
    """Data times weights times weights.

    Limit: none; as many units as inputs or as outputs leave the product of two matrices free. Fewer restrict its rank,
    which is a model of its own (reduced-rank regression, Izenman 1975).
    """
    found = {}
    for node in graph.live_nodes:
        if not is_product(node.outputs[0]) or len(node.inputs) != 2:
            continue
        for units, above in permutations(node.inputs):
            for inner in list_products([units]) if graph.get_unknowns(above) else ():
                weights = [v for v in inner.inputs if graph.get_unknowns(v)]
                data = [v for v in inner.inputs if not graph.get_unknowns(v)]
                is_layer = is_product(inner.outputs[0]) and len(weights) == len(data) == 1 and weights[0].ndim > 1
                if is_layer and not graph.get_unknowns(above) & graph.get_unknowns(*weights):
                    found[unmove(weights[0]), unmove(above)] = data[0], weights[0], above
    for (below, above), (data, *weights) in found.items():
        n_in = int(graph.compile([data.shape[-1]])()[0])
        n_hidden, n_out = (v.type.shape[-1] if v.ndim > 1 else 1 for v in weights)
        if n_hidden is not None and n_out is not None and n_hidden >= min(n_in, n_out):
            yield make_finding(
                "no activation", f"{describe(below)} and {describe(above)} follow each other with nothing between them"
            )


def find_narrow_priors(graph: Graph) -> Iterator[Finding]:
    """Priors around numbers, so narrow that no data can move them.

    Limit: for a posterior to lie half way between its prior and the data, these must tell a weight as well as its prior
    does. At a hundredth of the spread that takes ten thousand times what tells a weight to within its spread (the
    precisions add up: Gelman and others, "Bayesian data analysis", section 2.5).
    """
    found = {}
    for name, variable in ((v.name, v) for v in graph.free.values() if v.rv in graph.live):
        mean, scale = graph.get_number(variable.mean), graph.get_number(variable.scale)
        if mean is not None and scale is not None and mean.size >= LEAST_WEIGHTS and mean.std() > NARROW * scale.max():
            found[name] = mean.std(), scale.max()
    if found:
        spread, scale = next(iter(found.values()))
        yield make_finding(
            "prior too narrow",
            f"{join(found)} may leave its mean by {scale:.2g}, where its means differ by {spread:.2g}: the posterior "
            "is the prior",
        )


def find_indices(graph: Graph) -> Iterator[Finding]:
    """Limit: none; -1 is the last element, as in NumPy, and compiled code does not look where an axis ends."""
    for node in graph.nodes:
        if not isinstance(node.op, AdvancedSubtensor):
            continue
        (source, *rest), axis = node.inputs, 0
        for index in indices_from_subtensor(rest, node.op.idx_list):
            is_mask = isinstance(index, Variable) and index.type.dtype == "bool"
            whole = clone_replace([index], graph.full, rebuild_strict=False) if isinstance(index, Variable) else []
            if whole and not is_mask and not any(isinstance(v.type, RandomType) for v in ancestors(whole)):
                length = source.type.shape[axis]
                wanted = [index, source.shape[axis] if length is None else pt.constant(length)]
                values, length = graph.compile(wanted, batches=graph.full)()
                if values.size and (values.min() < 0 or values.max() >= length):
                    yield make_finding(
                        "index out of range",
                        f"{describe(whole[0])} is {values.min()} to {values.max()}, where {describe(source)} has 0 to "
                        f"{length - 1}; -1 takes the last, and beyond the end PyTensor may read any memory",
                    )
            axis += index.ndim if is_mask else 1


def find_symmetry(graph: Graph) -> Iterator[Finding]:
    """Limit: none; units whose weights have one prior can change places (Chen, Lu and Hecht-Nielsen 1993)."""
    found = []
    for node in graph.nodes:
        if node not in list_products(node.outputs[:1]):
            continue
        for below, weights in permutations(node.inputs, 2):
            priors = [graph.free[rv] for rv in graph.get_unknowns(weights)]
            constants = [p.data for prior in priors for p in prior.params if isinstance(p, Constant) and p.data.size]
            is_alike = all(prior.is_univariate for prior in priors) and all(np.ptp(data) == 0 for data in constants)
            if priors and is_alike and any(list_units(below)) and _is_elementwise(weights):
                found.append(describe(unmove(weights)))
    if found:
        yield make_finding(
            "symmetric units",
            f"units that feed {join(dict.fromkeys(found))} can change places, with their weights, and no prediction "
            "changes: means and sds over draws mix them",
        )


def _is_elementwise(var: Variable) -> bool:
    """Whether an expression takes elements of random variables one by one, as mu + sd * z does."""
    if var.owner is None or isinstance(var.owner.op, RandomVariable):
        return True
    is_way = isinstance(var.owner.op, Elemwise | MOVES | Subtensor | AdvancedSubtensor) and not is_made_by(var, UNITS)
    return is_way and all(map(_is_elementwise, var.owner.inputs))
