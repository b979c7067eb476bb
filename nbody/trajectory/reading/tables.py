"""Columns by name: the observables, the events or the systems of a recording."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from nbody.diagnostics import FRACTIONS
from nbody.errors import refuse_attribute
from nbody.trajectory.structure.layout import SYSTEM

Array = np.ndarray
Column = Array | Callable[[], Array]

PARTS: Mapping[str, tuple[str, ...]] = {"lagrangian_radii": tuple(f"{fraction:g}" for fraction in FRACTIONS)}
"""What follows the name of an observable of several numbers, if these are not the components of a vector."""

ROWS = 10
"""The number of rows that a printed table shows."""


class Table(Mapping[str, Array]):
    """Columns of the same length by name; ``table.to_pandas()`` needs pandas.

    Args:
        columns: arrays, or functions that return them, which are called when a column is used.
        index: the column that is the index of the DataFrame.
        text: returns how it is printed, if not as columns.
    """

    def __init__(
        self, columns: Mapping[str, Column], index: str | None = None, text: Callable[[], str] | None = None
    ) -> None:
        self._columns, self._index, self._text = columns, index, text

    def __setattr__(self, name: str, value: object) -> None:
        refuse_attribute(self, name, "table")
        object.__setattr__(self, name, value)

    def __getitem__(self, name: str) -> Array:
        found = self._columns[name]
        return found() if callable(found) else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        import pandas

        found = pandas.DataFrame(dict(self))
        return found.set_index(self._index) if self._index else found

    def shown(self) -> Any:
        """A pandas DataFrame if pandas is installed, else the table itself; same columns."""
        return self.to_pandas() if find_spec("pandas") else self

    def __repr__(self) -> str:
        if self._text:
            return self._text()
        columns = list(self.values())
        rows = len(columns[0])
        shown = [*range(min(rows, ROWS - 1)), *([None] if rows > ROWS else []), *([rows - 1] if rows >= ROWS else [])]
        cells = [list(self)]
        cells += [["…" if k is None else _cell(column[k]) for column in columns] for k in shown]
        return "\n".join("  ".join(cell.rjust(12) for cell in row) for row in cells) + f"\n{rows} rows"


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def observable_table(widths: Mapping[str, int], read: Callable[[str], Array]) -> Table:
    """Columns by name, (T,) each: ``step``, ``time``, ``total_energy``, ``momentum_x`` … ``read`` returns an observable, the
    step or the time of all frames."""
    read_once = cache(read)

    def column(name: str, k: int | None = None) -> Array:
        return read_once(name) if k is None else read_once(name)[:, k]

    columns: dict[str, Column] = {name: partial(column, name) for name in ("step", "time")}
    for name, width in widths.items():
        if name.startswith(SYSTEM):  # one number per system
            continue
        parts = PARTS.get(name, tuple("xyz") if width == 3 else ())
        named = [""] if width == 1 else [f"_{part}" for part in (parts if len(parts) == width else range(width))]
        for k, end in enumerate(named):
            columns[name + end] = partial(column, name, k if end else None)
    return Table(columns, "time")
