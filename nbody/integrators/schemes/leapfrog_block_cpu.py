"""The steps of ``leapfrog_block`` for a state in host memory."""

import math
from functools import cache
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.integrators.integrator import Motion
from nbody.integrators.schemes.leapfrog_block_steps import END, BodySteps, body_steps, half_steps


@cache
def step_kernels(dimensions: int) -> BodySteps:
    """The functions of :class:`.BodySteps` for some bodies: ``rows`` instead of i, and a ``scale`` for each body."""
    begin_one, end_one = body_steps(inner, inner(lambda length: math.frexp(length)[1] - 1), dimensions)

    @compute.kernel("cpu")
    def begin(velocity, acceleration, steps, rows, halves, scale):
        for i in rows:
            begin_one(velocity, acceleration, steps, i, halves, scale[i])

    @compute.kernel("cpu")
    def end(velocity, acceleration, steps, rows, halves, scale, now):
        for i in rows:
            end_one(velocity, acceleration, steps, i, halves, scale[i], now)

    return BodySteps(begin, end)


class HostLengths:
    """The lengths of the steps of all bodies in host memory, and the ticks at which they end."""

    def __init__(self, motion: Motion, dt: float, eta: float) -> None:
        gravity, state = motion.engine.gravity, motion.state
        length2: Any = state.values("softening2", copy=False)[0] if gravity.per_species else gravity.length2
        self.state, self._kernels = state, step_kernels(state.dimensions)
        self._steps, self._halves = np.zeros((state.count, 2), np.int32), half_steps(dt, state.dtype)
        self._scale = np.full(state.count, 2 * eta * np.sqrt(np.float64(length2)) / dt**2)

    def begin(self) -> None:
        self._kernels.begin(*self._arrays(np.arange(self.state.count)))

    def next_block(self) -> tuple[int, np.ndarray]:
        block = self._steps[:, END].min()
        return int(block), np.flatnonzero(self._steps[:, END] == block)

    def end(self, rows: np.ndarray, now: int) -> None:
        self._kernels.end(*self._arrays(rows), now)

    def _arrays(self, rows: np.ndarray) -> tuple[Any, ...]:
        state: Any = self.state
        return state.velocity, state.acceleration, self._steps, rows, self._halves, self._scale
