"""The net force of a tree, which is an error: its sum over all bodies, and its subtraction.

Each body gives up a share of Σ m a that is proportional to m |a|, so that a ← a - |a| Σ m a / Σ m |a|. (Equal accelerations
for all would be large beside those of distant bodies.) The sums are float64, in an order that follows from the number of
bodies alone.
"""

import math
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.compute.in_kernels.reduction import add_row, block_reduction
from nbody.state.device import DeviceArray

THREADS = 64 if compute.SIMULATED else 256
PARTS = THREADS
"""The most blocks that add up partial sums."""


_add_up = block_reduction(THREADS, add_row)


@compute.kernel("gpu")
def sum_forces(body, acceleration, parts):
    """parts[b] = (Σ m a, Σ m |a|) of the bodies of block b."""
    shared = cuda.shared.array((THREADS, 4), np.float64)
    t, n = cuda.threadIdx.x, body.shape[0]
    for k in range(4):
        shared[t, k] = 0.0
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        _, _, _, m = compute.row(body, i)
        x, y, z, _ = compute.row(acceleration, i)
        m, x, y, z = np.float64(m), np.float64(x), np.float64(y), np.float64(z)
        shared[t, 0] += m * x
        shared[t, 1] += m * y
        shared[t, 2] += m * z
        shared[t, 3] += m * math.sqrt(x * x + y * y + z * z)
    _add_up(shared, t)
    if t < 4:
        parts[cuda.blockIdx.x, t] = shared[0, t]


@compute.kernel("gpu")
def add_parts(parts):
    """Leave the sums of all parts in the first one."""
    shared = cuda.shared.array((THREADS, 4), np.float64)
    t = cuda.threadIdx.x
    for k in range(4):
        shared[t, k] = parts[t, k] if t < parts.shape[0] else 0.0
    _add_up(shared, t)
    if t < 4:
        parts[0, t] = shared[0, t]


@compute.kernel("gpu")
def subtract_force(acceleration, parts):
    """Subtract each body's share of the net force."""
    i = cuda.grid(1)
    fx, fy, fz, size = compute.row(parts, 0)
    if i < acceleration.shape[0] and 0.0 < size < math.inf:
        x, y, z, potential = compute.row(acceleration, i)
        wx, wy, wz = np.float64(x), np.float64(y), np.float64(z)
        share = math.sqrt(wx * wx + wy * wy + wz * wz) / size
        compute.set_row(acceleration, i, wx - share * fx, wy - share * fy, wz - share * fz, potential)


def balance(body: DeviceArray, acceleration: DeviceArray, parts: DeviceArray, stream: Any) -> None:
    """Enqueue the subtraction of the net force; ``parts`` (PARTS or fewer, 4) float64 is scratch memory."""
    sum_forces[parts.shape[0], THREADS, stream](body, acceleration, parts)
    add_parts[1, THREADS, stream](parts)
    subtract_force[-(-body.shape[0] // THREADS), THREADS, stream](acceleration, parts)


def blocks(count: int) -> int:
    """Blocks that add up partial sums of ``count`` bodies."""
    return min(PARTS, -(-count // THREADS))
