"""The arrays of the ``cpu`` engine during a force evaluation: tiles of particles and sums, component after component.

In this layout the numbers of a vector are contiguous. (With rows x, y, z the compiler generates scalar code, which is 20
times slower.)
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import config

from nbody.forces.direct.cpu_cache import disk_cached

TILE = 256
"""The most bodies per tile, for few particles. 128 costs 8 % of the speed (two Zen 4 cores, N = 20480)."""

TILE_BYTES = 2048
"""The same for many particles, in bytes per component: 512 float32, which gains 4 %, or 256 float64. A tile of bodies and
one of sums then fill half of the first-level cache."""

MANY = 16384
"""From this number of particles on there are enough of the larger tiles (32) to divide among many cores."""

STRIDE = 64
"""Tiles are padded with massless bodies to a multiple of this number, so that the vector loop has no remainder."""

ROUND = 8
"""Distances per synchronization of the threads; each distance has separate sums, four numbers per body. Synchronization is
slow while other programs run: beside two busy programs on two cores an evaluation took 304 ms with one distance per
synchronization, and 153 ms with 8 (N = 20480)."""

PIECE = 1 << 31
"""The most interactions per round, unless one distance has more: 0.2 s on two cores. (One distance has that many from 2
million particles on, and takes 0.4 s for 4 million.)"""

PAGE = 4096
"""Bytes; tiles are whole pages."""


class Tiles(NamedTuple):
    """The particles and their sums during a force evaluation; :mod:`nbody.forces.direct.cpu_pairs` says how they are used.

    ``bodies``, (tiles, 4, room), holds x, y, z, m in the kernel's units; ``sums_i``, (tiles, 4, room), and ``sums_j``,
    (distances, tiles, 4, room), hold ax, ay, az, φ; ``partial``, (threads, 4, room), holds the sums for the other tile of
    the pair that a thread is computing.
    """

    bodies: np.ndarray
    sums_i: np.ndarray
    sums_j: np.ndarray
    partial: np.ndarray

    @classmethod
    def allocate(cls, count: int, dtype: np.dtype) -> "Tiles":
        """Empty tiles for ``count`` particles."""
        return cls(*(aligned_zeros(shape, dtype) for shape in cls.shapes(count, dtype)))

    def rounds(self) -> Iterator[tuple[int, int]]:
        """Ranges of distances, ``first`` to ``last`` (not included), between which the threads synchronize: at most ROUND
        distances each, and fewer for many particles, so that a signal is handled in time. The first range begins with 0."""
        tiles, _, room = self.bodies.shape
        size = max(1, min(ROUND, PIECE // (2 * tiles * room * room)))
        end = tiles // 2 + 1
        return pairwise([0, *range(1 + size, end, size), end])

    @staticmethod
    def shapes(count: int, dtype: np.dtype) -> tuple[tuple[int, ...], ...]:
        """The shapes of the arrays: one tile for few particles, else an even number, which divides well among cores."""
        room = TILE_BYTES // dtype.itemsize if count >= MANY else TILE
        tiles = 1 if count <= room else 2 * -(-count // (2 * room))
        sums = (tiles, 4, room)
        return sums, sums, (min(ROUND, tiles // 2), *sums), (config.NUMBA_NUM_THREADS, 4, room)


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros, aligned to a page. Vectors that cross a cache line cost 15 % in float32 and 30 % in float64; and a load waits
    for an earlier store to the same offset in another page, which halves the speed in the worst case."""
    size = math.prod(shape) * dtype.itemsize
    room = np.zeros(size + PAGE, np.uint8)
    start = -room.ctypes.data % PAGE
    return room[start : start + size].view(dtype).reshape(shape)


class Units(NamedTuple):
    """Factors from the caller's numbers to the kernel's (position, mass), and from its sums to the caller's."""

    position: float
    mass: float
    acceleration: float
    potential: float


@disk_cached
def pack(position, mass, units, tiles):
    """Copy the bodies into their tiles, and set all sums to zero. (On one core: 1 % of an evaluation at N = 20480.)"""
    bodies, sums_i, sums_j, _ = tiles
    sums_i[:] = 0
    sums_j[:] = 0
    count, dimensions = position.shape
    size = -(-count // len(bodies))
    for n in range(count):
        b, i = n // size, n % size
        for k in range(dimensions):
            bodies[b, k, i] = position[n, k] * units.position
        bodies[b, 3, i] = mass[n] * units.mass


@disk_cached
def unpack(tiles, units, potential, acceleration, phi):
    """Add the sums, and write them in the caller's units: to ``phi`` if ``potential``, else to ``acceleration``."""
    _, sums_i, sums_j, _ = tiles
    for slot in range(len(sums_j)):
        for b in range(len(sums_i)):
            for k in range(4):
                for i in range(sums_i.shape[2]):  # (reshape() would import 30 ms of Numba for every run)
                    sums_i[b, k, i] += sums_j[slot, b, k, i]
    count, dimensions = acceleration.shape
    size = -(-count // len(sums_i))
    for n in range(count):
        b, i = n // size, n % size
        if potential:
            phi[n] = sums_i[b, 3, i] * units.potential
        else:
            for k in range(dimensions):
                acceleration[n, k] = sums_i[b, k, i] * units.acceleration
