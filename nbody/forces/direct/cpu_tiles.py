"""The arrays of the ``cpu`` engine during a force evaluation: tiles of particles and sums, component after component.

In this layout the numbers of a vector are contiguous. (With rows x, y, z the compiler generates scalar code, which is 20
times slower.)
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import config, prange

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.parallel.segments import segment_count

TILE = 256
"""The most bodies per tile, for few particles. 128 costs 8 % of the speed (two Zen 4 cores, N = 20480)."""

TILE_BYTES = 2048
"""The same for many particles, in bytes per component: 512 float32, which gains 4 %, or 256 float64. A tile of bodies and
one of sums then fill half of the first-level cache."""

MANY = 16384
"""From this number of particles on there are enough of the larger tiles (32) to divide among many cores."""

STRIDE = 64
"""Tiles are padded with massless bodies to a multiple of this number, so that the vector loop has no remainder."""

MOST_SEGMENTS = 64
"""The most segments of an evaluation, and so of threads and ranks together. Each has sums of all bodies: 1 GB in float32 for
a million bodies, which one process has alone and several divide."""

PIECE = 1 << 31
"""The most interactions per round, unless one distance has more: 0.2 s on two cores. (One distance has that many from 2
million particles on, and takes 0.4 s for 4 million.) Synchronization between rounds is slow while other programs run."""

WAKING = 32
"""The sums of fewer tiles are added by one core: waking the others would take as long."""

PAGE = 4096
"""Bytes; tiles are whole pages."""


class Segments(NamedTuple):
    """The segments ``first`` to ``last`` (not included) of ``number`` segments; a segment is some contiguous tiles with
    their pairs, see :mod:`nbody.forces.direct.cpu_pairs`."""

    first: int
    last: int
    number: int

    def tile(self, segment: int, tiles: int) -> int:
        """The first tile of a segment."""
        return segment * tiles // self.number


class Tiles(NamedTuple):
    """The particles and their sums during a force evaluation; :mod:`nbody.forces.direct.cpu_pairs` says how they are used.

    ``bodies``, (tiles, 4, width), holds x, y, z, m in the kernel's units; ``sums_i``, (tiles, 4, width), and ``sums_j``,
    (tiles, segments + 1, 4, width), hold ax, ay, az, φ; ``partial``, (threads, 4, width), holds the sums for the other tile
    of the pair that a thread is computing. The last slot of ``sums_j`` is for the sum over the segments of all ranks.
    """

    bodies: np.ndarray
    sums_i: np.ndarray
    sums_j: np.ndarray
    partial: np.ndarray

    @classmethod
    def allocate(cls, count: int, dtype: np.dtype, segments: Segments) -> "Tiles":
        """Empty tiles for ``count`` particles, and sums of some segments."""
        return cls(*(aligned_zeros(shape, dtype) for shape in cls.shapes(count, dtype, segments)))

    def rounds(self, segments: Segments) -> Iterator[tuple[int, int]]:
        """Ranges of distances, ``first`` to ``last`` (not included), between which the threads synchronize, so that a signal
        is handled in time. The first range begins with 0."""
        tiles, _, width = self.bodies.shape
        own = segments.tile(segments.last, tiles) - segments.tile(segments.first, tiles)
        size = max(1, PIECE // max(1, 2 * own * width * width))
        end = tiles // 2 + 1
        return pairwise([0, *range(1 + size, end, size), end])

    @staticmethod
    def shape(count: int, dtype: np.dtype) -> tuple[int, int, int]:
        """The shape of the bodies: one tile for few particles, else an even number, which divides well among cores."""
        width = TILE_BYTES // dtype.itemsize if count >= MANY else TILE
        return 1 if count <= width else 2 * -(-count // (2 * width)), 4, width

    @classmethod
    def shapes(cls, count: int, dtype: np.dtype, segments: Segments) -> tuple[tuple[int, ...], ...]:
        """The shapes of the arrays."""
        tiles, four, width = sums = cls.shape(count, dtype)
        return (
            sums,
            sums,
            (tiles, segments.last - segments.first + 1, four, width),
            (config.NUMBA_NUM_THREADS, four, width),
        )

    @classmethod
    def bytes_needed(cls, count: int, dtype: np.dtype) -> int:
        """Memory of the tiles in one process."""
        segments = segment_count(cls.shape(count, dtype)[0], MOST_SEGMENTS)
        return sum(map(math.prod, cls.shapes(count, dtype, Segments(0, segments, segments)))) * dtype.itemsize


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros, aligned to a page. Vectors that cross a cache line cost 15 % in float32 and 30 % in float64; and a load waits
    for an earlier store to the same offset in another page, which halves the speed in the worst case."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.zeros(size + PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE
    return memory[start : start + size].view(dtype).reshape(shape)


@compute.kernel("cpu")
def pack(position, mass, units, tiles):
    """Copy the bodies into their tiles. (On one core: 1 % of an evaluation at N = 20480.)"""
    bodies = tiles.bodies
    count, dimensions = position.shape
    size = -(-count // len(bodies))
    for n in range(count):
        b, i = n // size, n % size
        for k in range(dimensions):
            bodies[b, k, i] = position[n, k] * units.position
        bodies[b, 3, i] = mass[n] * units.mass


@inner
def _touches(segment, segments, tile, tiles):
    """True if a segment has sums for the bodies of a tile: the half circle from its first tile on."""
    start, end = segment * tiles // segments.number, (segment + 1) * tiles // segments.number
    return end > start and (tile - start - 1) % tiles < end - start - 1 + tiles // 2


@inner
def clear_segment(segment, segments, sums_i, sums_j):
    """In a kernel: set the sums of a segment to zero."""
    number = len(sums_i)
    for b in range(segment * number // segments.number, (segment + 1) * number // segments.number):
        sums_i[b] = 0
    for b in range(number):
        if _touches(segment, segments, b, number):
            sums_j[b, segment - segments.first] = 0


@inner
def _add(right, left, empty):
    """left += right; ``empty``: left is zero, whatever it holds."""
    if empty:
        left[:] = 0
    for k in range(4):
        for i in range(left.shape[1]):
            left[k, i] += right[k, i]


@inner
def _add_of_tile(b, segments, sums_j):
    sums, own, number = sums_j[b], segments.last - segments.first, len(sums_j)
    filled = np.empty(own, np.bool_)
    for k in range(own):
        filled[k] = _touches(segments.first + k, segments, b, number)
    width = 1
    while width < own:
        start = -(-segments.first // (2 * width)) * 2 * width - segments.first
        for left in range(start, own - 2 * width + 1, 2 * width):
            right = left + width
            if filled[right]:
                _add(sums[right], sums[left], not filled[left])
            filled[left] |= filled[right]
        width *= 2


def _add_segments(segments, tiles):
    """Add the sums of the segments in pairs, like :func:`nbody.parallel.segments.add_nodes`: the sums of a node replace
    those of its first segment, and are complete for the nodes of :func:`nbody.parallel.segments.cover`."""
    _, _, sums_j, _ = tiles
    if len(sums_j) < WAKING:
        for b in range(len(sums_j)):
            _add_of_tile(b, segments, sums_j)
        return
    for b in prange(len(sums_j)):
        _add_of_tile(b, segments, sums_j)


add_segments = compute.kernel("cpu", parallel=True)(_add_segments)


@compute.kernel("cpu")
def unpack(first, last, slot, tiles, units, potential, acceleration, phi):
    """Add ``sums_i`` and a slot of ``sums_j`` of the tiles ``first`` to ``last`` (not included), and write them in the
    caller's units: to ``phi`` if ``potential``, else to ``acceleration``."""
    _, sums_i, sums_j, _ = tiles
    count, dimensions = acceleration.shape
    size = -(-count // len(sums_i))
    for b in range(first, last):
        own, others, start = sums_i[b], sums_j[b, slot], b * size
        for i in range(min(size, max(0, count - start))):
            if potential:
                phi[start + i] = (own[3, i] + others[3, i]) * units.potential
            else:
                for k in range(dimensions):
                    acceleration[start + i, k] = (own[k, i] + others[k, i]) * units.acceleration
