"""Points in rows, in any order, each with the number of its group: the order that sorts them into groups.

A counting sort costs a few microseconds for a thousand rows, so it runs at each gradient, and data may be exchanged.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key
from pytensor.tensor.variable import TensorVariable

from hbnn._types import Array
from hbnn.fusion import _layers

OUTSIDE = int(np.iinfo("int64").min)  # the group of a row that belongs to none


class SortRows(Op):
    """The order in which rows stand group by group.

    Inputs are group (row,), the number of groups and that of rows. A row whose group is `OUTSIDE` is left out. Outputs:

    - order (row that counts,) and first (group + 1,): group g stands in `order` from ``first[g]`` to ``first[g + 1]``;
    - place (row that counts,), which of the rows that count each of these is: `order` where all count.
    """

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        return Apply(self, [pt.cast(value, "int64") for value in inputs], [pt.lvector() for _ in range(3)])

    def perform(self, node: Apply, inputs: Sequence[Array], outputs: Sequence[list[Array]]) -> None:
        for output, value in zip(outputs, _sort_rows(*inputs), strict=True):
            output[0] = value


def _sort_rows(group: Array, number: Array, n_rows: Array) -> tuple[Array, Array, Array]:
    """In Python and in Numba."""
    n_groups = number.item()
    if group.shape[0] != n_rows.item():
        raise ValueError("the index of groups has another length than X; wanted: one group for each row")
    first = np.zeros(n_groups + 1, np.int64)
    for g in group:
        if g != OUTSIDE:
            if g < -n_groups or g >= n_groups:
                raise ValueError("a row has a group that has no weights; wanted: 0 to the number of groups - 1")
            first[(g if g >= 0 else g + n_groups) + 1] += 1  # a negative one counts from the end, as an index does
    for g in range(n_groups):
        first[g + 1] += first[g]
    filled, kept = first.copy(), 0
    order, place = np.empty(first[n_groups], np.int64), np.empty(first[n_groups], np.int64)
    for row, value in enumerate(group):
        if value != OUTSIDE:
            g = value if value >= 0 else value + n_groups
            order[filled[g]], place[filled[g]] = row, kept
            filled[g] += 1
            kept += 1
    return order, first, place


@register_funcify_and_cache_key(SortRows)
def _dispatch_numba(op: SortRows, node: Apply, **kwargs: Any) -> tuple[Callable, str]:
    return numba_njit(_sort_rows), _layers.make_cache_key(__file__, "SortRows")


def _register_jax() -> None:
    """The same for NumPyro and BlackJAX, to which PyMC hands data as constants."""
    try:
        import jax
    except ImportError:
        return
    from pytensor.link.jax.dispatch import jax_funcify

    @jax_funcify.register(SortRows)
    def _dispatch_jax(op: SortRows, node: Apply, **kwargs: Any) -> Callable:
        def sort(*inputs: Any) -> tuple[Any, ...]:
            with jax.ensure_compile_time_eval():
                return tuple(jax.numpy.asarray(value) for value in _sort_rows(*map(np.asarray, inputs)))

        return sort


_register_jax()


def arrange(
    X: Any, weights: Sequence[Any], biases: Sequence[Any], group: Any
) -> tuple[TensorVariable, list[TensorVariable], list[TensorVariable], list[TensorVariable], bool]:
    """Points, weights, biases and the outputs of `SortRows`, as the Ops want them; and whether the axis of groups was
    added, since there is one network.
    """
    weights, biases = [pt.as_tensor(w) for w in weights], [pt.as_tensor(b) for b in biases]
    if biases and len(biases) != len(weights):
        raise ValueError(f"{len(biases)} biases for {len(weights)} layers; wanted: one for each layer, or none")
    X = pt.as_tensor(X)
    if group is not None:
        return X, weights, biases, SortRows()(group, weights[0].shape[0], X.shape[0]), False
    if X.ndim == 2:
        return X[None], [w[None] for w in weights], [b[None] for b in biases], [], True
    return X, weights, biases, [], False
