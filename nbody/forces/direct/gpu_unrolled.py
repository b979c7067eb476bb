"""Several bodies per thread: each body read from shared memory acts on four bodies that are in registers.

In ``gpu-tiled`` every interaction loads its acting body. A multiprocessor issues four instructions per clock, so a load
costs as much as a multiply-add. A thread that holds BODIES bodies in registers loads each acting body once for all of them,
and their sums are independent, so that other instructions can run during a reciprocal square root: 13.75 issue slots per
interaction instead of 14.2 (counted in the machine code for sm_90, float32, 3-D). The price: BODIES times fewer threads,
too few for a large card below about 200000 bodies.

The forces of a tile are summed separately: rounding errors grow with √THREADS + √(N/THREADS) instead of √N.

One H200, float32, 3-D, Plummer's softening, N = 262144: 1.91e12 interactions/s (``gpu-tiled``: 2.00e12); 128 threads per
block or eight bodies per thread are slower. Conflicts of register banks cost more than the saved slots gain, see
:mod:`nbody.forces.direct.gpu_pairs`, for which this kernel is the preparation.
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import cuda
from nbody.forces.direct.gpu_rows import RowEngine, ThreadBlock
from nbody.forces.gpu_engine import Shape

THREADS = 32 if compute.SIMULATED else 256
BODIES = 4
"""Bodies per thread. The compiler unrolls the loops over them, and their arrays become registers."""

UNROLL = 4
"""Bodies of the tile per iteration of the inner loop, which is unrolled too."""


@cache
def build(shape: Shape, threads: int = THREADS) -> Any:
    """The acceleration kernel with BODIES bodies per thread, for a law, a precision and 2 or 3 dimensions."""
    law, real, flat, potential = shape.law, shape.real, shape.flat, shape.potential
    potential_factor = shape.potential_factor

    @compute.kernel("gpu", **compute.FAST)
    def accelerate_unrolled(body, acceleration, start, acting, G, length2):
        tile = cuda.shared.array((threads, 4), real, alignment=16)
        x, y, z = (cuda.local.array(BODIES, real), cuda.local.array(BODIES, real), cuda.local.array(BODIES, real))
        ax, ay, az = (cuda.local.array(BODIES, real), cuda.local.array(BODIES, real), cuda.local.array(BODIES, real))
        sx, sy, sz = (cuda.local.array(BODIES, real), cuda.local.array(BODIES, real), cuda.local.array(BODIES, real))
        phi, sphi = cuda.local.array(BODIES, real), cuda.local.array(BODIES, real)
        n = body.shape[0]
        t = cuda.threadIdx.x
        begin = start + cuda.blockIdx.x * threads * BODIES + t
        for k in range(BODIES):
            i = min(begin + k * threads, n - 1)  # threads past the end help to load tiles and write nothing
            x[k], y[k], z[k] = body[i, 0], body[i, 1], body[i, 2]
            sx[k] = sy[k] = sz[k] = sphi[k] = real(0)
        for first in range(0, acting, threads):
            j = min(first + t, n - 1)
            for c in range(3):
                tile[t, c] = body[j, c]
            tile[t, 3] = body[j, 3] if first + t < acting else real(0)
            cuda.syncthreads()
            for k in range(BODIES):
                ax[k] = ay[k] = az[k] = phi[k] = real(0)
            for first_s in range(0, threads, UNROLL):
                for s in range(UNROLL):
                    s += first_s
                    xj, yj, zj, m = tile[s, 0], tile[s, 1], tile[s, 2], tile[s, 3]
                    for k in range(BODIES):
                        dx, dy, dz = xj - x[k], yj - y[k], zj - z[k]
                        f, u = law(dx, dy, dz, length2)
                        f *= m
                        ax[k] += f * dx
                        ay[k] += f * dy
                        if not flat:
                            az[k] += f * dz
                        # m = 0 past the end; without the comparison the kernel takes 7 registers more
                        if potential and first + s != begin + k * threads and first + s < n:
                            phi[k] -= potential_factor(u, m) * m
            for k in range(BODIES):
                sx[k] += ax[k]
                sy[k] += ay[k]
                sz[k] += az[k]
                sphi[k] += phi[k]
            cuda.syncthreads()
        for k in range(BODIES):
            i = begin + k * threads
            if i < n:
                acceleration[i, 0], acceleration[i, 1], acceleration[i, 2] = G * sx[k], G * sy[k], G * sz[k]
                if potential:
                    acceleration[i, 3] = G * sphi[k]

    return accelerate_unrolled


class UnrolledEngine(RowEngine):
    """Several bodies per thread, acting bodies in shared-memory tiles."""

    _name = "gpu-unrolled"
    _build = staticmethod(build)
    _threads = ThreadBlock(THREADS, THREADS * BODIES)
