"""The table and the picture of the scaling suite."""

from collections.abc import Callable, Iterator
from typing import Required

from typing_extensions import TypedDict

from nbody.bench.plot import Line, Panel, Picture
from nbody.bench.report import Report
from nbody.bench.row import Amount, Count, grouped
from nbody.bench.tables import WHO, Sheet, TableColumn, about
from nbody.number_format import duration, rate


class ScalingFacts(TypedDict, total=False):
    """The GPUs, the steps, and the speed divided by that of as many single GPUs."""

    efficiency: Amount
    gpus: Required[Count]
    steps: Required[Count]


FACTS = {"scaling": ScalingFacts}

COLUMNS = (
    *WHO,
    TableColumn("GPUs", "gpus"),
    TableColumn("a whole\nstep", lambda row: "WRONG" if row.wrong else duration(row.seconds)),
    TableColumn("inter-\nactions/s", "interactions_per_s", rate),
    TableColumn("\nspeed-up", "speedup", "{:.2f}".format),
    TableColumn("effi-\nciency", "efficiency", lambda fraction: f"{100 * fraction:.1f} %"),
)

EXPLAINED = (
    "Whole steps of leapfrog by wall time, a frame of every tenth step in memory. Efficiency: the speed divided by that of "
    "as many single GPUs. All runs of an N have the same bits, else the row is WRONG."
)


def sheets(report: Report) -> Iterator[Sheet]:
    """The table of all runs."""
    rows = report.of("scaling")
    yield Sheet(f"Several GPUs of one machine: {report.device}", about(report, EXPLAINED, rows), COLUMNS, rows)


def picture(report: Report) -> Picture:
    """Speed-up against the number of GPUs, a line per N."""
    rows = [row for row in report.of("scaling") if row.speedup]
    numbers = sorted({row["gpus"] for row in rows})
    lines = [Line("ideal", numbers, numbers, dotted=True)]
    for key, of in grouped(rows, "name", "precision", "particles").items():
        lines.append(Line("{}, {}, N = {}".format(*key), [row["gpus"] for row in of], [row["speedup"] for row in of]))
    panel = Panel("dotted: ideal", "GPUs", "speed-up", lines, ticks=numbers, scale="linear")
    return Picture(f"Whole steps on several GPUs: {report.device}", [panel])


PAGES: dict[str, Callable[[Report], str]] = {}
