"""Relabelling hidden units: the changes of a network's weights that change no prediction, and how to undo them.

A layer of n tanh units can be permuted, and each unit's sign flipped with all weights into and out of it, in 2^n n!
ways without a trace in the output: signed permutations. Chains therefore disagree on weights without need.
`align` picks for each draw the labelling nearest to a reference, and then weights can be compared.

Weights are a dict ``w1`` (draw, …, feature, hidden_1), ``w2`` (draw, …, hidden_1, hidden_2), …, the last (draw, …,
hidden_n) for a single output. "…" is nothing, or one axis such as the categories: all members of a draw are then
relabelled alike, as a hierarchical network demands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from hbnn._checks import check_count, check_seed
from hbnn._types import Array, Floats, Named

_MAX_SWEEPS = 50


@dataclass(frozen=True)
class Labelling:
    """One signed permutation for each draw and hidden layer.

    Attributes
    ----------
    order : tuple of arrays of int, shape (draw, unit)
        For each hidden layer; the unit that takes place u is order[…, u].
    sign : tuple of arrays of +1 and -1, shape (draw, unit)
        For each hidden layer, the sign that it takes there.

    Examples
    --------
    Two hidden units change places, and one of them its sign:

    >>> import numpy as np
    >>> from hbnn import symmetry
    >>> labelling = symmetry.Labelling((np.array([[1, 0]]),), (np.array([[1, -1]]),))
    >>> weights = {"w1": np.array([[[1.0, 2.0]]]), "w2": np.array([[3.0, 4.0]])}
    >>> symmetry.relabel(labelling, weights)
    {'w1': array([[[ 2., -1.]]]), 'w2': array([[ 4., -3.]])}
    """

    order: tuple[Array, ...]
    sign: tuple[Array, ...]

    def __post_init__(self) -> None:
        for order, sign in zip(self.order, self.sign, strict=True):
            if np.shape(order) != np.shape(sign) or np.ndim(order) != 2:
                raise ValueError(
                    f"order has shape {np.shape(order)}, sign {np.shape(sign)}; wanted: (draw, unit) for both"
                )
            if (np.sort(order, axis=1) != np.arange(order.shape[1])).any():
                raise ValueError("order is no permutation of the units; wanted: each unit once in each draw")
            if not np.isin(sign, (-1, 1)).all():
                raise ValueError("sign holds other numbers than 1 and -1; wanted: one sign for each unit")


def draw_labelling(n_draws: int, n_hidden: Sequence[int], *, seed: int) -> Labelling:
    """Draw a random signed permutation of each draw's units in each hidden layer, all equally likely.

    Parameters
    ----------
    n_draws : int
    n_hidden : sequence of int
        Units in each hidden layer.
    seed : int

    Returns
    -------
    Labelling

    Examples
    --------
    >>> from hbnn import symmetry
    >>> labelling = symmetry.draw_labelling(2, [3, 3], seed=1)
    >>> labelling.order[0]  # of the first hidden layer, (draw, unit)
    array([[0, 1, 2],
           [2, 0, 1]])
    >>> labelling.sign[0]
    array([[ 1, -1, -1],
           [ 1, -1, -1]])
    """
    check_seed(seed)
    check_count(n_draws, "n_draws")
    if np.ndim(n_hidden) != 1 or not all(isinstance(n, int | np.integer) and n >= 1 for n in n_hidden):
        raise ValueError(f"n_hidden={n_hidden}; wanted: numbers of units, each at least 1")
    rng = np.random.default_rng(seed)
    order = tuple(rng.permuted(np.tile(np.arange(n), (n_draws, 1)), axis=1) for n in n_hidden)
    return Labelling(order, tuple(rng.choice([-1, 1], size=(n_draws, n)) for n in n_hidden))


def relabel(labelling: Labelling, weights: Named) -> dict[str, Array]:
    """Relabel the hidden units of every draw. No prediction of a tanh network without biases changes.

    Parameters
    ----------
    labelling : Labelling
    weights : mapping of arrays, shape (draw, …)
        As the module describes them.

    Returns
    -------
    dict of arrays

    Raises
    ------
    ValueError
        For other layers, widths or draws than in `labelling`.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import prediction, symmetry
    >>> rng = np.random.default_rng(1)
    >>> shapes = {"w1": (10, 2, 5), "w2": (10, 5, 5), "w3": (10, 5)}
    >>> weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    >>> relabelled = symmetry.relabel(symmetry.draw_labelling(10, [5, 5], seed=1), weights)
    >>> bool(np.allclose(relabelled["w1"], weights["w1"]))
    False
    >>> X = rng.normal(size=(100, 2))
    >>> p = [prediction.predict_probability(w, X, activation="tanh") for w in (weights, relabelled)]
    >>> bool(np.allclose(*p))
    True
    """
    arrays = _check_weights(weights)
    widths = [w.shape[-1] for w in arrays[:-1]]
    found = [order.shape[1] for order in labelling.order]
    if widths != found or len(arrays[0]) != len(labelling.order[0]):
        raise ValueError(
            f"labelling is of {len(labelling.order[0])} draws and {found} units; "
            f"wanted: {len(arrays[0])} draws and {widths} units, as the weights have"
        )
    last = len(arrays) - 1
    relabelled = []
    for k, w in enumerate(arrays):
        if k > 0:  # rows: the units that come in
            w = _permute_units(w, labelling.order[k - 1], labelling.sign[k - 1], axis=-1 if k == last else -2)
        if k < last:  # columns: the units that it makes
            w = _permute_units(w, labelling.order[k], labelling.sign[k], axis=-1)
        relabelled.append(w)
    return dict(zip(weights, relabelled, strict=True))


def _permute_units(w: Array, order: Array, sign: Array, axis: int) -> Array:
    """Units of `w` along `axis` in their new places, with their signs; `order` and `sign` are (draw, unit)."""
    shape = [1] * w.ndim
    shape[0], shape[axis] = order.shape
    return np.take_along_axis(w, order.reshape(shape), axis=axis) * sign.reshape(shape)


def align(
    weights: Named, *, reference: Named | None = None, seed: int, n_passes: int = 3, n_starts: int = 4
) -> tuple[Labelling, Named]:
    """The labelling of each draw in which its weights are nearest to a reference, in the sum of squares.

    One layer's best signed permutation, the others' held, is an assignment problem, which the Hungarian method solves;
    layers take turns until nothing changes. That can end in a local optimum, so several starts are tried and the best
    is kept: from the last layer backwards, from the first layer forwards, the labelling as drawn, and random ones.

    Parameters
    ----------
    weights : mapping of arrays, shape (draw, …)
        As the module describes them.
    reference : mapping of arrays, optional
        The same without the axis of draws; default: the last draw, then the mean of the aligned draws, `n_passes`
        times.
    seed : int
        For the random starts.
    n_passes : int
        At least 1.
    n_starts : int
        At least 3.

    Returns
    -------
    labelling : Labelling
    reference : mapping of arrays
        The one that was used last.

    Raises
    ------
    ValueError
        For weights that make no network, NaN, or a reference of other shapes.

    References
    ----------
    Weight matching of Ainsworth et al. (2023), Git Re-Basin, ICLR, with signs.

    Examples
    --------
    One network, labelled ten times at random; aligned, the ten are the same again:

    >>> import numpy as np
    >>> from hbnn import symmetry
    >>> rng = np.random.default_rng(1)
    >>> network = {"w1": rng.normal(size=(2, 5)), "w2": rng.normal(size=5)}
    >>> same = {name: np.stack([w] * 10) for name, w in network.items()}
    >>> mixed = symmetry.relabel(symmetry.draw_labelling(10, [5], seed=1), same)
    >>> labelling, reference = symmetry.align(mixed, seed=1)
    >>> aligned = symmetry.relabel(labelling, mixed)
    >>> [bool(np.allclose(w["w1"], w["w1"][0])) for w in (mixed, aligned)]
    [False, True]
    """
    arrays = _check_weights(weights)
    check_seed(seed)
    if n_passes < 1 or n_starts < 3:
        raise ValueError(f"n_passes={n_passes}, n_starts={n_starts}; wanted: at least 1 and at least 3")
    given = reference is not None
    reference = {name: np.asarray(w)[-1] for name, w in weights.items()} if reference is None else reference
    wanted = {name: np.shape(w)[1:] for name, w in weights.items()}
    if {name: np.shape(w) for name, w in reference.items()} != wanted:
        raise ValueError(f"reference has shapes {[np.shape(w) for w in reference.values()]}; wanted: {wanted}")
    for turn in range(1 if given else n_passes):
        labelling = _match_to_reference(arrays, [np.asarray(w, float) for w in reference.values()], seed, n_starts)
        if not given and turn < n_passes - 1:
            reference = {name: w.mean(axis=0) for name, w in relabel(labelling, weights).items()}
    return labelling, reference


def _match_to_reference(arrays: list[Array], reference: list[Array], seed: int, n_starts: int) -> Labelling:
    """The best of several descents, draw by draw."""
    n_draws, widths = len(arrays[0]), [w.shape[-1] for w in arrays[:-1]]
    identity = Labelling(
        tuple(np.tile(np.arange(n), (n_draws, 1)) for n in widths), tuple(np.ones((n_draws, n), int) for n in widths)
    )
    starts = [(identity, "out"), (identity, "into"), (identity, "both")]
    starts += [(draw_labelling(n_draws, widths, seed=seed + k), "both") for k in range(n_starts - 3)]
    best = _improve_layer_by_layer(arrays, reference, *starts[0])
    for start, first_look in starts[1:]:
        order, sign, gain = _improve_layer_by_layer(arrays, reference, start, first_look)
        better = gain > best[2] + 1e-12 * np.abs(best[2])
        for k in range(len(widths)):
            best[0][k][better], best[1][k][better] = order[k][better], sign[k][better]
        best[2][better] = gain[better]
    return Labelling(tuple(best[0]), tuple(best[1]))


def _improve_layer_by_layer(
    arrays: list[Array], reference: list[Array], start: Labelling, first_look: str
) -> tuple[list[Array], list[Array], Floats]:
    """Layers take turns, all draws at once, until no labelling changes: order, sign, inner product with the reference.

    In the first sweep a unit is compared by the weights "out" of it, the last layer's first, by those "into" it, the
    first layer's first, or by "both".
    """
    order, sign = [o.copy() for o in start.order], [s.copy() for s in start.sign]
    n_layers = len(order)
    active = np.arange(len(arrays[0]))
    for sweep in range(_MAX_SWEEPS):
        before = [o[active] * s[active] + s[active] for o, s in zip(order, sign, strict=True)]
        look = first_look if sweep == 0 else "both"
        for k in range(n_layers) if look == "into" else reversed(range(n_layers)):
            similar = _compare_units(arrays, reference, order, sign, k, active, look)
            for d, s in zip(active, similar, strict=True):
                rows, columns = linear_sum_assignment(np.abs(s), maximize=True)
                order[k][d, columns] = rows
                sign[k][d, columns] = np.where(s[rows, columns] < 0, -1, 1)
        after = [o[active] * s[active] + s[active] for o, s in zip(order, sign, strict=True)]
        same = np.all([(a == b).all(axis=1) for a, b in zip(after, before, strict=True)], axis=0)
        active = active[~same]
        if len(active) == 0:
            break
    named = {f"w{k}": w for k, w in enumerate(arrays, 1)}
    moved = relabel(Labelling(tuple(order), tuple(sign)), named)
    gains = [(w * r).reshape(len(w), -1).sum(axis=1) for w, r in zip(moved.values(), reference, strict=True)]
    return order, sign, sum(gains[1:], gains[0])


def _compare_units(
    arrays: list[Array], reference: list[Array], order: list[Array], sign: list[Array], k: int, active: Array, look: str
) -> Floats:
    """Inner product of unit i of hidden layer k (as drawn) with unit j of the reference: (active draw, i, j)."""
    product: Any = 0.0
    if look != "into" and k + 1 == len(arrays) - 1:
        out = arrays[k + 1][active]
        product = product + np.einsum("dai,aj->dij", _merge_groups(out, 1), _merge_groups(reference[k + 1][None], 1)[0])
    elif look != "into":
        out = _permute_units(arrays[k + 1][active], order[k + 1][active], sign[k + 1][active], axis=-1)
        to = _merge_groups(reference[k + 1][None], 2)[0]
        product = product + np.einsum("daio,ajo->dij", _merge_groups(out, 2), to, optimize=True)
    if look != "out":
        into = arrays[k][active]
        if k > 0:
            into = _permute_units(into, order[k - 1][active], sign[k - 1][active], axis=-2)
        product = product + np.einsum(
            "dafi,afj->dij", _merge_groups(into, 2), _merge_groups(reference[k][None], 2)[0], optimize=True
        )
    return product


def _merge_groups(w: Array, n_own: int) -> Array:
    """`w` (draw, …, own axes) with exactly one axis between."""
    return w.reshape(len(w), -1, *w.shape[-n_own:])


def _check_weights(weights: Named) -> list[Array]:
    """The arrays of a network, or the ValueError that `align` and `relabel` document."""
    wanted = "wanted: w1 (draw, …, feature, hidden_1), w2 (draw, …, hidden_1, hidden_2), …, the last (draw, …, hidden)"
    if not isinstance(weights, Mapping):
        raise ValueError(f"weights is a {type(weights).__name__}; {wanted.replace('w1', 'a dict, w1', 1)}")
    arrays = [np.asarray(w, dtype=float) for w in weights.values()]
    shapes = ", ".join(str(w.shape) for w in arrays)
    if len(arrays) < 2:
        raise ValueError(f"weights has {len(arrays)} layers; {wanted}")
    *inner, last = arrays
    if any(w.ndim not in (3, 4) or w.ndim != inner[0].ndim for w in inner) or last.ndim != inner[0].ndim - 1:
        raise ValueError(f"weights has shapes {shapes}; {wanted}")
    chained = [w.shape[-1] for w in inner] == [*(w.shape[-2] for w in inner[1:]), last.shape[-1]]
    n_own = [2] * len(inner) + [1]
    if not chained or len({w.shape[:-n] for w, n in zip(arrays, n_own, strict=True)}) > 1 or len(last) == 0:
        raise ValueError(f"weights has shapes {shapes}, which do not fit together; {wanted}")
    if not all(np.isfinite(w).all() for w in arrays):
        raise ValueError("weights holds NaN or infinite numbers; wanted: finite numbers")
    return arrays
