"""Kahan's compensated sums on the tiled kernel: what an addition rounds away is carried on to the next one.

A plain float32 sum of N terms has an error that grows with √N: at N = 262144 a median of 6e-6 of the acceleration. A
compensated one keeps, beside the total, the part of the last summand that the total was too large to take up (Kahan
1965), and its error does not grow. It costs nine additions an interaction, three for each component, where the law takes
thirteen operations; adding up by tiles, as ``gpu-tiled`` does, costs next to nothing and comes close.

What is left is the rounding of a single pair's force, and of the positions, which float32 gives 24 bits. One H200, 3-D,
Plummer's softening, N = 262144: median error 5.3e-8 (``gpu-tiled``: 2.8e-7), 1.20e12 interactions/s (2.00e12).
"""

from typing import Any

from nbody import gpu
from nbody.forces.direct.gpu_engine import Shape
from nbody.forces.direct.gpu_rows import Block, RowEngine
from nbody.gpu import cuda
from nbody.unroll import unrolled

TILE = 256
"""Bodies a tile and threads a block."""

TURN = 8
"""Bodies a turn of the inner loop, written out."""


def build(shape: Shape) -> Any:
    """The tiled kernel with compensated sums, for a law, a precision and 2 or 3 dimensions."""
    law, real, flat, potential = shape.law, shape.real, shape.flat, shape.potential

    @gpu.device_function
    def take_up(total, lost, k, f, d):
        """total[k] += f d, with what the last addition lost, and what this one loses in lost[k]."""
        term = f * d - lost[k]  # one multiply-add
        new = gpu.add(total[k], term)
        lost[k] = gpu.subtract(gpu.subtract(new, total[k]), term)
        total[k] = new

    @gpu.device_function
    def meet(s, begin, tile, first, n, i, at, total, lost, length2):
        """Body ``begin + s`` of the tile pulls on the thread's body i: ``at`` is where it is, ``total`` its sums."""
        s += begin
        dx, dy, dz = tile[s, 0] - at[0], tile[s, 1] - at[1], tile[s, 2] - at[2]
        m = tile[s, 3]
        f, u = law(dx, dy, dz, length2)
        f *= m
        take_up(total, lost, 0, f, dx)
        take_up(total, lost, 1, f, dy)
        if not flat:
            take_up(total, lost, 2, f, dz)
        if potential and first + s != i and first + s < n:
            take_up(total, lost, 3, -u, m)

    turn = unrolled(meet, TURN)

    @gpu.kernel(**gpu.FAST)
    def accelerate_kahan(body, acceleration, start, G, length2):
        tile = cuda.shared.array((TILE, 4), real, alignment=16)
        at, total, lost = cuda.local.array(3, real), cuda.local.array(4, real), cuda.local.array(4, real)
        n = body.shape[0]
        t = cuda.threadIdx.x
        i = start + cuda.grid(1)
        for k in range(3):
            at[k] = body[min(i, n - 1), k]
        for k in range(4):
            total[k] = lost[k] = real(0)
        for first in range(0, n, TILE):
            j = min(first + t, n - 1)
            for k in range(3):
                tile[t, k] = body[j, k]
            tile[t, 3] = body[j, 3] if first + t < n else real(0)
            cuda.syncthreads()
            for begin in range(0, TILE, TURN):
                turn(begin, tile, first, n, i, at, total, lost, length2)
            cuda.syncthreads()
        if i < n:
            for k in range(3):
                acceleration[i, k] = G * total[k]
            if potential:
                acceleration[i, 3] = G * total[3]

    return accelerate_kahan


class KahanEngine(RowEngine):
    """Tiles in shared memory, compensated sums."""

    name = "gpu-kahan"
    build = staticmethod(build)

    def block(self, count: int) -> Block:
        """See :meth:`RowEngine.block`."""
        return Block(TILE, TILE)
