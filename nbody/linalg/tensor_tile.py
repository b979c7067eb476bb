"""A warp's tile of C on the tensor cores, in TF32 or in the 3xTF32 split.

``mma.sync.m16n8k8`` multiplies 16x8 with 8x8 numbers, the elements spread over the warp's lanes (g, q) =
divmod(lane, 4). Which of the eight k a lane holds, and which columns, is free as long as A and B, and B and C,
agree: here lane (g, q) takes k = 2q and 2q + 1, and neighbouring columns. So A comes from shared memory two
numbers a load, and B four.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody.gpu import device_function
from nbody.linalg.intrinsics import head_tf32, mma_tf32, move_pair, move_vector, round_tf32
from nbody.unroll import unrolled

M, N, K = 16, 8, 8
"""Rows, columns and depth of one instruction."""


class TensorTiling(NamedTuple):
    """(rows, columns) of C for a block and a warp; slab depth, slabs on chip, blocks that share a
    multiprocessor."""

    block: tuple[int, int]
    warp: tuple[int, int]
    depth: int
    stages: int
    resident: int

    @property
    def threads(self) -> int:
        """Threads a block."""
        return 32 * (self.block[0] // self.warp[0]) * (self.block[1] // self.warp[1])

    @property
    def pitches(self) -> tuple[int, int]:
        """Lengths of the slabs' rows in shared memory: with these a warp's loads touch each bank once."""
        return self.depth + 8, self.block[1] + 4

    @property
    def tiles(self) -> tuple[int, int]:
        """Instructions that cover a warp's tile, down and along."""
        return self.warp[0] // M, self.warp[1] // N


class Held(NamedTuple):
    """Numbers that a lane holds: of a 16-row strip of A, of B, of C."""

    a: int
    b: int
    c: int


def held(tiling: TensorTiling) -> Held:
    """The sizes of a lane's local arrays, for a whole slab of A and B."""
    (down, along), steps = tiling.tiles, tiling.depth // K
    return Held(4 * steps, 2 * along * steps, 4 * down * along)


@cache
def slab_multiplier(tiling: TensorTiling, split: bool) -> Any:
    """The device function that multiplies a slab; ``split``: with the small parts of the factors.

    The tensor cores cut off, rather than round, when they add: a sum over all of k would err by k/8 such cuts
    (2.7e-5 at k = 4096, measured on an H200). So each slab's product starts from zero and is added by an
    ordinary addition.
    """
    (a_pitch, b_pitch), (down, along), steps = tiling.pitches, tiling.tiles, tiling.depth // K
    head = head_tf32 if split else round_tf32

    @device_function
    def load_b(s, b, b_big, b_small, b_slabs, at_b):
        first = s * 2 * along
        for w in range(2):
            for p in range(0, along, 4):
                move_vector(b, first + w * along + p, b_slabs, at_b + (s * K + w) * b_pitch + p)
        for e in range(first, first + 2 * along):
            b_big[e] = head(b[e])
            b_small[e] = b[e] - b_big[e]

    @device_function
    def load_a(s, i, a, a_big, a_small, a_slabs, at_a):
        first = s * 4
        for h in range(2):  # rows g and g + 8
            move_pair(a, first + h * 2, a_slabs, at_a + (i * M + h * 8) * a_pitch + s * K)
            for w in range(2):  # the instruction wants both rows of a k together
                value = a[first + h * 2 + w]
                a_big[first + w * 2 + h] = head(value)
                a_small[first + w * 2 + h] = value - a_big[first + w * 2 + h]

    @device_function
    def strip(i, sums, a, a_big, a_small, b_big, b_small, product, a_slabs, at_a):
        for s in range(steps):
            load_a(s, i, a, a_big, a_small, a_slabs, at_a)
        for j in range(along):
            for e in range(4):
                product[e] = np.float32(0)
            for s in range(steps):
                column = s * 2 * along + j
                if split:
                    mma_tf32(product, a_small, s * 4, b_big, column, along)
                    mma_tf32(product, a_big, s * 4, b_small, column, along)
                mma_tf32(product, a_big, s * 4, b_big, column, along)
            for e in range(4):
                sums[(i * 4 + e) * along + j] += product[e]

    all_of_b, strips = unrolled(load_b, steps), unrolled(strip, down)

    @device_function
    def multiply(sums, a, a_big, a_small, b, b_big, b_small, product, a_slabs, at_a, b_slabs, at_b):
        all_of_b(b, b_big, b_small, b_slabs, at_b)
        strips(sums, a, a_big, a_small, b_big, b_small, product, a_slabs, at_a)

    return multiply


@cache
def tile_writer(tiling: TensorTiling) -> Any:
    """The device function that writes a lane's sums to C, from its first row and column on."""
    down, along = tiling.tiles

    @device_function
    def store(r, sums, c, row, column):
        m, n = c.shape
        i, edge = row + r // 4 * M + r % 4 // 2 * 8, column + r % 2 * along
        for p in range(0, along, 4):
            j = edge + p
            if n % 4 == 0 and i < m and j < n:
                move_vector(c, i * n + j, sums, r * along + p)
            else:
                for word in range(4):
                    if i < m and j + word < n:
                        c[i, j + word] = sums[r * along + p + word]

    return unrolled(store, 4 * down)
