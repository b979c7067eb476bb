"""What a benchmark says: one JSON object with the machine and the rows, and a table of the same rows."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from nbody.bench.forces import ForceRow
from nbody.errors import InputError
from nbody.trajectory.provenance import collect_provenance
from nbody.units import duration, rate

Report = dict[str, Any]
"""``{"machine": {...}, "rows": [{...}, ...]}`` in plain types."""


def machine_facts() -> dict[str, Any]:
    """What the figures were measured on, and with; ``gpu`` is None, and ``no_gpu`` says why, where there is none."""
    from nbody.bench.selection import no_gpu

    reason = no_gpu()
    if reason:
        return collect_provenance(gpu=None, no_gpu=reason)
    from nbody import gpu

    return collect_provenance(gpu=gpu.facts().name, gpu_facts=asdict(gpu.facts()))


def report(rows: Sequence[Any]) -> Report:
    """The report of measured rows (dataclasses or mappings, of any suite)."""
    mappings = [row if isinstance(row, dict) else asdict(row) for row in rows]
    plain = [{key: _in_json(value) for key, value in row.items()} for row in mappings]
    return {"machine": machine_facts(), "rows": plain}


def _in_json(value: Any) -> Any:
    """``value``, or None for an infinity or a NaN, which JSON does not have. (A row's note says what was wrong.)"""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def load(path: Path) -> Report:
    """A report written earlier. Raises InputError if the file is not one."""
    try:
        found = json.loads(path.read_text())
        machine_line(found["machine"])
        if isinstance(found["rows"], list) and all(isinstance(row, dict) for row in found["rows"]):
            return found
        reason = "its 'rows' are of the wrong kind"
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
    raise InputError(f"{path}: not a benchmark's report ({reason}); make one with 'nbody bench'")


Row = TypeVar("Row")


def rows_of(found: Report, suite: str, kind: type[Row]) -> list[Row]:
    """The rows of a suite in a report, as their dataclass; keys of other versions of this program are left out."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    rows = [row for row in found["rows"] if row.get("suite") == suite]
    return [kind(**{key: value for key, value in row.items() if key in known}) for row in rows]


def force_rows(found: Report) -> list[ForceRow]:
    """The rows of the force suite in a report."""
    return rows_of(found, "forces", ForceRow)


def tables(found: Report) -> Iterator[Any]:
    """A rich table of each suite that a report has rows of."""
    from nbody.bench.ladder import tables as ladder_tables
    from nbody.bench.roofline_report import lecture_table, roofline_tables

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
        "lecture's run: 10 steps of its 2-D disc, with the copies to the device and back; memory is taken before."
    )
    return "\n".join([explained, *lines])


def machine_line(facts: dict[str, Any]) -> str:
    """The machine in a few words: the card, if there is one, and the processor."""
    cpu = f"{facts['cpu']} ({facts['cores']} core{'s' * (facts['cores'] != 1)}, {facts['simd']})"
    return f"{facts['gpu']}, {cpu}" if facts.get("gpu") else cpu


def ratio(value: float | None) -> str:
    """A speed-up with three digits, or a dash."""
    return "–" if value is None else f"{value:.3g}"


def error(value: float | None) -> str:
    """A relative error, or a dash."""
    return "–" if value is None else f"{value:.1e}" if value else "0"
