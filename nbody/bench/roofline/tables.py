"""The tables of the roofline suite: speeds and bounds, and facts about kernels."""

from collections.abc import Callable, Iterator

from nbody.bench.forces.tables import CheckedFacts, speeds
from nbody.bench.plot import Picture
from nbody.bench.report import Report
from nbody.bench.row import Amount, Count
from nbody.bench.tables import ERRORS, SPEED, WHO, Sheet, TableColumn, about, percent


class RooflineFacts(CheckedFacts, total=False):
    """What limits a kernel.

    Attributes:
        slot_bound, root_bound: the bounds by issue slots and by reciprocal square roots, in interactions per second at the
            card's highest clock.
        percent_of_slots, percent_of_roots, percent_of_peak: the speed in per cent of them and of the float pipes' peak.
        slots: the issue slots per interaction in the kernel's machine code.
        interactions_a_root: interactions per root.
        launches: kernels per evaluation.
        kernel: what computes the pairs, in ``blocks`` of ``threads_a_block``; it takes ``registers`` and ``local_bytes`` per
            thread, and ``shared_bytes`` per block.
        waves: its blocks divided by those that fit on the card.
        occupancy: the fraction of the card's warps.
    """

    percent_of_peak: Amount
    percent_of_slots: Amount
    percent_of_roots: Amount
    slots: Amount
    slot_bound: Amount
    root_bound: Amount
    waves: Amount
    occupancy: Amount
    interactions_a_root: Count
    launches: Count
    registers: Count
    shared_bytes: Count
    local_bytes: Count
    threads_a_block: Count
    blocks: Count
    kernel: str


FACTS = {"roofline": RooflineFacts}

SPEEDS = (
    *WHO,
    *SPEED,
    TableColumn("% of\npeak", "percent_of_peak", percent),
    TableColumn("% of\nslots", "percent_of_slots", percent),
    TableColumn("% of\nroots", "percent_of_roots", percent),
    *ERRORS,
)

KERNELS = (
    *WHO,
    TableColumn("slots", "slots", "{:.2f}".format),
    TableColumn("regis-\nters", "registers"),
    TableColumn("shared,\nbytes", "shared_bytes"),
    TableColumn("local,\nbytes", "local_bytes"),
    TableColumn("threads", "threads_a_block"),
    TableColumn("occu-\npancy", "occupancy", lambda part: f"{100 * part:.0f} %"),
    TableColumn("blocks", "blocks"),
    TableColumn("waves", "waves", "{:.2f}".format),
    TableColumn("laun-\nches", "launches"),
)

EXPLAINED = (
    "3-D, Plummer softening, unequal masses; device time, excluding launches. GFLOP/s at 20 "
    "operations per interaction, which a kernel that computes each pair once does not all do. Slots: 4 warp instructions "
    "per clock and multiprocessor, and its float pipes; roots: 16 reciprocal square roots; all at the card's highest clock. "
    "Errors are relative, against float64 sums."
)

KERNELS_EXPLAINED = (
    "Slots: instructions per interaction in the innermost loop of the kernel, counted in its machine code by nvdisasm."
)


def sheets(report: Report) -> Iterator[Sheet]:
    """The tables of speeds, and of kernels."""
    rows = report.of("roofline")
    yield Sheet(f"Forces and their bounds on {report.device}", about(report, EXPLAINED, rows), SPEEDS, rows)
    if own := [row for row in rows if row["kernel"]]:
        yield Sheet("Their kernels", KERNELS_EXPLAINED, KERNELS, own)


def picture(report: Report) -> Picture:
    """Interactions per second against N below the bounds of the card, a panel per precision."""
    return speeds("Forces and their bounds", "roofline", report)


PAGES: dict[str, Callable[[Report], str]] = {}
