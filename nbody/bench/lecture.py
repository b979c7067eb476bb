"""The lecture's own measure: ten steps of its disc, host to device and back, compilation apart."""

import statistics

from nbody.bench.accuracy import ForceError, Judge
from nbody.bench.contestant import EngineContestant
from nbody.bench.problems import LECTURE_DT, LECTURE_STEPS, Problem
from nbody.bench.timing import seconds
from nbody.integrators import INTEGRATORS
from nbody.integrators.scheme import advance

REPEATS = 3
ENOUGH = 3.0
"""Seconds after which no further repeat begins."""


class LectureRun:
    """Ten steps of the disc by one engine."""

    def __init__(self, contestant: EngineContestant, disk: Problem) -> None:
        self._contestant, self._disk = contestant, disk
        self._engine = contestant.engine(disk.gravity)
        self._scheme = INTEGRATORS.load("taylor")

    def error(self, judge: Judge) -> ForceError:
        """The error of the first force on the disc. (Compiles its kernel on the way.)"""
        with self._contestant.running():
            state = self._engine.load(self._disk.particles)
            self._engine.evaluate(state)
            return judge.error(state.forces()[0])

    def seconds(self) -> float:
        """Median wall time of: bodies to the device, ten steps, everything back on the host."""
        with self._contestant.running():
            self._run(1)  # compiles the moves of the particles
            times = [seconds(self._run)]
            while len(times) < REPEATS and sum(times) < ENOUGH:
                times.append(seconds(self._run))
        return statistics.median(times)

    def _run(self, steps: int = LECTURE_STEPS) -> None:
        state = self._engine.load(self._disk.particles)
        for _ in range(steps):
            advance(self._scheme, self._engine, state, LECTURE_DT)
        state.snapshot()
