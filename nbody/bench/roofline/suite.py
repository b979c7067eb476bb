"""The roofline suite: compares each GPU engine at each N with the bounds of the card and with its competitors.

A row is checked, then timed on the device alone (excluding launches), while the card's clock is watched; its bounds are
those of :mod:`nbody.bench.roofline.bounds` at that clock, with the issue slots counted in its kernel's machine code.
"""

from collections.abc import Sequence
from dataclasses import replace

from nbody import gpu
from nbody.bench.forces.accuracy import Judge
from nbody.bench.forces.contestant import PILOT, Contestant, EngineContestant
from nbody.bench.forces.peers import Peer
from nbody.bench.forces.problems import Problem, cluster
from nbody.bench.forces.suite import LONGEST, Notify, checked
from nbody.bench.roofline.bounds import Work
from nbody.bench.roofline.kernels import facts_of, pairs_launch, pairs_loop
from nbody.bench.roofline.row import RooflineRow
from nbody.bench.roofline.steps import whole_step
from nbody.bench.roofline.telemetry import watching
from nbody.bench.timing import FEWEST, Timing

COUNTS = (1024, 4096, 20480, 65536, 262144)
"""The default N."""

SUSTAINED = 0.5
"""The minimum time of a kernel's measurement in seconds, in which the clock rises and nvidia-smi sees clock and power."""

MEASUREMENT = 5e-3
"""The minimum length of one measurement in seconds; see :func:`nbody.bench.timing.device_times`."""

MOST = 100
"""The minimum and maximum number of measurements per row."""

PATIENCE = 5.0
"""If a row's measurements take longer than this (in seconds), it gets fewer than the minimum."""

LONGEST_PEER = 2.0
"""A competitor whose evaluation would take longer than this (in seconds) is left out."""


def measure(
    contestants: Sequence[Contestant], counts: Sequence[int], notify: Notify = lambda _: None
) -> list[RooflineRow]:
    """Rows of every contestant, all on the current GPU, at every N. ``notify`` gets a line before each measurement."""
    rows: list[RooflineRow] = []
    for count in counts:
        problem = cluster(count)
        judge = Judge(problem)
        rows += [_row(contestant, problem, judge, notify) for contestant in contestants]
    return rows


def _row(contestant: Contestant, problem: Problem, judge: Judge, notify: Notify) -> RooflineRow:
    """The row of one contestant. An error in a competitor's library becomes its row's note."""
    try:
        return _measured(contestant, problem, judge, notify)
    except Exception as error:
        if not isinstance(contestant, Peer):
            raise
        row = RooflineRow(
            name=contestant.name, device=contestant.device, backend="gpu", precision=contestant.precision, threads=0,
            particles=judge.count, peer=True,
        )  # fmt: skip
        return row.noted(f"failed: {' '.join(str(error).split())[:120] or type(error).__name__}")
    finally:
        contestant.release()


def _measured(contestant: Contestant, problem: Problem, judge: Judge, notify: Notify) -> RooflineRow:
    """Compile, check and time a contestant, and add its bounds."""
    if not contestant.rate:
        notify(f"compiling {contestant.name} {contestant.precision}")
        contestant.warm_up(PILOT)
    peer = isinstance(contestant, Peer)
    row = checked(RooflineRow, contestant, problem, judge, notify, LONGEST_PEER if peer else LONGEST, peer=peer)
    if row.error is None or row.wrong:
        return row
    notify(f"N = {judge.count}: timing {contestant.name} {contestant.precision}")
    with gpu.launches() as seen:
        contestant.evaluate()
    with watching(gpu.uuid()) as card:
        timing = Timing.of(contestant.device_times(_repeats(contestant.expected(judge.count))))
    contestant.learn(judge.count, timing.best)
    row = replace(row.timed(timing), clock=card.clock or gpu.facts().clock, power=card.power,
                  clock_source="measured" if card.clock else "highest")  # fmt: skip
    if not isinstance(contestant, EngineContestant):
        return row.bounded(gpu.facts(), None)
    row = _explained(row, contestant, seen)
    contestant.release()
    assert row.seconds
    return replace(row, **whole_step(contestant, problem, row.seconds))


def _repeats(expected: float) -> int:
    """The number of measurements of a row whose evaluation takes about this many seconds."""
    wanted = max(FEWEST, min(MOST, int(SUSTAINED / max(expected, MEASUREMENT))))
    return max(1, min(wanted, int(PATIENCE / expected)))


def _explained(row: RooflineRow, contestant: EngineContestant, seen: Sequence[gpu.Launch]) -> RooflineRow:
    """The row with its kernel and its bounds."""
    launch = pairs_launch(seen)
    loop = pairs_loop(launch) if launch else None
    if launch is None or loop is None:
        return row.bounded(gpu.facts(), None).noted(
            "no loop with reciprocal square roots was found in its machine code"
        )
    served = getattr(contestant.kind, "interactions_per_root", 1)
    row = replace(row, interactions_a_root=served, launches=len(seen), **facts_of(launch))
    return row.bounded(gpu.facts(), Work.of(loop, served))
