"""Which registers hold a number that is still needed, before and after each instruction of a kernel.

An unknown instruction is assumed to read more registers, and to overwrite fewer, than it really does. That is safe; it only
costs free registers.
"""

from functools import cache

from nbody.forces.scheduled.instruction import ZERO, Instruction
from nbody.forces.scheduled.operands import CONTROL, FAMILY, is_comparison, operands, registers
from nbody.forces.scheduled.operations import ALWAYS

EVERY = (1 << ZERO) - 1
"""All registers, one bit each."""

RET, EXIT = 0x950, 0x94D
BRA, BSSY, BSYNC, WARPSYNC = 0x947, 0x945, 0x941, 0x348
"""A branch; BSSY, which names where the lanes that reach a convergence barrier continue, and BSYNC, which makes them arrive
there; WARPSYNC, which names such a target as well."""

UNCONDITIONAL = 0xE0
"""The bits above the offset of a branch that has no further condition (such as diverged lanes)."""

RESUMES = {0x942, 0x91B}
"""Operations after which a lane continues at some target that a BSSY or WARPSYNC has named."""

SETS_TARGET = {0x156, 0x157}
"""The opcode families of BMOV, by which a convergence barrier gets its target from a register."""

INDIRECT = {0x949, 0x94A, 0x94B, 0x94C, 0x343, 0x344, 0x943, 0x944}
"""Branches to an address in a register, and calls. A kernel with one of these is not analysed."""

WIDEST = 4
"""The most registers of one operand."""


def target(at: int, instruction: Instruction) -> int:
    """The index of the instruction that a branch or BSSY at index ``at`` names."""
    if instruction.opcode == BSSY:
        return at + 1 + (instruction.field(32, 32) ^ 1 << 31) // 16 - (1 << 31) // 16
    offset = instruction.field(34, 48)
    signed = offset - (1 << 48) if offset >> 47 else offset
    return at + 1 + (signed * 256 + instruction.field(16)) * 4 // 16


@cache
def read(instruction: Instruction) -> int:
    """The registers that it may read, one bit each. If it is unknown: four from each place that may name one."""
    if instruction.opcode == RET:
        return EVERY
    known = operands(instruction)
    widths = (
        known.read if known else dict.fromkeys("abcd", WIDEST)
    )  # some stores name their data in the destination field
    found = 0
    for place, width in widths.items():
        found |= registers(instruction.register(place), width)
    return found & EVERY


@cache
def written(instruction: Instruction) -> int:
    """The registers that it certainly writes."""
    known = operands(instruction)
    certain = known and instruction.predicate == ALWAYS
    return registers(instruction.dest, known.written) & EVERY if known and certain else 0


def touched(instruction: Instruction) -> list[int]:
    """The registers that it reads or writes."""
    left, found = read(instruction) | written(instruction), []
    while left:
        found.append((left & -left).bit_length() - 1)
        left &= left - 1
    return found


def may_write(instruction: Instruction) -> int:
    """The registers that it may write: four from its destination on, unless more is known."""
    if instruction.opcode in CONTROL or is_comparison(instruction):
        return 0
    return written(instruction) or registers(instruction.dest, WIDEST) & EVERY


def successors(body: list[Instruction]) -> list[set[int]]:
    """The instructions that control may reach from each instruction."""
    targets = {target(at, x) for at, x in enumerate(body) if x.opcode in (BSSY, WARPSYNC)}
    found: list[set[int]] = []
    for at, instruction in enumerate(body):
        ends = instruction.opcode in (EXIT, BRA, RET) and instruction.predicate == ALWAYS
        plain = instruction.opcode != BRA or instruction.field(82, 23) == UNCONDITIONAL
        after = set() if ends and plain else {at + 1}
        if instruction.opcode in (BRA, BSSY, WARPSYNC):
            after.add(target(at, instruction))
        if instruction.opcode in RESUMES:
            after |= targets
        found.append({k for k in after if 0 <= k < len(body)})
    _add_convergence(body, found, targets)
    return found


def _add_convergence(body: list[Instruction], after: list[set[int]], targets: set[int]) -> None:
    """Let each BSYNC continue at every target that a BSSY before it, on some path, has named for the same barrier; at any
    target if one may come from a register."""
    if any(instruction.opcode & FAMILY in SETS_TARGET for instruction in body):
        for at, instruction in enumerate(body):
            after[at] |= targets if instruction.opcode == BSYNC else set()
        return
    named: list[dict[int, set[int]] | None] = [None] * len(body)  # targets by barrier; None: no path leads here yet
    named[0], paths = {}, [0]
    while paths:
        at = paths.pop()
        now, instruction = named[at] or {}, body[at]
        barrier = instruction.field(16, 4)
        if instruction.opcode == BSSY:
            now = now | {barrier: {target(at, instruction)}}
        elif instruction.opcode == BSYNC:
            after[at] |= now.get(barrier, set())
        for k in after[at]:
            before = named[k]
            merged = {b: now.get(b, set()) | (before or {}).get(b, set()) for b in now.keys() | (before or {}).keys()}
            if merged != before:
                named[k] = merged
                paths.append(k)


def live_before(body: list[Instruction]) -> list[int]:
    """The registers that may be read before they are overwritten, from before each instruction on, one bit each.

    The smallest sets for which live before = (live after - written) + read, where live after is the union over all
    successors.
    """
    after, live = successors(body), [0] * len(body)
    changed = True
    while changed:
        changed = False
        for at in range(len(body) - 1, -1, -1):
            needed = 0
            for k in after[at]:
                needed |= live[k]
            needed = needed & ~written(body[at]) | read(body[at])
            if needed != live[at]:
                live[at], changed = needed, True
    return live
