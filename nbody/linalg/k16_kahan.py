"""k16: Kahan's compensated sum in the naive kernel (k02): accuracy at almost no cost, since memory is the bottleneck.

The rounding error of each addition is computed and subtracted from the next summand, so that the error of the sum does not
grow with k (Kahan 1965). That takes four operations instead of one, all in registers; the kernel waits for its loads anyway.
It is compiled without fast-math, which would simplify (t - total) - y to zero.

H200, n = 2048: 1.31 TFLOP/s in float32 (k02: 1.36). Random numbers, n = 1000: largest error 6.2e-8 (k02:
2.2e-6), mean 1.8e-8 (3.4e-7).
"""

from functools import cache
from typing import Any

from nbody import compute
from nbody.compute import cuda
from nbody.linalg.k02_many_blocks import SIDE
from nbody.linalg.rung import Rung, by_tiles


@cache
def kernel(real: Any) -> Any:
    """The kernel for a NumPy scalar type."""

    @compute.kernel("gpu")
    def kahan(a, b, c):
        column, row = cuda.grid(2)
        if row < c.shape[0] and column < c.shape[1]:
            total = compensation = real(0)
            for i in range(a.shape[1]):
                summand = a[row, i] * b[i, column] - compensation  # one fused multiply-add: the product is not rounded
                new_total = total + summand
                compensation = (new_total - total) - summand
                total = new_total
            c[row, column] = total

    return kahan


RUNG = Rung(
    title="Kahan's compensated sum",
    idea="The rounding error of an addition is corrected in the next one: the error does not grow with the sum's length.",
    limit="2k reads for one result, as in k02: the extra arithmetic hides behind them.",
    launch=by_tiles(kernel, SIDE, (SIDE, SIDE)),
    improves="k02",
    compensated=True,
)
