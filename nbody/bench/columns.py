"""Columns, and the tables that are made of them, for the terminal and for Markdown."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, get_type_hints

Each = TypeVar("Each")


class TableColumn(NamedTuple):
    """How a value is shown: its heading, format and alignment, and what stands in the place of a missing value of a wrong
    result. ``value`` takes it from a row; in the annotation of a row's field it is left out: :func:`column` adds it."""

    heading: str
    show: Callable[[Any], str] = str
    left: bool = False
    if_wrong: str = "–"
    value: Callable[[Any], Any] = lambda row: row

    def cell(self, row: Any) -> str:
        """The text of the cell; a dash for None."""
        value = self.value(row)
        if value is None:
            return self.if_wrong if getattr(row, "wrong", False) else "–"
        return self.show(value).strip()

    def of_line(self, heading: str = "", key: Hashable = None) -> "TableColumn":
        """A column of lines, which are dictionaries of rows: of the row with this ``key``, or of the last one."""

        def value(line: Mapping[Hashable, Any]) -> Any:
            row = [*line.values()][-1] if key is None else line.get(key)
            return None if row is None else self.value(row)

        return self._replace(heading=heading or self.heading, value=value)


_hints = cache(lambda kind: get_type_hints(kind, include_extras=True))


def column(kind: type, name: str) -> TableColumn:
    """The column of a field of a kind of row, as its annotation describes it."""
    found = next(each for each in _hints(kind)[name].__metadata__ if isinstance(each, TableColumn))
    return found._replace(value=attrgetter(name))


def columns(kind: type, names: str) -> list[TableColumn]:
    """The columns of these fields, separated by spaces."""
    return [column(kind, name) for name in names.split()]


def code(name: str) -> str:
    """A name as code in Markdown."""
    return f"`{name}`"


@dataclass(frozen=True)
class Sheet:
    """A table: its title, the meaning of its columns, and its rows, in groups that differ in the attribute ``group``; rows
    whose attribute ``red`` is true are red."""

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
        for _, own in groupby(self.rows, attrgetter(self.group)):
            for row in own:
                cells = (column.cell(row) for column in self.columns)
                table.add_row(*cells, style="red" if getattr(row, self.red) else None)
            table.add_section()
        return table


def markdown(columns: Sequence[TableColumn], rows: Iterable[Any], about: str = "") -> str:
    """A Markdown table below a paragraph."""
    lines = [
        [column.heading.replace("\n", " ") for column in columns],
        [":--" if column.left else "--:" for column in columns],
        *([column.cell(row) for column in columns] for row in rows),
    ]
    return "\n".join([*([about, ""] if about else []), *("| " + " | ".join(cells) + " |" for cells in lines)])


def grouped(rows: Iterable[Each], *names: str) -> dict[Any, list[Each]]:
    """The rows by the values of these attributes (one value, or a tuple of several), in their order."""
    groups: dict[Any, list[Each]] = {}
    for row in rows:
        groups.setdefault(attrgetter(*names)(row), []).append(row)
    return groups


def ratio(numerator: float | None, denominator: float | None, scale: float = 1.0) -> float | None:
    """``scale`` times the ratio; None if one of the numbers is missing or zero."""
    return scale * numerator / denominator if numerator and denominator else None


def three(value: float) -> str:
    """A number with three digits."""
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


def per_cent(fraction: float) -> str:
    """A fraction in whole per cent."""
    return f"{100 * fraction:.0f} %"


def relative_error(value: float) -> str:
    """A relative error."""
    return f"{value:.1e}" if value else "0"
