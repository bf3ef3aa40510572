"""The likelihood of many small networks and its gradient in one pass over the points, for NUTS.

NUTS asks for a million gradients. In the stock graph most of each goes into tanh, one scalar call after the other, and
into a library call for every little matrix. Here one function walks through the groups with 64 points at a time,
forward and back, while everything it needs stays in the processor's nearest cache, and treats eight points (sixteen
in float32) at once (`_simd`). The posterior is the same: `tests/test_fused.py` compares value and gradient with
the graph and with JAX to 1e-9, and tanh with NumPy's to 3e-15.
"""

import math
from functools import lru_cache

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type, grad_not_implemented
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import register_funcify_and_cache_key

from hbnn._refused import Refused
from hbnn.fusion import _layers
from hbnn.fusion._layers import CHUNK, make_functions, make_layers, njit
from hbnn.fusion._simd import LANES, absolute, add_up, at_least, choose_positive, fma, load, splat, store

SHORT = "leaves the last points of every group out; wanted: the longest group as long as X, all given together"


@lru_cache
def make_output(dtype):
    """The Bernoulli log likelihood of one chunk, compiled.

    log(1 + exp(-|z|)) would cost a logarithm a point. The product of the 1 + exp(-|z|) costs a multiplication, and one
    logarithm for all: 64 factors of at most 2 stay below 2**64.
    """
    lanes, number = LANES[dtype], np.dtype(dtype).type
    zero, half, one = number(0), number(0.5), number(1)
    expm1_negative = make_functions(dtype)[0]

    @njit
    def compare(points, delta, row, n):
        """Log likelihood of `n` points; the logits in `row` of `delta` become residuals, label minus probability.

        Row 0 of `points` holds the labels, row 1 ones where a point counts and zeros where not; row 2 is used up.
        """
        linear, factors = splat(zero), splat(one)
        for k in range(0, n, lanes):
            y, counts, logit = load(points, 0, k), load(points, 1, k), load(delta, row, k)
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
def make_kernel(activation, dtype, has_bias):
    """The log likelihood and its gradient, compiled.

    Returns
    -------
    function of X (group, obs, feature), y (group, obs), n_obs (group,), theta (group, parameter), sizes (n_layers + 1,)
    and the array that the gradient is written to, shaped like theta; gives the sum in nats. `sizes` counts features,
    hidden units of each layer, and 1; a row of theta holds for each layer its weights, row by row, and its biases.
    """
    lanes, number = LANES[dtype], np.dtype(dtype).type
    zero, one = number(0), number(1)
    move_up, move_out, move_back, add_gradient = make_layers(activation, dtype, has_bias)
    compare, short = make_output(dtype), f"n_obs {SHORT}"

    @njit
    def kernel(X, y, n_obs, theta, sizes, gradient):
        n_groups, longest, n_feature = X.shape
        last = len(sizes) - 2
        if y.shape[0] != n_groups or y.shape[1] != longest:
            raise ValueError("y has another shape than X; wanted: (group, obs), one label for each point")
        if n_obs.shape[0] != n_groups:
            raise ValueError("n_obs has another length than X; wanted: (group,)")
        starts, width = np.empty(last + 2, np.int64), n_feature
        starts[0] = 0
        for layer in range(last + 1):
            starts[layer + 1] = starts[layer] + (sizes[layer] + has_bias) * sizes[layer + 1]
            width = max(width, sizes[layer])
        if sizes[0] != n_feature or theta.shape[0] != n_groups or theta.shape[1] != starts[last + 1]:
            raise ValueError("weights do not fit X; wanted: (group, feature, hidden_1), (group, hidden_1, …), …")
        # layer l reads rows from l * width on; what comes back to the units that it feeds stands in the same rows of
        # delta, one layer higher
        h, delta = np.empty(((last + 1) * width, CHUNK), number), np.empty(((last + 2) * width, CHUNK), number)
        points = np.empty((3, CHUNK), number)
        gradient[:] = zero
        total, strange, filled = 0.0, 0, 0
        for g in range(n_groups):
            filled = max(filled, n_obs[g])
            if n_obs[g] < 0 or n_obs[g] > longest:
                raise ValueError("n_obs is out of range; wanted: from 0 to the length of the obs axis of X")
            for start in range(0, n_obs[g], CHUNK):
                m = min(CHUNK, n_obs[g] - start)
                n = (m + lanes - 1) // lanes * lanes  # points beyond the last one are zeros that do not count
                for f in range(n_feature):
                    for k in range(m):
                        h[f, k] = X[g, start + k, f]
                    for k in range(m, n):
                        h[f, k] = zero
                for k in range(m):
                    points[0, k], points[1, k] = y[g, start + k], one
                    strange |= y[g, start + k] & -2  # a bit beside the lowest
                for k in range(m, n):
                    points[0, k], points[1, k] = zero, zero
                for i in range(last):
                    move_up(theta, g, starts[i], sizes[i], sizes[i + 1], h, i * width, (i + 1) * width, n)
                above = (last + 1) * width
                move_out(theta, g, starts[last], sizes[last], h, last * width, delta, above, n)
                total += compare(points, delta, above, n)
                for i in range(last, -1, -1):
                    below, above = i * width, (i + 1) * width
                    add_gradient(gradient, g, starts[i], sizes[i], sizes[i + 1], h, delta, below, above, n)
                    if i > 0:
                        move_back(theta, g, starts[i], sizes[i], sizes[i + 1], h, delta, below, above, n)
        if strange != 0:
            raise Refused("y holds labels other than 0 and 1; wanted: 0 and 1")
        if filled < longest:
            raise ValueError(short)
        return total

    return kernel


class NetworkLogLik(Op):
    """`network_loglik` as a PyTensor Op: X, y, n_obs, weights, biases in; the log likelihood and its gradients out.

    Parameters
    ----------
    n_layers : int, layers of weights, the output layer included
    has_bias : bool
    activation : "tanh" or "relu"
    dtype : "float64" or "float32", of the arithmetic; the log likelihood is summed and returned in float64
    """

    __props__ = ("n_layers", "has_bias", "activation", "dtype")

    def __init__(self, n_layers, has_bias=False, activation="tanh", dtype="float64"):
        _layers.check_options(n_layers, activation, dtype)
        self.n_layers, self.has_bias, self.activation, self.dtype = n_layers, bool(has_bias), activation, dtype

    def make_node(self, X, y, n_obs, *parameters):
        wanted = self.n_layers * (2 if self.has_bias else 1)
        if len(parameters) != wanted:
            raise TypeError(f"{len(parameters)} arrays of weights and biases; wanted: {wanted}")
        y, n_obs = _as_integers(y, "y", "int32"), _as_integers(n_obs, "n_obs", "int64")
        X, *parameters = (pt.cast(pt.as_tensor(value), self.dtype) for value in (X, *parameters))
        names = ["X", "y", "n_obs", *(f"weights[{k}]" for k in range(self.n_layers))]
        names += [f"biases[{k}]" for k in range(len(parameters) - self.n_layers)]
        axes = [3, 2, 1] + [3] * self.n_layers + [2] * (len(parameters) - self.n_layers)
        inputs = [X, y, n_obs, *parameters]
        for name, count, value in zip(names, axes, inputs, strict=True):
            if value.ndim != count:
                raise TypeError(f"{name} has {value.ndim} axes; wanted: {count}")
        outputs = [pt.tensor(dtype=self.dtype, shape=value.type.shape) for value in parameters]
        return Apply(self, inputs, [pt.dscalar(), *outputs])

    def perform(self, node, inputs, outputs):
        X, y, n_obs, *parameters = (np.ascontiguousarray(value) for value in inputs)
        weights, biases = parameters[: self.n_layers], parameters[self.n_layers :]
        sizes = _check_logit(_layers.check_layers(len(X), X.shape[-1], weights, biases))
        theta = _layers.stack_parts(weights, biases)
        gradient = np.empty_like(theta)
        kernel = make_kernel(self.activation, self.dtype, self.has_bias)
        total = kernel(X, y, n_obs, theta, np.array(sizes), gradient)  # a tuple would compile one for each depth
        values = np.asarray(total), *_layers.cut_parts(gradient, weights, biases)
        for output, value in zip(outputs, values, strict=True):
            output[0] = value

    def connection_pattern(self, node):
        n_outputs = len(node.outputs)
        return [[i not in (1, 2)] * n_outputs for i in range(len(node.inputs))]  # all but labels and numbers of points

    def pullback(self, inputs, outputs, cotangents):
        if not all(isinstance(c.type, DisconnectedType) for c in cotangents[1:]):
            raise NotImplementedError("second derivatives of the fused likelihood; wanted: the model before fuse")
        points = grad_not_implemented(self, 0, inputs[0], "only with respect to weights and biases, not to points")
        slopes = [pt.cast(cotangents[0], self.dtype) * gradient for gradient in outputs[1:]]
        return [points, disconnected_type(), disconnected_type(), *slopes]


def _as_integers(value, name, dtype):
    value = pt.as_tensor(value)
    if value.type.numpy_dtype.kind not in "iub":
        raise TypeError(f"{name} has type {value.type.dtype}; wanted: integers")
    if name == "y" and isinstance(value, Constant) and not np.isin(value.data, (0, 1)).all():
        raise Refused("y holds labels other than 0 and 1; wanted: 0 and 1")
    return pt.cast(value, dtype)


def _check_logit(sizes):
    if sizes[-1] != 1:
        raise ValueError(f"weights[{len(sizes) - 2}] has {sizes[-1]} outputs; wanted: 1, the logit")
    return sizes


@register_funcify_and_cache_key(NetworkLogLik)
def _dispatch_numba(op, node, **kwargs):
    w, b, _ = _layers.name_parts(op.n_layers, op.has_bias)
    lines = [
        f"def network_loglik(X, y, n_obs, {', '.join(w + b)}):",
        "    n_groups = X.shape[0]",
        *_layers.write_theta(op.n_layers, op.has_bias, "X.shape[2]"),
        f"    if sizes[{op.n_layers}] != 1:",
        "        raise ValueError('the last of weights has several outputs; wanted: 1, the logit')",
        "    gradient = np.empty(theta.shape, theta.dtype)",
        "    total = kernel(X, y, n_obs, theta, sizes, gradient)",
        *_layers.write_gradients(op.n_layers, op.has_bias),
        f"    return np.asarray(total), {', '.join(f'd{name}' for name in w + b)}",
    ]
    kernel = make_kernel(op.activation, op.dtype, op.has_bias)
    return _layers.compile_lines(op, "network_loglik", lines, __file__, kernel=kernel)


def _register_jax():
    """The same Op as a plain JAX expression, for NumPyro and BlackJAX, where JAX is installed."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return
    from pytensor.link.jax.dispatch import jax_funcify

    @jax_funcify.register(NetworkLogLik)
    def _dispatch_jax(op, node, **kwargs):
        def activate(z):
            return jnp.tanh(z) if op.activation == "tanh" else jnp.where(z > 0, z, 0)

        def add_up_loglik(parameters, X, y, n_obs):
            h = X
            for layer in range(op.n_layers):
                h = jnp.einsum("gni,gij->gnj", h, parameters[layer])
                if op.has_bias:
                    h = h + parameters[op.n_layers + layer][:, None]
                h = activate(h) if layer < op.n_layers - 1 else h
            logit = h[..., 0]
            counts = jnp.arange(y.shape[1]) < n_obs[:, None]
            total = jnp.where(counts, y * logit - jax.nn.softplus(logit), 0).sum(dtype="float64")
            return jnp.where(n_obs.max() == y.shape[1], total, jnp.nan)  # JAX cannot raise an error here

        def network_loglik(X, y, n_obs, *parameters):
            total, gradients = jax.value_and_grad(add_up_loglik)(parameters, X, y, n_obs)
            return total, *gradients

        return network_loglik


_register_jax()


def network_loglik(X, y, weights, *, biases=(), n_obs=None, activation="tanh", dtype="float64"):
    """Symbolic Bernoulli log likelihood of one network per group, or of a single one.

    Parameters
    ----------
    X : (group, obs, feature), or (obs, feature) for a single network
    y : integers 0 and 1, (group, obs) or (obs,)
    weights : list of (group, n_in, n_out), layer by layer, or (n_in, n_out) for a single network; the last one may
        lack the axis of length 1
    biases : list of (group, n_out) or (n_out,), one for each layer, or nothing
    n_obs : integers (group,), where groups have unequal numbers of points: only the first `n_obs` of each row count,
        all of them in the longest group
    activation : "tanh" or "relu" in the hidden layers
    dtype : "float64" or "float32", of the arithmetic

    Returns
    -------
    scalar, in nats

    Raises
    ------
    TypeError
        When an input has another number of axes or another type than wanted, naming it.
    ValueError
        When shapes do not fit together, or for labels other than 0 and 1; at run time where they are known only then.

    Source: backpropagation, Rumelhart, Hinton and Williams (1986), Nature 323; the arithmetic is this book's.

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
    X, y = pt.as_tensor(X), pt.as_tensor(y)
    weights, biases = [pt.as_tensor(w) for w in weights], [pt.as_tensor(b) for b in biases]
    if biases and len(biases) != len(weights):
        raise ValueError(f"{len(biases)} biases for {len(weights)} layers; wanted: one for each layer, or none")
    if X.ndim == 2:
        X, y = X[None], y[None]
        weights, biases = [w[None] for w in weights], [b[None] for b in biases]
    if weights and weights[-1].ndim == 2:
        weights[-1] = weights[-1][..., None]
    if biases and biases[-1].ndim == 1:
        biases[-1] = biases[-1][:, None]
    if n_obs is None:
        n_obs = pt.full((X.shape[0],), X.shape[1], dtype="int64")
    op = NetworkLogLik(len(weights), bool(biases), activation, dtype)
    return op(X, y, n_obs, *weights, *biases)[0]
