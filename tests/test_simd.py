"""Vectors of points in compiled code: each operation does to every lane what NumPy does to an array."""

import numba
import numpy as np
import pytest
from bnn import simd

DTYPES = ["float64", "float32"]
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def make_rows(dtype, n=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, simd.LANES[dtype])).astype(dtype)


def apply(function, rows):
    """Call a compiled function of the rows, which writes to row 0 of a copy."""
    return apply_all(function, rows)[0]


def apply_all(function, rows):
    out = rows.copy()
    numba.njit(function)(rows, out)
    return out


@every_dtype
def test_arithmetic_is_that_of_numpy(dtype):
    def run(rows, out):
        a, b = simd.load(rows, 0, 0), simd.load(rows, 1, 0)
        simd.store(out, 0, 0, a + b)
        simd.store(out, 1, 0, a - b)
        simd.store(out, 2, 0, a * b)
        simd.store(out, 3, 0, a / b)

    rows = make_rows(dtype)
    a, b = rows[:2]
    np.testing.assert_array_equal(apply_all(run, rows), [a + b, a - b, a * b, a / b])


@every_dtype
def test_a_multiply_add_is_rounded_once(dtype):
    rows = make_rows(dtype)
    step = np.finfo(dtype).eps
    rows[0], rows[1], rows[2] = 1 + step, 1 - step, -1  # the product is 1 - step**2, which rounds to 1

    def run(rows, out):
        simd.store(out, 0, 0, simd.fma(simd.load(rows, 0, 0), simd.load(rows, 1, 0), simd.load(rows, 2, 0)))

    np.testing.assert_array_equal(apply(run, rows), np.full(simd.LANES[dtype], -(step**2), dtype))


@every_dtype
def test_one_number_goes_to_every_lane(dtype):
    def run(rows, out):
        simd.store(out, 0, 0, simd.splat(rows[2, 1]) + simd.splat_at(rows, 3, 0))

    rows = make_rows(dtype)
    np.testing.assert_array_equal(apply(run, rows), np.full(simd.LANES[dtype], rows[2, 1] + rows[3, 0]))


@every_dtype
def test_bounds_hold_and_let_nan_through(dtype):
    def run(rows, out):
        upper = simd.at_most(simd.load(rows, 0, 0), simd.load(rows, 1, 0))
        simd.store(out, 0, 0, simd.at_least(upper, simd.load(rows, 2, 0)))

    rows = make_rows(dtype)
    rows[1], rows[2], rows[0, 3] = 0.5, -0.5, np.nan
    np.testing.assert_array_equal(apply(run, rows), np.clip(rows[0], -0.5, 0.5))


@every_dtype
def test_absolute_values_and_choices_by_sign(dtype):
    def run(rows, out):
        a = simd.absolute(simd.load(rows, 1, 0))
        simd.store(out, 0, 0, simd.choose_positive(simd.load(rows, 0, 0), a, simd.load(rows, 2, 0)))

    rows = make_rows(dtype)
    rows[0, 2] = 0  # zero is not positive
    np.testing.assert_array_equal(apply(run, rows), np.where(rows[0] > 0, abs(rows[1]), rows[2]))


@every_dtype
def test_a_power_of_two_is_exact(dtype):
    numbers = np.arange(-20, -20 + simd.LANES[dtype])
    rows = make_rows(dtype)
    rows[0] = numbers + simd.BIAS[dtype] + simd.ROUNDER[dtype]

    def run(rows, out):
        simd.store(out, 0, 0, simd.scale_of(simd.load(rows, 0, 0)))

    np.testing.assert_array_equal(apply(run, rows), 2.0**numbers)


@every_dtype
def test_sums_go_by_halves_one_alone_or_four_together(dtype):
    def run(rows, out):
        out[0, 0] = simd.add_up(simd.load(rows, 0, 0))
        out[0, 1], out[0, 2], out[0, 3], out[0, 4] = simd.add_up_four(
            simd.load(rows, 0, 0), simd.load(rows, 1, 0), simd.load(rows, 2, 0), simd.load(rows, 3, 0)
        )

    rows = make_rows(dtype)
    halves = rows
    while halves.shape[1] > 1:
        middle = halves.shape[1] // 2
        halves = halves[:, :middle] + halves[:, middle:]
    np.testing.assert_array_equal(apply(run, rows)[:5], halves[[0, 0, 1, 2, 3], 0])


@every_dtype
def test_adding_to_one_place_leaves_the_others(dtype):
    def run(rows, out):
        simd.add_to(out, 0, 2, rows[1, 1])

    rows = make_rows(dtype)
    expected = rows[0].copy()
    expected[2] += rows[1, 1]
    np.testing.assert_array_equal(apply(run, rows), expected)


def test_vectors_of_two_kinds_do_not_mix():
    def run(rows, out):
        simd.store(out, 0, 0, simd.load(rows, 0, 0) + simd.splat(np.float32(1)))

    with pytest.raises(numba.TypingError):
        apply(run, make_rows("float64"))
