"""Upper bounds of a GPU in interactions per second, with which kernels are compared.

Per multiprocessor and clock: 4 warp instructions start, on 128 float32 and (H100, H200) 64 float64 lanes, and 16
reciprocal square roots. An interaction that takes s issue slots, f float64 operations and r roots can't be computed more
often than

    multiprocessors · clock · min(128 / s, 64 / f, 16 / r)

times per second (compute capability 7.0 and later; the figures are those of the CUDA programming guide's table of
throughputs). GFLOP/s count 20 operations per interaction by convention, so a kernel that computes each pair once can
come near the float peak, or exceed it, with far fewer operations.
"""

from nbody.bench.roofline.slots import InstructionCounts
from nbody.bench.row import FLOPS, Row
from nbody.compute import DeviceProperties

ISSUED = 4 * 32
"""Lanes of the warp instructions that a multiprocessor issues per clock."""

ROOTS = 16
"""Reciprocal square roots that a multiprocessor starts per clock."""


def slot_bound(interaction: InstructionCounts, card: DeviceProperties) -> float:
    """Interactions per second that the issue of instructions allows, and the float pipes, where they are narrower."""
    pipes = interaction.float32 / card.lanes_float32, interaction.float64 / card.lanes_float64
    return card.multiprocessors * card.clock / max(interaction.instructions / ISSUED, *pipes)


def root_bound(interaction: InstructionCounts, card: DeviceProperties) -> float:
    """Interactions per second that the reciprocal square roots allow."""
    return card.multiprocessors * card.clock * ROOTS / interaction.roots


def bounded(row: Row, card: DeviceProperties, interaction: InstructionCounts | None) -> Row:
    """A timed row with the bounds of the card for these instructions per interaction."""
    assert row.interactions_per_s
    rate = row.interactions_per_s
    row = row.extended(percent_of_peak=100 * FLOPS * rate / card.peak(row.precision))
    if interaction is None:
        return row
    slots, roots = slot_bound(interaction, card), root_bound(interaction, card)
    row = row.extended(
        slots=interaction.instructions, slot_bound=slots, root_bound=roots, percent_of_slots=100 * rate / slots,
        percent_of_roots=100 * rate / roots,
    )  # fmt: skip
    note = "faster than its slot bound: the loop has instructions that are jumped over"
    return row.noted(note) if rate > slots else row
