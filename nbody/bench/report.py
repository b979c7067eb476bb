"""What a benchmark says, as one JSON object with the machine and the rows; :mod:`nbody.bench.tables` shows it,
:mod:`nbody.bench.reading` reads it again."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any, TypeVar

from nbody.bench import card
from nbody.trajectory.provenance import collect_provenance

Report = dict[str, Any]
"""``{"machine": {...}, "rows": [{...}, ...]}`` in plain types."""


def machine_facts() -> dict[str, Any]:
    """What the figures were measured on, and with; ``gpu`` is None, and ``no_gpu`` says why, where there is none."""
    reason = card.no_gpu()
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


Row = TypeVar("Row")


def rows_of(found: Report, suite: str, kind: type[Row]) -> list[Row]:
    """The rows of a suite in a report, as their dataclass; keys of other versions of this program are left out."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    rows = [row for row in found["rows"] if row.get("suite") == suite]
    return [kind(**{key: value for key, value in row.items() if key in known}) for row in rows]


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


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table: two columns of words, and figures."""
    below = [":--", ":--", *["--:"] * (len(heads) - 2)]
    return ["| " + " | ".join(cells) + " |" for cells in (heads, below, *lines)]
