"""The operations of Hopper's machine code that may be put into another order: what each is, and how long it takes.

What is not here ends a block, and stays where it is.
"""

from typing import NamedTuple

ALWAYS = 7
"""The predicate of what is done in any case."""

SHUFFLES_READ = 4
"""Cycles by which a shuffle's operands must be there earlier than another operation's. (Of 662 orders that gave it only
what others need, 86 came to other sums.)"""

INTEGERS_READ = 2
"""The same for an operation of the integers' units that reads a float's result: the assembler leaves 5 cycles at least.
(With 4, one of 56 runs with a cutoff came to other sums.)"""


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
        apart: cycles from one to the next of its kind, at least: the assembler leaves no fewer anywhere in the ladder's
            kernels. (From a copy to the end of its group it leaves two and more; here they are as many.)
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
"""Such a predicate, and the operation."""

COMMUTATIVE = {0x220, 0x223, 0x22B}
"""Operations whose operands a and b may change places: the sign of the product stands elsewhere."""
