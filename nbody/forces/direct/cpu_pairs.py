"""Each pair once, on all cores: the kernel of the ``cpu`` engine.

Bodies lie in tiles of a few hundred. For a pair of tiles the force of each pair of bodies is computed once and added to
both sides. The pairs of tiles are ordered like the games of a round-robin tournament: the tiles form a circle, and each is
paired first with itself, then with its next neighbour, then with the one after that; half way round every two tiles have
been paired. Tile b adds the forces on its own bodies to ``sums_i[b]`` and those on the bodies of tile c to
``sums_j[c, segment]``: a segment is some contiguous tiles b, each thread computes whole segments, and the sums of all
segments are added in one binary tree (:mod:`nbody.parallel.segments`). So no two threads write to the same place, and the
bits are the same for any number of threads and of ranks.
"""

from collections.abc import Callable
from functools import cache

from numba import get_thread_id, prange

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.forces.direct.cpu_roots import FAST, REAL, compile_for_vectors, roots
from nbody.forces.direct.cpu_tiles import STRIDE, clear_segment
from nbody.law import pair_law


@cache
def gravitate_for(softening: str, dimensions: int, potential: bool, precision: str) -> Callable:
    """The compiled function ``gravitate(count, first, last, segments, length2, tiles)`` for ``count`` bodies in their tiles:
    all pairs of the segments' tiles with those at the distances ``first`` to ``last`` (not included); at distance 0 each
    tile is paired with itself. All distances in order are one force evaluation, however they are divided into calls.

    It sums the accelerations, or if ``potential`` the potential instead, in the kernel's units. (The compiler chooses one
    order for all sums of a loop: a kernel for both would round the accelerations differently, and recording a frame would
    change the run.)
    """
    made_for = softening, dimensions, potential, REAL[precision]
    within, between = _interaction(*made_for, itself=True), _interaction(*made_for, itself=False)

    @compute.kernel("cpu", parallel=True, fastmath=FAST)
    def gravitate(count, first, last, segments, length2, tiles):
        bodies, sums_i, sums_j, partial = tiles
        number = len(bodies)
        size = -(-count // number)  # bodies per tile; the last tiles may have fewer
        strides = -(-size // STRIDE)
        if number == 1:  # not worth waking the other threads
            clear_segment(0, segments, sums_i, sums_j)
            within(count, strides, bodies[0], bodies[0], sums_i[0], sums_i[0], partial[0], length2)
            return
        for segment in prange(segments.first, segments.last):  # the threads wait for each other at the end
            sums, slot = partial[get_thread_id()], segment - segments.first
            if first == 0:
                clear_segment(segment, segments, sums_i, sums_j)
            for distance in range(first, last):
                for b in range(segment * number // segments.number, (segment + 1) * number // segments.number):
                    rows = min(size, max(0, count - b * size))
                    if distance == 0:
                        within(rows, strides, bodies[b], bodies[b], sums_i[b], sums_i[b], sums, length2)
                    elif _computes_pair(b, distance, number):
                        c = (b + distance) % number
                        between(rows, strides, bodies[b], bodies[c], sums_i[b], sums_j[c, slot], sums, length2)

    return gravitate


@inner
def _computes_pair(b, distance, number):
    """True if tile b computes its pair with the tile at this distance. Half way round the circle, each of two tiles is at
    that distance from the other: there every other tile computes the pair, so that all cores have the same work."""
    if 2 * distance == number:
        return (b < distance) == (b % distance % 2 == 0)
    return 2 * distance < number


def _interaction(softening: str, dimensions: int, potential: bool, real: type, itself: bool) -> Callable:
    """The compiled function ``interact(rows, strides, tile_i, tile_j, sums_i, sums_j, partial, length2)``.

    The pairs of ``rows`` bodies i of one tile and the bodies j of another, ``strides`` times STRIDE, or of the same tile if
    ``itself``: adds Σ_j m_j f (dx, dy, dz), or Σ_j -m_j u, to ``sums_i`` for each i; and for two tiles Σ_i -m_i f (dx, dy,
    dz), or Σ_i -m_i u, to ``sums_j`` for each j. The f of a kernel lacks :func:`missing_factor`.
    """
    flat = dimensions == 2
    rsqrt, inverse_cube, _ = roots(real)
    law = pair_law(softening, dimensions, rsqrt, inner(fastmath=FAST, forceinline=True), inverse_cube)
    zero = real(0)

    @inner(fastmath=FAST)
    def interact(rows, strides, tile_i, tile_j, sums_i, sums_j, partial, length2):
        compile_for_vectors()
        # A separate sum for each pair of tiles: added one by one to the sums over all tiles, float32 would lose 3 bits.
        columns = STRIDE * strides
        for k in range(4):
            for j in range(columns):
                partial[k, j] = zero
        for i in range(rows):
            x, y, z, m = tile_i[0, i], tile_i[1, i], tile_i[2, i], tile_i[3, i]
            ax, ay, az, phi = zero, zero, zero, zero
            for j in range(columns):
                dx, dy = tile_j[0, j] - x, tile_j[1, j] - y
                dz = zero if flat else tile_j[2, j] - z
                f, u = law(dx, dy, dz, length2)
                if potential:
                    phi -= zero if itself and i == j else u * tile_j[3, j]
                    if not itself:
                        partial[3, j] -= u * m
                else:
                    weight = f * tile_j[3, j]
                    ax += weight * dx
                    ay += weight * dy
                    if not flat:
                        az += weight * dz
                    if not itself:
                        weight = f * m
                        partial[0, j] -= weight * dx
                        partial[1, j] -= weight * dy
                        if not flat:
                            partial[2, j] -= weight * dz
            sums_i[0, i] += ax
            sums_i[1, i] += ay
            sums_i[2, i] += az
            sums_i[3, i] += phi
        if not itself:
            for k in range(4):
                for j in range(columns):
                    sums_j[k, j] += partial[k, j]

    return interact


def missing_factor(real: type) -> float:
    """The factor that a kernel's accelerations lack, see :class:`~nbody.forces.direct.cpu_roots.Roots`."""
    return roots(real).factor
