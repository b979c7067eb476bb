"""The lecture's own measure: ten steps of its disc, from the host to the device and back, and its table of speed-ups."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nbody.bench.forces.accuracy import ForceError, Judge
from nbody.bench.forces.contestant import ALL_CORES, ONE_CORE, EngineContestant
from nbody.bench.forces.problems import LECTURE_DT, LECTURE_STEPS, Problem, lecture_disk
from nbody.bench.timing import FOR_A_SPREAD, Timing, seconds
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.state import State

FEWEST, MOST = 3, 50
"""Runs of which the median counts."""

ENOUGH, PATIENCE = 0.1, 1.0
"""Seconds of runs that are enough, where there are the fewest; and after which no further one begins, if there are the two
that it takes to say how far they differ."""

COUNTS = (10240, 20480)
"""The lecture's N."""

LARGEST = max(COUNTS)
"""The force suite makes the lecture's run up to this N: for more bodies it is ten times a force evaluation, on every engine,
and the kernels that some have for them would be compiled for the disc as well."""

K40C = {
    ("gpu-global", 10240): 96.7e-3,
    ("gpu-tiled", 10240): 74.4e-3,
    ("gpu-global", 20480): 215.7e-3,
    ("gpu-tiled", 20480): 173.6e-3,
}
"""Seconds that the lecture's two kernels took on its Tesla K40c (2013), copies included, by engine and N."""

K40C_RATE = {("gpu-global", 20480): 64.0, ("gpu-tiled", 20480): 79.0}
"""How many times faster that was than one core of the lecture's Core2, where the lecture says so."""


class LectureRun:
    """Ten steps of the disc by one engine."""

    def __init__(self, contestant: EngineContestant, disk: Problem) -> None:
        self._contestant, self._disk = contestant, disk
        self._engine = contestant.engine(disk.gravity)
        self._taylor = INTEGRATORS.load("taylor")(LECTURE_DT)
        self._state: State = self._engine.load(disk.particles)
        self._start: dict[str, np.ndarray] = self._state.arrays()

    def error(self, judge: Judge, bound: np.ndarray | float) -> ForceError:
        """The error of the first force on the disc. (Compiles its kernel on the way.)"""
        with self._contestant.running():
            self._state.restore(self._start)
            self._engine.evaluate(self._state)
            return judge.error(self._state.forces()[0], bound)

    def timing(self) -> Timing:
        """Wall time of: bodies to the device, ten steps, everything back on the host. What is done once for a run of any
        length is done before: compilation, and taking memory."""
        with self._contestant.running():
            # Kernels are compiled; a GPU also records the graphs of its steps.
            for steps in (LECTURE_STEPS, LECTURE_STEPS) if self._engine.device == "gpu" else (1,):
                self._run(steps)
            times: list[float] = []
            while not _enough(times):
                times.append(seconds(self._run))
        return Timing.of(times)

    def _run(self, steps: int = LECTURE_STEPS) -> None:
        self._state.restore(self._start)
        self._taylor.advance(Motion(self._engine, self._state), steps)
        self._state.snapshot().wait().release()


def _enough(times: Sequence[float]) -> bool:
    """True if no further run is needed after those that took so many seconds."""
    runs, total = len(times), sum(times)
    return runs >= MOST or (runs >= FEWEST and total >= ENOUGH) or (runs >= FOR_A_SPREAD and total >= PATIENCE)


@dataclass(frozen=True)
class LectureRow:
    """One engine's run of the lecture's disc.

    Attributes:
        seconds: ten steps with copies, the median; None where its forces were wrong.
        spread: how far the fastest was below that, as a part of it.
        speedup, speedup_all_cores: the lecture's "rate": how many times longer the ``cpu`` engine took on one core, and
            on all.
        k40c_seconds, k40c_speedup: the same on the lecture's card and processor, where the lecture has them.
        error, error_bound: the largest relative error of the first force, and the most that rounding explains.
    """

    name: str
    device: str
    backend: str
    precision: str
    threads: int
    particles: int
    suite: str = "lecture"
    steps: int = LECTURE_STEPS
    seconds: float | None = None
    spread: float | None = None
    interactions_per_s: float | None = None
    speedup: float | None = None
    speedup_all_cores: float | None = None
    k40c_seconds: float | None = None
    k40c_speedup: float | None = None
    error: float | None = None
    error_bound: float | None = None
    wrong: bool = False
    note: str = ""


def table_rows(contestants: Sequence[EngineContestant], counts: Sequence[int] = COUNTS) -> list[LectureRow]:
    """The lecture's table for these contestants, the ``cpu`` engine on one core and on all among them."""
    rows = []
    for count in counts:
        disk = lecture_disk(count)
        judge = Judge(disk)
        rows += _with_rates([_row(contestant, disk, judge) for contestant in contestants])
    return rows


def _row(c: EngineContestant, disk: Problem, judge: Judge) -> LectureRow:
    run, key = LectureRun(c, disk), (c.name, judge.count)
    bound = judge.bound(c.precision, c.condition(disk, judge.rows))
    error = run.error(judge, bound)
    row = LectureRow(
        c.name, c.device, c.backend, c.precision, c.threads, judge.count, k40c_seconds=K40C.get(key),
        k40c_speedup=K40C_RATE.get(key), error=error.maximum, error_bound=float(np.max(bound)),
    )  # fmt: skip
    if error.excess > 1:
        most = f"largest relative error {error.maximum:.1e}, {error.excess:.2g} times what rounding explains"
        return replace(row, wrong=True, note=f"forces are wrong: {most}")
    time = run.timing()
    rate = LECTURE_STEPS * judge.count**2 / time.median
    return replace(row, seconds=time.median, spread=time.spread, interactions_per_s=rate)


def _with_rates(rows: Iterable[LectureRow]) -> list[LectureRow]:
    """The rows of one N, with their speeds relative to the processor's among them."""
    rows = list(rows)
    times = {row.name: row.seconds for row in rows}

    def over(name: str, row: LectureRow) -> float | None:
        base = times.get(name)
        return base / row.seconds if base and row.seconds else None

    return [replace(row, speedup=over(ONE_CORE, row), speedup_all_cores=over(ALL_CORES, row)) for row in rows]
