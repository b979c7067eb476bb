"""Vectors of eight float64 numbers as values of kernels on the CPU, one lane per body.

They have ``+ - * /``, ``-v``, ``abs(v)`` and comparisons, among themselves and with numbers, and the functions below. Each
is one operation of LLVM's vectors, one or two instructions of AVX-512 or AVX2, so a formula in them runs as it is written,
with the same bits in every kernel. (LLVM puts few loops over bodies into lanes by itself, and only those without branches.)
"""

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = 8


class VectorType(types.Type):
    """The type of a vector, or of the truth values that a comparison of two vectors gives."""


lanes, truths = VectorType("lanes"), VectorType("truths")
_REAL, _VECTOR, _TRUTHS = ir.DoubleType(), ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.IntType(1), LANES)


@register_model(VectorType)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: VectorType) -> None:
        super().__init__(manager, kind, _VECTOR if kind is lanes else _TRUTHS)


def _spread(builder: Any, value: Any) -> Any:
    """A number in all lanes; a vector as it is."""
    if value.type == _VECTOR:
        return value
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return _shuffled(builder, one, [0] * LANES)


def _shuffled(builder: Any, value: Any, order: list[int]) -> Any:
    """The lanes of a vector in another order; zeros where this is :data:`LANES`."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
    return builder.shuffle_vector(value, ir.Constant(_VECTOR, [0.0] * LANES), mask)


def _operator(function: Any, result: VectorType, build: Any) -> None:
    pairs = (lanes, lanes), (lanes, types.float64), (types.float64, lanes)

    @infer_global(function)
    class _Typing(ConcreteTemplate):
        cases = [signature(result, *pair) for pair in pairs]  # noqa: RUF012

    for pair in pairs:

        @lower_builtin(function, *pair)
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return build(builder, *(_spread(builder, each) for each in arguments))


for _function, _build in (
    (operator.add, ir.IRBuilder.fadd), (operator.sub, ir.IRBuilder.fsub),
    (operator.mul, ir.IRBuilder.fmul), (operator.truediv, ir.IRBuilder.fdiv),
):  # fmt: skip
    _operator(_function, lanes, _build)

for _function, _sign in ((operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">=")):
    _operator(_function, truths, lambda builder, a, b, sign=_sign: builder.fcmp_ordered(sign, a, b))


@infer_global(operator.and_)
@infer_global(operator.or_)
class _BothTyping(ConcreteTemplate):
    cases = [signature(truths, truths, truths)]  # noqa: RUF012


@infer_global(operator.neg)
@infer_global(abs)
class _OneTyping(ConcreteTemplate):
    cases = [signature(lanes, lanes)]  # noqa: RUF012


lower_builtin(operator.and_, truths, truths)(lambda context, builder, signature, args: builder.and_(*args))
lower_builtin(operator.or_, truths, truths)(lambda context, builder, signature, args: builder.or_(*args))
lower_builtin(operator.neg, lanes)(lambda context, builder, signature, args: builder.fneg(*args))


def _called(builder: Any, name: str, *arguments: Any) -> Any:
    """The result of a function of LLVM on vectors, whose name is without their type."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(arguments))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f64")
    return builder.call(function, [_spread(builder, each) for each in arguments])


lower_builtin(abs, lanes)(lambda context, builder, signature, args: _called(builder, "fabs", *args))


@intrinsic
def root(typing_context, value):
    """√value."""
    return lanes(lanes), lambda context, builder, signature, arguments: _called(builder, "sqrt", *arguments)


@intrinsic
def fma(typing_context, a, b, c):
    """a b + c, rounded once; numbers are in all lanes."""

    def generate(context, builder, signature, arguments):
        return _called(builder, "fma", *arguments)

    return lanes(a, b, c), generate


@intrinsic
def choose(typing_context, condition, a, b):
    """The lanes of a where the condition is true, else those of b."""

    def generate(context, builder, signature, arguments):
        return builder.select(arguments[0], *(_spread(builder, each) for each in arguments[1:]))

    return lanes(truths, a, b), generate


@intrinsic
def any_of(typing_context, condition):
    """True if the condition is true in a lane."""

    def generate(context, builder, signature, arguments):
        bits = builder.bitcast(arguments[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(truths), generate


@intrinsic
def spread(typing_context, number):
    """A number in all lanes."""
    return lanes(types.float64), lambda context, builder, signature, arguments: _spread(builder, arguments[0])


@intrinsic
def lane(typing_context, value, i):
    """The number in lane i."""
    return types.float64(lanes, types.intp), lambda context, builder, signature, args: builder.extract_element(*args)


@intrinsic(prefer_literal=True)
def rotated(typing_context, values, by):
    """Lane i has what lane i + by, counted round, had; ``by`` is a constant, ``values`` a tuple of vectors."""
    order = [(i + by.literal_value) % LANES for i in range(LANES)]

    def generate(context, builder, signature, arguments):
        vectors = cgutils.unpack_tuple(builder, arguments[0])
        return context.make_tuple(builder, values, [_shuffled(builder, each, order) for each in vectors])

    return values(values, by), generate


def _sums(builder: Any, value: Any, sign: int) -> Any:
    for steps in (1, 2, 4):
        order = [i - sign * steps if 0 <= i - sign * steps < LANES else LANES for i in range(LANES)]
        value = builder.fadd(value, _shuffled(builder, value, order))
    return value


@intrinsic
def sums_before(typing_context, value):
    """Lane i has the sum of the lanes 0 … i - 1."""

    def generate(context, builder, signature, arguments):
        return _sums(builder, _shuffled(builder, arguments[0], [LANES, *range(LANES - 1)]), 1)

    return lanes(lanes), generate


@intrinsic
def sums_from(typing_context, value):
    """Lane i has the sum of the lanes i … 7."""
    return lanes(lanes), lambda context, builder, signature, arguments: _sums(builder, arguments[0], -1)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, row: Any, column: Any) -> Any:
    made, eight = context.make_array(kind)(context, builder, array), ir.Constant(ir.IntType(64), 8)
    bytes_before = builder.mul(row, builder.extract_value(made.strides, kind.ndim - 2))
    address = builder.bitcast(made.data, ir.IntType(8).as_pointer())
    address = builder.gep(address, [builder.add(bytes_before, builder.mul(column, eight))])
    return builder.bitcast(address, _VECTOR.as_pointer())


@intrinsic
def load(typing_context, array, row, column):
    """Eight numbers of a float64 array from a column on. Its rows are counted through, like those of a C-contiguous one."""

    def generate(context, builder, signature, arguments):
        return builder.load(_pointer(context, builder, array, *arguments), align=8)

    return lanes(array, types.intp, types.intp), generate


@intrinsic
def store(typing_context, array, row, column, value):
    """Put a vector, or a number in all lanes, where :func:`load` finds it."""

    def generate(context, builder, signature, arguments):
        *at, value = arguments
        builder.store(_spread(builder, value), _pointer(context, builder, array, *at), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, value), generate
