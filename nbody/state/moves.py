"""The moves of bodies of which schemes consist: kick, drift, and the course's Taylor drift.

Each is one or two parts, with a factor f, of a position x, a velocity v, an acceleration a and a term c = a dt²/2:

    kick         v += a f        drift         x += v f         taylor   x += a f
    taylor term  c  = a f        taylor drift  x += v f + c
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from typing import Any

import numpy as np

from nbody.state.clock import Moment, StateClock

NOTHING, KICK, DRIFT, TAYLOR, TAYLOR_TERM, TAYLOR_DRIFT = range(6)


NOT_TURNED = nullcontext()
"""(A context manager that does nothing takes 0.7 µs if Python makes it of a generator.)"""


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


def parts_of(kind: MoveKind, dt: float, dtype: np.dtype) -> list[tuple[int, Any]]:
    """The parts of a kick or a drift over a time dt, and their factors in the state's dtype."""
    real = dtype.type
    if kind != MoveKind.DRIFT_TAYLOR:
        return [(KICK if kind == MoveKind.KICK else DRIFT, real(dt))]
    half = real(0.5 * dt * dt)
    if dtype == np.float32:
        return [(TAYLOR_TERM, half), (TAYLOR_DRIFT, real(dt))]
    return [(DRIFT, real(dt)), (TAYLOR, half)]  # the second rounding is harmless; earlier recordings keep their bits


def moving(add_product: Callable) -> Callable:
    """``make(part, factor, x, v, a, c)``, a part of a move of (N, D) arrays, for Python or to be compiled;
    ``add_product(target, rate, factor)``: target += rate · factor, both of them rounded."""

    def make(part, factor, x, v, a, c):
        if part == KICK:
            add_product(v, a, factor)
        elif part == DRIFT:
            add_product(x, v, factor)
        elif part == TAYLOR:
            add_product(x, a, factor)
        elif part == TAYLOR_TERM:
            c[:] = 0.0
            add_product(c, a, factor)
        elif part == TAYLOR_DRIFT:
            add_product(c, v, factor)
            add_product(x, c, 1.0)

    return make


class Repeats:
    """Makes the steps of one state that are all the same."""

    def make(self, make: Callable[[int], None], steps: int, key: Hashable) -> None:
        """Let ``make`` make a number of steps. A device may record calls once, under ``key``, and replay them: calls with
        the same key do the same, here and in :meth:`nbody.state.StateFrames.snapshots`. With None no two calls do the
        same."""
        make(steps)


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

    Attributes:
        repeats: makes steps that consist of the same moves and evaluations.
    """

    def __init__(self, dtype: np.dtype, clock: StateClock) -> None:
        self._dtype, self._clock, self.repeats = dtype, clock, Repeats()

    @abstractmethod
    def make(self, moves: Iterable[StateMove]) -> None:
        """Make moves, one after the other; a device makes several by one launch."""

    def rehearse(self) -> None:  # noqa: B027
        """Note the kernels of moves, in a rehearsal (:mod:`nbody.compute.compiling.precompile`)."""

    def turned(self, turns: bool) -> AbstractContextManager[None]:
        """Inside this block time runs the other way, if it ``turns``: v is -v and t is -t. So a scheme that makes steps
        forward makes them back in time."""
        return self._turned() if turns else NOT_TURNED

    @contextmanager
    def _turned(self) -> Iterator[None]:
        self.turn()
        try:
            yield
        finally:
            self.turn()

    def turn(self) -> None:
        """Turn all velocities round, and let time run the other way: t becomes -t. A second turn is the way back, bit for
        bit. What is current stays so: accelerations are those of positions (and of even powers of velocities)."""
        self._negate_velocities()
        step, time, origin, within = self._clock.moment
        self._clock.set(Moment(step, -time, -origin, within))

    @abstractmethod
    def _negate_velocities(self) -> None: ...

    def kick(self, dt: float) -> None:
        """Make one kick."""
        self.make([(MoveKind.KICK, dt)])

    def drift(self, dt: float) -> None:
        """Make one drift."""
        self.make([(MoveKind.DRIFT, dt)])
