"""The likelihood of many small networks and its gradient in one pass over the points, for NUTS.

NUTS asks for a million gradients. In the stock graph most of each goes into tanh, one scalar call after the other, and
into a library call for every little matrix. Here one function walks through the groups with 64 points at a time,
forward and back, while everything it needs stays in the processor's nearest cache, and treats eight points (sixteen
in float32) at once (`_simd`). The posterior is the same: `test_fused.py` compares value and gradient with
the graph and with JAX to 1e-9, and tanh with NumPy's to 3e-15.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type, grad_not_implemented
from pytensor.graph.basic import Apply, Constant
from pytensor.link.numba.dispatch.basic import register_funcify_and_cache_key
from pytensor.tensor.variable import TensorVariable

from hbnn._refused import Refused
from hbnn.fusion import _layers
from hbnn.fusion._activations import Activation, make_functions, njit
from hbnn.fusion._layers import CHUNK, Networks, list_rows, make_networks
from hbnn.fusion._rows import arrange
from hbnn.fusion._simd import LANES, absolute, add_up, at_least, choose_positive, fma, load, splat, store


@lru_cache
def make_output(dtype: str) -> Callable:
    """The Bernoulli log likelihood of one chunk, compiled.

    log(1 + exp(-|z|)) would cost a logarithm a point. The product of the 1 + exp(-|z|) costs a multiplication, and one
    logarithm for all: 64 factors of at most 2 stay below 2**64.
    """
    lanes, number = LANES[dtype], np.dtype(dtype).type
    zero, half, one = number(0), number(0.5), number(1)
    expm1_negative = make_functions(dtype)[0]

    @njit
    def compare(points, h, delta, row, n):
        """Log likelihood of `n` points with logits in `row` of `h`; into `delta` go residuals, label minus probability.

        Row 0 of `points` holds the labels, row 1 ones where a point counts and zeros where not; row 2 is used up.
        """
        linear, factors = splat(zero), splat(one)
        for k in range(0, n, lanes):
            y, counts, logit = load(points, 0, k), load(points, 1, k), load(h, row, k)
            e = splat(one) + expm1_negative(splat(-half) * absolute(logit))
            q = splat(one) / (splat(one) + e)
            p = choose_positive(logit, q, e * q)
            linear = linear + counts * (y * logit - at_least(logit, splat(zero)))
            factors = factors * fma(counts, e, splat(one))
            store(delta, row, k, counts * (y - p))
        store(points, 2, 0, factors)
        product = 1.0
        for lane in range(lanes):
            product *= points[2, lane]
        return add_up(linear) - math.log(product)

    return compare


@lru_cache
def make_kernel(activations: tuple[Activation, ...], dtype: str, has_bias: bool) -> Callable:
    """The log likelihood and its gradient, compiled.

    Returns
    -------
    function of X (row, feature), y (row that counts,), order, first and place as of `_rows.SortRows`, theta (group,
    parameter), sizes and plan as of `_layers.make_networks`, and the array that the gradient is written to, shaped like
    theta; gives the sum in nats. A row of theta holds for each layer its weights, row by row, and its biases.
    """
    lanes, number = LANES[dtype], np.dtype(dtype).type
    zero, one = number(0), number(1)
    find_places, go_up, go_back = make_networks(activations, dtype, has_bias)
    compare = make_output(dtype)

    @njit
    def kernel(X, y, order, first, place, theta, sizes, plan, gradient):
        n_groups, n_feature, last = theta.shape[0], X.shape[1], len(sizes) - 1
        places, n_rows = find_places(sizes, plan)
        if sizes[0] != n_feature or theta.shape[1] != places[0][last]:
            raise ValueError("weights do not fit X; wanted: (group, feature, hidden_1), (group, hidden_1, …), …")
        if first.shape[0] != n_groups + 1 or order.shape[0] > X.shape[0] or first[n_groups] != order.shape[0]:
            raise ValueError("the groups do not fit X and the weights; wanted: one group for each row")
        if y.shape[0] != order.shape[0]:
            raise ValueError("y has another length than X; wanted: one label for each row that counts")
        # rows of 512 bytes would share few places of the nearest cache
        h, logit = np.empty((n_rows, CHUNK + lanes), number), places[1][last]
        delta, points = np.empty((logit + 1, CHUNK + lanes), number), np.empty((3, CHUNK), number)
        gradient[:] = zero
        total, strange = 0.0, 0
        for g in range(n_groups):
            for start in range(first[g], first[g + 1], CHUNK):
                m = min(CHUNK, first[g + 1] - start)
                n = (m + lanes - 1) // lanes * lanes  # points beyond the last one are zeros that do not count
                for f in range(n_feature):
                    for k in range(m):
                        h[f, k] = X[order[start + k], f]
                    for k in range(m, n):
                        h[f, k] = zero
                for k in range(m):
                    label = y[place[start + k]]
                    points[0, k], points[1, k] = label, one
                    strange |= label & -2  # a bit beside the lowest
                for k in range(m, n):
                    points[0, k], points[1, k] = zero, zero
                go_up(theta, g, h, n, sizes, plan, places)
                total += compare(points, h, delta, logit, n)
                go_back(theta, gradient, g, h, delta, n, sizes, plan, places, False)
        if strange != 0:
            raise Refused("y holds labels other than 0 and 1; wanted: 0 and 1")
        return total

    return kernel


class NetworkLogLik(Networks):
    """`network_loglik` as a PyTensor Op: points, labels, weights, biases in; the log likelihood and its gradients out.

    Labels are (group, obs), or one for each row that counts; the log likelihood is summed and returned in float64.
    """

    def make_node(self, X, y, *inputs):
        n_index = 3 * self.in_rows
        index = [pt.cast(pt.as_tensor(value), "int64") for value in inputs[:n_index]]
        y = _read_labels(y, 1 if self.in_rows else 2)
        X, *parameters = self.read_inputs(X, inputs[n_index:])
        outputs = [pt.tensor(dtype=self.dtype, shape=value.type.shape) for value in parameters]
        return Apply(self, [X, y, *index, *parameters], [pt.dscalar(), *outputs])

    def perform(self, node, inputs, outputs):
        X, y, *inputs = (np.ascontiguousarray(value) for value in inputs)
        if self.in_rows:
            points, (order, first, place), parameters = X, inputs[:3], inputs[3:]
        else:
            (points, order, first), parameters = list_rows(X), inputs
            place = order
            if y.shape != X.shape[:2]:
                raise ValueError(
                    f"y has shape {y.shape} and X {X.shape}; wanted: (group, obs), one label for each point"
                )
        weights, biases, theta, sizes = self.stack(len(first) - 1, X.shape[-1], parameters)
        if sizes[-1] != 1:
            raise ValueError(f"weights[{len(sizes) - 2}] has {sizes[-1]} outputs; wanted: 1, the logit")
        gradient, kernel = np.empty_like(theta), make_kernel(*self.kernel_key)
        total = kernel(points, y.ravel(), order, first, place, theta, sizes, self.plan, gradient)
        values = np.asarray(total), *_layers.cut_parts(gradient, weights, biases)
        for output, value in zip(outputs, values, strict=True):
            output[0] = value

    def connection_pattern(self, node):
        n_outputs, n_index = len(node.outputs), 3 * self.in_rows
        return [[not 1 <= i <= 1 + n_index] * n_outputs for i in range(len(node.inputs))]

    def pullback(self, inputs, outputs, cotangents):
        if not all(isinstance(c.type, DisconnectedType) for c in cotangents[1:]):
            raise NotImplementedError("second derivatives of the fused likelihood; wanted: the model before fuse")
        points = grad_not_implemented(self, 0, inputs[0], "only with respect to weights and biases, not to points")
        slopes = [pt.cast(cotangents[0], self.dtype) * gradient for gradient in outputs[1:]]
        return [points, *(disconnected_type() for _ in range(1 + 3 * self.in_rows)), *slopes]


def _read_labels(y, n_axes):
    y = pt.as_tensor(y)
    if y.type.numpy_dtype.kind not in "iub":
        raise TypeError(f"y has type {y.type.dtype}; wanted: integers")
    if y.ndim != n_axes:
        raise TypeError(f"y has {y.ndim} axes; wanted: {n_axes}")
    if isinstance(y, Constant) and not np.isin(y.data, (0, 1)).all():
        raise Refused("y holds labels other than 0 and 1; wanted: 0 and 1")
    return pt.cast(y, "int32")


@register_funcify_and_cache_key(NetworkLogLik)
def _dispatch_numba(op, node, **kwargs):
    w, b, _ = _layers.name_parts(op.n_layers, op.has_bias)
    if op.in_rows:
        index = ", order, first, place"
        rows = ["    points, labels, n_groups = np.ascontiguousarray(X), np.ascontiguousarray(y), first.shape[0] - 1"]
    else:
        index = ""
        rows = [
            "    if y.shape[0] != X.shape[0] or y.shape[1] != X.shape[1]:",
            "        raise ValueError('y has another shape than X; wanted: (group, obs), one label for each point')",
            "    points, order, first = list_rows(X)",
            "    labels, place, n_groups = np.ascontiguousarray(y).reshape(y.size), order, X.shape[0]",
        ]
    lines = [
        f"def network_loglik(X, y{index}, {', '.join(w + b)}):",
        *rows,
        *_layers.write_theta(op.n_layers, op.has_bias, "points.shape[1]"),
        f"    if sizes[{op.n_layers}] != 1:",
        "        raise ValueError('the last of weights has several outputs; wanted: 1, the logit')",
        "    gradient = np.empty(theta.shape, theta.dtype)",
        "    total = kernel(points, labels, order, first, place, theta, sizes, plan, gradient)",
        *_layers.write_gradients(op.n_layers, op.has_bias),
        f"    return np.asarray(total), {', '.join(f'd{name}' for name in w + b)}",
    ]
    return _layers.compile_lines(op, "network_loglik", lines, __file__, kernel=make_kernel(*op.kernel_key))


def _register_jax():
    """The same Op as a plain JAX expression, for NumPyro and BlackJAX, where JAX is installed."""
    try:
        import jax
    except ImportError:
        return
    from pytensor.link.jax.dispatch import jax_funcify

    @jax_funcify.register(NetworkLogLik)
    def _dispatch_jax(op, node, **kwargs):
        def add_up_loglik(parameters, X, y, order=None, first=None, place=None):
            logit = _layers.apply_layers_jax(op, X, order, first, parameters)[..., 0]
            y = y[place] if op.in_rows else y
            return (y * logit - jax.nn.softplus(logit)).sum(dtype="float64")

        def network_loglik(X, y, *inputs):
            index, parameters = inputs[: 3 * op.in_rows], inputs[3 * op.in_rows :]
            total, gradients = jax.value_and_grad(add_up_loglik)(parameters, X, y, *index)
            return total, *gradients

        return network_loglik


_register_jax()


def network_loglik(
    X: Any,
    y: Any,
    weights: Sequence[Any],
    *,
    biases: Sequence[Any] = (),
    group: Any = None,
    activation: Activation | tuple[Activation, ...] = "tanh",
    dtype: str = "float64",
) -> TensorVariable:
    """Symbolic Bernoulli log likelihood of one network per group, or of a single one.

    Parameters
    ----------
    X : tensor, shape (group, obs, feature) or (row, feature)
        Rows for a single network or with `group`.
    y : tensor of 0 and 1, shape (group, obs) or (row,)
    weights : sequence of tensors, shape (group, n_in, n_out)
        Layer by layer, or (n_in, n_out) for a single network; the last one may lack the axis of length 1.
    biases : sequence of tensors, shape (group, n_out) or (n_out,)
        One for each layer, or nothing.
    group : tensor of int, shape (row,), optional
        Which network a row belongs to; `_rows.OUTSIDE` for a row that does not count, which has no element in y.
    activation, dtype
        See `_output.network_output`.

    Returns
    -------
    TensorVariable
        A scalar, in nats.

    Raises
    ------
    TypeError
        When an input has another number of axes or another type than wanted, naming it.
    ValueError
        When shapes do not fit together, or for labels other than 0 and 1; at run time where they are known only then.

    References
    ----------
    Rumelhart, Hinton and Williams (1986), Learning Representations by Back-Propagating Errors, Nature 323.

    Examples
    --------
    The log likelihood of 30 labels under a network with 3 hidden units, and the same by NumPy:

    >>> import numpy as np
    >>> from hbnn.fusion._loglik import network_loglik
    >>> rng = np.random.default_rng(1)
    >>> X, y = rng.normal(size=(30, 2)), rng.integers(2, size=30)
    >>> w1, w2 = rng.normal(size=(2, 3)), rng.normal(size=3)
    >>> found = network_loglik(X, y, [w1, w2]).eval()
    >>> logit = np.tanh(X @ w1) @ w2
    >>> bool(np.isclose(found, np.sum(y * logit - np.log1p(np.exp(logit)))))
    True
    """
    X, weights, biases, index, is_single = arrange(X, weights, biases, group)
    y = pt.as_tensor(y)[None] if is_single else y
    if weights and weights[-1].ndim == 2:
        weights[-1] = weights[-1][..., None]
    if biases and biases[-1].ndim == 1:
        biases[-1] = biases[-1][:, None]
    op = NetworkLogLik(len(weights), bool(biases), activation, dtype, group is not None)
    return op(X, y, *index, *weights, *biases)[0]
