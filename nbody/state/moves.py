"""The moves of bodies of which schemes consist: kick, drift, and the course's Taylor drift."""

from abc import ABC, abstractmethod

import numpy as np

from nbody.state.clock import StateClock


class StateMoves(ABC):
    """The moves of the bodies of one state."""

    def __init__(self, dtype: np.dtype, clock: StateClock) -> None:
        self._dtype, self._clock = dtype, clock

    def kick(self, dt: float) -> None:
        """v += a dt."""
        self._kick(self._dtype.type(dt))

    def drift(self, dt: float) -> None:
        """x += v dt. The accelerations are out of date afterwards."""
        self._drift(self._dtype.type(dt))
        self._clock.drift(dt)

    def drift_taylor(self, dt: float) -> None:
        """x += v dt + a dt²/2, the lecture's position update, in float32 rounded once. The accelerations are out of date
        afterwards, but keep their values: the kick that follows uses them."""
        self._drift_taylor(self._dtype.type(dt), self._dtype.type(0.5 * dt * dt))
        self._clock.drift(dt)

    def flush(self) -> None:  # noqa: B027  (moves on the host are made at once)
        """Make the moves that are collected."""

    @abstractmethod
    def _kick(self, dt) -> None: ...

    @abstractmethod
    def _drift(self, dt) -> None: ...

    @abstractmethod
    def _drift_taylor(self, dt, half_dt2) -> None: ...
