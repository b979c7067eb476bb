"""The registers that an instruction reads and writes, as far as they are known.

The widths are those that nvdisasm shows beside its listing (``-plr``, register lifetimes) for 24 kernels of this project.
"""

from typing import NamedTuple

from nbody.forces.scheduled.instruction import ZERO, Instruction, Place

FAMILY = 0x1FF
"""The bits of an opcode without the kinds of its operands, which the upper three bits give."""

REGISTERS = 1
"""The kind with registers only. For other kinds place b holds something else: the second operand for the kinds in
:data:`SECOND`, the third operand for the rest. The other of these two operands is in place c."""

SECOND = (4, 5, 6)

ARITHMETIC = {
    0x002: "0 1 0  1",  # MOV
    0x007: "1 1 0  1",  # SEL
    0x008: "1 1 0  1",  # FSEL
    0x00B: "1 1 0  0",  # FSETP
    0x00C: "1 1 0  0",  # ISETP
    0x010: "1 1 1  1",  # IADD3
    0x011: "1 1 1  1",  # LEA
    0x012: "1 1 1  1",  # LOP3
    0x019: "1 1 1  1",  # SHF
    0x020: "1 1 0  1",  # FMUL
    0x021: "1 1 0  1",  # FADD
    0x023: "1 1 1  1",  # FFMA
    0x024: "1 1 1  1",  # IMAD
    0x025: "1 1 2  2",  # IMAD.WIDE
    0x027: "1 1 2  1",  # IMAD.HI
    0x02B: "2 2 2  2",  # DFMA
    0x035: "1 1 1  1",  # HFMA2.MMA
    0x036: "1 1 0  1",  # VIADD
    0x108: "0 1 0  1",  # MUFU
}
"""Registers of the three operands, and of the result."""

COMPARISONS = {0x00B, 0x00C}
"""FSETP and ISETP, whose results are predicates."""

OTHERS = {
    0x229: "a2 c2  2",  # DADD
    0x805: "     2",  # CS2R
    0x919: "     1",  # S2R
    0x589: "a1 b1  1",  # SHFL, the lane in a register
    0xF89: "a1  1",  # SHFL
    0x984: "a1  s",  # LDS
    0x981: "a2  s",  # LDG
    0xB82: "a1  s",  # LDC
    0x388: "a1 bs  0",  # STS
    0x988: "a1 bs  0",
    0x986: "a2 bs  0",  # STG
    0x9A8: "a2 bs  s",  # ATOMG
}
"""The same for other operations, by place; s: the size that the instruction itself gives."""

SIZE_AT, SIZES = 73, {0: 1, 1: 1, 4: 1, 5: 2, 6: 4}
"""The field for the number of registers that are moved, and the number for each of its values. (0 and 1 are a byte, or the
whole register that an ATOMG adds to; 2 is half a register or, for an ATOMG, two.)"""

CONTROL = {0x947, 0x94D, 0x941, 0x945, 0x948, 0x918, 0x91A, 0x9AF, 0xB1D}
"""Branches and barriers, which read and write no registers."""

NO_REGISTERS = CONTROL | {
    0x81C,  # predicates
    0x290, 0x890, 0x291, 0x891, 0x292, 0x892, 0x299, 0x899, 0x2A4, 0x8A4, 0x2A5, 0x8A5, 0x882, 0xAB9, 0x9C3,  # uniform
}  # fmt: skip
"""Operations on no registers but uniform ones."""


class Operands(NamedTuple):
    """How many registers an instruction reads, by place, and how many it writes."""

    read: dict[str, int]
    written: int


def operands(instruction: Instruction) -> Operands | None:
    """The registers that an instruction reads and writes; None where that is not known."""
    opcode = instruction.opcode
    if opcode in NO_REGISTERS:
        return Operands({}, 0)
    if opcode in OTHERS:
        size = SIZES.get(instruction.field(SIZE_AT, 3))
        if size is None and "s" in OTHERS[opcode]:
            return None
        *read, written = OTHERS[opcode].replace("s", str(size)).split()
        return Operands({each[0]: int(each[1:]) for each in read}, int(written))
    family, kind = opcode & FAMILY, opcode >> 9
    if family not in ARITHMETIC or kind == 0:
        return None
    first, second, third, written = ARITHMETIC[family].split()
    if kind == REGISTERS:
        widths = {"a": first, "b": second, "c": third}
    else:
        widths = {"a": first, "c": third if kind in SECOND else second}
    return Operands({place: int(width) for place, width in widths.items() if width != "0"}, int(written))


def is_comparison(instruction: Instruction) -> bool:
    """True for an instruction that writes predicates only."""
    return instruction.opcode & FAMILY in COMPARISONS and instruction.opcode >> 9 > 0


def places_read(instruction: Instruction, place: str) -> list[Place]:
    """The registers of one operand of a known instruction."""
    known, first = operands(instruction), instruction.register(place)
    assert known is not None
    return [("register", first + k if first != ZERO else ZERO) for k in range(known.read.get(place, 0))]


def places_written(instruction: Instruction) -> list[Place]:
    """The places that receive the result of a known instruction."""
    known, place = operands(instruction), instruction.destination
    assert known is not None
    if place is None or place[0] != "register":
        return [place] if place else []
    return [("register", place[1] + k) for k in range(known.written)]


def registers(first: int, width: int) -> int:
    """``width`` registers from ``first`` on, one bit each."""
    return (1 << width) - 1 << first if first != ZERO else 0
