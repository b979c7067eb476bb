"""How fast ranks exchange rows, for ``nbody doctor``."""

import statistics
import time

import numpy as np

from nbody.parallel.team import Team

ROWS = 1 << 19
"""The accelerations of half a million bodies in float64: 12 MB."""

REPEATS = 9


def exchange_speed(ranks: Team) -> tuple[float, float]:
    """The seconds of an exchange of one row per rank, and the bytes per second that arrive at each rank when all get the
    rows of the others. The medians of several; all ranks call this together."""
    latency = _seconds(ranks, ranks.size)
    rows = ROWS // ranks.size * ranks.size
    received = rows * 3 * 8 * (ranks.size - 1) / ranks.size
    return latency, received / _seconds(ranks, rows)


def _seconds(ranks: Team, count: int) -> float:
    rows, bounds, times = np.zeros((count, 3)), ranks.bounds(count), []
    for _ in range(REPEATS):
        ranks.all(None)
        began = time.perf_counter()
        ranks.gather_rows(rows, bounds)
        times.append(time.perf_counter() - began)
    return ranks.broadcast(statistics.median(times))
