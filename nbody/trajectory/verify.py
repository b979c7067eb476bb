"""Checks a recording against the checksums that were stored with it."""

import struct
import zlib
from collections.abc import Callable, Iterable

import numpy as np

from nbody.errors import InputError
from nbody.trajectory import layout
from nbody.trajectory.frame import OBSERVABLES
from nbody.trajectory.opening import OpenFile, one_line

RowsOf = Callable[[Iterable[str], int], list[np.ndarray]]
"""A recording's rows: of these datasets, that of this frame."""


def numbers_bytes(row: list) -> bytes:
    """A frame's time, step and observables in the order and form in which their checksum is taken."""
    time, step, *observables = row
    return b"".join([struct.pack("<dq", time, step), *(value.astype("<f8").tobytes() for value in observables)])


def checksum(value: object, dtype: np.dtype) -> int:
    """The checksum of a dataset that never changes: of its bytes as they are stored."""
    return zlib.crc32(np.asarray(value, dtype).tobytes())


def damage(file: OpenFile, rows: RowsOf, frames: int) -> list[str]:
    """A line for each damaged thing in the file: ``frame 12: velocity``. Empty if there is none."""
    return damaged_constants(file) + [f"frame {k}: {what}" for k in range(frames) for what in damaged_fields(rows, k)]


def damaged_constants(file: OpenFile) -> list[str]:
    """Which of the datasets that never change are damaged."""
    names = (layout.MASS, layout.ID, layout.SCENARIO, layout.RESOLVED)
    with one_line(file.path):
        sums = {
            name: (checksum(file.value(name), file.found[name].dtype), file.found[name].attributes) for name in names
        }
    return [f"/{name}" for name, (found, attributes) in sums.items() if found != attributes.get(layout.CRC)]


def damaged_fields(rows: RowsOf, k: int) -> list[str]:
    """Which of position, velocity and numbers (step, time, observables) of frame ``k`` are damaged."""
    names = (layout.TIME, layout.STEP, *map(layout.observable, OBSERVABLES))
    fields = {"position": (layout.POSITION,), "velocity": (layout.VELOCITY,), "numbers": names}
    found = []
    try:
        (sums,) = rows((layout.CHECKSUMS,), k)
        for (what, names), stored in zip(fields.items(), sums, strict=True):
            row = rows(names, k)
            data = numbers_bytes(row) if what == "numbers" else row[0]
            if zlib.crc32(data) != stored:
                found.append(what)
    except InputError as error:
        found.append(f"unreadable ({error})")
    return found
