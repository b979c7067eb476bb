"""The steps of ``leapfrog_block`` for a state in host memory."""

from typing import Any

import numpy as np

from nbody.integrators.integrator import Motion

DEEPEST = 20
"""The shortest step is dt/2^DEEPEST; bodies that ask for a shorter one get this."""

TICKS = 1 << DEEPEST
"""dt in ticks."""


class HostLengths:
    """The lengths of the steps of all bodies in host memory, and the ticks at which they end."""

    def __init__(self, motion: Motion, dt: float, eta: float) -> None:
        self._gravity, self.state, self._dt, self._eta = motion.engine.gravity, motion.state, dt, eta
        self._length = self._end = np.zeros(motion.state.count, np.int64)

    def begin(self) -> None:
        """Begin a step of dt: all bodies choose a length, and are kicked over half of it."""
        rows = np.arange(self.state.count)
        self._length = self._wanted(rows)
        self._end = self._length.copy()
        self._kick(rows)

    def next_block(self) -> tuple[int, Any]:
        """The tick at which the next steps end, and the bodies that make them."""
        block = self._end.min()
        return int(block), np.flatnonzero(self._end == block)

    def end(self, rows: Any, now: int) -> None:
        """End the steps of some bodies, with a kick over half of them; and begin their next ones, unless dt is over."""
        self._kick(rows)
        if now < TICKS:
            self._length[rows] = self._next(self._wanted(rows), self._length[rows], now)
            self._end[rows] = now + self._length[rows]
            self._kick(rows)

    def _wanted(self, rows: np.ndarray) -> np.ndarray:
        """The steps in ticks, powers of two, that accelerations and softening lengths of some bodies suggest."""
        state: Any = self.state
        length2 = state.softening2[rows].astype(np.float64) if self._gravity.per_species else self._gravity.length2
        size = np.linalg.norm(state.acceleration[rows].astype(np.float64), axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.sqrt(2 * self._eta * np.sqrt(length2) / size) / abs(self._dt)
        share = np.where(
            np.isfinite(share) & (share > 0), np.minimum(share, 1.0), 1.0
        )  # a state with NaN is found later
        return np.exp2(np.maximum(np.floor(np.log2(share)), -DEEPEST) + DEEPEST).astype(np.int64)

    def _next(self, wanted: np.ndarray, last: np.ndarray, now: int) -> np.ndarray:
        """The next steps: as wanted if shorter than the last ones; else at most the longest that may begin now."""
        longest = now & -now  # the largest power of two that divides it
        return np.where(wanted <= last, wanted, np.maximum(last, np.minimum(wanted, longest)))

    def _kick(self, rows: np.ndarray) -> None:
        """v += a h/2 for some bodies and their steps."""
        state: Any = self.state
        half = (0.5 * self._dt * (self._length[rows] / TICKS)).astype(state.dtype)
        state.velocity[rows] += state.acceleration[rows] * half[:, None]
