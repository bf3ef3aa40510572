"""Vectors of points for Numba: eight float64 or sixteen float32 in one value, added and multiplied in one instruction.

A compiler turns a loop over points into such instructions only if it can prove that nothing changes, and with tanh,
sums and small networks it mostly cannot. So `_loglik` says it outright, with a type of its own and a dozen functions
that become one or two LLVM instructions each. On a processor with narrower registers LLVM splits a vector in two or
four. The order of every sum is written down here, so the bits are the same on every processor with IEEE arithmetic.

These functions exist inside ``numba.njit`` only. Source: Numba manual, "Low-level extension API".
"""

import operator

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = {"float64": 8, "float32": 16}


class Vector(types.Type):
    """`LANES` points of one dtype, in one register where the processor has such wide ones."""

    def __init__(self, dtype):
        self.dtype, self.lanes = dtype, LANES[str(dtype)]
        super().__init__(f"Vector({dtype})")


VECTORS = {dtype: Vector(dtype) for dtype in (types.float64, types.float32)}


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        element = ir.DoubleType() if kind.dtype == types.float64 else ir.FloatType()
        super().__init__(manager, kind, ir.VectorType(element, kind.lanes))


class _SameVectors(AbstractTemplate):
    def generic(self, args, kws):
        if len(args) == 2 and isinstance(args[0], Vector) and args[0] == args[1]:
            return signature(args[0], *args)


def _add_operator(function, instruction):
    infer_global(function)(type(f"Vector_{instruction}", (_SameVectors,), {}))
    lower_builtin(function, Vector, Vector)(
        lambda context, builder, signature, args: getattr(builder, instruction)(*args)
    )


_add_operator(operator.add, "fadd")
_add_operator(operator.sub, "fsub")
_add_operator(operator.mul, "fmul")
_add_operator(operator.truediv, "fdiv")


def _constant(kind, value):
    return ir.Constant(kind, [value] * kind.count)


def _indices(numbers):
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers))


def _suffix(kind):
    return f"v{kind.count}{'f64' if isinstance(kind.element, ir.DoubleType) else 'f32'}"


def _call_llvm(builder, name, args):
    """A vector function that LLVM itself knows, such as llvm.fma."""
    kind = args[0].type
    declared = ir.FunctionType(kind, [kind] * len(args))
    function = cgutils.get_or_insert_function(builder.module, declared, f"llvm.{name}.{_suffix(kind)}")
    return builder.call(function, list(args))


def _locate(context, builder, array_type, array, indices, vector):
    struct = context.make_array(array_type)(context, builder, array)
    pointer = cgutils.get_item_pointer(context, builder, array_type, struct, indices)
    return builder.bitcast(pointer, vector.as_pointer())


@intrinsic
def load(typingctx, array, i, k):
    """The points k, k + 1, … of row i. `array` is (row, point) and contiguous; nothing is checked."""
    kind = VECTORS[array.dtype]

    def generate(context, builder, sig, args):
        vector = context.get_value_type(kind)
        out = builder.load(_locate(context, builder, sig.args[0], args[0], args[1:], vector))
        out.align = array.dtype.bitwidth // 8
        return out

    return kind(array, types.intp, types.intp), generate


@intrinsic
def store(typingctx, array, i, k, value):
    """Write `value` to the points k, k + 1, … of row i; see `load`."""

    def generate(context, builder, sig, args):
        target = _locate(context, builder, sig.args[0], args[0], args[1:3], args[3].type)
        builder.store(args[3], target).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, value), generate


@intrinsic
def splat(typingctx, number):
    """One number for every point."""
    kind = VECTORS[number]

    def generate(context, builder, sig, args):
        vector = context.get_value_type(kind)
        nothing = ir.Constant(vector, ir.Undefined)
        one = builder.insert_element(nothing, args[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(one, nothing, _indices([0] * vector.count))

    return kind(number), generate


@intrinsic
def splat_at(typingctx, array, i, k):
    """``array[i, k]`` for every point; unlike an index in Numba, without a look at whether i or k is negative."""
    kind = VECTORS[array.dtype]

    def generate(context, builder, sig, args):
        struct = context.make_array(sig.args[0])(context, builder, args[0])
        number = builder.load(cgutils.get_item_pointer(context, builder, sig.args[0], struct, args[1:]))
        vector = context.get_value_type(kind)
        nothing = ir.Constant(vector, ir.Undefined)
        one = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(one, nothing, _indices([0] * vector.count))

    return kind(array, types.intp, types.intp), generate


@intrinsic
def add_to(typingctx, array, i, k, value):
    """``array[i, k] += value``, without a look at whether i or k is negative."""

    def generate(context, builder, sig, args):
        struct = context.make_array(sig.args[0])(context, builder, args[0])
        pointer = cgutils.get_item_pointer(context, builder, sig.args[0], struct, args[1:3])
        builder.store(builder.fadd(builder.load(pointer), args[3]), pointer)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, array.dtype), generate


@intrinsic
def fma(typingctx, a, b, c):
    """a * b + c, rounded once."""
    return a(a, b, c), lambda context, builder, sig, args: _call_llvm(builder, "fma", args)


@intrinsic
def absolute(typingctx, a):
    """|a|."""
    return a(a), lambda context, builder, sig, args: _call_llvm(builder, "fabs", args)


@intrinsic
def at_least(typingctx, a, bound):
    """The larger of the two; NaN in `a` stays NaN, so that bad weights do not go unnoticed."""

    def generate(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[1], args[0])

    return a(a, bound), generate


@intrinsic
def at_most(typingctx, a, bound):
    """The smaller of the two; NaN in `a` stays NaN."""

    def generate(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[1], args[0])

    return a(a, bound), generate


@intrinsic
def choose_positive(typingctx, sign, if_positive, otherwise):
    """`if_positive` where `sign` is above zero, else `otherwise`."""

    def generate(context, builder, sig, args):
        zero = _constant(args[0].type, 0.0)
        return builder.select(builder.fcmp_ordered(">", args[0], zero), args[1], args[2])

    return if_positive(sign, if_positive, otherwise), generate


# adding ROUNDER rounds to a whole number and leaves it in the lowest bits; with BIAS it is an exponent as it is stored
ROUNDER = {"float64": 1.5 * 2**52, "float32": 1.5 * 2**23}
BIAS = {"float64": 1023, "float32": 127}


@intrinsic
def scale_of(typingctx, rounded):
    """2**n, where `rounded` is n + BIAS + ROUNDER: the lowest bits are moved into the exponent."""

    def generate(context, builder, sig, args):
        vector = args[0].type
        bits, fraction = (64, 52) if isinstance(vector.element, ir.DoubleType) else (32, 23)
        integers = ir.VectorType(ir.IntType(bits), vector.count)
        moved = builder.shl(builder.bitcast(args[0], integers), _constant(integers, fraction))
        return builder.bitcast(moved, vector)

    return rounded(rounded), generate


@intrinsic
def flip_sign(typingctx, rounded, a):
    """`a`, or -a where the whole number n is odd; `rounded` is n + ROUNDER."""

    def generate(context, builder, sig, args):
        vector = args[1].type
        bits = 64 if isinstance(vector.element, ir.DoubleType) else 32
        integers = ir.VectorType(ir.IntType(bits), vector.count)
        parity = builder.shl(builder.bitcast(args[0], integers), _constant(integers, bits - 1))
        return builder.bitcast(builder.xor(builder.bitcast(args[1], integers), parity), vector)

    return a(rounded, a), generate


def _halve(builder, u, v, parts):
    """Two vectors of `parts` unfinished sums each become one with twice as many, each half as wide."""
    n = u.type.count
    width = n // parts
    first = [part * width + lane for part in range(parts) for lane in range(width // 2)]
    second = [lane + width // 2 for lane in first]
    left = builder.shuffle_vector(u, v, _indices(first + [n + lane for lane in first]))
    right = builder.shuffle_vector(u, v, _indices(second + [n + lane for lane in second]))
    return builder.fadd(left, right)


def _finish(builder, v, parts):
    """Add up what is left of each of `parts` sums in one vector."""
    while v.type.count > parts:
        width = v.type.count // parts
        first = [part * width + lane for part in range(parts) for lane in range(width // 2)]
        second = [lane + width // 2 for lane in first]
        v = builder.fadd(builder.shuffle_vector(v, v, _indices(first)), builder.shuffle_vector(v, v, _indices(second)))
    return [builder.extract_element(v, ir.Constant(ir.IntType(32), part)) for part in range(parts)]


@intrinsic
def add_up(typingctx, a):
    """Sum over the points of one vector, halves first."""
    return a.dtype(a), lambda context, builder, sig, args: _finish(builder, args[0], 1)[0]


@intrinsic
def add_up_four(typingctx, a, b, c, d):
    """Four sums at once, in a third of the instructions of four `add_up`."""

    def generate(context, builder, sig, args):
        left, right = _halve(builder, *args[:2], 1), _halve(builder, *args[2:], 1)
        sums = _finish(builder, _halve(builder, left, right, 2), 4)
        return context.make_tuple(builder, sig.return_type, sums)

    return types.UniTuple(a.dtype, 4)(a, b, c, d), generate
