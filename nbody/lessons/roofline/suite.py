"""The roofline suite: compares each GPU engine at each N with the bounds of the card.

A row is checked, then timed on the device alone (excluding launches); its bounds are those of
:mod:`nbody.lessons.roofline.bounds` at the card's highest clock, with the issue slots counted in its kernel's machine code.
"""

from collections.abc import Sequence
from dataclasses import replace

from nbody import compute
from nbody.bench.forces.accuracy import Judge
from nbody.bench.forces.competitor import PILOT, Competitor, EngineCompetitor
from nbody.bench.forces.problems import ForceProblem, cluster
from nbody.bench.forces.suite import Notify, checked
from nbody.bench.row import Row
from nbody.bench.timing import FEWEST, Timing
from nbody.lessons.roofline.bounds import InteractionCost, bounded
from nbody.lessons.roofline.kernels import facts_of, pairs_launch, pairs_loop

COUNTS = (1024, 4096, 20480, 65536, 262144)
"""The default N."""

SUSTAINED = 0.5
"""The minimum time of a kernel's measurement in seconds, in which the clock rises."""

MEASUREMENT = 5e-3
"""The minimum length of one measurement in seconds; see :func:`nbody.bench.timing.device_times`."""

MOST = 100
"""The minimum and maximum number of measurements per row."""

LONGEST = 5.0
"""If a row's measurements take longer than this (in seconds), it gets fewer than the minimum."""


def measure(competitors: Sequence[Competitor], counts: Sequence[int], notify: Notify = lambda _: None) -> list[Row]:
    """Rows of every competitor, all on the current GPU, at every N. ``notify`` gets a line before each measurement."""
    rows: list[Row] = []
    for count in counts:
        problem = cluster(count)
        judge = Judge(problem)
        rows += [_row(competitor, problem, judge, notify) for competitor in competitors]
    return rows


def _row(competitor: Competitor, problem: ForceProblem, judge: Judge, notify: Notify) -> Row:
    """Compile, check and time a competitor, and add its bounds."""
    if not competitor.rate:
        notify(f"compiling {competitor.name} {competitor.precision}")
        competitor.warm_up(PILOT)
    row = checked("roofline", competitor, problem, judge, notify)
    if row.error is not None and not row.wrong:
        notify(f"N = {judge.count}: timing {competitor.name} {competitor.precision}")
        with compute.launches() as seen:
            competitor.evaluate()
        timing = Timing.of(competitor.device_times(_repeats(competitor.expected(judge.count))))
        competitor.learn(judge.count, timing.best)
        row = _explained(row.timed(timing, judge.count**2), competitor, seen)
    competitor.release()
    return row


def _repeats(expected: float) -> int:
    """The number of measurements of a row whose evaluation takes about this many seconds."""
    wanted = max(FEWEST, min(MOST, int(SUSTAINED / max(expected, MEASUREMENT))))
    return max(1, min(wanted, int(LONGEST / expected)))


def _explained(row: Row, competitor: Competitor, seen: Sequence[compute.Launch]) -> Row:
    """The row with its kernel and its bounds."""
    launch = pairs_launch(seen)
    loop = pairs_loop(launch) if launch else None
    if launch is None or loop is None:
        return bounded(row, compute.facts(), None).noted(
            "no loop with reciprocal square roots was found in its machine code"
        )
    assert isinstance(competitor, EngineCompetitor)
    served = 1 + competitor.kind.can.pairs_once
    row = replace(row, interactions_a_root=served, launches=len(seen), **facts_of(launch))
    return bounded(row, compute.facts(), InteractionCost.of(loop, served))
