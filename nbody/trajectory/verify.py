"""Checks a recording against its stored checksums."""

import struct
import zlib
from collections.abc import Callable, Iterable

import numpy as np

from nbody.errors import InputError
from nbody.trajectory import layout
from nbody.trajectory.contents import DATASET
from nbody.trajectory.opening import OpenFile, one_line

RowsOf = Callable[[Iterable[str], int], list[np.ndarray]]
"""``rows_of(names, k)``: row ``k`` of each of a recording's datasets."""


def numbers_bytes(row: list) -> bytes:
    """A frame's time, step and observables as bytes, in the order of their checksum."""
    time, step, *observables = row
    return b"".join([struct.pack("<dq", time, step), *(value.astype("<f8").tobytes() for value in observables)])


def commit_sum(commit: np.ndarray) -> int:
    """The checksum that a commit record should have."""
    return zlib.crc32(commit.tobytes()[: commit.dtype.fields["crc32"][1]])  # type: ignore[index]


def commit_is_whole(commit: np.ndarray) -> bool:
    """False if a commit record is damaged. (In version 1 this can't be detected.)"""
    return "crc32" not in (commit.dtype.names or ()) or int(commit["crc32"][0]) == commit_sum(commit)


def with_sums(events: np.ndarray) -> np.ndarray:
    """The events with their checksums."""
    found = np.array(events, layout.EVENT_DTYPE)
    for k in range(len(found)):
        found["crc32"][k] = zlib.crc32(found[k].tobytes()[: -found.dtype["crc32"].itemsize])
    return found


def damaged_events(events: np.ndarray) -> list[int]:
    """The numbers of the events whose checksum is wrong."""
    return np.flatnonzero(with_sums(events)["crc32"] != events["crc32"]).tolist()


def damage(file: OpenFile, rows: RowsOf, frames: int) -> list[str]:
    """One line per damaged object in the file, as in ``frame 12: velocity``. Empty if nothing is damaged."""
    commit = [] if commit_is_whole(file.value(layout.COMMIT)) else [f"/{layout.COMMIT}"]
    names = tuple(file.observables)
    damaged = [f"frame {k}: {what}" for k in range(frames) for what in damaged_fields(rows, k, names)]
    return damaged_constants(file) + commit + damaged


def damaged_constants(file: OpenFile) -> list[str]:
    """The damaged ones of the datasets that never change."""
    listed = (layout.MASS, layout.ID, layout.SPECIES, layout.RADIUS, layout.SCENARIO, layout.RESOLVED)
    names = [name for name in listed if file.found[name].kind == DATASET]
    with one_line(file.path):
        stored = {name: np.asarray(file.value(name), file.found[name].dtype) for name in names}
    found = {name: zlib.crc32(value.tobytes()) for name, value in stored.items()}
    return [f"/{name}" for name in names if found[name] != file.found[name].attributes.get(layout.CRC)]


def damaged_fields(rows: RowsOf, k: int, observables: Iterable[str]) -> list[str]:
    """The damaged ones of position, velocity and numbers (step, time, observables) of frame ``k``."""
    names = (layout.TIME, layout.STEP, *map(layout.observable, observables))
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
