"""The kernels of :mod:`.hybrid` on a GPU, in float64: one thread per planet, and one per planet and tile in the search.

During steps the rows of a state's ``body`` and ``velocity`` are the map's coordinates Q and V, and the star is a body
without mass in the origin, so that any engine's forces are those of the planets on each other.

The search for pairs that may be near each other is a pass over all pairs in float32, each pair once, with a margin for
rounding. It takes 16 instructions per pair. What it finds is looked at again in float64. Lists of pairs are in any order.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import SIMULATED, cuda
from nbody.compute.in_kernels.reduction import add_row, block_reduction
from nbody.integrators.solvers.near import is_near, star_function
from nbody.integrators.solvers.systems.gpu_lanes import kepler_on_gpu

THREADS = 8 if SIMULATED else 128
SUMS = 2 if SIMULATED else 64
"""Threads per block, and blocks that sum momenta: few, since the blocks of the next launch add their sums."""

ROUNDING = 1e-6
"""What float32 may add to a distance, in units of that from the star."""


class HybridKernels(NamedTuple):
    """The kernels. (N, 4) each: ``body`` with the masses, ``velocity``, ``acceleration``.

    Attributes:
        load, store: from the columns of the map, and to them; then the rows are the bodies'.
        keep: copy these arrays to ``kept``, (3, N, 4): ``next_step`` where ``body`` has masses, and the centre of mass where
            it has the star; then move that.
        restore: undo this and the step.
        kick: V += h a; and the sums of m Q and m V, in ``sums``, (SUMS, 6).
        drift: half a jump, after which Q and V are copied to ``begin``, and Kepler's motion.
        jump: half a jump.
        prepare, search: list the pairs i > j that may be near each other in ``close``, (K + 1, 2): how many, and then pairs
            as far as there is room.
        look: list those that are in ``near``, (K + 1, 2): how many, the number of close pairs, and pairs; (i, i) is a body
            near the star, and (i, 0) one whose orbit touches the star; (i, -j) are probably near at the end of the next
            step.
    """

    load: Any
    store: Any
    keep: Any
    restore: Any
    kick: Any
    drift: Any
    jump: Any
    prepare: Any
    search: Any
    look: Any


@cache
def kernels() -> HybridKernels:
    """All of them."""
    step = kepler_on_gpu().step
    near_star, near_each_other = star_function(compute.exact_function), compute.exact_function(is_near)
    reduce, real = block_reduction(THREADS, add_row), np.float32
    factor = real(2.0 * (1.0 + ROUNDING))

    @compute.exact_function
    def total_of(sums, shared):
        """The sums over all blocks, in their order: (6,) of shared memory."""
        t = cuda.threadIdx.x
        if t < 6:
            total = 0.0
            for b in range(sums.shape[0]):
                total += sums[b, t]
            shared[t] = total
        cuda.syncthreads()

    @compute.kernel("gpu")
    def load(map_position, map_velocity, body, velocity):
        i = cuda.grid(1)
        if i < body.shape[0]:
            for c in range(3):
                body[i, c] = map_position[i, c] if i > 0 else 0.0
                velocity[i, c] = map_velocity[i, c] if i > 0 else 0.0
            if i == 0:
                body[i, 3] = 0.0

    @compute.kernel("gpu")
    def store(map_position, map_velocity, body, velocity, sums, star, total):
        """``star``: its mass; ``total``: that of all bodies."""
        shared = cuda.shared.array(6, np.float64)
        total_of(sums, shared)
        i = cuda.grid(1)
        if i < body.shape[0]:
            for c in range(3):
                x, v = map_position[0, c] - shared[c] / total, map_velocity[0, c]
                if i > 0:
                    map_position[i, c], map_velocity[i, c] = body[i, c], velocity[i, c]
                    body[i, c] += x
                    velocity[i, c] += v
                else:
                    body[i, c], velocity[i, c] = x, v - shared[3 + c] / star
            if i == 0:
                body[i, 3] = star

    @compute.kernel("gpu")
    def keep(body, velocity, acceleration, next_step, kept, map_position, map_velocity, h):
        i = cuda.grid(1)
        if i < body.shape[0]:
            kept[0, i, 3] = next_step[i]
            for c in range(3):
                kept[0, i, c], kept[1, i, c], kept[2, i, c] = body[i, c], velocity[i, c], acceleration[i, c]
            if i == 0:
                for c in range(3):
                    kept[0, 0, c] = map_position[0, c]
                    map_position[0, c] += h * map_velocity[0, c]

    @compute.kernel("gpu")
    def restore(body, velocity, acceleration, next_step, kept, map_position):
        i = cuda.grid(1)
        if 0 < i < body.shape[0]:
            next_step[i] = kept[0, i, 3]
            for c in range(3):
                body[i, c], velocity[i, c], acceleration[i, c] = kept[0, i, c], kept[1, i, c], kept[2, i, c]
        if i == 0:
            for c in range(3):
                map_position[0, c] = kept[0, 0, c]

    @compute.kernel("gpu")
    def kick(body, velocity, acceleration, h, sums):
        shared = cuda.shared.array((THREADS, 6), np.float64)
        t = cuda.threadIdx.x
        for k in range(6):
            shared[t, k] = 0.0
        for i in range(cuda.grid(1), body.shape[0], cuda.gridsize(1)):
            if i > 0:
                for c in range(3):
                    v = velocity[i, c] + h * acceleration[i, c]
                    velocity[i, c] = v
                    shared[t, c] += body[i, 3] * body[i, c]
                    shared[t, 3 + c] += body[i, 3] * v
        reduce(shared, t)
        if t < 6:
            sums[cuda.blockIdx.x, t] = shared[0, t]

    @compute.kernel("gpu")
    def drift(body, velocity, h, mu, star, sums, begin):
        shared = cuda.shared.array(6, np.float64)
        total_of(sums, shared)
        i, half = cuda.grid(1), 0.5 * h / star
        if 0 < i < body.shape[0]:
            x, y, z = body[i, 0] + half * shared[3], body[i, 1] + half * shared[4], body[i, 2] + half * shared[5]
            u, v, w = velocity[i, 0], velocity[i, 1], velocity[i, 2]
            begin[0, i, 0], begin[0, i, 1], begin[0, i, 2] = x, y, z
            begin[1, i, 0], begin[1, i, 1], begin[1, i, 2] = u, v, w
            x, y, z, u, v, w, _ = step(x, y, z, u, v, w, mu, h)
            body[i, 0], body[i, 1], body[i, 2] = x, y, z
            velocity[i, 0], velocity[i, 1], velocity[i, 2] = u, v, w

    @compute.kernel("gpu")
    def jump(body, h, star, sums):
        shared = cuda.shared.array(6, np.float64)
        total_of(sums, shared)
        i = cuda.grid(1)
        if 0 < i < body.shape[0]:
            for c in range(3):
                body[i, c] += 0.5 * h / star * shared[3 + c]

    @compute.exact_function
    def distance(body, i):
        """From the star."""
        x, y, z = body[i, 0], body[i, 1], body[i, 2]
        return math.sqrt(x * x + y * y + z * z)

    @compute.kernel("gpu")
    def prepare(body, velocity, acceleration, size, radius, mu, h, rows, ahead, close, near):
        """``rows``, (N, 8) float32: x y z, the distance at which others are near; vx vy vz times one and a half steps.
        ``ahead``, (2, N, 4): Q and V after a kick by ``acceleration`` and Kepler's motion for a step."""
        i = cuda.grid(1)
        if i == 0:
            close[0, 0], near[0, 0] = 0, 0
        if i < body.shape[0]:
            r = distance(body, i)
            reach = max(size[i] * r, 2.0 * radius[i])
            rows[i, 3] = real(reach + ROUNDING * r) if reach > 0.0 else real(0.0)
            rows[i, 7] = real(0.0)
            for c in range(3):
                rows[i, c], rows[i, 4 + c] = real(body[i, c]), real(1.5 * h * velocity[i, c])
                ahead[1, i, c] = velocity[i, c] + 0.5 * h * acceleration[i, c]
        if 0 < i < body.shape[0]:
            x, y, z, u, v, w, _ = step(
                body[i, 0], body[i, 1], body[i, 2], ahead[1, i, 0], ahead[1, i, 1], ahead[1, i, 2], mu, h
            )
            ahead[0, i, 0], ahead[0, i, 1], ahead[0, i, 2] = x, y, z
            ahead[1, i, 0], ahead[1, i, 1], ahead[1, i, 2] = u, v, w

    @compute.exact_function
    def note(i, j, found):
        k = cuda.atomic.add(found, (0, 0), 1) + 1
        if k < found.shape[0]:
            found[k, 0], found[k, 1] = i, j

    @compute.kernel("gpu")
    def search(rows, close):
        tile = cuda.shared.array((THREADS, 8), real, alignment=16)  # a body is two 128-bit loads
        t, first, count = cuda.threadIdx.x, cuda.blockIdx.y * THREADS, rows.shape[0]
        i = cuda.blockIdx.x * THREADS + t
        if cuda.blockIdx.y > cuda.blockIdx.x:
            return
        for k in range(8):
            tile[t, k] = rows[min(first + t, count - 1), k]
        cuda.syncthreads()
        if i >= count or i == 0:
            return
        x, y, z, reach = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3]
        u, v, w = rows[i, 4], rows[i, 5], rows[i, 6]
        for s in range(max(0, 1 - first), min(THREADS, i - first)):
            dx, dy, dz = tile[s, 0] - x, tile[s, 1] - y, tile[s, 2] - z
            du, dv, dw = tile[s, 4] - u, tile[s, 5] - v, tile[s, 6] - w
            limit, way2 = max(reach, tile[s, 3]), du * du + dv * dv + dw * dw
            if limit > real(0) and dx * dx + dy * dy + dz * dz < factor * (limit * limit + way2):
                note(i, first + s, close)

    @compute.exact_function
    def towards_star(i, body, velocity, radius, mu, h):
        x, y, z, u, v, w = body[i, 0], body[i, 1], body[i, 2], velocity[i, 0], velocity[i, 1], velocity[i, 2]
        return near_star(x, y, z, u, v, w, mu, h, radius[0] + radius[i])

    @compute.exact_function
    def together(i, j, body, velocity, size, radius, mu, h):
        """True if two planets that do not fall onto the star are near each other."""
        limit = max(size[i] * distance(body, i), size[j] * distance(body, j), radius[i] + radius[j])
        return near_each_other(
            body[j, 0] - body[i, 0], body[j, 1] - body[i, 1], body[j, 2] - body[i, 2],
            velocity[j, 0] - velocity[i, 0], velocity[j, 1] - velocity[i, 1], velocity[j, 2] - velocity[i, 2],
            0.5 * h, limit,
        ) and not (
            towards_star(i, body, velocity, radius, mu, h)[1] or towards_star(j, body, velocity, radius, mu, h)[1]
        )  # fmt: skip

    @compute.kernel("gpu")
    def look(close, body, velocity, ahead, size, radius, mu, h, near):
        for k in range(cuda.grid(1), min(close[0, 0], close.shape[0] - 1), cuda.gridsize(1)):
            i, j = close[k + 1, 0], close[k + 1, 1]
            if together(i, j, body, velocity, size, radius, mu, h):
                note(i, j, near)
            elif together(i, j, ahead[0], ahead[1], size, radius, mu, h):
                note(i, -j, near)
        i = cuda.grid(1)
        if i == 0:
            near[0, 1] = close[0, 0]
        if 0 < i < body.shape[0]:
            hurries, falls = towards_star(i, body, velocity, radius, mu, h)
            if hurries or falls:
                note(i, i if hurries else 0, near)
            elif towards_star(i, ahead[0], ahead[1], radius, mu, h)[0]:
                note(i, -i, near)

    return HybridKernels(load, store, keep, restore, kick, drift, jump, prepare, search, look)
