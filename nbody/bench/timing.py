"""Measures times: kernels are compiled before, the median counts, and competitors run in turns.

On a CPU, the load of other programs and the boost of the clock change within seconds. Competitors measured one after the
other would see different conditions, so they take short turns. On a GPU, CUDA events are the clock: :func:`on_device`
includes the launches, :func:`device_times` excludes them.
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
"""The minimum length of a turn in seconds: long enough for the previous competitor's threads to go to sleep."""

ENOUGH = 0.25
"""Seconds of timed calls after which a competitor needs no further turn."""

FEWEST_CALLS, MOST_TIMED_CALLS, FOR_A_SPREAD = 5, 200, 2
"""The minimum and maximum number of timed calls, and the minimum if a single call takes longer than :data:`ENOUGH`: the
spread needs two."""

FEWEST_ON_DEVICE = 3
"""The minimum on a GPU if :data:`FEWEST_CALLS` take longer than :data:`ENOUGH`; times there hardly vary. (H200, N = 262144,
24 to 142 ms per call: the fastest of a row was at most 0.2 % below its median.)"""

FIRST_COUNTS = 1.0
"""If the first call takes longer than this (in seconds), it counts too: its one-time costs, such as memory allocation,
are then small."""


@dataclass(frozen=True)
class TimedCall:
    """One of several functions that are compared.

    Attributes:
        work: the function to time; it returns when the work is done.
        estimate: seconds per call, from an earlier call.
        running: a context manager around each turn (a number of threads), entered before the clock starts.
        before: seconds of earlier calls that count too.
    """

    work: Work
    estimate: float
    running: Callable[[], AbstractContextManager] = nullcontext
    before: Sequence[float] = ()


@dataclass(frozen=True)
class Timing:
    """The median and the smallest time of a call in seconds, by the clock of the ``host`` or the ``device``."""

    median: float
    best: float
    clock: str = "host"

    @classmethod
    def of(cls, times: Sequence[float], clock: str = "host") -> "Timing":
        return cls(statistics.median(times), min(times), clock)

    @property
    def spread(self) -> float:
        """The relative difference between the median and the fastest call: the uncertainty of the time."""
        return 1 - self.best / self.median

    @property
    def disturbed(self) -> bool:
        """True if another program used the machine: without one, these two differ by a few percent."""
        return self.median > 1.5 * self.best


def seconds(work: Work) -> float:
    """Wall time of one call on the host."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_turns(calls: Sequence[TimedCall]) -> list[Timing]:
    """Time the competitors on the host, in turns. Each must have run once before."""
    samples = [list(call.before) for call in calls]
    waiting = [k for k in range(len(calls)) if not _enough(samples[k])]
    while waiting:
        for k in waiting:
            samples[k] += _turn(calls[k])
        waiting = [k for k in waiting if not _enough(samples[k])]
    return [Timing.of(sample) for sample in samples]


def _turn(call: TimedCall) -> list[float]:
    """Time the calls of one turn. If calls are short, the first is left out: it wakes threads and fills caches."""
    with call.running():
        if call.estimate < TURN:
            call.work()
        times = [seconds(call.work)]
        while sum(times) < TURN and len(times) < MOST_TIMED_CALLS:
            times.append(seconds(call.work))
    return times


def _enough(sample: list[float]) -> bool:
    calls, total = len(sample), sum(sample)
    fewest = FOR_A_SPREAD if total > ENOUGH * calls else FEWEST_CALLS
    return calls >= MOST_TIMED_CALLS or (total >= ENOUGH and calls >= fewest)


def on_device(work: Work, estimate: float) -> Timing:
    """Time ``work``, which only enqueues and takes about ``estimate`` seconds, on the GPU with CUDA events. Several short
    calls share one pair of events, whose resolution is 0.5 µs."""
    from nbody import compute

    estimate = max(estimate, 1e-6)
    repeats = max(FEWEST_ON_DEVICE, min(FEWEST_CALLS, int(ENOUGH / estimate)))
    calls = max(1, min(MOST_TIMED_CALLS, round(TURN / 4 / estimate)))
    return Timing.of([1e-3 * time for time in compute.times(work, repeats, calls)], "device")


@cache
def _busy_kernel() -> Any:
    from nbody import compute

    @compute.kernel("gpu")
    def busy(numbers, steps):
        x = numbers[0]
        for _ in range(steps):
            x = x * np.float32(0.5) + np.float32(1)
        numbers[0] = x

    return busy


BUSY_STEPS = 1_500_000
"""The number of dependent multiply-adds in the kernel that keeps the device busy: 3 ms on an H200."""

MOST_CALLS, ENOUGH_ON_DEVICE = 30, 5e-3
"""The maximum number of calls per measurement, whose launches take less time than the busy kernel, and the minimum
length of a measurement in seconds."""


def device_times(work: Work, repeats: int = 5) -> Timing:
    """The time of a call of ``work()``, which only enqueues, on the device alone: ``repeats`` measurements of up to
    :data:`MOST_CALLS` calls each.

    The launches wait in a queue behind a kernel that keeps the device busy, so the device never waits for the host.
    (Launching a kernel from Numba takes about 17 µs; a product of 256x256 matrices takes 7 µs on an H200.)"""
    from nbody.compute import cuda, times

    numbers = cuda.to_device(np.zeros(1, np.float32))

    def keep_busy() -> None:
        _busy_kernel()[1, 1](numbers, BUSY_STEPS)

    (first,) = times(work, 1, before=keep_busy)
    calls = max(1, min(MOST_CALLS, int(ENOUGH_ON_DEVICE / max(1e-3 * first, 1e-6))))
    return Timing.of([1e-3 * time for time in times(work, repeats, calls, before=keep_busy)], "device")
