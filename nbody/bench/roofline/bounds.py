"""Upper bounds of a GPU in interactions per second, with which kernels are compared.

Per multiprocessor and clock: 4 warp instructions start, on 128 float32 and (H100, H200) 64 float64 lanes, and 16
reciprocal square roots. An interaction that takes s issue slots, f float64 operations and r roots can't be computed more
often than

    multiprocessors · clock · min(128 / s, 64 / f, 16 / r)

times per second (compute capability 7.0 and later; the figures are those of the CUDA programming guide's table of
throughputs). GFLOP/s count 20 operations per interaction by convention, so a kernel that computes each pair once can
come near the float peak, or exceed it, with far fewer operations.
"""

from dataclasses import dataclass

from nbody.bench.roofline.slots import InstructionCounts
from nbody.bench.row import FLOPS, Row
from nbody.compute import Facts

ISSUED = 4 * 32
"""Lanes of the warp instructions that a multiprocessor issues per clock."""

ROOTS = 16
"""Reciprocal square roots that a multiprocessor starts per clock."""


@dataclass(frozen=True)
class InteractionCost:
    """The cost of one interaction: issue slots, float operations and reciprocal square roots."""

    slots: float
    float32: float
    float64: float
    roots: float

    @classmethod
    def of(cls, loop: InstructionCounts, interactions_a_root: int) -> "InteractionCost":
        """The work of a loop, each of whose roots serves one interaction, or both of a pair."""
        interactions = loop.roots * interactions_a_root
        return cls(
            loop.instructions / interactions,
            loop.float32 / interactions,
            loop.float64 / interactions,
            1 / interactions_a_root,
        )


def slot_bound(work: InteractionCost, card: Facts, clock: float) -> float:
    """Interactions per second that the issue of instructions allows, and the float pipes, where they are narrower."""
    clocks = max(work.slots / ISSUED, work.float32 / card.lanes_float32, work.float64 / card.lanes_float64)
    return card.multiprocessors * clock / clocks


def root_bound(roots: float, card: Facts, clock: float) -> float:
    """The bound by reciprocal square roots in interactions per second."""
    return card.multiprocessors * clock * ROOTS / roots


def peak(precision: str, card: Facts, clock: float) -> float:
    """FLOP/s of the float pipes that a precision computes its pairs with, at a clock."""
    return card.peak(precision) * clock / card.clock


def bounded(row: Row, card: Facts, work: InteractionCost | None) -> Row:
    """A timed row with the bounds of the card for this work per interaction."""
    assert row.interactions_per_s
    rate = row.interactions_per_s
    row = row.extended(percent_of_peak=100 * FLOPS * rate / peak(row.precision, card, card.clock))
    if work is None:
        return row
    slots, roots = slot_bound(work, card, card.clock), root_bound(work.roots, card, card.clock)
    row = row.extended(
        slots=work.slots,
        slot_bound=slots,
        root_bound=roots,
        percent_of_slots=100 * rate / slots,
        percent_of_roots=100 * rate / roots,
    )
    note = "faster than its slot bound: the loop has instructions that are jumped over"
    return row.noted(note) if rate > slots else row
