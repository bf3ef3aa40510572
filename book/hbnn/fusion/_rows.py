"""Points in rows, in any order, each with the number of its group: sorted into groups, or the order that does it.

A counting sort costs a few microseconds for a thousand rows, so it runs at each gradient, and data may be exchanged.
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key

from hbnn.fusion import _layers

OUTSIDE = np.iinfo("int64").min  # the group of a row that belongs to none


class StackRows(Op):
    """Rows of points, each with the number of its group, as `network_loglik` wants them: group after group.

    Inputs are X (row, feature), y (row,), group (row,), and the number of groups. A row whose group is `OUTSIDE` is
    left out and has no element in y. Outputs are X (group, obs, feature), y (group, obs), n_obs (group,); the longest
    group is as long as the obs axis, and short ones are filled up with zeros.
    """

    __props__ = ()

    def make_node(self, X, y, group, n_groups):
        inputs = [pt.as_tensor(X), pt.cast(y, "int32"), pt.cast(group, "int64"), pt.cast(n_groups, "int64")]
        X = pt.tensor(dtype=inputs[0].dtype, shape=(None, None, inputs[0].type.shape[1]))
        return Apply(self, inputs, [X, pt.imatrix(), pt.lvector()])

    def perform(self, node, inputs, outputs):
        for output, value in zip(outputs, _stack_rows(*inputs), strict=True):
            output[0] = value


def _stack_rows(X, y, group, number):
    """`StackRows` of arrays, in Python and in Numba."""
    n_groups, kept = number.item(), 0
    n_obs = np.zeros(n_groups, np.int64)
    if group.shape[0] != X.shape[0]:
        raise ValueError("the index of groups has another length than X; wanted: one group for each row")
    for g in group:
        if g != OUTSIDE:
            if g < -n_groups or g >= n_groups:
                raise ValueError("a row has a group that has no weights; wanted: 0 to the number of groups - 1")
            n_obs[g] += 1  # a negative one counts from the end, as an index does
            kept += 1
    if y.shape[0] != kept:
        raise ValueError("y has another length than X; wanted: one label for each row that counts")
    longest = n_obs.max() if n_groups else 0
    points, labels = np.zeros((n_groups, longest, X.shape[1]), X.dtype), np.zeros((n_groups, longest), np.int32)
    n_obs[:] = 0
    kept = 0
    for row, g in enumerate(group):
        if g != OUTSIDE:
            for f in range(X.shape[1]):
                points[g, n_obs[g], f] = X[row, f]
            labels[g, n_obs[g]] = y[kept]
            n_obs[g] += 1
            kept += 1
    return points, labels, n_obs


class SortRows(Op):
    """The order in which rows stand group by group: group (row,) and the number of groups in; order (row,) and first
    (group + 1,) out, where group g stands in `order` from ``first[g]`` to ``first[g + 1]``.
    """

    __props__ = ()

    def make_node(self, group, n_groups):
        return Apply(self, [pt.cast(group, "int64"), pt.cast(n_groups, "int64")], [pt.lvector(), pt.lvector()])

    def perform(self, node, inputs, outputs):
        for output, value in zip(outputs, _sort_rows(*inputs), strict=True):
            output[0] = value


def _sort_rows(group, number):
    """`SortRows` of arrays, in Python and in Numba."""
    n_groups = number.item()
    first, order = np.zeros(n_groups + 1, np.int64), np.empty(group.shape[0], np.int64)
    for g in group:
        if g < -n_groups or g >= n_groups:
            raise ValueError("a row has a group that has no weights; wanted: 0 to the number of groups - 1")
        first[(g if g >= 0 else g + n_groups) + 1] += 1  # a negative one counts from the end, as an index does
    for g in range(n_groups):
        first[g + 1] += first[g]
    filled = first.copy()
    for row, value in enumerate(group):
        g = value if value >= 0 else value + n_groups
        order[filled[g]] = row
        filled[g] += 1
    return order, first


def _register(kind, function):
    """The same function for Numba; and for NumPyro and BlackJAX, to which PyMC hands data as constants."""

    @register_funcify_and_cache_key(kind)
    def _dispatch_numba(op, node, **kwargs):
        return numba_njit(function), _layers.digest(__file__, kind.__name__)

    try:
        import jax
    except ImportError:
        return
    from pytensor.link.jax.dispatch import jax_funcify

    @jax_funcify.register(kind)
    def _dispatch_jax(op, node, **kwargs):
        def sort(*inputs):
            with jax.ensure_compile_time_eval():
                return tuple(jax.numpy.asarray(value) for value in function(*map(np.asarray, inputs)))

        return sort


_register(StackRows, _stack_rows)
_register(SortRows, _sort_rows)
