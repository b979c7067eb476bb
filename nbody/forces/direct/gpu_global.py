"""The lecture's first kernel: one thread per particle, all reads from global memory.

Each of N threads reads all N bodies: 16 N² bytes of loads. The caches serve most of them (all threads of a block read the
same body at the same time), so the kernel is not limited by memory but by instructions: an interaction takes 40 issue slots
(counted in the machine code for sm_90, float32, 3-D). 4 of them load single numbers, about 24 compute 64-bit addresses.
``gpu-tiled`` reads the bodies from shared memory and needs 14. One H200, N = 262144: 0.615e12 interactions/s
(``gpu-tiled``: 2.00e12).
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import cuda
from nbody.forces.direct.gpu_rows import RowEngine, ThreadBlock
from nbody.forces.gpu_engine import Shape

THREADS = 32 if compute.SIMULATED else 256


@cache
def build(shape: Shape) -> Any:
    """The acceleration kernel that reads global memory, for a law, a precision and 2 or 3 dimensions."""
    law, real, flat, potential = shape.law, shape.real, shape.flat, shape.potential
    potential_factor = shape.potential_factor

    @compute.kernel("gpu", **compute.FAST)
    def accelerate_global(body, acceleration, start, acting, G, length2):
        i = start + cuda.grid(1)
        n = body.shape[0]
        if i >= n:
            return
        xi, yi, zi = body[i, 0], body[i, 1], body[i, 2]
        ax = ay = az = phi = real(0)
        for j in range(acting):
            dx, dy, dz = body[j, 0] - xi, body[j, 1] - yi, body[j, 2] - zi
            m = body[j, 3]
            f, u = law(dx, dy, dz, length2)
            f *= m
            ax += f * dx
            ay += f * dy
            if not flat:
                az += f * dz
            if potential and j != i:
                phi -= potential_factor(u, m) * m
        acceleration[i, 0], acceleration[i, 1], acceleration[i, 2] = G * ax, G * ay, G * az
        if potential:
            acceleration[i, 3] = G * phi

    return accelerate_global


class GlobalMemoryEngine(RowEngine):
    """One thread per particle, all reads from global memory."""

    _name = "gpu-global"
    _build = staticmethod(build)
    _threads = ThreadBlock(THREADS, THREADS)
