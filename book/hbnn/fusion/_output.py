"""The outputs of many small networks with their gradient, for any outcome that is typed on top of them.

A Bernoulli outcome has a kernel of its own (`_loglik`), which never leaves the nearest cache. A Normal outcome with
any noise, a Categorical one, or counts need the network's outputs first. So here the way forward and the way back are
two functions, and what the hidden units gave is kept between them; the layers are the same (`_layers`).
"""

from functools import lru_cache

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type, grad_not_implemented
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import register_funcify_and_cache_key

from hbnn.fusion import _layers
from hbnn.fusion._layers import CHUNK, make_layers, njit
from hbnn.fusion._rows import SortRows
from hbnn.fusion._simd import LANES


@lru_cache
def make_kernels(activation, dtype, has_bias):
    """The networks forward, and back, compiled.

    Both walk through the groups, 64 of their points at a time; `order` lists the points group by group, and those of
    group g stand in it from ``first[g]`` to ``first[g + 1]``.

    Returns
    -------
    forward : function of X (point, feature), order (point,), first (group + 1,), theta (group, parameter), sizes, and
        the array of the outputs (point, output) that is written to; gives `units` (chunk, row, point in chunk), whose
        rows are the features, the units of each layer, and the outputs
    back : function of units, the outputs' cotangents (point, output), order, first, theta, sizes, and the array that
        the gradient is written to, shaped like theta
    """
    lanes, number = LANES[dtype], np.dtype(dtype).type
    zero = number(0)
    move_up, _, move_back, add_gradient = make_layers(activation, dtype, has_bias)
    move_out = make_layers("linear", dtype, has_bias)[0]

    @njit
    def find_starts(sizes):
        """Where each layer's parameters begin in a row of theta, and its units among the rows of a chunk."""
        starts, rows = np.zeros(len(sizes), np.int64), np.zeros(len(sizes) + 1, np.int64)
        for layer in range(len(sizes)):
            rows[layer + 1] = rows[layer] + sizes[layer]
            if layer + 1 < len(sizes):
                starts[layer + 1] = starts[layer] + (sizes[layer] + has_bias) * sizes[layer + 1]
        return starts, rows

    @njit
    def forward(X, order, first, theta, sizes, out):
        starts, rows = find_starts(sizes)
        last, n_groups, n_chunks = len(sizes) - 1, theta.shape[0], 0
        if X.shape[1] != sizes[0] or theta.shape[1] != starts[last]:
            raise ValueError("weights do not fit X; wanted: (group, feature, hidden_1), (group, hidden_1, …), …")
        if first.shape[0] != n_groups + 1 or order.shape[0] != X.shape[0] or first[n_groups] != X.shape[0]:
            raise ValueError("the groups do not fit X and the weights; wanted: one group for each row")
        for g in range(n_groups):
            n_chunks += (first[g + 1] - first[g] + CHUNK - 1) // CHUNK
        units, chunk = np.empty((n_chunks, rows[last + 1], CHUNK), number), 0
        for g in range(n_groups):
            for start in range(first[g], first[g + 1], CHUNK):
                h, m = units[chunk], min(CHUNK, first[g + 1] - start)
                n = (m + lanes - 1) // lanes * lanes  # points beyond the last one are zeros that nobody reads
                for f in range(sizes[0]):
                    for k in range(m):
                        h[f, k] = X[order[start + k], f]
                    for k in range(m, n):
                        h[f, k] = zero
                for i in range(last - 1):
                    move_up(theta, g, starts[i], sizes[i], sizes[i + 1], h, rows[i], rows[i + 1], n)
                i = last - 1
                move_out(theta, g, starts[i], sizes[i], sizes[last], h, rows[i], rows[last], n)
                for j in range(sizes[last]):
                    for k in range(m):
                        out[order[start + k], j] = h[rows[last] + j, k]
                chunk += 1
        return units

    @njit
    def back(units, cotangent, order, first, theta, sizes, gradient):
        starts, rows = find_starts(sizes)
        last, chunk = len(sizes) - 1, 0
        delta = np.empty((rows[last + 1], CHUNK), number)
        gradient[:] = zero
        for g in range(theta.shape[0]):
            for start in range(first[g], first[g + 1], CHUNK):
                h, m = units[chunk], min(CHUNK, first[g + 1] - start)
                n = (m + lanes - 1) // lanes * lanes
                for j in range(sizes[last]):
                    for k in range(m):
                        delta[rows[last] + j, k] = cotangent[order[start + k], j]
                    for k in range(m, n):
                        delta[rows[last] + j, k] = zero
                for i in range(last - 1, -1, -1):
                    add_gradient(gradient, g, starts[i], sizes[i], sizes[i + 1], h, delta, rows[i], rows[i + 1], n)
                    if i > 0:
                        move_back(theta, g, starts[i], sizes[i], sizes[i + 1], h, delta, rows[i], rows[i + 1], n)
                chunk += 1

    return forward, back


class _Networks(Op):
    """What the way forward and the way back have in common.

    Parameters
    ----------
    n_layers : int, layers of weights, the output layer included
    has_bias : bool
    activation : "tanh" or "relu"
    dtype : "float64" or "float32", of everything
    """

    __props__ = ("n_layers", "has_bias", "activation", "dtype")

    def __init__(self, n_layers, has_bias=False, activation="tanh", dtype="float64"):
        _layers.check_options(n_layers, activation, dtype)
        self.n_layers, self.has_bias, self.activation, self.dtype = n_layers, bool(has_bias), activation, dtype


class NetworkOutput(_Networks):
    """`network_output` as a PyTensor Op.

    Inputs are X (point, feature), order (point,), first (group + 1,), weights (group, n_in, n_out) and biases (group,
    n_out); outputs are those of the networks (point, output), and the units that `NetworkGradient` wants.
    """

    def make_node(self, X, order, first, *parameters):
        order, first = (pt.cast(pt.as_tensor(value), "int64") for value in (order, first))
        X, *parameters = (pt.cast(pt.as_tensor(value), self.dtype) for value in (X, *parameters))
        wanted = [2] + [3] * self.n_layers + [2] * (self.n_layers if self.has_bias else 0)
        names = ["X", *(f"weights[{k}]" for k in range(self.n_layers)), *(f"biases[{k}]" for k in range(self.n_layers))]
        if len(parameters) != len(wanted) - 1:
            raise TypeError(f"{len(parameters)} arrays of weights and biases; wanted: {len(wanted) - 1}")
        for name, count, value in zip(names, wanted, (X, *parameters), strict=False):
            if value.ndim != count:
                raise TypeError(f"{name} has {value.ndim} axes; wanted: {count}")
        n_out = parameters[self.n_layers - 1].type.shape[2]
        out = pt.tensor(dtype=self.dtype, shape=(X.type.shape[0], n_out))
        units = pt.tensor(dtype=self.dtype, shape=(None, None, CHUNK))
        return Apply(self, [X, order, first, *parameters], [out, units])

    def perform(self, node, inputs, outputs):
        X, order, first, *parameters = (np.ascontiguousarray(value) for value in inputs)
        weights, biases = parameters[: self.n_layers], parameters[self.n_layers :]
        sizes = _layers.check_layers(len(first) - 1, X.shape[1], weights, biases)
        out, forward = np.empty((len(X), sizes[-1]), self.dtype), make_kernels(*self._get_kind())[0]
        outputs[1][0] = forward(X, order, first, _layers.stack_parts(weights, biases), np.array(sizes), out)
        outputs[0][0] = out

    def _get_kind(self):
        return self.activation, self.dtype, self.has_bias

    def connection_pattern(self, node):
        return [[i not in (1, 2)] * 2 for i in range(len(node.inputs))]

    def pullback(self, inputs, outputs, cotangents):
        if not isinstance(cotangents[1].type, DisconnectedType):
            raise NotImplementedError("a derivative of the hidden units; wanted: of the outputs")
        points = grad_not_implemented(self, 0, inputs[0], "only with respect to weights and biases, not to points")
        gradient = NetworkGradient(self.n_layers, self.has_bias, self.activation, self.dtype)
        slopes = gradient(outputs[1], cotangents[0], *inputs, return_list=True)
        return [points, disconnected_type(), disconnected_type(), *slopes]


class NetworkGradient(_Networks):
    """The way back: units, cotangents of the outputs, and the inputs of `NetworkOutput` in; the gradients out."""

    def make_node(self, units, cotangent, *inputs):
        cotangent = pt.cast(cotangent, self.dtype)
        outputs = [pt.tensor(dtype=self.dtype, shape=value.type.shape) for value in inputs[3:]]
        return Apply(self, [units, cotangent, *inputs], outputs)

    def perform(self, node, inputs, outputs):
        units, cotangent, _, order, first, *parameters = (np.ascontiguousarray(value) for value in inputs)
        weights, biases = parameters[: self.n_layers], parameters[self.n_layers :]
        theta, sizes = _layers.stack_parts(weights, biases), [weights[0].shape[1], *(w.shape[2] for w in weights)]
        gradient, back = np.empty_like(theta), make_kernels(self.activation, self.dtype, self.has_bias)[1]
        back(units, cotangent, order, first, theta, np.array(sizes), gradient)
        for output, value in zip(outputs, _layers.cut_parts(gradient, weights, biases), strict=True):
            output[0] = value

    def pullback(self, inputs, outputs, cotangents):
        raise NotImplementedError("second derivatives of a fused network; wanted: the model before fuse")


@register_funcify_and_cache_key(NetworkOutput)
def _dispatch_output(op, node, **kwargs):
    w, b, _ = _layers.name_parts(op.n_layers, op.has_bias)
    lines = [
        f"def network_output(X, order, first, {', '.join(w + b)}):",
        "    n_groups = first.shape[0] - 1",
        *_layers.write_theta(op.n_layers, op.has_bias, "X.shape[1]"),
        f"    out = np.empty((X.shape[0], sizes[{op.n_layers}]), X.dtype)",
        "    return out, forward(X, order, first, theta, sizes, out)",
    ]
    forward, _ = make_kernels(op.activation, op.dtype, op.has_bias)
    return _layers.compile_lines(op, "network_output", lines, __file__, forward=forward)


@register_funcify_and_cache_key(NetworkGradient)
def _dispatch_gradient(op, node, **kwargs):
    w, b, _ = _layers.name_parts(op.n_layers, op.has_bias)
    gradients = ", ".join(f"d{name}" for name in w + b)
    lines = [
        f"def network_gradient(units, cotangent, X, order, first, {', '.join(w + b)}):",
        "    n_groups = first.shape[0] - 1",
        *_layers.write_theta(op.n_layers, op.has_bias, "w0.shape[1]"),
        "    gradient = np.empty(theta.shape, theta.dtype)",
        "    back(units, cotangent, order, first, theta, sizes, gradient)",
        *_layers.write_gradients(op.n_layers, op.has_bias),
        f"    return {gradients}",
    ]
    _, back = make_kernels(op.activation, op.dtype, op.has_bias)
    return _layers.compile_lines(op, "network_gradient", lines, __file__, back=back)


def _register_jax():
    """The same Ops as plain JAX expressions, for NumPyro and BlackJAX, where JAX is installed."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return
    from pytensor.link.jax.dispatch import jax_funcify

    def move_up(op, X, order, first, parameters):
        """The outputs; each row with the weights of its group."""
        place = jnp.arange(order.shape[0])
        group = jnp.zeros_like(order).at[order].set(jnp.searchsorted(first, place, side="right") - 1)
        h = X
        for k in range(op.n_layers):
            h = jnp.einsum("ni,nij->nj", h, parameters[k][group])
            h = h + parameters[op.n_layers + k][group] if op.has_bias else h
            if k < op.n_layers - 1:
                h = jnp.tanh(h) if op.activation == "tanh" else jnp.where(h > 0, h, 0)
        return h

    @jax_funcify.register(NetworkOutput)
    def _dispatch_jax_output(op, node, **kwargs):
        def network_output(X, order, first, *parameters):  # JAX keeps no units: it differentiates this by itself
            return move_up(op, X, order, first, parameters), jnp.zeros((0, 0, CHUNK), op.dtype)

        return network_output

    @jax_funcify.register(NetworkGradient)
    def _dispatch_jax_gradient(op, node, **kwargs):
        def network_gradient(units, cotangent, X, order, first, *parameters):
            return jax.vjp(lambda *p: move_up(op, X, order, first, p), *parameters)[1](cotangent)

        return network_gradient


_register_jax()


def network_output(X, weights, *, biases=(), group=None, activation="tanh", dtype="float64"):
    """Symbolic outputs of one network per group, or of a single one, for a likelihood of any kind.

    Parameters
    ----------
    X : (point, feature)
    weights : list of (group, n_in, n_out), layer by layer, or (n_in, n_out) for a single network
    biases : list of (group, n_out) or (n_out,), one for each layer, or nothing
    group : integers (point,), which network a point belongs to; None for a single network
    activation : "tanh" or "relu" in the hidden layers
    dtype : "float64" or "float32", of the arithmetic and of what is returned

    Returns
    -------
    (point, output)

    Raises
    ------
    TypeError
        When an input has another number of axes than wanted, naming it.
    ValueError
        When shapes do not fit together, or for a group without weights; at run time where it is known only then.

    Source: backpropagation, Rumelhart, Hinton and Williams (1986), Nature 323; the arithmetic is this book's.

    Examples
    --------
    Two networks; each point is answered by the one of its group.

    >>> import numpy as np
    >>> from hbnn.fusion._output import network_output
    >>> rng = np.random.default_rng(1)
    >>> X, group = rng.normal(size=(4, 2)), [0, 0, 1, 1]
    >>> w1, w2 = rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 3, 1))
    >>> found = network_output(X, [w1, w2], group=group).eval()
    >>> found.shape
    (4, 1)
    >>> bool(np.allclose(found[2:], np.tanh(X[2:] @ w1[1]) @ w2[1]))
    True
    """
    weights, biases = [pt.as_tensor(w) for w in weights], [pt.as_tensor(b) for b in biases]
    if biases and len(biases) != len(weights):
        raise ValueError(f"{len(biases)} biases for {len(weights)} layers; wanted: one for each layer, or none")
    X = pt.as_tensor(X)
    if group is None:
        weights, biases = [w[None] for w in weights], [b[None] for b in biases]
        order, first = pt.arange(X.shape[0]), pt.stack([pt.constant(0), X.shape[0]])
    else:
        order, first = SortRows()(pt.as_tensor(group), weights[0].shape[0])
    op = NetworkOutput(len(weights), bool(biases), activation, dtype)
    return op(X, order, first, *weights, *biases)[0]
