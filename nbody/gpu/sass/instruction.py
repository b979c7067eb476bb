"""One instruction of Hopper's machine code (sm_90): 128 bits, and where in them its parts are.

    bit   0  operation (12 bits; the upper three say what kind of operand stands in place b)
         12  predicate, 7 for "always", and 15 its negation
         16  destination register
         24  operand a     32  operand b     64  operand c     (registers of eight bits; 255 reads as zero)
        105  control: cycles until this warp's next instruction may begin, 4 bits; a bit that holds on to the warp;
             the barrier that its result will lift, 3 bits (7: none), and that its having read will; the barriers to
             wait for, 6 bits; the operands to keep for the next instruction (a, b, c), 3 bits.

The hardware does not check whether an operand is ready: the control bits say it. An operation of fixed length is told by
the cycles, one of varying length by a barrier.

Sources: the encoding as nvdisasm prints it; Jia, Maggioni, Staiger and Scarpazza (2018), "Dissecting the NVIDIA Volta GPU
architecture via microbenchmarking", on the control bits and on register banks. It has not changed since.
"""

from dataclasses import dataclass
from typing import NamedTuple

PLACES = {"a": 24, "b": 32, "c": 64}
ZERO = 255
"""The register that reads as zero, and takes what nobody wants."""

ALWAYS = 7
NO_BARRIER = 7
BARRIERS = 6

SHUFFLES_READ = 4
"""Cycles by which a shuffle's operands must be there earlier than another operation's. (Of 662 orders that gave it only
what others need, 86 came to other sums.)"""

BARRIER_RISES = 2
"""Cycles until a barrier that an instruction names is up, and can be waited for."""

Place = tuple[str, int]
"""A register, a uniform register or a predicate, and its number."""


class Operation(NamedTuple):
    """What is known of an operation.

    Attributes:
        name: as nvdisasm prints it.
        kind: the units that do it: ``float``, ``root`` (reciprocal square roots), ``shuffle`` or ``integer``.
        places: where it reads registers.
        latency: cycles until its result can be read. Roots and shuffles are told by a barrier instead, and this is what an
            order is planned with.
        fills: what takes the result: a ``register``; a ``uniform`` one, which a warp has once; or a ``predicate``.
        uniform: True if it reads a uniform register, in place b.
        mask, plain: bits that must be so, or its meaning is another one.
    """

    name: str
    kind: str
    places: str
    latency: int
    fills: str = "register"
    uniform: bool = False
    mask: int = 0
    plain: int = 0

    @property
    def waited(self) -> bool:
        """True if a barrier tells when its result is there."""
        return self.kind in ("root", "shuffle")


def _bits(at: int, width: int, value: int = -1) -> int:
    return ((1 << width) - 1 if value < 0 else value) << at


NO_CARRY = _bits(77, 14)  # neither carries out nor in, of which there are two each
MAGNITUDES = _bits(62, 1) | _bits(73, 1)  # of operands b and a: they stay when these change places
EVERY_BYTE = _bits(72, 4)
SIZE, WORD = _bits(73, 3), _bits(73, 3, 4)  # one register of 32 bits, not two
ONE_TEST = _bits(84, 7) | _bits(72, 1)  # one result, not combined with another test
OPERATIONS = {
    0x220: Operation("FMUL", "float", "ab", 4, mask=MAGNITUDES),
    0x221: Operation("FADD", "float", "ab", 4),
    0x223: Operation("FFMA", "float", "abc", 4, mask=MAGNITUDES),
    0xE23: Operation("FFMA", "float", "ac", 4, uniform=True),
    0x308: Operation("MUFU", "root", "b", 24),
    0x589: Operation("SHFL", "shuffle", "ab", 24, mask=_bits(81, 3), plain=_bits(81, 3)),
    0x202: Operation("MOV", "integer", "b", 6, mask=EVERY_BYTE, plain=EVERY_BYTE),
    0x810: Operation("IADD3", "integer", "ac", 6, mask=NO_CARRY, plain=NO_CARRY),
    0x836: Operation("VIADD", "integer", "a", 6),
    0x80C: Operation(
        "ISETP", "integer", "a", 14, "predicate", mask=ONE_TEST, plain=_bits(84, 3) | _bits(87, 4, ALWAYS)
    ),
    0x20C: Operation(
        "ISETP", "integer", "ab", 14, "predicate", mask=ONE_TEST, plain=_bits(84, 3) | _bits(87, 4, ALWAYS)
    ),
    0xAB9: Operation("ULDC", "integer", "", 14, "uniform", mask=SIZE, plain=WORD),
    0x882: Operation("UMOV", "integer", "", 14, "uniform"),
}
"""The operations that may be put into another order: those of a loop over pairs. An unknown one ends a block. The latencies
are the assembler's for floats (4, as its own code waits), and longer than its own for the others."""


@dataclass(frozen=True)
class Instruction:
    """An instruction, as the number that its 16 bytes are."""

    word: int

    def field(self, at: int, width: int = 8) -> int:
        """The bits from ``at`` on."""
        return self.word >> at & ((1 << width) - 1)

    def replaced(self, at: int, width: int, value: int) -> "Instruction":
        """The same with another value in some bits."""
        mask = ((1 << width) - 1) << at
        return Instruction(self.word & ~mask | value << at)

    @property
    def opcode(self) -> int:
        """The operation, with its kind of operands."""
        return self.field(0, 12)

    @property
    def predicate(self) -> int:
        """The predicate register that decides; :data:`ALWAYS` if none does. 8 more: its negation."""
        return self.field(12, 4)

    @property
    def operation(self) -> Operation | None:
        """What is known of it; None where that is nothing, or where a predicate decides."""
        known = OPERATIONS.get(self.opcode)
        return known if known and self.predicate == ALWAYS and self.word & known.mask == known.plain else None

    @property
    def filled(self) -> Place | None:
        """What takes the result: the kind and its number; None where that is nothing."""
        known = self.operation
        if known is None or (known.fills == "predicate" and self.field(81, 3) == ALWAYS):
            return None
        number = self.field(81, 3) if known.fills == "predicate" else self.dest
        return (known.fills, number) if number != ZERO else None

    @property
    def dest(self) -> int:
        """The register that takes the result."""
        return self.field(16)

    def register(self, place: str) -> int:
        """The register of an operand."""
        return self.field(PLACES[place])

    @property
    def stall(self) -> int:
        """Cycles until the warp's next instruction."""
        return self.field(105, 4)

    @property
    def write_barrier(self) -> int:
        """The barrier that its result lifts."""
        return self.field(110, 3)

    @property
    def read_barrier(self) -> int:
        """The barrier that its having read lifts."""
        return self.field(113, 3)

    @property
    def waits(self) -> int:
        """The barriers that it waits for, a bit each."""
        return self.field(116, 6)

    @property
    def keeps(self) -> int:
        """The operands that are kept for the next instruction, a bit each: a, b, c."""
        return self.field(122, 3)

    def controlled(self, stall: int, write_barrier: int = NO_BARRIER, waits: int = 0, keeps: int = 0) -> "Instruction":
        """The same with other control bits. The warp is held on to, so that what it keeps is not lost."""
        bits = stall | 1 << 4 | write_barrier << 5 | NO_BARRIER << 8 | waits << 11 | keeps << 17
        return self.replaced(105, 23, bits)


def instructions(code: bytes) -> list[Instruction]:
    """The instructions in some bytes of machine code."""
    return [Instruction(int.from_bytes(code[at : at + 16], "little")) for at in range(0, len(code), 16)]


def encoded(body: list[Instruction]) -> bytes:
    """The bytes of some instructions."""
    return b"".join(instruction.word.to_bytes(16, "little") for instruction in body)
