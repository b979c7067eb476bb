"""k14: A is transposed on its way into shared memory, so that its columns are read 128 bits at a time too.

Outer products need columns of A. In row-major A they are not contiguous; in a transposed slab, (k, m), they are: 8x8 results
take four 128-bit reads per step instead of sixteen words. The transposition is free: a thread loads a vector along k and
writes its numbers to different rows of the slab. The slab's rows are one vector longer than the tile, so that these writes
have no bank conflicts.

This saves registers, and in float32 a second block fits on a multiprocessor: 122 registers per thread, limited by
``bounded`` (k13 has 167, and would spill 96 bytes). H200, n = 2048: 36.7 TFLOP/s in float32, 15.5 in float64 (k13: 20.5 and
14.0).
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import bounded, cuda, device_function
from nbody.linalg.intrinsics import move_vector, vector_length
from nbody.linalg.register_tile import RegisterTile, register_tile
from nbody.linalg.rung import Rung, by_tiles, tile_reads
from nbody.linalg.staging import vector_fetcher

SIDE, RESULTS, DEPTH = 16, 8, 8
"""Threads along each side of a block, results along each side of a thread's tile, depth of a slab."""
TILE, THREADS, SUMS = SIDE * RESULTS, SIDE * SIDE, RESULTS * RESULTS
RESIDENT = {np.float32: 2, np.float64: 1}
"""Blocks per multiprocessor: 64 results in float64 leave registers for only one."""


class Pieces(NamedTuple):
    """The device functions that k14 and k15 share. ``fetch(registers_a, registers_b, a, b, row, column, first, t)`` loads
    ``staged`` numbers of A and of B from global memory into registers; ``put(a_slab, b_slab, which, registers_a,
    registers_b, t)`` stores them in slab number ``which`` in shared memory. ``pitch``: the length of a row of A's slab."""

    tile: RegisterTile
    staged: int
    pitch: int
    fetch: Any
    put: Any


@cache
def pieces(real: Any) -> Pieces:
    """The device functions for a NumPy scalar type."""
    length = vector_length(real)
    pitch = TILE + length
    vectors = TILE * DEPTH // THREADS // length  # of each matrix, for a thread
    a_each, b_each = DEPTH // length, TILE // length  # vectors in a row of the slab's source
    load = vector_fetcher(real)

    @device_function
    def fetch(registers_a, registers_b, a, b, row, column, first, t):
        for r in range(vectors):
            e = t + r * THREADS
            load(registers_a, r * length, a, row + e // a_each, first + e % a_each * length)
            load(registers_b, r * length, b, first + e // b_each, column + e % b_each * length)

    @device_function
    def put(a_slab, b_slab, which, registers_a, registers_b, t):
        for r in range(vectors):
            e = t + r * THREADS
            for word in range(length):
                a_slab[which * DEPTH + e % a_each * length + word, e // a_each] = registers_a[r * length + word]
            move_vector(b_slab, (which * DEPTH + e // b_each) * TILE + e % b_each * length, registers_b, r * length)

    tile = register_tile(real, RESULTS, RESULTS, (SIDE * length, SIDE * length), DEPTH, (pitch, TILE))
    return Pieces(tile, vectors * length, pitch, fetch, put)


@cache
def kernel(real: Any) -> Any:
    """The kernel for a NumPy scalar type."""
    length = vector_length(real)
    tile, staged, pitch, fetch, put = pieces(real)

    @compute.kernel("gpu", **bounded(THREADS, RESIDENT[real]))
    def transposed(a, b, c):
        a_slab = cuda.shared.array((DEPTH, pitch), real)
        b_slab = cuda.shared.array((DEPTH, TILE), real)
        registers_a = cuda.local.array(staged, real)
        registers_b = cuda.local.array(staged, real)
        left = cuda.local.array(RESULTS, real)
        right = cuda.local.array(RESULTS, real)
        sums = cuda.local.array(SUMS, real)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        t = y * SIDE + x
        row, column = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
        tile.clear(sums)
        for first in range(0, a.shape[1], DEPTH):
            fetch(registers_a, registers_b, a, b, row, column, first, t)
            put(a_slab, b_slab, 0, registers_a, registers_b, t)
            cuda.syncthreads()
            tile.multiply(sums, left, right, a_slab, y * length, b_slab, x * length)
            cuda.syncthreads()
        tile.store(sums, c, 0, c.shape[0], row + y * length, column + x * length)

    return transposed


RUNG = Rung(
    title="A transposed on its way in",
    idea="A's slab is stored (k, m): a column of A is contiguous, and both factors come in 128-bit reads.",
    limit="the block waits for global memory before every slab, and no warp multiplies during that time.",
    launch=by_tiles(kernel, TILE, (SIDE, SIDE)),
    reads=tile_reads((TILE, TILE), (RESULTS, RESULTS), words=4),
    improves="k13",
    claims=frozenset({"vector loads"}),
)
