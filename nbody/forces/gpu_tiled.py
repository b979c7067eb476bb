"""The lecture's second kernel: tiles of bodies in shared memory.

A block of threads copies a tile of bodies from global to shared memory, one body a thread, waits, and then every thread
sums over the whole tile; N/TILE tiles later each has met all N bodies. Global reads fall by the factor TILE. The last
tile may be ragged: copies of the last body, without mass, fill it, and a body without mass pulls nothing.

Nyland, Harris & Prins 2007, "Fast N-Body Simulation with CUDA", GPU Gems 3, chapter 31.
"""

from typing import Any

from nbody import gpu
from nbody.forces.gpu_engine import GpuEngine, Shape
from nbody.gpu import cuda
from nbody.state.device import DeviceState

TILE = 256
"""Bodies a tile and threads a block."""

UNROLLED = 8
"""Bodies a turn of the inner loop, written out by the compiler: counting costs 15 instructions a turn. An interaction
takes 14.9 issue slots so (float32, 3-D; counted in the machine code for sm_90) and 29.8 in a plain loop."""


def build(shape: Shape) -> Any:
    """The acceleration kernel with shared-memory tiles, for a law, a precision and 2 or 3 dimensions."""
    law, real, flat, potential = shape.law, shape.real, shape.flat, shape.potential

    @cuda.jit(**gpu.FAST)
    def accelerate_tiled(body, acceleration, G, length2):
        tile = cuda.shared.array((TILE, 4), real, alignment=16)  # a body is one 128-bit load
        n = body.shape[0]
        t = cuda.threadIdx.x
        i = cuda.grid(1)
        mine = min(i, n - 1)  # threads past the end help to load tiles and write nothing
        xi, yi, zi = body[mine, 0], body[mine, 1], body[mine, 2]
        ax = ay = az = phi = real(0)
        for first in range(0, n, TILE):
            j = min(first + t, n - 1)
            for k in range(3):
                tile[t, k] = body[j, k]
            tile[t, 3] = body[j, 3] if first + t < n else real(0)
            cuda.syncthreads()
            for begin in range(0, TILE, UNROLLED):
                for s in range(UNROLLED):
                    s += begin
                    dx, dy, dz = tile[s, 0] - xi, tile[s, 1] - yi, tile[s, 2] - zi
                    m = tile[s, 3]
                    f, u = law(dx, dy, dz, length2)
                    f *= m
                    ax += f * dx
                    ay += f * dy
                    if not flat:
                        az += f * dz
                    if potential and first + s != i and first + s < n:
                        phi -= u * m
            cuda.syncthreads()
        if i < n:
            acceleration[i, 0], acceleration[i, 1], acceleration[i, 2] = G * ax, G * ay, G * az
            if potential:
                acceleration[i, 3] = G * phi

    return accelerate_tiled


class TiledEngine(GpuEngine):
    """A thread a particle, bodies in shared-memory tiles."""

    name = "gpu-tiled"
    build = staticmethod(build)

    def launch(self, kernel: Any, state: DeviceState, G: Any, length2: Any) -> None:
        """See :meth:`GpuEngine.launch`."""
        kernel[-(-state.count // TILE), TILE, state.stream](state.body, state.acceleration, G, length2)
