"""GADGET's binary snapshots (Springel 2005; the user guide of GADGET-2, section 6): records, each between two copies of its
size. Format 1 has the blocks HEAD, POS, VEL, ID and MASS in this order; format 2 a record with a block's name before each.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from nbody.errors import InputError, printable
from nbody.exchange.format import Format, RunConstants, contents
from nbody.exchange.snapshot import SPECIES, parts_of_snapshot, refuse_cosmology, say_gas, types_of
from nbody.particles import Particles
from nbody.whole_file import Notify

HEADER = np.dtype([
    ("counts", "i4", 6), ("masses", "f8", 6), ("time", "f8"), ("redshift", "f8"), ("flags", "i4", 2), ("total", "u4", 6),
    ("cooling", "i4"), ("files", "i4"), ("box", "f8"), ("omega0", "f8"), ("lambda", "f8"), ("hubble", "f8"),
    ("others", "u1", 96),
])  # fmt: skip
"""256 bytes."""

BLOCKS = ("HEAD", "POS", "VEL", "ID", "MASS")


class GadgetBinary(Format):
    """The bodies are particles of type 1 (halo), or of the type that has their species' name. Numbers are in the run's
    units, rounded to float32. Formats 1 and 2 of both byte orders, in one file or several, are read; format 1 is written."""

    suffixes = (".gadget",)
    opened_by = "pynbody.load('{path}')"

    @staticmethod
    def recognizes(start: bytes) -> bool:
        return start[:4] in (b"\0\1\0\0", b"\0\0\1\0") or start[4:8] == b"HEAD"

    def write(self, path: Path, moments: Iterable[Particles], facts: RunConstants) -> None:
        (particles,) = moments
        kinds = types_of(particles)
        sorted_by_type = np.argsort(kinds, kind="stable")
        x, v = (each[sorted_by_type].astype("<f4") for each in particles.in_space())
        header = np.zeros((), HEADER.newbyteorder("<"))
        header["counts"] = header["total"] = np.bincount(kinds, minlength=6)
        header["time"], header["files"], header["hubble"] = particles.time, 1, 1.0
        long = particles.id.max() >= 2**32 or particles.id.min() < 0
        id, mass = particles.id[sorted_by_type].astype("<u8" if long else "<u4"), particles.mass[sorted_by_type]
        with path.open("wb") as file:
            for block in (header, x, v, id, mass.astype("<f4")):
                size = np.array(block.nbytes, "<i4").tobytes()
                file.write(size + block.tobytes() + size)

    def read(self, path: Path, frame: int | None, start: str, notify: Notify = lambda line: None) -> Particles:
        parts = [_read_part(path, start)]
        for other in parts_of_snapshot(path, int(parts[0]["files"]), start):
            parts.append(_read_part(other, f"{start}{printable(other.name)}: "))
        arrays = {
            name: np.concatenate([part[name] for part in parts]) for name in ("position", "velocity", "id", "mass", "kind")
        }
        kinds = np.unique(arrays["kind"])
        found = Particles(
            arrays["mass"], arrays["position"], arrays["velocity"], arrays["id"],
            species=np.searchsorted(kinds, arrays["kind"]),
            species_names=tuple(SPECIES[kind] for kind in kinds) if len(kinds) > 1 or kinds[0] == 0 else ("",),
        )  # fmt: skip
        say_gas(found, start, notify)
        return found


def _read_part(path: Path, start: str) -> dict[str, np.ndarray]:
    """The arrays of one file, and the number of ``files``. Raises InputError."""
    try:
        return _arrays(contents(path, start), start)
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise InputError(f"{start}is not a binary snapshot of GADGET, or is damaged ({printable(error)[:100]})") from None


def _arrays(data: bytes, start: str) -> dict[str, np.ndarray]:
    order: Literal["<", ">"] = "<" if data[:4] in (b"\0\1\0\0", b"\x08\0\0\0") else ">"
    blocks = dict(_blocks(data, order))
    if len(blocks["HEAD"]) != HEADER.itemsize:
        raise ValueError(f"its header has {len(blocks['HEAD'])} bytes instead of {HEADER.itemsize}")
    header = np.frombuffer(blocks["HEAD"], HEADER.newbyteorder(order))[0]
    refuse_cosmology(start, *(float(header[name]) for name in ("time", "redshift", "box", "omega0")))
    counts = header["counts"].astype(np.int64)
    n = int(counts.sum())
    if counts.min() < 0 or n > len(data):
        raise ValueError(f"its header counts {n} bodies")
    kind, table = np.repeat(np.arange(6), counts), header["masses"].astype(np.float64)
    mass, own = table[kind], np.isin(kind, np.flatnonzero(table == 0))
    if own.any():
        mass[own] = _numbers(blocks, "MASS", order, int(own.sum()))
    position, velocity = (_numbers(blocks, name, order, 3 * n).reshape(n, 3) for name in ("POS", "VEL"))
    id = np.frombuffer(blocks["ID"], f"{order}u{_width('ID', blocks['ID'], n)}")
    return {
        "position": position, "velocity": velocity, "mass": mass, "kind": kind, "id": id.astype(np.int64),
        "files": header["files"],
    }  # fmt: skip


def _blocks(data: bytes, order: str) -> Iterator[tuple[str, bytes]]:
    """The blocks by name. Raises ValueError."""
    records: list[bytes] = []
    at = 0
    while at < len(data) and len(records) < 2 * len(BLOCKS) + 40:
        size = int(np.frombuffer(data, order + "i4", 1, at)[0])
        end = at + 4 + size
        if size < 0 or data[at : at + 4] != data[end : end + 4]:
            raise ValueError(f"a record at byte {at} has no end")
        records.append(data[at + 4 : end])
        at = end + 4
    if records and len(records[0]) == 8:
        names = [record[:4].decode("ascii", "replace").strip() for record in records[::2]]
        yield from zip(names, records[1::2], strict=False)
    else:
        yield from zip(BLOCKS, records, strict=False)


def _numbers(blocks: dict[str, bytes], name: str, order: str, count: int) -> np.ndarray:
    """The real numbers of a block, of 4 or 8 bytes each, in float64. Raises ValueError."""
    return np.frombuffer(blocks[name], f"{order}f{_width(name, blocks[name], count)}").astype(np.float64)


def _width(name: str, block: bytes, count: int) -> int:
    """The bytes per number. Raises ValueError."""
    if count == 0 or len(block) not in (4 * count, 8 * count):
        raise ValueError(f"its block {name} has {len(block)} bytes for {count} numbers")
    return len(block) // count
