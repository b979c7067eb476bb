"""CUDA graphs (launches that are recorded once and replayed), and timing of launches on the device."""

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import numpy as np

from nbody.compute.gpu.device import cuda
from nbody.compute.gpu.failures import DriverError
from nbody.errors import DeviceError


class Graph:
    """The kernel launches of ``work()`` on a stream, recorded once and replayed with one call.

    A launch from Python costs about ten microseconds of processor time, a replay of all launches two or three: at small N
    the GPU would otherwise wait for Python. ``work`` must launch on ``stream``. It may use other streams only if they first
    wait for an event of ``stream``, and ``stream`` at last waits for an event of theirs. It must allocate no memory, copy to
    the host only into pinned memory, and have been run before (so that its kernels are compiled).
    """

    def __init__(self, stream: Any, work: Callable[[], Any]) -> None:
        from cuda.bindings import driver

        self._driver, self._stream = driver, int(stream.handle)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._call(driver.cuStreamBeginCapture, self._stream, mode)
        collects = gc.isenabled()
        gc.disable()  # to free an array on the device, or in pinned memory, would end the capture
        try:
            work()
        except BaseException:
            # The stream cannot be used until its capture is ended. Ending it may fail for the same reason.
            with contextlib.suppress(DeviceError):
                self._call(driver.cuGraphDestroy, self._call(driver.cuStreamEndCapture, self._stream))
            raise
        finally:
            if collects:
                gc.enable()
        graph = self._call(driver.cuStreamEndCapture, self._stream)
        try:
            self._graph = self._call(driver.cuGraphInstantiate, graph, 0)
        finally:
            self._call(driver.cuGraphDestroy, graph)

    def replay(self) -> None:
        """Launch the recorded work again, on the same stream."""
        self._call(self._driver.cuGraphLaunch, self._graph, self._stream)

    def _call(self, function: Callable, *arguments: Any) -> Any:
        status, *result = function(*arguments)
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise DriverError(f"CUDA: {function.__name__} failed with {status.name}")
        return result[0] if result else None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the driver may be gone when the process ends
            self._driver.cuGraphExecDestroy(self._graph)


def is_recording(stream: Any) -> bool:
    """True if launches on a stream are recorded in a graph at present, rather than made."""
    from cuda.bindings import driver

    _, status = driver.cuStreamIsCapturing(int(stream.handle))
    return bool(status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)


def milliseconds(work: Callable[[], Any], repeats: int = 5, inner: int = 1, stream: Any = 0) -> float:
    """Median of :func:`times`."""
    return float(np.median(times(work, repeats, inner, stream)))


def times(
    work: Callable[[], Any],
    repeats: int = 5,
    inner: int = 1,
    stream: Any = 0,
    before: Callable[[], Any] = lambda: None,
) -> list[float]:
    """Times per call of ``work()`` in ms, by CUDA events on its stream: ``repeats`` measurements of ``inner`` calls each,
    after one warm-up call (which also compiles). ``before()`` is called before each measurement, and not timed."""
    work()
    cuda.synchronize()
    found = []
    for _ in range(repeats):
        start, stop = cuda.event(), cuda.event()
        before()
        start.record(stream)
        for _ in range(inner):
            work()
        stop.record(stream)
        stop.synchronize()
        found.append(cuda.event_elapsed_time(start, stop) / inner)
    return found
