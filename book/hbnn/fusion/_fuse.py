"""A network typed in plain PyMC becomes a fast one, whichever way it is typed.

A Bernoulli outcome of a network alone gets the fused likelihood. Anywhere else in a model, under other outcomes, under
unknowns, under another network, the network is exchanged, and what was typed on top of it stays.
"""

import logging
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.data import MinibatchOp
from pymc.model.fgraph import fgraph_from_model, model_from_fgraph, model_potential
from pymc.variational.minibatch_rv import MinibatchRandomVariable, get_scaling
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply, Variable, clone_get_equiv
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.scan.op import Scan
from pytensor.tensor.math import Sum
from pytensor.tensor.random.basic import BernoulliRV
from pytensor.tensor.type import TensorType

from hbnn._refused import Refused
from hbnn._types import Array
from hbnn.fusion._activations import Activation, is_cheap
from hbnn.fusion._arrange import Head, Plan, build_loglik, build_outputs
from hbnn.fusion._layers import DTYPES
from hbnn.fusion._loglik import NetworkLogLik
from hbnn.fusion._model import Fused, FusedModel, Fusion
from hbnn.fusion._output import NetworkOutput
from hbnn.fusion._read import (
    Axes,
    Axis,
    Leaf,
    Network,
    describe,
    get_lengths,
    is_made_by,
    is_product,
    is_random,
    is_sum,
    read_network,
    read_sigmoid,
)
from hbnn.fusion._recognise import read_activation
from hbnn.sampling import is_watched

_LOGGER = logging.getLogger("hbnn")


def fuse(model: pm.Model, *, strict: bool = True, check: bool = True, dtype: str | None = None) -> pm.Model:
    """The same model with fused networks: one posterior, a fraction of the time for a gradient.

    A network is any chain of products of units and weights, biases, and activations: tanh, ReLU, leaky ReLU, sigmoid,
    softplus, ELU, GELU, SiLU or sine, by name or from their parts, each layer with its own. Weights are any expressions
    of their parents. Factors of products are moved to the weights. There is one network, or there are

    - networks of groups in an axis: X (group, obs, feature) or (obs, feature), weights (group, n_in, n_out);
    - networks of groups in rows: X (obs, feature), weights ``w[g]`` or ``mu + sd * z[g]``, and with several groupings
      ``w[g1] + u[g2]`` or ``w[g1, g2]``. Rows may be in any order.

    What lacks the groups is shared. Where the points are unknown (embeddings, inputs with noise, another network, a
    residual connection), the gradient goes through them.

    A Bernoulli outcome of a network alone, ``logit_p=logit`` or ``p=sigmoid(logit)``, or of those under a mask,
    ``logit[mask]``, becomes one fused likelihood. Everywhere else the outputs of networks are exchanged, and what was
    typed on top of them stays: any outcome, further terms, curves, mixtures, unknowns, Gaussian processes, minibatches,
    missing values. Outcomes of one network have its hidden layers in common.

    Parameters
    ----------
    model : pm.Model
        It is not changed.
    strict : bool
        Whether a model without a network is an error. False gives it back as it is, with a UserWarning.
    check : bool
        Whether to compare what was typed and what is fused, and their gradients, at two random points. It takes about
        a second, and 10 to 40 the first time on a machine for each kind of network.
    dtype : {"float64", "float32"}, optional
        Of the arithmetic inside of networks; None: that of the weights.

    Returns
    -------
    pm.Model
        A new one with the same free variables, names, coords, dims, deterministics and data, for `pm.sample` with any
        sampler, `nutpie.compile_pymc_model` and `pm.fit`; `pm.set_data` works on it, and its data are its own. A
        model that is fused already is given back.

        Its attribute ``fusion`` lists the networks, and prints what was fused, what stayed as typed, and how much
        faster such a network was measured to be. The logger "hbnn" says the same at INFO.

        Where a likelihood was exchanged, the Bernoulli variable is a potential of the same name. What needs the
        variable takes the original model, whose free variables have the same names. In ``with fast:`` take variables
        from `fast`: those of the original are others, and are refused::

            fast = fuse(model)
            with fast:
                idata = pm.sample()
                pm.Deterministic("norm", (fast["w1"] ** 2).sum())  # not w1
            pm.compute_log_likelihood(idata, model=model)
            pm.sample_posterior_predictive(idata, model=model)

    Raises
    ------
    TypeError
        When `model` is no PyMC model.
    Refused
        (a ValueError) When no network is understood: it names the expression that came nearest, and what is wanted.
        Variables of `pymc.dims` are refused, and labels of a fused likelihood other than 0 and 1.
    ValueError
        For another `dtype`.
    RuntimeError
        When the two differ where they are compared: in what, and by how much.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from hbnn import fuse
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(50, 2)), rng.integers(2, size=50)
    >>> with pm.Model() as model:
    ...     w1, w2 = pm.Normal("w1", shape=(2, 3)), pm.Normal("w2", shape=3)
    ...     labels = pm.Bernoulli("labels", logit_p=pm.math.tanh(X @ w1) @ w2, observed=y)
    >>> fast = fuse(model)  # compares both, their gradients too, before it gives one back
    >>> [variable.name for variable in fast.free_RVs]
    ['w1', 'w2']
    >>> fast.fusion
    labels: network and the likelihood, of 2 features, 3 tanh units, 1 output; 3 to 5 times faster
    """
    if not isinstance(model, pm.Model):
        raise TypeError(f"model is a {type(model).__name__}; wanted: a pm.Model")
    if dtype not in (None, *DTYPES):
        raise ValueError(f"dtype={dtype!r}; wanted: one of {', '.join(DTYPES)}, or None")
    try:
        found = _find_exchanges(model, dtype)
        if not found:
            return model
        fast = _exchange_in_copy(model, {old: new for old, (new, _) in found.items()})
        fast.fusion = _summarise(model, found)
        if check:
            with _say_when_slow():
                _compare_values_and_gradients(model, found, dtype)
    except Refused as error:
        if strict:
            raise
        warnings.warn(str(error), UserWarning, stacklevel=2)
        return model
    fast._origin = model  # what is asked of a likelihood that is no variable any more
    _LOGGER.info("%s", fast.fusion)
    return fast


@contextmanager
def _say_when_slow() -> Iterator[None]:
    """A line to the log where the compiler has not been here before, and somebody watches."""
    if not is_watched():
        yield
        return
    timer = threading.Timer(SOON, _LOGGER.warning, ["fuse compiles the network; once on a machine, 10 to 40 seconds"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def get_origin(model: pm.Model) -> pm.Model:
    """The model as it was typed."""
    return getattr(model, "_origin", model)


# --- what is exchanged

type Exchanges = dict[Variable, tuple[Variable, Plan]]  # what takes the place of an expression, and its network
type Found = tuple[Network, Axes, Plan, Variable]  # a network, its outputs' axes, and the fused outputs

SOON = 3.0  # seconds; what was compiled before takes less
WIDEST_END = 32  # units that pay without a read-out: they are read out as they are, by a product with 1 and 0


def _find_exchanges(model: pm.Model, dtype: str | None) -> Exchanges:
    """What takes the place of observed variables, and of networks: nothing where a model is fused already, and Refused
    where no network is understood.
    """
    for rv in model.basic_RVs:
        if not isinstance(rv.type, TensorType):
            raise Refused(f"{rv.name} is a variable of pymc.dims; wanted: the same model of pm.Normal, pm.Bernoulli, …")
    alone: Exchanges = {}
    search = _NetworkSearch(dtype)
    for rv in model.observed_RVs:
        node = _get_outcome_node(rv)
        # PyMC scales what it fits by the outcomes that it sees to be minibatches: these stay outcomes
        if isinstance(node.op, BernoulliRV) and not _is_minibatch(model.rvs_to_values[rv]):
            try:
                alone[rv] = _read_bernoulli(model, rv, node, dtype)
                continue
            except Refused as error:
                search.refused.append(error)
        search.add(rv.name, node.inputs)
    for variable in (*model.free_RVs, *model.potentials):
        search.add(variable.name, [variable])
    found = search.run()
    # a last hidden layer that others have, too, is computed once; two fused likelihoods are faster than one of outputs
    others = {plan.network.units[-1] for _, plan in found.values() if not plan.network.is_ended()}
    if shared := [rv for rv, (_, plan) in alone.items() if others & set(plan.network.units[-1:])]:
        for rv in shared:
            del alone[rv]
            search.add(rv.name, _get_outcome_node(rv).inputs)
        found = search.run()
    found = alone | found
    if found:
        return found
    if any(is_made_by(v, NetworkLogLik | NetworkOutput) for v in ancestors([*model.basic_RVs, *model.potentials])):
        return {}
    names, way_out = ", ".join(rv.name for rv in model.observed_RVs), _name_way_out(model.observed_RVs)
    if search.refused:
        raise Refused(str(max(search.refused, key=lambda error: error.depth)) + way_out)
    if names:
        raise Refused(f"{names}: no network leads to it; wanted: pt.tanh(X @ w1) @ w2, or deeper{way_out}")
    raise Refused("the model has no observed variable; wanted: pm.Bernoulli('y', ..., observed=y), or another outcome")


def _get_outcome_node(rv: Variable) -> Apply:
    return rv.owner.inputs[0].owner if is_made_by(rv, MinibatchRandomVariable) else rv.owner


def _is_minibatch(var: Variable) -> bool:
    return any(is_made_by(v, MinibatchOp) for v in ancestors([var]))


def _name_way_out(variables: Iterable[Variable]) -> str:
    """What else is wanted, for networks that are typed in a way that many people take and that is not read."""
    nodes = [v.owner for v in ancestors(variables) if v.owner]
    if any(isinstance(node.op, Scan) for node in nodes):
        return ", and a Python loop over layers in place of scan"
    sums = (node for node in nodes if isinstance(node.op, Sum) and node.inputs[0].ndim > 1 and not node.outputs[0].ndim)
    return ", and a sum with an axis, (h * w).sum(axis=-1)" if any(is_random(node.outputs[0]) for node in sums) else ""


def _read_bernoulli(model: pm.Model, rv: Variable, node: Apply, dtype: str | None) -> tuple[Variable, Plan]:
    """The fused log likelihood of a Bernoulli variable, and its network."""
    name, value = rv.name, model.rvs_to_values[rv]
    for other in (*model.basic_RVs, *model.deterministics, *model.potentials):
        if other is not rv and rv in ancestors([other]):
            raise Refused(f"{other.name} is computed from {name}, which will be no variable; wanted: from its data")
    axes: Axes = [Axis() for _ in range(rv.ndim)]
    parameters = node.op.dist_params(node)
    if any(parameter.ndim != rv.ndim for parameter in parameters) or not axes:
        raise Refused(f"{name} has {rv.ndim} axes and its probability {parameters[0].ndim}; wanted: one for each label")
    network = read_network(name, *read_sigmoid(name, parameters, axes))
    if is_random(network.points.value):
        raise Refused(f"{name}: the points {describe(network.points.value)} are random; wanted: pm.Data or an array")
    plan = Plan(name, network, axes)
    if plan.count_elements(plan.columns) > 1:
        raise Refused(f"{name} has several outputs at each point; wanted: one, h @ w")
    if len(network.layers) > 1 and plan.cells and plan.list_intercepts() == set(plan.cells):
        raise Refused(f"{name}: groups have intercepts of their own, and nothing else; wanted: weights, too")
    loglik = build_loglik(name, plan, Leaf(value, axes), dtype)
    if is_made_by(rv, MinibatchRandomVariable):
        loglik = loglik * get_scaling(rv.owner.inputs[1:], value.shape)
    return loglik, plan


class _NetworkSearch:
    """Networks in expressions, the largest first, each expression visited once."""

    def __init__(self, dtype: str | None) -> None:
        self.dtype = dtype
        self.roots: list[tuple[str, Variable]] = []
        self.refused: list[Refused] = []

    def add(self, name: str, variables: Iterable[Variable]) -> None:
        self.roots += [(name, variable) for variable in variables]

    def run(self) -> Exchanges:
        cuts: set[Variable] = set()
        while True:
            found = self._visit_expressions(cuts)
            shared = _list_shared(found) - cuts
            if not shared:
                return self._build(found)
            cuts |= shared

    def _visit_expressions(self, cuts: set[Variable]) -> dict[Variable, Found]:
        """Networks by the expressions that are their outputs or last units."""
        found: dict[Variable, Found] = {}
        seen: set[Variable] = set()
        stack = [(name, variable, False) for name, variable in reversed(self.roots)]
        while stack:
            name, var, is_inside = stack.pop()
            if var in seen or var.owner is None or not is_random(var):
                continue
            seen.add(var)
            below = var.owner.inputs
            read = None
            try:
                read = self._read(name, var, cuts, is_inside)
            except Refused as error:
                self.refused.append(error)
            if read:
                found[var] = read
                below = [read[0].points.value, *(s for leaf in read[0].list_leaves() for s in leaf.sources)]
            stack += [(name, v, is_inside or is_product(var) or bool(read)) for v in reversed(below)]
        return found

    def _read(self, name: str, var: Variable, cuts: set[Variable], is_inside: bool) -> Found | None:
        """The network whose outputs, or last units, an expression is."""
        if is_product(var):
            return self._read_as(name, var, cuts, var)
        if is_sum(var):
            with suppress(Refused):  # something else is added: the products in it say what they are
                read = self._read_as(name, var, cuts, var)
                if read and not read[2].list_intercepts():
                    return read
        found = read_activation(var) if is_inside and var.ndim > 1 else None
        if found is None or found[2] != 1 or is_cheap(found[0]):
            return None
        return self._read_as(name, var, cuts, found[1], found[0])

    def _read_as(
        self, name: str, var: Variable, cuts: set[Variable], source: Variable, activation: Activation | None = None
    ) -> Found | None:
        axes: Axes = [Axis() for _ in range(var.ndim)]
        network = read_network(name, source, axes, cuts, activation)
        if not network.activations:
            return None
        plan = Plan(name, network, axes)
        if activation:
            network.units[-1] = var
            if plan.count_elements(plan.columns) > WIDEST_END:
                return None
        return network, axes, plan, build_outputs([(var, axes, plan)], self.dtype)[0]

    def _build(self, found: dict[Variable, Found]) -> Exchanges:
        """The fused outputs; networks with the same hidden layers become one."""
        heads: dict[Variable, list[Head]] = {}
        new: Exchanges = {}
        for var, (network, axes, plan, out) in found.items():
            new[var] = out, plan
            if not network.is_ended():
                heads.setdefault(network.units[-1], []).append((var, axes, plan))
        for group in heads.values():
            same = [group[0], *(head for head in group[1:] if _align_rows(group[0][2], head[2]))]
            if len(same) > 1:
                for (var, _, _), out in zip(same, build_outputs(same, self.dtype), strict=True):
                    new[var] = out, new[var][1]
        return new


def _list_shared(found: dict[Variable, Found]) -> set[Variable]:
    """Units that several networks have, the last ones only, unless all of these networks are read-outs of them."""
    networks, shared = [network for network, *_ in found.values()], set()
    for k, one in enumerate(networks):
        for other in networks[:k]:
            first = next((units for units in one.units[::-1] if units in other.units), None)
            is_top = first is one.units[-1] is other.units[-1] and not one.is_ended() and not other.is_ended()
            if first is not None and not is_top:
                shared.add(first)
    return shared


def _align_rows(first: Plan, other: Plan) -> bool:
    """Whether two networks with the same hidden layers have the same points and groups; then in the same order."""
    here, there = first.network.top_axes, other.network.top_axes
    names = {b: a for a, b in zip(here, there, strict=True) if isinstance(a, Axis) and isinstance(b, Axis)}
    if {names.get(axis) for axis in other.rows} != set(first.rows) or len(first.rows) != len(other.rows):
        return False
    if [len(plan.cells) for plan in (first, other)] not in ([0, 0], [1, 1]):
        return False
    if not (first.is_hidden() and other.is_hidden()):
        return False
    other.rows.sort(key=lambda axis: first.rows.index(names[axis]))
    return first.is_stacked() == other.is_stacked()


def _exchange_in_copy(model: pm.Model, exchanged: dict[Variable, Variable]) -> FusedModel:
    """A new model in which observed variables are potentials, and the outputs of networks those of fused ones."""
    starts, bare = model.rvs_to_initial_values, object.__new__(type(model))
    # PyMC does not copy a model with initial values: here is the same one without
    vars(bare).update(vars(model) | {"rvs_to_initial_values": dict.fromkeys(starts)})
    graph, copies = fgraph_from_model(bare)
    clones = clone_get_equiv([], list(exchanged.values()), copy_orphans=False, memo=dict(copies))
    exchanged = {old: clones[new] for old, new in exchanged.items()}
    for rv in model.observed_RVs:
        if rv in exchanged:
            graph.remove_output(graph.outputs.index(copies[rv]))
            graph.add_output(model_potential(exchanged.pop(rv), rv.name), import_missing=True)
    while left := [old for old in exchanged if copies[old] in graph.variables]:  # a network may bring another one back
        for old in left:
            graph.replace(copies[old], exchanged[old], import_missing=True)
    fast = model_from_fgraph(graph, mutate_fgraph=True)
    for variables in (fast.free_RVs, fast.observed_RVs, fast.deterministics, fast.potentials, fast.data_vars):
        variables.sort(key=lambda variable: list(model.named_vars).index(variable.name))
    for rv, start in starts.items():
        if start is not None:
            fast.set_initval(fast[rv.name], start)
    fast.check_bounds, fast.__class__ = model.check_bounds, FusedModel
    return fast


def _summarise(model: pm.Model, found: Exchanges) -> Fusion:
    outcomes = [*model.observed_RVs, *model.potentials]
    below = {outcome: found.keys() & set(ancestors([outcome])) for outcome in outcomes}
    fusion = Fusion(
        Fused(
            describe(old),
            tuple(outcome.name for outcome in outcomes if old in below[outcome]) or (describe(old),),
            old in model.observed_RVs,
            plan.sizes + plan.sizes[-1:] * plan.network.is_ended(),
            tuple(plan.network.activations),
            plan.count_elements(plan.cells),
        )
        for old, (_, plan) in found.items()
    )
    fusion.typed = tuple(outcome.name for outcome in outcomes if not below[outcome])
    return fusion


def _compare_values_and_gradients(model: pm.Model, found: Exchanges, dtype: str | None) -> None:
    """RuntimeError where a likelihood or an output, as functions of weights, biases and unknown points, or their
    gradients, differ from the fused ones.
    """
    rng = np.random.default_rng(0)
    inputs: list[tuple[Variable, tuple[int, ...], float]] = []
    labels: list[tuple[str, str]] = []
    totals: tuple[list[Variable], list[Variable]] = [], []
    for old, (new, plan) in found.items():
        network = plan.network
        what = f"the log likelihood of {old.name}" if old in model.observed_RVs else describe(old)
        if old in model.observed_RVs:
            pair = [pm.logp(old, model.rvs_to_values[old]).sum(), new]
        else:
            factors = rng.normal(size=get_lengths(old))
            pair = [(factors * old).sum(), (factors * new).sum()]
        sources = [*(source for leaf in network.list_leaves() for source in leaf.sources), network.points.value]
        sources = [source for source in dict.fromkeys(sources) if is_random(source)]
        fresh = [source.type(name=describe(source)) for source in sources]
        shapes = [get_lengths(source) for source in sources]
        scales = [
            1 / np.sqrt(max(1, *shape, 1)) if s is not network.points.value else 1.0
            for s, shape in zip(sources, shapes, strict=True)
        ]
        inputs += zip(fresh, shapes, scales, strict=True)
        labels += [(what, part) for part in ("value", *(f"gradient with respect to {v.name}" for v in fresh))]
        for values, total in zip(totals, clone_replace(pair, dict(zip(sources, fresh, strict=True))), strict=True):
            values += [total, *pt.grad(total, fresh, disconnected_inputs="ignore")]
    variables = [variable for variable, _, _ in inputs]
    stock = pytensor.function(variables, totals[0], mode="FAST_COMPILE", on_unused_input="ignore")
    mode = Mode("numba", "fast_compile")  # Numba keeps the compiled kernel for the sampler
    fused = pytensor.function(variables, totals[1], mode=mode, on_unused_input="ignore")
    scale, points = 1.0, list[tuple[list[Array], list[Array]]]()
    while len(points) < 2:
        values = [np.asarray(scale * size * rng.normal(size=shape), v.dtype) for v, shape, size in inputs]
        expected = stock(*values)
        if all(np.isfinite(a).all() for a in expected):
            points.append((values, expected))
        elif (scale := scale / 10) < 1e-9:  # log(1 - p) where p is rounded to 1
            fused(*values)  # refuses labels that are neither 0 nor 1
            raise Refused(f"{labels[0][0]} is not finite at any weights; wanted: finite points")
    tolerance = 1e-6 if dtype != "float32" and all(v.dtype == "float64" for v in variables) else 1e-3
    for values, expected in points:
        for (what, part), a, b in zip(labels, expected, fused(*values), strict=True):
            off = np.max(np.abs(a - b), initial=0) / max(1.0, np.max(np.abs(a), initial=0))
            if not off <= tolerance:
                raise RuntimeError(
                    f"{what} and the fused one differ in their {part}, by {off:.1e} of its size; wanted: "
                    "equal. This is a mistake in hbnn.fuse: sample the model as it is, and report it"
                )
