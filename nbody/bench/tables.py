"""Tables for the terminal and for Markdown."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nbody.bench.report import Report
from nbody.bench.row import Row
from nbody.forces import ENGINES
from nbody.number_format import duration, rate


class TableColumn(NamedTuple):
    """A column: its heading, the row's key (or a function of the row), the value's format, and its alignment."""

    heading: str
    value: str | Callable[[Any], Any]
    show: Callable[[Any], str] = str
    left: bool = False

    def cell(self, row: Any) -> str:
        """The text of the cell; a dash for None."""
        value = row[self.value] if isinstance(self.value, str) else self.value(row)
        return "–" if value is None else self.show(value).strip()


@dataclass(frozen=True)
class Sheet:
    """A table: its title, the meaning of its columns, and its rows, in groups that differ in the key ``group``; rows whose
    key ``red`` is true are red."""

    title: str
    about: str
    columns: Sequence[TableColumn]
    rows: Sequence[Any]
    group: str = "particles"
    red: str = "wrong"

    def on_terminal(self) -> Any:
        """The table for rich."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        left: Any = {"title_justify": "left", "caption_justify": "left"}
        table = Table(title=self.title, caption=self.about, box=SIMPLE_HEAD, padding=0, **left)
        for column in self.columns:
            table.add_column(column.heading, justify="left" if column.left else "right")
        last = None
        for row in self.rows:
            if last is not None and row[self.group] != last:
                table.add_section()
            last = row[self.group]
            table.add_row(*(column.cell(row) for column in self.columns), style="red" if row[self.red] else None)
        return table


class Joined:
    """Rows that share a line of a table, by the value of the ``key`` in which they differ. ``line["name"]`` is the last
    row's."""

    def __init__(self, rows: Sequence[Row], key: str) -> None:
        self.by = {row[key]: row for row in rows}
        self.last = rows[-1]

    def __getitem__(self, key: str) -> Any:
        return self.last[key]


def of(value: Any, heading: str, key: str, show: Callable[[Any], str] = str) -> TableColumn:
    """A column of joined rows: the ``key`` of the row with this ``value``."""
    return TableColumn(heading, lambda line: line.by[value][key] if value in line.by else None, show)


def named(heading: str, key: str = "name") -> TableColumn:
    """A column of names as code."""
    return TableColumn(heading, key, lambda name: f"`{name}`", left=True)


def markdown(columns: Sequence[TableColumn], rows: Iterable[Any], about: str = "") -> str:
    """A Markdown table below a paragraph."""
    lines = [
        [column.heading.replace("\n", " ") for column in columns],
        [":--" if column.left else "--:" for column in columns],
        *([column.cell(row) for column in columns] for row in rows),
    ]
    return "\n".join([*([about, ""] if about else []), *("| " + " | ".join(cells) + " |" for cells in lines)])


def about(report: Report, explained: str, rows: Iterable[Row]) -> str:
    """The text below a table: the meaning of its columns and the missing competitors, unless ``explained`` is empty; and the
    rows' notes."""
    absent = f"Not in the table: {', '.join(report.absent)}." if explained and report.absent else ""
    return "\n".join(filter(None, [explained, *(f"{row.what}: {row.note}" for row in rows if row.note), absent]))


def three(value: float) -> str:
    """A number with three digits."""
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


whole, percent = "{:.0f}".format, "{:.1f}".format
"""A number rounded to a whole number, and to one decimal."""


def error(value: float) -> str:
    """A relative error."""
    return f"{value:.1e}" if value else "0"


def checked_time(row: Row) -> str:
    """The time of a row; a wrong result has none."""
    return "WRONG" if row.wrong and not row.seconds else duration(row.seconds)


WHO = (
    TableColumn("N", "particles"),
    TableColumn("engine", lambda row: row.name + ENGINES.mark(row.name), left=True),
    TableColumn("precision", "precision", left=True),
)
"""Whose figures the other columns are."""

EVALUATION = TableColumn("a force\nevaluation", checked_time)

SPEED = (
    EVALUATION,
    TableColumn("inter-\nactions/s", "interactions_per_s", rate),
    TableColumn("\nGFLOP/s", "gflops", three),
)
"""The time of a force evaluation and what follows from it."""

ERRORS = (
    TableColumn("error:\nmedian", "error_median", error),
    TableColumn("\n99 %", "error_99", error),
    TableColumn("\nlargest", "error", error),
)
