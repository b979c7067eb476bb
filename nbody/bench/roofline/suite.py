"""The roofline suite: compares each GPU engine at each N with the bounds of the card.

A row is checked, then timed on the device alone (excluding launches); its bounds are those of
:mod:`nbody.bench.roofline.bounds` at the card's highest clock, with the issue slots counted in its kernel's machine code.
"""

from collections.abc import Sequence
from dataclasses import replace

from nbody import gpu
from nbody.bench.forces.accuracy import Judge
from nbody.bench.forces.contestant import PILOT, Contestant, EngineContestant
from nbody.bench.forces.problems import Problem, cluster
from nbody.bench.forces.suite import Notify, checked
from nbody.bench.roofline.bounds import Work, bounded
from nbody.bench.roofline.kernels import facts_of, pairs_launch, pairs_loop
from nbody.bench.row import Row
from nbody.bench.timing import FEWEST, Timing

COUNTS = (1024, 4096, 20480, 65536, 262144)
"""The default N."""

SUSTAINED = 0.5
"""The minimum time of a kernel's measurement in seconds, in which the clock rises."""

MEASUREMENT = 5e-3
"""The minimum length of one measurement in seconds; see :func:`nbody.bench.timing.device_times`."""

MOST = 100
"""The minimum and maximum number of measurements per row."""

PATIENCE = 5.0
"""If a row's measurements take longer than this (in seconds), it gets fewer than the minimum."""


def measure(contestants: Sequence[Contestant], counts: Sequence[int], notify: Notify = lambda _: None) -> list[Row]:
    """Rows of every contestant, all on the current GPU, at every N. ``notify`` gets a line before each measurement."""
    rows: list[Row] = []
    for count in counts:
        problem = cluster(count)
        judge = Judge(problem)
        rows += [_row(contestant, problem, judge, notify) for contestant in contestants]
    return rows


def _row(contestant: Contestant, problem: Problem, judge: Judge, notify: Notify) -> Row:
    """Compile, check and time a contestant, and add its bounds."""
    if not contestant.rate:
        notify(f"compiling {contestant.name} {contestant.precision}")
        contestant.warm_up(PILOT)
    row = checked("roofline", contestant, problem, judge, notify)
    if row.error is not None and not row.wrong:
        notify(f"N = {judge.count}: timing {contestant.name} {contestant.precision}")
        with gpu.launches() as seen:
            contestant.evaluate()
        timing = Timing.of(contestant.device_times(_repeats(contestant.expected(judge.count))))
        contestant.learn(judge.count, timing.best)
        row = _explained(row.timed(timing, judge.count**2), contestant, seen)
    contestant.release()
    return row


def _repeats(expected: float) -> int:
    """The number of measurements of a row whose evaluation takes about this many seconds."""
    wanted = max(FEWEST, min(MOST, int(SUSTAINED / max(expected, MEASUREMENT))))
    return max(1, min(wanted, int(PATIENCE / expected)))


def _explained(row: Row, contestant: Contestant, seen: Sequence[gpu.Launch]) -> Row:
    """The row with its kernel and its bounds."""
    launch = pairs_launch(seen)
    loop = pairs_loop(launch) if launch else None
    if launch is None or loop is None:
        return bounded(row, gpu.facts(), None).noted(
            "no loop with reciprocal square roots was found in its machine code"
        )
    assert isinstance(contestant, EngineContestant)
    served = getattr(contestant.kind, "interactions_per_root", 1)
    row = replace(row, interactions_a_root=served, launches=len(seen), **facts_of(launch))
    return bounded(row, gpu.facts(), Work.of(loop, served))
