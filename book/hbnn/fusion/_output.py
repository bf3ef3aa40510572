"""The outputs of many small networks with their gradient, for any outcome that is typed on top of them.

A Bernoulli outcome has a kernel of its own (`_loglik`), which never leaves the nearest cache. A Normal outcome with
any noise, a Categorical one, or counts need the network's outputs first. So here the way forward and the way back are
two functions, and what the hidden units gave is kept between them; the layers are the same (`_layers`).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type, grad_not_implemented
from pytensor.graph.basic import Apply, Variable
from pytensor.link.numba.dispatch.basic import register_funcify_and_cache_key
from pytensor.tensor.variable import TensorVariable

from hbnn._types import Array
from hbnn.fusion import _layers
from hbnn.fusion._activations import Activation, njit
from hbnn.fusion._layers import CHUNK, Networks, list_rows, make_networks
from hbnn.fusion._rows import arrange
from hbnn.fusion._simd import LANES

type Inputs = Sequence[Variable]


@lru_cache
def make_kernels(activations: tuple[Activation, ...], dtype: str, has_bias: bool) -> tuple[Callable, Callable]:
    """The networks forward, and back, compiled.

    Both walk through the groups, 64 of their points at a time; `order` and `first` are those of `_rows.SortRows`,
    `sizes` and `plan` those of `_layers.make_networks`.

    Returns
    -------
    forward : function of X (point, feature), order, first, theta (group, parameter), sizes, plan, and the array of the
        outputs (point, output) that is written to; gives `units`: (row, point) of each chunk, one after the other
    back : function of units, the outputs' cotangents (point, output), order, first, theta, sizes, plan, and the arrays
        that gradients are written to: one shaped like theta, and one like X, or (0, 0) where it is not wanted
    """
    return _make_forward(activations, dtype, has_bias), _make_back(activations, dtype, has_bias)


def _make_forward(activations: tuple[Activation, ...], dtype: str, has_bias: bool) -> Callable:
    lanes, number = LANES[dtype], np.dtype(dtype).type
    zero = number(0)
    find_places, go_up, _ = make_networks(activations, dtype, has_bias)

    @njit
    def forward(X, order, first, theta, sizes, plan, out):  # type: ignore[no-untyped-def]
        places, n_rows = find_places(sizes, plan)
        last, n_groups, n_columns, stop = len(sizes) - 1, theta.shape[0], 0, 0
        if X.shape[1] != sizes[0] or theta.shape[1] != places[0][last]:
            raise ValueError("weights do not fit X; wanted: (group, feature, hidden_1), (group, hidden_1, …), …")
        if first.shape[0] != n_groups + 1 or order.shape[0] > X.shape[0] or first[n_groups] != order.shape[0]:
            raise ValueError("the groups do not fit X and the weights; wanted: one group for each row")
        if order.shape[0] < X.shape[0]:
            out[:] = zero
        for g in range(n_groups):
            full, rest = divmod(first[g + 1] - first[g], CHUNK)
            n_columns += full * (CHUNK + lanes) + (rest + lanes - 1) // lanes * lanes
        units, outputs = np.empty(n_columns * n_rows, number), places[1][last]
        for g in range(n_groups):
            for start in range(first[g], first[g + 1], CHUNK):
                m = min(CHUNK, first[g + 1] - start)
                n = (m + lanes - 1) // lanes * lanes  # points beyond the last one are zeros, never read
                columns = n + lanes * (m == CHUNK)  # rows of 512 bytes would share few places of the nearest cache
                h = units[stop : stop + columns * n_rows].reshape(n_rows, columns)
                for f in range(sizes[0]):
                    for k in range(m):
                        h[f, k] = X[order[start + k], f]
                    for k in range(m, n):
                        h[f, k] = zero
                go_up(theta, g, h, n, sizes, plan, places)
                for j in range(sizes[last]):
                    for k in range(m):
                        out[order[start + k], j] = h[outputs + j, k]
                stop += columns * n_rows
        return units

    return forward


def _make_back(activations: tuple[Activation, ...], dtype: str, has_bias: bool) -> Callable:
    lanes, number = LANES[dtype], np.dtype(dtype).type
    zero = number(0)
    find_places, _, go_back = make_networks(activations, dtype, has_bias)

    @njit
    def back(units, cotangent, order, first, theta, sizes, plan, gradient, to_points):  # type: ignore[no-untyped-def]
        places, n_rows = find_places(sizes, plan)
        last, stop, wanted = len(sizes) - 1, 0, to_points.size > 0
        outputs = places[1][last]
        delta = np.empty((outputs + sizes[last], CHUNK + lanes), number)
        gradient[:] = zero
        if order.shape[0] < to_points.shape[0]:
            to_points[:] = zero
        for g in range(theta.shape[0]):
            for start in range(first[g], first[g + 1], CHUNK):
                m = min(CHUNK, first[g + 1] - start)
                n = (m + lanes - 1) // lanes * lanes
                columns = n + lanes * (m == CHUNK)
                h = units[stop : stop + columns * n_rows].reshape(n_rows, columns)
                for j in range(sizes[last]):
                    for k in range(m):
                        delta[outputs + j, k] = cotangent[order[start + k], j]
                    for k in range(m, n):
                        delta[outputs + j, k] = zero
                go_back(theta, gradient, g, h, delta, n, sizes, plan, places, wanted)
                if wanted:
                    for f in range(sizes[0]):
                        for k in range(m):
                            to_points[order[start + k], f] = delta[f, k]
                stop += columns * n_rows

    return back


class _Networks(Networks):
    """The way forward or back; `differentiate_points`: whether X has a gradient, too."""

    __props__ = (*Networks.__props__, "differentiate_points")  # type: ignore[assignment]

    def __init__(self, *args: Any, differentiate_points: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self.differentiate_points = bool(differentiate_points)

    def get_rows(self, X: Array, index: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Points as rows, and the order of groups."""
        return (X, index[0], index[1]) if self.in_rows else list_rows(X)

    @property
    def arguments(self) -> str:
        """What generated code calls the points and what else comes before the parameters."""
        return "X, order, first" if self.in_rows else "X"

    def write_rows(self) -> list[str]:
        """Lines of code that leave `points`, `order`, `first` and `n_groups`."""
        if self.in_rows:
            return ["    points, n_groups = np.ascontiguousarray(X), first.shape[0] - 1"]
        return ["    points, order, first = list_rows(X)", "    n_groups = X.shape[0]"]


class NetworkOutput(_Networks):
    """`network_output` as a PyTensor Op: points, weights, biases in; out come the outputs of the networks, (group, obs,
    output) or (row, output), and the units that `NetworkGradient` wants.
    """

    def make_node(self, X: Any, *inputs: Any) -> Apply:
        n_index = 2 * self.in_rows
        index = [pt.cast(pt.as_tensor(value), "int64") for value in inputs[:n_index]]
        X, *parameters = self.read_inputs(X, inputs[n_index:])
        shape = (*X.type.shape[:-1], parameters[self.n_layers - 1].type.shape[2])
        out = pt.tensor(dtype=self.dtype, shape=shape)
        return Apply(self, [X, *index, *parameters], [out, pt.tensor(dtype=self.dtype, shape=(None,))])

    def perform(self, node: Apply, inputs: Sequence[Array], outputs: Sequence[list[Array]]) -> None:
        X, *inputs = (np.ascontiguousarray(value) for value in inputs)
        n_index = 2 * self.in_rows
        points, order, first = self.get_rows(X, inputs[:n_index])
        _, _, theta, sizes = self.stack(len(first) - 1, X.shape[-1], inputs[n_index:])
        out, forward = np.empty((len(points), sizes[-1]), self.dtype), make_kernels(*self.kernel_key)[0]
        outputs[1][0] = forward(points, order, first, theta, sizes, self.plan, out)
        outputs[0][0] = out.reshape(*X.shape[:-1], sizes[-1])

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        n_index = 2 * self.in_rows
        return [[not 1 <= i <= n_index] * 2 for i in range(len(node.inputs))]

    def pullback(self, inputs: Inputs, outputs: Inputs, cotangents: Inputs) -> list[Variable]:
        if not isinstance(cotangents[1].type, DisconnectedType):
            raise NotImplementedError("a derivative of the hidden units; wanted: of the outputs")
        gradient = NetworkGradient(
            self.n_layers,
            self.has_bias,
            self.activations,
            self.dtype,
            self.in_rows,
            differentiate_points=self.differentiate_points,
        )
        slopes = gradient(outputs[1], cotangents[0], *inputs, return_list=True)
        if not self.differentiate_points:
            why = "only with respect to weights and biases, not to points; wanted: differentiate_points=True"
            slopes.insert(0, grad_not_implemented(self, 0, inputs[0], why))
        return [slopes[0], *(disconnected_type() for _ in range(2 * self.in_rows)), *slopes[1:]]


class NetworkGradient(_Networks):
    """The way back: units, cotangents of the outputs, and the inputs of `NetworkOutput` in; the gradients out."""

    def make_node(self, units: Variable, cotangent: Variable, X: Variable, *inputs: Variable) -> Apply:
        parameters = inputs[2 * self.in_rows :]
        outputs = [
            pt.tensor(dtype=self.dtype, shape=value.type.shape)
            for value in ([X] if self.differentiate_points else []) + list(parameters)
        ]
        return Apply(self, [units, pt.cast(cotangent, self.dtype), X, *inputs], outputs)

    def perform(self, node: Apply, inputs: Sequence[Array], outputs: Sequence[list[Array]]) -> None:
        units, cotangent, X, *inputs = (np.ascontiguousarray(value) for value in inputs)
        n_index = 2 * self.in_rows
        points, order, first = self.get_rows(X, inputs[:n_index])
        weights, biases, theta, sizes = self.stack(len(first) - 1, X.shape[-1], inputs[n_index:])
        gradient, back = np.empty_like(theta), make_kernels(*self.kernel_key)[1]
        to_points = np.empty(points.shape if self.differentiate_points else (0, 0), self.dtype)
        cotangent = cotangent.reshape(len(points), sizes[-1])
        back(units, cotangent, order, first, theta, sizes, self.plan, gradient, to_points)
        values = _layers.cut_parts(gradient, weights, biases)
        values = [to_points.reshape(X.shape), *values] if self.differentiate_points else values
        for output, value in zip(outputs, values, strict=True):
            output[0] = value

    def pullback(self, inputs: Inputs, outputs: Inputs, cotangents: Inputs) -> list[Variable]:
        raise NotImplementedError("second derivatives of a fused network; wanted: the model before fuse")


@register_funcify_and_cache_key(NetworkOutput)
def _dispatch_output(op: NetworkOutput, node: Apply, **kwargs: Any) -> tuple[Callable, str]:
    w, b, _ = _layers.name_parts(op.n_layers, op.has_bias)
    lines = [
        f"def network_output({op.arguments}, {', '.join(w + b)}):",
        *op.write_rows(),
        *_layers.write_theta(op.n_layers, op.has_bias, "points.shape[1]"),
        f"    out = np.empty((points.shape[0], sizes[{op.n_layers}]), points.dtype)",
        "    units = forward(points, order, first, theta, sizes, plan, out)",
        f"    return out{'' if op.in_rows else '.reshape(X.shape[0], X.shape[1], out.shape[1])'}, units",
    ]
    forward, _ = make_kernels(*op.kernel_key)
    return _layers.compile_lines(op, "network_output", lines, __file__, forward=forward)


@register_funcify_and_cache_key(NetworkGradient)
def _dispatch_gradient(op: NetworkGradient, node: Apply, **kwargs: Any) -> tuple[Callable, str]:
    w, b, _ = _layers.name_parts(op.n_layers, op.has_bias)
    gradients = [f"d{name}" for name in w + b]
    if op.differentiate_points:
        gradients.insert(0, "to_points" if op.in_rows else "to_points.reshape(X.shape)")
    lines = [
        f"def network_gradient(units, cotangent, {op.arguments}, {', '.join(w + b)}):",
        *op.write_rows(),
        *_layers.write_theta(op.n_layers, op.has_bias, "points.shape[1]"),
        "    gradient = np.empty(theta.shape, theta.dtype)",
        f"    to_points = np.empty({'points.shape' if op.differentiate_points else '(0, 0)'}, theta.dtype)",
        f"    slopes = np.ascontiguousarray(cotangent).reshape(points.shape[0], sizes[{op.n_layers}])",
        "    back(units, slopes, order, first, theta, sizes, plan, gradient, to_points)",
        *_layers.write_gradients(op.n_layers, op.has_bias),
        f"    return {', '.join(gradients)}",
    ]
    _, back = make_kernels(*op.kernel_key)
    return _layers.compile_lines(op, "network_gradient", lines, __file__, back=back)


def _register_jax() -> None:
    """The same Ops as plain JAX expressions, for NumPyro and BlackJAX, where JAX is installed."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return
    from pytensor.link.jax.dispatch import jax_funcify

    def predict(op: _Networks, X: Any, inputs: Sequence[Any]) -> Any:
        order, first = inputs[:2] if op.in_rows else (None, None)
        out = _layers.apply_layers_jax(op, X, order, first, inputs[2 * op.in_rows :])
        return jnp.zeros((len(X), out.shape[1]), op.dtype).at[order].set(out) if op.in_rows else out

    @jax_funcify.register(NetworkOutput)
    def _dispatch_jax_output(op: NetworkOutput, node: Apply, **kwargs: Any) -> Callable:
        def network_output(X: Any, *inputs: Any) -> tuple[Any, Any]:
            # JAX keeps no units: it differentiates this by itself
            return predict(op, X, inputs), jnp.zeros(0, op.dtype)

        return network_output

    @jax_funcify.register(NetworkGradient)
    def _dispatch_jax_gradient(op: NetworkGradient, node: Apply, **kwargs: Any) -> Callable:
        def network_gradient(units: Any, cotangent: Any, X: Any, *inputs: Any) -> list[Any]:
            index, parameters = inputs[: 2 * op.in_rows], inputs[2 * op.in_rows :]
            slopes = jax.vjp(lambda X, *p: predict(op, X, (*index, *p)), X, *parameters)[1](cotangent)
            return slopes[not op.differentiate_points :]

        return network_gradient


_register_jax()


def network_output(
    X: Any,
    weights: Sequence[Any],
    *,
    biases: Sequence[Any] = (),
    group: Any = None,
    activation: Activation | tuple[Activation, ...] = "tanh",
    dtype: str = "float64",
    differentiate_points: bool = False,
) -> TensorVariable:
    """Symbolic outputs of one network per group, or of a single one, for a likelihood of any kind.

    Parameters
    ----------
    X : tensor, shape (row, feature) or (group, obs, feature)
    weights : sequence of tensors, shape (group, n_in, n_out)
        Layer by layer, or (n_in, n_out) for a single network.
    biases : sequence of tensors, shape (group, n_out) or (n_out,)
        One for each layer, or nothing.
    group : tensor of int, shape (row,), optional
        Which network a row belongs to; `_rows.OUTSIDE` for none, whose outputs are 0.
    activation : str, (str, float) or tuple of these
        One for all hidden layers, or a tuple with one for each: "tanh", "relu", "sigmoid", "softplus", "gelu",
        "gelu_tanh", "silu", "sin", "elu", "leaky_relu", or ("elu", alpha), ("leaky_relu", slope).
    dtype : {"float64", "float32"}
        Of the arithmetic and of what is returned.
    differentiate_points : bool
        Whether X is an unknown, too, and has a gradient.

    Returns
    -------
    TensorVariable, shape (row, output) or (group, obs, output)

    Raises
    ------
    TypeError
        When an input has another number of axes than wanted, naming it.
    ValueError
        When shapes do not fit together, or for a group without weights; at run time where it is known only then.

    References
    ----------
    Rumelhart, Hinton and Williams (1986), Learning Representations by Back-Propagating Errors, Nature 323.

    Examples
    --------
    Two networks; each row is answered by the one of its group.

    >>> import numpy as np
    >>> from hbnn.fusion._output import network_output
    >>> rng = np.random.default_rng(1)
    >>> X, group = rng.normal(size=(4, 2)), [0, 0, 1, 1]
    >>> w1, w2 = rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 3, 1))
    >>> found = network_output(X, [w1, w2], group=group, activation="sin").eval()
    >>> found.shape
    (4, 1)
    >>> bool(np.allclose(found[2:], np.sin(X[2:] @ w1[1]) @ w2[1]))
    True
    """
    X, weights, biases, index, is_single = arrange(X, weights, biases, group)
    op = NetworkOutput(
        len(weights),
        bool(biases),
        activation,
        dtype,
        group is not None,
        differentiate_points=differentiate_points,
    )
    out = op(X, *index[:2], *weights, *biases)[0]
    return out[0] if is_single else out
