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
    polynomial = _simd.make_polynomial([2.0, 1.0, -3.0])

    def run(rows, out):
        a, b, c = _simd.load(rows, 0, 0), _simd.load(rows, 1, 0), _simd.load(rows, 2, 0)
        _simd.store(out, 0, 0, a + b)
        _simd.store(out, 1, 0, a - b)
        _simd.store(out, 2, 0, a * b)
        _simd.store(out, 3, 0, a / b)
        _simd.store(out, 4, 0, _simd.splat(rows[2, 1]) + _simd.splat_at(rows, 3, 0, 1))
        _simd.store(out, 5, 0, _simd.at_least(_simd.at_most(a, b), c))
        _simd.store(out, 6, 0, _simd.choose_positive(a, _simd.absolute(b), c))
        _simd.store(out, 7, 0, polynomial(a))

    rows = make_rows(dtype, 8)
    rows[0] = np.round(4 * rows[0])  # its polynomial is exact
    rows[0, 2], rows[0, 3] = 0, np.nan  # zero is not positive
    a, b, c = rows[:3]
    numbers = np.full_like(a, rows[2, 1] + rows[3, 0])
    bound, chosen, value = np.maximum(np.minimum(a, b), c), np.where(a > 0, abs(b), c), 2 * a * a + a - 3
    np.testing.assert_array_equal(apply(run, rows), [a + b, a - b, a * b, a / b, numbers, bound, chosen, value])


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


def halve(rows):
    while rows.shape[-1] > 1:
        middle = rows.shape[-1] // 2
        rows = rows[..., :middle] + rows[..., middle:]
    return rows[..., 0]


@every_dtype
def test_a_sum_goes_by_halves(dtype):
    def run(rows, out):
        out[0, 0] = _simd.add_up(_simd.load(rows, 0, 0))

    rows = make_rows(dtype)
    assert apply(run, rows)[0, 0] == halve(rows[0])


@every_dtype
def test_a_block_is_rows_one_after_the_other(dtype):
    load, store, splat, splat_at, _ = _simd.make_blocks(2)

    def run(rows, out):
        block = load(rows, 0, 0) * splat_at(rows, 3, 0, 2) + _simd.load(rows, 2, 0)  # a shorter one is repeated
        store(out, 0, 0, block)
        store(out, 2, 0, _simd.fma(splat(rows[3, 1]), load(rows, 0, 0), _simd.splat(rows[3, 4])))

    rows = make_rows(dtype)
    rows[:] = np.round(8 * rows)
    first = rows[:2] * rows[3, [0, 2]][:, None] + rows[2]
    np.testing.assert_array_equal(apply(run, rows), [*first, *(rows[3, 1] * rows[:2] + rows[3, 4])])


@every_dtype
@pytest.mark.parametrize("as_rows", [False, True])
def test_products_of_rows_with_rows_are_added_up(dtype, as_rows):
    load, _, splat, _, add_to = _simd.make_blocks(2, 4)
    load_columns, zero = _simd.make_blocks(4)[0], np.dtype(dtype).type(0)

    def run(rows, out):
        places = _simd.get_rows(rows) if as_rows else rows
        target = _simd.get_rows(out) if as_rows else out
        add_to(target, 0, 1, 3, _simd.fma(load(places, 0, 0), load_columns(places, 2, 0), splat(zero)))

    rows = make_rows(dtype, 6)
    expected = rows.copy()
    expected[0, 1:5] += halve(rows[0] * rows[2:])
    expected[0, 4:8] += halve(rows[1] * rows[2:])
    np.testing.assert_array_equal(apply(run, rows), expected)


def test_vectors_of_two_kinds_do_not_mix():
    def run(rows, out):
        _simd.store(out, 0, 0, _simd.load(rows, 0, 0) + _simd.splat(np.float32(1)))

    with pytest.raises(numba.TypingError):
        apply(run, make_rows("float64"))
