"""The lecture's second kernel: tiles of bodies in shared memory.

A block of threads copies a tile of bodies from global to shared memory, one body a thread, waits, and then every thread
sums over the whole tile; N/TILE tiles later each has met all N bodies. Global reads fall by the factor TILE. The last
tile may be ragged: copies of the last body, without mass, fill it, and a body without mass pulls nothing.

What a tile does to a body is added up apart and then to the body's total: rounding errors grow with √TILE + √(N/TILE),
not with √N, for one addition a tile and component. One H200, float32, 3-D, Plummer's softening, N = 262144: median error
3e-7, and 6e-6 without; 2.00e12 interactions/s (``gpu-global``: 0.615e12).

Nyland, Harris & Prins 2007, "Fast N-Body Simulation with CUDA", GPU Gems 3, chapter 31.
"""

from typing import Any

from nbody import gpu
from nbody.forces.direct.gpu_engine import Shape
from nbody.forces.direct.gpu_rows import Block, RowEngine
from nbody.gpu import cuda
from nbody.unroll import unrolled

TILE = 256
LARGE_TILE = 512
LARGE = 65536
"""Bodies a tile and threads a block: TILE, and LARGE_TILE from so many particles on. Large tiles need fewer barriers;
small ones are more blocks, and a small N needs them to occupy the card. One H200, interactions/s with tiles of 128, 256
and 512: 0.83e12, 0.87e12 and 0.60e12 at N = 20480, 1.66e12, 1.78e12 and 1.89e12 at 65536."""

TURN = 32
"""Bodies a turn of the inner loop, written out: counting costs seven instructions a turn, and half of a multiprocessor's
slots if every body is a turn. Issue slots of an interaction, counted in the machine code for sm_90 (float32, 3-D): 26.8
in a plain loop, 14.9 with 8 bodies a turn, 14.2 with 32; the law itself takes 13, and the load of a body 1."""


def build(shape: Shape, tile_size: int = TILE) -> Any:
    """The acceleration kernel with shared-memory tiles, for a law, a precision and 2 or 3 dimensions."""
    law, real, flat, potential = shape.law, shape.real, shape.flat, shape.potential

    @gpu.device_function
    def meet(s, begin, tile, first, n, i, at, felt, length2):
        """Body ``begin + s`` of the tile pulls on the thread's body i: ``at`` is where it is, ``felt`` its sums."""
        s += begin
        dx, dy, dz = tile[s, 0] - at[0], tile[s, 1] - at[1], tile[s, 2] - at[2]
        m = tile[s, 3]
        f, u = law(dx, dy, dz, length2)
        f *= m
        felt[0] += f * dx
        felt[1] += f * dy
        if not flat:
            felt[2] += f * dz
        if potential and first + s != i and first + s < n:
            felt[3] -= u * m

    turn = unrolled(meet, TURN)

    @gpu.kernel(**gpu.FAST)
    def accelerate_tiled(body, acceleration, start, G, length2):
        tile = cuda.shared.array((tile_size, 4), real, alignment=16)  # a body is one 128-bit load
        at, felt = cuda.local.array(3, real), cuda.local.array(4, real)  # these become registers
        total = cuda.local.array(4, real)
        n = body.shape[0]
        t = cuda.threadIdx.x
        i = start + cuda.grid(1)
        for k in range(3):
            at[k] = body[min(i, n - 1), k]  # threads past the end help to load tiles and write nothing
        for k in range(4):
            total[k] = real(0)
        for first in range(0, n, tile_size):
            j = min(first + t, n - 1)
            for k in range(3):
                tile[t, k] = body[j, k]
            tile[t, 3] = body[j, 3] if first + t < n else real(0)
            for k in range(4):
                felt[k] = real(0)
            cuda.syncthreads()
            for begin in range(0, tile_size, TURN):
                turn(begin, tile, first, n, i, at, felt, length2)
            for k in range(4):
                total[k] += felt[k]
            cuda.syncthreads()
        if i < n:
            for k in range(3):
                acceleration[i, k] = G * total[k]
            if potential:
                acceleration[i, 3] = G * total[3]

    return accelerate_tiled


class TiledEngine(RowEngine):
    """A thread a particle, bodies in shared-memory tiles."""

    name = "gpu-tiled"
    build = staticmethod(build)

    def tuning(self, count: int) -> tuple[int]:
        """See :meth:`GpuEngine.tuning`: the size of a tile."""
        return (LARGE_TILE if count >= LARGE else TILE,)

    def block(self, count: int) -> Block:
        """See :meth:`RowEngine.block`."""
        (tile_size,) = self.tuning(count)
        return Block(tile_size, tile_size)
