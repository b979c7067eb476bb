"""The contents of a file: its datasets, the addresses of their bytes, and the attributes.

A file written by nbody ends with an index, after the end of the HDF5 file: the contents as JSON, with checksums of the JSON
and of the file's structure (all HDF5 metadata). If both are right, reading needs only the index, and not the HDF5 library,
which may crash or hang on damaged files, and takes 0.15 s to import. For any other file (damaged, changed by another
program, or of version 1) the library lists the contents in a child process (:mod:`nbody.guarded_child`).
"""

import json
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbody.diagnostics.observables import ALWAYS
from nbody.errors import InputError
from nbody.trajectory.structure import layout


class UnknownFormat(Exception):
    """A form of HDF5 that nbody can't record into."""


GROUP, DATASET, LINK, MISSING, ELSEWHERE = "group", "dataset", "link", "missing", "elsewhere"

FOOTER = struct.Struct("<QII8s")
"""The file's last bytes: the length of the structure, the length of the index's JSON before the footer, the JSON's
checksum."""
MAGIC = b"nbodyidx"
LARGEST_STRUCTURE, LARGEST_INDEX = 2**24, 2**22
MOST_OBSERVABLES, WIDEST_OBSERVABLE, DEEPEST_JSON = 1000, 2**20, 100


@dataclass(frozen=True)
class Found:
    """The object with a given name in the file.

    Attributes:
        kind: a group; a dataset; a link that may lead out of the file (not followed); missing; or a dataset whose bytes
            are in other files.
        attributes: names to plain values, text as str.
        stored: the bytes that a dataset takes in the file; ``filtered``: these may be fewer than in memory.
        offset: the address of its first byte; None if only the HDF5 library can read it (chunks, another byte order).
        length_at: the address of its length, which recording changes (see :func:`layout.growing`);
            None if it is stored in an unknown form.
    """

    kind: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dtype: np.dtype = field(default_factory=lambda: np.dtype("V"))
    shape: tuple[int, ...] = ()
    stored: int = 0
    filtered: bool = False
    offset: int | None = None
    length_at: int | None = None


@dataclass(frozen=True)
class Contents:
    """The object for every name of :func:`layout.names`, and the observables: name to width, in the order
    of their checksum."""

    found: Mapping[str, Found]
    observables: Mapping[str, int]

    @classmethod
    def of(cls, objects: Any, path: object) -> "Contents":
        """The contents in an index (or an answer of :class:`.h5format.LibraryFile`). ``path`` is for messages.

        Raises:
            InputError: the file has a newer format version.
            ValueError, TypeError, LookupError: ``objects`` is not a valid index.
        """
        attributes = objects[layout.NBODY].get("attributes", {})
        version = attributes.get(layout.VERSION, 1)
        if not isinstance(version, int) or version < 1:
            raise ValueError("its format version is no number")
        if version > layout.FORMAT_VERSION:
            raise InputError(
                f"{path}: is written in format version {version}, and this nbody reads up to {layout.FORMAT_VERSION}; "
                "update nbody"
            )
        observables = _observables(attributes.get(layout.OBSERVABLES))
        missing = {"kind": MISSING}
        return cls({name: _found(objects.get(name, missing)) for name in layout.names(observables)}, observables)


def _observables(stated: Any) -> Mapping[str, int]:
    """The attribute :data:`layout.OBSERVABLES`; files of version 1 have none."""
    if stated is None:
        return ALWAYS
    observables = parse_json(stated)
    if not isinstance(observables, dict) or len(observables) > MOST_OBSERVABLES:
        raise ValueError("it does not say which observables it holds")
    for name, width in observables.items():
        if not (name.isprintable() and isinstance(width, int) and 1 <= width <= WIDEST_OBSERVABLE) or "/" in name:
            raise ValueError("an observable has no valid name or width")
    return observables


def _found(entry: dict[str, Any]) -> Found:
    kind, attributes, length_at = str(entry["kind"]), dict(entry.get("attributes", {})), entry.get("length_at")
    stored, offset, shape = entry.get("stored", 0), entry.get("offset"), tuple(entry.get("shape", ()))
    for number in (stored, offset or 0, length_at or 0, *shape):
        if not isinstance(number, int) or not 0 <= number < 2**62:
            raise ValueError("a dataset has an impossible size or address")
    if kind != DATASET:
        return Found(kind, attributes, length_at=length_at)
    return Found(kind, attributes, np.dtype(entry["dtype"]), shape, stored, bool(entry["filtered"]), offset, length_at)


def parse_json(text: bytes | str) -> Any:
    """The value of a JSON text from a file. Raises ValueError if it is invalid or nested too deeply."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [value]
    for _ in range(DEEPEST_JSON):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return value
    raise ValueError("it is nested too deeply")


# --- The index ------------------------------------------------------------------------------------------------------


def pack_index(objects: Mapping[str, Any], structure: bytes) -> bytes:
    """The bytes that end a file: an index of ``objects`` (see :func:`.h5format.describe`) and a footer."""
    text = json.dumps({"structure_crc32": _structure_sum(structure, objects), "objects": objects}).encode()
    return text + FOOTER.pack(len(structure), len(text), zlib.crc32(text), MAGIC)


def read_index(fd: int) -> Any:
    """The index of an open file, for :meth:`Contents.of`. None if there is none, it is damaged, or it does not belong to the
    present structure of the file. Raises OSError."""
    size = os.fstat(fd).st_size
    if size < FOOTER.size:
        return None
    footer = os.pread(fd, FOOTER.size, size - FOOTER.size)
    length, count, crc, magic = FOOTER.unpack(footer)
    if magic != MAGIC or count > min(LARGEST_INDEX, size - FOOTER.size) or length > min(LARGEST_STRUCTURE, size):
        return None
    text, structure = os.pread(fd, count, size - FOOTER.size - count), os.pread(fd, length, 0)
    if zlib.crc32(text) != crc or len(structure) != length:
        return None
    try:
        index = parse_json(text)
        objects = index["objects"]
        return objects if index["structure_crc32"] == _structure_sum(structure, objects) else None
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError):
        return None


def _structure_sum(structure: bytes, objects: Mapping[str, Any]) -> int:
    """The checksum of the structure, without the lengths that recording changes."""
    data = bytearray(structure)
    for entry in objects.values():
        if (at := entry.get("length_at")) is not None:
            data[at : at + 8] = bytes(8)
    return zlib.crc32(data[: len(structure)])
