"""The operations of Hopper's machine code that may be reordered: what each one is and how long it takes.

An operation that is not listed here ends a block and keeps its position.
"""

from typing import NamedTuple

ALWAYS = 7
"""The predicate register that is always true."""

SHUFFLES_READ = 4
"""Cycles by which a shuffle reads its operands earlier than arithmetic does. (With 0, 86 of 662 orders gave wrong sums.)"""

INTEGERS_READ = 2
"""The same for an operation of the integer units that reads the result of a float operation: the compiler waits at least 5
cycles. (With 0, which means 4 cycles, one of 56 runs with a cutoff gave wrong sums.)"""


class Operation(NamedTuple):
    """What is known about an operation.

    Attributes:
        name: the mnemonic, as nvdisasm prints it.
        kind: the unit that executes it: ``float``, ``rsqrt``, ``shuffle`` or ``integer``.
        places: the operands that are registers.
        latency: cycles until the result may be read. The end of a ``rsqrt`` or a ``shuffle`` is signalled by a barrier
            instead; for these it is an estimate for planning.
        writes: what receives the result: a ``register``, a ``uniform`` register (one per warp) or a ``predicate``.
        uniform: True if operand b is a uniform register.
        selects: True if a predicate selects one of its operands.
        mask, plain: the bits under ``mask`` must equal ``plain``, otherwise the operation means something else.
    """

    name: str
    kind: str
    places: str
    latency: int
    writes: str = "register"
    uniform: bool = False
    selects: bool = False
    mask: int = 0
    plain: int = 0

    @property
    def signalled(self) -> bool:
        """True if a barrier signals that its result is ready."""
        return self.kind in ("rsqrt", "shuffle")

    def reads_earlier(self, writer: "Operation | None") -> int:
        """Cycles by which it reads earlier than a float operation does; ``writer`` wrote the operand (None: unknown)."""
        if self.kind == "shuffle":
            return SHUFFLES_READ
        slow = writer is None or writer.kind == "float"
        return INTEGERS_READ if slow and self.kind == "integer" else 0


def _bits(at: int, width: int, value: int = -1) -> int:
    return ((1 << width) - 1 if value < 0 else value) << at


NO_CARRY = _bits(77, 14)  # two carries in and two out
# |b| and |a|: these bits belong to the position, so that a and b cannot be exchanged
MAGNITUDES = _bits(62, 1) | _bits(73, 1)
EVERY_BYTE = _bits(72, 4)
SIZE, WORD = _bits(73, 3), _bits(73, 3, 4)  # one register of 32 bits
ONE_RESULT, ONE_TRUE = _bits(84, 7), _bits(84, 3) | _bits(87, 4, ALWAYS)  # of one comparison, combined with no other
ONE_TEST = ONE_RESULT | _bits(72, 1)
OPERATIONS = {
    0x220: Operation("FMUL", "float", "ab", 4, mask=MAGNITUDES),
    0x221: Operation("FADD", "float", "ab", 4),
    0x223: Operation("FFMA", "float", "abc", 4, mask=MAGNITUDES),
    0xE23: Operation("FFMA", "float", "ac", 4, uniform=True),
    0x308: Operation("MUFU", "rsqrt", "b", 24),
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
    0xAB9: Operation("ULDC", "integer", "", 14, "uniform", mask=SIZE, plain=WORD),
}
"""The operations that may be reordered, by opcode. The latencies of float operations are the compiler's (4 cycles), the
others are longer than the compiler's."""

COMMUTATIVE = {0x220, 0x223}
"""Operations whose operands a and b may be exchanged: the sign of the product has its own bits."""
