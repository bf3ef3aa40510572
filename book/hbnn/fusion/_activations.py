"""Activations of hidden units and their slopes, for vectors of points (`_simd`) and for JAX.

exp, log1p, erfc, sin and cos are polynomials after a change of variable, interpolated at Chebyshev nodes in 60 digits.
Values are good to a few units in the last place: 1e-14 in float64, 1e-6 in float32 (`test_fused_output.py`).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from numbers import Real
from typing import Any

import numba
import numpy as np

from hbnn.fusion._simd import (
    BIAS,
    ROUNDER,
    absolute,
    at_least,
    at_most,
    choose_positive,
    flip_sign,
    fma,
    make_polynomial,
    scale_of,
    splat,
)

type Activation = str | tuple[str, float]

PARAMETERS = {"leaky_relu": 0.01, "elu": 1.0}  # of activations that have one, and what it is where none is given
ACTIVATIONS = ("tanh", "relu", "sigmoid", "softplus", "gelu", "gelu_tanh", "silu", "sin", *PARAMETERS)
KEEPS_SLOPE = {"gelu", "gelu_tanh", "silu", "sin"}  # the slope of the others follows from the value

inline = numba.njit(inline="always")
njit = numba.njit(error_model="numpy")


def read_activations(activation: Any, n_hidden: int) -> tuple[Activation, ...]:
    """One activation for each hidden layer, with its parameter if it has one; ValueError for what is none."""
    is_one = isinstance(activation, str) or (len(activation) == 2 and isinstance(activation[1], Real))
    found = (activation,) * n_hidden if is_one else tuple(activation)
    if is_one:
        _read_activation(activation)
    if len(found) != n_hidden:
        raise ValueError(f"{len(found)} activations for {n_hidden} hidden layers; wanted: one for each, or one for all")
    return tuple(_read_activation(one) for one in found)


def is_cheap(activation: Activation) -> bool:
    """Whether a comparison is all it takes, so that the graph as it was typed computes it as fast."""
    return (activation if isinstance(activation, str) else activation[0]) in ("relu", "leaky_relu")


def _read_activation(activation):
    name, *number = (activation,) if isinstance(activation, str) else activation
    if name not in ACTIVATIONS or len(number) > (name in PARAMETERS):
        raise ValueError(f"activation={activation!r}; wanted: one of {', '.join(ACTIVATIONS)}")
    if name not in PARAMETERS:
        return name
    number = float(number[0] if number else PARAMETERS[name])
    if not (0 <= number < np.inf):
        raise ValueError(f"activation={activation!r}; wanted: a parameter that is not negative")
    return name, number


# highest power first
_SERIES = {
    # expm1(2 r) / r for |r| <= log(2) / 4
    ("expm1", "float64"): (
        0.000282830168459798, 0.001414795060582694, 0.00634918942773424, 0.025396723826083285, 0.0888888890705523,
        0.2666666677572333, 0.6666666666659841, 1.3333333333292354, 2.0000000000000004, 2.0000000000000027,
    ),
    ("expm1", "float32"): (
        0.08917558952075609, 0.2678139002333432, 0.6666634336324244, 1.3333203949570878, 2.0000000053992713,
        2.000000021607905,
    ),
    # 2 atanh(s) / s in s² for s <= 1/3
    ("atanh", "float64"): (
        0.17044163562781398, 0.0832450651186082, 0.12110168728069218, 0.13300374032674625, 0.1538661404230401,
        0.18181740832504806, 0.22222224080747674, 0.28571428545454114, 0.4000000000018575, 0.6666666666666615, 2.0,
    ),
    ("atanh", "float32"): (
        0.2815777836310908, 0.27965157745197267, 0.40024595230703747, 0.6666632164137777, 2.000000007681759,
    ),
    # (1 + 2 x) exp(x²) erfc(x) in t = (x - 3) / (x + 3), up to the x where the exponential ends
    ("erfc", "float64"): (
        1.1875976261242358e-09, 2.4854692915103497e-08, 6.011055693652009e-08, -1.3052635799700562e-07,
        -5.603787051624458e-07, 3.5997973237985304e-07, 3.428835157803996e-06, -7.405558782288538e-07,
        -2.0079586415326067e-05, 4.955443236821022e-06, 0.0001250929038152037, -0.00010516183758522667,
        -0.0007798310155656262, 0.001888690755365979, 0.0025293916668363923, -0.023770514961380267,
        0.06830802735389119, -0.11927366341301537, 0.1296451587024521, -0.04756229435349781, -0.13562110612457828,
        1.2530080582697298,
    ),
    ("erfc", "float32"): (
        -0.00010945383844229154, 0.0023739593485353995, 0.0023141919892444964, -0.024049190869246072,
        0.0683119419142408, -0.11922395074651312, 0.12964815024386478, -0.047565274979107806, -0.13562123152170064,
        1.2530080877842975,
    ),
    # sin(r) / r and cos(r) in r² for |r| <= pi / 2
    ("sin", "float64"): (
        2.7215660921125597e-15, -7.643025738964345e-13, 1.6058940847832492e-10, -2.505210688997513e-08,
        2.7557319211223257e-06, -0.00019841269841208638, 0.008333333333333186, -0.16666666666666666, 1.0,
    ),
    ("sin", "float32"): (
        2.605092957769762e-06, -0.0001980901106705217, 0.008333050086778936, -0.16666657944392216, 0.9999999956966751,
    ),
    ("cos", "float64"): (
        -1.51197786600161e-16, 4.776871733415368e-14, -1.1470670142864075e-11, 2.087675566605353e-09,
        -2.755731920964734e-07, 2.4801587301492586e-05, -0.001388888888888853, 0.04166666666666666, -0.5, 1.0,
    ),
    ("cos", "float32"): (
        -2.605051063602065e-07, 2.4760101516630358e-05, -0.0013888360127789826, 0.04166663614763936,
        -0.49999999355118124, 0.9999999997790224,
    ),
}  # fmt: skip
# beyond these, tanh is 1, exp(2 q) is nothing beside 1, erfc(x) nothing at all, and sin(z) is not known well enough
_TANH_ENDS = {"float64": 20, "float32": 10}
_EXP_ENDS = {"float64": -350, "float32": -40}
_ERFC_ENDS = {"float64": 26.45, "float32": 8.94}
_SIN_ENDS = {"float64": 2.0**40, "float32": 2.0**18}
_PI = {"float64": (np.pi, 1.2246467991473532e-16), "float32": (np.float32(np.pi), np.pi - float(np.float32(np.pi)))}


def _make_series(name, dtype):
    return make_polynomial([float(np.dtype(dtype).type(c)) for c in _SERIES[name, dtype]])


@lru_cache
def make_functions(dtype: str) -> tuple[Callable, Callable, Callable]:
    """expm1(2 q) and exp(2 q) for q <= 0, and tanh, for vectors of `dtype`, for use in compiled code.

    2 q = n log(2) + 2 r with a whole n and a small r: a polynomial in r, and 2**n written into the exponent.
    """
    number = np.dtype(dtype).type
    rounder = number(ROUNDER[dtype] + BIAS[dtype])
    per_half_log_2, half_log_2 = number(2 / np.log(2)), number(np.log(2) / 2)
    one, two, lowest, end = (number(x) for x in (1, 2, _EXP_ENDS[dtype], _TANH_ENDS[dtype]))
    series = _make_series("expm1", dtype)

    @inline
    def expm1_twice(q):
        rounded = fma(q, splat(per_half_log_2), splat(rounder))
        r = fma(rounded - splat(rounder), splat(-half_log_2), q)
        scale = scale_of(rounded)
        return fma(scale, series(r) * r, scale - splat(one))

    @inline
    def expm1_negative(q):
        return expm1_twice(at_least(q, splat(lowest)))

    @inline
    def exp_negative(q):
        q = at_least(q, splat(lowest))
        rounded = fma(q, splat(per_half_log_2), splat(rounder))
        r = fma(rounded - splat(rounder), splat(-half_log_2), q)
        scale = scale_of(rounded)
        return fma(scale, series(r) * r, scale)

    @inline
    def tanh(z):
        e = expm1_twice(at_least(at_most(z, splat(end)), splat(-end)))
        return e / (e + splat(two))

    return expm1_negative, exp_negative, tanh


@lru_cache
def make_pair(activation: Activation, dtype: str) -> tuple[Callable, Callable]:
    """The activation of z, and its slope from the value. Where `KEEPS_SLOPE`, the first gives both and the second hands
    the slope on. "linear" is that of the outputs and of the points.
    """
    name, *parameter = activation if isinstance(activation, tuple) else (activation,)
    return _MAKE_PAIR[name](dtype, *_cast(dtype, *parameter))


def _cast(dtype, *values):
    """The values as numbers of `dtype`."""
    return tuple(np.dtype(dtype).type(x) for x in values)


@inline
def _return_unchanged(z):
    return z


def _make_sigmoid(dtype):
    """The sigmoid of z."""
    half, one = _cast(dtype, 0.5, 1)
    _, exp_negative, _ = make_functions(dtype)

    @inline
    def sigmoid(z):
        e = exp_negative(splat(-half) * absolute(z))
        q = splat(one) / (splat(one) + e)
        return choose_positive(z, q, e * q)

    return sigmoid


def _make_linear_pair(dtype):
    (one,) = _cast(dtype, 1)

    @inline
    def slope(h):
        return splat(one)

    return _return_unchanged, slope


def _make_tanh_pair(dtype):
    (one,) = _cast(dtype, 1)

    @inline
    def slope(h):
        return fma(splat(-one) * h, h, splat(one))

    return make_functions(dtype)[2], slope


def _make_relu_pair(dtype):
    zero, one = _cast(dtype, 0, 1)

    @inline
    def relu(z):
        return at_least(z, splat(zero))

    @inline
    def slope(h):
        return choose_positive(h, splat(one), splat(zero))

    return relu, slope


def _make_leaky_relu_pair(dtype, below):
    (one,) = _cast(dtype, 1)

    @inline
    def leaky_relu(z):
        return choose_positive(z, z, splat(below) * z)

    @inline
    def slope(h):
        return choose_positive(h, splat(one), splat(below))

    return leaky_relu, slope


def _make_elu_pair(dtype, alpha):
    zero, half, one = _cast(dtype, 0, 0.5, 1)
    expm1_negative, *_ = make_functions(dtype)

    @inline
    def elu(z):
        e = expm1_negative(splat(half) * at_most(z, splat(zero)))
        return choose_positive(z, z, splat(alpha) * e)

    @inline
    def slope(h):
        return choose_positive(h, splat(one), h + splat(alpha))

    return elu, slope


def _make_sigmoid_pair(dtype):
    (one,) = _cast(dtype, 1)

    @inline
    def slope(h):
        return fma(splat(-one) * h, h, h)

    return _make_sigmoid(dtype), slope


def _make_softplus_pair(dtype):
    zero, half, one, two = _cast(dtype, 0, 0.5, 1, 2)
    expm1_negative, exp_negative, _ = make_functions(dtype)
    series = _make_series("atanh", dtype)

    @inline
    def softplus(z):
        e = exp_negative(splat(-half) * absolute(z))
        s = e / (e + splat(two))  # log(1 + e) = 2 atanh(s)
        return fma(s, series(s * s), at_least(z, splat(zero)))

    @inline
    def slope(h):
        return splat(-one) * expm1_negative(splat(-half) * h)

    return softplus, slope


def _make_silu_pair(dtype):
    (one,), sigmoid = _cast(dtype, 1), _make_sigmoid(dtype)

    @inline
    def silu(z):
        p = sigmoid(z)
        h = z * p
        return h, fma(h, splat(one) - p, p)

    return silu, _return_unchanged


def _make_gelu_tanh_pair(dtype):
    (one,), sigmoid = _cast(dtype, 1), _make_sigmoid(dtype)
    first, third, slope_third = _cast(dtype, *(np.sqrt(8 / np.pi) * x for x in (1, 0.044715, 3 * 0.044715)))

    @inline
    def gelu_tanh(z):  # (1 + tanh(u)) / 2 is the sigmoid of 2 u
        square = z * z
        p = sigmoid(z * fma(square, splat(third), splat(first)))
        h = z * p
        return h, fma(h * (splat(one) - p), fma(square, splat(slope_third), splat(first)), p)

    return gelu_tanh, _return_unchanged


def _make_gelu_pair(dtype):
    half, one, two, three, end = _cast(dtype, 0.5, 1, 2, 3, _ERFC_ENDS[dtype])
    root_half, density = _cast(dtype, np.sqrt(0.5), 1 / np.sqrt(2 * np.pi))
    series, (_, exp_negative, _) = _make_series("erfc", dtype), make_functions(dtype)

    @inline
    def gelu(z):
        x = at_most(absolute(z) * splat(root_half), splat(end))
        e = exp_negative(splat(-half) * x * x)
        tail = splat(half) * e * series((x - splat(three)) / (x + splat(three))) / fma(splat(two), x, splat(one))
        p = choose_positive(z, splat(one) - tail, tail)
        return z * p, fma(z, splat(density) * e, p)

    return gelu, _return_unchanged


def _make_sin_pair(dtype):
    sine, cosine = _make_series("sin", dtype), _make_series("cos", dtype)
    pi, rest, rounder, per_pi = _cast(dtype, *_PI[dtype], ROUNDER[dtype], 1 / np.pi)
    end, nan = _cast(dtype, _SIN_ENDS[dtype], np.nan)

    @inline
    def sin(z):
        rounded = fma(z, splat(per_pi), splat(rounder))
        n = rounded - splat(rounder)
        r = fma(n, splat(-rest), fma(n, splat(-pi), z))
        square, inside = r * r, splat(end) - absolute(z)
        value = choose_positive(inside, flip_sign(rounded, r * sine(square)), splat(nan))
        return value, choose_positive(inside, flip_sign(rounded, cosine(square)), splat(nan))

    return sin, _return_unchanged


_MAKE_PAIR: dict[str, Callable[..., tuple[Callable, Callable]]] = {
    "linear": _make_linear_pair,
    "tanh": _make_tanh_pair,
    "relu": _make_relu_pair,
    "leaky_relu": _make_leaky_relu_pair,
    "elu": _make_elu_pair,
    "sigmoid": _make_sigmoid_pair,
    "softplus": _make_softplus_pair,
    "silu": _make_silu_pair,
    "gelu_tanh": _make_gelu_tanh_pair,
    "gelu": _make_gelu_pair,
    "sin": _make_sin_pair,
}


def switch_between(functions: Sequence[Callable]) -> Callable:
    """A compiled function that calls the one of these whose number comes first."""
    first, *others = functions
    if not others:

        @njit
        def call(which, *arguments):
            first(*arguments)

        return call
    rest = switch_between(others)

    @njit
    def call(which, *arguments):
        if which == 0:
            first(*arguments)
        else:
            rest(which - 1, *arguments)

    return call


def keeps_slope(activation: Activation) -> bool:
    """Whether the slope has to be kept from the way forward."""
    return activation in KEEPS_SLOPE


def apply_jax(activation: Activation, z: Any) -> Any:
    """The activation of an array of JAX."""
    import jax
    import jax.numpy as jnp

    name, parameter = activation if isinstance(activation, tuple) else (activation, 0.0)
    functions = {
        "tanh": jnp.tanh,
        "relu": lambda z: jnp.where(z > 0, z, 0),
        "sigmoid": jax.nn.sigmoid,
        "softplus": jax.nn.softplus,
        "gelu": lambda z: jax.nn.gelu(z, approximate=False),
        "gelu_tanh": jax.nn.gelu,
        "silu": jax.nn.silu,
        "sin": jnp.sin,
        "leaky_relu": lambda z: jnp.where(z > 0, z, parameter * z),
        "elu": lambda z: jax.nn.elu(z, parameter),
    }
    return functions[name](z)
