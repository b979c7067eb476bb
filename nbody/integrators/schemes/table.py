"""Schemes that are tables of moves: one loop makes the steps of all of them, on any engine."""

import cmath
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nbody.diagnostics.observables import OF_TANGENTS
from nbody.forces.engine import Engine
from nbody.forces.problem import Problem, Refusal
from nbody.integrators.facts import Move, SchemeFacts
from nbody.integrators.few_bodies import in_one_call_or_fields
from nbody.integrators.integrator import FixedStep, Motion
from nbody.state import Frame, Outputs, State
from nbody.state.moves import DRIFTS, MoveKind, StateMove
from nbody.state.outputs import missing

if TYPE_CHECKING:
    from nbody.integrators.schemes.table_few import FewSteps

FORCE = Move(MoveKind.FORCE)
"""Compute the accelerations of the present positions; costs nothing if they are current."""


def leapfrogs(*fractions: float) -> tuple[Move, ...]:
    """The moves of kick-drift-kick steps over fractions of the time step, one after the other, neighbouring kicks merged
    (a composition of leapfrogs, Yoshida 1990)."""
    moves = [FORCE, Move(MoveKind.KICK, fractions[0] / 2)]
    for this, following in zip(fractions, (*fractions[1:], 0.0), strict=True):
        moves += [Move(MoveKind.DRIFT, this), FORCE, Move(MoveKind.KICK, (this + following) / 2)]
    return tuple(moves)


def leapfrogs_from_drifts(*fractions: float) -> tuple[Move, ...]:
    """The same for drift-kick-drift steps; neighbouring drifts are merged."""
    moves = [Move(MoveKind.DRIFT, fractions[0] / 2)]
    for this, following in zip(fractions, (*fractions[1:], 0.0), strict=True):
        moves += [FORCE, Move(MoveKind.KICK, this), Move(MoveKind.DRIFT, (this + following) / 2)]
    return tuple(moves)


def table(moves: tuple[Move, ...], order: int, source: str, power_of_dt: int = 1) -> SchemeFacts:
    """The facts of a scheme that makes ``moves`` in each step. Raises ValueError: they are not of the ``order``."""
    if (found := order_for_oscillator(moves)) < order - 0.5:
        raise ValueError(f"these moves have order {found:.1f} for an oscillator, and order {order} is claimed")
    forces = [k for k, move in enumerate(moves) if move.kind == MoveKind.FORCE]
    moved_after = any(move.kind in DRIFTS for move in moves[forces[-1] :])
    leaves = Outputs.NOTHING if moved_after else Outputs.ACCELERATION
    return SchemeFacts(
        order,
        source,
        evaluations=_evaluations(moves, bool(leaves)),
        leaves=leaves,
        power_of_dt=power_of_dt,
        moves=moves,
        tangents=(),
        notes=in_one_call_or_fields,
    )


def order_for_oscillator(moves: tuple[Move, ...]) -> float:
    """The order p at which one step of moves follows x'' = -x: its error is proportional to h^(p+1). A scheme of order p has
    at least this one, and one whose fractions do not add up to a step has order 0."""

    def error(h: float) -> float:
        largest = 0.0
        for x, v in ((1.0, 0.0), (0.0, 1.0)):
            exact, a = complex(x, -v) * cmath.exp(1j * h), 0.0
            for kind, fraction in moves:
                dt = fraction * h
                if kind == MoveKind.FORCE:
                    a = -x
                elif kind == MoveKind.KICK:
                    v += a * dt
                else:
                    x += v * dt + (a * dt * dt / 2 if MoveKind(kind) == MoveKind.DRIFT_TAYLOR else 0.0)
            largest = max(largest, abs(complex(x, -v) - exact))
        return max(largest, 1e-18)

    return math.log2(error(0.2) / error(0.1)) - 1


def _evaluations(moves: tuple[Move, ...], current: bool) -> int:
    """Force evaluations of a step; ``current``: the accelerations are current when it begins."""
    count = 0
    for kind, _ in moves:
        if kind == MoveKind.FORCE:
            count += not current
            current = True
        elif kind in DRIFTS:
            current = False
    return count


class MoveTable(FixedStep):
    """An integrator that is a table of moves, the ``moves`` of its facts."""

    _state: State | None = None
    _compiled: "FewSteps | None" = None
    """What moves this state."""

    @classmethod
    def supports(cls, engine: type[Engine] | Engine, problem: Problem) -> str:
        reason, most = super().supports(engine, problem), engine.can.few
        if reason or not problem.of_scheme.tangents:
            return reason
        if not most:
            return Refusal("this scheme moves tangent vectors with engine cpu alone", "engine", "choose engine cpu")
        if problem.particles > most or problem.gravity.per_species:
            reason = f"this scheme moves tangent vectors of at most {most} bodies, with one softening length"
            return Refusal(reason, "record.observables", f"remove {' and '.join(OF_TANGENTS)}")
        return ""

    def start(self, motion: Motion) -> None:
        if self._tangents.count:
            assert self._few(motion)  # moves them; supports() has seen to it
            self._tangents.begin(motion.host)

    def _make(self, motion: Motion, steps: int, every: int = 1, packings: Sequence[Any] = ()) -> None:
        # All moves between two force evaluations are made together, those of the next step too: one launch on a GPU.
        state, together = motion.state, list[StateMove]()
        last_force = max(k for k, move in enumerate(self.facts.moves) if move.kind == MoveKind.FORCE)

        def evaluate(outputs: Outputs) -> None:
            if any(kind in DRIFTS for kind, _ in together) or missing(outputs, state.clock.current):
                state.moves.make(together)
                together.clear()
                motion.evaluate(outputs)

        for step in range(1, steps + 1):
            is_frame = bool(packings) and step % every == 0
            outputs = state.frames.outputs if is_frame else Outputs.ACCELERATION
            for k, (kind, fraction) in enumerate(self.facts.moves):
                # Schemes that end with a force evaluation compute the outputs of a frame in it, so that it needs no further
                # pass over the pairs. Other schemes evaluate once more, and their next step begins with the result.
                if kind == MoveKind.FORCE:
                    evaluate(outputs if k == last_force and self.facts.leaves else Outputs.ACCELERATION)
                else:
                    together.append((kind, fraction * self.dt))
            if is_frame:
                evaluate(outputs)
            together.append((MoveKind.END, None))
            if is_frame and packings[step // every - 1] is not None:
                together.append((MoveKind.PACK, packings[step // every - 1]))
        state.moves.make(together)

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        if few := self._few(motion):
            few.make(steps, self.dt)
        else:
            super()._advance(motion, steps, until)

    def frames(self, motion: Motion, count: int = 1, every: int = 1) -> list[Frame]:
        few = self._few(motion)
        if few is None:
            return super().frames(motion, count, every)
        found = []
        for _ in range(count):
            few.make(every, self.dt)
            motion.evaluate(motion.state.frames.outputs)
            found.append(motion.state.frames.snapshot())
        return found

    def _few(self, motion: Motion) -> "FewSteps | None":
        """What makes the steps of few bodies in one compiled call; None if each move is a call."""
        if self._state is not motion.state:
            self._state, self._compiled = motion.state, None
            if in_one_call_or_fields(motion):
                from nbody.integrators.schemes.table_few import FewSteps  # imports Numba

                self._compiled = FewSteps(motion, self.facts, self._tangents)
        return self._compiled
