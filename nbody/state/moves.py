"""The moves of bodies of which schemes consist: kick, drift, and the course's Taylor drift."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from nbody.state.clock import StateClock

StateMove = tuple[str, Any]
"""A move and its value. ``kick``, ``drift`` and ``drift_taylor`` have a length of time; ``end`` of a step has none; ``pack``
has the memory that gets a frame, where a device has such."""


class StateMoves(ABC):
    """Moves the bodies of one state.

    ================ ======================================================================================================
     kick             v += a dt
     drift            x += v dt; the accelerations are out of date afterwards
     drift_taylor     x += v dt + a dt²/2, the course's position update, in float32 rounded once; the accelerations are out
                      of date, but keep their values: the kick that follows uses them
     end              the step is complete
    ================ ======================================================================================================
    """

    def __init__(self, dtype: np.dtype, clock: StateClock) -> None:
        self._dtype, self._clock = dtype, clock

    @abstractmethod
    def make(self, moves: Iterable[StateMove]) -> None:
        """Make moves, one after the other; a device makes several by one launch."""

    def kick(self, dt: float) -> None:
        """Make one kick."""
        self.make([("kick", dt)])

    def drift(self, dt: float) -> None:
        """Make one drift."""
        self.make([("drift", dt)])
