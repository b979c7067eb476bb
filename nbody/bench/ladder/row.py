"""A row of the ladder: the measurements of one rung, compared with cuBLAS and the naive kernel."""

from dataclasses import dataclass, replace
from typing import Literal

from nbody.bench.row import Amount, Count, Row, ratio

CUBLAS = ("cublas", "cublas-skinny")
"""Names of cuBLAS's rows: the square product and the skinny one."""


@dataclass(frozen=True, kw_only=True)
class LadderRow(Row):
    """One rung at one n (``size``); C is (m, n), A (m, k), B (k, n).

    The peak is that of the float pipes, without tensor cores. ``gbytes_per_s`` counts each matrix once. ``speedup`` is the
    speed-up over the naive kernel, and ``predicted_speedup`` that of the simple model. ``reads_global`` counts the matrix
    elements that are read from global memory per result, ``bytes_global`` the bytes of the whole product.
    """

    suite: Literal["matmul"] = "matmul"  # type: ignore[assignment]
    title: str
    size: Count
    m: Count
    n: Count
    k: Count | None = None
    percent_of_peak: Amount | None = None
    percent_of_cublas: Amount | None = None
    gbytes_per_s: Amount | None = None
    error_mean: Amount | None = None
    improves: str = ""
    reads_global: Amount | None = None
    bytes_global: Amount | None = None
    predicted_cycles: Amount | None = None
    predicted_speedup: Amount | None = None

    @property
    def what(self) -> str:
        """The name, precision and n, as messages say it."""
        return f"{self.name} {self.precision}, n = {self.size}"

    @property
    def shown(self) -> str:
        """The title, and the shape of a product that is not n x n by n x n."""
        square = self.m == self.n == self.size
        return self.title if square else f"{self.title}, {self.m}x{self.k} by {self.k}x{self.n}"


ROWS: dict[str, type] = {"matmul": LadderRow}


def with_ratios(rows: list[LadderRow], naive: str) -> list[LadderRow]:
    """The rows of one size and precision with their speeds relative to cuBLAS and to the rung ``naive``."""
    base, cycles = next(((row.gflops, row.predicted_cycles) for row in rows if row.name == naive), (None, None))
    rivals = {(row.m, row.n): row.gflops for row in rows if row.name in CUBLAS}
    return [
        replace(
            row,
            percent_of_cublas=ratio(row.gflops, rivals.get((row.m, row.n)), 100),
            speedup=ratio(row.gflops, base),
            predicted_speedup=ratio(cycles, row.predicted_cycles),
        )
        for row in rows
    ]
