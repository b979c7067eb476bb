"""The rows of the scaling suite, their table and their picture."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from nbody.bench.columns import Sheet, TableColumn, columns, grouped
from nbody.bench.forces.rows import ENGINE
from nbody.bench.plot import Line, Panel, Picture
from nbody.bench.report import Report
from nbody.bench.row import Amount, Count, Row
from nbody.number_format import duration, rate


@dataclass(frozen=True, kw_only=True)
class ScalingRow(Row):
    """Whole steps on some GPUs. ``speedup`` is relative to one GPU, and ``efficiency`` relative to as many single ones."""

    suite: ClassVar[str] = "scaling"

    name: Annotated[str, ENGINE]
    gpus: Annotated[Count, TableColumn("GPUs")]
    steps: Count
    seconds: Annotated[Amount | None, TableColumn("a whole\nstep", duration, if_wrong="WRONG")] = None
    interactions_per_s: Annotated[Amount | None, TableColumn("inter-\nactions/s", rate)] = None
    speedup: Annotated[Amount | None, TableColumn("\nspeed-up", "{:.2f}".format)] = None
    efficiency: Annotated[Amount | None, TableColumn("effi-\nciency", lambda part: f"{100 * part:.1f} %")] = None


ROWS = (ScalingRow,)

COLUMNS = columns(ScalingRow, "particles name precision gpus seconds interactions_per_s speedup efficiency")

EXPLAINED = (
    "Whole steps of leapfrog by wall time, a frame of every tenth step in memory. Efficiency: the speed divided by that of "
    "as many single GPUs. All runs of an N have the same bits, else the row is WRONG."
)


def sheets(report: Report) -> Iterator[Sheet]:
    """The table of all runs."""
    rows = report.of(ScalingRow)
    yield Sheet(f"Several GPUs of one machine: {report.device}", report.about(EXPLAINED, rows), COLUMNS, rows)


def picture(report: Report) -> Picture:
    """Speed-up against the number of GPUs, a line per N."""
    rows = [row for row in report.of(ScalingRow) if row.speedup]
    numbers = sorted({row.gpus for row in rows})
    lines = [Line("ideal", numbers, numbers, dotted=True)]
    for key, own in grouped(rows, "name", "precision", "particles").items():
        lines.append(Line("{}, {}, N = {}".format(*key), [row.gpus for row in own], [row.speedup or 0 for row in own]))
    panel = Panel("dotted: ideal", "GPUs", "speed-up", lines, ticks=numbers, scale="linear")
    return Picture(f"Whole steps on several GPUs: {report.device}", [panel])


PAGES: dict[str, Callable[[Report], str]] = {}
