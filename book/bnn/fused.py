"""The likelihood of a flat network and its gradient in one pass over the points, for NUTS.

NUTS asks for a million gradients. In the stock graph three quarters of each go into tanh, one scalar call after
the other. Here tanh is plain arithmetic (a polynomial, squared seven times), so the compiler works on several points
at once, and the backward pass reuses what the forward pass knows. The posterior is the same: `tests/test_fused.py`
compares value and gradient with the graph to 1e-9.
"""

import numba
import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch import numba_funcify
from pytensor.link.numba.dispatch.basic import numba_njit

# exp(-r) for 0 <= r <= 40/128 by its Taylor series to r**12 (error 4e-17), highest power first
_SERIES = tuple((-1.0) ** k / float(np.prod(np.arange(1, k + 1, dtype=float))) for k in range(12, -1, -1))


@numba.njit(inline="always")
def _exp_minus_twice(a):
    """exp(-2 a) for a >= 0, to 2e-14 of its value; from a = 20 on it stays at exp(-40), far below rounding."""
    r = min(2.0 * a, 40.0) / 128.0
    s = 0.0
    for c in _SERIES:
        s = s * r + c
    for _ in range(7):
        s = s * s
    return s


@numba.njit(error_model="numpy")
def _activate(z, h, slope):
    """Write tanh(z) into `h` and its derivative into `slope`, both without losing the tails.

    The three must be different arrays: where they overlap, the loop cannot be vectorised.
    """
    for j in range(z.shape[0]):
        for n in range(z.shape[1]):
            e = _exp_minus_twice(abs(z[j, n]))
            inverse = 1.0 / (1.0 + e)
            size = (1.0 - e) * inverse
            h[j, n] = size if z[j, n] >= 0.0 else -size
            slope[j, n] = 4.0 * e * inverse * inverse


@numba.njit(error_model="numpy")
def _add_product(weights, inputs, out):
    """out[j] = sum over i of weights[i, j] * inputs[i], points on the last axis."""
    out[:] = 0.0
    for j in range(weights.shape[1]):
        for i in range(weights.shape[0]):
            w = weights[i, j]
            for n in range(inputs.shape[1]):
                out[j, n] += w * inputs[i, n]


@numba.njit(error_model="numpy")
def _dot(a, b):
    """Sum of a * b in four partial sums: a fixed order that vectorises without fast-math."""
    s0 = s1 = s2 = s3 = 0.0
    whole = a.size - a.size % 4
    for n in range(0, whole, 4):
        s0 += a[n] * b[n]
        s1 += a[n + 1] * b[n + 1]
        s2 += a[n + 2] * b[n + 2]
        s3 += a[n + 3] * b[n + 3]
    for n in range(whole, a.size):
        s0 += a[n] * b[n]
    return (s0 + s1) + (s2 + s3)


@numba.njit(error_model="numpy")
def _gradient(inputs, delta, out):
    """out[i, j] = sum over points of inputs[i] * delta[j]."""
    for i in range(inputs.shape[0]):
        for j in range(delta.shape[0]):
            out[i, j] = _dot(inputs[i], delta[j])


@numba.njit(error_model="numpy")
def _send_back(weights, delta, slope, below):
    """What reaches the units below a layer: (weights @ delta) * slope."""
    for i in range(weights.shape[0]):
        for n in range(delta.shape[1]):
            below[i, n] = weights[i, 0] * delta[0, n]
        for j in range(1, weights.shape[1]):
            w = weights[i, j]
            for n in range(delta.shape[1]):
                below[i, n] += w * delta[j, n]
        for n in range(delta.shape[1]):
            below[i, n] *= slope[i, n]


@numba.njit(error_model="numpy")
def loglik_and_gradient(X, y, w1, w2, w3):
    """Bernoulli log likelihood of a network with two tanh layers, and its gradient.

    Parameters
    ----------
    X : (obs, feature), y : (obs,), zeros and ones; all arrays float64
    w1 : (feature, hidden_1), w2 : (hidden_1, hidden_2), w3 : (hidden_2,)

    Returns
    -------
    float, in nats, and the gradients with the shapes of w1, w2 and w3

    Raises
    ------
    ValueError
        When the shapes do not fit together; compiled code would read beyond an array otherwise.
    """
    if y.size != X.shape[0]:
        raise ValueError("y and X have different numbers of points; wanted: one label for each point")
    if X.shape[1] != w1.shape[0] or w1.shape[1] != w2.shape[0] or w2.shape[1] != w3.size:
        raise ValueError("w1, w2, w3 do not fit; wanted: (feature, hidden_1), (hidden_1, hidden_2), (hidden_2,)")
    n_obs, n1, n2 = X.shape[0], w1.shape[1], w2.shape[1]
    x = np.ascontiguousarray(X.T)
    d1, h1, s1 = np.empty((n1, n_obs)), np.empty((n1, n_obs)), np.empty((n1, n_obs))
    d2, h2, s2 = np.empty((n2, n_obs)), np.empty((n2, n_obs)), np.empty((n2, n_obs))
    _add_product(w1, x, d1)
    _activate(d1, h1, s1)
    _add_product(w2, h1, d2)
    _activate(d2, h2, s2)
    logit = np.empty((1, n_obs))
    _add_product(w3.reshape(n2, 1), h2, logit)
    residual, total = logit[0], 0.0
    for n in range(n_obs):
        z = residual[n]
        e = np.exp(-abs(z))
        total += y[n] * z - max(z, 0.0) - np.log1p(e)
        p = 1.0 / (1.0 + e)
        residual[n] = y[n] - (p if z >= 0 else e * p)
    g1, g2, g3 = np.empty(w1.shape), np.empty(w2.shape), np.empty((n2, 1))
    _gradient(h2, logit, g3)
    _send_back(w3.reshape(n2, 1), logit, s2, d2)
    _gradient(h1, d2, g2)
    _send_back(w2, d2, s1, d1)
    _gradient(x, d1, g1)
    return total, g1, g2, g3[:, 0].copy()


class FlatLogLik(Op):
    """`loglik_and_gradient` as a PyTensor Op: X, y, w1, w2, w3 in; log likelihood and three gradients out.

    Raises
    ------
    TypeError
        When an input has another number of axes, naming it.
    """

    __props__ = ()
    NAMES = ("X", "y", "w1", "w2", "w3")
    AXES = (2, 1, 2, 2, 1)

    def make_node(self, *inputs):
        inputs = [pt.cast(pt.as_tensor(value), "float64") for value in inputs]
        for name, axes, value in zip(self.NAMES, self.AXES, inputs, strict=True):
            if value.ndim != axes:
                raise TypeError(f"{name} has {value.ndim} axes; wanted: {axes}")
        return Apply(self, inputs, [pt.dscalar(), *(w.type() for w in inputs[2:])])

    def perform(self, node, inputs, outputs):
        for storage, value in zip(outputs, loglik_and_gradient(*inputs), strict=True):
            storage[0] = np.asarray(value)

    def connection_pattern(self, node):
        return [[False] * 4] * 2 + [[True, False, False, False]] * 3

    def pullback(self, inputs, outputs, cotangents):
        return [disconnected_type(), disconnected_type(), *(cotangents[0] * g for g in outputs[1:])]


@numba_funcify.register(FlatLogLik)
def _dispatch(op, node, **kwargs):
    @numba_njit
    def flat_loglik(X, y, w1, w2, w3):
        total, g1, g2, g3 = loglik_and_gradient(X, y, w1, w2, w3)
        return np.asarray(total), g1, g2, g3

    return flat_loglik


def flat_loglik(X, y, w1, w2, w3):
    """Symbolic log likelihood of a flat network, in nats; shapes as in `loglik_and_gradient`."""
    return FlatLogLik()(X, y, w1, w2, w3)[0]
