"""Vector copies that Numba's compiler does not find by itself: rows of a matrix, and rows turned into columns.

Numba copies these one number at a time, or by gather and scatter, since it allows negative indices; that took half of the
time of a whole evaluation.
"""

from collections.abc import Callable
from functools import cache

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
"""Staged sources are padded to a multiple of this number."""

INDEX = ir.IntType(64)


def _constant(number: int) -> ir.Constant:
    return ir.Constant(INDEX, number)


def _address(context, builder, array_type, array, row, column):
    """The address of an element of a matrix, or with ``row`` None of a vector, as an integer."""
    made = context.make_array(array_type)(context, builder, array)
    offset = builder.mul(column, _constant(array_type.dtype.bitwidth // 8))
    if row is not None:
        offset = builder.add(offset, builder.mul(row, builder.extract_value(made.strides, 0)))
    return builder.add(builder.ptrtoint(made.data, INDEX), offset)


def _load(builder, address, vector, align):
    return builder.load(builder.inttoptr(address, vector.as_pointer()), align=align)


def _store(builder, value, address, align):
    builder.store(value, builder.inttoptr(address, value.type.as_pointer()), align=align)


@intrinsic
def copy_lanes(typing_context, to, row, start, source, source_row, source_start):
    """Copy LANES numbers of a row of a matrix to a row of another."""

    def generate(context, builder, signature, arguments):
        size = to.dtype.bitwidth // 8
        vector = ir.VectorType(context.get_data_type(to.dtype), LANES)
        target = _address(context, builder, to, *arguments[:3])
        origin = _address(context, builder, source, *arguments[3:])
        _store(builder, _load(builder, origin, vector, size), target, size)
        return context.get_dummy_value()

    index = types.intp
    return types.void(to, index, index, source, index, index), generate


def padded(width: int, real: type) -> int:
    """The least number of columns, at least ``width``, of a matrix whose rows :func:`columns_of` reads."""
    lanes = 64 // real().itemsize  # type: ignore[attr-defined]
    if width > lanes:
        return -(-width // lanes) * lanes
    return 1 << max(2, (width - 1).bit_length())


@cache
def columns_of(width: int, real: type) -> Callable:
    """``columns(ids, start, source, to)``: for one vector of ``ids`` from ``start`` on, row ids[j] of ``source`` becomes
    column j of ``to``, by exchanges between registers. ``source`` has ``padded(width)`` columns, ``to`` as many rows."""
    lanes = 64 // real().itemsize  # type: ignore[attr-defined]
    columns = padded(width, real)
    side = min(columns, lanes)  # of the square blocks that are transposed

    @intrinsic
    def transpose(typing_context, ids, start, source, to):
        def generate(context, builder, signature, arguments):
            size = source.dtype.bitwidth // 8
            part = ir.VectorType(context.get_data_type(source.dtype), side)
            first = _address(context, builder, ids, arguments[0], None, arguments[1])
            rows = []
            for j in range(lanes):
                pointer = builder.inttoptr(builder.add(first, _constant(4 * j)), ir.IntType(32).as_pointer())
                row = builder.zext(builder.load(pointer, align=4), INDEX)
                rows.append(row)
            for block in range(0, columns, side):
                parts = [
                    _load(builder, _address(context, builder, source, arguments[2], row, _constant(block)), part, size)
                    for row in rows
                ]
                for k, column in enumerate(_transposed(builder, parts, side, lanes)):
                    if block + k < width:
                        place = _address(context, builder, to, arguments[3], _constant(block + k), arguments[1])
                        _store(builder, column, place, size)
            return context.get_dummy_value()

        return types.void(ids, types.intp, source, to), generate

    return transpose


def _transposed(builder, rows, side, lanes):
    """Rows of ``side`` numbers as ``side`` columns: rows i, i + side, … are first put side by side."""
    vectors = []
    for i in range(side):
        joined = rows[i::side]
        while len(joined) > 1:
            joined = [
                _shuffled(builder, a, b, range(2 * a.type.count)) for a, b in zip(joined[::2], joined[1::2], strict=True)
            ]
        vectors.append(joined[0])
    step = 1
    while step < side:
        low = [j if not j & step else lanes + j - step for j in range(lanes)]
        high = [j + step if not j & step else lanes + j for j in range(lanes)]
        for i in range(side):
            if not i & step:
                a, b = vectors[i], vectors[i + step]
                vectors[i], vectors[i + step] = _shuffled(builder, a, b, low), _shuffled(builder, a, b, high)
        step *= 2
    return vectors


def _shuffled(builder, a, b, order):
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(order)), list(order)))


@intrinsic
def select_ids(typing_context, ids, codes, start, count, code, to, number):
    """Append the ids whose code is ``code`` to ``to`` after ``number`` ones, from LANES of them from ``start`` on, of which
    the first ``count`` count; in order. Returns the new number. ``to`` holds LANES more."""

    def generate(context, builder, signature, arguments):
        ids_, codes_, start_, count_, code_, to_, number_ = arguments
        lane = ir.IntType(32)
        vector = ir.VectorType(lane, LANES)
        values = _load(builder, _address(context, builder, ids, ids_, None, start_), vector, 4)
        kinds = _load(builder, _address(context, builder, codes, codes_, None, start_), vector, 4)

        def spread(number):
            one = builder.insert_element(ir.Constant(vector, ir.Undefined), number, ir.Constant(lane, 0))
            return _shuffled(builder, one, one, [0] * LANES)

        valid = builder.icmp_signed("<", ir.Constant(vector, list(range(LANES))), spread(builder.trunc(count_, lane)))
        mask = builder.and_(valid, builder.icmp_signed("==", kinds, spread(builder.trunc(code_, lane))))
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector, mask.type, vector]),
            f"llvm.experimental.vector.compress.v{LANES}i32",
        )
        chosen = builder.call(function, [values, mask, values])
        _store(builder, chosen, _address(context, builder, to, to_, None, number_), 4)
        bits = builder.bitcast(mask, ir.IntType(LANES))
        return builder.add(number_, builder.zext(builder.ctpop(bits), INDEX))

    index = types.intp
    return index(ids, codes, index, index, index, to, index), generate
