"""Where the ``cpu`` engine keeps particles and their sums while it computes: tiles, component after component.

So the compiler sees contiguous numbers, and works on 16 of them at a time (an array of rows x, y, z stays scalar, at a
twentieth of the speed).
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import config

from nbody.forces.direct.cpu_cache import kept

TILE = 256
"""Bodies in a tile, at most, among few particles. 128 costs 8 % of the speed (two Zen 4 cores, N = 20480)."""

TILE_BYTES = 2048
"""The same among many particles, in bytes a component: 512 float32, which gains 4 %, or 256 float64. A tile of bodies
and one of sums then fill half of the first-level cache."""

MANY = 16384
"""Particles from which on there are enough of the larger tiles to share out among many cores: 32."""

STRIDE = 64
"""Bodies acting in step: a multiple of what a pass of the vector loop takes, so that it leaves none over. A tile is
filled up to a multiple of it with bodies without mass."""

ROUND = 8
"""Distances that tiles go through before the threads wait for each other; each distance has sums of its own, four numbers
a body. Each wait is for a thread that another program has stopped, now and then: with two busy programs beside it on two
cores, waiting at every distance took 304 ms an evaluation, and this 153 (N = 20480)."""

PIECE = 1 << 31
"""Interactions of a round of many particles, at most, unless one distance has more: 0.2 s on two cores. (One distance has
that many from 2 million particles on, and takes 0.4 s for 4 million.)"""

PAGE = 4096
"""Bytes; tiles are whole pages."""


class Tiles(NamedTuple):
    """The particles and their sums during a force evaluation; :mod:`nbody.forces.direct.cpu_pairs` says which tiles meet.

    ``body``, (tiles, 4, room), holds x, y, z, m in the kernel's units; ``own``, (tiles, 4, room), and ``theirs``,
    (distances, tiles, 4, room), the sums ax, ay, az, φ; ``given``, (threads, 4, room), what the meeting that a thread
    holds has so far for the other side.
    """

    body: np.ndarray
    own: np.ndarray
    theirs: np.ndarray
    given: np.ndarray

    @classmethod
    def allocate(cls, count: int, dtype: np.dtype) -> "Tiles":
        """Room for ``count`` particles, and no bodies yet."""
        return cls(*(aligned_zeros(shape, dtype) for shape in cls.shapes(count, dtype)))

    def rounds(self) -> Iterator[tuple[int, int]]:
        """The distances ``first`` to ``last`` (not included) that tiles go through before the threads wait for each other:
        ROUND of them at most, and of many particles so few that a signal is answered meanwhile; the first with 0."""
        tiles, _, room = self.body.shape
        size = max(1, min(ROUND, PIECE // (2 * tiles * room * room)))
        end = tiles // 2 + 1
        return pairwise([0, *range(1 + size, end, size), end])

    @staticmethod
    def shapes(count: int, dtype: np.dtype) -> tuple[tuple[int, ...], ...]:
        """The shapes of the arrays: one tile for few particles, else an even number, which cores share well."""
        room = TILE_BYTES // dtype.itemsize if count >= MANY else TILE
        tiles = 1 if count <= room else 2 * -(-count // (2 * room))
        sums = (tiles, 4, room)
        return sums, sums, (min(ROUND, tiles // 2), *sums), (config.NUMBA_NUM_THREADS, 4, room)


def aligned_zeros(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros that begin a page. Vectors that straddle two cache lines cost 15 % in float32 and 30 % in float64; and a
    load waits for an earlier store to the same place of another page, which cost half of the speed at the worst."""
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


@kept
def pack(position, mass, units, tiles):
    """Put the bodies into their tiles, and set all sums to zero. (On one core: 1 % of an evaluation at N = 20480.)"""
    body, own, theirs, _ = tiles
    own[:] = 0
    theirs[:] = 0
    count, dimensions = position.shape
    size = -(-count // len(body))
    for n in range(count):
        b, i = n // size, n % size
        for k in range(dimensions):
            body[b, k, i] = position[n, k] * units.position
        body[b, 3, i] = mass[n] * units.mass


@kept
def unpack(tiles, units, potential, acceleration, phi):
    """Add up the sums, and give the bodies what they feel: ``phi`` if ``potential``, else ``acceleration``."""
    _, own, theirs, _ = tiles
    for slot in range(len(theirs)):
        for b in range(len(own)):
            for k in range(4):
                for i in range(own.shape[2]):  # (reshape() would import 30 ms of Numba for every run)
                    own[b, k, i] += theirs[slot, b, k, i]
    count, dimensions = acceleration.shape
    size = -(-count // len(own))
    for n in range(count):
        b, i = n // size, n % size
        if potential:
            phi[n] = own[b, 3, i] * units.potential
        else:
            for k in range(dimensions):
                acceleration[n, k] = own[b, k, i] * units.acceleration
