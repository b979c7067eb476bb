"""A warp's tile of C on the float64 tensor cores.

``mma.sync.m16n8k8`` multiplies 16x8 by 8x8 numbers, the elements spread over the warp's lanes (g, q) = divmod(lane, 4).
Here it computes C^T = B^T·A^T: its 16 rows are columns of C, its 8 columns are rows of C. A lane holds rows g and g + 8 of
the first factor at k = q and q + 4, and column g of the second. The assignment of these indices to k and to columns of C is
free, if it is the same for both factors and for C:

- the instruction's k = q and q + 4 are k = 2q and 2q + 1: one 128-bit read of A's row loads both, in the right order;
- the instruction's rows g and g + 8 are columns 2g and 2g + 1: one 128-bit read of B's row loads both.

So no number is moved from register to register. (Untransposed, the instruction needs rows g and g + 8 of A in neighbouring
registers: seven moves per instruction.)

In shared memory, A's slab is divided into planes of 8 columns, with rows of 8 numbers; 8 lanes that read at the same time
read two whole rows. B's rows are two numbers longer than the tile. In both cases 8 lanes access each bank once.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody.compute import device_function
from nbody.compute.in_kernels.unroll import unrolled
from nbody.linalg.intrinsics import mma_f64, move_vector
from nbody.linalg.staging import slab_copier
from nbody.linalg.tensor_tile import COLUMNS, ROWS, tile_writer

PLANE = 8
"""Columns of A in one plane of a slab: the eight k of 128-bit reads of four lanes."""
REAL = np.float64


class DoubleTiling(NamedTuple):
    """How a product is divided: (rows, columns) of C per block and per warp; slab depth, slabs in shared memory, blocks
    per multiprocessor; k of one load of fragments, and of one instruction; rows of tiles that blocks compute together."""

    block: tuple[int, int]
    warp: tuple[int, int]
    depth: int = 16
    stages: int = 3
    resident: int = 1
    load: int = 8
    instruction: int = 8
    group: int = 8

    @property
    def warps(self) -> tuple[int, int]:
        """Warps along the rows and columns of a block's tile."""
        return self.block[0] // self.warp[0], self.block[1] // self.warp[1]

    @property
    def threads(self) -> int:
        """Threads per block."""
        return 32 * self.warps[0] * self.warps[1]

    @property
    def plane(self) -> int:
        """Numbers from one plane of A's slab to the next; 8 more than its size, against bank conflicts of the copies."""
        return self.block[0] * PLANE + PLANE

    @property
    def b_pitch(self) -> int:
        """Numbers from one row of B's slab to the next."""
        return self.block[1] + 2

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of a slab of A and of a slab of B in shared memory."""
        return self.depth // PLANE * self.plane, self.depth * self.b_pitch

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory per block."""
        return self.stages * sum(self.sizes) * np.dtype(REAL).itemsize

    @property
    def tiles(self) -> tuple[int, int]:
        """Instructions that cover a warp's tile, down and along."""
        return self.warp[0] // ROWS, self.warp[1] // COLUMNS

    @property
    def held(self) -> tuple[int, int, int]:
        """Numbers of A, B and C that a lane holds; of A and B two loads, one in use and one in progress."""
        rows, columns = self.warp
        return rows * self.load // 16, columns * self.load // 16, rows * columns // 32


class DoubleTile(NamedTuple):
    """The device functions of a warp's tile, for local arrays ``left``, ``right`` and ``sums`` of the sizes ``held``.

    ``load_first(left, right, slabs, at_a, at_b)`` loads a slab's first fragments. ``multiply(sums, left, right, slabs, at_a,
    at_b)`` multiplies all but the last while it loads the next, and ``multiply_last(sums, left, right)`` the last.
    ``store(sums, target, top, height, row, column)`` writes the lane's sums as of C[row, column] to the matrix that fills
    ``height`` rows of ``target`` from row ``top`` on.
    """

    load_first: Any
    multiply: Any
    multiply_last: Any
    store: Any


@cache
def double_tile(tiling: DoubleTiling) -> DoubleTile:
    """The device functions for a tiling."""
    (down, along), load, (a_held, b_held, _) = tiling.tiles, tiling.load, tiling.held
    a_half, b_half, loads, planes = a_held // 2, b_held // 2, tiling.depth // load, load // PLANE
    plane, b_pitch = tiling.plane, tiling.b_pitch
    if loads < 2 or loads % 2:
        raise ValueError(f"a slab {tiling.depth} deep is not an even number of loads of {load}")
    multiply_tile = _tile_multiplier(tiling)

    @device_function
    def fetch(s, left, right, slabs, at_a, at_b):
        for w in range(planes):
            for i in range(down):
                to = s % 2 * a_half + (i * planes + w) * 2
                move_vector(left, to, slabs, at_a + ((s * planes + w) * plane + i * ROWS * PLANE))
            for j in range(along):
                for odd in range(2):
                    to = s % 2 * b_half + ((j * planes + w) * 2 + odd) * 2
                    move_vector(right, to, slabs, at_b + (((s * planes + w) * PLANE + odd) * b_pitch + j * COLUMNS))

    @device_function
    def step(s, sums, left, right, slabs, at_a, at_b):
        fetch(s + 1, left, right, slabs, at_a, at_b)
        multiply_tile(sums, left, right, s % 2 * a_half, s % 2 * b_half)

    @device_function
    def load_first(left, right, slabs, at_a, at_b):
        fetch(0, left, right, slabs, at_a, at_b)

    @device_function
    def multiply_last(sums, left, right):
        multiply_tile(sums, left, right, a_half, b_half)

    return DoubleTile(load_first, unrolled(step, loads - 1), multiply_last, tile_writer(REAL, tiling.tiles))


def _tile_multiplier(tiling: DoubleTiling) -> Any:
    """The device function (sums, left, right, from_a, from_b) that multiplies one load of fragments, in one or two rounds
    of instructions.

    A lane holds of A: for each 8 rows the numbers k = 2q, 2q + 1 of each plane; of B: for each 16 columns, plane and k = 2q,
    2q + 1 the columns 2g, 2g + 1; of C: for each 8 rows and 16 columns two numbers of row 2q and two of row 2q + 1.
    """
    (down, along), load, depth = tiling.tiles, tiling.load, tiling.instruction or 4
    a_each, b_each = load // 4, load // 2

    def a_round(part: int) -> Any:
        b_at, a_at = (range(part * depth // each, (part + 1) * depth // each) for each in (2, 4))
        mma = mma_f64(tiling.instruction, b_at, a_at, (0, 2, 1, 3))

        @device_function
        def multiply(i, sums, left, right, from_a, from_b):
            for j in range(along):
                mma(sums, (i * along + j) * 4, right, from_b + j * b_each, left, from_a + i * a_each)

        return unrolled(multiply, down)

    first, second = a_round(0), a_round(1) if load > depth else None
    if second is None:
        return first
    if load != 2 * depth:
        raise ValueError(f"a load of {load} is one or two instructions of {depth}")

    @device_function
    def both(sums, left, right, from_a, from_b):
        first(sums, left, right, from_a, from_b)
        second(sums, left, right, from_a, from_b)

    return both


@cache
def double_copiers(tiling: DoubleTiling, a_vectors: bool, b_vectors: bool, guarded: bool) -> tuple[Any, Any]:
    """The device functions by which a block copies a slab of A and one of B: ``copy(slabs, start, source, row, column, t)``
    as in :func:`~nbody.linalg.staging.slab_copier`. ``a_vectors``, ``b_vectors``: the rows of A, of B have even length."""
    (height, width), depth, threads, plane = tiling.block, tiling.depth, tiling.threads, tiling.plane
    copy_plane = slab_copier(height, PLANE, threads, (PLANE, 1), 2 if a_vectors else 1, guarded)
    copy_b = slab_copier(depth, width, threads, (tiling.b_pitch, 1), 2 if b_vectors else 1, guarded)

    @device_function
    def one_plane(p, slabs, start, source, row, column, t):
        copy_plane(slabs, start + p * plane, source, row, column + p * PLANE, t)

    return unrolled(one_plane, depth // PLANE), copy_b
