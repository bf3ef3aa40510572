"""Vectors of points for Numba: eight float64 or sixteen float32 in one value, added and multiplied in one instruction.

A compiler turns a loop over points into such instructions only if it can prove that nothing changes, and with tanh,
sums and small networks it mostly cannot. So `_layers` says it outright, with a type of its own and a dozen functions
that become one or two LLVM instructions each. A vector may also be a block: the same points of several rows, one row
after the other. LLVM splits what is wider than a register, and the processor works on the parts side by side. The order
of every sum is written down here, so the bits are the same on every processor with IEEE arithmetic.

These functions exist inside ``numba.njit`` only; the Numba manual explains how, under "Low-level extension API".
"""

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = {"float64": 8, "float32": 16}


class Vector(types.Type):
    """`lanes` numbers of one dtype: `LANES` points, in one register where the processor has such wide ones, or several
    times as many.
    """

    def __init__(self, dtype, lanes):
        self.dtype, self.lanes = dtype, lanes
        super().__init__(f"Vector({dtype}, {lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        element = ir.DoubleType() if kind.dtype == types.float64 else ir.FloatType()
        super().__init__(manager, kind, ir.VectorType(element, kind.lanes))


class _Operator(AbstractTemplate):
    def generic(self, args, kws):
        if len(args) == 2 and all(isinstance(arg, Vector) for arg in args) and args[0].dtype == args[1].dtype:
            return signature(_widest(*args), *args)


def _widest(*kinds):
    """The type of what comes of several vectors: shorter ones are repeated."""
    return max(kinds, key=lambda kind: kind.lanes)


def _repeat_to_widest(builder, vectors):
    """The vectors, each repeated until it is as long as the longest."""
    lanes = max(vector.type.count for vector in vectors)
    return [_pick_lanes(builder, vector, [lane % vector.type.count for lane in range(lanes)]) for vector in vectors]


def _pick_lanes(builder, vector, lanes):
    """Some lanes of a vector, in the order given."""
    return builder.shuffle_vector(vector, vector, _make_lane_indices(lanes))


def _add_operator(function, instruction):
    infer_global(function)(type(f"Vector_{instruction}", (_Operator,), {}))
    lower_builtin(function, Vector, Vector)(
        lambda context, builder, signature, args: getattr(builder, instruction)(*_repeat_to_widest(builder, args))
    )


_add_operator(operator.add, "fadd")
_add_operator(operator.sub, "fsub")
_add_operator(operator.mul, "fmul")
_add_operator(operator.truediv, "fdiv")


def _make_constant(kind, value):
    return ir.Constant(kind, [value] * kind.count)


def _make_lane_indices(numbers):
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers))


def _suffix(kind):
    return f"v{kind.count}f{_get_width(kind)}"


def _call_llvm(builder, name, args):
    """A vector function that LLVM itself knows, such as llvm.fma."""
    args = _repeat_to_widest(builder, args)
    kind = args[0].type
    declared = ir.FunctionType(kind, [kind] * len(args))
    function = cgutils.get_or_insert_function(builder.module, declared, f"llvm.{name}.{_suffix(kind)}")
    return builder.call(function, args)


class Rows(types.Type):
    """Where a contiguous array (row, point) begins and how long its rows are, to be handed on instead of it: an array
    is seven numbers, and each function that takes one counts a reference.
    """

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(f"Rows({dtype})")


@register_model(Rows)
class _RowsModel(models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("data", types.CPointer(kind.dtype)), ("length", types.intp)])


@intrinsic
def get_rows(typingctx, array):
    """The `Rows` of an array, which the caller must keep alive: one of its own arguments."""

    def generate(context, builder, sig, args):
        found = context.make_array(array)(context, builder, args[0])
        rows = cgutils.create_struct_proxy(sig.return_type)(context, builder)
        rows.data, rows.length = found.data, builder.extract_value(found.shape, 1)
        return rows._getvalue()

    return Rows(array.dtype)(array), generate


def _locate_lanes(context, builder, sig, args, lanes, row=0, steps=0):
    """A pointer to `lanes` numbers from ``array[i + row, k + steps * step]`` on; `args` are array, i, k, step, …."""
    i = builder.add(args[1], args[1].type(row))
    k = builder.add(args[2], builder.mul(args[3], args[3].type(steps))) if steps else args[2]
    if isinstance(sig.args[0], Rows):
        rows = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
        pointer = builder.gep(rows.data, [builder.add(builder.mul(i, rows.length), k)])
    else:
        struct = context.make_array(sig.args[0])(context, builder, args[0])
        pointer = cgutils.get_item_pointer(context, builder, sig.args[0], struct, (i, k))
    return builder.bitcast(pointer, ir.VectorType(pointer.type.pointee, lanes).as_pointer())


def _load_vector(builder, place):
    vector = builder.load(place)
    vector.align = _get_width(place.type.pointee) // 8
    return vector


def _store_vector(builder, vector, place):
    builder.store(vector, place).align = _get_width(vector.type) // 8


def _get_width(kind):
    """Bits of one lane."""
    return 64 if isinstance(kind.element, ir.DoubleType) else 32


def _concat(builder, vectors):
    """One vector of all lanes of several; their number is a power of two."""
    while len(vectors) > 1:
        lanes = _make_lane_indices(range(2 * vectors[0].type.count))
        vectors = [builder.shuffle_vector(u, v, lanes) for u, v in zip(vectors[::2], vectors[1::2], strict=True)]
    return vectors[0]


@lru_cache
def make_blocks(rows: int, columns: int = 1) -> tuple[Callable, Callable, Callable, Callable, Callable]:
    """`load`, `store`, `splat`, `splat_at` and `add_to` for blocks: a vector of points for each of `rows` rows.

    With several `columns` it is as many vectors for each row, for the products of rows with other ones, and `store` and
    `splat_at` have no use. All take arrays (row, point) that are contiguous, or their `Rows`; nothing is checked, not
    even, as an index in Numba is, whether a number is negative.
    """

    def get_kind(dtype):
        return Vector(dtype, LANES[str(dtype)] * rows * columns)

    @intrinsic
    def load(typingctx, array, i, k):
        """The points k, k + 1, … of row i and of those after it, each row `columns` times."""
        kind, lanes = get_kind(array.dtype), LANES[str(array.dtype)]

        def generate(context, builder, sig, args):
            places = [_locate_lanes(context, builder, sig, args, lanes, row) for row in range(rows)]
            return _concat(builder, [_load_vector(builder, place) for place in places for _ in range(columns)])

        return kind(array, types.intp, types.intp), generate

    @intrinsic
    def store(typingctx, array, i, k, value):
        """Write `value` to the points k, k + 1, … of row i and of those after it."""

        def generate(context, builder, sig, args):
            lanes = value.lanes // rows
            for row in range(rows):
                part = _pick_lanes(builder, args[3], range(row * lanes, (row + 1) * lanes))
                _store_vector(builder, part, _locate_lanes(context, builder, sig, args, lanes, row))
            return context.get_dummy_value()

        return types.void(array, types.intp, types.intp, value), generate

    @intrinsic
    def splat(typingctx, number):
        """One number for every point."""

        def generate(context, builder, sig, args):
            nothing = ir.Constant(ir.VectorType(args[0].type, 1), ir.Undefined)
            one = builder.insert_element(nothing, args[0], ir.Constant(ir.IntType(32), 0))
            return _pick_lanes(builder, one, [0] * sig.return_type.lanes)

        return get_kind(number)(number), generate

    @intrinsic
    def splat_at(typingctx, array, i, k, step):
        """``array[i, k]`` for every point of the first row, ``array[i, k + step]`` for those of the second, …"""
        kind, lanes = get_kind(array.dtype), LANES[str(array.dtype)]

        def generate(context, builder, sig, args):
            places = [_locate_lanes(context, builder, sig, args, 1, steps=row) for row in range(rows)]
            return _concat(
                builder, [_pick_lanes(builder, _load_vector(builder, place), [0] * lanes) for place in places]
            )

        return kind(array, types.intp, types.intp, types.intp), generate

    @intrinsic
    def add_to(typingctx, array, i, k, step, value):
        """``array[i, k + row * step + column] +=`` the sum over the points of this row and column, halves first."""

        def generate(context, builder, sig, args):
            sums = _add_up(builder, args[4], rows * columns)
            for row in range(rows):
                place = _locate_lanes(context, builder, sig, args, columns, steps=row)
                part = _pick_lanes(builder, sums, range(row * columns, (row + 1) * columns))
                _store_vector(builder, builder.fadd(_load_vector(builder, place), part), place)
            return context.get_dummy_value()

        return types.void(array, types.intp, types.intp, types.intp, value), generate

    return load, store, splat, splat_at, add_to


load, store, splat, splat_at, add_to = make_blocks(1)


@intrinsic
def fma(typingctx, a, b, c):
    """a * b + c, rounded once."""
    kind = _widest(a, b, c)
    return kind(a, b, c), lambda context, builder, sig, args: _call_llvm(builder, "fma", args)


def make_polynomial(coefficients: Sequence[float]) -> Callable:
    """A polynomial by Horner's rule; its coefficients, highest power first."""

    @intrinsic
    def polynomial(typingctx, x):
        def generate(context, builder, sig, args):
            first, *rest = (_make_constant(args[0].type, c) for c in coefficients)
            return reduce(lambda total, c: _call_llvm(builder, "fma", [total, args[0], c]), rest, first)

        return x(x), generate

    return polynomial


@intrinsic
def absolute(typingctx, a):
    """|a|."""
    return a(a), lambda context, builder, sig, args: _call_llvm(builder, "fabs", args)


@intrinsic
def at_least(typingctx, a, bound):
    """The larger of the two; NaN in `a` stays NaN, so that bad weights do not go unnoticed."""

    def generate(context, builder, sig, args):
        a, bound = _repeat_to_widest(builder, args)
        return builder.select(builder.fcmp_ordered("<", a, bound), bound, a)

    return a(a, bound), generate


@intrinsic
def at_most(typingctx, a, bound):
    """The smaller of the two; NaN in `a` stays NaN."""

    def generate(context, builder, sig, args):
        a, bound = _repeat_to_widest(builder, args)
        return builder.select(builder.fcmp_ordered(">", a, bound), bound, a)

    return a(a, bound), generate


@intrinsic
def choose_positive(typingctx, sign, if_positive, otherwise):
    """`if_positive` where `sign` is above zero, else `otherwise`."""

    def generate(context, builder, sig, args):
        sign, yes, no = _repeat_to_widest(builder, args)
        return builder.select(builder.fcmp_ordered(">", sign, _make_constant(sign.type, 0.0)), yes, no)

    return _widest(sign, if_positive, otherwise)(sign, if_positive, otherwise), generate


# adding ROUNDER rounds to a whole number and leaves it in the lowest bits; with BIAS it is an exponent as it is stored
ROUNDER = {"float64": 1.5 * 2**52, "float32": 1.5 * 2**23}
BIAS = {"float64": 1023, "float32": 127}


@intrinsic
def scale_of(typingctx, rounded):
    """2**n, where `rounded` is n + BIAS + ROUNDER: the lowest bits are moved into the exponent."""

    def generate(context, builder, sig, args):
        vector = args[0].type
        bits = _get_width(vector)
        fraction, integers = {64: 52, 32: 23}[bits], ir.VectorType(ir.IntType(bits), vector.count)
        moved = builder.shl(builder.bitcast(args[0], integers), _make_constant(integers, fraction))
        return builder.bitcast(moved, vector)

    return rounded(rounded), generate


@intrinsic
def flip_sign(typingctx, rounded, a):
    """`a`, or -a where the whole number n is odd; `rounded` is n + ROUNDER."""

    def generate(context, builder, sig, args):
        vector = args[1].type
        bits = _get_width(vector)
        integers = ir.VectorType(ir.IntType(bits), vector.count)
        parity = builder.shl(builder.bitcast(args[0], integers), _make_constant(integers, bits - 1))
        return builder.bitcast(builder.xor(builder.bitcast(args[1], integers), parity), vector)

    return a(rounded, a), generate


def _add_up(builder, v, parts):
    """The sums of the lanes of each of `parts` equal parts of a vector, halves first."""
    while v.type.count > parts:
        width = v.type.count // parts
        first = [part * width + lane for part in range(parts) for lane in range(width // 2)]
        v = builder.fadd(_pick_lanes(builder, v, first), _pick_lanes(builder, v, [lane + width // 2 for lane in first]))
    return v


@intrinsic
def add_up(typingctx, a):
    """Sum over the points of one vector, halves first."""

    def generate(context, builder, sig, args):
        return builder.extract_element(_add_up(builder, args[0], 1), ir.Constant(ir.IntType(32), 0))

    return a.dtype(a), generate
