"""The champion as a user calls it: Python's time per call counts, where it is longer than the kernel."""

from dataclasses import replace

from nbody.bench.row import Row
from nbody.lessons.ladder.products import ProductProblem

NAME = "as-called"
CALLS, LARGE = 100, 4096
"""Calls between two events, and the n from which on a tenth of them are enough."""


def as_called(champion: Row, problem: ProductProblem) -> Row:
    """The row of :func:`nbody.linalg.matmul` on device arrays, beside that of its kernel alone."""
    from nbody import compute
    from nbody.linalg import matmul

    assert champion.seconds
    a, b, c = problem.on_device
    calls = CALLS if problem.shape.m < LARGE else CALLS // 10
    took = compute.milliseconds(lambda: matmul(a, b, out=c), inner=calls) / 1e3
    fraction = champion.seconds / took
    return replace(
        champion,
        name=NAME,
        title="matmul() as called",
        seconds=took,
        gflops=champion.gflops and champion.gflops * fraction,
        percent_of_peak=champion.percent_of_peak and champion.percent_of_peak * fraction,
        gbytes_per_s=champion.gbytes_per_s and champion.gbytes_per_s * fraction,
    )
