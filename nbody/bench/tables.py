"""A benchmark's report as tables: one of each suite."""

from collections.abc import Iterator
from typing import Any, Literal

from nbody.bench.forces import ForceRow
from nbody.bench.ladder import tables as ladder_tables
from nbody.bench.lecture import LARGEST
from nbody.bench.report import Report, error, force_rows, machine_line, ratio
from nbody.bench.roofline_report import lecture_table, roofline_tables
from nbody.units import duration, rate


def tables(found: Report) -> Iterator[Any]:
    """A rich table of each suite that a report has rows of."""
    suites = {row.get("suite") for row in found["rows"]}
    if "roofline" in suites:
        yield from roofline_tables(found)
    if "lecture" in suites:
        yield lecture_table(found)
    if "matmul" in suites:
        yield from ladder_tables(found)
    if "forces" in suites or not suites:
        yield force_table(found)


HEADINGS: tuple[tuple[str, Literal["left", "right"]], ...] = (
    ("N", "right"), ("engine", "left"), ("precision", "left"), ("a force\nevaluation", "right"),
    ("inter-\nactions/s", "right"), ("\nGFLOP/s", "right"), ("× one\ncore", "right"), ("× all\ncores", "right"),
    ("×\nNumPy", "right"), ("error:\nmedian", "right"), ("\n99 %", "right"), ("\nlargest", "right"),
    ("lecture's\nrun", "right"),
)  # fmt: skip

TABLE_WIDTH = 120
"""Columns that the table takes; a narrower terminal folds its lines, which is better than cutting numbers."""


def force_table(found: Report) -> Any:
    """A rich table of the force suite's rows, one group an N; the notes stand below it."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title=f"Forces on {machine_line(found['machine'])}", caption=_caption(found), caption_justify="left",
        title_justify="left", box=SIMPLE_HEAD, padding=0,
    )  # fmt: skip
    for heading, justify in HEADINGS:
        table.add_column(heading, justify=justify)
    before = None
    for row in force_rows(found):
        if row.particles != before and before is not None:
            table.add_section()
        before = row.particles
        table.add_row(*_cells(row), style="red" if row.wrong else None)
    return table


def _cells(row: ForceRow) -> tuple[str, ...]:
    return (
        str(row.particles),
        row.name,
        row.precision,
        "WRONG" if row.wrong and not row.seconds else duration(row.seconds),
        rate(row.interactions_per_s),
        f"{row.gflops:.3g}" if row.gflops else "–",
        *(ratio(value) for value in (row.speedup, row.speedup_all_cores, row.speedup_reference)),
        *(error(value) for value in (row.error_median, row.error_99, row.error)),
        "WRONG" if row.wrong and row.seconds else duration(row.lecture_seconds),
    )


def _caption(found: Report) -> str:
    lines = [f"{row.name} {row.precision}, N = {row.particles}: {row.note}" for row in force_rows(found) if row.note]
    explained = (
        "3-D, Plummer softening, unequal masses; compilation apart. GFLOP/s at 20 operations an interaction. Speed-ups "
        "refer to the cpu engine in the same precision and to NumPy. Errors are relative, against float64 sums. The "
        f"lecture's run, up to its N of {LARGEST}: 10 steps of its 2-D disc, with the copies to the device and back; memory "
        "is taken before."
    )
    return "\n".join([explained, *lines])
