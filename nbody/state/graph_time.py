"""The time of forces that depend on it, on a GPU: as a number, or from the steps that a replayed graph has made before.

A CUDA graph repeats the arguments of its launches. So a launch in a graph gets the number of steps since the graph's start
and the drifts since the last step, which are the same in every replay; the step at which a replay starts is in the device's
memory. The arithmetic is that of :attr:`nbody.state.clock.StateClock.now`, operation by operation, so the bits are the same.
"""

from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.state.clock import Moment, StateClock

MOST_DRIFTS = 8
"""The most drifts per step of a graph."""


class GraphTime(NamedTuple):
    """The arguments of :func:`time_of`.

    Attributes:
        clock: (1,) int64 on the device, the step at which the graph starts.
        made: steps that the graph has made before.
        origin, dt: the time of step 0, and of a step; without a graph the time itself, and 0.
        drifts: the lengths of the drifts since the last step; zeros in place of missing ones.
    """

    clock: Any
    made: np.int64
    origin: np.float64
    dt: np.float64
    drifts: tuple[np.float64, ...]


class DeviceClock(StateClock):
    """The clock of a state on a GPU.

    Attributes:
        recording: the steps that were :attr:`made` when the recording of a graph began; None if none is recorded.
        drifts: the drifts since the last step.
    """

    def __init__(self, time: float) -> None:
        self.drifts = list[float]()
        super().__init__(time)
        self.recording: int | None = None
        self._start = cuda.to_device(np.zeros(1, np.int64))

    def set(self, moment: Moment) -> None:
        super().set(moment)
        self.drifts = []

    def begin_steps(self, dt: float) -> None:
        super().begin_steps(dt)
        self.drifts = []

    def end_steps(self, steps: int = 1) -> None:
        super().end_steps(steps)
        self.drifts = []

    def drift(self, dt: float) -> None:
        super().drift(dt)
        self.drifts.append(dt)

    def graph_time(self) -> GraphTime:
        """The time, as kernels take it."""
        made, origin, dt, drifts = 0, self.now, 0.0, list[float]()
        if self.recording is not None:
            made, origin, dt, drifts = self.made - self.recording, self.origin, self.dt, self.drifts
        assert len(drifts) <= MOST_DRIFTS
        padded = (*drifts, *[0.0] * (MOST_DRIFTS - len(drifts)))
        return GraphTime(self._start, np.int64(made), np.float64(origin), np.float64(dt), tuple(map(np.float64, padded)))

    def set_start(self, stream: Any) -> None:
        """Set the step at which a graph starts, if a force depends on the time."""
        if self.time_dependent:
            set_clock[1, 32, stream](self._start, np.int64(self.step + self.made))


@compute.device_function
def time_of(clock, made, origin, dt, drifts):
    """origin + (clock + made) dt, and the drifts added one after the other."""
    time = compute.add(origin, compute.multiply(np.float64(clock[0] + made), dt))
    for drift in drifts:
        time = compute.add(time, drift)
    return time


@compute.kernel("gpu")
def set_clock(clock, step):
    """Set the step at which a graph starts."""
    if cuda.grid(1) == 0:
        clock[0] = step
