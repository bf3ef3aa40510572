"""A model as a graph, and as a function of its unknowns, for `check_model`."""

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

import numpy as np
import pymc as pm
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.data import MinibatchOp
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pymc.distributions.custom import CustomDistRV
from pymc.distributions.distribution import Distribution
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Apply, Variable
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
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import TensorType

from hbnn.fusion._read import is_made_by

DRAWS = 50  # of the prior; the limits are coarse, so that these are enough
VAGUE = 0.01  # the shape of a gamma; half of the draws of gamma(0.001, 0.001) are 0 to a computer (Gelman 2006)
MOST_CORRELATED = 600  # rows of a MvNormal, of which a covariance is computed at each draw

UNITS = ps.Tanh | ps.Sigmoid | ps.Softplus | ps.Maximum | ps.Switch | ps.Erf | ps.Sin
MOVES = DimShuffle | Reshape | SpecifyShape | ViewOp


def _list_distributions(kind: type = Distribution) -> Iterator[type]:
    below: type
    for below in kind.__subclasses__():
        yield below
        yield from _list_distributions(below)


@cache
def _list_parameter_names(op: type) -> list[str]:
    """What PyMC's own density of a distribution calls its parameters, in the order in which the variable has them."""
    for kind in _list_distributions():
        if getattr(kind, "rv_type", None) is op and "logp" in vars(kind):
            return list(inspect.signature(vars(kind)["logp"]).parameters)[1:]
    return []


class ModelVariable:
    """A variable of a model: its kind, its parameters, and how many axes of each parameter do not count rows."""

    def __init__(self, rv: Variable, value: Variable | None = None) -> None:
        self.rv, self.value, self.name, self.total_size = rv, value, rv.name, []
        while rv.owner and isinstance(rv.owner.op, MinibatchRandomVariable):
            rv, *self.total_size = rv.owner.inputs
        self.inner, self.op = rv, rv.owner and rv.owner.op
        self.kind: str = getattr(self.op, "name", None) or ""
        is_pure = isinstance(self.op, RandomVariable) and not isinstance(self.op, CustomDistRV)
        is_known = is_pure or getattr(self.op, "extended_signature", None)
        params = self.op.dist_params(rv.owner) if is_known else rv.owner.inputs if rv.owner else []
        self.params = [v for v in params if isinstance(v.type, TensorType)]
        self.cores: Sequence[int] = self.op.ndims_params if is_pure else []
        self.is_univariate = getattr(self.op, "ndim_supp", 1) == 0
        self.is_simple = is_pure and self.is_univariate and bool(self.params)  # NumPy draws it, element by element
        names = _list_parameter_names(type(self.op)) if self.is_simple else []  # type: ignore[arg-type]
        self._named = dict(zip(names, self.params, strict=True)) if len(names) == len(self.params) else {}
        # of a location and a scale; PyMC has four names for the latter
        other = {"laplace": "b", "logistic": "s", "cauchy": "beta", "gumbel": "beta"}.get(self.kind, "sigma")
        self.mean, self.scale = self._named.get("mu"), self._named.get(other)
        self.marginals = self._list_marginals()

    def _list_marginals(self) -> list[Variable]:
        """Mean and sd of each row of a MvNormal, which Gaussian processes are typed by, too."""
        if self.kind != "multivariate_normal" or self.value is None or self.value.ndim != 1:
            return []
        n = self.value.type.shape[0] or MOST_CORRELATED + 1
        mean, cov = self.params
        return [mean, pt.sqrt(pt.diagonal(cov))] if n <= MOST_CORRELATED and mean.ndim == 1 and cov.ndim == 2 else []


class Graph:
    """A model, in which rows of the whole data set stand in place of minibatches."""

    def __init__(self, model: pm.Model) -> None:
        self.outcomes = [ModelVariable(rv, model.rvs_to_values[rv]) for rv in model.observed_RVs]
        self.free = {rv: ModelVariable(rv) for rv in model.free_RVs}
        self.potentials, self.names = model.potentials, set(model.named_vars)
        self.ordered = {rv for rv, how in model.rvs_to_transforms.items() if "ordered" in str(getattr(how, "name", ""))}
        ends = [v for outcome in self.outcomes for v in (outcome.rv, outcome.value)] + self.potentials
        self.live = set(ancestors(ends))
        self.live_nodes = list_nodes(ends)
        self.nodes = list_nodes([*ends, *model.deterministics])
        self.users = defaultdict(list)
        for node in self.live_nodes:
            for source in node.inputs:
                self.users[source].append(node)
        batches = [node for node in self.nodes if isinstance(node.op, MinibatchOp)]
        self.full = {out: v for node in batches for out, v in zip(node.outputs, node.inputs[:-1], strict=False)}
        self.thinned = {out: _thin_to_batch(v, out) for out, v in self.full.items()}
        self._unknowns: dict[Variable, set[Variable]] = {}
        self._constants: dict[Variable, NDArray | None] = {}

    def get_unknowns(self, *expressions: Variable) -> set[Variable]:
        """The free variables that expressions depend on."""
        for var in expressions:
            if var not in self._unknowns:
                self._unknowns[var] = self.free.keys() & set(ancestors([var]))
        return set().union(*(self._unknowns[var] for var in expressions))

    def get_number(self, var: Variable | None) -> NDArray | None:
        """What an expression is that depends on nothing random, through any shape that it was given; else None."""
        if var is None or any(isinstance(v.type, RandomType) for v in ancestors([var])):
            return None
        if var not in self._constants:
            self._constants[var] = self.compile([var])()[0]
        return self._constants[var]

    def compile(
        self,
        outputs: Iterable[Variable],
        inputs: dict[Variable, Variable] | None = None,
        *,
        batches: dict[Variable, Variable] | None = None,
    ) -> Callable[..., list[NDArray]]:
        """A function of values for the variables in `inputs`, and of a seed; a batch is the rows in `batches`."""
        inputs, batches = inputs or {}, self.thinned if batches is None else batches
        copies = clone_replace(list(outputs), inputs | batches, rebuild_strict=False)
        rngs = {v: v.type() for v in ancestors(copies) if isinstance(v.type, RandomType) and v.owner is None}
        function = pytensor.function(
            [*inputs.values(), *rngs.values()], clone_replace(copies, rngs), on_unused_input="ignore"
        )
        return lambda *values, seed=0: function(*values, *np.random.default_rng(seed).spawn(len(rngs)))


def _thin_to_batch(full: Variable, batch: Variable) -> Variable:
    """As many rows as a batch has, evenly from first to last."""
    n = batch.type.shape[0]
    return pt.specify_shape(full[pt.arange(n) * full.shape[0] // n], batch.type.shape)


def _is_flat(graph: Graph, variable: ModelVariable) -> bool:
    """Whether a prior says nothing and is meant so: flat, or BUGS's gamma(0.001, 0.001) of a precision."""
    shape = graph.get_number(variable.params[0]) if variable.kind in ("gamma", "invgamma") else None
    return isinstance(variable.op, FlatRV | HalfFlatRV) or (shape is not None and bool(np.all(shape <= VAGUE)))


class PriorRun:
    """Draws of the prior, and what the outcomes' parameters are at each."""

    def __init__(self, graph: Graph, seed: int) -> None:
        flat = {rv: rv.type() for rv, v in graph.free.items() if _is_flat(graph, v)}
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
        self._graph, self.inputs = graph, {rv: rv.type(rv.name) for rv in graph.free}
        self._function = graph.compile(self._wanted, self.inputs)
        self.draws = [self.evaluate(values) for values in self.prior]

    def use_batches(self, batches: dict[Variable, Variable]) -> None:
        """Evaluate with other rows in place of a minibatch from now on."""
        self._function = self._graph.compile(self._wanted, self.inputs, batches=batches)

    def evaluate(self, values: Sequence[NDArray]) -> dict[Variable, NDArray]:
        """All parameters where the free variables have these values."""
        return dict(zip(self._wanted, self._function(*values), strict=True))

    def stack(self, *outputs: Variable, n_draws: int = DRAWS) -> list[NDArray]:
        """Expressions at draws of the prior: arrays (draw, …)."""
        function = self._graph.compile(outputs, self.inputs)
        return [np.stack(found) for found in zip(*(function(*values) for values in self.prior[:n_draws]), strict=True)]


# --- reading


def list_nodes(ends: Iterable[Variable]) -> list[Apply]:
    return list(dict.fromkeys(var.owner for var in ancestors(ends) if var.owner))


def unmove(var: Variable) -> Variable:
    """What is only moved, cast or named."""
    while var.owner and (isinstance(var.owner.op, MOVES) or is_made_by(var, ps.Identity | ps.Cast)):
        var = var.owner.inputs[0]
    return var


def is_product(var: Variable) -> bool:
    """Whether an expression is a product that is summed, as layers are."""
    op = var.owner.op if var.owner else None
    return isinstance(op.core_op if isinstance(op, Blockwise) else op, Dot | Einsum)


def list_products(sources: Iterable[Variable]) -> Iterator[Apply]:
    """The products of which sources are sums, or parts of sums."""
    for var in sources:
        op = var.owner.op if var.owner else None
        if is_product(var) or is_made_by(var, ps.Mul):
            yield var.owner
        elif isinstance(op, MOVES | Sum | Subtensor | Join) or is_made_by(var, ps.Add | ps.Sub | ps.Cast):
            yield from list_products(var.owner.inputs)


def list_units(var: Variable) -> Iterator[Apply]:
    """Activations below, through elementwise functions and moved axes only."""
    if is_made_by(var, UNITS):
        yield var.owner
    elif var.owner and isinstance(var.owner.op, Elemwise | MOVES | Join):
        for source in var.owner.inputs:
            yield from list_units(source)
