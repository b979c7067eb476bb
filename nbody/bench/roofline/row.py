"""A row of the roofline: a measured speed, the bounds it is held against, and what explains the rest."""

from dataclasses import asdict, dataclass, replace

from nbody.bench.forces.row import FLOPS, ForceRow
from nbody.bench.roofline.bounds import Work, peak, root_bound, slot_bound
from nbody.bench.roofline.kernels import KernelFacts
from nbody.bench.roofline.slots import PTX
from nbody.bench.roofline.steps import WholeStep
from nbody.gpu import Facts


@dataclass(frozen=True)
class RooflineRow(ForceRow):
    """A :class:`ForceRow` and what explains it. None where it is not known, or makes no sense for a competitor.

    Attributes:
        percent_of_peak: of the float peak, at 20 operations an interaction.
        percent_of_slots, percent_of_roots: of the bounds by issue slots and by reciprocal square roots.
        slots, slots_source: issue slots an interaction, counted in the kernel's ``SASS`` or ``PTX``.
        interactions_a_root: 2 where each pair is computed once, else 1.
        slot_bound, root_bound: the bounds, in interactions per second.
        clock, clock_source: in Hz, ``measured`` while the kernel ran, or the card's ``highest``.
        power: of the card, in W.

    The others are those of :class:`~nbody.bench.roofline.kernels.KernelFacts` and
    :class:`~nbody.bench.roofline.steps.WholeStep`.
    """

    suite: str = "roofline"
    peer: bool = False
    percent_of_peak: float | None = None
    percent_of_slots: float | None = None
    percent_of_roots: float | None = None
    slots: float | None = None
    slots_source: str | None = None
    interactions_a_root: int | None = None
    slot_bound: float | None = None
    root_bound: float | None = None
    clock: float | None = None
    clock_source: str = "highest"
    power: float | None = None
    kernel: str | None = None
    launches: int | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    local_bytes: int | None = None
    threads_a_block: int | None = None
    blocks: int | None = None
    waves: float | None = None
    occupancy: float | None = None
    step_seconds: float | None = None
    percent_launch: float | None = None
    recorded_step_seconds: float | None = None
    percent_recording: float | None = None

    def bounded(self, card: Facts, work: Work | None, source: str | None) -> "RooflineRow":
        """This row, timed and with its clock, held against the bounds of a card for so much work an interaction."""
        assert self.clock and self.interactions_per_s
        rate = self.interactions_per_s
        row = replace(self, percent_of_peak=100 * FLOPS * rate / peak(self.precision, card, self.clock))
        if work is None:
            return row
        slots, roots = slot_bound(work, card, self.clock), root_bound(work.roots, card, self.clock)
        row = replace(row, slots=work.slots, slots_source=source, slot_bound=slots, root_bound=roots,
                      percent_of_slots=100 * rate / slots, percent_of_roots=100 * rate / roots)  # fmt: skip
        return row.noted("faster than its slot bound: " + _why_beaten(source)) if rate > slots else row

    def explained(self, facts: KernelFacts) -> "RooflineRow":
        """This row with the facts of its kernel."""
        return replace(self, **asdict(facts))

    def within(self, step: WholeStep) -> "RooflineRow":
        """This row with its share of a whole step."""
        return replace(self, **asdict(step))


def _why_beaten(source: str | None) -> str:
    return "PTX is not what runs" if source == PTX else "the loop has instructions that are jumped over"
