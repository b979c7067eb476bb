"""What an HDF5 file holds, read without the HDF5 library: groups, datasets and attributes as skeleton.py makes them.

A file may come from anywhere, and the library's parser believes what it reads: of files damaged at random some crash
it, some send it round in circles, and no ``except`` stops either. This one follows no address, size or count that it
has not compared with the file's end and with a bound, knows only the handful of structures that our own files are made
of, and can't do worse than raise. What it does not know (a file that another program rewrote) is UnknownFormat:
:mod:`.stranger` then asks the library, in a process of its own. It is also quicker: 1.1 ms a file against 5.2 with
h5py, whose import takes 150 (h5py 3.16, an AMD EPYC).

Fields as in the "HDF5 File Format Specification Version 3.0", sections II to IV.
"""

import math
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from nbody.trajectory import h5format
from nbody.trajectory.h5format import UnknownFormat, messages

SIGNATURE = b"\x89HDF\r\n\x1a\n"
NOWHERE = 2**64 - 1
MOST_ENTRIES = 4096
"""In a group, and of nodes in its tree; ours have at most 25."""

MOST_ATTRIBUTES, LARGEST_HEAP = 100, 2**16
"""Of one object, and of a collection of texts; ours have at most 25, and 8 kB."""

FLOATS = {4: (0, 32, 23, 8, 0, 23, 127), 8: (0, 64, 52, 11, 0, 52, 1023)}
"""IEEE 754: bit offset, precision, exponent's place and size, mantissa's place and size, exponent's bias."""

NO_DTYPE = np.dtype("V")
GROUP, DATASET, LINK, MISSING, ELSEWHERE = "group", "dataset", "link", "missing", "elsewhere"


@dataclass(frozen=True)
class Found:
    """What a name in the file stands for.

    Attributes:
        kind: a group; a dataset; a link that may lead elsewhere (not followed); missing; or a dataset whose bytes are
            in other files.
        attributes: names to plain values, text as str.
        dtype, shape: the dataset's.
        stored: how many bytes of the file it takes.
        filtered: whether these may be fewer than what it holds: compressed chunks.
        offset: where they begin, if they lie one after the other as they are in memory; None if only the HDF5 library
            can read them, or nothing has been stored.
        header: the address of the object header; 0 where the library looked it up.
    """

    kind: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    dtype: np.dtype = NO_DTYPE
    shape: tuple[int, ...] = ()
    stored: int = 0
    filtered: bool = False
    offset: int | None = None
    header: int = 0


class Structure:
    """The structure of the file that is open as ``fd``. Names are looked up by :meth:`find`.

    Raises:
        UnknownFormat: it is HDF5 of a kind that nbody does not write.
        ValueError (or struct.error, LookupError): it is damaged.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._groups: dict[int, dict[str, tuple[int, bool]]] = {}
        block = os.pread(fd, 96, 0)
        if block[:8] != SIGNATURE or len(block) < 96:
            raise UnknownFormat("no superblock at its beginning")
        if block[8:16] != bytes((0, 0, 0, 0, 0, 8, 8, 0)):
            raise UnknownFormat("superblock")
        base, _, end, _, _, self._root = struct.unpack_from("<6Q", block, 24)
        if base or end > os.fstat(fd).st_size:
            raise ValueError("it has been cut short")

    def find(self, name: str) -> Found:
        """What ``name`` (``particles/trajectory/mass``) stands for, if every step there is a hard link."""
        address = self._root
        for part in name.split("/"):
            entries = self._entries(address)
            if part not in entries:
                return Found(MISSING)
            address, is_link = entries[part]
            if is_link:
                return Found(LINK)
        return self._object(address)

    def _entries(self, header: int) -> dict[str, tuple[int, bool]]:
        """The entries of a group (none, if it is a dataset): address, and whether it is a link by name."""
        if header not in self._groups:
            found = [content for kind, _, content in messages(self.fd, header) if kind == h5format.SYMBOL_TABLE]
            if not found and not any(kind == h5format.DATASPACE for kind, _, _ in messages(self.fd, header)):
                raise UnknownFormat("a group without a symbol table")
            self._groups[header] = self._table(*struct.unpack_from("<QQ", found[0])) if found else {}
        return self._groups[header]

    def _table(self, tree: int, heap: int) -> dict[str, tuple[int, bool]]:
        """The entries of a symbol table: a B-tree (version 1) of leaves, and a heap of names."""
        signature, size, _, names_at = struct.unpack("<8s3Q", h5format.read(self.fd, heap, 32))
        if signature != b"HEAP\0\0\0\0":
            raise ValueError(f"no heap at address {heap}")
        names = h5format.read(self.fd, names_at, size)
        found: dict[str, tuple[int, bool]] = {}
        nodes = [tree]
        for at in nodes:
            if len(nodes) + len(found) > MOST_ENTRIES:
                raise ValueError(f"the group at address {tree} is endless")
            start = h5format.read(self.fd, at, 8)
            if start[:4] == b"TREE" and start[4] == 0:
                used = struct.unpack_from("<H", start, 6)[0]
                keys = h5format.read(self.fd, at + 24, 16 * used)
                nodes += [struct.unpack_from("<Q", keys, 16 * k + 8)[0] for k in range(used)]
            elif start[:5] == b"SNOD\x01":
                used = struct.unpack_from("<H", start, 6)[0]
                table = h5format.read(self.fd, at + 8, 40 * used)
                for name, header, cache in struct.iter_unpack("<QQI20x", table):
                    found[names[name : names.index(0, name)].decode()] = header, cache == 2
            else:
                raise ValueError(f"no node of a group at address {at}")
        return found

    def _object(self, header: int) -> Found:
        """The group or dataset whose header is at an address."""
        get = partial(dict.get, {kind: content for kind, _, content in messages(self.fd, header)})
        attributes = self._attributes(header)
        space, kind, where = get(h5format.DATASPACE), get(h5format.DATATYPE), get(h5format.LAYOUT)
        if space is None or kind is None or where is None:
            return Found(GROUP, attributes, header=header)
        if get(h5format.FILTERS) or get(h5format.EXTERNAL_FILES) or where[:2] != bytes((3, 1)):
            raise UnknownFormat("a dataset that is not contiguous")
        offset, stored = struct.unpack_from("<QQ", where, 2)
        dtype, shape = datatype(kind), dimensions(space)
        if offset == NOWHERE:
            return Found(DATASET, attributes, dtype, shape, header=header)
        if offset + stored > os.fstat(self.fd).st_size:
            raise ValueError(f"the bytes of the dataset at address {header} are beyond its end")
        return Found(DATASET, attributes, dtype, shape, stored, offset=offset, header=header)

    def _attributes(self, header: int) -> dict[str, Any]:
        found = {}
        for kind, _, content in messages(self.fd, header):
            if kind == h5format.ATTRIBUTE:
                name, type_, space, at = h5format.attribute_parts(content)
                found[name] = self._value(type_, dimensions(space), content[at:])
                if len(found) > MOST_ATTRIBUTES:
                    raise ValueError(f"the object at address {header} has too many attributes")
        return found

    def _value(self, kind: bytes, shape: tuple[int, ...], data: bytes) -> Any:
        """An attribute's value as Python's own: a number, text, or a list of them."""
        if kind[0] == 0x19 and kind[1] & 0x0F == 1 and not shape:  # text of variable length
            return self._text(*struct.unpack_from("<IQI", data))
        return plain(np.frombuffer(data, datatype(kind), math.prod(shape)).reshape(shape))

    def _text(self, length: int, collection: int, index: int) -> str:
        """A text in a collection of the global heap."""
        if not length:
            return ""
        signature, size = struct.unpack("<8sQ", h5format.read(self.fd, collection, 16))
        if signature != b"GCOL\x01\0\0\0" or size > LARGEST_HEAP:
            raise ValueError(f"no heap at address {collection}")
        heap, at = h5format.read(self.fd, collection, size), 16
        while at + 16 <= size:
            number, _, _, taken = struct.unpack_from("<HHIQ", heap, at)
            if number == index and length <= taken <= size - at - 16:
                return heap[at + 16 : at + 16 + length].decode(errors="replace")
            if not number:
                break
            at += 16 + -(-taken // 8) * 8
        raise ValueError(f"no text {index} in the heap at address {collection}")


def dimensions(message: bytes) -> tuple[int, ...]:
    """The shape that a dataspace message says."""
    if message[0] != 1 or message[1] > 32:
        raise UnknownFormat("dataspace")
    return struct.unpack_from(f"<{message[1]}Q", message, 8)


def datatype(message: bytes) -> np.dtype:
    """The dtype that a datatype message says."""
    return _datatype(message)[0]


def _datatype(message: bytes) -> tuple[np.dtype, int]:
    """The dtype, and how many bytes of the message say it."""
    kind, bits, size = message[0], message[1], struct.unpack_from("<I", message, 4)[0]
    order = ">" if bits & 1 else "<"
    if kind == 0x10 and size in (1, 2, 4, 8):  # whole number
        if struct.unpack_from("<HH", message, 8) == (0, 8 * size):
            return np.dtype(f"{order}{'i' if bits & 8 else 'u'}{size}"), 12
    elif kind == 0x11 and size in FLOATS:
        if struct.unpack_from("<HHBBBBI", message, 8) == FLOATS[size] and not bits & 0x40:
            return np.dtype(f"{order}f{size}"), 20
    elif kind == 0x13 and 0 < size < 2**31:  # text of fixed length
        return np.dtype(f"S{size}"), 8
    elif kind == 0x16:
        return _compound(message, size)
    raise UnknownFormat(f"datatype {kind:#x} of {size} bytes")


def _compound(message: bytes, size: int) -> tuple[np.dtype, int]:
    names, formats, offsets, at = [], [], [], 8
    for _ in range(struct.unpack_from("<H", message, 1)[0]):
        end = message.index(0, at)
        names.append(message[at:end].decode())
        at += -(-(end + 1 - at) // 8) * 8
        offset, rank = struct.unpack_from("<IB", message, at)
        if rank or message[at + 32] == 0x16:
            raise UnknownFormat("an array or a compound within a compound")
        inner, taken = _datatype(message[at + 32 :])
        formats.append(inner)
        offsets.append(offset)
        at += 32 + taken
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size}), at


def plain(value: Any) -> Any:
    """A NumPy value as Python's own: numbers, text (NUL-padded bytes are text), lists."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value
