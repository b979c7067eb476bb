"""A table: comma-separated values below a header that names the columns."""

import csv
import io
import math
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nbody.errors import InputError, did_you_mean
from nbody.exchange.format import Format, RunConstants, require_memory
from nbody.given import number_in, shown
from nbody.input_file import open_regular
from nbody.particles import Particles
from nbody.whole_file import Notify

COLUMNS = ("m", "x", "y", "z", "vx", "vy", "vz")
"""The columns, in any order. In 2-D z and vz are left out; columns ``id``, ``species`` and ``radius`` can be added."""

EXTRA = ("id", "species", "radius")
"""``species`` holds names, such as ``disc``; they are numbered in the order in which they appear."""


ALIASES = {"mass": "m"}
"""Other names of columns."""

INDEX = ("", "index", "unnamed: 0")
"""The columns in which pandas and spreadsheets number the rows."""


class CsvFormat(Format):
    """The columns of :data:`COLUMNS` after ``id``, with all digits; ``radius`` if the bodies have radii; and ``species`` if
    there are several."""

    suffixes = (".csv",)
    opened_by = "pandas.read_csv('{path}')"

    def write(self, path: Path, moments: Iterable[Particles], facts: RunConstants) -> None:
        (one,) = moments
        axes = "xyz"[: one.dimensions]
        radius = {"radius": one.radius} if len(one.radius) else {}
        names = ["id", "m", *axes, *(f"v{axis}" for axis in axes), *radius]
        numbers = np.column_stack([one.mass, one.position, one.velocity, *radius.values()]).tolist()
        species = one.species_names if len(one.species_names) > 1 else ()
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow([*names, *(["species"] if species else [])])
            for id, row, kind in zip(one.id.tolist(), numbers, one.species.tolist(), strict=True):
                table.writerow([id, *row, *([species[kind]] if species else [])])

    def read(self, path: Path, frame: int | None, start: str, notify: Notify = lambda line: None) -> Particles:
        with open_regular(path) as file:
            return read_table(file, start, notify)


def read_table(file: BinaryIO, start: str, notify: Notify = lambda line: None) -> Particles:
    """Read the bodies in a .csv file in UTF-8, one per row. Blank lines and a byte-order mark are skipped. Raises
    InputError: one line that begins with ``start`` and names the wrong line and column."""
    # The shortest row, "1,1,1,1,1\\n", has 10 bytes and becomes 40; the arrays made from it are a second copy.
    needed = 8 * file.seek(0, io.SEEK_END)
    file.seek(0)
    require_memory(needed, start, "save it as .npz")
    # Bytes that are not UTF-8 become characters that no number contains, so the error names their line.
    text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
    rows = _rows(text, start)
    columns = _header(rows, start, notify)
    cells, species = array("d"), dict[str, int]()
    for line, row in rows:
        if len(row) != len(columns):
            message = f"{len(row)} values under {len(columns)} columns; give every column one, with decimal points"
            raise InputError(f"{start}line {line}: {message}")
        for cell, name in zip(row, columns, strict=True):
            if not name:
                cells.append(0.0)
            elif name == "species":
                cells.append(species.setdefault(cell.strip(), len(species)))
            else:
                cells.append(_number(cell, name, line, start))
    table = dict(zip(columns, np.array(cells).reshape(-1, len(columns)).T, strict=True))
    axes = [axis for axis in "xyz" if axis in table]
    return Particles(
        table["m"],
        np.stack([table[axis] for axis in axes], axis=1),
        np.stack([table[f"v{axis}"] for axis in axes], axis=1),
        table.get("id", np.empty(0)).astype(np.int64),
        species=table.get("species", np.empty(0)).astype(np.int64),
        species_names=tuple(species) or ("",),
        radius=table.get("radius", np.empty(0)),
    )


def _rows(text: io.TextIOWrapper, start: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, with their line numbers."""
    reader = csv.reader(text)
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"{start}line {reader.line_num}: {error}; save it as plain comma-separated text") from None


def _header(rows: Iterator[tuple[int, list[str]]], start: str, notify: Notify) -> list[str]:
    """The columns' names, in the file's order; empty for a column that is ignored."""
    line, cells = next(rows, (1, []))
    names = [cell.strip().lower() for cell in cells]
    names = [ALIASES.get(name, name) for name in names]
    start = f"{start}line {line}: "
    expected = f"the first line must be the header {','.join(COLUMNS)} (2-D: m,x,y,vx,vy)"
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        raise InputError(f"{start}the columns are separated by ';' or tabs; save it with commas, and points for decimals")
    if not set(names) & set(COLUMNS):
        raise InputError(f"{start}{expected}, got {shown(','.join(cells))}")
    ignored = names[0] in INDEX
    if ignored:
        notify(f"{start}the first column ({names[0] or 'without a name'}) numbers the rows; it is ignored")
        names[0] = ""
    for name in names[1:] if ignored else names:
        if name not in COLUMNS and name not in EXTRA:
            hint = did_you_mean(name, (*COLUMNS, *EXTRA, *ALIASES))
            raise InputError(f"{start}unknown column {shown(name)}{hint}; {expected}")
        if names.count(name) > 1:
            raise InputError(f"{start}column '{name}' appears twice; remove one")
    flat = "z" not in names and "vz" not in names
    for name in COLUMNS:
        if name not in names and not (flat and name in ("z", "vz")):
            raise InputError(f"{start}there is no column '{name}'; {expected}")
    return names


def _number(cell: str, name: str, line: int, start: str) -> float:
    """Convert a cell to a finite float64 (``id``: a whole number that a float64 represents exactly)."""
    value = number_in(cell)
    if value is None or not math.isfinite(value) or "_" in cell:
        raise InputError(
            f"{start}line {line}: {name}: {shown(cell.strip())} is not a finite number; correct or remove that row"
        )
    if name == "id" and not (value.is_integer() and abs(value) <= 2**53):
        raise InputError(f"{start}line {line}: id: {shown(cell.strip())} is not a whole number up to 2^53; correct it")
    return value
