"""The lecture's benchmark: ten steps of its disc including copies to and from the device, and its table of speed-ups."""

import numpy as np

from nbody.bench.forces.competitor import Competitor
from nbody.bench.forces.problems import LECTURE_DT, LECTURE_STEPS, ForceProblem, Judge
from nbody.bench.forces.rows import LectureRow
from nbody.bench.timing import TimedCall, Timing, in_turns
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.state import State

COUNTS = (10240, 20480)
"""The lecture's N. The force suite makes the lecture's run up to the larger of them: for more bodies it takes ten times as
long as a force evaluation, on every engine."""

K40C = {
    ("gpu-global", 10240): (96.7e-3, None),
    ("gpu-tiled", 10240): (74.4e-3, None),
    ("gpu-global", 20480): (215.7e-3, 64.0),
    ("gpu-tiled", 20480): (173.6e-3, 79.0),
}
"""Seconds that the lecture's two kernels took on its Tesla K40c (2013), copies included, by engine and N; and how many
times faster that was than one core of the lecture's Core2, where the lecture says so."""


class LectureRun:
    """Ten steps of the disc by one engine."""

    def __init__(self, competitor: Competitor, disk: ForceProblem) -> None:
        self._competitor = competitor
        self._engine = competitor.engine(disk.gravity)
        self._taylor = INTEGRATORS.load("taylor")(LECTURE_DT)
        self._state: State = self._engine.load(disk.particles)
        self._start: dict[str, np.ndarray] = self._state.arrays()

    def accelerations(self) -> np.ndarray:
        """The first accelerations on the disc. (Compiles its kernel.)"""
        with self._competitor.running():
            self._state.restore(self._start)
            self._engine.evaluate(self._state)
            return self._state.values("acceleration")[0]

    def timing(self) -> Timing:
        """Wall time of: bodies to the device, ten steps, everything back on the host; excluding compilation and memory
        allocation, which are done once for a run of any length."""
        with self._competitor.running():
            # Kernels are compiled; a GPU also records the graphs of its steps.
            for steps in (LECTURE_STEPS, LECTURE_STEPS) if self._competitor.backend == "gpu" else (1,):
                self._run(steps)
            expected = LECTURE_STEPS * self._competitor.speed.expected(self._state.count)
            return in_turns([TimedCall(self._run, expected)])[0]

    def _run(self, steps: int = LECTURE_STEPS) -> None:
        self._state.restore(self._start)
        self._taylor.advance(Motion(self._engine, self._state), steps)
        self._state.frames.snapshot().wait().release()


def lecture_row(c: Competitor, judge: Judge) -> LectureRow:
    """One engine's run of the judge's disc, checked, then timed."""
    disk = judge.problem
    run, (known, times_faster) = LectureRun(c, disk), K40C.get((c.name, judge.count), (None, None))
    bound = c.bound(disk, judge.rows)
    row = LectureRow(
        name=c.name, device=c.device, backend=c.backend, precision=c.precision, threads=c.threads,
        particles=judge.count, steps=LECTURE_STEPS, k40c_seconds=known, k40c_speedup=times_faster,
    )  # fmt: skip
    row = row.with_error(judge.error(run.accelerations(), bound), bound, "forces on the lecture's disc")
    return row if row.wrong else row.with_rates(run.timing(), LECTURE_STEPS * judge.count**2)
