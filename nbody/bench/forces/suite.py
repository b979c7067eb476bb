"""The force suite: every engine, precision and N on the same bodies; each result is checked before it is timed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from nbody.bench.forces import budget
from nbody.bench.forces.accuracy import Judge
from nbody.bench.forces.budget import Plan, about, makes_lecture_run
from nbody.bench.forces.contestant import ALL_CORES, ONE_CORE, Contestant, EngineContestant
from nbody.bench.forces.lecture import LectureRun
from nbody.bench.forces.problems import LECTURE_STEPS, Problem, cluster, lecture_disk
from nbody.bench.forces.row import ForceRow, how_wrong
from nbody.bench.timing import FIRST_COUNTS, Rival, Timing, in_turns, on_device

REFERENCE = "reference"

Notify = Callable[[str], None]

Row = TypeVar("Row", bound=ForceRow)


def measure(
    contestants: Sequence[Contestant], counts: Sequence[int], notify: Notify = lambda _: None
) -> list[ForceRow]:
    """Rows of every contestant at every N, with speed-ups. ``notify`` gets a line before each measurement, which says how
    long the rest will take, once that is known."""
    rows: list[ForceRow] = []
    for number, contestant in enumerate(contestants, 1):
        notify(f"compiling {contestant.name} {contestant.precision} ({number} of {len(contestants)})")
        contestant.warm_up(max(counts))
        contestant.release()
    plan = Plan(contestants, counts)
    for count in sorted(counts):
        bench = _AtCount(count, plan, notify)
        on_cpu = [c for c in contestants if c.backend == "cpu"]
        rows += bench.rows(on_cpu)  # together, so that they can take turns
        for contestant in contestants:
            if contestant.backend == "gpu":
                rows += bench.rows([contestant])
    return with_speedups(rows)


def checked(
    kind: type[Row],
    contestant: Contestant,
    problem: Problem,
    judge: Judge,
    notify: Notify = lambda _: None,
    longest: float | None = None,
) -> Row:
    """The row, of a kind, of a contestant that has computed a problem's forces: with its error, and no time yet; or
    with the reason why it is left out, if it would take more than ``longest`` (:func:`~nbody.bench.forces.budget.longest`)
    seconds."""
    c, count = contestant, problem.particles.count
    row = kind(c.name, c.device, c.backend, c.precision, c.threads, count, compile_seconds=c.compile_s)
    expected = c.expected(count)
    if expected > (budget.longest(c, c.measured) if longest is None else longest):
        return row.noted(f"left out: one evaluation would take about {expected:.0f} s")
    notify(f"N = {count}: checking {c.name} {c.precision}")
    c.load(problem)
    c.timed()
    bound = judge.bound(c.precision, c.condition(problem, judge.rows))
    return row.judged(judge.error(c.acceleration(), bound), bound)


class _AtCount:
    """The measurements at one N of a plan."""

    def __init__(self, count: int, plan: Plan, notify: Notify) -> None:
        self._count, self._plan, self._to_user = count, plan, notify
        self._cluster = cluster(count)
        self._cluster_judge = Judge(self._cluster)

    @cached_property
    def _disk(self) -> Problem:
        return lecture_disk(self._count)

    @cached_property
    def _disk_judge(self) -> Judge:
        return Judge(self._disk)

    def _notify(self, line: str) -> None:
        self._to_user(f"about {about(self._plan.seconds_left())} left, {line}")

    def rows(self, group: Sequence[Contestant]) -> list[ForceRow]:
        """Check each of the group, time those that are right in turns, then their lecture runs."""
        rows = [checked(ForceRow, c, self._cluster, self._cluster_judge, self._notify) for c in group]
        right = [k for k, row in enumerate(rows) if row.error is not None and not row.wrong]
        if right:
            names = ", ".join(dict.fromkeys(group[k].name for k in right))
            self._notify(f"N = {self._count}: timing {names}")
        for k, time in zip(right, _times([group[k] for k in right], self._count), strict=True):
            rows[k] = rows[k].timed(time)
            group[k].learn(self._count, time.best)
            group[k].measured = True
        for contestant in group:
            contestant.release()
            self._plan.timed(contestant, self._count)
        return [self._with_lecture(c, row) for c, row in zip(group, rows, strict=True)]

    def _with_lecture(self, contestant: Contestant, row: ForceRow) -> ForceRow:
        """The row with its lecture run, checked too, if it is to have one."""
        self._plan.done(contestant, self._count)
        if not (row.seconds and makes_lecture_run(contestant, self._count)):
            return row
        expected = LECTURE_STEPS * contestant.expected(self._count)
        if expected > budget.LONGEST_RUN:
            return row.noted(f"lecture run left out: it would take about {expected:.0f} s")
        self._notify(f"N = {self._count}: lecture run by {contestant.name} {contestant.precision}")
        assert isinstance(contestant, EngineContestant)
        run = LectureRun(contestant, self._disk)
        judge = self._disk_judge
        error = run.error(judge, judge.bound(contestant.precision, contestant.condition(self._disk, judge.rows)))
        if error.excess > 1:
            return row.noted(how_wrong("forces on the lecture's disc", error), True)
        return replace(row, lecture_seconds=run.timing().median)


def _times(group: Sequence[Contestant], count: int) -> list[Timing]:
    """Times of an evaluation by each, all of one backend, loaded and run once."""
    if group and group[0].backend == "gpu":
        return [on_device(c.evaluate, c.expected(count)) for c in group]
    firsts = [(c.took,) if c.took > FIRST_COUNTS else () for c in group]
    return in_turns(
        [Rival(c.evaluate, c.expected(count), c.running, first) for c, first in zip(group, firsts, strict=True)]
    )


def with_speedups(rows: Iterable[ForceRow]) -> list[ForceRow]:
    """The rows, with their speeds relative to the baselines among them."""
    rows = list(rows)

    def ratio(row: ForceRow, name: str, precision: str) -> float | None:
        speeds = {
            base.particles: base.interactions_per_s
            for base in rows
            if (base.name, base.precision) == (name, precision) and base.particles <= row.particles
            if base.interactions_per_s
        }
        return row.interactions_per_s / speeds[max(speeds)] if speeds and row.interactions_per_s else None

    def complete(row: ForceRow) -> ForceRow:
        precision = "float32" if row.precision == "mixed" else row.precision  # what the cpu engine has
        return replace(
            row,
            speedup=ratio(row, ONE_CORE, precision),
            speedup_all_cores=ratio(row, ALL_CORES, precision),
            speedup_reference=ratio(row, REFERENCE, "float64"),
        )

    return [complete(row) for row in rows]
