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
        step_seconds: wall time of a step of which nothing is recorded.
        percent_launch: what of it is no force kernel's time: kick, drift, and the gaps between launches.
        recorded_step_seconds: wall time of a step after which positions and velocities are copied to the host, while
            the next is computed.
        percent_copies: what of it recording adds: packing, copies, and launches that are not replayed from a graph.
    """

    step_seconds: float
    percent_launch: float
    recorded_step_seconds: float
    percent_copies: float

    @classmethod
    def of(cls, force: float, step: float, recorded: float) -> "WholeStep":
        """From the seconds of a force evaluation, of a step, and of a step with its recording. (Noise may make a part
        look faster than the whole; its share is then 0.)"""
        return cls(step, 100 * max(0.0, 1 - force / step), recorded, 100 * max(0.0, 1 - step / recorded))


def whole_step(contestant: EngineContestant, problem: Problem, force: float) -> WholeStep:
    """Measure the steps of an engine on a GPU whose force evaluation takes so many seconds there."""
    engine, scheme = contestant.engine(problem.gravity), INTEGRATORS.load("leapfrog")
    state = engine.load(problem.particles)
    steps = int(min(max(LONG / force, FEWEST), MOST))

    def plain() -> None:
        advance_many(scheme, engine, state, DT, steps)
        state.synchronize()

    def recorded() -> None:
        frames: deque[Snapshot] = deque()
        for _ in range(steps):
            advance(scheme, engine, state, DT)
            frames.append(state.snapshot())
            if len(frames) > ON_THE_WAY:
                frames.popleft().wait().release()
        while frames:
            frames.popleft().wait().release()
        state.synchronize()

    repeats = REPEATS if steps * force < 2 * LONG else 1
    return WholeStep.of(force, _median(plain, repeats) / steps, _median(recorded, repeats) / steps)


def _median(run: Callable[[], None], repeats: int) -> float:
    """Seconds of a run that was made once before, so that its kernels are compiled, its graph and buffers made."""
    run()
    return statistics.median(seconds(run) for _ in range(repeats))
