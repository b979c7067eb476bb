"""Copies of a slab of a matrix to shared memory: number by number, in 128-bit loads, or by asynchronous copies that bypass
the registers."""

from functools import cache
from typing import Any

import numpy as np

from nbody.compute import device_function
from nbody.compute.in_kernels.unroll import unrolled
from nbody.linalg.intrinsics import copy_async, copy_vector_async, move_vector, vector_length


@cache
def slab_filler(real: Any, rows: int, columns: int, threads: int) -> Any:
    """A device function by which ``threads`` threads fill a (rows, columns) array in shared memory by strides.

    ``fill(slab, registers, source, row, column, t)``, for thread t: slab[i, j] = source[row + i, column + j],
    zeros outside the matrix; ``registers`` is a local array of rows·columns/threads numbers. A thread starts all its
    loads before it stores the first number: one wait instead of many. Beyond the edge it loads another number, since a
    branch would serialize the loads.
    """

    @device_function
    def load(r, registers, source, row, column, t):
        i, j = (t + r * threads) // columns, (t + r * threads) % columns
        registers[r] = source[min(row + i, source.shape[0] - 1), min(column + j, source.shape[1] - 1)]

    @device_function
    def store(r, slab, registers, source, row, column, t):
        i, j = (t + r * threads) // columns, (t + r * threads) % columns
        slab[i, j] = registers[r] if row + i < source.shape[0] and column + j < source.shape[1] else real(0)

    each = rows * columns // threads
    load_all, store_all = unrolled(load, each), unrolled(store, each)

    @device_function
    def fill(slab, registers, source, row, column, t):
        load_all(registers, source, row, column, t)
        store_all(slab, registers, source, row, column, t)

    return fill


@cache
def vector_fetcher(real: Any) -> Any:
    """A device function that loads V consecutive numbers (16 bytes) of a row into registers.

    ``fetch(registers, i, source, row, column)``: registers[i:i+V] = source[row, column:column+V], zeros outside
    the matrix; one 128-bit load if the rows have a multiple of V numbers, else number by number. ``column`` is a
    multiple of V.
    """
    length = vector_length(real)

    @device_function
    def fetch(registers, i, source, row, column):
        rows, columns = source.shape
        if columns % length == 0 and row < rows and column < columns:
            move_vector(registers, i, source, row * columns + column)
        else:
            for word in range(length):
                inside = row < rows and column + word < columns
                registers[i + word] = source[row, column + word] if inside else real(0)

    return fetch


@cache
def slab_copier(rows: int, columns: int, threads: int, step: tuple[int, int], words: int, guarded: bool) -> Any:
    """A device function by which ``threads`` threads start the copies of a (rows, columns) slab to shared
    memory.

    ``copy(slab, start, source, row, column, t)``, for thread t: source[row + i, column + j] goes to the flat
    index start + i step[0] + j step[1] of ``slab``; step = (1, pitch) transposes. A copy takes ``words``
    numbers: V if step[1] is 1 and the source's rows have a multiple of V numbers, else 1. ``guarded``: elements outside
    the source are set to zero.
    """
    each = columns // words
    stride = threads // each
    if threads % each or rows % stride or (words > 1 and step[1] != 1):
        raise ValueError(f"{threads} threads can't copy {rows}x{columns} numbers, {words} at a time")
    start_copy = copy_vector_async if words > 1 else copy_async
    down, along = step

    @device_function
    def copy(slab, start, source, row, column, t):
        height, width = source.shape
        i, j = t // each, t % each * words
        target = np.uint32(start + i * down + j * along)
        origin, jump = (row + i) * np.int32(width) + (column + j), stride * np.int32(width)
        for r in range(0, rows, stride):
            if guarded:
                inside = row + i + r < height and column + j < width
                start_copy(slab, target, r * down, source, origin if inside else 0, inside)
            else:
                start_copy(slab, target, r * down, source, origin, True)
            origin += jump

    return copy
