"""How a time is taken: what is compiled is compiled before, the median counts, and rivals run in turns.

On a CPU another program's load, or the clock's boost, comes and goes within seconds. Rivals that are measured one after
the other would meet different machines; so each gets a short turn, then the next, and round again. On a GPU the clock
is CUDA's own events: with the launches in :func:`on_device`, without them in :func:`device_times`.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

Work = Callable[[], object]

TURN = 0.02
"""Seconds a turn lasts, at least: long enough that the last rival's threads have gone to sleep for most of it."""

ENOUGH = 0.25
"""Seconds of timed calls after which a rival is known well enough."""

FEWEST, MOST = 5, 200
"""Timed calls: no fewer unless one call alone takes more than :data:`ENOUGH`, and no more."""

FEWEST_ON_DEVICE = 3
"""The same on a GPU, where :data:`FEWEST` take longer than :data:`ENOUGH`: its times hardly differ. (One H200, N = 262144,
24 to 142 ms each: the fastest of a row was at most 0.2 % below its median.)"""

FOR_A_SPREAD = 2
"""Calls that it takes to say how far they differ: no fewer, however long one takes."""

FIRST_COUNTS = 1.0
"""Seconds beyond which the first call with a problem counts as well: what it does for all later ones, such as taking
memory, is a small part of it."""


@dataclass(frozen=True)
class Rival:
    """One of several pieces of work that are to be compared.

    Attributes:
        work: what is timed; returns when it is done.
        estimate: seconds a call takes, from an earlier one.
        running: the surroundings of a turn (a number of threads), entered before the clock starts.
        before: seconds of calls that were timed already, and count.
    """

    work: Work
    estimate: float
    running: Callable[[], AbstractContextManager] = nullcontext
    before: Sequence[float] = ()


@dataclass(frozen=True)
class Timing:
    """Median and least seconds a call."""

    median: float
    best: float

    @classmethod
    def of(cls, times: Sequence[float]) -> "Timing":
        """Of so many calls."""
        return cls(statistics.median(times), min(times))

    @property
    def spread(self) -> float:
        """How far the fastest call is below the median, as a part of it: how well the time is known."""
        return 1 - self.best / self.median

    @property
    def disturbed(self) -> bool:
        """True if something else was using the machine: alone, these two differ by a few percent."""
        return self.median > 1.5 * self.best


def seconds(work: Work) -> float:
    """Wall time of one call on the host."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turns(rivals: Sequence[Rival]) -> list[Timing]:
    """Times of each rival on the host, measured in turns. Everything must have run once before."""
    samples = [list(rival.before) for rival in rivals]
    waiting = [k for k in range(len(rivals)) if not _enough(samples[k])]
    while waiting:
        for k in waiting:
            samples[k] += _turn(rivals[k])
        waiting = [k for k in waiting if not _enough(samples[k])]
    return [Timing.of(sample) for sample in samples]


def _turn(rival: Rival) -> list[float]:
    """Times of one turn's calls, with the first left out where calls are short: it wakes threads and fills caches."""
    with rival.running():
        if rival.estimate < TURN:
            rival.work()
        times = [seconds(rival.work)]
        while sum(times) < TURN and len(times) < MOST:
            times.append(seconds(rival.work))
    return times


def _enough(sample: list[float]) -> bool:
    calls, total = len(sample), sum(sample)
    fewest = FOR_A_SPREAD if total > ENOUGH * calls else FEWEST
    return calls >= MOST or (total >= ENOUGH and calls >= fewest)


def on_device(work: Work, estimate: float) -> Timing:
    """Times on the GPU by CUDA events. ``work`` only enqueues; several calls share a pair of events where one is too
    short for them (their resolution is 0.5 µs)."""
    from nbody import gpu

    return Timing.of([1e-3 * time for time in gpu.times(work, *calls_on_device(estimate))])


def calls_on_device(estimate: float) -> tuple[int, int]:
    """How many measurements are made on a GPU of work that takes about so many seconds, and the calls of each."""
    estimate = max(estimate, 1e-6)
    repeats = max(FEWEST_ON_DEVICE, min(FEWEST, int(ENOUGH / estimate)))
    return repeats, max(1, min(MOST, round(TURN / 4 / estimate)))


@cache
def _busy_kernel() -> Any:
    from nbody.gpu import cuda

    @cuda.jit
    def busy(numbers, steps):
        x = numbers[0]
        for _ in range(steps):
            x = x * np.float32(0.5) + np.float32(1)
        numbers[0] = x

    return busy


BUSY_STEPS = 1_500_000
"""Dependent multiply-adds of the kernel that keeps the device busy: 3 ms on an H200."""

MOST_CALLS, ENOUGH_ON_DEVICE = 30, 5e-3
"""Calls per measurement, at most: their launches take less than the busy kernel; and seconds that make a measurement."""


def device_times(work: Work, repeats: int = 5) -> list[float]:
    """Seconds of ``work()``, which only enqueues, on the device alone, in ``repeats`` measurements of up to
    :data:`MOST_CALLS` calls each.

    The launches are queued behind a kernel that keeps the device busy, so that the device then goes from one to the next
    without waiting for the host. (Launching a kernel from Numba takes some 17 µs; a product of 256x256 matrices 7 on an
    H200.)"""
    from nbody.gpu import cuda

    def once(calls: int) -> float:
        start, stop = cuda.event(), cuda.event()
        _busy_kernel()[1, 1](numbers, BUSY_STEPS)
        start.record()
        for _ in range(calls):
            work()
        stop.record()
        stop.synchronize()
        return 1e-3 * cuda.event_elapsed_time(start, stop) / calls

    numbers = cuda.to_device(np.zeros(1, np.float32))
    work()
    calls = max(1, min(MOST_CALLS, int(ENOUGH_ON_DEVICE / max(once(1), 1e-6))))
    return [once(calls) for _ in range(repeats)]
