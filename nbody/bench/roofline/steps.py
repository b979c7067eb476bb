"""The parts of the time of a whole step: forces, launches and moves, recording."""

import statistics
from collections import deque
from collections.abc import Callable
from typing import Any

from nbody.bench.forces.contestant import EngineContestant
from nbody.bench.forces.problems import Problem
from nbody.bench.timing import seconds
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.state import BLOCKS, Snapshot, frames_per_block

DT = 1e-6
"""A time step so short that the bodies hardly move."""

LONG = 0.05
"""Seconds of forces that a timed run of steps has, unless its steps are too many."""

FEWEST, MOST = 3, 1000
"""Steps of a timed run, before they are made a whole number of blocks of frames."""

REPEATS = 3
"""The number of runs, of which the median counts; slow forces need one run only."""


def shares(force: float, step: float, recorded: float) -> dict[str, Any]:
    """The figures of a step, by their names in :class:`~nbody.bench.roofline.row.RooflineRow`, from the seconds of a force
    evaluation and of two kinds of a step. (Noise may make a part look longer than the whole; the rest is then 0.)"""
    return {
        "step_seconds": step,
        "percent_launch": 100 * max(0.0, 1 - force / step),
        "recorded_step_seconds": recorded,
        "percent_recording": 100 * max(0.0, 1 - step / recorded),
    }


def whole_step(contestant: EngineContestant, problem: Problem, force: float) -> dict[str, Any]:
    """Measure the steps of an engine on a GPU; ``force`` is the time of its force evaluation in seconds."""
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

    return shares(force, *(_median(run, repeats) / steps for run in (replayed, recorded)))


def _median(run: Callable[[], None], repeats: int) -> float:
    """Seconds of a run that was made twice before, so that its kernels are compiled, then its graphs and buffers made."""
    run()
    run()
    return statistics.median(seconds(run) for _ in range(repeats))
