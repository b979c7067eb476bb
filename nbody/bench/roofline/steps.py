"""Where the time of a whole step goes: forces, launches and moves, recording."""

import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from nbody.bench.forces.contestant import EngineContestant
from nbody.bench.forces.problems import Problem
from nbody.bench.timing import seconds
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.state import BLOCKS, Snapshot, frames_per_block

DT = 1e-6
"""A step so short that the bodies stay where they were measured."""

LONG = 0.05
"""Seconds of forces that a timed run of steps has, unless its steps are too many."""

FEWEST, MOST = 3, 1000
"""Steps of a timed run, before they are made a whole number of blocks of frames."""

REPEATS = 3
"""Runs, of which the median counts; one is enough of slow forces."""


@dataclass(frozen=True)
class WholeStep:
    """One leapfrog step as ``nbody run`` makes it.

    Attributes:
        step_seconds: wall time of a step of which nothing is recorded; it is replayed from a graph.
        percent_launch: what of it is no force kernel's time: kick, drift, and the gaps between launches.
        recorded_step_seconds: wall time of a step after which there is the potential too, for the frame's energy, and
            positions and velocities are copied to the host, while the next is computed.
        percent_recording: what of that the potential, the packing and the copies add.
    """

    step_seconds: float
    percent_launch: float
    recorded_step_seconds: float
    percent_recording: float

    @classmethod
    def of(cls, force: float, step: float, recorded: float) -> "WholeStep":
        """From the seconds of a force evaluation and of two kinds of a step. (Noise may make a part look longer than
        the whole; the share of the rest is then 0.)"""
        launch, recording = max(0.0, 1 - force / step), max(0.0, 1 - step / recorded)
        return cls(step, 100 * launch, recorded, 100 * recording)


def whole_step(contestant: EngineContestant, problem: Problem, force: float) -> WholeStep:
    """Measure the steps of an engine on a GPU whose force evaluation takes so many seconds there."""
    engine = contestant.engine(problem.gravity)
    state, leapfrog = engine.load(problem.particles), INTEGRATORS.load("leapfrog")(DT)
    motion = Motion(engine, state)
    at_a_time = frames_per_block(state.count, state.dtype.name)
    steps = -(-int(min(max(LONG / force, FEWEST), MOST)) // at_a_time) * at_a_time
    repeats = REPEATS if steps * force < 2 * LONG else 1

    def replayed() -> None:
        leapfrog.advance(motion, steps)
        state.synchronize(soon=True)

    def recorded() -> None:
        frames: deque[Snapshot] = deque()
        for _ in range(0, steps, at_a_time):
            if len(frames) == BLOCKS * at_a_time:
                for _ in range(at_a_time):
                    frames.popleft().wait().release()
            frames += leapfrog.frames(motion, at_a_time)
        while frames:
            frames.popleft().wait().release()
        state.synchronize(soon=True)

    return WholeStep.of(force, *(_median(run, repeats) / steps for run in (replayed, recorded)))


def _median(run: Callable[[], None], repeats: int) -> float:
    """Seconds of a run that was made twice before, so that its kernels are compiled, then its graphs and buffers made."""
    run()
    run()
    return statistics.median(seconds(run) for _ in range(repeats))
