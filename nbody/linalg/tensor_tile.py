"""A warp's tile of C on the tensor cores, in TF32 or in the 3xTF32 split.

``mma.sync.m16n8k8`` multiplies 16x8 by 8x8 numbers, the elements spread over the warp's lanes (g, q) = divmod(lane, 4).
Here it computes C^T = B^T·A^T: its 16 rows are columns of C, its 8 columns are rows of C. The assignment of the eight k and
of the columns to lanes is free, if it is the same for A and B, and for B and C: lane (g, q) takes k = 2q and 2q + 1, and
columns 2g and 2g + 1. Then numbers that the instruction needs in neighbouring registers are also neighbours in shared
memory, so that one load reads two of them and none is moved.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody.compute import device_function
from nbody.compute.in_kernels.unroll import unrolled
from nbody.linalg.intrinsics import head_tf32, mma_tf32, move_pair, move_vector, round_tf32

COLUMNS, ROWS, K = 16, 8, 8
"""Columns and rows of C, and depth, of one instruction."""


class TensorTiling(NamedTuple):
    """(rows, columns) of C per block and per warp; slab depth, slabs in shared memory, blocks per multiprocessor."""

    block: tuple[int, int]
    warp: tuple[int, int]
    depth: int
    stages: int
    resident: int

    @property
    def threads(self) -> int:
        """Threads per block."""
        return 32 * (self.block[0] // self.warp[0]) * (self.block[1] // self.warp[1])

    @property
    def pitches(self) -> tuple[int, int]:
        """Lengths of the slabs' rows in shared memory, chosen so that a warp's loads access each bank once."""
        return self.depth + 8, self.block[1] + 4

    @property
    def tiles(self) -> tuple[int, int]:
        """Instructions that cover a warp's tile, down and along."""
        return self.warp[0] // ROWS, self.warp[1] // COLUMNS

    @property
    def held(self) -> tuple[int, int, int, int]:
        """Numbers that a lane holds: of an 8-row strip of A, of B, of C, and of the strip's product."""
        (down, along), steps = self.tiles, self.depth // K
        return 2 * steps, 4 * along * steps, 4 * down * along, 4 * along


@cache
def slab_multiplier(tiling: TensorTiling, split: bool) -> Any:
    """The device function that multiplies a slab; ``split``: with the small parts of the factors.

    The tensor cores truncate instead of rounding when they add: a sum over all k would have the error of k/8 truncations
    (2.7e-5 at k = 4096, measured on an H200). So each slab's product starts from zero and is added with an ordinary
    addition.
    """
    (a_pitch, b_pitch), (down, along), steps = tiling.pitches, tiling.tiles, tiling.depth // K
    head = head_tf32 if split else round_tf32

    @device_function
    def part(big, small, first, count):
        for e in range(first, first + count):
            x = big[e]
            big[e] = head(x)
            small[e] = x - big[e]

    @device_function
    def load_b(s, b_big, b_small, b_slabs, at_b):
        first = s * along * 4
        for j in range(along):
            for w in range(2):
                move_pair(b_big, first + j * 4 + w * 2, b_slabs, at_b + ((s * K + w) * b_pitch + j * COLUMNS))
        part(b_big, b_small, first, along * 4)

    @device_function
    def multiply_step(s, product, a, b):
        for j in range(along):  # separate products: an instruction need not wait for the previous one
            mma_tf32(product, j * 4, b, (s * along + j) * 4, a, s * 2)

    @device_function
    def strip(i, sums, a_big, a_small, b_big, b_small, product, a_slabs, at_a):
        for s in range(steps):
            move_pair(a_big, s * 2, a_slabs, at_a + (i * ROWS * a_pitch + s * K))
            part(a_big, a_small, s * 2, 2)
        for e in range(4 * along):
            product[e] = np.float32(0)
        for s in range(steps):
            if split:
                multiply_step(s, product, a_big, b_small)
                multiply_step(s, product, a_small, b_big)
            multiply_step(s, product, a_big, b_big)
        for j in range(along):
            for row in range(2):
                for column in range(2):  # rows of the instruction's product (columns of C) are two elements apart
                    sums[((i * along + j) * 2 + row) * 2 + column] += product[j * 4 + column * 2 + row]

    all_of_b, strips = unrolled(load_b, steps), unrolled(strip, down)

    @device_function
    def multiply(sums, a_big, a_small, b_big, b_small, product, a_slabs, at_a, b_slabs, at_b):
        all_of_b(b_big, b_small, b_slabs, at_b)
        strips(sums, a_big, a_small, b_big, b_small, product, a_slabs, at_a)

    return multiply


@cache
def tile_writer(real: Any, tiles: tuple[int, int]) -> Any:
    """The device function by which a lane writes the sums of ``tiles`` (down, along) instructions to a matrix that consists
    of ``height`` rows of ``target`` from row ``top`` on: ``store(sums, target, top, height, row, column)``, from its first
    row and column. A lane has, for each 8 rows and 16 columns, two numbers of row 2q and two of row 2q + 1."""
    (down, along), move = tiles, move_pair if real is np.float32 else move_vector  # two numbers each

    @device_function
    def store(r, sums, target, top, height, row, column):
        n = target.shape[1]
        i = row + (r // 2 * ROWS + r % 2)
        for p in range(along):
            j, first = column + p * COLUMNS, ((r // 2 * along + p) * 2 + r % 2) * 2
            if n % 2 == 0 and i < height and j < n:
                move(target, (top + i) * n + j, sums, first)
            else:
                for word in range(2):
                    if i < height and j + word < n:
                        target[top + i, j + word] = sums[first + word]

    return unrolled(store, 2 * down)
