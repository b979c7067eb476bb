"""Two bodies per warp, the acting bodies divided among its 32 lanes. For small N.

With one thread per body, 4096 bodies are only 128 warps, one for each multiprocessor of a large card, and each warp loops
over all 4096 acting bodies. Here a warp holds BODIES bodies, the same in every lane, and lane l computes the forces of the
acting bodies l, l + 32, l + 64 …; at the end five exchanges (a butterfly) add the sums of the lanes, always in the same
order. That gives 32/BODIES times more warps, each with 32/BODIES times less work, in one launch.

Neighbouring lanes read neighbouring bodies, one 128-bit load each. After the first warp of a multiprocessor has read them,
they are in its L1 cache: shared memory and its barriers would gain nothing.

One H200, float32, 3-D, Plummer's softening, microseconds per evaluation (kernels queued in a CUDA graph; launched from
Python each takes 28): 4.9 for 1024 bodies, 15.0 for 4096 (``gpu-tiled``: 105), 42 for 8192 (206); beyond that
``gpu-symmetric`` is faster. One body per warp: 5.0, 16.2, 43.7; four: 6.6, 22.1, 45.1.
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import cuda
from nbody.compute.in_kernels.reduction import sum_over_lanes
from nbody.forces.direct.gpu_rows import RowEngine, ThreadBlock
from nbody.forces.gpu_engine import Shape

THREADS = 128
BODIES = 2
"""Bodies per warp."""


@cache
def build(shape: Shape) -> Any:
    """The acceleration kernel with BODIES bodies per warp, for a law, a precision and 2 or 3 dimensions."""
    law, real, flat, potential = shape.law, shape.real, shape.flat, shape.potential
    potential_factor = shape.potential_factor

    @compute.kernel("gpu", **compute.FAST)
    def accelerate_split(body, acceleration, start, acting, G, length2):
        x, y, z = (cuda.local.array(BODIES, real), cuda.local.array(BODIES, real), cuda.local.array(BODIES, real))
        ax, ay, az = (cuda.local.array(BODIES, real), cuda.local.array(BODIES, real), cuda.local.array(BODIES, real))
        phi = cuda.local.array(BODIES, real)
        n = body.shape[0]
        lane = cuda.threadIdx.x % 32
        begin = start + cuda.grid(1) // 32 * BODIES
        for k in range(BODIES):
            i = min(begin + k, n - 1)
            x[k], y[k], z[k] = body[i, 0], body[i, 1], body[i, 2]
            ax[k] = ay[k] = az[k] = phi[k] = real(0)
        j = lane
        while j < acting:  # a range() with a step costs three more instructions per iteration
            xj, yj, zj, m = compute.row(body, j)
            for k in range(BODIES):
                dx, dy, dz = xj - x[k], yj - y[k], zj - z[k]
                f, u = law(dx, dy, dz, length2)
                f *= m
                ax[k] += f * dx
                ay[k] += f * dy
                if not flat:
                    az[k] += f * dz
                if potential and j != begin + k:
                    phi[k] -= potential_factor(u, m) * m
            j += 32
        for k in range(BODIES):
            sx, sy, sz = sum_over_lanes(ax[k]), sum_over_lanes(ay[k]), sum_over_lanes(az[k])
            sphi = sum_over_lanes(phi[k])
            i = begin + k
            if lane == 0 and i < n:
                acceleration[i, 0], acceleration[i, 1], acceleration[i, 2] = G * sx, G * sy, G * sz
                if potential:
                    acceleration[i, 3] = G * sphi

    return accelerate_split


class SplitEngine(RowEngine):
    """Two bodies per warp, the acting bodies divided among its lanes."""

    _name = "gpu-split"
    _build = staticmethod(build)
    _threads = ThreadBlock(THREADS, THREADS // 32 * BODIES)
    can = RowEngine.can._replace(auto_range=range(1, 65536 + 1))  # beyond, gpu-symmetric is 1.6 times faster on any card
