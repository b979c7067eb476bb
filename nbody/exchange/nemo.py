"""Snapshots of NEMO (Barnes, Hut & Teuben): a file of items, each with a type, a tag, and data; sets of items are nested.

An item begins with two bytes that say whether it is one value or an array, followed by its type and tag, which end with a
zero byte, and for an array its dimensions in int32, which end with a zero. The types "(" and ")" begin and end a set.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.exchange.format import Format, RunConstants, contents, frame_number
from nbody.particles import Particles
from nbody.whole_file import Notify

SINGLE, PLURAL = 0x0992, 0x0B92
TYPES = {"c": "S1", "b": "u1", "s": "i2", "i": "i4", "l": "i8", "f": "f4", "d": "f8"}
CARTESIAN = 0o200000 + 3 * 0o400 + 2
"""CoordSystem: Cartesian, three dimensions, positions and velocities."""

LONG = "LongKey"
"""Ids that do not fit into the int32 of NEMO's Key."""

NUMBERS = dict.fromkeys(("Time", "Mass", "Position", "Velocity"), ("iuf", "real numbers"))
NUMBERS |= dict.fromkeys(("Key", LONG), ("iu", "whole numbers"))
"""What the items of a snapshot hold: NumPy's kinds, and their name."""

MOST_DIMENSIONS, LONGEST = 8, 256
"""Of an array, and of a tag in bytes, in a file that is to be believed."""


def _item(kind: str, tag: str = "", value: Any = None) -> bytes:
    """The bytes of one item."""
    data = np.asarray(value, "<" + TYPES[kind]) if value is not None else None
    plural = data is not None and data.ndim > 0
    name = kind.encode() + b"\0" + (tag.encode() + b"\0" if kind != ")" else b"")
    start = np.array(PLURAL if plural else SINGLE, "<u2").tobytes() + name
    if data is None:
        return start
    return start + (np.array([*data.shape, 0], "<i4").tobytes() if plural else b"") + data.tobytes()


def _items(data: bytes) -> Iterator[tuple[str, str, np.ndarray | None]]:
    """Type, tag and data of all items. Raises ValueError if the file ends within one, or has something else."""
    at, order = 0, "<" if data[:1] == b"\x92" else ">"

    def text(at: int) -> tuple[str, int]:
        end = data.index(b"\0", at, at + LONGEST)
        return data[at:end].decode("ascii"), end + 1

    while at < len(data):
        magic = int(np.frombuffer(data, order + "u2", 1, at)[0])
        kind, at = text(at + 2)
        if magic not in (SINGLE, PLURAL) or kind not in (*TYPES, "(", ")"):
            raise ValueError
        tag, at = text(at) if kind != ")" else ("", at)
        if kind in "()":
            yield kind, tag, None
            continue
        shape: list[int] = []
        while magic == PLURAL and (not shape or shape[-1] != 0):
            shape.append(int(np.frombuffer(data, order + "i4", 1, at)[0]))
            at += 4
            if shape[-1] < 0 or len(shape) > MOST_DIMENSIONS:
                raise ValueError
        size = int(np.prod(shape[:-1], dtype=object))
        found = np.frombuffer(data, order + TYPES[kind], size, at)
        at += found.nbytes
        yield kind, tag, found.reshape(shape[:-1])


class NemoFormat(Format):
    """Times, masses, positions and velocities in float64, and ids as Key in int32, every frame in one file. If an id does
    not fit, Key is the row, and the item LongKey has the ids in int64; NEMO's programs ignore it."""

    suffixes = (".nemo", ".snap")
    many = True
    opened_by = "unsio.input.CUNS_IN('{path}', 'all', 'all', float32=False)"

    def write(self, path: Path, moments: Iterable[Particles], facts: RunConstants) -> None:
        with path.open("wb") as file:
            for p in moments:
                x, v = p.in_space()
                fits = (np.abs(p.id) < 2**31).all()
                key = _item("i", "Key", p.id) if fits else _item("i", "Key", np.arange(p.count)) + _item("l", LONG, p.id)
                file.write(_item("(", "SnapShot") + _item("(", "Parameters"))
                file.write(_item("d", "Time", p.time) + _item("i", "Nobj", p.count) + _item(")"))
                file.write(_item("(", "Particles") + _item("i", "CoordSystem", CARTESIAN) + _item("d", "Mass", p.mass))
                file.write(_item("d", "Position", x) + _item("d", "Velocity", v) + key)
                file.write(_item(")") + _item(")"))

    def read(self, path: Path, frame: int | None, start: str, notify: Notify = lambda line: None) -> Particles:
        # A frame without masses, as NEMO may write them, has those of the frame before it.
        snapshots: list[dict[str, np.ndarray]] = []
        try:
            for kind, tag, value in _items(contents(path, start)):
                if kind == "(" and tag == "SnapShot":
                    mass = {"Mass": snapshots[-1]["Mass"]} if snapshots and "Mass" in snapshots[-1] else {}
                    snapshots.append(mass)
                elif value is not None and snapshots:
                    snapshots[-1][tag] = value
        except (ValueError, OverflowError, MemoryError):
            raise InputError(f"{start}is not a NEMO file, or is damaged") from None
        snapshots = [each for each in snapshots if {"PhaseSpace", "Position"} & each.keys()]  # others are diagnostics
        if not snapshots:
            raise InputError(f"{start}has no NEMO snapshot with positions")
        return _particles(snapshots[frame_number(frame, len(snapshots), start)], start)


def _particles(found: dict[str, np.ndarray], start: str) -> Particles:
    """The bodies of a snapshot, with PhaseSpace (N, 2, 3), or Position and Velocity (N, 3)."""
    if "PhaseSpace" in found and found["PhaseSpace"].ndim == 3 and found["PhaseSpace"].shape[1] == 2:
        found = found | {"Position": found["PhaseSpace"][:, 0], "Velocity": found["PhaseSpace"][:, 1]}
    missing = [tag for tag in ("Mass", "Position", "Velocity") if tag not in found]
    if missing:
        raise InputError(f"{start}the snapshot has no {missing[0]}")
    for tag, (kinds, needed) in NUMBERS.items():
        if tag in found and found[tag].dtype.kind not in kinds:
            raise InputError(f"{start}{tag} holds {found[tag].dtype}; it must hold {needed}")
    mass, x, v = (found[tag] for tag in ("Mass", "Position", "Velocity"))
    if mass.ndim != 1 or x.shape != (len(mass), 3) or v.shape != x.shape:
        raise InputError(f"{start}Mass, Position and Velocity do not belong to the same bodies")
    key = found.get(LONG, found.get("Key", np.zeros(0)))
    own = key.shape == mass.shape and len(np.unique(key)) == len(key)
    return Particles(mass, x, v, id=key if own else np.empty(0, np.int64))
