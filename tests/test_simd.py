"""Vectors of points in compiled code: each operation does to every lane what NumPy does to an array."""

import numba
import numpy as np
import pytest
from hbnn.fusion import _simd

DTYPES = ["float64", "float32"]
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def make_rows(dtype, n=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, _simd.LANES[dtype])).astype(dtype)


def apply(function, rows):
    """Call a compiled function of the rows, which writes to a copy of them."""
    out = rows.copy()
    numba.njit(function)(rows, out)
    return out


@every_dtype
def test_each_operation_is_that_of_numpy(dtype):
    def run(rows, out):
        a, b, c = _simd.load(rows, 0, 0), _simd.load(rows, 1, 0), _simd.load(rows, 2, 0)
        _simd.store(out, 0, 0, a + b)
        _simd.store(out, 1, 0, a - b)
        _simd.store(out, 2, 0, a * b)
        _simd.store(out, 3, 0, a / b)
        _simd.store(out, 4, 0, _simd.splat(rows[2, 1]) + _simd.splat_at(rows, 3, 0))
        _simd.store(out, 5, 0, _simd.at_least(_simd.at_most(a, b), c))
        _simd.store(out, 6, 0, _simd.choose_positive(a, _simd.absolute(b), c))
        _simd.add_to(out, 7, 2, rows[1, 1])

    rows = make_rows(dtype, 8)
    rows[0, 2], rows[0, 3] = 0, np.nan  # zero is not positive
    a, b, c = rows[:3]
    added = rows[7].copy()
    added[2] += rows[1, 1]
    numbers = np.full_like(a, rows[2, 1] + rows[3, 0])
    bound, chosen = np.maximum(np.minimum(a, b), c), np.where(a > 0, abs(b), c)
    np.testing.assert_array_equal(apply(run, rows), [a + b, a - b, a * b, a / b, numbers, bound, chosen, added])


@every_dtype
def test_a_multiply_add_is_rounded_once_and_a_power_of_two_is_exact(dtype):
    rows, numbers = make_rows(dtype), np.arange(-20, -20 + _simd.LANES[dtype])
    step = np.finfo(dtype).eps
    rows[0], rows[1], rows[2] = 1 + step, 1 - step, -1  # the product is 1 - step**2, which rounds to 1
    rows[3] = numbers + _simd.BIAS[dtype] + _simd.ROUNDER[dtype]

    def run(rows, out):
        _simd.store(out, 0, 0, _simd.fma(_simd.load(rows, 0, 0), _simd.load(rows, 1, 0), _simd.load(rows, 2, 0)))
        _simd.store(out, 1, 0, _simd.scale_of(_simd.load(rows, 3, 0)))

    found = apply(run, rows)
    np.testing.assert_array_equal(found[0], np.full(_simd.LANES[dtype], -(step**2), dtype))
    np.testing.assert_array_equal(found[1], 2.0**numbers)


@every_dtype
def test_odd_numbers_change_a_sign(dtype):
    numbers, rows = np.arange(-5, _simd.LANES[dtype] - 5), make_rows(dtype)
    rows[0] = numbers + _simd.ROUNDER[dtype]

    def run(rows, out):
        _simd.store(out, 0, 0, _simd.flip_sign(_simd.load(rows, 0, 0), _simd.load(rows, 1, 0)))

    np.testing.assert_array_equal(apply(run, rows)[0], rows[1] * (-1.0) ** numbers)


@every_dtype
def test_sums_go_by_halves_one_alone_or_four_together(dtype):
    def run(rows, out):
        out[0, 0] = _simd.add_up(_simd.load(rows, 0, 0))
        out[0, 1], out[0, 2], out[0, 3], out[0, 4] = _simd.add_up_four(
            _simd.load(rows, 0, 0), _simd.load(rows, 1, 0), _simd.load(rows, 2, 0), _simd.load(rows, 3, 0)
        )

    rows = make_rows(dtype)
    halves = rows
    while halves.shape[1] > 1:
        middle = halves.shape[1] // 2
        halves = halves[:, :middle] + halves[:, middle:]
    np.testing.assert_array_equal(apply(run, rows)[0, :5], halves[[0, 0, 1, 2, 3], 0])


def test_vectors_of_two_kinds_do_not_mix():
    def run(rows, out):
        _simd.store(out, 0, 0, _simd.load(rows, 0, 0) + _simd.splat(np.float32(1)))

    with pytest.raises(numba.TypingError):
        apply(run, make_rows("float64"))
