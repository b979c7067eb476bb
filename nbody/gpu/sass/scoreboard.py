"""What is under way before each instruction.

First, the registers that are being filled or read by one that takes as long as it takes. Such an instruction names a
barrier, and who needs its result waits for that. One that names none is told by the barrier of the next one of its kind:
they end in the order in which they began.

Second, what one of fixed length fills some cycles later: the assembler has counted those to the first that reads it in its
own order, not in another.
"""

from nbody.gpu.sass.instruction import BARRIER, BARRIERS, NO_BARRIER, OPENS, SHARED, ZERO, Instruction, Place
from nbody.gpu.sass.liveness import BRANCH, filled_widely, read, successors, written
from nbody.gpu.sass.operands import FAMILY, operands, places_filled
from nbody.gpu.sass.operations import SHUFFLES_READ

VARYING = (0x184, 0x181, 0x182, 0x108, 0x189, 0x119, 0x105, 0x106, 0x111, 0x112, 0x188, 0x186, 0x1AE, 0x1A8)
"""Operations of varying length (their lower nine bits): loads, special functions, shuffles, conversions, stores,
atomics."""

ROOT = 0x108

FLOATS = {0x020, 0x021, 0x023, 0x02B, ROOT}
"""Operations that read a float's result as soon as it is there."""

STORES = {0x388, 0x988, 0x986, 0xFAE}
"""Operations that fill no register: the last one copies past them."""

DOUBLES, DOUBLES_TAKE = {0x029, 0x02B}, 16
"""Additions and multiply-adds in float64, and the cycles until their result is there."""

LONGEST = {"register": 11, "uniform": 14, "predicate": 14}
"""Cycles until the result of another instruction of fixed length is there, at most. (11 is what the assembler lets pass
between a HFMA2.MMA, the slowest, and a loop that reads its result tens of cycles later: it keeps no account beyond a loop's
edge.)"""

UNIFORM = 256
"""The bit of the first uniform register."""

State = tuple[int, ...]
"""For each barrier the registers that are under way, a bit each, the uniform ones behind the others; then, for each of
:data:`VARYING`, those of which no barrier tells yet."""

NOTHING: State = (0,) * (BARRIERS + len(VARYING))


def after(state: State, instruction: Instruction) -> State:
    """The state after an instruction has begun."""
    masks = [0 if k < BARRIERS and instruction.waits >> k & 1 else mask for k, mask in enumerate(state)]
    touched, kind = read(instruction) | filled_widely(instruction), instruction.opcode & FAMILY
    if not written(instruction):  # then what it fills may be a uniform register
        touched |= filled_widely(instruction) << UNIFORM
    untold = BARRIERS + VARYING.index(kind) if kind in VARYING else None
    if instruction.write_barrier != NO_BARRIER:
        masks[instruction.write_barrier] |= touched
        if untold is not None:
            masks[instruction.write_barrier] |= masks[untold]
            masks[untold] = 0
    elif untold is not None:
        masks[untold] |= touched
    if instruction.read_barrier != NO_BARRIER:
        masks[instruction.read_barrier] |= read(instruction)
        if instruction.opcode in STORES and untold is not None:  # they have no result that another barrier tells of
            masks[instruction.read_barrier] |= masks[untold]
            masks[untold] = 0
    return tuple(masks)


def untold(state: State) -> int:
    """The registers that are under way, and of which no barrier tells yet."""
    found = 0
    for mask in state[BARRIERS:]:
        found |= mask
    return found


def under_way(body: list[Instruction]) -> list[State]:
    """The state before each instruction: all that may be under way, whatever way control came."""
    behind, states = successors(body), [NOTHING] * len(body)
    changed = [True] * len(body)
    while any(changed):
        for at, instruction in enumerate(body):
            if not changed[at]:
                continue
            changed[at] = False
            state = after(states[at], instruction)
            for k in behind[at]:
                merged = tuple(a | b for a, b in zip(states[k], state, strict=True))
                if merged != states[k]:
                    states[k], changed[k] = merged, True
    return states


def filled_too_early(body: list[Instruction], block: range, barrier: int) -> int:
    """The registers that instructions behind a block may fill before a barrier is waited for, a bit each. (Where control
    comes to the block again, that looks after itself.)"""
    behind, seen, ways, found = successors(body), set(block), [block.stop], 0
    while ways:
        at = ways.pop()
        if at in seen or at >= len(body) or body[at].waits >> barrier & 1:
            continue
        if body[at].opcode not in STORES | {BRANCH}:
            found |= filled_widely(body[at])
        seen.add(at)
        ways += behind[at]
    return found


def is_punctual(instruction: Instruction) -> bool:
    """True for what certainly reads when it begins: arithmetic, moves, comparisons, and roots."""
    kind = instruction.opcode & FAMILY
    return operands(instruction) is not None and (kind == ROOT or kind not in VARYING)


def filled_late(instruction: Instruction) -> dict[Place, int]:
    """The places that an instruction of fixed length may fill, and after how many cycles: where it is not known, all that
    its fields may name, and the longest time."""
    known = instruction.operation
    if instruction.opcode == BARRIER:
        return {SHARED: OPENS}
    if known:
        return {} if known.waited else dict.fromkeys(places_filled(instruction), known.latency)
    varying = instruction.opcode & FAMILY in VARYING or instruction.write_barrier != NO_BARRIER
    if varying or instruction.opcode in STORES or instruction.opcode == BRANCH:
        return {}
    filled = filled_widely(instruction)
    found = [(kind, r) for kind in ("register", "uniform") for r in range(ZERO) if filled >> r & 1]
    found += [("predicate", instruction.field(at, 3)) for at in (81, 84)]
    times = LONGEST | ({"register": DOUBLES_TAKE} if instruction.opcode & FAMILY in DOUBLES else {})
    return {(kind, number): times[kind] for kind, number in found}


def fresh(body: list[Instruction]) -> list[dict[Place, int]]:
    """The places that are not there yet before each instruction for those that read the earliest, and how many cycles are
    left for the others (no more than none), whatever way control came. A branch is counted with no more than the cycles that
    its control bits say."""
    behind, states = successors(body), [dict[Place, int]() for _ in body]
    changed = list(range(len(body) - 1, -1, -1))
    while changed:
        at = changed.pop()
        state = states[at] | filled_late(body[at])
        state = {place: left - body[at].stall for place, left in state.items()}
        for k in behind[at]:
            later = {place: left for place, left in state.items() if left > states[k].get(place, -SHUFFLES_READ)}
            if later:
                states[k] |= later
                changed.append(k)
    return states
