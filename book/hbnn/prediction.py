"""From draws to predictions: of any model by its own graph, and of plain weights in NumPy."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pymc as pm
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import xarray as xr
from numpy.typing import ArrayLike
from pymc.data import MinibatchOp
from pymc.distributions.moments.means import _mean
from pymc.exceptions import UndefinedMomentException
from pymc.model.transform.basic import remove_minibatched_nodes
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.mode import Mode
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import CategoricalRV, NormalRV, StudentTRV
from pytensor.tensor.type_other import NoneConst
from scipy.special import expit, softmax

from hbnn._checks import check_images, refuse_masked
from hbnn._refused import Refused
from hbnn._types import Array, Floats, Named
from hbnn.fusion._fuse import get_origin
from hbnn.fusion._inputs import find_inputs, find_masks, get_data, list_data, list_equal, list_indices, walk_to
from hbnn.fusion._read import describe

WEIGHTS = ("w1", "w2", "w3")
_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"tanh": np.tanh, "relu": lambda z: np.maximum(z, 0)}
BLOCK, ELEMENTS = 100, 400_000  # draws at once, and numbers of all of these


# --- from a model


def predict(
    model: pm.Model,
    draws: xr.Dataset | xr.DataTree,
    X: ArrayLike | Mapping[str, ArrayLike] | None = None,
    *,
    groups: ArrayLike | None = None,
    name: str | None = None,
) -> xr.DataArray:
    """The mean of an outcome under each draw, at new points: a probability, a rate, a regression's curve.

    The model itself is evaluated, as by `pm.sample_posterior_predictive`, but without random numbers, and many draws
    at once. Its networks may be of any kind that `fuse` knows, and what is typed on top of them is anything.

    Parameters
    ----------
    model : pm.Model
        As typed, or what `fuse` made of it. It is not changed.
    draws : Dataset or DataTree
        Draws of its free variables, (chain, draw, …), as of `pm.sample`; they may be of some of the groups only.
    X : array_like or dict of array_like, optional
        New points in place of those that the networks were trained on, which may be `pm.Data` or a plain array, of the
        same shape but for the number of points. Without their axis of groups: the same points for every group. Inputs
        that are unknowns of the model are replaced as well. A dict has new values of `pm.Data` by their names, as
        `pm.set_data` takes them, and may be of any of them. None: the data that the model has. Of an outcome under a
        mask, ``logit[mask]``, an array has all points, and else those under the mask count.
    groups : array_like of int, shape (obs,), optional
        The number of the group of each new row, where weights are indexed by rows, ``w[group]``; or where points have
        an axis of groups, for rows X (obs, feature) of these groups in any order.
    name : str, optional
        Of an observed variable or a deterministic one. None: the only observed variable.

    Returns
    -------
    DataArray, shape (chain, draw, …)
        Of an outcome in classes, the last axis has the probabilities of all of them.

    Raises
    ------
    TypeError
        When `model` is no PyMC model.
    Refused
        (a ValueError) When no network is found, or several arrays could be its inputs.
    ValueError
        For new data that do not fit, and draws that lack a variable, or were made with other data than the model has
        now; where other data have a row for each point.

    Examples
    --------
    >>> import numpy as np
    >>> import pymc as pm
    >>> from hbnn import predict
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(50, 2)), rng.integers(2, size=50)
    >>> with pm.Model() as model:
    ...     w1, w2 = pm.Normal("w1", shape=(2, 3)), pm.Normal("w2", shape=3)
    ...     outcome = pm.Bernoulli("y", logit_p=pm.math.maximum(X @ w1, 0) @ w2, observed=y)
    ...     tree = pm.sample_prior_predictive(20, random_seed=1)
    >>> p = predict(model, tree["prior"], rng.normal(size=(7, 2)))  # at seven new points
    >>> dict(p.sizes)
    {'chain': 1, 'draw': 20, 'y_dim_0': 7}
    """
    if not isinstance(model, pm.Model):
        raise TypeError(f"model is a {type(model).__name__}; wanted: a pm.Model")
    name, mean, unknowns, computed = _read_outcome(model, name)
    posterior = _read_posterior(draws)
    if groups is not None and X is not None and not isinstance(X, Mapping):
        inputs = find_inputs(name, mean, unknowns)
        if (inputs.groups, inputs.rows) == ([0], [1]) and inputs.root not in unknowns:
            stack, where = _stack_rows(X, groups, get_data(inputs.root).shape[0])
            all_rows = predict(model, draws, stack, name=name)
            kept = {dim: all_rows[dim] for dim in ("chain", "draw") if dim in all_rows.coords}
            return xr.DataArray(all_rows.values[:, :, *where], kept, ("chain", "draw", "obs"), name)
    fresh, n_rows, wanted = _place_data(model, name, mean, unknowns, X, groups, posterior)
    used = [v for v in walk_to(mean, {*unknowns, *fresh}) if v in unknowns and v not in fresh]
    if lacking := [v.name for v in used if v.name not in posterior]:
        raise ValueError(f"draws lack {', '.join(lacking)}; wanted: all unknowns that {name} is computed of")
    flat = [_flatten(posterior[v.name]) for v in used]
    if fresh:
        inside = set(walk_to(mean, unknowns))
        _compare_computed([v for v in computed if v in inside], unknowns, fresh, posterior)
    compute = _compile_mean(mean, used, fresh, is_masked=X is None or isinstance(X, Mapping))
    try:
        if n_rows:  # with fewer or more points than the model has: nothing else may have a row for each
            compute(*[values[:1] for values in flat], *[new.resize(n_rows) for new in fresh.values()])
        p = _compute_blocks(compute, flat, [new.array for new in fresh.values()])
    except (ValueError, TypeError, IndexError, AssertionError) as error:
        others = {describe(v) for v in _list_rowwise(mean, used, fresh, n_rows, posterior)}
        also = f"; and {', '.join(sorted(others))}, with {n_rows} rows, exchanged by name as well" if others else ""
        said = str(error).splitlines()[0]
        raise ValueError(f"{name} cannot be computed of the new data ({said}); wanted: {wanted}{also}") from error
    p = p.reshape(posterior.sizes["chain"], posterior.sizes["draw"], *p.shape[1:])
    dims = get_origin(model).named_vars_to_dims.get(name, ())[: p.ndim - 2]
    dims = ["chain", "draw", *dims, *(f"{name}_dim_{k}" for k in range(len(dims), p.ndim - 2))]
    coords = posterior[[v.name for v in used]].coords
    fit = {dim: coords[dim] for dim, n in zip(dims, p.shape, strict=True) if dim in coords and coords[dim].size == n}
    return xr.DataArray(p, coords=fit, dims=dims, name=name)


@dataclass
class _New:
    """Data in place of others, which of its axes have an element for each point, and which are of length 1 for all."""

    array: Array
    rows: list[int] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)

    def resize(self, n_rows: int) -> Array:
        """These data with some number of rows that is not the one given."""
        array, n = self.array, 2 if n_rows != 2 else 3
        for axis in self.rows:
            array = np.take(array, np.arange(n) % array.shape[axis], axis)
        return array


def _read_outcome(model: pm.Model, name: str | None) -> tuple[str, Variable, list[Variable], list[Variable]]:
    """A variable's name, its mean as typed, of the data that the model has now, the model's unknowns, and what it
    computes by name.
    """
    typed = get_origin(model)
    if any(isinstance(v.owner.op, MinibatchOp) for v in ancestors(typed.basic_RVs) if v.owner):
        typed = remove_minibatched_nodes(typed)
    outcomes = [rv.name for rv in typed.observed_RVs]
    if name is None and len(outcomes) != 1:
        raise ValueError(f"the model observes {', '.join(outcomes) or 'nothing'}; wanted: name=, of the outcome")
    name = name or outcomes[0]
    if name not in typed.named_vars:
        raise ValueError(f"name={name!r}; wanted: one of {', '.join(typed.named_vars)}")
    variable = typed[name]
    mean = _get_mean(variable) if variable in typed.observed_RVs else variable
    now = {data: model[data.name] for data in typed.data_vars}
    now |= {rv: typed.rvs_to_values[rv] for rv in typed.observed_RVs}
    mean, *others = clone_replace([mean, *typed.free_RVs, *typed.deterministics], now)
    return name, mean, others[: len(typed.free_RVs)], others[len(typed.free_RVs) :]


MEANS = {NormalRV: 0, StudentTRV: 1, CategoricalRV: 0}  # which parameter is the mean, or the probabilities


def _get_mean(rv: Variable) -> Variable:
    """The mean of an observed variable, as an expression of its parameters."""
    node = rv.owner.inputs[0].owner if isinstance(rv.owner.op, MinibatchRandomVariable) else rv.owner
    if type(node.op) in MEANS:
        return node.op.dist_params(node)[MEANS[type(node.op)]]
    size = node.op.size_param(node) if hasattr(node.op, "size_param") else None
    try:  # without its size, which is that of the old data
        return _mean(node.op, rv, *[NoneConst if source is size else source for source in node.inputs])
    except (NotImplementedError, UndefinedMomentException):
        raise ValueError(
            f"the mean of {rv.name}, a {type(node.op).__name__}, is unknown; wanted: name=, of a pm.Deterministic"
        ) from None


def _read_posterior(draws: xr.Dataset | xr.DataTree) -> xr.Dataset:
    found = draws["posterior"] if isinstance(draws, xr.DataTree) and "posterior" in draws.children else draws
    found = found.to_dataset() if isinstance(found, xr.DataTree) else found
    if not isinstance(found, xr.Dataset) or not {"chain", "draw"} <= set(found.dims):
        raise ValueError(
            f"draws is a {type(draws).__name__} without chains; wanted: a DataTree or Dataset (chain, draw, …)"
        )
    return found


def _flatten(values: xr.DataArray) -> Array:
    """Draws of all chains, (chain * draw, …)."""
    array = values.transpose("chain", "draw", ...).values
    return array.reshape(-1, *array.shape[2:])


def _compare_computed(
    computed: list[Variable], unknowns: list[Variable], fresh: Mapping[Variable, _New], posterior: xr.Dataset
) -> None:
    """ValueError where the draws hold another value than the model computes of the first of them: it has other data."""
    for var in computed:
        below = list(walk_to(var, unknowns))
        if var.name not in posterior or any(v in fresh for v in below):
            continue
        used = [v for v in below if v in unknowns]
        first = _compile_mean(var, used, {})(*[_flatten(posterior[v.name])[:1] for v in used])[0] if used else None
        if first is not None and not np.allclose(first, _flatten(posterior[var.name])[0], rtol=1e-3, atol=1e-4):
            raise ValueError(
                f"{var.name} is not what the model computes of these draws now; wanted: draws that are unchanged, and "
                "the data that they were sampled with, by their names in X, or set by pm.set_data"
            )


def _place_data(
    model: pm.Model, name: str, mean: Variable, unknowns: list[Variable], X: Any, groups: Any, posterior: xr.Dataset
) -> tuple[dict[Variable, _New], int | None, str]:
    """New data by what they take the place of, the number of points there, and what is wanted, in words."""
    if X is None and groups is None:
        return {}, None, "draws and data of the same groups"
    if isinstance(X, Mapping):
        return _place_named(model, name, mean, unknowns, X, groups)
    if X is None:
        raise ValueError("groups came without X; wanted: both")
    inputs = find_inputs(name, mean, unknowns)
    root, data = inputs.root, list_data(mean, unknowns)
    shape = posterior[root.name].shape[2:] if root in unknowns else get_data(root).shape
    n_rows = shape[inputs.rows[0]] if inputs.rows else None
    pattern = ["obs" if k in inputs.rows else str(n) for k, n in enumerate(shape)]
    patterns = [pattern, [n for k, n in enumerate(pattern) if k not in inputs.groups]][: 1 + bool(inputs.groups)]
    wanted = "X " + " or ".join(f"({', '.join(words)})" for words in patterns)
    array = _to_numbers(X, "X", root)
    shared = inputs.groups if array.ndim == root.ndim - len(inputs.groups) else []
    array = np.expand_dims(array, tuple(shared))
    fixed = [k for k in range(root.ndim) if k not in (*inputs.rows, *inputs.groups)]
    if array.ndim != root.ndim or any(array.shape[k] != shape[k] for k in fixed):
        raise ValueError(f"X has shape {np.shape(X)}; wanted: {wanted[2:]}")
    fresh = dict.fromkeys(list_equal(root, data), _New(array, inputs.rows, shared))
    indices = [v for v in list_indices(mean, unknowns) if get_data(v).shape == (n_rows,)]
    if len(indices) > 1:
        raise Refused(f"{name}: rows have several indices; wanted: pm.Data for each, and new data by their names")
    if bool(indices) != (groups is not None):
        raise ValueError(
            "X came without groups; wanted: groups, the number of the group of each row"
            if indices
            else "groups came, but no weights are indexed by rows, w[group]; wanted: X alone"
        )
    if indices:
        fresh |= dict.fromkeys(list_equal(indices[0], data), _New(_check_groups(groups, len(array)), [0]))
    return fresh, n_rows, wanted


def _check_groups(groups: Any, n_rows: int) -> Array:
    number = np.asarray(groups)
    if number.shape != (n_rows,) or number.dtype.kind not in "iu":
        raise ValueError(f"groups is {number.dtype} {number.shape}; wanted: an integer for each row of X")
    if (number < 0).any():
        raise ValueError(f"groups holds {number.min()}; wanted: numbers from 0 on")
    return number


def _stack_rows(X: ArrayLike, groups: ArrayLike, n_groups: int) -> tuple[Array, tuple[Array, Array]]:
    """Rows (obs, feature) as (group, obs, feature), with zeros below the last of a group, and where each is there."""
    X = np.asarray(X, dtype=float)
    number = _check_groups(groups, len(X))
    if number.max() >= n_groups:
        raise ValueError(f"groups holds {number.max()}; wanted: numbers below {n_groups}")
    place = np.zeros_like(number)
    for g in range(n_groups):
        place[number == g] = np.arange(np.sum(number == g))
    stack = np.zeros((n_groups, place.max() + 1, *X.shape[1:]))
    stack[number, place] = X
    return stack, (number, place)


def _place_named(
    model: pm.Model, name: str, mean: Variable, unknowns: list[Variable], X: Mapping[str, ArrayLike], groups: Any
) -> tuple[dict[Variable, _New], int | None, str]:
    known = {v.name: v for v in model.data_vars}
    if groups is not None or not set(X) <= set(known):
        raise ValueError(
            f"X is of {', '.join([*X, *['groups'] * (groups is not None)])}; wanted: pm.Data, of "
            f"{', '.join(known) or 'which the model has none'}"
        )
    fresh = {known[key]: _New(_to_numbers(values, key, known[key])) for key, values in X.items()}
    for var, new in fresh.items():
        if new.array.ndim != var.ndim:
            raise ValueError(f"{var.name} has shape {new.array.shape}; wanted: {var.ndim} axes")
    n_rows = None
    with suppress(Refused):
        inputs = find_inputs(name, mean, unknowns)
        if inputs.root in fresh and inputs.rows:
            n_rows = get_data(inputs.root).shape[inputs.rows[0]]
            for var, new in fresh.items():
                new.rows = [k for k, n in enumerate(get_data(var).shape) if n == n_rows][:1]
            fresh[inputs.root].rows = inputs.rows
    return fresh, n_rows, "new data of one number of rows"


def _to_numbers(values: Any, name: str, like: Variable) -> Array:
    """Values as an array of the type of others; as floats where these are whole numbers and the values are not."""
    refuse_masked(values, name)
    array = np.asarray(values)
    if array.dtype.kind not in "fiub" or not array.size:
        raise ValueError(f"{name} is {array.dtype} {array.shape}; wanted: numbers, at least one")
    return array if array.dtype.kind == "f" and like.dtype[0] in "iub" else array.astype(like.dtype)


def _list_rowwise(
    mean: Variable, used: list[Variable], fresh: Mapping[Variable, _New], n_rows: int | None, posterior: xr.Dataset
) -> list[Variable]:
    """Data and unknowns, others than the new ones, with an axis of as many elements as there were points."""
    data = [v for v in list_data(mean, used) if v not in fresh and n_rows in get_data(v).shape]
    return data + [v for v in used if n_rows in posterior[v.name].shape[2:]]


_IN_NUMPY: dict[
    Any, Callable[..., Any]
] = {  # of which PyTensor's Python mode would compute one element after the other
    ps.Softplus: lambda z: pt.maximum(z, 0) + pt.log1p(pt.exp(-abs(z))),
    ps.Clip: lambda z, low, high: pt.minimum(pt.maximum(z, low), high),
}


@node_rewriter(None)
def _write_out(fgraph: FunctionGraph, node: Apply) -> Any:
    """What a function of functions, as `pt.einsum` is, consists of."""
    if isinstance(node.op, OpFromGraph):
        return inline_ofg_node(node)
    plain = _IN_NUMPY.get(type(getattr(node.op, "scalar_op", None)))
    return plain and [plain(*node.inputs)]


def _compile_mean(
    mean: Variable, used: list[Variable], fresh: Mapping[Variable, _New], *, is_masked: bool = True
) -> Callable[..., Array]:
    """A function of draws, in an axis in front, and of new data, of any number of points and groups."""
    copies = {v: v.type() for v in (*used, *fresh)}
    value = clone_replace(mean, copies)
    if not is_masked:
        value = clone_replace(value, find_masks(value, [copies[v] for v in used]), rebuild_strict=False)
    value = rewrite_graph(value, include=(), clone=False, custom_rewrite=dfs_rewriter(_write_out))
    shapes = {v: [1 if n == 1 else None for n in v.type.shape] for v in copies}
    for v, new in fresh.items():
        shapes[v] = [1 if k in new.shared else n for k, n in enumerate(shapes[v])]
    dtypes = {v: fresh[v].array.dtype if v in fresh else v.dtype for v in copies}
    wide = {v: pt.tensor(v.name, dtype=dtypes[v], shape=shapes[v]) for v in copies}
    value = clone_replace(value, {copies[v]: wide[v] for v in copies}, rebuild_strict=False)
    batches = {wide[v]: pt.tensor(v.name, dtype=v.dtype, shape=(None, *shapes[v])) for v in used}
    value = vectorize_graph(value, batches)
    inputs = [*batches.values(), *(wide[v] for v in fresh)]
    # NumPy is as fast as compiled code here, and needs no compilation
    return pytensor.function(inputs, value, mode=Mode("py", "fast_compile"), on_unused_input="ignore")


def _compute_blocks(compute: Callable[..., Array], flat: list[Array], data: list[Array]) -> Array:
    first = compute(*[values[:1] for values in flat], *data)
    p = np.empty((len(flat[0]), *first.shape[1:]))
    largest = max(a.size for a in (first, *data))
    step = min(max(ELEMENTS // largest, 1), BLOCK)
    for start in range(0, len(p), step):
        block = slice(start, start + step)
        p[block] = compute(*[values[block] for values in flat], *data)
    return p


# --- from plain weights


def flatten_chains(posterior: xr.Dataset | xr.DataTree) -> dict[str, Array]:
    """Join the chains of the weights w1, w2 and w3 of a NUTS posterior.

    Parameters
    ----------
    posterior : Dataset or DataTree, with arrays of shape (chain, draw, …)

    Returns
    -------
    dict of arrays, shape (chain * draw, …)

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from hbnn import prediction
    >>> rng = np.random.default_rng(1)
    >>> posterior = xr.Dataset({
    ...     "w1": (("chain", "draw", "feature", "hidden_1"), rng.normal(size=(4, 10, 2, 5))),
    ...     "w2": (("chain", "draw", "hidden_1", "hidden_2"), rng.normal(size=(4, 10, 5, 5))),
    ...     "w3": (("chain", "draw", "hidden_2"), rng.normal(size=(4, 10, 5))),
    ... })
    >>> {name: w.shape for name, w in prediction.flatten_chains(posterior).items()}
    {'w1': (40, 2, 5), 'w2': (40, 5, 5), 'w3': (40, 5)}
    """
    arrays = {name: np.asarray(posterior[name]) for name in WEIGHTS}
    return {name: w.reshape(-1, *w.shape[2:]) for name, w in arrays.items()}


def combine_weights(posterior: Named | xr.DataTree) -> dict[str, Array]:
    """The weights of every group of a hierarchical posterior, w = mu + sd z, and its biases likewise.

    Parameters
    ----------
    posterior : Dataset, DataTree or mapping of arrays, shape (chain, draw, …)
        ``mu1``, ``sd1``, ``z1``, ``mu2``, …, and ``bias_mu1``, ``bias_z1``, … where there are biases. An sd is one
        number a layer, or one for each connection.

    Returns
    -------
    dict of arrays, shape (chain, draw, group, …)
        w1, w2, …, the last without an axis for its single output; with b1, b2, … where there are biases.

    Raises
    ------
    ValueError
        When there is no such variable.

    Examples
    --------
    Four chains of ten draws, for three groups:

    >>> import numpy as np
    >>> from hbnn import prediction
    >>> rng = np.random.default_rng(1)
    >>> posterior = {
    ...     "mu1": rng.normal(size=(4, 10, 2, 5)), "mu2": rng.normal(size=(4, 10, 5)),
    ...     "sd1": np.ones((4, 10)), "sd2": np.zeros((4, 10)),
    ...     "z1": rng.normal(size=(4, 10, 3, 2, 5)), "z2": rng.normal(size=(4, 10, 3, 5)),
    ... }
    >>> weights = prediction.combine_weights(posterior)
    >>> {name: w.shape for name, w in weights.items()}
    {'w1': (4, 10, 3, 2, 5), 'w2': (4, 10, 3, 5)}
    >>> bool(np.ptp(weights["w2"], axis=2).any())  # with an sd of 0 groups do not differ
    False
    """
    if "mu1" not in posterior:
        raise ValueError(f"posterior holds {', '.join(posterior)}; wanted: mu1, sd1, z1, mu2, …")
    weights, k = {}, 1
    while f"mu{k}" in posterior:
        sd = np.asarray(posterior[f"sd{k}"])
        for name, prefix in {f"w{k}": "", f"b{k}": "bias_"}.items():
            if f"{prefix}mu{k}" in posterior:
                mu, z = (np.asarray(posterior[f"{prefix}{part}{k}"]) for part in ("mu", "z"))
                one_a_layer = sd.ndim == 2  # else one for each connection
                wide = sd.reshape(*sd.shape, *[1] * (z.ndim - 2)) if one_a_layer else sd[:, :, None]
                weights[name] = mu[:, :, None] + wide * z
        k += 1
    return weights


def _list_layers(weights: Named | xr.DataTree) -> list[str]:
    """The names w1, w2, … that are there."""
    return [name for name in (f"w{k}" for k in range(1, len(weights) + 1)) if name in weights]


def _check_layers(arrays: dict[str, Array], axes: tuple[str, ...]) -> None:
    """Raise ValueError unless w1, b1, w2, … all begin with the axes of w1, named in `axes`, and fit the layer below."""
    first, before = arrays["w1"], "X"
    if first.ndim != len(axes) + 1 + ("w2" in arrays):
        raise ValueError(f"w1 has shape {first.shape}; wanted: ({', '.join(axes)}, in, out)")
    start, below = first.shape[: len(axes)], first.shape[len(axes) : len(axes) + 1]
    for name in sorted(arrays, key=lambda name: (int(name[1:]), name[0] == "b")):
        shape = arrays[name].shape
        out = shape[len(axes) + 1 : len(axes) + 2] if name[0] == "w" else ()  # a single output has no axis
        if shape != (wanted := (*start, *below, *out)):
            raise ValueError(f"{name} has shape {shape}; wanted: {wanted}, to fit {before}")
        if name[0] == "w":
            below, before = out, name


def predict_groups(posterior: Named | xr.DataTree, X: ArrayLike, *, activation: Literal["tanh", "relu"]) -> Floats:
    """P(y = 1) of each group's network, draw by draw.

    Parameters
    ----------
    posterior : Dataset, DataTree or mapping of arrays, shape (chain, draw, …)
        Of a hierarchical network, as for `combine_weights`; or the weights w1, w2, … of every group, (chain, draw,
        group, …), the last without an axis for its single output, and the biases b1, b2, … where there are any.
    X : array_like, shape (group, obs, feature) or (obs, feature)
        The latter: the same points for every group.
    activation : {"tanh", "relu"}
        Of the model that the draws come from.

    Returns
    -------
    array, shape (chain, draw, group, obs)

    Raises
    ------
    ValueError
        For points that are masked or do not fit the weights, layers that are missing or do not fit together, and an
        activation that is unknown.

    Examples
    --------
    Goes on from `combine_weights`.

    >>> X = rng.normal(size=(100, 2))
    >>> p = prediction.predict_groups(posterior, X, activation="tanh")
    >>> p.shape  # chains, draws, groups, points
    (4, 10, 3, 100)
    >>> bool(((p > 0) & (p < 1)).all())
    True
    """
    found = posterior if "w1" in posterior else combine_weights(posterior)
    weights, biases = _arrange_layers(found, ("chain", "draw", "group"))
    n_chains, n_draws, n_groups, n_feature = weights[0].shape[:4]
    refuse_masked(X, "X")
    X = np.asarray(X, dtype=float)
    if X.ndim not in (2, 3) or X.shape[-1] != n_feature or (X.ndim == 3 and len(X) != n_groups):
        raise ValueError(f"X has shape {X.shape}; wanted: ({n_groups}, obs, {n_feature}) or (obs, {n_feature})")
    p = np.empty((n_chains * n_draws, n_groups, X.shape[-2]))
    flat = [w.reshape(-1, *w.shape[2:]) for w in weights]
    flat[-1] = flat[-1][..., None]
    shifts = [None if b is None else b.reshape(len(p), n_groups, 1, -1) for b in biases]
    for block, logit in _compute_logits(flat, shifts, X, activation, BLOCK):
        p[block] = expit(logit)[..., 0]
    return p.reshape(n_chains, n_draws, *p.shape[1:])


def _arrange_layers(found: Named | xr.DataTree, axes: tuple[str, ...]) -> tuple[list[Array], list[Array | None]]:
    """The weights of all layers, and their biases, which fit together, or ValueError."""
    numbers = range(1, sum(str(name)[:1] == "w" and str(name)[1:].isdigit() for name in found) + 1)
    names = [f"w{k}" for k in numbers]
    wanted = names + [f"b{k}" for k in numbers if any(f"b{j}" in found for j in numbers)]
    if lacking := [name for name in wanted if name not in found]:
        raise ValueError(f"{', '.join(lacking)} is lacking; wanted: weights of each layer, and biases of each or none")
    arrays = {name: np.asarray(found[name]) for name in wanted}
    _check_layers(arrays, axes)
    return [arrays[name] for name in names], [arrays.get(f"b{name[1:]}") for name in names]


def _compute_logits(
    weights: Sequence[Array], biases: Sequence[Array | None], X: Floats, activation: str, n: int
) -> Iterator[tuple[slice, Floats]]:
    """The outputs of networks, n draws at a time: the hidden units of all draws at once would fill a Binder pod."""
    if activation not in _ACTIVATIONS:
        raise ValueError(f"activation={activation!r}; wanted: one of {', '.join(_ACTIVATIONS)}, or `predict`")
    for start in range(0, len(weights[0]), n):
        block, h = slice(start, start + n), X
        for k, (w, b) in enumerate(zip(weights, biases, strict=True), 1):
            h = h @ w[block] if b is None else h @ w[block] + b[block]
            h = _ACTIVATIONS[activation](h) if k < len(weights) else h
        yield block, h


def predict_probability(weights: Named, X: ArrayLike, *, activation: Literal["tanh", "relu"]) -> Floats:
    """P(y = 1) of one network at each point, draw by draw.

    Parameters
    ----------
    weights : mapping of arrays
        ``w1`` (draw, feature, hidden_1), …, the last without an axis for its single output, as ``w3`` (draw, hidden_2);
        and the biases b1, b2, … where there are any.
    X : array_like, shape (obs, feature)
    activation : {"tanh", "relu"}
        Of the model that the draws come from.

    Returns
    -------
    array, shape (draw, obs)

    Raises
    ------
    ValueError
        As `predict_groups`, in whose words this is one chain and one group.

    Examples
    --------
    Goes on from `flatten_chains`. Without biases, the opposite point has the opposite answer.

    >>> weights, X = prediction.flatten_chains(posterior), rng.normal(size=(100, 2))
    >>> p, opposite = (prediction.predict_probability(weights, points, activation="tanh")
    ...                for points in (X, -X))
    >>> p.shape  # draws, points
    (40, 100)
    >>> bool(np.allclose(p + opposite, 1))
    True
    """
    arrays = {name: np.asarray(weights[name])[None, :, None] for name in weights}
    return predict_groups(arrays, X, activation=activation)[0, :, 0]


def predict_classes(weights: Named, X: ArrayLike, *, activation: Literal["tanh", "relu"]) -> Floats:
    """Class probabilities of one network, draw by draw.

    Parameters
    ----------
    weights : mapping of arrays
        ``w1`` (draw, pixel, hidden_1), ``b1`` (draw, hidden_1), … to the last, (draw, …, class).
    X : array_like, shape (obs, pixel) or (obs, rows, columns)
        Images from 0 to 1.
    activation : {"tanh", "relu"}
        Of the model that the draws come from.

    Returns
    -------
    array, shape (draw, obs, class)

    Raises
    ------
    ValueError
        For images of another size, NaN or values outside [0, 1]; for layers that are missing or do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import prediction
    >>> rng = np.random.default_rng(1)
    >>> shapes = {"w1": (64, 8), "w2": (8, 8), "w3": (8, 10),
    ...           "b1": (8,), "b2": (8,), "b3": (10,)}
    >>> weights = {name: rng.normal(size=(5, *shape)) for name, shape in shapes.items()}
    >>> p = prediction.predict_classes(weights, rng.uniform(size=(3, 8, 8)), activation="tanh")
    >>> p.shape  # draws, images, classes
    (5, 3, 10)
    >>> bool(np.allclose(p.sum(axis=2), 1))
    True
    """
    layers, biases = _arrange_layers(weights, ("draw",))
    X = check_images(X, layers[0].shape[1])
    shifts = [None if b is None else b[:, None] for b in biases]
    return np.concatenate([softmax(a, axis=-1) for _, a in _compute_logits(layers, shifts, X, activation, 1)])


def join_groups(trees: Sequence[xr.DataTree]) -> dict[str, Array]:
    """The weights of groups that were sampled one by one, as `predict_groups` takes them.

    Parameters
    ----------
    trees : sequence of DataTree
        What `sampling.sample_groups` returns.

    Returns
    -------
    dict of arrays, shape (chain, draw, group, …)
        w1, w2, … (and b1, …).

    Raises
    ------
    ValueError
        For an empty list, posteriors without ``w1``, and one whose weights have another shape than the first one's.

    Examples
    --------
    Random numbers stand for the posteriors of three groups:

    >>> import numpy as np
    >>> import xarray as xr
    >>> from hbnn import prediction
    >>> rng, trees = np.random.default_rng(1), []
    >>> for _ in range(3):
    ...     w1 = ("chain", "draw", "feature", "hidden"), rng.normal(size=(4, 10, 2, 5))
    ...     w2 = ("chain", "draw", "hidden"), rng.normal(size=(4, 10, 5))
    ...     trees.append(xr.DataTree.from_dict({"posterior": xr.Dataset({"w1": w1, "w2": w2})}))
    >>> weights = prediction.join_groups(trees)
    >>> weights["w1"].shape  # chains, draws, groups, features, units
    (4, 10, 3, 2, 5)
    >>> prediction.predict_groups(weights, rng.normal(size=(100, 2)), activation="tanh").shape
    (4, 10, 3, 100)
    """
    if not len(trees):
        raise ValueError("trees is empty; wanted: results of sampling.sample_groups")
    posteriors = [tree["posterior"].to_dataset() for tree in trees]
    first = posteriors[0]
    names = _list_layers(first)
    if not names:
        raise ValueError("the posteriors hold no w1; wanted: results of sampling.sample_groups")
    names = [*names, *(name for layer in names if (name := f"b{layer[1:]}") in first)]
    for k, posterior in enumerate(posteriors):
        for name in names:
            shape = posterior[name].shape if name in posterior else "no"
            if shape != first[name].shape:
                raise ValueError(f"trees[{k}] has {name} of shape {shape}; wanted: {first[name].shape}, as trees[0]")
    return {name: np.stack([posterior[name].values for posterior in posteriors], axis=2) for name in names}
