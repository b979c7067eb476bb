"""The champion as a user calls it: what Python takes for a call counts, where it takes longer than the kernel."""

from nbody.bench.ladder.products import Problem
from nbody.bench.ladder.row import Row

NAME = "as-called"
CALLS, LARGE = 100, 4096
"""Calls between two events, and the n from which on a tenth of them are enough."""


def as_called(champion: Row, problem: Problem) -> Row:
    """The row of :func:`nbody.linalg.matmul` on device arrays, beside that of its kernel alone."""
    from nbody import gpu
    from nbody.linalg import matmul

    a, b, c = problem.on_device
    calls = CALLS if problem.shape.m < LARGE else CALLS // 10
    took = gpu.milliseconds(lambda: matmul(a, b, out=c), inner=calls) / 1e3
    share = champion["seconds"] / took
    rates = {key: champion[key] and champion[key] * share for key in ("gflops", "percent_of_peak", "gbytes_per_s")}
    return {**champion, "name": NAME, "title": f"matmul() as called ({champion['name']})", "seconds": took, **rates}
