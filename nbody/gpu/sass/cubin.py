"""Where a kernel's instructions lie in a cubin, which is an ELF file."""

import struct
from typing import NamedTuple

TEXT = b".text."


class Section(NamedTuple):
    """A part of an ELF file: its name, and where its bytes are."""

    name: bytes
    start: int
    size: int


def sections(cubin: bytes) -> list[Section]:
    """The sections of an ELF file of 64 bits (System V ABI, chapter 4).

    Raises:
        ValueError: it is none.
    """
    if cubin[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not an ELF file of 64 bits")
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<3H", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + k * size) for k in range(count)]
    text = headers[names][4]
    return [
        Section(cubin[text + name : cubin.index(b"\0", text + name)], start, length)
        for name, _, _, _, start, length in headers
    ]


def kernels(cubin: bytes) -> list[Section]:
    """The sections with instructions."""
    return [section for section in sections(cubin) if section.name.startswith(TEXT)]
