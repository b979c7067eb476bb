"""The time of forces that depend on it, on a GPU: as a number, or from the steps that a replayed graph has made before.

A CUDA graph repeats the arguments of its launches. So a launch in a graph gets the number of steps since the graph's start
and the drifts since the last step, which are the same in every replay; the step at which a replay starts is in the device's
memory. The arithmetic is that of :attr:`nbody.state.State.now`, operation by operation, so the bits are the same.
"""

from typing import Any, NamedTuple

import numpy as np

from nbody import gpu
from nbody.gpu import cuda

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


def moment(clock: Any, made: int, origin: float, dt: float, drifts: list[float]) -> GraphTime:
    """The moment after these steps and drifts."""
    assert len(drifts) <= MOST_DRIFTS
    padded = (*drifts, *[0.0] * (MOST_DRIFTS - len(drifts)))
    return GraphTime(clock, np.int64(made), np.float64(origin), np.float64(dt), tuple(map(np.float64, padded)))


@gpu.device_function
def time_of(clock, made, origin, dt, drifts):
    """origin + (clock + made) dt, and the drifts added one after the other."""
    time = gpu.add(origin, gpu.multiply(np.float64(clock[0] + made), dt))
    for drift in drifts:
        time = gpu.add(time, drift)
    return time


@gpu.kernel
def set_clock(clock, step):
    """Set the step at which a graph starts."""
    if cuda.grid(1) == 0:
        clock[0] = step
