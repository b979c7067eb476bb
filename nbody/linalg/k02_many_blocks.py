"""k02: many blocks, global memory: blockIdx and threadIdx together give the element, so any size is possible.

Every thread reads a whole row of A and a whole column of B from global memory, 2k numbers for k multiply-adds.
The threads of a warp read the same number of A (one broadcast) and neighbouring numbers of B (one coalesced line), and the
caches serve most reads.

H200, n = 2048: 1.36 TFLOP/s in float32, 1.25 in float64.
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import FAST, cuda
from nbody.linalg.rung import Rung, by_tiles

SIDE = 16
"""Threads along each side of a block."""


@cache
def kernel(real: Any) -> Any:
    """The kernel for a NumPy scalar type."""

    @compute.kernel("gpu", **FAST)
    def many_blocks(a, b, c):
        column, row = cuda.grid(2)
        if row < c.shape[0] and column < c.shape[1]:
            total = real(0)
            for i in range(a.shape[1]):
                total += a[row, i] * b[i, column]
            c[row, column] = total

    return many_blocks


RUNG = Rung(
    title="many blocks, global memory",
    idea="blockIdx·blockDim + threadIdx is the element's place: the grid covers a C of any size.",
    limit="2k reads for one result; the load units, not the arithmetic, are busy.",
    launch=by_tiles(kernel, SIDE, (SIDE, SIDE)),
    improves="k01",
)
