"""Each pair once, on all cores: the kernel of the ``cpu`` engine.

Bodies lie in tiles of some hundred. Two tiles *meet*: the force of each pair is computed once and added to both sides.
Tiles meet like the players of a tournament who sit in a circle: first with themselves, then with their next neighbour,
then with the one after, until half way round every two have met. At distance k, tile b writes what its own bodies feel
to ``own[b]`` and what the others feel to ``theirs[k, b + k]``. No two tiles write to the same place, so all cores work at
once; and which thread holds a meeting makes no difference, so the bits are the same for any number of threads.
"""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from numba import get_thread_id, njit, prange, types
from numba.extending import overload

from nbody import law
from nbody.forces.direct import cpu_roots, cpu_tiles
from nbody.forces.direct.cpu_cache import kept
from nbody.forces.direct.cpu_roots import FAST, compile_for_vectors, roots
from nbody.forces.direct.cpu_tiles import STRIDE
from nbody.law import pair_law

LAW_FILES = [str(path) for path in sorted(Path(str(law.__file__)).parent.glob("*.py"))]
SOURCES = b"".join(
    Path(file).read_bytes() for file in (*LAW_FILES, str(cpu_roots.__file__), str(cpu_tiles.__file__), __file__)
)
"""The source code of the kernels; read at import, since the files may change before the first kernel is compiled."""

REAL = {types.float32: np.float32, types.float64: np.float64}


@cache
def gravitate_for(softening: str, dimensions: int, potential: bool) -> Callable:
    """The compiled function ``gravitate(count, first, last, length2, tiles)``, for ``count`` bodies in their tiles: all
    meetings at the distances ``first`` to ``last`` (not included), no more than there is room for sums of; at distance 0
    the tiles meet themselves. In order, these are a force evaluation, however it is divided.

    It adds up the accelerations, or if ``potential`` the potential instead, in the kernel's units. (The compiler orders
    a loop's sums as suits all of them: a kernel for both would round the accelerations otherwise, and recording a frame
    would change the run.)

    Compiling takes 3 s, so it is kept on disk. Numba tells kernels on disk apart by the constants they close over; so
    this one closes over one string, which names the law and what it is made of, and :func:`meet` is compiled from that.
    """
    made_of = SOURCES + str(cpu_roots.bare_estimates()).encode()
    variant = f"{softening} {dimensions} {potential} {hashlib.sha256(made_of).hexdigest()}"

    def gravitate(count, first, last, length2, tiles):
        body, own, theirs, given = tiles
        players, slots = len(body), len(theirs)
        size = -(-count // players)  # bodies in a tile; the last ones may have fewer
        strides = -(-size // STRIDE)
        if players == 1:  # not worth waking the other threads
            meet(variant, True, count, strides, body[0], body[0], own[0], own[0], given[0], length2)
            return
        for b in prange(players):  # the threads wait for each other when it is done
            rows, mine = min(size, max(0, count - b * size)), given[get_thread_id()]
            if first == 0:
                meet(variant, True, rows, strides, body[b], body[b], own[b], own[b], mine, length2)
            for distance in range(max(first, 1), last):
                if _is_host(b, distance, players):
                    c, slot = (b + distance) % players, (distance - 1) % slots
                    meet(variant, False, rows, strides, body[b], body[c], own[b], theirs[slot, c], mine, length2)

    return kept(gravitate, parallel=True, fastmath=FAST)


@njit(error_model="numpy")
def _is_host(b, distance, players):
    """True if tile b holds the meeting with the tile at this distance. Half way round the circle, each of two is at that
    distance from the other: there every other tile is host, so that all cores have as much to do."""
    if 2 * distance == players:
        return (b < distance) == (b % distance % 2 == 0)
    return 2 * distance < players


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
    """What a kernel's accelerations must still be multiplied by, see :class:`~nbody.forces.direct.cpu_roots.Roots`."""
    return roots(real).factor
