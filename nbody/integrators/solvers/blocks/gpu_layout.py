"""What the kernels of block steps on a GPU share: sizes, the partition of the sums, the clock, and the length of a step in
ticks."""

import math
from typing import NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import SIMULATED
from nbody.integrators.solvers.blocks.formulas import pair_perturbation, step_choice

THREADS = 64 if SIMULATED else 128
WARPS = THREADS // 32


class BlockTiling(NamedTuple):
    """How the sums over pairs are divided. A warp sums over its own bodies of each tile, for all lanes' bodies.

    Attributes:
        warps: warps per block.
        per_warp: bodies of a tile per warp, at most 32.
        bodies: listed bodies per lane.
        unroll: bodies of a tile per iteration.
    """

    warps: int
    per_warp: int
    bodies: int
    unroll: int

    @property
    def tile(self) -> int:
        """Bodies per tile."""
        return self.warps * self.per_warp

    @property
    def group(self) -> int:
        """Listed bodies per warp."""
        return 32 * self.bodies


def tiling(mixed: bool) -> BlockTiling:
    """The tiling for a precision. One H200, all bodies on all bodies, 1e11 pairs per second: mixed, order 4, 65536 bodies:
    7.4 (one body per lane 5.5; with a barrier per tile instead of one per warp 5.6); float64, order 6, 32768 bodies: 2.2
    (two bodies per lane 2.3 there, but slower for small blocks)."""
    if SIMULATED:
        return BlockTiling(2, 16, 2 if mixed else 1, 4)
    return BlockTiling(8, 32, 2, 16) if mixed else BlockTiling(4, 16, 1, 8)


FAR = (1 << 62) - 1
"""A time in ticks that is never reached."""

# The slots of the clock, (CLOCK,) int64. The first six are used in turn: while a block is made, one of three slots holds its
# time, the next one receives the time after it, and the third one is cleared; the same for the number of listed bodies.
#
#   NEXT       0 to 2: the next times
#   LISTED     3 to 5: the numbers of listed bodies
#   REACHED    the time of the last block
#   END        blocks beyond this time are not made
#   UNIT       the largest step
#   SMALLEST   the smallest step
#   BUDGET     the most blocks
#   BLOCKS_DONE, SINGLE    the blocks made, and the steps of single bodies in them
#   FAILED     a body whose step would be too short, or -1
#   EXCEEDED   1 if the limit of a pair is exceeded
NEXT, LISTED = 0, 3
"""Between two graphs, each of which makes a multiple of three blocks, the next time is in the slot NEXT; the two slots after
it may still hold the time that was just reached."""
REACHED, END, UNIT, SMALLEST, BUDGET, BLOCKS_DONE, SINGLE, FAILED, EXCEEDED, CLOCK = range(6, 16)

TICK, ETA, STRENGTH, LENGTH2, BEGIN, SCALE = range(6)
"""The scale, (SCALE,) float64: the length of a tick, eta, G, the softening length squared, and the time at tick 0."""


def real_of(mixed: bool) -> type[np.floating]:
    """The type of the numbers in the sums over pairs."""
    return np.float32 if mixed else np.float64


class SumPartition(NamedTuple):
    """How the sums over all bodies are divided, and which of them a device computes: all bodies are ``parts`` parts, each of
    the same number of chunks. The chunks of a part are added in order, and the parts pairwise in one binary tree. So the
    bits depend on ``parts`` and ``capacity``, and not on the devices that compute the parts.

    Attributes:
        parts: a power of two; 1 if the bodies are too few for several devices.
        first, own: the first part of this device, and the number of its parts.
        capacity: about the groups of listed bodies times all chunks; so all blocks of threads have work.
        nodes, kept: the sums of the tree that the devices exchange, and the first parts of each as bits.
    """

    parts: int
    first: int
    own: int
    capacity: int
    nodes: int
    kept: int


ROUNDS = 4
"""If the sums have parts: the work of all devices, as a multiple of what a device computes at a time. (On one H200, 65536
bodies: 381 µs per block; 371 with 1, which leaves four and more devices without work for all of their multiprocessors.)"""


@compute.exact_function
def chunks_of(number, count, parts, capacity, tile, group):
    """The chunks of each part for ``number`` listed bodies."""
    groups, tiles = (number + group - 1) // group, (count + tile - 1) // tile
    return max(1, min((tiles + parts - 1) // parts, capacity // (parts * max(1, groups))))


in_ticks, following_step = step_choice(compute.exact_function)
perturbs = pair_perturbation(math.sqrt, compute.exact_function)
