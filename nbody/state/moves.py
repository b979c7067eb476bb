"""The moves of bodies of which schemes consist: kick, drift, and the course's Taylor drift."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import numpy as np

from nbody.state.clock import StateClock


class MoveKind(StrEnum):
    """The moves of :class:`StateMoves`, and ``force``, an evaluation between two of them."""

    FORCE = "force"
    KICK = "kick"
    DRIFT = "drift"
    DRIFT_TAYLOR = "drift_taylor"
    END = "end"
    PACK = "pack"


DRIFTS = (MoveKind.DRIFT, MoveKind.DRIFT_TAYLOR)
"""After these no acceleration is current."""

StateMove = tuple[MoveKind, Any]
"""A move and its value: the length of time of a kick or drift; None of ``end``; of ``pack`` the memory that gets a frame,
where a device has such."""


class StateMoves(ABC):
    """Moves the bodies of one state.

    ================ ======================================================================================================
     kick             v += a dt
     drift            x += v dt; the accelerations are out of date afterwards
     drift_taylor     x += v dt + a dt²/2, the course's position update, in float32 rounded once; the accelerations are out
                      of date, but keep their values: the kick that follows uses them
     end              the step is complete
     pack             the bodies at this moment go into the memory of a frame
    ================ ======================================================================================================
    """

    def __init__(self, dtype: np.dtype, clock: StateClock) -> None:
        self._dtype, self._clock = dtype, clock

    @abstractmethod
    def make(self, moves: Iterable[StateMove]) -> None:
        """Make moves, one after the other; a device makes several by one launch."""

    def kick(self, dt: float) -> None:
        """Make one kick."""
        self.make([(MoveKind.KICK, dt)])

    def drift(self, dt: float) -> None:
        """Make one drift."""
        self.make([(MoveKind.DRIFT, dt)])
