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

INTEGERS_READ = 2
"""The same for an operation of the integers' units that reads a float's result: the assembler leaves 5 cycles at least.
(With 4, one of 56 runs with a cutoff came to other sums.)"""

LONGEST_STALL = 15

BARRIER_RISES = 2
"""Cycles until a barrier that an instruction names is up, and can be waited for."""

Place = tuple[str, int]
"""A register, a uniform register or a predicate, and its number."""

SHARED: Place = ("shared memory", 0)
"""Stands for what other threads have done to shared memory before a barrier of the threads."""

BARRIER, OPENS = 0xB1D, 6
"""Such a barrier, and the cycles that the assembler leaves between it and an access to shared memory. (Loads 2 cycles behind
one came to other numbers.)"""


class Operation(NamedTuple):
    """What is known of an operation.

    Attributes:
        name: as nvdisasm prints it.
        kind: the units that do it: ``float``, ``root`` (reciprocal square roots), ``shuffle``, ``integer``, ``wide`` (one of
            64 bits), ``double``, ``load``, ``copy`` (past the registers), ``mark`` (which ends a group of copies) or
            ``void`` (never done, see :data:`VOID`).
        places: where it reads registers.
        latency: cycles until its result can be read. Roots and shuffles are told by a barrier instead, and this is what an
            order is planned with.
        fills: what takes the result: a ``register``; a ``uniform`` one, which a warp has once; a ``predicate``; or nothing.
        uniform: True if it reads a uniform register, in place b.
        selects: True if it chooses between its operands by a predicate.
        guarded: True if a predicate may decide whether it is done.
        apart: cycles from one to the next of its kind, and from a copy to the end of its group, at least: the assembler
            leaves no fewer anywhere in the ladder's kernels.
        mask, plain: bits that must be so, or its meaning is another one.
    """

    name: str
    kind: str
    places: str
    latency: int
    fills: str = "register"
    uniform: bool = False
    selects: bool = False
    guarded: bool = False
    apart: int = 1
    mask: int = 0
    plain: int = 0

    @property
    def holds_up(self) -> tuple[str, ...]:
        """The kinds of which none may begin for ``apart`` cycles."""
        return ("copy", "mark") if self.kind == "copy" else (self.kind,)

    @property
    def waited(self) -> bool:
        """True if a barrier tells when its result is there."""
        return self.kind in ("root", "shuffle", "load")

    def reads_earlier(self, fills: "Operation | None") -> int:
        """Cycles by which it reads earlier than a float operation would what one operation fills (None: an unknown one)."""
        if self.kind in ("shuffle", "load", "copy"):
            return SHUFFLES_READ
        late = fills is None or fills.kind in ("float", "double")
        return INTEGERS_READ if late and self.kind in ("integer", "wide") else 0


PAIRS = {"float", "root", "shuffle", "integer"}
"""The kinds that a loop over pairs is made of."""

PRODUCTS = {"double", "load", "integer", "mark"}
"""Those that a loop over products of matrices in float64 is made of."""

WITH_COPIES = PRODUCTS | {"wide", "copy", "void"}
"""The same with what starts the copies of the next slab, and moves on their addresses."""


def _bits(at: int, width: int, value: int = -1) -> int:
    return ((1 << width) - 1 if value < 0 else value) << at


NO_CARRY = _bits(77, 14)  # neither carries out nor in, of which there are two each
MAGNITUDES = _bits(62, 1) | _bits(73, 1)  # of operands b and a: they stay when these change places
EVERY_BYTE = _bits(72, 4)
SIGNS = _bits(62, 2) | _bits(72, 7)  # of a product of doubles, and how it is rounded
SIZE, WORD, QUAD = _bits(73, 3), _bits(73, 3, 4), _bits(73, 3, 6)  # one register of 32 bits, or four of them
ONE_RESULT, ONE_TRUE = _bits(84, 7), _bits(84, 3) | _bits(87, 4, ALWAYS)  # of one test, not combined with another
ONE_TEST = ONE_RESULT | _bits(72, 1)
BOTH = _bits(91, 1)  # a uniform register in the address as well
COPY = _bits(70, 35) & ~(SIZE | _bits(81, 1))  # but for how much it copies, and whether past the first-level cache
COPIES_ALL = _bits(70, 1) | _bits(76, 1) | _bits(84, 1) | _bits(87, 3) | _bits(91, 1)  # and fills in zeros for nothing
OPERATIONS = {
    0x220: Operation("FMUL", "float", "ab", 4, mask=MAGNITUDES),
    0x221: Operation("FADD", "float", "ab", 4),
    0x223: Operation("FFMA", "float", "abc", 4, mask=MAGNITUDES),
    0xE23: Operation("FFMA", "float", "ac", 4, uniform=True),
    0x308: Operation("MUFU", "root", "b", 24),
    0x589: Operation("SHFL", "shuffle", "ab", 24, mask=_bits(81, 3), plain=_bits(81, 3)),
    0x202: Operation("MOV", "integer", "b", 6, mask=EVERY_BYTE, plain=EVERY_BYTE),
    0x208: Operation("FSEL", "integer", "ab", 6, selects=True),
    0x20B: Operation("FSETP", "integer", "ab", 14, "predicate", mask=ONE_RESULT, plain=ONE_TRUE),
    0xC0B: Operation("FSETP", "integer", "a", 14, "predicate", True, mask=ONE_RESULT, plain=ONE_TRUE),
    0x810: Operation("IADD3", "integer", "ac", 6, mask=NO_CARRY, plain=NO_CARRY),
    0x836: Operation("VIADD", "integer", "a", 6),
    0x80C: Operation("ISETP", "integer", "a", 14, "predicate", mask=ONE_TEST, plain=ONE_TRUE),
    0x20C: Operation("ISETP", "integer", "ab", 14, "predicate", mask=ONE_TEST, plain=ONE_TRUE),
    0x824: Operation("IMAD", "integer", "ac", 6, mask=NO_CARRY, plain=_bits(81, 3, ALWAYS) | _bits(87, 4)),
    0x825: Operation("IMAD.WIDE", "wide", "ac", 8, apart=4, mask=NO_CARRY, plain=_bits(81, 3, ALWAYS) | _bits(87, 4)),
    0x210: Operation("IADD3", "integer", "abc", 6, mask=NO_CARRY, plain=NO_CARRY),
    0x22B: Operation("DFMA", "double", "abc", 16, mask=SIGNS),
    0x984: Operation("LDS", "load", "a", 30, mask=SIZE | BOTH, plain=QUAD),
    0xFAE: Operation("LDGSTS", "copy", "ad", 1, "", guarded=True, apart=4, mask=COPY, plain=COPIES_ALL),
    0x9AF: Operation("LDGDEPBAR", "mark", "", 1, ""),
    0xAB9: Operation("ULDC", "integer", "", 14, "uniform", mask=SIZE, plain=WORD),
    0x882: Operation("UMOV", "integer", "", 14, "uniform"),
}
"""The operations that may be put into another order. An unknown one ends a block. The latencies are the assembler's for
floats (4, as its own code waits), and longer than its own for the others."""

VOID = Operation("LDS", "void", "", 1, "")
"""A load under a predicate that is never true. The assembler puts three of them in front of an asynchronous copy that is
the first behind another access to shared memory, or behind a barrier (see :mod:`nbody.gpu.sass.copies`)."""

NEVER, LDS = 15, 0x984


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
        if self.predicate == NEVER and self.opcode == LDS and self.dest == ZERO:
            return VOID
        known = OPERATIONS.get(self.opcode)
        is_done = known and (self.predicate == ALWAYS or known.guarded)
        return known if known and is_done and self.word & known.mask == known.plain else None

    @property
    def filled(self) -> Place | None:
        """What takes the result: the kind and its number; None where that is nothing."""
        known = self.operation
        if known is None or not known.fills or (known.fills == "predicate" and self.field(81, 3) == ALWAYS):
            return None
        number = self.field(81, 3) if known.fills == "predicate" else self.dest
        return (known.fills, number) if number != ZERO else None

    @property
    def beside(self) -> list[Place]:
        """What it reads beside registers: a uniform one, a predicate, shared memory."""
        known, chosen, guard = self.operation, self.field(87, 3), self.field(12, 3)
        found: list[Place] = [("uniform", self.register("b"))] if known and known.uniform else []
        if known and known.kind in ("load", "copy"):
            found.append(SHARED)
        if known and known.kind == "copy":  # two uniform ones say what memory it is that it copies from
            found += [("uniform", self.field(64, 6) + k) for k in (0, 1)]
        if known and known.guarded and guard != ALWAYS:
            found.append(("predicate", guard))
        return [*found, ("predicate", chosen)] if known and known.selects and chosen != ALWAYS else found

    @property
    def dest(self) -> int:
        """The register that takes the result."""
        return self.field(16)

    def register(self, place: str) -> int:
        """The register of an operand; place d is the destination's."""
        return self.dest if place == "d" else self.field(PLACES[place])

    @property
    def stall(self) -> int:
        """Cycles until the warp's next instruction."""
        return self.field(105, 4)

    @property
    def holds(self) -> bool:
        """True if the warp is held on to."""
        return bool(self.field(109, 1))

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

    def controlled(
        self,
        stall: int,
        write_barrier: int = NO_BARRIER,
        waits: int = 0,
        keeps: int = 0,
        read_barrier: int = NO_BARRIER,
    ) -> "Instruction":
        """The same with other control bits. The warp is held on to, so that what it keeps is not lost."""
        assert 0 <= stall <= LONGEST_STALL
        bits = stall | 1 << 4 | write_barrier << 5 | read_barrier << 8 | waits << 11 | keeps << 17
        return self.replaced(105, 23, bits)

    def yielding(self) -> "Instruction":
        """The same, but the warp is not held on to."""
        return self.replaced(109, 1, 0)


def instructions(code: bytes) -> list[Instruction]:
    """The instructions in some bytes of machine code."""
    return [Instruction(int.from_bytes(code[at : at + 16], "little")) for at in range(0, len(code), 16)]


def encoded(body: list[Instruction]) -> bytes:
    """The bytes of some instructions."""
    return b"".join(instruction.word.to_bytes(16, "little") for instruction in body)
