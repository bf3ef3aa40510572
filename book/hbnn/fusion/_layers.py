"""Layers of small networks forward and back, for 64 points at a time, eight of them (sixteen in float32) at once.

What `_loglik` and `_output` have in common: the layers' functions for compiled code, how the weights and biases of all
layers become one row of numbers for each group, and what their Ops know of a network.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.graph.op import Op
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit
from pytensor.tensor.variable import TensorVariable

from hbnn.fusion import _activations, _simd
from hbnn.fusion._activations import (
    Activation,
    inline,
    is_cheap,
    keeps_slope,
    make_pair,
    njit,
    read_activations,
    switch_between,
)
from hbnn.fusion._simd import LANES, add_to, fma, get_rows, load, make_blocks, splat

type Arrays = Sequence[NDArray]

DTYPES = ("float64", "float32")
CHUNK = 64  # points that stay in the nearest cache from the first layer to the last and back


UNITS = 4  # of a layer at once: one load from memory then serves four multiplications
TILE = (2, 2)  # units of two layers at once for the gradient of their weights: four loads serve four


@lru_cache
def make_layer(activation: Activation, dtype: str, has_bias: bool) -> tuple[Callable, Callable]:
    """A layer forward with its activation, and a layer back with the slope of the activation below, compiled.

    Both read the parameters of group `g` from ``theta[g]``, a layer's weights row by row from `at` on and its biases
    after them, and the units' values from rows of `h` and `delta`, starting at row `below` and `above`; what slopes are
    computed from starts at row `source`.
    """
    (up_many, back_many), (up_one, back_one) = (_make_moves(activation, dtype, has_bias, n) for n in (UNITS, 1))

    @njit
    def move_up(theta, g, at, n_in, n_out, h, below, above, source, n):
        """h[above + j] = activation(bias[j] + sum over i of w[i, j] h[below + i]), for the first `n` points."""
        many = n_out - n_out % UNITS
        up_many(theta, g, at, n_in, n_out, h, below, above, source, n, 0, many)
        up_one(theta, g, at, n_in, n_out, h, below, above, source, n, many, n_out)

    @njit
    def move_back(theta, g, at, n_in, n_out, h, delta, below, above, source, n):
        """delta[below + i] = slope of unit i times the sum over j of w[i, j] delta[above + j]."""
        many = n_in - n_in % UNITS
        back_many(theta, g, at, n_out, h, delta, below, above, source, n, 0, many)
        back_one(theta, g, at, n_out, h, delta, below, above, source, n, many, n_in)

    return move_up, move_back


def _make_moves(activation, dtype, has_bias, units):
    """The two for the units `first` to `last`, so many at once."""
    lanes, zero = LANES[dtype], np.dtype(dtype).type(0)
    load_units, store_units, splat, splat_at, _ = make_blocks(units)
    (apply, slope), keeps = make_pair(activation, dtype), keeps_slope(activation)

    @inline
    def up(theta, g, at, n_in, n_out, h, below, above, source, n, first, last):
        for k in range(0, n, lanes):
            for j in range(first, last, units):
                a = splat_at(theta, g, at + n_in * n_out + j, 1) if has_bias else splat(zero)
                for i in range(n_in):
                    a = fma(splat_at(theta, g, at + i * n_out + j, 1), load(h, below + i, k), a)
                if keeps:
                    value, kept = apply(a)
                    store_units(h, above + j, k, value)
                    store_units(h, source + j, k, kept)
                else:
                    store_units(h, above + j, k, apply(a))

    @inline
    def back(theta, g, at, n_out, h, delta, below, above, source, n, first, last):
        for k in range(0, n, lanes):
            for i in range(first, last, units):
                a = splat(zero)
                for j in range(n_out):
                    a = fma(splat_at(theta, g, at + i * n_out + j, n_out), load(delta, above + j, k), a)
                store_units(delta, below + i, k, a * slope(load_units(h, source + i, k)))

    return up, back


@lru_cache
def make_gradient(dtype: str, has_bias: bool) -> Callable:
    """A layer's gradient, compiled; it reads what `make_layer` reads."""
    rows, columns = TILE
    tiles = [_make_tile(dtype, *tile) for tile in ((rows, columns), (rows, 1), (1, columns), (1, 1))]
    add_tile, add_row_tile, add_column_tile, add_one = tiles
    lanes, zero = LANES[dtype], np.dtype(dtype).type(0)

    @njit
    def add_gradient(gradient, g, at, n_in, n_out, h, delta, below, above, n):
        """gradient[g, at + (i, j)] += sum over points of h[below + i] * delta[above + j]; then the biases'."""
        i, j = n_in - n_in % rows, n_out - n_out % columns
        add_tile(gradient, g, at, n_out, h, delta, below, above, n, 0, i, 0, j)
        add_row_tile(gradient, g, at, n_out, h, delta, below, above, n, 0, i, j, n_out)
        add_column_tile(gradient, g, at, n_out, h, delta, below, above, n, i, n_in, 0, j)
        add_one(gradient, g, at, n_out, h, delta, below, above, n, i, n_in, j, n_out)
        if has_bias:
            for j in range(n_out):
                a = splat(zero)
                for k in range(0, n, lanes):
                    a = a + load(delta, above + j, k)
                add_to(gradient, g, at + n_in * n_out + j, 1, a)

    return add_gradient


def _make_tile(dtype, rows, columns):
    """The same for the units `first_i` to `last_i` and `first_j` to `last_j`, so many at once, without biases."""
    lanes, zero = LANES[dtype], np.dtype(dtype).type(0)
    (load_rows, _, splat, _, add_to), (load_columns, *_) = make_blocks(rows, columns), make_blocks(columns)

    @inline
    def add_tile(gradient, g, at, n_out, h, delta, below, above, n, first_i, last_i, first_j, last_j):
        for i in range(first_i, last_i, rows):
            for j in range(first_j, last_j, columns):
                a = splat(zero)
                for k in range(0, n, lanes):
                    a = fma(load_rows(h, below + i, k), load_columns(delta, above + j, k), a)
                add_to(gradient, g, at + i * n_out + j, n_out, a)

    return add_tile


@lru_cache
def make_networks(
    activations: tuple[Activation, ...], dtype: str, has_bias: bool
) -> tuple[Callable, Callable, Callable]:
    """All layers of one group's network forward and back for a chunk of points, compiled.

    `sizes` counts features, the units of each hidden layer, and outputs; `plan` says for each layer which of
    `activations` it has.

    Returns
    -------
    find_places : function of sizes and plan; gives `places`: where each layer's parameters begin in a row of theta, its
        units (features first, outputs last) among the rows of a chunk, and what their slopes are computed from; and the
        number of rows
    go_up : function of theta, g, h (row, point), n, sizes, plan, places; features must be there, the rest is written
    go_back : function of theta, gradient, g, h, delta (row, point), n, sizes, plan, places, and whether the features'
        rows of `delta` are wanted; the outputs' rows must be there, and gradients are added
    """
    layers = [make_layer(activation, dtype, has_bias) for activation in activations]
    move_up, move_back = (switch_between(moves) for moves in zip(*layers, strict=True))
    (move_out, move_to_points), add_gradient = make_layer("linear", dtype, has_bias), make_gradient(dtype, has_bias)
    keeps = tuple(keeps_slope(activation) for activation in activations)

    @njit
    def find_places(sizes, plan):
        n_layers = len(sizes) - 1
        starts, rows = np.zeros(n_layers + 1, np.int64), np.zeros(n_layers + 2, np.int64)
        for layer in range(n_layers + 1):
            rows[layer + 1] = rows[layer] + sizes[layer]
            if layer < n_layers:
                starts[layer + 1] = starts[layer] + (sizes[layer] + has_bias) * sizes[layer + 1]
        sources, n_rows = rows.copy(), rows[n_layers + 1]
        for layer in range(1, n_layers):
            if keeps[plan[layer - 1]]:
                sources[layer] = n_rows
                n_rows += sizes[layer]
        return (starts, rows, sources), n_rows

    @njit
    def go_up(theta, g, h, n, sizes, plan, places):
        starts, rows, sources = places
        last, theta, h = len(sizes) - 2, get_rows(theta), get_rows(h)
        for i in range(last):
            k, source = i + 1, sources[i + 1]
            move_up(plan[i], theta, g, starts[i], sizes[i], sizes[k], h, rows[i], rows[k], source, n)
        move_out(theta, g, starts[last], sizes[last], sizes[last + 1], h, rows[last], rows[last + 1], 0, n)

    @njit
    def go_back(theta, gradient, g, h, delta, n, sizes, plan, places, to_points):
        starts, rows, sources = places
        theta, gradient, h, delta = get_rows(theta), get_rows(gradient), get_rows(h), get_rows(delta)
        for i in range(len(sizes) - 2, -1, -1):
            k, source = i + 1, sources[i]
            add_gradient(gradient, g, starts[i], sizes[i], sizes[k], h, delta, rows[i], rows[k], n)
            if i > 0:
                move_back(plan[i - 1], theta, g, starts[i], sizes[i], sizes[k], h, delta, rows[i], rows[k], source, n)
        if to_points:
            move_to_points(theta, g, 0, sizes[0], sizes[1], h, delta, 0, rows[1], 0, n)

    return find_places, go_up, go_back


WIDEST_CHEAP = 64  # features and units up to which a fused network of ReLU is faster than BLAS


def is_faster(sizes: Sequence[int], activations: Sequence[Activation], per_group: float = CHUNK) -> bool:
    """Whether a fused network is known to be faster than the graph as it was typed.

    Stock PyTensor calls the C library for each tanh, so there fusing pays. ReLU costs nothing, and all that is saved
    are passes over memory, so wide layers of it are left to BLAS; so are 16 units and more with few points to a group,
    which use a quarter of a vector. What was measured stands in `book/api_fuse.md`, "Where it pays".

    Parameters
    ----------
    sizes : sequence of int
        Features, units of each hidden layer, outputs.
    activations : sequence of Activation
        Of the hidden layers.
    per_group : float
        Points to a group, on average.

    Returns
    -------
    bool

    Examples
    --------
    >>> from hbnn.fusion._layers import is_faster
    >>> is_faster((10, 64, 64, 1), ("relu", "relu")), is_faster((784, 512, 10), ("relu",))
    (True, False)
    """
    return not all(map(is_cheap, activations)) or (max(sizes) <= WIDEST_CHEAP and (per_group >= 4 or max(sizes) < 16))


# --- what the Ops have in common


class Networks(Op):
    """Networks of one shape, one for each group of points.

    Points are X (group, obs, feature), or rows in any order: X (row, feature), and the first outputs of
    `_rows.SortRows`. Weights are (group, n_in, n_out), biases (group, n_out).

    Parameters
    ----------
    n_layers : int
        Layers of weights, the output layer included.
    has_bias : bool
        Whether all layers have biases, or none.
    activation
        See `_output.network_output`.
    dtype : {"float64", "float32"}
        Of the arithmetic.
    in_rows : bool
        Whether points are rows.
    """

    __props__ = ("n_layers", "has_bias", "activations", "dtype", "in_rows")

    def __init__(
        self,
        n_layers: int,
        has_bias: bool = False,
        activation: Activation | tuple[Activation, ...] = "tanh",
        dtype: str = "float64",
        in_rows: bool = False,
    ) -> None:
        if n_layers < 1:
            raise ValueError(f"n_layers={n_layers}; wanted: at least 1")
        if dtype not in DTYPES:
            raise ValueError(f"dtype={dtype!r}; wanted: one of {', '.join(DTYPES)}")
        self.n_layers, self.has_bias, self.dtype, self.in_rows = n_layers, bool(has_bias), dtype, bool(in_rows)
        self.activations = read_activations(activation, n_layers - 1)

    @property
    def kinds(self) -> tuple[Activation, ...]:
        """The different activations, at least one."""
        return tuple(dict.fromkeys(self.activations)) or ("tanh",)

    @property
    def kernel_key(self) -> tuple[tuple[Activation, ...], str, bool]:
        """What kernels are compiled for."""
        return self.kinds, self.dtype, self.has_bias

    @property
    def plan(self) -> NDArray:
        """Which of `kinds` each layer has."""
        return np.array([*(self.kinds.index(one) for one in self.activations), 0])

    def read_inputs(self, X: Any, parameters: Sequence[Any]) -> list[TensorVariable]:
        """X, weights and biases as tensors of the Op's type; TypeError for what has another number of axes."""
        wanted = [2 if self.in_rows else 3] + [3] * self.n_layers + [2] * (self.n_layers * self.has_bias)
        names = ["X", *(f"weights[{k}]" for k in range(self.n_layers)), *(f"biases[{k}]" for k in range(self.n_layers))]
        if len(parameters) != len(wanted) - 1:
            raise TypeError(f"{len(parameters)} arrays of weights and biases; wanted: {len(wanted) - 1}")
        found = [pt.cast(pt.as_tensor(value), self.dtype) for value in (X, *parameters)]
        for name, count, value in zip(names, wanted, found, strict=False):
            if value.ndim != count:
                raise TypeError(f"{name} has {value.ndim} axes; wanted: {count}")
        return found

    def stack(self, n_groups: int, n_features: int, parameters: Arrays) -> tuple[Arrays, Arrays, NDArray, NDArray]:
        """Weights, biases, the row of numbers of each group, and sizes, of arrays."""
        weights, biases = parameters[: self.n_layers], parameters[self.n_layers :]
        sizes = check_layers(n_groups, n_features, weights, biases)
        return weights, biases, stack_parts(weights, biases), np.array(sizes)


def list_rows(X: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """X (group, obs, feature) as rows, and `order` and `first` as `_rows.SortRows` gives them; in Python and Numba."""
    n_groups, n_obs, n_features = X.shape
    points = np.ascontiguousarray(X).reshape(n_groups * n_obs, n_features)
    return points, np.arange(n_groups * n_obs), np.arange(n_groups + 1) * n_obs


def apply_layers_jax(op: Networks, X: Any, order: Any, first: Any, parameters: Sequence[Any]) -> Any:
    """The outputs of networks in JAX: (group, obs, output), or of rows in the order of groups."""
    import jax.numpy as jnp

    n_groups, h = parameters[0].shape[0], X
    if op.in_rows:
        h = X[order]
        group = jnp.searchsorted(first, jnp.arange(order.shape[0]), side="right") - 1
    for k in range(op.n_layers):
        w = parameters[k]
        b = parameters[op.n_layers + k] if op.has_bias else 0
        if not op.in_rows:
            h = jnp.einsum("gni,gij->gnj", h, w) + (b[:, None] if op.has_bias else 0)
        elif n_groups == 1:
            h = h @ w[0] + (b[0] if op.has_bias else 0)
        else:
            h = jnp.einsum("ni,nij->nj", h, w[group]) + (b[group] if op.has_bias else 0)
        h = _activations.apply_jax(op.activations[k], h) if k < op.n_layers - 1 else h
    return h


# --- all layers as one row of numbers


def name_parts(n_layers: int, has_bias: bool) -> tuple[list[str], list[str], list[str]]:
    """What generated code calls the weights and the biases: two lists of names, and all of them layer by layer."""
    w, b = [f"w{k}" for k in range(n_layers)], [f"b{k}" for k in range(n_layers)] if has_bias else []
    return w, b, [name for layer in zip(w, b or w, strict=True) for name in layer[: 1 + has_bias]]


def write_theta(n_layers: int, has_bias: bool, n_features: str) -> list[str]:
    """Lines of code that check the shapes of w0, w1, … and b0, …, and lay them side by side in `theta`.

    Numba cannot loop over arguments of several types, so it is written out. The lines know `n_groups`, and the number
    of features by the expression given; they leave `sizes` and `theta`, whose rows are groups.
    """
    w, b, parts = name_parts(n_layers, has_bias)
    lines = [f"    sizes = ({n_features}{''.join(f', {name}.shape[2]' for name in w)})"]
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
        "    stop = 0",
        f"    n_parameters = {' + '.join(f'{name}[0].size' for name in parts)}",
        "    theta = np.empty((n_groups, n_parameters), w0.dtype)",
    ]
    for name in parts:
        lines += [f"    start, stop = stop, stop + {name}[0].size", f"    copy_in({name}, theta, start)"]
    return lines


def write_gradients(n_layers: int, has_bias: bool) -> list[str]:
    """Lines of code that cut `gradient`, shaped like `theta`, into dw0, dw1, … and db0, …"""
    lines = ["    stop = 0"]
    for name in name_parts(n_layers, has_bias)[2]:
        lines += [
            f"    start, stop = stop, stop + {name}[0].size",
            f"    d{name} = np.empty({name}.shape, w0.dtype)",
            f"    copy_out(gradient, start, d{name})",
        ]
    return lines


def compile_lines(op: "Networks", name: str, lines: list[str], module: str, **names: Callable) -> tuple[Callable, str]:
    """The generated function for PyTensor, and the key of its place in Numba's cache: the code and what it rests on."""
    key = make_cache_key(module, f"{name} {[getattr(op, prop) for prop in op.__props__]}")
    names |= {"copy_in": copy_in, "copy_out": copy_out, "list_rows": njit(list_rows), "plan": op.plan, "np": np}
    return numba_njit(compile_numba_function_src("\n".join(lines), name, names)), key


def make_cache_key(module: str, options: str = "") -> str:
    """A key for Numba's cache: of the code of a module, of what it rests on, and of options."""
    code = "".join(
        Path(file).read_text(encoding="utf-8") for file in (module, __file__, _activations.__file__, _simd.__file__)
    )
    return hashlib.sha256(f"{options}\n{code}".encode()).hexdigest()


def stack_parts(weights: Arrays, biases: Arrays) -> NDArray:
    """The same `theta` in NumPy: (group, parameter)."""
    layers = zip(weights, biases or weights, strict=True)
    rows = [part.reshape(len(part), -1) for layer in layers for part in layer[: 2 if biases else 1]]
    return np.concatenate(rows, axis=1)


def cut_parts(gradient: NDArray, weights: Arrays, biases: Arrays) -> list[NDArray]:
    """Arrays shaped like `weights`, then like `biases`, from `gradient`, shaped like what `stack_parts` gives."""
    found, stop = {}, 0
    for k, w in enumerate(weights):
        for kind, part in (("w", w), ("b", biases[k])) if biases else (("w", w),):
            start, stop = stop, stop + part[0].size
            found[kind, k] = np.ascontiguousarray(gradient[:, start:stop]).reshape(part.shape)
    return [found[kind, k] for kind in ("wb" if biases else "w") for k in range(len(weights))]


def check_layers(n_groups: int, n_features: int, weights: Arrays, biases: Arrays) -> tuple[int, ...]:
    """Number of features and of units in each layer, outputs included; ValueError where shapes do not fit together."""
    sizes = [n_features]
    for k, w in enumerate(weights):
        if w.shape[:2] != (n_groups, sizes[-1]):
            raise ValueError(f"weights[{k}] has shape {w.shape}; wanted: ({n_groups}, {sizes[-1]}, hidden)")
        sizes.append(w.shape[2])
    for k, b in enumerate(biases):
        if b.shape != (n_groups, sizes[k + 1]):
            raise ValueError(f"biases[{k}] has shape {b.shape}; wanted: ({n_groups}, {sizes[k + 1]})")
    return tuple(sizes)


@njit
def copy_in(part, theta, start):
    """The parameters of one layer into the columns of theta from `start` on."""
    for g in range(part.shape[0]):
        k = start
        for value in part[g].flat:
            theta[g, k] = value
            k += 1


@njit
def copy_out(gradient, start, part):
    """The other way."""
    size = part[0].size
    flat = part.reshape(part.shape[0], size)
    for g in range(part.shape[0]):
        for k in range(size):
            flat[g, k] = gradient[g, start + k]
