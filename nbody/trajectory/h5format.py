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
DATASPACE, LAYOUT, ATTRIBUTE, CONTINUATION = 0x0001, 0x0008, 0x000C, 0x0010


class UnknownFormat(Exception):
    """The bytes are not the ones this module knows."""


def messages(fd: int, header: int) -> Iterator[tuple[int, int, bytes]]:
    """The messages of the object header at address ``header``: type, address of the content, content."""
    version, _, count, _, size = struct.unpack("<BBHII", os.pread(fd, 12, header))
    if version != 1:
        raise UnknownFormat(f"object header of version {version}")
    blocks = [(header + 16, size)]
    for start, length in blocks:
        block, at = os.pread(fd, length, start), 0
        while at + 8 <= len(block) and count:
            kind, size = struct.unpack_from("<HH", block, at)
            content = block[at + 8 : at + 8 + size]
            if kind == CONTINUATION:
                blocks.append(struct.unpack("<QQ", content[:16]))
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
        if kind != ATTRIBUTE or content[0] not in (1, 3):
            continue
        sizes = struct.unpack_from("<HHH", content, 2)
        pad = 8 if content[0] == 1 else 1
        start = 8 if content[0] == 1 else 9
        if content[start : start + sizes[0]].rstrip(b"\0") == name.encode():
            return _one_field(at + start + sum(-(-size // pad) * pad for size in sizes))
    raise UnknownFormat(f"no attribute {name}")


def _one_field(address: int) -> int:
    """``address``, if 8 bytes there lie within one page: such a write is all or nothing whatever happens."""
    if address % PAGE > PAGE - 8:
        raise UnknownFormat("a field crosses a page")
    return address
