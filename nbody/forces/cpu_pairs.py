"""Each pair once, on all cores: the kernel of the ``cpu`` engine.

Bodies lie in tiles of some hundred, component after component, so that the compiler sees contiguous numbers and works
on 16 of them at a time. Two tiles *meet*: the force of each pair is computed once and added to both sides. Tiles meet
like the players of a tournament who sit in a circle: first with themselves, then with their next neighbour, then with
the one after, until half way round every two have met. Of each distance k, tile b writes what its own bodies feel to
``own[b]`` and what the others feel to ``theirs[k, b + k]``. No two tiles write to the same place, so all cores work at
once; and which thread holds a meeting makes no difference, so the bits are the same for any number of threads.
"""

import hashlib
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import config, get_thread_id, njit, prange, types
from numba.extending import overload

from nbody import pairlaw
from nbody.forces import cpu_roots
from nbody.forces.cpu_roots import FAST, compile_for_vectors, roots
from nbody.pairlaw import pair_law

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
"""Distances that tiles go through before all threads wait for each other. Each has sums of its own, four numbers a body;
fewer waits would gain nothing where the cores are free, and where other programs take them now and then, as they do on a
desktop, waiting at every distance was three times slower."""

PAGE = 4096
"""Bytes; tiles are whole pages."""

REAL = {types.float32: np.float32, types.float64: np.float64}


class Tiles(NamedTuple):
    """The particles and their sums during a force evaluation: arrays of shape (tiles, 4, room).

    ``body`` holds x, y, z, m in the kernel's units, ``own`` the sums ax, ay, az, φ, and ``theirs``, (distances, tiles, 4,
    room), those of the other side. ``given``, (threads, 4, room), is what a thread's meeting has for the other side.
    """

    body: np.ndarray
    own: np.ndarray
    theirs: np.ndarray
    given: np.ndarray

    @classmethod
    def allocate(cls, count: int, dtype: np.dtype) -> "Tiles":
        """Room for ``count`` particles, and no bodies yet."""
        return cls(*(aligned_zeros(shape, dtype) for shape in cls.shapes(count, dtype)))

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


@cache
def gravitate_for(softening: str, dimensions: int, potential: bool) -> Callable:
    """The compiled function ``gravitate(position, mass, length2, units, tiles, acceleration, phi)``.

    It fills ``acceleration`` (N, D), or if ``potential`` ``phi`` (N,) instead; the arrays, and ``length2`` in the
    kernel's units, are all float32 or all float64. (The compiler orders a loop's sums as suits all of them: a kernel
    for both would round the accelerations otherwise, and recording a frame would change the run.)

    Compiling takes 3 s, so it is kept on disk. Numba tells kernels on disk apart by the constants they close over; so
    this one closes over one string, which names the law and what it is made of, and :func:`meet` is compiled from that.
    """
    made_of = b"".join(Path(str(module.__file__)).read_bytes() for module in (pairlaw, cpu_roots))
    made_of += str(cpu_roots.bare_estimates()).encode()
    variant = f"{softening} {dimensions} {potential} {hashlib.sha256(made_of).hexdigest()}"

    def gravitate(position, mass, length2, units, tiles, acceleration, phi):
        count = len(mass)
        body, own, theirs, given = tiles
        players = len(body)
        size = -(-count // players)  # bodies in a tile; the last ones may have fewer
        strides = -(-size // STRIDE)
        if players == 1:  # not worth waking the other threads
            _pack(0, size, position, mass, units, tiles)
            meet(variant, True, count, strides, body[0], body[0], own[0], own[0], given[0], length2)
            _unpack(0, size, units, tiles, acceleration, phi, potential)
            return
        rounds = -(-(players // 2) // len(theirs))
        for phase in range(rounds + 2):  # all threads wait for each other after a phase
            for b in prange(players):
                if phase == 0:
                    _pack(b, size, position, mass, units, tiles)
                elif phase > rounds:
                    _unpack(b, size, units, tiles, acceleration, phi, potential)
                else:
                    rows = min(size, max(0, count - b * size))
                    mine = given[get_thread_id()]
                    if phase == 1:
                        meet(variant, True, rows, strides, body[b], body[b], own[b], own[b], mine, length2)
                    for slot in range(len(theirs)):
                        distance = (phase - 1) * len(theirs) + slot + 1
                        c = (b + distance) % players
                        if _is_host(b, distance, players):
                            meet(variant, False, rows, strides, body[b], body[c], own[b], theirs[slot, c], mine, length2)

    options: dict[str, Any] = {"parallel": True, "nogil": True, "fastmath": FAST, "error_model": "numpy"}
    try:
        return njit(gravitate, cache=True, **options)
    except RuntimeError:  # there is no folder to keep it in: the program's is read-only, and so is the user's
        return njit(gravitate, **options)


@njit
def _is_host(b, distance, players):
    """True if tile b, and not the one at ``distance`` from it, holds the meeting of the two. Half way round the circle
    each is at that distance from the other: every other tile is host there, so that all have as much to do."""
    if 2 * distance == players:
        return (b < distance) == (b % distance % 2 == 0)
    return 2 * distance < players


@njit
def _pack(b, size, position, mass, units, tiles):
    """Put the bodies of tile b into it, and set its sums to zero."""
    body, own, theirs, _ = tiles
    first = b * size
    for i in range(min(size, len(mass) - first)):
        for k in range(position.shape[1]):
            body[b, k, i] = position[first + i, k] * units.position
        body[b, 3, i] = mass[first + i] * units.mass
    own[b] = 0
    theirs[:, b] = 0


@njit(fastmath=FAST)
def _unpack(b, size, units, tiles, acceleration, phi, potential):
    """Add up the sums of tile b, and give its bodies what they feel."""
    _, own, theirs, _ = tiles
    first = b * size
    for slot in range(len(theirs)):
        own[b] += theirs[slot, b]
    for i in range(min(size, len(phi) - first)):
        if potential:
            phi[first + i] = own[b, 3, i] * units.potential
        else:
            for k in range(acceleration.shape[1]):
                acceleration[first + i, k] = own[b, k, i] * units.acceleration


def meet(variant, itself, rows, strides, body, other, own, theirs, given, length2):
    """What :func:`_meeting` compiles for a variant, callable in a kernel that has no more than its name."""
    raise NotImplementedError("for kernels only")


@overload(meet, prefer_literal=True)
def _meet_in_a_kernel(variant, itself, rows, strides, body, other, own, theirs, given, length2):
    compiled = _meeting(variant.literal_value, itself.literal_value, REAL[body.dtype])

    def meet(variant, itself, rows, strides, body, other, own, theirs, given, length2):
        compiled(rows, strides, body, other, own, theirs, given, length2)

    return meet


@cache
def _meeting(variant: str, itself: bool, real: type) -> Callable:
    """The compiled function ``meet(rows, strides, body, other, own, theirs, given, length2)``.

    ``rows`` bodies i of one tile meet the ``strides`` of another's bodies j, or of their own if ``itself``: adds
    Σ_j m_j f (dx, dy, dz), or Σ_j -m_j u, to ``own`` for every i; and between two tiles Σ_i -m_i f (dx, dy, dz),
    or Σ_i -m_i u, to ``theirs`` for every j. The f of a kernel lacks :func:`missing_factor`.
    """
    softening, dimensions, wanted, _ = variant.split()
    flat, potential = dimensions == "2", wanted == "True"
    rsqrt, inverse_cube, _ = roots(real)
    law = pair_law(softening, int(dimensions), rsqrt, njit(fastmath=FAST), inverse_cube)
    zero = real(0)

    @njit(fastmath=FAST, error_model="numpy")
    def meet(rows, strides, body, other, own, theirs, given, length2):
        compile_for_vectors()
        # A sum of its own for each meeting: added one by one to the sums over all tiles, float32 would lose 3 bits.
        columns = STRIDE * strides
        for k in range(4):
            for j in range(columns):
                given[k, j] = zero
        for i in range(rows):
            x, y, z, m = body[0, i], body[1, i], body[2, i], body[3, i]
            ax, ay, az, phi = zero, zero, zero, zero
            for j in range(columns):
                dx, dy = other[0, j] - x, other[1, j] - y
                dz = zero if flat else other[2, j] - z
                f, u = law(dx, dy, dz, length2)
                if potential:
                    phi -= zero if itself and i == j else u * other[3, j]
                    if not itself:
                        given[3, j] -= u * m
                else:
                    pull = f * other[3, j]
                    ax += pull * dx
                    ay += pull * dy
                    if not flat:
                        az += pull * dz
                    if not itself:
                        pull = f * m
                        given[0, j] -= pull * dx
                        given[1, j] -= pull * dy
                        if not flat:
                            given[2, j] -= pull * dz
            own[0, i] += ax
            own[1, i] += ay
            own[2, i] += az
            own[3, i] += phi
        if not itself:
            for k in range(4):
                for j in range(columns):
                    theirs[k, j] += given[k, j]

    return meet


def missing_factor(real: type) -> float:
    """What a kernel's accelerations must still be multiplied by, see :class:`~nbody.forces.cpu_roots.Roots`."""
    return roots(real).factor
