"""The force suite: every engine, precision and N on the same bodies; each result is checked before it is timed."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from nbody.bench import Notify
from nbody.bench.columns import ratio
from nbody.bench.forces import lecture
from nbody.bench.forces.competitor import Competitor
from nbody.bench.forces.problems import LECTURE, LECTURE_STEPS, Judge, cluster, lecture_disk
from nbody.bench.forces.rows import ALL_CORES, ONE_CORE, EvaluationRow, ForceRow, LectureRow, TreeRow
from nbody.bench.timing import FIRST_COUNTS, TimedCall, Timing, in_turns, on_device
from nbody.forces.problem import Problem
from nbody.law import Gravity

Kind = TypeVar("Kind", bound=EvaluationRow)
SpedUp = TypeVar("SpedUp", ForceRow, LectureRow)

LONGEST = 10.0
"""An evaluation that would take longer than this (in seconds) is left out."""

LONGEST_AGAIN = 2.0
"""The limit for a CPU engine that was measured with fewer bodies, because its rate is then nearly known. (Sixteen cores with
AVX-512, N from 20480 to 262144: float32 55 to 76e9 interactions/s, float64 25 to 28e9, one core 7.2 to 7.7e9 and 2.7e9.)"""

LONGEST_RUN = 3.0
"""A lecture run that would take longer than this (in seconds) is left out."""


def measure(
    competitors: Sequence[Competitor], counts: Sequence[int], notify: Notify = lambda _: None
) -> list[EvaluationRow]:
    """Rows of every competitor at every N, with speed-ups. ``notify`` gets a line before each measurement."""
    for number, competitor in enumerate(competitors, 1):
        notify(f"compiling {competitor.name} {competitor.precision} ({number} of {len(competitors)})")
        competitor.warm_up(max(counts))
        competitor.release()
    # Competitors on a CPU are measured together, in turns.
    groups = [[c for c in competitors if c.backend == "cpu"], *([c] for c in competitors if c.backend == "gpu")]
    rows: list[EvaluationRow] = []
    for count in sorted(counts):
        bench = _AtCount(count, notify)
        for group in filter(None, groups):
            rows += bench.rows(group)
    direct = with_speedups([row for row in rows if isinstance(row, ForceRow)])
    runs = with_speedups([row for row in rows if isinstance(row, LectureRow)])
    return [*direct, *runs, *(row for row in rows if isinstance(row, TreeRow))]


def checked(kind: type[Kind], c: Competitor, judge: Judge, notify: Notify, longest: float = LONGEST) -> Kind:
    """The row of a competitor that has computed the forces of the judge's problem: with its error, and no time yet; or with
    the reason why it is left out, if it would take more than ``longest`` seconds."""
    count = judge.count
    row = kind(name=c.name, device=c.device, backend=c.backend, precision=c.precision, threads=c.threads, particles=count)
    if c.speed.expected(count) > longest:
        return row.noted(f"left out: one evaluation would take about {c.speed.expected(count):.0f} s")
    if not c.fits(count):
        return row.noted("left out: it needs more memory than is free")
    notify(f"N = {count}: checking {c.name} {c.precision}")
    c.load(judge.problem)
    c.timed()
    if isinstance(row, TreeRow):
        row = replace(row, accuracy=c.accuracy, interactions=c.interactions())
    bound = c.bound(judge.problem, judge.rows)
    return row.with_error(judge.error(c.acceleration(), bound), bound)


class _AtCount:
    """The measurements at one N."""

    def __init__(self, count: int, notify: Notify) -> None:
        self._count, self._notify = count, notify
        self._cluster = cluster(count)
        self._judges: dict[Gravity, Judge] = {}

    def _judge(self, competitor: Competitor) -> Judge:
        """The judge of the cluster by a competitor's law."""
        law = competitor.gravity
        return self._judges.setdefault(law, Judge(self._cluster._replace(gravity=law)))

    @cached_property
    def _disk(self) -> Judge:
        return Judge(lecture_disk(self._count))

    def rows(self, group: Sequence[Competitor]) -> list[EvaluationRow]:
        """Check each of the group, time those that are right in turns, then their lecture runs."""
        longest = [LONGEST_AGAIN if c.speed.measured and c.backend == "cpu" else LONGEST for c in group]
        rows: list[ForceRow | TreeRow] = [
            checked(TreeRow if c.kind.can.tree else ForceRow, c, self._judge(c), self._notify, most)  # type: ignore[misc]
            for c, most in zip(group, longest, strict=True)
        ]
        right = [k for k, row in enumerate(rows) if row.error is not None and not row.wrong]
        if right:
            names = ", ".join(dict.fromkeys(group[k].name for k in right))
            self._notify(f"N = {self._count}: timing {names}")
        for k, time in zip(right, _times([group[k] for k in right], self._count), strict=True):
            rows[k] = _timed(rows[k], time)
            group[k].speed.learn(self._count, time.best)
            group[k].speed.measured = True
        for competitor in group:
            competitor.release()
        return [each for c, row in zip(group, rows, strict=True) for each in self._with_lecture(c, row)]

    def _with_lecture(self, competitor: Competitor, row: ForceRow | TreeRow) -> list[EvaluationRow]:
        """The row with its lecture run, checked too, if it is to have one; and the row of that run, at the lecture's N."""
        if not (isinstance(row, ForceRow) and row.seconds) or self._count > max(lecture.COUNTS):
            return [row]
        if competitor.kind.supports(Problem(LECTURE, competitor.precision, self._count)):
            return [row]
        expected = LECTURE_STEPS * competitor.speed.expected(self._count)
        if expected > LONGEST_RUN:
            return [row.noted(f"lecture run left out: it would take about {expected:.0f} s")]
        self._notify(f"N = {self._count}: lecture run by {competitor.name} {competitor.precision}")
        run = lecture.lecture_row(competitor, self._disk)
        row = replace(row.noted(run.note, True) if run.wrong else row, lecture_seconds=run.seconds)
        return [row, run] if self._count in lecture.COUNTS else [row]


def _timed(row: ForceRow | TreeRow, time: Timing) -> ForceRow | TreeRow:
    """The row with its time; a tree computes fewer than N² interactions, and counts them."""
    if isinstance(row, ForceRow):
        return row.with_rates(time, row.count**2)
    return replace(row.with_rates(time, row.interactions), gflops=None, particles_per_s=row.count / time.median)


def _times(group: Sequence[Competitor], count: int) -> list[Timing]:
    """Times of an evaluation by each, all of one backend, loaded and run once."""
    if group and group[0].backend == "gpu":
        return [on_device(c.evaluate, c.speed.expected(count)) for c in group]
    firsts = [(c.speed.took,) if c.speed.took > FIRST_COUNTS else () for c in group]
    return in_turns(
        [TimedCall(c.evaluate, c.speed.expected(count), c.running, first) for c, first in zip(group, firsts, strict=True)]
    )


def with_speedups(rows: Sequence[SpedUp]) -> list[SpedUp]:
    """The rows, with their speeds relative to the baselines among them."""

    def speedup(row: SpedUp, name: str, precision: str) -> float | None:
        speeds = {
            base.count: base.interactions_per_s
            for base in rows
            if (base.name, base.precision) == (name, precision) and base.count <= row.count
            if base.interactions_per_s
        }
        return ratio(row.interactions_per_s, speeds[max(speeds)]) if speeds else None

    def complete(row: SpedUp) -> SpedUp:
        precision = "float32" if row.precision == "mixed" else row.precision  # what the cpu engine has
        one, every = speedup(row, ONE_CORE, precision), speedup(row, ALL_CORES, precision)
        numpy = speedup(row, "reference", "float64")
        return replace(row, speedup=one, speedup_all_cores=every, speedup_reference=numpy)

    return [complete(row) for row in rows]
