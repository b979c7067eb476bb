"""The roofline suite: compares each GPU engine at each N with the bounds of the card.

A row is checked, then timed on the device alone (excluding launches); its bounds are those of
:mod:`nbody.bench.roofline.bounds` at the card's highest clock, with the issue slots counted in its kernel's machine code.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from nbody import compute
from nbody.bench import Notify
from nbody.bench.forces.competitor import PILOT, Competitor
from nbody.bench.forces.problems import Judge, cluster
from nbody.bench.forces.suite import checked
from nbody.bench.roofline import slots
from nbody.bench.roofline.bounds import bounded
from nbody.bench.roofline.tables import RooflineFacts
from nbody.bench.row import Row
from nbody.bench.timing import FEWEST_CALLS, device_times

COUNTS = (1024, 4096, 20480, 65536, 262144)
"""The default N."""

SUSTAINED = 0.5
"""The minimum time of a kernel's measurement in seconds, in which the clock rises."""

MEASUREMENT = 5e-3
"""The minimum length of one measurement in seconds; see :func:`nbody.bench.timing.device_times`."""

MOST_MEASUREMENTS = 100
"""The minimum and maximum number of measurements per row."""

LONGEST = 5.0
"""If a row's measurements take longer than this (in seconds), it gets fewer than the minimum."""


def measure(competitors: Sequence[Competitor], counts: Sequence[int], notify: Notify = lambda _: None) -> list[Row]:
    """Rows of every competitor, all on the current GPU, at every N. ``notify`` gets a line before each measurement."""
    judges = (Judge(cluster(count)) for count in counts)
    return [_row(competitor, judge, notify) for judge in judges for competitor in competitors]


def _row(competitor: Competitor, judge: Judge, notify: Notify) -> Row:
    """Compile, check and time a competitor, and add its bounds."""
    if not competitor.speed.rate:
        notify(f"compiling {competitor.name} {competitor.precision}")
        competitor.warm_up(PILOT)
    row = checked("roofline", competitor, judge, notify)
    if row.error is not None and not row.wrong:
        notify(f"N = {judge.count}: timing {competitor.name} {competitor.precision}")
        with compute.launches() as seen:
            competitor.evaluate()
        timing = device_times(competitor.evaluate, _repeats(competitor.speed.expected(judge.count)))
        competitor.speed.learn(judge.count, timing.best)
        row = _explained(row.timed(timing, judge.count**2), 1 + competitor.kind.can.pairs_once, seen)
    competitor.release()
    return row


def _repeats(expected: float) -> int:
    """The number of measurements of a row whose evaluation takes about this many seconds."""
    wanted = max(FEWEST_CALLS, min(MOST_MEASUREMENTS, int(SUSTAINED / max(expected, MEASUREMENT))))
    return max(1, min(wanted, int(LONGEST / expected)))


def _explained(row: Row, interactions_a_root: int, seen: Sequence[compute.Launch]) -> Row:
    """The row with its kernel and its bounds. The kernel that computes the pairs is that of the largest launch whose loop
    has reciprocal square roots."""
    loops = {each: loop for each in seen if (loop := pairs_loop(each.kernel, compute.machine_code))}
    if not loops:
        return bounded(row, compute.facts(), None).noted(
            "no loop with reciprocal square roots was found in its machine code"
        )
    launch = max(loops, key=lambda each: each.blocks * each.threads)
    row = row.extended(interactions_a_root=interactions_a_root, launches=len(seen), **facts_of(launch))
    return bounded(row, compute.facts(), loops[launch].per_interaction(interactions_a_root))


@cache
def pairs_loop(kernel: Any, machine_code: Any) -> slots.InstructionCounts | None:
    """The instructions of a kernel's innermost loop; None if the kernel computes no pairs."""
    return slots.hottest_loop(slots.disassembled(machine_code(kernel)) or "")


def facts_of(launch: compute.Launch) -> RooflineFacts:
    """The facts of a launch. Asks the current device."""
    used, resident = launch.resources(), launch.resident()
    warps = resident / compute.facts().multiprocessors * -(-launch.threads // 32)
    return RooflineFacts(
        kernel=launch.kernel.py_func.__name__,
        registers=used.registers,
        shared_bytes=used.shared + launch.dynamic_shared,
        local_bytes=used.local,
        threads_a_block=launch.threads,
        blocks=launch.blocks,
        waves=launch.blocks / resident,
        occupancy=warps / (compute.threads_per_multiprocessor() / 32),
    )
