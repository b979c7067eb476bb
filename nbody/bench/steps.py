"""Where the time of a whole step goes: forces, launches and moves, recording."""

import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from nbody.bench.contestant import EngineContestant
from nbody.bench.problems import Problem
from nbody.bench.timing import seconds
from nbody.integrators import INTEGRATORS
from nbody.integrators.scheme import advance, advance_many
from nbody.state import Snapshot

DT = 1e-6
"""A step so short that the bodies stay where they were measured."""

LONG = 0.05
"""Seconds of forces that a timed run of steps has, unless its steps are too many."""

FEWEST, MOST = 3, 1000
"""Steps of a timed run."""

ON_THE_WAY = 4
"""Frames on their way to the host at a time, as in a run whose disk keeps up."""

REPEATS = 3
"""Runs, of which the median counts; one is enough of slow forces."""


@dataclass(frozen=True)
class WholeStep:
    """One leapfrog step as ``nbody run`` makes it.

    Attributes:
        step_seconds: wall time of a step of which nothing is recorded; it is replayed from a graph.
        percent_launch: what of it is no force kernel's time: kick, drift, and the gaps between launches.
        launched_step_seconds: wall time of a step that Python launches, as it does when every step is recorded.
        recorded_step_seconds: wall time of such a step after which positions and velocities are copied to the host,
            while the next is computed.
        percent_copies: what of that the packing and the copies add.
    """

    step_seconds: float
    percent_launch: float
    launched_step_seconds: float
    recorded_step_seconds: float
    percent_copies: float

    @classmethod
    def of(cls, force: float, step: float, launched: float, recorded: float) -> "WholeStep":
        """From the seconds of a force evaluation and of three kinds of a step. (Noise may make a part look longer than
        the whole; the share of the rest is then 0.)"""
        launch, copies = max(0.0, 1 - force / step), max(0.0, 1 - launched / recorded)
        return cls(step, 100 * launch, launched, recorded, 100 * copies)


def whole_step(contestant: EngineContestant, problem: Problem, force: float) -> WholeStep:
    """Measure the steps of an engine on a GPU whose force evaluation takes so many seconds there."""
    engine, scheme = contestant.engine(problem.gravity), INTEGRATORS.load("leapfrog")
    state = engine.load(problem.particles)
    steps = int(min(max(LONG / force, FEWEST), MOST))
    repeats = REPEATS if steps * force < 2 * LONG else 1

    def replayed() -> None:
        advance_many(scheme, engine, state, DT, steps)
        state.synchronize(soon=True)

    def launched() -> None:
        for _ in range(steps):
            advance(scheme, engine, state, DT)
        state.synchronize(soon=True)

    def recorded() -> None:
        frames: deque[Snapshot] = deque()
        for _ in range(steps):
            advance(scheme, engine, state, DT)
            frames.append(state.snapshot())
            if len(frames) > ON_THE_WAY:
                frames.popleft().wait().release()
        while frames:
            frames.popleft().wait().release()
        state.synchronize(soon=True)

    return WholeStep.of(force, *(_median(run, repeats) / steps for run in (replayed, launched, recorded)))


def _median(run: Callable[[], None], repeats: int) -> float:
    """Seconds of a run that was made once before, so that its kernels are compiled, its graph and buffers made."""
    run()
    return statistics.median(seconds(run) for _ in range(repeats))
