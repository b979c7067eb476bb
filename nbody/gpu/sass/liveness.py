"""Which registers hold a number that is still needed, before and after each instruction.

Where the meaning of an instruction is not known, more is said to be needed than is: that costs registers, nothing else.
"""

from functools import cache

from nbody.gpu.sass.instruction import ZERO, Instruction
from nbody.gpu.sass.operands import CONTROL, FAMILY, is_comparison, operands, registers
from nbody.gpu.sass.operations import ALWAYS

EVERY = (1 << ZERO) - 1
"""All registers, a bit each."""

RETURN, EXIT = 0x950, 0x94D
BRANCH, MEET, APART = 0x947, 0x945, 0x348
"""Operations that name another place: a branch, where branches meet again (BSSY), and where shuffles of lanes apart do."""

PLAIN = 0xE0
"""What stands above the offset of a branch that is taken on no further condition (such as the warp's lanes being apart)."""

ARRIVE = 0x941
"""The one by which lanes meet again (BSYNC): they go on at the place that a ``MEET`` has named for the same barrier."""

ARRIVALS = {0x942, 0x91B}
"""Operations after which a lane goes on at some place that a ``MEET`` or ``APART`` has named."""

NAMES_ELSEWHERE = {0x156, 0x157}
"""Families by which a barrier for lanes gets a place out of a register (BMOV)."""

ELSEWHERE = {0x949, 0x94A, 0x94B, 0x94C, 0x343, 0x344, 0x943, 0x944}
"""Branches to where a register says, and calls: with one of these nothing is known."""

WIDEST = 4
"""Registers that a place names at most."""


def target(at: int, instruction: Instruction) -> int:
    """The index of the instruction that a branch at index ``at`` goes to, or names."""
    if instruction.opcode == MEET:
        return at + 1 + (instruction.field(32, 32) ^ 1 << 31) // 16 - (1 << 31) // 16
    offset = instruction.field(34, 48)
    signed = offset - (1 << 48) if offset >> 47 else offset
    return at + 1 + (signed * 256 + instruction.field(16)) * 4 // 16


@cache
def read(instruction: Instruction) -> int:
    """The registers that it may read, a bit each: where it is not known, four from each place that might name one."""
    if instruction.opcode == RETURN:
        return EVERY
    known = operands(instruction)
    widths = known.read if known else dict.fromkeys("abcd", WIDEST)  # what is stored may be named by the destination
    found = 0
    for place, width in widths.items():
        found |= registers(instruction.register(place), width)
    return found & EVERY


@cache
def written(instruction: Instruction) -> int:
    """The registers that it certainly fills."""
    known = operands(instruction)
    return registers(instruction.dest, known.filled) & EVERY if known and not predicated(instruction) else 0


def touched(instruction: Instruction) -> list[int]:
    """The registers that it reads or fills."""
    left, found = read(instruction) | written(instruction), []
    while left:
        found.append((left & -left).bit_length() - 1)
        left &= left - 1
    return found


def filled_widely(instruction: Instruction) -> int:
    """The registers that it may fill: four from its destination on, unless it is known better."""
    if instruction.opcode in CONTROL or is_comparison(instruction):
        return 0
    return written(instruction) or registers(instruction.dest, WIDEST) & EVERY


def predicated(instruction: Instruction) -> bool:
    """True if a predicate decides whether it is done."""
    return instruction.predicate != ALWAYS


def successors(body: list[Instruction]) -> list[set[int]]:
    """Where control may go from each instruction."""
    places = {target(at, x) for at, x in enumerate(body) if x.opcode in (MEET, APART)}
    found: list[set[int]] = []
    for at, instruction in enumerate(body):
        ends = instruction.opcode in (EXIT, BRANCH, RETURN) and instruction.predicate == ALWAYS
        plain = instruction.opcode != BRANCH or instruction.field(82, 23) == PLAIN
        after = set() if ends and plain else {at + 1}
        if instruction.opcode in (BRANCH, MEET, APART):
            after.add(target(at, instruction))
        if instruction.opcode in ARRIVALS:
            after |= places
        found.append({k for k in after if 0 <= k < len(body)})
    _add_meetings(body, found, places)
    return found


def _add_meetings(body: list[Instruction], behind: list[set[int]], places: set[int]) -> None:
    """Let each ``ARRIVE`` go on where a ``MEET`` that may come before it has sent its barrier; anywhere, if a register may
    have."""
    if any(instruction.opcode & FAMILY in NAMES_ELSEWHERE for instruction in body):
        for at, instruction in enumerate(body):
            behind[at] |= places if instruction.opcode == ARRIVE else set()
        return
    named: list[dict[int, set[int]] | None] = [None] * len(body)  # by barrier; None: no way there is known yet
    named[0], ways = {}, [0]
    while ways:
        at = ways.pop()
        now, instruction = named[at] or {}, body[at]
        barrier = instruction.field(16, 4)
        if instruction.opcode == MEET:
            now = now | {barrier: {target(at, instruction)}}
        elif instruction.opcode == ARRIVE:
            behind[at] |= now.get(barrier, set())
        for k in behind[at]:
            before = named[k]
            merged = {b: now.get(b, set()) | (before or {}).get(b, set()) for b in now.keys() | (before or {}).keys()}
            if merged != before:
                named[k] = merged
                ways.append(k)


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
