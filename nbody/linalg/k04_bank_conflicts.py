"""k04: tiles in shared memory, and every column access a 32-way bank conflict.

A block copies a 32x32 tile of A and of B to shared memory, and every thread reads its row and column there: global reads
fall by a factor of 32. But threadIdx.x counts rows here. Shared memory has 32 banks, each one 4-byte word wide. With rows of
32 words a column is in one bank, and the 32 threads of a warp that read one column wait for each other. Their global reads
are a whole row apart too.

H200, n = 2048: 1.23 TFLOP/s in float32, 0.76 in float64: slower than without tiles (k02: 1.36 and 1.25), as in the
lecture.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import FAST, cuda
from nbody.linalg.rung import ProductLaunch, ProductShape, Rung, by_tiles, tile_reads

TILE = 32
"""Rows and columns of a tile, and threads along each side of a block."""


@cache
def tile_kernel(real: Any, width: int, x_is_row: bool) -> Any:
    """Tiles stored in rows of ``width`` numbers; ``x_is_row``: threadIdx.x counts the rows of a tile, not its
    columns."""

    @compute.kernel("gpu", **FAST)
    def tiled(a, b, c):
        a_tile = cuda.shared.array((TILE, width), real)
        b_tile = cuda.shared.array((TILE, width), real)
        m, k = a.shape
        n = b.shape[1]
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        u, v = (x, y) if x_is_row else (y, x)  # row and column in the tile
        row, column = cuda.blockIdx.y * TILE + u, cuda.blockIdx.x * TILE + v
        total = real(0)
        for first in range(0, k, TILE):
            a_tile[u, v] = a[row, first + v] if row < m and first + v < k else real(0)
            b_tile[u, v] = b[first + u, column] if first + u < k and column < n else real(0)
            cuda.syncthreads()
            for i in range(TILE):
                total += a_tile[u, i] * b_tile[i, v]
            cuda.syncthreads()
        if row < m and column < n:
            c[row, column] = total

    return tiled


def launcher(width: int, x_is_row: bool) -> Callable[[ProductShape, Any], ProductLaunch]:
    """How to launch :func:`tile_kernel`."""
    return by_tiles(lambda real: tile_kernel(real, width, x_is_row), TILE, (TILE, TILE))


RUNG = Rung(
    title="shared tiles, columns in one bank",
    idea="A block shares tiles of A and B in fast memory: each number is read from global memory 32 times less.",
    limit="threadIdx.x counts rows: 32 threads read from one bank, and global reads are not coalesced.",
    launch=launcher(width=TILE, x_is_row=True),
    reads=tile_reads((TILE, TILE)),
    improves="k02",
)
