"""A benchmark's report as tables: one of each suite."""

from collections.abc import Iterator
from typing import Any

from nbody.bench.forces.tables import force_table
from nbody.bench.ladder.tables import ladder_tables
from nbody.bench.report import Report
from nbody.bench.roofline.tables import lecture_table, roofline_tables


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
