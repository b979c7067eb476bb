"""A row of the roofline suite: a measured speed, its bounds, and facts about the kernel and the step."""

from dataclasses import dataclass, replace
from typing import Literal

from nbody.bench.forces.row import FLOPS, ForceRow
from nbody.bench.roofline.bounds import Work, peak, root_bound, slot_bound
from nbody.bench.row import Amount, Count
from nbody.gpu import Facts


@dataclass(frozen=True, kw_only=True)
class RooflineRow(ForceRow):
    """A :class:`ForceRow` with its bounds. A value is None if it is unknown.

    Attributes:
        percent_of_peak: percent of the float peak, at 20 operations per interaction.
        percent_of_slots, percent_of_roots: percent of the bounds by issue slots and by reciprocal square roots.
        slots: issue slots per interaction, counted in the kernel's machine code.
        interactions_a_root: interactions per reciprocal square root: 2 if each pair is computed once, else 1.
        slot_bound, root_bound: the bounds at the card's highest clock, in interactions per second.
        kernel, launches: the name of the kernel that computes the pairs, and kernels per force evaluation.
        registers, shared_bytes, local_bytes: registers per thread, shared memory per block, and local memory per thread
            (above 0 if there are too few registers).
        threads_a_block, blocks, waves: threads per block, blocks in the grid, and the latter divided by those that fit
            on the card.
        occupancy: the warps on a multiprocessor divided by the maximum.
    """

    suite: Literal["roofline"] = "roofline"  # type: ignore[assignment]
    percent_of_peak: Amount | None = None
    percent_of_slots: Amount | None = None
    percent_of_roots: Amount | None = None
    slots: Amount | None = None
    interactions_a_root: Count | None = None
    slot_bound: Amount | None = None
    root_bound: Amount | None = None
    kernel: str | None = None
    launches: Count | None = None
    registers: Count | None = None
    shared_bytes: Count | None = None
    local_bytes: Count | None = None
    threads_a_block: Count | None = None
    blocks: Count | None = None
    waves: Amount | None = None
    occupancy: Amount | None = None

    def bounded(self, card: Facts, work: Work | None) -> "RooflineRow":
        """This row with the bounds of the card for this work per interaction."""
        assert self.interactions_per_s
        rate = self.interactions_per_s
        row = replace(self, percent_of_peak=100 * FLOPS * rate / peak(self.precision, card, card.clock))
        if work is None:
            return row
        slots, roots = slot_bound(work, card, card.clock), root_bound(work.roots, card, card.clock)
        row = replace(row, slots=work.slots, slot_bound=slots, root_bound=roots,
                      percent_of_slots=100 * rate / slots, percent_of_roots=100 * rate / roots)  # fmt: skip
        return (
            row.noted("faster than its slot bound: the loop has instructions that are jumped over")
            if rate > slots
            else row
        )

    @property
    def levels(self) -> list[tuple[str, float]]:
        """The bounds shown in the picture, rounded to two digits so that rows share one."""
        found = [("a root per pair" if self.interactions_a_root == 2 else "a root per interaction", self.root_bound)]
        if self.percent_of_peak and self.interactions_per_s:
            found.append(("the float peak at 20 operations", 100 * self.interactions_per_s / self.percent_of_peak))
        return [(text, float(f"{bound:.1e}")) for text, bound in found if bound]


ROWS: dict[str, type] = {"roofline": RooflineRow}
