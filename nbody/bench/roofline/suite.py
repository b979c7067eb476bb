"""The roofline suite: compares each GPU engine at each N with the bounds of the card.

A row is checked, then timed on the device alone (excluding launches). Per multiprocessor and clock, 4 warp instructions
start, on 128 float32 and (H100, H200) 64 float64 lanes, and 16 reciprocal square roots. An interaction that takes s issue
slots, f float64 operations and r roots can't be computed more often than

    multiprocessors · clock · min(128 / s, 64 / f, 16 / r)

times per second (compute capability 7.0 and later; the figures are those of the CUDA programming guide's table of
throughputs). The clock is the card's highest, and :mod:`.slots` counts s, f and r in the kernel's machine code. GFLOP/s
count 20 operations per interaction by convention, so a kernel that computes each pair once can come near the float peak, or
exceed it, with far fewer operations.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from nbody import compute
from nbody.bench import Notify
from nbody.bench.forces.competitor import PILOT, Competitor
from nbody.bench.forces.problems import Judge, cluster
from nbody.bench.forces.rows import FLOPS
from nbody.bench.forces.suite import checked
from nbody.bench.roofline import slots
from nbody.bench.roofline.slots import InstructionCounts
from nbody.bench.roofline.tables import RooflineRow
from nbody.bench.timing import FEWEST_CALLS, device_times

COUNTS = (1024, 4096, 20480, 65536, 262144)
"""The default N."""

ISSUED, ROOTS = 4 * 32, 16
"""Lanes of the warp instructions that a multiprocessor issues per clock, and reciprocal square roots that it starts."""

SUSTAINED = 0.5
"""The minimum time of a kernel's measurement in seconds, in which the clock rises."""

MEASUREMENT, MOST_MEASUREMENTS = 5e-3, 100
"""The minimum length of one measurement in seconds (see :func:`nbody.bench.timing.device_times`), and the maximum number of
measurements per row."""

LONGEST = 5.0
"""If a row's measurements take longer than this (in seconds), it gets fewer than the minimum."""


def measure(competitors: Sequence[Competitor], counts: Sequence[int], notify: Notify = lambda _: None) -> list[RooflineRow]:
    """Rows of every competitor, all on the current GPU, at every N. ``notify`` gets a line before each measurement."""
    judges = (Judge(cluster(count)) for count in counts)
    return [_row(competitor, judge, notify) for judge in judges for competitor in competitors]


def _row(competitor: Competitor, judge: Judge, notify: Notify) -> RooflineRow:
    """Compile, check and time a competitor, and add its bounds."""
    if not competitor.speed.rate:
        notify(f"compiling {competitor.name} {competitor.precision}")
        competitor.warm_up(PILOT)
    row = checked(RooflineRow, competitor, judge, notify)
    if row.error is not None and not row.wrong:
        notify(f"N = {judge.count}: timing {competitor.name} {competitor.precision}")
        with compute.launches() as seen:
            competitor.evaluate()
        timing = device_times(competitor.evaluate, _repeats(competitor.speed.expected(judge.count)))
        competitor.speed.learn(judge.count, timing.best)
        row = bounded(row.with_rates(timing, judge.count**2), compute.facts(), interaction_of(competitor, seen))
    competitor.release()
    return row


def _repeats(expected: float) -> int:
    """The number of measurements of a row whose evaluation takes about this many seconds."""
    enough = max(FEWEST_CALLS, min(MOST_MEASUREMENTS, int(SUSTAINED / max(expected, MEASUREMENT))))
    return max(1, min(enough, int(LONGEST / expected)))


def interaction_of(competitor: Competitor, seen: Sequence[compute.Launch]) -> InstructionCounts | None:
    """The instructions per interaction of the kernel that computes the pairs: that of the largest launch whose loop has
    reciprocal square roots. None if there is no such loop."""
    loops = {each: loop for each in seen if (loop := pairs_loop(each.kernel, compute.machine_code))}
    if not loops:
        return None
    largest = max(loops, key=lambda each: each.threads)
    return loops[largest].per_interaction(1 + competitor.kind.can.pairs_once)


@cache
def pairs_loop(kernel: Any, machine_code: Any) -> InstructionCounts | None:
    """The instructions of a kernel's innermost loop; None if the kernel computes no pairs."""
    return slots.hottest_loop(slots.disassembled(machine_code(kernel)) or "")


def slot_bound(interaction: InstructionCounts, card: compute.DeviceProperties) -> float:
    """Interactions per second that the issue of instructions allows, and the float pipes, where they are narrower."""
    pipes = interaction.float32 / card.lanes_float32, interaction.float64 / card.lanes_float64
    return card.multiprocessors * card.clock / max(interaction.instructions / ISSUED, *pipes)


def root_bound(interaction: InstructionCounts, card: compute.DeviceProperties) -> float:
    """Interactions per second that the reciprocal square roots allow."""
    return card.multiprocessors * card.clock * ROOTS / interaction.roots


def bounded(row: RooflineRow, card: compute.DeviceProperties, interaction: InstructionCounts | None) -> RooflineRow:
    """A timed row with the bounds of the card for these instructions per interaction."""
    assert row.interactions_per_s
    rate = row.interactions_per_s
    row = replace(row, percent_of_peak=100 * FLOPS * rate / card.peak(row.precision))
    if interaction is None:
        return row.noted("no loop with reciprocal square roots was found in its machine code")
    by_slots, by_roots = slot_bound(interaction, card), root_bound(interaction, card)
    row = replace(
        row, slots=interaction.instructions, slot_bound=by_slots, root_bound=by_roots,
        percent_of_slots=100 * rate / by_slots, percent_of_roots=100 * rate / by_roots,
    )  # fmt: skip
    note = "faster than its slot bound: the loop has instructions that are jumped over"
    return row.noted(note) if rate > by_slots else row
