"""Which registers hold a number that is still needed, before and after each instruction.

Where the meaning of an instruction is not known, more is said to be needed than is: that costs registers, nothing else.
"""

from nbody.gpu.sass.instruction import ALWAYS, ZERO, Instruction

EVERY = (1 << ZERO) - 1
"""All registers, a bit each."""

RETURN, EXIT = 0x950, 0x94D
BRANCH, MEET, APART = 0x947, 0x945, 0x348
"""Operations that name another place: a branch, where branches meet again (BSSY), and where shuffles of lanes apart do."""

PLAIN = 0xE0
"""What stands above the offset of a branch that is taken on no further condition (such as the warp's lanes being apart)."""

ARRIVALS = {0x941, 0x942, 0x91B}
"""Operations after which a lane goes on at a place that a ``MEET`` or ``APART`` has named."""

ELSEWHERE = {0x949, 0x94A, 0x94B, 0x94C, 0x343, 0x344, 0x943, 0x944}
"""Branches to where a register says, and calls: with one of these nothing is known."""

IMMEDIATE, CONSTANT, UNIFORM = 4, 5, 6
"""What stands in place b, in bits 9 to 11, where it is no register."""

NARROW = {
    0x202, 0x802, 0x207, 0x807, 0xC07, 0x208, 0x210, 0x810, 0xC10, 0x211, 0xC11, 0x212, 0x812, 0xC12, 0x219, 0x819, 0x220,
    0x221, 0x223, 0xE23, 0x224, 0x424, 0x824, 0xC24, 0x836, 0xC36, 0x308, 0x435, 0x589, 0x389, 0x919,
}  # fmt: skip
"""Operations that read single registers and certainly fill one: moves, selections, arithmetic of 32 bits, shuffles."""

WIDE = {0x225, 0x825, 0xC25, 0x805}
"""Operations that certainly fill two."""

LOADS, STORES, SIZES = {0x984, 0x981, 0xB82}, {0x388, 0x988, 0x986}, {4: 1, 5: 2, 6: 4}
"""Operations that move as many registers as bits 73 to 75 say."""

KIND, MEMORY = 0x1FF, range(0x180, 0x1B0)
"""An operation without what its operands are; those of them that load, store, or do both: what these store is always in
registers."""

COMPARISONS = {0x20C, 0x80C, 0xC0C}
"""Operations that read single registers and fill none."""

CERTAIN = NARROW | WIDE | COMPARISONS
"""Operations of which it is known which registers they read and fill."""


def target(at: int, instruction: Instruction) -> int:
    """The index of the instruction that a branch at index ``at`` goes to, or names."""
    if instruction.opcode == MEET:
        return at + 1 + (instruction.field(32, 32) ^ 1 << 31) // 16 - (1 << 31) // 16
    offset = instruction.field(34, 48)
    signed = offset - (1 << 48) if offset >> 47 else offset
    return at + 1 + (signed * 256 + instruction.field(16)) * 4 // 16


def read(instruction: Instruction) -> int:
    """The registers that it may read, a bit each: four from each place that might name one, unless it is known better."""
    operation, opcode = instruction.operation, instruction.opcode
    if opcode == RETURN:
        return EVERY
    kind = opcode >> 9
    bare = kind in (IMMEDIATE, CONSTANT, UNIFORM) and opcode & KIND not in MEMORY
    places = "a" if opcode in LOADS else "ac" if bare else "abc"
    places = operation.places if operation else places
    width = 1 if operation or opcode in NARROW | COMPARISONS else 4
    widths = dict.fromkeys(places, width)
    if opcode in STORES:
        widths["b"] = SIZES.get(instruction.field(73, 3), 4)
    registers = [(instruction.register(place), wide) for place, wide in widths.items()]
    if predicated(instruction) or not written(instruction):
        registers.append((instruction.dest, 4))  # what it leaves there, or what it stores
    return _bits(registers)


def written(instruction: Instruction) -> int:
    """The registers that it certainly fills."""
    opcode = instruction.opcode
    if predicated(instruction):
        return 0
    width = 1 if opcode in NARROW else 2 if opcode in WIDE else 0
    if opcode in LOADS:
        width = SIZES.get(instruction.field(73, 3), 0)
    return _bits([(instruction.dest, width)])


def filled_widely(instruction: Instruction) -> int:
    """The registers that it may fill: four from its destination on, unless it is known better."""
    return written(instruction) or _bits([(instruction.dest, 4)])


def predicated(instruction: Instruction) -> bool:
    """True if a predicate decides whether it is done."""
    return instruction.predicate != ALWAYS


def _bits(registers: list[tuple[int, int]]) -> int:
    found = 0
    for first, width in registers:
        found |= (1 << width) - 1 << first if first != ZERO else 0
    return found & EVERY


def successors(body: list[Instruction]) -> list[set[int]]:
    """Where control may go from each instruction."""
    places = {target(at, x) for at, x in enumerate(body) if x.opcode in (MEET, APART)}
    found = []
    for at, instruction in enumerate(body):
        ends = instruction.opcode in (EXIT, BRANCH, RETURN) and instruction.predicate == ALWAYS
        plain = instruction.opcode != BRANCH or instruction.field(82, 23) == PLAIN
        after = set() if ends and plain else {at + 1}
        if instruction.opcode in (BRANCH, MEET, APART):
            after.add(target(at, instruction))
        if instruction.opcode in ARRIVALS:
            after |= places
        found.append({k for k in after if 0 <= k < len(body)})
    return found


def live_before(body: list[Instruction]) -> list[int]:
    """The registers that may be read before they are filled again, from before each instruction on, a bit each.

    The smallest sets for which live = (live after, without what is filled) with what is read, where live after is that of
    all successors.
    """
    after, needed = successors(body), [0] * len(body)
    changed = True
    while changed:
        changed = False
        for at in range(len(body) - 1, -1, -1):
            live = 0
            for k in after[at]:
                live |= needed[k]
            live = live & ~written(body[at]) | read(body[at])
            if live != needed[at]:
                needed[at], changed = live, True
    return needed
