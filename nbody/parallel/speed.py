"""How fast ranks exchange rows, for ``nbody doctor``."""

import statistics
import time
from collections.abc import Callable

import numpy as np

from nbody.parallel.team import Team

ROWS = 1 << 19
"""The accelerations of half a million bodies in float64: 12 MB."""

REPEATS = 9


Prepared = Callable[[np.ndarray], Callable[[], None]]
"""A function that returns one that completes rows on all ranks."""


def exchange_speed(ranks: Team, prepared: Prepared | None = None, rows: int = ROWS) -> tuple[float, float]:
    """The seconds of an exchange of one row per rank, and the bytes per second that arrive at each rank when all get the
    rows of the others, by default through the team. The medians of several; all ranks call this together."""
    prepared = prepared or (lambda rows: lambda: ranks.gather_rows(rows, ranks.bounds(len(rows))))
    latency = _seconds(ranks, prepared(np.zeros((ranks.size, 3))))
    rows -= rows % ranks.size
    received = rows * 3 * 8 * (ranks.size - 1) / ranks.size
    return latency, received / _seconds(ranks, prepared(np.zeros((rows, 3))))


def _seconds(ranks: Team, exchange: Callable[[], None]) -> float:
    times = []
    for _ in range(REPEATS):
        ranks.allgather(None)
        began = time.perf_counter()
        exchange()
        times.append(time.perf_counter() - began)
    return ranks.broadcast(statistics.median(times))
