"""Schemes that are tables of moves: one loop makes the steps of all of them, on any engine."""

from typing import ClassVar, NamedTuple

from nbody.integrators.integrator import FixedStep, Motion
from nbody.state import Want


class Move(NamedTuple):
    """One move of a step: ``force``, ``kick``, ``drift`` or ``drift_taylor``, over ``fraction`` of the time step."""

    kind: str
    fraction: float = 1.0


FORCE = Move("force")
"""Compute the accelerations of the present positions; costs nothing if they are current."""


def leapfrogs(*fractions: float) -> tuple[Move, ...]:
    """The moves of kick-drift-kick steps over fractions of the time step, one after the other, neighbouring kicks merged
    (a composition of leapfrogs, Yoshida 1990)."""
    moves = [FORCE, Move("kick", fractions[0] / 2)]
    for this, following in zip(fractions, (*fractions[1:], 0.0), strict=True):
        moves += [Move("drift", this), FORCE, Move("kick", (this + following) / 2)]
    return tuple(moves)


def leapfrogs_from_drifts(*fractions: float) -> tuple[Move, ...]:
    """The same for drift-kick-drift steps; neighbouring drifts are merged."""
    moves = [Move("drift", fractions[0] / 2)]
    for this, following in zip(fractions, (*fractions[1:], 0.0), strict=True):
        moves += [FORCE, Move("kick", this), Move("drift", (this + following) / 2)]
    return tuple(moves)


class MoveTable(FixedStep):
    """An integrator that is a table of moves.

    Attributes:
        moves: the moves of one step, in order.
    """

    moves: ClassVar[tuple[Move, ...]]
    _last_force: ClassVar[int]

    def __init_subclass__(cls) -> None:
        kinds = [move.kind for move in cls.moves]
        cls._last_force = max(k for k, kind in enumerate(kinds) if kind == "force")
        if not any(kind.startswith("drift") for kind in kinds[cls._last_force :]):
            cls.leaves = Want.ACCELERATION
        cls.evaluations = cls._passes(bool(cls.leaves))

    def step(self, motion: Motion, want: Want = Want.ACCELERATION) -> None:
        # Schemes that end with a force evaluation compute ``want`` in it, so that a recorded frame needs no further
        # pass over the pairs. Other schemes evaluate once more, and their next step begins with the result.
        state = motion.state
        for k, (kind, fraction) in enumerate(self.moves):
            if kind == "force":
                motion.evaluate(want if self.leaves and k == self._last_force else Want.ACCELERATION)
            else:
                getattr(state, kind)(fraction * self.dt)
        if want is not Want.ACCELERATION:
            motion.evaluate(want)

    def work(self, motion: Motion, steps: int, want: Want = Want.ACCELERATION) -> int:
        if not steps:
            return 0
        engine, state = motion
        force = engine.work(state)
        pairs = (self._passes(bool(state.current)) + (steps - 1) * self.evaluations) * force
        if want is Want.ACCELERATION:
            return pairs
        return pairs + engine.work(state, want) - (force if self.leaves else 0)

    @classmethod
    def _passes(cls, current: bool) -> int:
        """Force evaluations of a step; ``current``: the accelerations are current when it begins."""
        count = 0
        for kind, _ in cls.moves:
            if kind == "force":
                count += not current
                current = True
            elif kind.startswith("drift"):
                current = False
        return count
