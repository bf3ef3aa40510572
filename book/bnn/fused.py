"""The likelihood of many small networks and its gradient in one pass over the points, for NUTS.

NUTS asks for a million gradients. In the stock graph most of each goes into tanh, one scalar call after the other, and
into a library call for every little matrix. Here one function walks through the groups with 64 points at a time,
forward and back, while everything it needs stays in the processor's nearest cache, and treats eight points (sixteen
in float32) at once (`bnn.simd`). The posterior is the same: `tests/test_fused.py` compares value and gradient with
the graph and with JAX to 1e-9, and tanh with NumPy's to 3e-15.
"""

import hashlib
import math
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numba
import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type, grad_not_implemented
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key

from bnn import simd
from bnn.simd import (
    BIAS,
    LANES,
    ROUNDER,
    absolute,
    add_to,
    add_up,
    add_up_four,
    at_least,
    at_most,
    choose_positive,
    fma,
    load,
    scale_of,
    splat,
    splat_at,
    store,
)

ACTIVATIONS = ("tanh", "relu")
DTYPES = ("float64", "float32")
SHORT = "leaves the last points of every group out; wanted: the longest group as long as X, all given together"
CHUNK = 64  # points that stay in the nearest cache from the first layer to the last and back

# expm1(2 q) / q for |q| <= log(2) / 4 as a polynomial, highest power first: interpolated at Chebyshev nodes in extended
# precision, good to 1.4e-15 and 1.2e-8
_SERIES = {
    "float64": (
        0.000282830168459798,
        0.001414795060582694,
        0.00634918942773424,
        0.025396723826083285,
        0.0888888890705523,
        0.2666666677572333,
        0.6666666666659841,
        1.3333333333292354,
        2.0000000000000004,
        2.0000000000000027,
    ),
    "float32": (
        0.08917558952075609,
        0.2678139002333432,
        0.6666634336324244,
        1.3333203949570878,
        2.0000000053992713,
        2.000000021607905,
    ),
}
# beyond these, tanh is 1 and exp is nothing beside 1; the powers of two below stay within the exponent
_TANH_ENDS = {"float64": 20, "float32": 10}
_EXP_ENDS = {"float64": -350, "float32": -40}
_inline = numba.njit(inline="always")
_njit = numba.njit(error_model="numpy")


@lru_cache
def make_functions(dtype):
    """expm1(2 q) for q <= 0, and tanh, for vectors of `dtype`, for use in compiled code.

    2 q = n log(2) + 2 r with a whole n and a small r: a polynomial in r, and 2**n written into the exponent.
    """
    number = np.dtype(dtype).type
    rounder = number(ROUNDER[dtype] + BIAS[dtype])
    per_half_log_2, half_log_2 = number(2 / np.log(2)), number(np.log(2) / 2)
    first, rest = number(_SERIES[dtype][0]), tuple(number(c) for c in _SERIES[dtype][1:])
    one, two, lowest, end = (number(x) for x in (1, 2, _EXP_ENDS[dtype], _TANH_ENDS[dtype]))

    @_inline
    def expm1_twice(q):
        rounded = fma(q, splat(per_half_log_2), splat(rounder))
        r = fma(rounded - splat(rounder), splat(-half_log_2), q)
        series = splat(first)
        for c in rest:
            series = fma(series, r, splat(c))
        scale = scale_of(rounded)
        return fma(scale, series * r, scale - splat(one))

    @_inline
    def expm1_negative(q):
        return expm1_twice(at_least(q, splat(lowest)))

    @_inline
    def tanh(z):
        e = expm1_twice(at_least(at_most(z, splat(end)), splat(-end)))
        return e / (e + splat(two))

    return expm1_negative, tanh


@lru_cache
def make_layers(activation, dtype, has_bias):
    """A layer forward, the output layer forward, a layer back, and a layer's gradient, compiled.

    All of them read the parameters of group `g` from ``theta[g]``, a layer's weights row by row from `at` on and its
    biases after them, and the units' values from rows of `h` and `delta`, starting at row `below` and `above`. They go
    over four units at a time while there are four: one load from memory then serves four multiplications.
    """
    lanes, number = LANES[dtype], np.dtype(dtype).type
    zero, one = number(0), number(1)
    tanh = make_functions(dtype)[1]

    if activation == "tanh":
        activate = tanh

        @_inline
        def slope(h):
            return fma(splat(-one) * h, h, splat(one))

    else:

        @_inline
        def activate(z):
            return at_least(z, splat(zero))

        @_inline
        def slope(h):
            return choose_positive(h, splat(one), splat(zero))

    @_inline
    def get_bias(theta, g, at):
        return splat_at(theta, g, at) if has_bias else splat(zero)

    @_njit
    def move_up(theta, g, at, n_in, n_out, h, below, above, n):
        """h[above + j] = activation(bias[j] + sum over i of w[i, j] h[below + i]), for the first `n` points."""
        fours, bias = n_out - n_out % 4, at + n_in * n_out
        for k in range(0, n, lanes):
            for j in range(0, fours, 4):
                a, b = get_bias(theta, g, bias + j), get_bias(theta, g, bias + j + 1)
                c, d = get_bias(theta, g, bias + j + 2), get_bias(theta, g, bias + j + 3)
                for i in range(n_in):
                    v, w = load(h, below + i, k), at + i * n_out + j
                    a, b = fma(splat_at(theta, g, w), v, a), fma(splat_at(theta, g, w + 1), v, b)
                    c, d = fma(splat_at(theta, g, w + 2), v, c), fma(splat_at(theta, g, w + 3), v, d)
                store(h, above + j, k, activate(a))
                store(h, above + j + 1, k, activate(b))
                store(h, above + j + 2, k, activate(c))
                store(h, above + j + 3, k, activate(d))
            for j in range(fours, n_out):
                a = get_bias(theta, g, bias + j)
                for i in range(n_in):
                    a = fma(splat_at(theta, g, at + i * n_out + j), load(h, below + i, k), a)
                store(h, above + j, k, activate(a))

    @_njit
    def move_out(theta, g, at, n_in, h, below, delta, above, n):
        """The logits, into row `above` of `delta`."""
        for k in range(0, n, lanes):
            a = get_bias(theta, g, at + n_in)
            for i in range(n_in):
                a = fma(splat_at(theta, g, at + i), load(h, below + i, k), a)
            store(delta, above, k, a)

    @_njit
    def move_back(theta, g, at, n_in, n_out, h, delta, below, above, n):
        """delta[below + i] = slope of unit i times the sum over j of w[i, j] delta[above + j]."""
        fours = n_in - n_in % 4
        for k in range(0, n, lanes):
            for i in range(0, fours, 4):
                a = b = c = d = splat(zero)
                for j in range(n_out):
                    v, w = load(delta, above + j, k), at + i * n_out + j
                    a, b = fma(splat_at(theta, g, w), v, a), fma(splat_at(theta, g, w + n_out), v, b)
                    c, d = fma(splat_at(theta, g, w + 2 * n_out), v, c), fma(splat_at(theta, g, w + 3 * n_out), v, d)
                row = below + i
                store(delta, row, k, a * slope(load(h, row, k)))
                store(delta, row + 1, k, b * slope(load(h, row + 1, k)))
                store(delta, row + 2, k, c * slope(load(h, row + 2, k)))
                store(delta, row + 3, k, d * slope(load(h, row + 3, k)))
            for i in range(fours, n_in):
                a = splat(zero)
                for j in range(n_out):
                    a = fma(splat_at(theta, g, at + i * n_out + j), load(delta, above + j, k), a)
                store(delta, below + i, k, a * slope(load(h, below + i, k)))

    @_njit
    def add_gradient(gradient, g, at, n_in, n_out, h, delta, below, above, n):
        """gradient[g, at + (i, j)] += sum over points of h[below + i] * delta[above + j]; then the biases'."""
        fours = n_in - n_in % 4
        for j in range(n_out):
            for i in range(0, fours, 4):
                a = b = c = d = splat(zero)
                for k in range(0, n, lanes):
                    v, row = load(delta, above + j, k), below + i
                    a, b = fma(load(h, row, k), v, a), fma(load(h, row + 1, k), v, b)
                    c, d = fma(load(h, row + 2, k), v, c), fma(load(h, row + 3, k), v, d)
                a, b, c, d = add_up_four(a, b, c, d)
                w = at + i * n_out + j
                add_to(gradient, g, w, a)
                add_to(gradient, g, w + n_out, b)
                add_to(gradient, g, w + 2 * n_out, c)
                add_to(gradient, g, w + 3 * n_out, d)
            for i in range(fours, n_in):
                a = splat(zero)
                for k in range(0, n, lanes):
                    a = fma(load(h, below + i, k), load(delta, above + j, k), a)
                add_to(gradient, g, at + i * n_out + j, add_up(a))
            if has_bias:
                a = splat(zero)
                for k in range(0, n, lanes):
                    a = a + load(delta, above + j, k)
                add_to(gradient, g, at + n_in * n_out + j, add_up(a))

    return move_up, move_out, move_back, add_gradient


@lru_cache
def make_output(dtype):
    """The Bernoulli log likelihood of one chunk, compiled.

    log(1 + exp(-|z|)) would cost a logarithm a point. The product of the 1 + exp(-|z|) costs a multiplication, and one
    logarithm for all: 64 factors of at most 2 stay below 2**64.
    """
    lanes, number = LANES[dtype], np.dtype(dtype).type
    zero, half, one = number(0), number(0.5), number(1)
    expm1_negative = make_functions(dtype)[0]

    @_njit
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

    @_njit
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
            raise ValueError("y holds labels other than 0 and 1; wanted: 0 and 1")
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
        if n_layers < 1:
            raise ValueError(f"n_layers={n_layers}; wanted: at least 1")
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation={activation!r}; wanted: one of {', '.join(ACTIVATIONS)}")
        if dtype not in DTYPES:
            raise ValueError(f"dtype={dtype!r}; wanted: one of {', '.join(DTYPES)}")
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
        sizes = _check_layers(X, weights, biases)
        rows = [part.reshape(len(X), -1) for layer in zip(weights, biases or weights, strict=True) for part in layer]
        theta = np.concatenate(rows if biases else rows[::2], axis=1)
        gradient = np.empty_like(theta)
        kernel = make_kernel(self.activation, self.dtype, self.has_bias)
        total = kernel(X, y, n_obs, theta, np.array(sizes), gradient)  # a tuple would compile one for each depth
        outputs[0][0] = np.asarray(total)
        start = 0
        for k, (n_in, n_out) in enumerate(pairwise(sizes)):
            for at, shape in [(k, (n_in, n_out)), (self.n_layers + k, (n_out,))][: 1 + self.has_bias]:
                stop = start + int(np.prod(shape))
                outputs[1 + at][0] = np.ascontiguousarray(gradient[:, start:stop]).reshape(len(X), *shape)
                start = stop

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
        raise ValueError("y holds labels other than 0 and 1; wanted: 0 and 1")
    return pt.cast(value, dtype)


def _check_layers(X, weights, biases):
    """Number of features, of hidden units in each layer, and 1; ValueError where the shapes do not fit together."""
    sizes = [X.shape[-1]]
    for k, w in enumerate(weights):
        if w.shape[:2] != (len(X), sizes[-1]):
            raise ValueError(f"weights[{k}] has shape {w.shape}; wanted: ({len(X)}, {sizes[-1]}, hidden)")
        sizes.append(w.shape[2])
    if sizes[-1] != 1:
        raise ValueError(f"weights[{len(weights) - 1}] has {sizes[-1]} outputs; wanted: 1, the logit")
    for k, b in enumerate(biases):
        if b.shape != (len(X), sizes[k + 1]):
            raise ValueError(f"biases[{k}] has shape {b.shape}; wanted: ({len(X)}, {sizes[k + 1]})")
    return tuple(sizes)


@register_funcify_and_cache_key(NetworkLogLik)
def _dispatch_numba(op, node, **kwargs):
    """Layers side by side in one array and back, written out: Numba cannot loop over arguments of several types."""
    w = [f"w{k}" for k in range(op.n_layers)]
    b = [f"b{k}" for k in range(op.n_layers)] if op.has_bias else []
    parts = [name for layer in zip(w, b or w, strict=True) for name in layer[: 1 + op.has_bias]]
    sizes = "".join(f", {name}.shape[2]" for name in w)
    lines = [
        f"def network_loglik(X, y, n_obs, {', '.join(w + b)}):",
        f"    sizes = (X.shape[2]{sizes})",
        "    n_groups, stop = X.shape[0], 0",
    ]
    for k, name in enumerate(w):
        lines += [
            f"    if {name}.shape[0] != n_groups or {name}.shape[1] != sizes[{k}]:",
            f"        raise ValueError('weights[{k}] has another shape than wanted: (group, n_in, n_out)')",
        ]
    for k, name in enumerate(b):
        lines += [
            f"    if {name}.shape[0] != n_groups or {name}.shape[1] != sizes[{k + 1}]:",
            f"        raise ValueError('biases[{k}] has another shape than wanted: (group, n_out)')",
        ]
    lines += [
        f"    if sizes[{op.n_layers}] != 1:",
        "        raise ValueError('the last of weights has several outputs; wanted: 1, the logit')",
        f"    n_parameters = {' + '.join(f'{name}[0].size' for name in parts)}",
        "    theta = np.empty((n_groups, n_parameters), X.dtype)",
        "    gradient = np.empty((n_groups, n_parameters), X.dtype)",
    ]
    for name in parts:
        lines += [
            f"    start, stop = stop, stop + {name}[0].size",
            f"    copy_in({name}, theta, start)",
        ]
    lines += ["    total, stop = kernel(X, y, n_obs, theta, sizes, gradient), 0"]
    for name in parts:
        lines += [
            f"    start, stop = stop, stop + {name}[0].size",
            f"    d{name} = np.empty({name}.shape, X.dtype)",
            f"    copy_out(gradient, start, d{name})",
        ]
    lines += [f"    return np.asarray(total), {', '.join(f'd{name}' for name in w + b)}"]
    kernel = make_kernel(op.activation, op.dtype, op.has_bias)
    names = {"kernel": kernel, "copy_in": _copy_in, "copy_out": _copy_out, "np": np}
    code = "".join(Path(module).read_text(encoding="utf-8") for module in (__file__, simd.__file__))
    key = hashlib.sha256(f"{code}{op.n_layers}{op.has_bias}{op.activation}{op.dtype}".encode()).hexdigest()
    return numba_njit(compile_numba_function_src("\n".join(lines), "network_loglik", names)), key


@_njit
def _copy_in(part, theta, start):
    """The parameters of one layer into the columns of theta from `start` on."""
    for g in range(part.shape[0]):
        k = start
        for value in part[g].flat:
            theta[g, k] = value
            k += 1


@_njit
def _copy_out(gradient, start, part):
    """The other way."""
    size = part[0].size
    flat = part.reshape(part.shape[0], size)
    for g in range(part.shape[0]):
        for k in range(size):
            flat[g, k] = gradient[g, start + k]


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
