"""The rows of the roofline suite, their table and their picture."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from nbody.bench.columns import Sheet, TableColumn, columns
from nbody.bench.forces.rows import EvaluationRow
from nbody.bench.forces.tables import ERRORS, SPEED, speeds
from nbody.bench.plot import Picture
from nbody.bench.report import Report
from nbody.bench.row import Amount

PER_CENT = "{:.1f}".format


@dataclass(frozen=True, kw_only=True)
class RooflineRow(EvaluationRow):
    """An evaluation and its bounds.

    Attributes:
        slots: the issue slots per interaction in the kernel's machine code.
        slot_bound, root_bound: the bounds by issue slots and by reciprocal square roots, in interactions per second at the
            card's highest clock.
        percent_of_slots, percent_of_roots, percent_of_peak: the speed in per cent of them and of the float pipes' peak.
    """

    suite: ClassVar[str] = "roofline"

    slots: Annotated[Amount | None, TableColumn("slots", "{:.2f}".format)] = None
    slot_bound: Amount | None = None
    root_bound: Amount | None = None
    percent_of_peak: Annotated[Amount | None, TableColumn("% of\npeak", PER_CENT)] = None
    percent_of_slots: Annotated[Amount | None, TableColumn("% of\nslots", PER_CENT)] = None
    percent_of_roots: Annotated[Amount | None, TableColumn("% of\nroots", PER_CENT)] = None


ROWS = (RooflineRow,)

COLUMNS = columns(RooflineRow, f"{SPEED} percent_of_peak percent_of_slots percent_of_roots slots {ERRORS}")

EXPLAINED = (
    "3-D, Plummer softening, unequal masses; device time, excluding launches. GFLOP/s at 20 "
    "operations per interaction, which a kernel that computes each pair once does not all do. Slots: 4 warp instructions "
    "per clock and multiprocessor, and its float pipes, for the instructions per interaction that nvdisasm shows in the "
    "innermost loop; roots: 16 reciprocal square roots; all at the card's highest clock. Errors are relative, against "
    "float64 sums."
)


def sheets(report: Report) -> Iterator[Sheet]:
    """The table of speeds and bounds."""
    rows = report.of(RooflineRow)
    yield Sheet(f"Forces and their bounds on {report.device}", report.about(EXPLAINED, rows), COLUMNS, rows)


def picture(report: Report) -> Picture:
    """Interactions per second against N below the bounds by issue slots, a panel per precision."""
    return speeds(f"Forces and their bounds: {report.device}", report.of(RooflineRow))


PAGES: dict[str, Callable[[Report], str]] = {}
