"""A second pair of eyes for a network typed in PyMC: what in a model is probably not meant?

Some mistakes stand in the graph: a variable that no outcome depends on, a sigmoid inside a sigmoid. Most show only in
numbers. So the model is also run: at draws of its prior, and with parts of a variable replaced, which tells which rows
depend on them, however the model was typed. All of it by NumPy, without compiling.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pymc as pm
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.data import MinibatchOp
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pymc.distributions.custom import CustomDistRV
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.einsum import Einsum
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Dot, Sum
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.special import Softmax
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor
from pytensor.tensor.type import TensorType

from hbnn._checks import check_seed
from hbnn._text import join
from hbnn.fusion._read import describe, is_made_by, is_same

DRAWS = 50  # of the prior; the limits below are coarse, so that these are enough
CERTAIN = 0.01  # a probability that is nearer to 0 or 1 is called certain
CERTAIN_SHARE = (
    0.85  # two ReLU layers of N(0, 1) weights, which sample well, have 0.76; two tanh layers of N(0, 10) 0.89
)
WIDE = 100.0  # times the spread of the data; the vague priors of textbooks, N(0, 20) for a slope of 2, reach 30
OUTSIDE_SHARE = 0.5  # of the outcome
FAILED_SHARE = 0.1  # of the draws
BIG_INPUT = 10.0  # root mean square of a column; a standardised one has 1
BIG_UNIT = 10.0  # what a unit receives, as a median; tanh and the sigmoid are flat from 5 on
FUNNEL_ROWS = 2.0  # for each unknown of a group; with fewer, the prior's sd and not the rows decide where it may be
LEAST_GROUPS = 3  # fewer are arms of an experiment rather than groups
NORMALISED = 1e-4  # the error of a sum of float32 probabilities

# where a kind of variable has its scale, what else must not be negative, and its probabilities
SCALES = {"normal": 1, "halfnormal": 1, "lognormal": 1, "t": 2, "skewnormal": 1, "truncated_normal": 1}
SCALES |= {"cauchy": 1, "laplace": 1, "logistic": 1, "gumbel": 1}
POSITIVE = SCALES | {"poisson": 0, "negative_binomial": 1, "exponential": 0}
PROBABILITIES = {"bernoulli": 0, "binomial": 1, "categorical": 0}
UNITS = ps.Tanh | ps.Sigmoid | ps.Softplus | ps.Maximum | ps.Switch | ps.Erf | ps.Sin
MOVES = DimShuffle | Reshape | SpecifyShape | ViewOp
VARIANCE = re.compile(r"(^|_)(var|variance|(sigma|sd)_?(2|sq|sqr|squared))$|^(prec|precision)(_|$)")

MENDS = {
    "leads nowhere": "use it, or take it out; a layer computed from the wrong one below leaves another one unused",
    "separate minibatches": "draw all in one call: X, y = pm.Minibatch(X_all, y_all, batch_size=...)",
    "total_size": "say total_size=len(y_all) where the outcome is typed",
    "variance as sd": "give pm.math.sqrt(...) of a variance, or tau=... for a precision",
    "only a product": "for a mean and an sd, type mean + sd * z with z = pm.Normal('z', 0, 1, ...)",
    "index out of range": "count groups from 0 and make room for all; pd.factorize gives -1 for a missing value",
    "symmetric units": "line up the draws with hbnn.symmetry.align before they become a prior",
    "cannot be computed": "compare shapes and lengths",
    "broadcast": "take one element of the last axis, as in (X @ w)[:, 0], or give w one axis only",
    "probability as logit": "say p=... for a probability, or logit_p=... for the network without sigmoid or softmax",
    "logit as probability": "say logit_p=... in place of p=...",
    "label out of range": "count classes from 0, with a column of p or logit_p for each",
    "not normalised": "say logit_p=... with classes last, or pm.math.softmax(..., axis=-1)",
    "softmax axis": "say pm.math.softmax(..., axis=-1), with classes last",
    "prior too sure": "give weights a smaller sd, about 1 / sqrt(units below), and standardise inputs",
    "below zero": "put pm.math.exp(...) or pm.math.log1pexp(...) around it",
    "prior too wide": "standardise inputs and outcome; weights and scales of about 1, or less in an exponential",
    "outcome not scaled": "standardise it, (y - y.mean()) / y.std(), or give its mean and sd priors of its size",
    "inputs not scaled": "standardise each column: (X - X.mean(axis=0)) / X.std(axis=0)",
    "bias for each row": "give a bias the length of the units that it is added to, or one value for each group",
    "group without rows": "make room for groups that have rows only, counted from 0, or know that it keeps its prior",
    "funnel": "use offsets: mu + sd * z with z = pm.Normal('z', 0, 1, ...)",
}


@dataclass(frozen=True)
class Finding:
    """Something in a model that is probably not meant.

    Attributes
    ----------
    name : str
        What kind of mistake, a key of `MENDS`.
    sentence : str
        What was seen, with the names of the variables.
    mend : str
        What to type instead.

    Examples
    --------
    >>> from hbnn.checking import Finding
    >>> print(Finding("leads nowhere", "no outcome depends on w2", "use it, or take it out"))
    leads nowhere: no outcome depends on w2
        use it, or take it out
    """

    name: str
    sentence: str
    mend: str

    def __str__(self) -> str:
        return f"{self.name}: {self.sentence}\n    {self.mend}"


class Findings(list[Finding]):
    """A list of `Finding`, empty where nothing was found, that prints as paragraphs."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "nothing found"


def _finding(name: str, sentence: str) -> Finding:
    return Finding(name, sentence, MENDS[name])


def check_model(model: pm.Model, *, for_next_prior: bool = False, seed: int = 0) -> Findings:
    """Say in sentences what in a model is probably not meant.

    Parameters
    ----------
    model : pm.Model
        Neither it nor its random generators are changed.
    for_next_prior : bool
        Whether means and sds of weights are to become the prior of another model. The units of a hidden layer can be
        exchanged in every network, which harms only then.
    seed : int
        Of the prior draws.

    Returns
    -------
    Findings
        Each with a name, a sentence and a mend. None is no proof: it says what a graph and 50 draws of the prior show.
        A model without an outcome has none.

    Raises
    ------
    TypeError
        Where `model` is no `pm.Model`.
    ValueError
        For a seed that is no integer of at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from hbnn.checking import check_model
    >>> X = np.random.default_rng(1).normal(size=(50, 2))
    >>> with pm.Model() as model:
    ...     w1, w2 = pm.Normal("w1", 0, 1, shape=(2, 5)), pm.Normal("w2", 0, 1, shape=(5, 5))
    ...     w3 = pm.Normal("w3", 0, 1, shape=5)
    ...     h1 = pm.math.tanh(X @ w1)
    ...     h2 = pm.math.tanh(h1 @ w2)
    ...     y = pm.Bernoulli("y", logit_p=h1 @ w3, observed=X[:, 0] > 0)  # h1 where h2 was meant
    >>> check_model(model)
    leads nowhere: no outcome depends on w2, so that posterior and prior are the same
        use it, or take it out; a layer computed from the wrong one below leaves another one unused
    """
    if not isinstance(model, pm.Model):
        raise TypeError(f"model is a {type(model).__name__}; wanted: a pm.Model")
    check_seed(seed)
    if not (model.observed_RVs or model.potentials):
        return Findings()
    with pytensor.config.change_flags(cxx="", mode="FAST_COMPILE"), np.errstate(all="ignore"):
        return _collect_findings(_Graph(model), for_next_prior, seed)


def _collect_findings(graph: "_Graph", for_next_prior: bool, seed: int) -> Findings:
    found = Findings()
    for find in (_find_unused_variables, _find_batches, _find_variances, _find_products, _find_indices):
        found += find(graph)
    if for_next_prior:
        found += _find_symmetry(graph)
    if any(finding.name == "index out of range" for finding in found):
        return found  # NumPy refuses such an index
    try:
        run = _PriorRun(graph, seed)
    except NotImplementedError:  # a distribution without draws
        return found
    except (ValueError, TypeError, IndexError, AssertionError, ArithmeticError, np.linalg.LinAlgError) as error:
        said = str(error).splitlines()[0]
        found.append(_finding("cannot be computed", f"at a draw of the prior: {said}"))
        return found
    for look in (_find_broadcasts, _find_probabilities, _find_outcomes, _find_inputs, _find_groups):
        found += look(graph, run)
    return found


# --- the model as a graph, and as a function


class _RandomVariable:
    """A variable of a model: its kind, its parameters, and how many axes of each parameter do not count rows."""

    def __init__(self, rv: Variable, value: Variable | None = None) -> None:
        self.rv, self.value, self.name, self.total_size = rv, value, rv.name, []
        while rv.owner and isinstance(rv.owner.op, MinibatchRandomVariable):
            rv, *self.total_size = rv.owner.inputs
        self.op = rv.owner and rv.owner.op
        self.kind: str = getattr(self.op, "name", None) or ""
        is_pure = isinstance(self.op, RandomVariable) and not isinstance(self.op, CustomDistRV)
        is_known = is_pure or getattr(self.op, "extended_signature", None)
        params = self.op.dist_params(rv.owner) if is_known else rv.owner.inputs if rv.owner else []
        self.params = [v for v in params if isinstance(v.type, TensorType)]
        self.cores: Sequence[int] = self.op.ndims_params if is_pure else []
        self.is_univariate = getattr(self.op, "ndim_supp", 1) == 0
        self.is_simple = is_pure and self.is_univariate and bool(self.params)  # NumPy draws it, element by element
        self.scale = self.params[SCALES[self.kind]] if self.is_simple and self.kind in SCALES else None


class _Graph:
    """A model, in which rows of the whole data set stand in place of minibatches."""

    def __init__(self, model: pm.Model) -> None:
        self.outcomes = [_RandomVariable(rv, model.rvs_to_values[rv]) for rv in model.observed_RVs]
        self.free = {rv: _RandomVariable(rv) for rv in model.free_RVs}
        self.potentials, self.names = model.potentials, set(model.named_vars)
        self.ordered = {rv for rv, how in model.rvs_to_transforms.items() if "ordered" in str(getattr(how, "name", ""))}
        ends = [v for outcome in self.outcomes for v in (outcome.rv, outcome.value)] + self.potentials
        self.live = set(ancestors(ends))
        self.nodes = _list_nodes([*ends, *model.deterministics])
        self.users = defaultdict(list)
        for node in _list_nodes(ends):
            for source in node.inputs:
                self.users[source].append(node)
        batches = [node for node in self.nodes if isinstance(node.op, MinibatchOp)]
        self.full = {out: v for node in batches for out, v in zip(node.outputs, node.inputs[:-1], strict=False)}
        self.thinned = {out: _thin_to_batch(v, out) for out, v in self.full.items()}
        self._unknowns: dict[Variable, set[Variable]] = {}

    def get_unknowns(self, *expressions: Variable) -> set[Variable]:
        """The free variables that expressions depend on."""
        for var in expressions:
            if var not in self._unknowns:
                self._unknowns[var] = self.free.keys() & set(ancestors([var]))
        return set().union(*(self._unknowns[var] for var in expressions))

    def compile(
        self, outputs: Iterable[Variable], inputs: dict[Variable, Variable] | None = None, *, is_full: bool = False
    ) -> Callable[..., list[NDArray]]:
        """A function of values for the variables in `inputs`, and of a seed."""
        inputs = inputs or {}
        copies = clone_replace(list(outputs), inputs | (self.full if is_full else self.thinned), rebuild_strict=False)
        rngs = {v: v.type() for v in ancestors(copies) if isinstance(v.type, RandomType) and v.owner is None}
        function = pytensor.function(
            [*inputs.values(), *rngs.values()], clone_replace(copies, rngs), on_unused_input="ignore"
        )
        return lambda *values, seed=0: function(*values, *np.random.default_rng(seed).spawn(len(rngs)))


def _list_nodes(ends: Iterable[Variable]) -> list[Apply]:
    return list(dict.fromkeys(var.owner for var in ancestors(ends) if var.owner))


def _thin_to_batch(full: Variable, batch: Variable) -> Variable:
    """As many rows as a batch has, evenly from first to last."""
    n = batch.type.shape[0]
    return pt.specify_shape(full[pt.arange(n) * full.shape[0] // n], batch.type.shape)


class _PriorRun:
    """Draws of the prior, and what the outcomes' parameters are at each."""

    def __init__(self, graph: _Graph, seed: int) -> None:
        flat = {rv: rv.type() for rv, v in graph.free.items() if isinstance(v.op, FlatRV | HalfFlatRV)}
        self.is_proper = not flat
        shapes = graph.compile([rv.shape for rv in flat])()
        ones = [np.ones(shape, rv.type.dtype) for rv, shape in zip(flat, shapes, strict=True)]
        draw = graph.compile(graph.free, flat)
        self.prior = [draw(*ones, seed=[seed, k]) for k in range(DRAWS)]
        for values in self.prior:
            values[:] = [np.sort(x) if rv in graph.ordered else x for rv, x in zip(graph.free, values, strict=True)]
        self.variables = [*graph.outcomes, *graph.free.values()]
        params = [var for v in self.variables if v.is_simple for var in v.params]
        self._wanted = list(dict.fromkeys([*params, *(v.value for v in graph.outcomes)]))
        self._graph, self._inputs = graph, {rv: rv.type() for rv in graph.free}
        self._function = graph.compile(self._wanted, self._inputs)
        self.draws = [self.evaluate(values) for values in self.prior]

    def evaluate(self, values: Sequence[NDArray]) -> dict[Variable, NDArray]:
        """All parameters where the free variables have these values."""
        return dict(zip(self._wanted, self._function(*values), strict=True))

    def stack(self, *outputs: Variable) -> list[NDArray]:
        """Expressions at each draw of the prior: arrays (draw, …)."""
        function = self._graph.compile(outputs, self._inputs)
        return [np.stack(found) for found in zip(*(function(*values) for values in self.prior), strict=True)]


def _unmoved(var: Variable) -> Variable:
    """What is only moved, cast or named."""
    while var.owner and (isinstance(var.owner.op, MOVES) or is_made_by(var, ps.Identity | ps.Cast)):
        var = var.owner.inputs[0]
    return var


# --- what stands in the graph


def _find_unused_variables(graph: _Graph) -> Iterator[Finding]:
    dead = [rv.name for rv in graph.free if rv not in graph.live and not graph.get_unknowns(rv) & graph.live]
    if dead:  # a variable that depends on live ones is a prediction
        yield _finding("leads nowhere", f"no outcome depends on {join(dead)}, so that posterior and prior are the same")


def _find_batches(graph: _Graph) -> Iterator[Finding]:
    for outcome in graph.outcomes:
        batches = [node for node in _list_nodes([outcome.rv, outcome.value]) if isinstance(node.op, MinibatchOp)]
        if not batches:
            continue
        if len(batches) > 1:
            yield _finding(
                "separate minibatches",
                f"{outcome.name} takes rows from {len(batches)} calls of pm.Minibatch, and each call draws other rows",
            )
        n_rows = int(graph.compile([batches[0].inputs[0].shape[0]])()[0])
        sizes = [v.data for v in outcome.total_size if isinstance(v, Constant) and v.data is not None]
        if not outcome.total_size or (sizes and n_rows not in sizes):
            yield _finding(
                "total_size",
                f"{outcome.name} has batches out of {n_rows} rows, and total_size={sizes[0] if sizes else None}",
            )


def _find_variances(graph: _Graph) -> Iterator[Finding]:
    for variable in (*graph.free.values(), *graph.outcomes):
        if (scale := variable.scale) is None or isinstance(scale, Constant):
            continue
        scale = scale if scale.name else _unmoved(scale)
        name, inputs = (scale.name or "").lower(), list(scale.owner.inputs) if scale.owner else []
        a, b, *_ = [*inputs, None, None]
        is_power = (
            is_made_by(scale, ps.Pow) and isinstance(_unmoved(b), Constant) and bool(np.all(_unmoved(b).data == 2))
        )
        is_square = is_power or is_made_by(scale, ps.Sqr) or (is_made_by(scale, ps.Mul) and is_same(a, b))
        is_second = name.endswith("2") and f"{name[:-1]}1" in graph.names  # sd1, sd2
        if is_square or (VARIANCE.search(name) and not is_second):
            yield _finding(
                "variance as sd",
                f"{variable.name} has {'the square ' * is_square}{describe(scale)} as its sigma, an sd",
            )


def _find_products(graph: _Graph) -> Iterator[Finding]:
    """Two unknowns of one shape that enter as their product only; a standard normal times an sd is meant so."""
    for node in graph.nodes:
        pair = [_unmoved(source) for source in node.inputs]
        if not is_made_by(node.outputs[0], ps.Mul) or len(set(pair)) != 2 or not all(v in graph.free for v in pair):
            continue
        is_only = all(len(graph.users[v]) == 1 for v in (*pair, *node.inputs)) and pair[0].ndim == pair[1].ndim
        scales = [graph.free[v].scale for v in pair if graph.free[v].kind in ("normal", "t")]
        if is_only and not any(isinstance(scale, Constant) and np.all(scale.data == 1) for scale in scales):
            yield _finding(
                "only a product",
                f"{pair[0].name} and {pair[1].name} enter as their product only, so that neither can be learned",
            )


def _find_indices(graph: _Graph) -> Iterator[Finding]:
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
                values, length = graph.compile(wanted, is_full=True)()
                if values.size and (values.min() < 0 or values.max() >= length):
                    yield _finding(
                        "index out of range",
                        f"{describe(whole[0])} is {values.min()} to {values.max()}, where {describe(source)} has 0 to "
                        f"{length - 1}; -1 takes the last, and beyond the end PyTensor may read any memory",
                    )
            axis += index.ndim if is_mask else 1


def _find_symmetry(graph: _Graph) -> Iterator[Finding]:
    found = []
    for node in graph.nodes:
        if node not in _list_products(node.outputs[:1]):
            continue
        for below, weights in permutations(node.inputs, 2):
            priors = [graph.free[rv] for rv in graph.get_unknowns(weights)]
            constants = [p.data for prior in priors for p in prior.params if isinstance(p, Constant) and p.data.size]
            is_alike = all(prior.is_univariate for prior in priors) and all(np.ptp(data) == 0 for data in constants)
            if priors and is_alike and _holds_units(below) and _is_elementwise(weights):
                found.append(describe(_unmoved(weights)))
    if found:
        yield _finding(
            "symmetric units",
            f"units that feed {join(dict.fromkeys(found))} can change places, with their weights, and no prediction "
            "changes: means and sds over draws mix them",
        )


def _holds_units(var: Variable) -> bool:
    """Whether there are units below, through elementwise functions and moved axes only."""
    is_way = var.owner and isinstance(var.owner.op, Elemwise | MOVES | Join)
    return is_made_by(var, UNITS) or bool(is_way and any(map(_holds_units, var.owner.inputs)))


def _is_elementwise(var: Variable) -> bool:
    """Whether an expression takes elements of random variables one by one, as mu + sd * z does."""
    if var.owner is None or isinstance(var.owner.op, RandomVariable):
        return True
    is_way = isinstance(var.owner.op, Elemwise | MOVES | Subtensor | AdvancedSubtensor) and not is_made_by(var, UNITS)
    return is_way and all(map(_is_elementwise, var.owner.inputs))


def _list_products(sources: Iterable[Variable]) -> Iterator[Apply]:
    """The products of which sources are sums, or parts of sums."""
    for var in sources:
        op = var.owner.op if var.owner else None
        if isinstance(op.core_op if isinstance(op, Blockwise) else op, Dot | Einsum) or is_made_by(var, ps.Mul):
            yield var.owner
        elif isinstance(op, MOVES | Sum | Subtensor | Join) or is_made_by(var, ps.Add | ps.Sub | ps.Cast):
            yield from _list_products(var.owner.inputs)


# --- what is seen at draws of the prior


def _find_broadcasts(graph: _Graph, run: _PriorRun) -> Iterator[Finding]:
    """Rows in a column (n, 1) that meet rows (n,), of which PyTensor makes (1, n)."""
    for outcome in graph.outcomes:
        shape = run.draws[0][outcome.value].shape
        for var, n_core in zip(outcome.params, outcome.cores, strict=False):
            rows = run.draws[0][var].shape[: run.draws[0][var].ndim - n_core] if outcome.is_simple else ()
            if np.broadcast_shapes(rows, shape) != shape:
                yield _finding(
                    "broadcast", f"{outcome.name} has shape {shape}, and its parameter {describe(var)} {rows}"
                )
    pairs = []
    for node in graph.nodes:
        wide = [v for v in node.inputs if is_made_by(v, DimShuffle) and v.owner.op.new_order == ("x", 0)]
        columns = [v for v in node.inputs if getattr(v.type, "broadcastable", None) == (False, True)]
        columns = [v for v in columns if _unmoved(v).ndim > 1]  # x[:, None] is meant
        if isinstance(node.op, Elemwise) and wide and columns:
            pairs.append((wide[0], columns[0]))
    shapes = run.stack(*(v.shape for pair in pairs for v in pair)) if pairs else []
    for (row, column), of_row, of_column in zip(pairs, shapes[::2], shapes[1::2], strict=True):
        n = of_column[0, 0]
        if n == of_row[0, 1] > 1:
            yield _finding(
                "broadcast",
                f"{describe(_unmoved(row))} has shape ({n},) and {describe(column)} ({n}, 1), together ({n}, {n})",
            )


def _find_probabilities(graph: _Graph, run: _PriorRun) -> Iterator[Finding]:
    for outcome in graph.outcomes:
        if not outcome.is_simple or outcome.kind not in PROBABILITIES:
            continue
        var, name, is_many = outcome.params[PROBABILITIES[outcome.kind]], outcome.name, outcome.kind == "categorical"
        link = _unmoved(var)
        if is_made_by(link, ps.Sigmoid | Softmax) and graph.get_unknowns(link):
            logit = link.owner.inputs[0]
            (z,) = run.stack(logit)
            if z.min() >= 0 and z.max() <= 1:
                yield _finding(
                    "probability as logit",
                    f"the logit of {name}, {describe(logit)}, is {z.min():.2g} to {z.max():.2g} at draws of the prior, "
                    "as a probability is",
                )
        p = np.stack([draw[var] for draw in run.draws])
        total, labels, n_classes = p.sum(axis=-1), run.draws[0][outcome.value], p.shape[-1] if is_many else 2
        if outcome.kind != "binomial" and (labels.min() < 0 or labels.max() >= n_classes):
            yield _finding(
                "label out of range", f"{name} has {labels.min()} to {labels.max()}, and {n_classes} classes"
            )
        if p.min() < 0 or p.max() > 1:
            yield _finding(
                "logit as probability",
                f"p of {name}, {describe(var)}, is {p.min():.2g} to {p.max():.2g} at draws of the prior",
            )
        elif is_many and np.abs(total - 1).max() > NORMALISED:
            is_other = any(np.abs(p.sum(axis=k) - 1).max() < NORMALISED for k in range(1, p.ndim - 1))
            yield _finding(
                "softmax axis" if is_other else "not normalised",
                f"p of {name}, {describe(var)}, has sums of {total.min():.2g} to {total.max():.2g} over classes, its "
                f"last axis{', and of 1 over another' * is_other}",
            )
        elif run.is_proper and graph.get_unknowns(var):
            certain = np.mean((p.max(axis=-1) if is_many else np.maximum(p, 1 - p)) > 1 - CERTAIN)
            if certain > CERTAIN_SHARE:
                yield _finding(
                    "prior too sure",
                    f"before any data, {certain:.0%} of the probabilities of {name} are within {CERTAIN:.0%} of 0 or 1",
                )


def _find_outcomes(graph: _Graph, run: _PriorRun) -> Iterator[Finding]:
    """Numbers that the prior predictive does not reach, or exceeds beyond measure."""
    rng = np.random.default_rng(0)
    for outcome in graph.outcomes:
        if not outcome.is_simple or outcome.kind in PROBABILITIES:
            continue
        var = outcome.params[POSITIVE.get(outcome.kind, 0)]
        below = np.mean([np.mean(draw[var] < 0) for draw in run.draws])
        if outcome.kind in POSITIVE and below > 0:
            yield _finding(
                "below zero",
                f"the rate or scale of {outcome.name}, {describe(var)}, is below 0 in {below:.0%} of draws of the "
                "prior",
            )
            continue
        if not (run.is_proper and graph.get_unknowns(outcome.rv)):
            continue
        drawn = [_draw_outcome(outcome, draw, rng) for draw in run.draws]
        n_failed = sum(not np.isfinite(values).all() for values in drawn)
        if n_failed > FAILED_SHARE * DRAWS:
            yield _finding(
                "prior too wide", f"{outcome.name}, drawn from the prior, overflows in {n_failed} of {DRAWS} draws"
            )
            continue
        reached, data = np.concatenate(drawn), run.draws[0][outcome.value].astype(float)
        reached = reached[np.isfinite(reached)]
        low, high, spread = reached.min(), reached.max(), data.std()
        outside = np.mean((data < low - (high - low)) | (data > high + (high - low)))
        distance = np.median(np.abs(reached - np.median(data)))
        if outside > OUTSIDE_SHARE:
            yield _finding(
                "outcome not scaled",
                f"{outcome.name} is {data.min():.3g} to {data.max():.3g}, drawn from the prior {low:.3g} to {high:.3g}",
            )
        elif spread > 0 and distance > WIDE * spread:
            yield _finding(
                "prior too wide",
                f"{outcome.name}, drawn from the prior, is {distance / spread:,.0f} sds of the data away from the data",
            )


def _draw_outcome(outcome: _RandomVariable, draw: dict, rng: np.random.Generator) -> NDArray:
    """Values of an outcome (row,), or a NaN where its parameters are beyond what NumPy draws from."""
    params = [draw[var] for var in outcome.params]
    try:
        return np.ravel(outcome.op.rng_fn(rng, *params, None) if all(np.isfinite(p).all() for p in params) else np.nan)
    except ValueError:
        return np.array([np.nan])


def _find_inputs(graph: _Graph, run: _PriorRun) -> Iterator[Finding]:
    """Columns so large that the units which see them are flat nearly everywhere."""
    seen = {}
    for node in graph.nodes:
        if is_made_by(node.outputs[0], UNITS) or isinstance(node.op, Softmax):
            for received in node.inputs:
                for product in _list_products([received]):
                    for inputs, weights in permutations(product.inputs, 2):
                        is_number = inputs.type.dtype.startswith(("float", "int", "uint"))
                        if is_number and graph.get_unknowns(weights) and not graph.get_unknowns(inputs):
                            seen[_unmoved(inputs)] = received
    found = run.stack(*(v for pair in seen.items() for v in pair)) if seen else []
    for var, values, units in zip(seen, found[::2], found[1::2], strict=True):
        columns = values[0].reshape(-1, values.shape[-1] if values.ndim > 2 else 1).astype(float)
        size = np.sqrt(np.mean(columns**2, axis=0))
        if len(columns) > 1 and size.max() > BIG_INPUT and np.median(np.abs(units)) > BIG_UNIT:
            which = join([str(k) for k in np.flatnonzero(size > BIG_INPUT)], limit=5)
            yield _finding(
                "inputs not scaled",
                f"values of {size.max():.3g} in {f'column {which} of ' * (len(size) > 1)}{describe(var)} leave units "
                "flat",
            )


# --- which rows depend on which part of a variable


def _find_groups(graph: _Graph, run: _PriorRun) -> Iterator[Finding]:
    if graph.full:
        return  # a batch does not hold all rows
    live = [v for v in run.variables if v.rv in graph.live]
    unclear = graph.get_unknowns(*graph.potentials, *(p for v in live if not v.is_simple for p in v.params))
    response = _RowDependence(run, [v for v in live if v.is_simple])
    unused, centred = defaultdict(list), defaultdict(list)
    for k, variable in enumerate(graph.free.values()):
        if not variable.is_simple or variable.rv not in graph.live or variable.rv in unclear:
            continue
        cells, shape = response.find_cells(k)
        n_cells = int(np.prod(shape))
        if n_cells < LEAST_GROUPS:
            continue
        rows = np.bincount(cells[cells >= 0], minlength=n_cells)
        places = [tuple(map(int, np.unravel_index(k, shape))) for k in np.flatnonzero(rows == 0)]
        if places:
            which = join([str(k if len(k) > 1 else k[0]) for k in places], limit=5)
            unused[f"group {which} of {n_cells}"].append(variable.name)
        if variable.scale is not None and graph.get_unknowns(variable.scale):
            centred[cells.tobytes()].append((variable.name, run.prior[0][k].size / n_cells, np.median(rows)))
        elif rows.max() == 1 and _is_added(graph, variable.rv):
            yield _finding(
                "bias for each row",
                f"{variable.name} has a value for each of {n_cells} rows, and takes up what the rest leaves over",
            )
    for which, whose in unused.items():
        yield _finding("group without rows", f"no row uses {which} in {join(whose)}")
    for alike in centred.values():
        names, counts, (each, *_) = zip(*alike, strict=True)
        if each < FUNNEL_ROWS * sum(counts):
            yield _finding(
                "funnel",
                f"{join(names)}: {sum(counts):g} for each group, drawn around a mean with an unknown sd, and {each:g} "
                "rows to tell; where that sd is small there is no room to move",
            )


def _is_added(graph: _Graph, rv: Variable) -> bool:
    """Whether a variable is used once, and added to something else that is unknown."""
    users = graph.users[rv]
    while len(users) == 1 and isinstance(users[0].op, MOVES):
        users = graph.users[users[0].outputs[0]]
    sums = [node.outputs[0] for node in users if is_made_by(node.outputs[0], ps.Add)]
    return len(users) == len(sums) == 1 and len(graph.get_unknowns(*sums)) > 1


class _RowDependence:
    """Which rows, of outcomes and of variables that have it in their prior, depend on a part of a variable."""

    def __init__(self, run: _PriorRun, targets: Sequence[_RandomVariable]) -> None:
        self._run, self._targets = run, targets
        self._bases = [
            [x / np.sqrt(1 + x**2) if x.dtype.kind == "f" else x for x in values] for values in run.prior[:2]
        ]

    def _evaluate(self, values: Sequence[NDArray]) -> list[NDArray] | None:
        """All parameters, each as (row, value); None where NaN is refused on the way."""
        found = []
        try:
            draw = self._run.evaluate(values)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            return None
        for target in self._targets:
            pairs = zip(target.params, target.cores, strict=True)
            parts = [draw[v].reshape(*draw[v].shape[: draw[v].ndim - n_core], -1) for v, n_core in pairs]
            rows = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
            found += [np.broadcast_to(part, (*rows, part.shape[-1])).reshape(-1, part.shape[-1]) for part in parts]
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
