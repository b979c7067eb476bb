"""Device time of work that takes less of it than Python takes to launch it.

The launches of a measurement are queued up behind a kernel that keeps the device busy meanwhile: once it is
done, the device goes from one to the next without waiting for the host. (Launching a kernel from Numba takes
some 17 µs; a product of 256x256 matrices takes 7 on an H200.)
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np


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
MOST_CALLS = 30
"""Calls a measurement, at most: their launches take less than the busy kernel."""
ENOUGH = 5e-3
"""Seconds of device time that make a measurement."""


def device_seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """Median seconds of ``work()``; see :func:`device_times`."""
    return float(np.median(device_times(work, repeats)))


def device_times(work: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of ``work()``, which only enqueues, on the device alone, in ``repeats`` measurements of up to
    :data:`MOST_CALLS` calls each."""
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
    calls = max(1, min(MOST_CALLS, int(ENOUGH / max(once(1), 1e-6))))
    return [once(calls) for _ in range(repeats)]
