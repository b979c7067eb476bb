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

from nbody.gpu.sass.operations import ALWAYS, LDS, NEVER, OPERATIONS, VOID, Operation

PLACES = {"a": 24, "b": 32, "c": 64}
ZERO = 255
"""The register that reads as zero, and takes what nobody wants."""

NO_BARRIER = 7
BARRIERS = 6

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
