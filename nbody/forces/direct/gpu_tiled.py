"""The lecture's second kernel: tiles of bodies in shared memory.

A block of threads copies a tile of bodies from global to shared memory, one body per thread, and waits at a barrier; then
every thread sums over the whole tile. This repeats for all N/TILE tiles. Global reads fall by the factor TILE. The last
tile may be incomplete: it is filled with copies of the last body that have no mass and so exert no force.

The forces of a tile are summed separately, and this sum is added to the total: rounding errors grow with
√TILE + √(N/TILE) instead of √N, for one more addition per tile and component. One H200, float32, 3-D, Plummer's softening,
N = 262144: median error 3e-7 (6e-6 with a single sum); 2.00e12 interactions/s (``gpu-global``: 0.615e12).

Nyland, Harris & Prins 2007, "Fast N-Body Simulation with CUDA", GPU Gems 3, chapter 31.
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import cuda
from nbody.compute.in_kernels.unroll import unrolled
from nbody.forces.direct.gpu_lengths import lengths
from nbody.forces.direct.gpu_rows import RowEngine, ThreadBlock
from nbody.forces.gpu_engine import Shape

TILE = 32 if compute.SIMULATED else 256
LARGE_TILE = 512
LARGE = 65536
"""Bodies per tile and threads per block: TILE, and LARGE_TILE for LARGE particles or more. Large tiles need fewer barriers;
small tiles give more blocks, which a small N needs to occupy the card. One H200, interactions/s with tiles of 128, 256
and 512: 0.83e12, 0.87e12 and 0.60e12 at N = 20480, 1.66e12, 1.78e12 and 1.89e12 at 65536."""

UNROLL = 32
"""Bodies per iteration of the inner loop, which is unrolled: the loop itself costs seven instructions per iteration. Issue
slots per interaction, counted in the machine code for sm_90 (float32, 3-D): 26.8 in a plain loop, 14.9 with 8 bodies per
iteration, 14.2 with 32; the law takes 13 of them, and the load of a body 1."""


@cache
def build(shape: Shape, tile_size: int = TILE) -> Any:
    """The acceleration kernel with shared-memory tiles, for a law, a precision and 2 or 3 dimensions. If each body has a
    softening length, ``length2`` is an array, (N,)."""
    law, real, flat, potential = shape.law, shape.real, shape.flat, shape.potential
    potential_factor = shape.potential_factor
    of_body, put, of_pair, _ = lengths(shape.per_species)
    size2 = tile_size if shape.per_species else 1

    @compute.device_function
    def interact(s, begin, tile, tile2, first, i, position_i, acceleration_i, length2_i):
        """Add the force of body ``begin + s`` of the tile on the thread's body i to ``acceleration_i``."""
        s += begin
        dx, dy, dz = tile[s, 0] - position_i[0], tile[s, 1] - position_i[1], tile[s, 2] - position_i[2]
        m = tile[s, 3]
        f, u = law(dx, dy, dz, of_pair(length2_i, tile2, s))
        f *= m
        acceleration_i[0] += f * dx
        acceleration_i[1] += f * dy
        if not flat:
            acceleration_i[2] += f * dz
        if potential and first + s != i:
            acceleration_i[3] -= potential_factor(u, m) * m  # copies of the last body have no mass

    interact_unrolled = unrolled(interact, UNROLL)

    @compute.kernel("gpu", **compute.FAST)
    def accelerate_tiled(body, acceleration, start, acting, G, length2):
        tile = cuda.shared.array((tile_size, 4), real, alignment=16)  # a body is one 128-bit load
        tile2 = cuda.shared.array(size2, real)
        position_i, acceleration_i = cuda.local.array(3, real), cuda.local.array(4, real)  # these become registers
        total = cuda.local.array(4, real)
        n = body.shape[0]
        t = cuda.threadIdx.x
        i = start + cuda.grid(1)
        length2_i = of_body(length2, min(i, n - 1))
        for k in range(3):
            position_i[k] = body[min(i, n - 1), k]  # threads past the end help to load tiles and write nothing
        for k in range(4):
            total[k] = real(0)
        for first in range(0, acting, tile_size):
            j = min(first + t, n - 1)
            for k in range(3):
                tile[t, k] = body[j, k]
            tile[t, 3] = body[j, 3] if first + t < acting else real(0)
            put(tile2, t, of_body(length2, j))
            for k in range(4):
                acceleration_i[k] = real(0)
            cuda.syncthreads()
            for begin in range(0, tile_size, UNROLL):
                interact_unrolled(begin, tile, tile2, first, i, position_i, acceleration_i, length2_i)
            for k in range(4):
                total[k] += acceleration_i[k]
            cuda.syncthreads()
        if i < n:
            for k in range(3):
                acceleration[i, k] = G * total[k]
            if potential:
                acceleration[i, 3] = G * total[3]

    return accelerate_tiled


class TiledEngine(RowEngine):
    """One thread per particle, bodies in shared-memory tiles; with softening per species if that is requested."""

    can = RowEngine.can._replace(species=True)
    _name = "gpu-tiled"
    _build = staticmethod(build)

    def _tuning(self, count: int) -> tuple[int]:
        return (LARGE_TILE if count >= LARGE else TILE,)

    def _block(self, count: int) -> ThreadBlock:
        (tile_size,) = self._tuning(count)
        return ThreadBlock(tile_size, tile_size)
