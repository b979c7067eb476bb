"""A tile of C in a thread's registers, computed by outer products of a column of A and a row of B.

With R x S results per thread, R + S numbers are read for R·S multiply-adds. A thread's rows are in chunks of V (16 bytes)
that are ``row_stride`` apart, and its columns likewise: so neighbouring threads read neighbouring vectors of shared memory.
"""

from functools import cache
from typing import Any, NamedTuple

from nbody.compute import device_function
from nbody.compute.in_kernels.unroll import unrolled
from nbody.linalg.intrinsics import move_vector, vector_length

ROWS, ROWS_TURNING, COLUMNS_TURNING = "row by row", "row by row, there and back", "column by column, down and up"
"""Paths through a tile. A multiply-add that shares a factor with the previous one reads it from the reuse cache instead of
the registers, whose reads limit these kernels; a path that turns shares a factor at the end of a line too."""


class RegisterTile(NamedTuple):
    """The device functions of a tile; ``sums`` is a local array of rows·columns numbers.

    ``multiply(sums, left, right, a_slab, a, b_slab, b)`` adds the outer products of a whole slab (A's slab is transposed).
    a and b are the flat indices of the thread's first row and column in the slabs; ``left`` and ``right`` are local arrays
    of ``rows`` and ``columns`` numbers. ``store(sums, target, top, height, row, column)`` writes the tile to a matrix that
    consists of ``height`` rows of ``target`` from row ``top`` on.
    """

    multiply: Any
    clear: Any
    store: Any


@cache
def register_tile(
    real: Any, rows: int, columns: int, strides: tuple[int, int], depth: int, pitches: tuple[int, int], path: str = ROWS
) -> RegisterTile:
    """The functions of a rows x columns tile for slabs of ``depth`` rows that are ``pitches`` (A's, B's)
    numbers long; ``path``: the order of a step's multiply-adds, one of the three above."""
    length = vector_length(real)
    down, turning = path == COLUMNS_TURNING, path != ROWS
    lines, places = (columns, rows) if down else (rows, columns)
    row_stride, column_stride = strides
    a_pitch, b_pitch = pitches

    @device_function
    def outer_product(s, sums, left, right, a_slab, a, b_slab, b):
        for p in range(rows // length):
            move_vector(left, p * length, a_slab, a + (s * a_pitch + p * row_stride))
        for p in range(columns // length):
            move_vector(right, p * length, b_slab, b + (s * b_pitch + p * column_stride))
        for line in range(lines):
            for place in range(places):
                along = places - 1 - place if turning and line % 2 else place
                r, q = (along, line) if down else (line, along)
                sums[r * columns + q] += left[r] * right[q]

    @device_function
    def clear(r, sums):
        for q in range(columns):
            sums[r * columns + q] = real(0)

    @device_function
    def store(r, sums, target, top, height, row, column):
        n = target.shape[1]
        i = row + r // length * row_stride + r % length
        for p in range(columns // length):
            j = column + p * column_stride
            if n % length == 0 and i < height and j < n:
                move_vector(target, (top + i) * n + j, sums, r * columns + p * length)
            else:
                for word in range(length):
                    if i < height and j + word < n:
                        target[top + i, j + word] = sums[r * columns + p * length + word]

    return RegisterTile(unrolled(outer_product, depth), unrolled(clear, rows), unrolled(store, rows))
