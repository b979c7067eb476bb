"""Waiting for the device without blocking Python: signal handlers run, and a run can show its progress.

The driver's own wait is one call in C, and Python handles signals only after it returns; a step of millions of bodies takes
seconds.
"""

import time
from collections.abc import Callable
from typing import Any

from nbody.compute.gpu.device import SIMULATED, cuda
from nbody.compute.gpu.failures import check_helpers

SPIN = 1e-3
"""Seconds of polling without a pause, as in the driver: the shortest pause takes 0.06 ms."""

LATENESS = 1e-3
"""Length of a pause as a fraction of the time already waited: polling late costs at most this fraction of a wait."""

LONGEST_PAUSE = 5e-3
"""Seconds."""

CHECK = 1.0
"""Seconds between two questions to the other devices whether they still work."""


def mark(stream: Any) -> Any:
    """An event that occurs when all work queued on a stream so far is done."""
    event = cuda.event() if SIMULATED else cuda.event(timing=False)
    event.record(stream)
    return event


def is_done(event: Any) -> bool:
    """True if an event has occurred. (In the simulator every event has.)"""
    if SIMULATED:
        return True
    from cuda.bindings import driver

    # Numba's own query raises for "not yet", and writes an error to its log each time.
    if driver.cuEventQuery(event.handle)[0] == driver.CUresult.CUDA_ERROR_NOT_READY:
        return False
    return bool(event.query())  # raises the device's error, if there is one


def wait_for(event: Any, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Return when an event has occurred; call ``meanwhile`` from time to time until then.

    An exception of ``meanwhile`` or of a signal handler ends the wait. Raises GpuFailed if a helper has failed.
    """
    began, checked = time.perf_counter(), 0.0
    while not is_done(event):
        waited = time.perf_counter() - began
        if waited > SPIN:
            meanwhile()
            if waited > checked + CHECK:
                checked = waited
                check_helpers()
            time.sleep(min(LATENESS * waited, LONGEST_PAUSE))
