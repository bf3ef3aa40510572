"""Layers of small networks forward and back, for 64 points at a time, eight of them (sixteen in float32) at once.

What `_loglik` and `_output` have in common: tanh and exp for vectors of points, the layers' functions for
compiled code, and how the weights and biases of all layers become one row of numbers for each group.
"""

import hashlib
from functools import lru_cache
from pathlib import Path

import numba
import numpy as np
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit

from hbnn.fusion import _simd
from hbnn.fusion._simd import (
    BIAS,
    LANES,
    ROUNDER,
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
NUMBERS = 1  # raise it when a fused likelihood or output gets other bits: published posteriors are found by it
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
inline = numba.njit(inline="always")
njit = numba.njit(error_model="numpy")


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

    @inline
    def expm1_twice(q):
        rounded = fma(q, splat(per_half_log_2), splat(rounder))
        r = fma(rounded - splat(rounder), splat(-half_log_2), q)
        series = splat(first)
        for c in rest:
            series = fma(series, r, splat(c))
        scale = scale_of(rounded)
        return fma(scale, series * r, scale - splat(one))

    @inline
    def expm1_negative(q):
        return expm1_twice(at_least(q, splat(lowest)))

    @inline
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

        @inline
        def slope(h):
            return fma(splat(-one) * h, h, splat(one))

    elif activation == "relu":

        @inline
        def activate(z):
            return at_least(z, splat(zero))

        @inline
        def slope(h):
            return choose_positive(h, splat(one), splat(zero))

    else:  # "linear", for a last layer of several outputs

        @inline
        def activate(z):
            return z

        @inline
        def slope(h):
            return splat(one)

    @inline
    def get_bias(theta, g, at):
        return splat_at(theta, g, at) if has_bias else splat(zero)

    @njit
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

    @njit
    def move_out(theta, g, at, n_in, h, below, delta, above, n):
        """The logits, into row `above` of `delta`."""
        for k in range(0, n, lanes):
            a = get_bias(theta, g, at + n_in)
            for i in range(n_in):
                a = fma(splat_at(theta, g, at + i), load(h, below + i, k), a)
            store(delta, above, k, a)

    @njit
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

    @njit
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


# --- all layers as one row of numbers


def name_parts(n_layers, has_bias):
    """What generated code calls the weights and the biases: two lists of names, and all of them layer by layer."""
    w, b = [f"w{k}" for k in range(n_layers)], [f"b{k}" for k in range(n_layers)] if has_bias else []
    return w, b, [name for layer in zip(w, b or w, strict=True) for name in layer[: 1 + has_bias]]


def write_theta(n_layers, has_bias, n_features):
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


def write_gradients(n_layers, has_bias):
    """Lines of code that cut `gradient`, shaped like `theta`, into dw0, dw1, … and db0, …"""
    lines = ["    stop = 0"]
    for name in name_parts(n_layers, has_bias)[2]:
        lines += [
            f"    start, stop = stop, stop + {name}[0].size",
            f"    d{name} = np.empty({name}.shape, w0.dtype)",
            f"    copy_out(gradient, start, d{name})",
        ]
    return lines


def compile_lines(op, name, lines, module, **names):
    """The generated function for PyTensor, and the key of its place in Numba's cache: the code and what it rests on."""
    key = digest(module, f"{name} {op.n_layers} {op.has_bias} {op.activation} {op.dtype}")
    names |= {"copy_in": copy_in, "copy_out": copy_out, "np": np}
    return numba_njit(compile_numba_function_src("\n".join(lines), name, names)), key


def digest(module, options=""):
    """A key for Numba's cache: of the code of a module, of what it rests on, and of options."""
    code = "".join(Path(file).read_text(encoding="utf-8") for file in (module, __file__, _simd.__file__))
    return hashlib.sha256(f"{options}\n{code}".encode()).hexdigest()


def stack_parts(weights, biases):
    """The same `theta` in NumPy: (group, parameter)."""
    layers = zip(weights, biases or weights, strict=True)
    rows = [part.reshape(len(part), -1) for layer in layers for part in layer[: 2 if biases else 1]]
    return np.concatenate(rows, axis=1)


def cut_parts(gradient, weights, biases):
    """Arrays shaped like `weights`, then like `biases`, from `gradient`, shaped like what `stack_parts` gives."""
    found, stop = {}, 0
    for k, w in enumerate(weights):
        for kind, part in (("w", w), ("b", biases[k])) if biases else (("w", w),):
            start, stop = stop, stop + part[0].size
            found[kind, k] = np.ascontiguousarray(gradient[:, start:stop]).reshape(part.shape)
    return [found[kind, k] for kind in ("wb" if biases else "w") for k in range(len(weights))]


def check_layers(n_groups, n_features, weights, biases):
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


def check_options(n_layers, activation, dtype):
    """ValueError for options that an Op does not have."""
    if n_layers < 1:
        raise ValueError(f"n_layers={n_layers}; wanted: at least 1")
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation={activation!r}; wanted: one of {', '.join(ACTIVATIONS)}")
    if dtype not in DTYPES:
        raise ValueError(f"dtype={dtype!r}; wanted: one of {', '.join(DTYPES)}")


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
