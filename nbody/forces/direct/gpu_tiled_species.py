"""Tiles in shared memory that also hold the ε² of each body: the kernel of ``gpu-tiled`` for softening per species.

It differs from the kernel in :mod:`nbody.forces.direct.gpu_tiled` in one load and one maximum per pair: the ε of a pair is
the larger one of its bodies (Springel, Yoshida & White 2001). They cost time, so a single length has its own kernel.
"""

from typing import Any

from nbody import gpu
from nbody.forces.direct.gpu_engine import Shape
from nbody.gpu import cuda
from nbody.unroll import unrolled


def build_for_species(shape: Shape, tile_size: int, unroll: int) -> Any:
    """The kernel ``accelerate(body, acceleration, start, G, softening2)`` with tiles of ``tile_size`` bodies and ``unroll``
    bodies per iteration; softening2 is (N,), the other arguments are those of ``gpu-tiled``."""
    law, real, flat, potential = shape.law, shape.real, shape.flat, shape.potential

    @gpu.device_function
    def interact(s, begin, tile, tile_softening2, first, n, i, position_i, acceleration_i, softening2_i):
        """Add the force of body ``begin + s`` of the tile on the thread's body i to ``acceleration_i``."""
        s += begin
        dx, dy, dz = tile[s, 0] - position_i[0], tile[s, 1] - position_i[1], tile[s, 2] - position_i[2]
        m = tile[s, 3]
        f, u = law(dx, dy, dz, max(softening2_i, tile_softening2[s]))
        f *= m
        acceleration_i[0] += f * dx
        acceleration_i[1] += f * dy
        if not flat:
            acceleration_i[2] += f * dz
        if potential and first + s != i and first + s < n:
            acceleration_i[3] -= u * m

    interact_unrolled = unrolled(interact, unroll)

    @gpu.kernel(**gpu.FAST)
    def accelerate_species(body, acceleration, start, G, softening2):
        tile = cuda.shared.array((tile_size, 4), real, alignment=16)  # a body is one 128-bit load
        tile_softening2 = cuda.shared.array(tile_size, real)
        position_i, acceleration_i = cuda.local.array(3, real), cuda.local.array(4, real)  # these become registers
        total = cuda.local.array(4, real)
        n = body.shape[0]
        t = cuda.threadIdx.x
        i = start + cuda.grid(1)
        softening2_i = softening2[min(i, n - 1)]
        for k in range(3):
            position_i[k] = body[min(i, n - 1), k]  # threads past the end help to load tiles and write nothing
        for k in range(4):
            total[k] = real(0)
        for first in range(0, n, tile_size):
            j = min(first + t, n - 1)
            for k in range(3):
                tile[t, k] = body[j, k]
            tile[t, 3] = body[j, 3] if first + t < n else real(0)
            tile_softening2[t] = softening2[j]
            for k in range(4):
                acceleration_i[k] = real(0)
            cuda.syncthreads()
            for begin in range(0, tile_size, unroll):
                interact_unrolled(
                    begin, tile, tile_softening2, first, n, i, position_i, acceleration_i, softening2_i
                )  # fmt: skip
            for k in range(4):
                total[k] += acceleration_i[k]
            cuda.syncthreads()
        if i < n:
            for k in range(3):
                acceleration[i, k] = G * total[k]
            if potential:
                acceleration[i, 3] = G * total[3]

    return accelerate_species
