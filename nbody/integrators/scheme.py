"""A scheme is a table of moves with coefficients; :func:`advance` makes one step of any of them, on any backend."""

from dataclasses import dataclass

from nbody.forces.engine import Engine
from nbody.state import Potential, Snapshot, State


@dataclass(frozen=True)
class Move:
    """One move of a step: ``force``, ``kick``, ``drift`` or ``drift_taylor``, over ``fraction`` of the time step."""

    kind: str
    fraction: float = 1.0


FORCE = Move("force")
"""Make the accelerations belong to the positions. Free when the last step already did."""


@dataclass(frozen=True)
class Scheme:
    """An integrator.

    Attributes:
        order: the error of a run of given length falls as dt to this power.
        moves: what one step does, in order.
        source: author and year.
    """

    order: int
    moves: tuple[Move, ...]
    source: str

    @property
    def forces_at_end(self) -> bool:
        """True if a step ends with accelerations that belong to its final positions."""
        kinds = [move.kind for move in self.moves]
        last_force = len(kinds) - 1 - kinds[::-1].index("force")
        return not any(kind.startswith("drift") for kind in kinds[last_force:])


def advance(scheme: Scheme, engine: Engine, state: State, dt: float, energy: bool = False) -> None:
    """Move the state on by one step of ``dt``.

    With ``energy``, the potential energy belongs to the final positions too: schemes that end on a force evaluation get it
    from that one (a recorded frame then costs no extra pass over the pairs); the others are evaluated once more, and
    their next step begins with that evaluation done.
    """
    wanted = Potential.ENERGY if energy else Potential.NONE
    last_force = max(k for k, move in enumerate(scheme.moves) if move.kind == "force")
    for k, move in enumerate(scheme.moves):
        if move.kind == "force":
            engine.evaluate(state, wanted if scheme.forces_at_end and k == last_force else Potential.NONE)
        else:
            getattr(state, move.kind)(move.fraction * dt)
    if energy:
        engine.evaluate(state, wanted)


def passes(scheme: Scheme, engine: Engine, state: State, energy: bool = False) -> int:
    """How often :func:`advance` will go over all pairs, from the state as it is now."""
    fresh, count = state.fresh, 0
    for move in scheme.moves:
        if move.kind == "force":
            count += not fresh
            fresh = True
        elif move.kind.startswith("drift"):
            fresh = False
    return count + (engine.potential_apart + (not fresh) if energy else 0)


def advance_many(scheme: Scheme, engine: Engine, state: State, dt: float, count: int) -> None:
    """Make ``count`` steps of which nothing is recorded."""
    state.repeat(lambda: advance(scheme, engine, state, dt), count, key=(scheme, dt))


def advance_to_frames(
    scheme: Scheme, engine: Engine, state: State, dt: float, frames: int = 1, every: int = 1
) -> list[Snapshot]:
    """Make so many frames, :func:`~nbody.state.frames_at_a_time` at most, each ``every`` steps after the one before.
    Returns their snapshots."""

    def steps() -> None:
        for _ in range(every - 1):
            advance(scheme, engine, state, dt)
        advance(scheme, engine, state, dt, energy=True)

    return state.snapshots(steps, frames, key=(scheme, dt, every))
