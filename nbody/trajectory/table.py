"""The observables of a recording as a table: one row per frame, one column per number."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nbody.diagnostics import FRACTIONS
from nbody.trajectory.layout import SYSTEM_COLUMNS

if TYPE_CHECKING:
    from nbody.trajectory.reader import Trajectory

Array = np.ndarray

PARTS: Mapping[str, tuple[str, ...]] = {"lagrangian_radii": tuple(f"{fraction:g}" for fraction in FRACTIONS)}
"""What follows the name of an observable of several numbers, if these are not the components of a vector."""

ROWS = 10
"""The number of rows that a printed table shows."""


class ColumnTable(Mapping[str, Array]):
    """Columns of the same length by name; ``table.to_pandas()`` needs pandas."""

    index: ClassVar[str | None] = None
    """The column that is the index of the DataFrame."""

    _columns: Mapping[str, Any]

    def __getitem__(self, name: str) -> Array:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        import pandas

        found = pandas.DataFrame(dict(self))
        return found.set_index(self.index) if self.index else found

    def shown(self) -> Any:
        """A pandas DataFrame if pandas is installed, else the table itself; same columns."""
        return self.to_pandas() if find_spec("pandas") else self


class Table(ColumnTable):
    """Columns by name, (T,) each: ``step``, ``time``, ``total_energy``, ``momentum_x`` …

    A column is read from the file when it is first used.
    """

    index = "time"

    def __init__(self, trajectory: "Trajectory") -> None:
        self._trajectory = trajectory
        self._columns = columns(trajectory.widths)
        self._read: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        whole, part = self._columns[name]
        if whole in ("step", "time"):
            return getattr(self._trajectory, whole)
        values = self._read.setdefault(whole, self._trajectory.observable(whole))
        return values if part is None else values[:, part]

    def __repr__(self) -> str:
        return "\n".join("  ".join(cell.rjust(12) for cell in row) for row in self._cells())

    def _cells(self) -> Iterator[list[str]]:
        yield list(self)
        frames = len(self._trajectory)
        for k in range(frames):
            if k < ROWS - 1 or k == frames - 1:
                yield [f"{column[k]:.6g}" for column in self.values()]
            elif k == ROWS - 1:
                yield ["…"] * len(self)


def columns(widths: Mapping[str, int]) -> dict[str, tuple[str, int | None]]:
    """The columns of observables with these numbers per frame: the name of each, its observable, and which number of it."""
    found: dict[str, tuple[str, int | None]] = {"step": ("step", None), "time": ("time", None)}
    for name, width in widths.items():
        if name in SYSTEM_COLUMNS:  # one number per system
            continue
        parts = PARTS.get(name, tuple("xyz") if width == 3 else ())
        parts = parts if len(parts) == width else tuple(map(str, range(width)))
        found |= {name: (name, None)} if width == 1 else {f"{name}_{part}": (name, k) for k, part in enumerate(parts)}
    return found
