"""The arithmetic bound: how fast the fused gradient could be if nothing but its arithmetic took time.

Counted are operations on whole vectors of points (8 in float64, 16 in float32): a multiply-add for each weight and
point forward, one for its gradient, one for each weight that something is sent back through; `TANH` operations for a
tanh, `OUTPUT` for the likelihood of a point. Loads, stores, sums over the points of a vector, loops and padding to
whole vectors beyond the last point are not, and a division counts as one operation: so this is a bound, and no
algorithm that does this arithmetic in this order can beat it.
"""

import time
from functools import lru_cache
from itertools import pairwise

import numba
import numpy as np
from hbnn.fusion._simd import LANES, add_up, fma, load, splat

TANH = 20  # 2 to clip, 3 to reduce, 9 multiply-adds and a product of the series, 3 to scale, a sum, a division
SLOPE = 2  # 1 - h * h, and its product with what comes back
ACTIVATION = {"tanh": TANH + SLOPE, "relu": 2}  # a ReLU: the larger of two, and a choice on the way back
OUTPUT = 30  # exp, a division, the sums and the residual


def count_operations(n_groups, n_obs, sizes, dtype="float64", activation="tanh"):
    """Vector operations of one gradient.

    Parameters
    ----------
    n_groups, n_obs : int, groups, and points in each
    sizes : features, hidden units of each layer, 1
    dtype : "float64" or "float32"
    activation : "tanh" or "relu"
    """
    pairs = [a * b for a, b in pairwise(sizes)]
    hidden = sum(sizes[1:-1])
    a_point = 2 * sum(pairs) + sum(pairs[1:]) + hidden * ACTIVATION[activation] + OUTPUT
    return n_groups * n_obs / LANES[dtype] * a_point


@lru_cache
def measure_rate(dtype="float64", n_repetitions=20):
    """Vector operations a second that this core can do: multiply-adds on twelve vectors that need not wait."""
    number = np.dtype(dtype).type
    factor, summand = number(0.999), number(0.001)

    @numba.njit
    def run(numbers, n):
        a = b = c = d = e = f = load(numbers, 0, 0)
        g = h = i = j = k = m = load(numbers, 1, 0)
        u, v = splat(factor), splat(summand)
        for _ in range(n):
            a, b, c, d = fma(a, u, v), fma(b, u, v), fma(c, u, v), fma(d, u, v)
            e, f, g, h = fma(e, u, v), fma(f, u, v), fma(g, u, v), fma(h, u, v)
            i, j, k, m = fma(i, u, v), fma(j, u, v), fma(k, u, v), fma(m, u, v)
            u = u + v - v  # a loop that the compiler cannot foresee
        return add_up(a + b + c + d + e + f + g + h + i + j + k + m)

    numbers = np.linspace(0, 1, 2 * LANES[dtype], dtype=dtype).reshape(2, -1)
    n, best = 100_000, np.inf
    run(numbers, 1)
    for _ in range(n_repetitions):
        start = time.perf_counter()
        run(numbers, n)
        best = min(best, time.perf_counter() - start)
    return 14 * n / best
