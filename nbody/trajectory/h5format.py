"""Where in an HDF5 file the few bytes are that recording changes.

The file's skeleton is made by the HDF5 library in its oldest format (superblock 0, object headers of version 1, which
have no checksums). After that, adding a frame means writing its numbers into room that is already there, and raising
the first dimension of each dataset: one aligned 8-byte field each, so no moment exists at which the file is not a
valid HDF5 file. The library takes no part in it, so it can't leave flags set, keep blocks in a cache, or die on a
full disk; and a frame of 20480 particles in float32 takes 0.28 ms, against 1.5 ms with HDF5 in SWMR mode (medians
taken alternately, h5py 3.16, an AMD EPYC). Fields as in the "HDF5 File Format Specification Version 3.0", section IV.A.
"""

import os
import struct
from collections.abc import Iterator

PAGE = 4096
DATASPACE, DATATYPE, EXTERNAL_FILES, LAYOUT, FILTERS = 0x0001, 0x0003, 0x0007, 0x0008, 0x000B
ATTRIBUTE, CONTINUATION, SYMBOL_TABLE = 0x000C, 0x0010, 0x0011
SHARED = 0x02
"""The flag of a message whose content is elsewhere."""

LARGEST_BLOCK, MOST_BLOCKS = 2**18, 64
"""Of one object's metadata; ours take three blocks of a few kB. A damaged size or a loop must not be followed."""


class UnknownFormat(Exception):
    """The bytes are sound as far as one can tell, and not of the kinds that this module knows."""


def read(fd: int, at: int, count: int) -> bytes:
    """``count`` bytes of structure at address ``at``. Raises ValueError if they are too many, or beyond the end."""
    if count > LARGEST_BLOCK or at >= 2**62:
        raise ValueError(f"{count} bytes of structure at address {at}")
    found = os.pread(fd, count, at)
    if len(found) != count:
        raise ValueError(f"it ends before address {at + count}")
    return found


def messages(fd: int, header: int) -> Iterator[tuple[int, int, bytes]]:
    """The messages of the object header at address ``header``: type, address of the content, content.

    Raises UnknownFormat for a header or message of another kind, and ValueError for one that can't be."""
    version, _, count, _, size = struct.unpack("<BBHII", read(fd, header, 12))
    if version != 1:
        raise UnknownFormat(f"object header of version {version}")
    blocks = [(header + 16, size)]
    for start, length in blocks:
        block, at = read(fd, start, length), 0
        while at + 8 <= len(block) and count:
            kind, size, flags = struct.unpack_from("<HHB", block, at)
            content = block[at + 8 : at + 8 + size]
            if len(content) != size or (kind == CONTINUATION and size < 16) or len(blocks) > MOST_BLOCKS:
                raise ValueError(f"the object header at address {header} is torn")
            if flags & SHARED:
                raise UnknownFormat("a shared message")
            if kind == CONTINUATION:
                blocks.append(struct.unpack_from("<QQ", content))
            yield kind, start + at + 8, content
            at, count = at + 8 + size, count - 1


def _message(fd: int, header: int, wanted: int) -> tuple[int, bytes]:
    for kind, at, content in messages(fd, header):
        if kind == wanted:
            return at, content
    raise UnknownFormat(f"no message of type {wanted}")


def length_address(fd: int, header: int) -> int:
    """The address of the first dimension (uint64) of the dataset whose object header is at ``header``."""
    at, content = _message(fd, header, DATASPACE)
    if content[0] != 1 or content[1] < 1:
        raise UnknownFormat("dataspace")
    return _one_field(at + 8)


def storage_address(fd: int, header: int) -> int:
    """The address of the field (uint64) that says where a contiguous dataset's bytes are."""
    at, content = _message(fd, header, LAYOUT)
    if content[:2] != bytes((3, 1)):  # layout version 3, contiguous
        raise UnknownFormat("layout")
    return at + 2


def attribute_address(fd: int, header: int, name: str) -> int:
    """The address of the value of an 8-byte scalar attribute."""
    for kind, at, content in messages(fd, header):
        if kind == ATTRIBUTE:
            found, _, _, start = attribute_parts(content)
            if found == name:
                return _one_field(at + start)
    raise UnknownFormat(f"no attribute {name}")


def attribute_parts(content: bytes) -> tuple[str, bytes, bytes, int]:
    """An attribute's name, its datatype and dataspace messages, and where in ``content`` its value starts."""
    version, flags, *sizes = struct.unpack_from("<BBHHH", content)
    if version not in (1, 3) or (version == 3 and flags):
        raise UnknownFormat(f"attribute of version {version}")
    at, parts = 8 + (version == 3), []
    for size in sizes:
        parts.append(content[at : at + size])
        at += -(-size // 8) * 8 if version == 1 else size
    return parts[0].rstrip(b"\0").decode(), parts[1], parts[2], at


def _one_field(address: int) -> int:
    """``address``, if 8 bytes there lie within one page: such a write is all or nothing whatever happens."""
    if address % PAGE > PAGE - 8:
        raise UnknownFormat("a field crosses a page")
    return address
