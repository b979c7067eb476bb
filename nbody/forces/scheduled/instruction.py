"""One instruction of Hopper's machine code (sm_90): 128 bits, the fields in them, and where instructions lie in a cubin.

    bit   0  operation (12 bits; the upper three give the kind of operand b)
         12  predicate register, 7 for "always", and 15 its negation
         16  destination register
         24  operand a     32  operand b     64  operand c     (registers of eight bits; 255 reads as zero)
        105  control: stall cycles until this warp's next instruction, 4 bits; a bit that lets no other warp issue in
             between; the barrier released when the result is written, 3 bits (7: none), and the one released when the
             operands are read; the barriers to wait for, 6 bits; operands cached for reuse (a, b, c), 3 bits.

The hardware does not check whether an operand is ready; the control bits must ensure it: stall cycles for operations
of fixed latency, barriers for those of variable latency.

Sources: the encoding as nvdisasm prints it; Jia, Maggioni, Staiger and Scarpazza (2018), "Dissecting the NVIDIA Volta GPU
architecture via microbenchmarking", on control bits and register banks, which have not changed since.
"""

import struct
from dataclasses import dataclass
from typing import NamedTuple

from nbody.forces.scheduled.operations import ALWAYS, OPERATIONS, Operation

PLACES = {"a": 24, "b": 32, "c": 64}
ZERO = 255
"""The register that reads as zero and discards what is written to it."""

NO_BARRIER = 7
BARRIERS = 6

LONGEST_STALL = 15

BARRIER_DELAY = 2
"""Cycles from the issue of an instruction until its barrier is set and can be waited for."""

Place = tuple[str, int]
"""A ``register``, a ``uniform`` register or a ``predicate``, and its number."""


@dataclass(frozen=True)
class Instruction:
    """An instruction; ``word`` is its 16 bytes as one number."""

    word: int

    def field(self, at: int, width: int = 8) -> int:
        """``width`` bits from bit ``at`` on."""
        return self.word >> at & ((1 << width) - 1)

    def replaced(self, at: int, width: int, value: int) -> "Instruction":
        """A copy with another value in a field."""
        mask = ((1 << width) - 1) << at
        return Instruction(self.word & ~mask | value << at)

    @property
    def opcode(self) -> int:
        """The operation, with the kind of its operands."""
        return self.field(0, 12)

    @property
    def predicate(self) -> int:
        """The predicate register that decides whether it executes; :data:`ALWAYS` if none does. 8 more: its negation."""
        return self.field(12, 4)

    @property
    def operation(self) -> Operation | None:
        """What is known about it; None if it is unknown, or if a predicate decides whether it executes."""
        known = OPERATIONS.get(self.opcode)
        return known if known and self.predicate == ALWAYS and self.word & known.mask == known.plain else None

    @property
    def destination(self) -> Place | None:
        """The place that receives the result, or None."""
        known = self.operation
        if known is None or (known.writes == "predicate" and self.field(81, 3) == ALWAYS):
            return None
        number = self.field(81, 3) if known.writes == "predicate" else self.dest
        return (known.writes, number) if number != ZERO else None

    @property
    def other_sources(self) -> list[Place]:
        """The places that it reads besides registers: a uniform register or a predicate."""
        known, selector = self.operation, self.field(87, 3)
        if known and known.uniform:
            return [("uniform", self.register("b"))]
        return [("predicate", selector)] if known and known.selects and selector != ALWAYS else []

    @property
    def dest(self) -> int:
        """The destination register."""
        return self.field(16)

    def register(self, place: str) -> int:
        """The register of operand ``a``, ``b`` or ``c``; ``d`` is the destination register (data of some stores)."""
        return self.dest if place == "d" else self.field(PLACES[place])

    @property
    def stall(self) -> int:
        """Cycles until the warp's next instruction."""
        return self.field(105, 4)

    @property
    def keeps_warp(self) -> bool:
        """True if the scheduler issues no other warp in between."""
        return bool(self.field(109, 1))

    @property
    def write_barrier(self) -> int:
        """The barrier that is released when the result is written."""
        return self.field(110, 3)

    @property
    def read_barrier(self) -> int:
        """The barrier that is released when the operands are read."""
        return self.field(113, 3)

    @property
    def waits(self) -> int:
        """The barriers that it waits for, one bit each."""
        return self.field(116, 6)

    @property
    def reuse(self) -> int:
        """The operands that are cached for the next instruction, one bit each: a, b, c."""
        return self.field(122, 3)

    def controlled(self, stall: int, write_barrier: int = NO_BARRIER, waits: int = 0, reuse: int = 0) -> "Instruction":
        """A copy with other control bits, and no read barrier. It keeps the warp, so that cached operands are not lost."""
        assert 0 <= stall <= LONGEST_STALL
        bits = stall | 1 << 4 | write_barrier << 5 | NO_BARRIER << 8 | waits << 11 | reuse << 17
        return self.replaced(105, 23, bits)


def instructions(code: bytes) -> list[Instruction]:
    """The instructions in the bytes of a section."""
    return [Instruction(int.from_bytes(code[at : at + 16], "little")) for at in range(0, len(code), 16)]


def encoded(body: list[Instruction]) -> bytes:
    """The bytes of instructions."""
    return b"".join(instruction.word.to_bytes(16, "little") for instruction in body)


class Section(NamedTuple):
    """A section of an ELF file: its name and where its bytes are."""

    name: bytes
    start: int
    size: int


def kernels(cubin: bytes) -> list[Section]:
    """The sections of a cubin that hold instructions. A cubin is an ELF file of 64 bits (System V ABI, chapter 4).

    Raises:
        ValueError: the file is not one.
    """
    if cubin[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not an ELF file of 64 bits")
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<3H", cubin, 58)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + k * size) for k in range(count)]
    text = headers[names][4]
    found = [
        Section(cubin[text + name : cubin.index(b"\0", text + name)], start, length)
        for name, _, _, _, start, length in headers
    ]
    return [section for section in found if section.name.startswith(b".text.")]
