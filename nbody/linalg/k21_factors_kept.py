"""k21: the champion's float64 tile, with little beside its multiply-adds, and with their factors kept.

A scheduler starts one instruction a cycle, whatever it does, and a float64 multiply-add takes two cycles at least: what
else is in the loop comes on top. For a slab, 1024 multiply-adds of each thread, k17 has 299 other instructions, of which
128 read the factors and 24 start copies. Nearly all the others compute addresses. This kernel has 175:

- The addresses of a thread's copies are carried from slab to slab by one addition each. Eight neighbouring threads share
  a row of the slab and walk along it, 64 bytes of A or 128 of B at a time. The distance to a thread's next copy in
  the row is then fixed, a part of the instruction: 10 addresses are enough for 24 copies. (Four threads to a row
  need 5, but a copy then reads no more than 32 bytes of a row of A, and 64 of B.)
- Where a thread copies to and where it reads are addresses in shared memory, which change between the two stages by
  one subtraction from their sum. All within a slab is a fixed distance away.
- The last slab has nothing to copy behind it: its copies are switched off by a predicate, the one by which the loop
  ends, and the loop is one block from barrier to branch.
- Where the last slab or a tile is ragged, all slabs but the last are still copied without a comparison: what is read
  past the edge of a matrix is in the next row, and its products are never stored.
- The lanes of a warp stand so that shared memory serves more of them at a time, see
  :func:`~nbody.linalg.register_tile.lane_placer`.

One H200, n = 4096: k17 makes 25.0 TFLOP/s; this kernel in the assembler's order, with k17's lanes, 24.3; in its own order
26.4; with its own lanes 27.4 to 27.7; with the first reads of a slab in front of its copies 27.9, 83 % of the peak. Without
copies the loop would make 28.2, without reads of shared memory 29.4, without both 30.1 (measured before that, with wrong
results). 4096 tiles on 528 places fill 7.76 of 8 rounds: see :mod:`nbody.linalg.k22_last_round`.

The arithmetic and its order are k17's, and so is every bit of the result. For float32, and where k17 has another tile than
this one or splits the sum, this is k17.
"""

from functools import cache
from typing import Any

import numpy as np

from nbody.gpu import FAST, bounded, cuda
from nbody.linalg import k17_champion, k18_skinny
from nbody.linalg.addresses import array_at, shared_address
from nbody.linalg.intrinsics import commit_copies, copies_waiter, vector_length
from nbody.linalg.k17_champion import WARP
from nbody.linalg.register_tile import lane_placer, register_tile
from nbody.linalg.rung import Launch, Rung, Shape, tile_reads
from nbody.linalg.staging import slab_walker

REAL = np.float64
TILING = k17_champion.TILINGS["float64"][0][1]
LANES = 8
"""Threads that copy from one row of a slab."""
LONGEST_ROW = 2**32
"""Bytes of a row of B: from one to the next is a number of 32 bits."""


inlined = cuda.jit(device=True, inline="always", **FAST)
"""What Numba puts in the place of its call. LLVM would do so later, and come to another code of the loop."""


@cache
def kernel_body(vectors: bool, guarded: bool, work: Any, finished: Any) -> Any:
    """All that a kernel does: ``product(a, b, c, scratch)``, with two functions for what differs.

    ``work(a, c, scratch)`` says what this block does: the tile's (row, column), counted in tiles, and the slabs from
    ``begin`` to ``end``. ``finished(sums, scratch, t)`` comes behind them: whether thread t has the sums of all slabs now,
    and is to store them. ``vectors``: rows of B are multiples of V numbers; ``guarded``: some tile or slab is ragged.
    """
    (height, width), (_, warp_width), (rows, columns), depth, *_ = TILING
    length, threads = vector_length(REAL), TILING.threads
    lanes = warp_width // columns  # along the columns of a warp's tile
    pitch, results = height + length, rows * columns
    a_size, stage = depth * pitch, depth * (pitch + width)
    room, stage_bytes = 2 * stage, stage * np.dtype(REAL).itemsize
    strides = (height // rows * length, lanes * length)
    tile = register_tile(REAL, rows, columns, strides, depth, (pitch, width), TILING.path)
    place = lane_placer(WARP // lanes, lanes)
    walk_a = slab_walker(REAL, (height, depth), threads, LANES, (1, pitch), 1)
    walk_b = slab_walker(REAL, (depth, width), threads, LANES, (width, 1), length if vectors else 1)
    a_rows, b_rows = walk_a.rows, walk_b.rows
    wait_for_slab = copies_waiter(0)

    @inlined
    def product(a, b, c, scratch):
        slabs = cuda.shared.array(room, REAL)
        left = cuda.local.array(rows, REAL)
        right = cuda.local.array(columns, REAL)
        sums = cuda.local.array(results, REAL)
        from_a = cuda.local.array(a_rows, np.uint64)
        from_b = cuda.local.array(b_rows, np.uint64)
        m, k = a.shape
        t = cuda.threadIdx.x
        lane_row, lane_column = place(t % WARP)
        u, v = lane_row * length, t // WARP * warp_width + lane_column * length  # the thread's first in the tile
        row, column, begin, end = work(a, c, scratch)
        top, edge = row * height, column * width
        n = c.shape[1]
        # Bytes from a column of A to the next, and from a row of B. Where the assembler sees that the first is 8, it
        # advances an address by two additions of 32 bits and not by one multiply-add.
        column_of_a, row_of_b = a.strides[1], b.strides[0]
        walk_a.start(from_a, a, top, begin * depth, t)
        walk_b.start(from_b, b, begin * depth, edge, t)
        to_a, to_b = shared_address(slabs, walk_a.target(t)), shared_address(slabs, a_size + walk_b.target(t))
        at_a, at_b = shared_address(slabs, u), shared_address(slabs, a_size + v)
        both_to_a, both_to_b = np.uint32(2 * to_a + stage_bytes), np.uint32(2 * to_b + stage_bytes)
        both_at_a, both_at_b = np.uint32(2 * at_a + stage_bytes), np.uint32(2 * at_b + stage_bytes)
        tile.clear(sums)
        walk_a.copy_edge(array_at(slabs, to_a), a, from_a, m - top, k - begin * depth, t)
        walk_b.copy_edge(array_at(slabs, to_b), b, from_b, k - begin * depth, n - edge, t)
        commit_copies()
        slab = begin
        # A row of B that ends within the tile is read on into the next, for products that are never stored.
        whole = np.uint32(end - 1 if n >= width else 0)
        while slab < end:
            slab = np.uint32(slab + 1)
            walk_a.advance(from_a, depth, column_of_a)
            walk_b.advance(from_b, depth, row_of_b)
            to_a, to_b = np.uint32(both_to_a - to_a), np.uint32(both_to_b - to_b)
            wait_for_slab()
            cuda.syncthreads()  # this slab has arrived, and nobody reads the one before any more
            if not guarded or slab < whole:
                walk_a.copy(array_at(slabs, to_a), a, from_a, guarded or slab < end)
                walk_b.copy(array_at(slabs, to_b), b, from_b, guarded or slab < end)
            elif slab < end:
                k_left = k - np.int64(slab) * depth
                walk_a.copy_edge(array_at(slabs, to_a), a, from_a, m - top, k_left, t)
                walk_b.copy_edge(array_at(slabs, to_b), b, from_b, k_left, n - edge, t)
            commit_copies()
            tile.multiply(sums, left, right, array_at(slabs, at_a), 0, array_at(slabs, at_b), 0)
            at_a, at_b = np.uint32(both_at_a - at_a), np.uint32(both_at_b - at_b)
        if finished(sums, scratch, t):
            tile.store(sums, c, 0, m, top + u, edge + v)

    return product


@inlined
def whole_tile(a, c, scratch):
    """The work of a block where each has a tile."""
    return cuda.blockIdx.y, cuda.blockIdx.x, np.uint32(0), np.uint32((a.shape[1] + TILING.depth - 1) // TILING.depth)


@inlined
def at_once(sums, scratch, t):
    """Says that a tile is finished when its block is."""
    return True


@cache
def kernel(vectors: bool, guarded: bool) -> Any:
    """The kernel, see :func:`kernel_body`."""
    product = kernel_body(vectors, guarded, whole_tile, at_once)

    @cuda.jit(**bounded(TILING.threads, TILING.resident))
    def factors_kept(a, b, c):
        product(a, b, c, ())

    return factors_kept


def tiles(shape: Shape) -> tuple[int, int]:
    """Rows and columns of tiles."""
    height, width = TILING.block
    return -(-shape.m // height), -(-shape.n // width)


def variant(shape: Shape) -> tuple[bool, bool]:
    """Which kernel a shape takes: ``vectors`` and ``guarded`` of :func:`kernel_body`."""
    height, width = TILING.block
    guarded = shape.m % height > 0 or shape.n % width > 0 or shape.k % TILING.depth > 0
    return shape.n % vector_length(REAL) == 0, guarded


def own_launch(shape: Shape) -> Launch:
    """The launch of this rung's own kernel, for float64 matrices of any shape."""
    return Launch(kernel(*variant(shape)), tiles(shape)[::-1], (TILING.threads,))


def suits(shape: Shape, dtype: Any) -> bool:
    """True where k17 would take the same tile and not split the sum."""
    same = shape.n > k18_skinny.COLUMNS and k17_champion.plan(shape, dtype) == (TILING, 1)
    return same and shape.n * np.dtype(dtype).itemsize < LONGEST_ROW


def launch(shape: Shape, dtype: Any) -> Launch:
    """This rung's own kernel where it suits, else k17's launch."""
    return own_launch(shape) if suits(shape, dtype) else k17_champion.launch(shape, dtype)


RUNG = Rung(
    title="factors kept",
    idea="float64: addresses carried from slab to slab.",
    limit="register reads, two operands in two cycles, and the reads of shared memory.",
    launch=launch,
    reads=tile_reads(TILING.block, TILING.thread, words=2),
    improves="k17",
    claims=frozenset({"vector loads", "asynchronous copies"}),
)
