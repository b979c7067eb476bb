"""What is in flight before each instruction of a kernel.

First, registers that are being written or read by an operation of variable latency. The operation names a barrier, and an
instruction that needs its result waits for that barrier. An operation without a barrier is signalled by the barrier of the
next operation of its kind, since these complete in order.

Second, the results of operations of fixed latency that are not ready yet: the compiler has counted the cycles to the first
reader in its own order, and another order may have another first reader.
"""

from nbody.forces.scheduled.instruction import BARRIERS, NO_BARRIER, ZERO, Instruction, Place
from nbody.forces.scheduled.liveness import BRA, may_write, read, successors, written
from nbody.forces.scheduled.operands import FAMILY, operands, places_written
from nbody.forces.scheduled.operations import SHUFFLES_READ

VARIABLE = (0x184, 0x181, 0x182, 0x108, 0x189, 0x119, 0x105, 0x106, 0x111, 0x112, 0x188, 0x186, 0x1AE, 0x1A8)
"""Opcode families of variable latency: loads, special functions, shuffles, conversions, stores, atomics."""

RSQRT = 0x108

FLOATS = {0x020, 0x021, 0x023, 0x02B, RSQRT}
"""Families that read the result of a float operation as soon as it is ready."""

STORES = {0x388, 0x988, 0x986}
"""Operations that write no register."""

DOUBLES, DOUBLE_LATENCY = {0x029, 0x02B}, 16
"""Additions and multiply-adds in float64, and their latency in cycles."""

LONGEST = {"register": 11, "uniform": 14, "predicate": 14}
"""The most cycles until the result of any other operation of fixed latency is ready. (11 is what the compiler leaves between
a HFMA2.MMA, the slowest, and a loop that reads its result tens of cycles later: it does not count beyond a loop's edge.)"""

UNIFORM = 256
"""The bit of the first uniform register."""

State = tuple[int, ...]
"""For each barrier the registers in flight, one bit each, the uniform ones after the others; then, for each of
:data:`VARIABLE`, those that no barrier signals yet."""

NOTHING: State = (0,) * (BARRIERS + len(VARIABLE))


def after(state: State, instruction: Instruction) -> State:
    """The state after an instruction is issued."""
    masks = [0 if k < BARRIERS and instruction.waits >> k & 1 else mask for k, mask in enumerate(state)]
    touched, family = read(instruction) | may_write(instruction), instruction.opcode & FAMILY
    if not written(instruction):  # then it may write a uniform register
        touched |= may_write(instruction) << UNIFORM
    own = BARRIERS + VARIABLE.index(family) if family in VARIABLE else None
    if instruction.write_barrier != NO_BARRIER:
        masks[instruction.write_barrier] |= touched
        if own is not None:
            masks[instruction.write_barrier] |= masks[own]
            masks[own] = 0
    elif own is not None:
        masks[own] |= touched
    if instruction.read_barrier != NO_BARRIER:
        masks[instruction.read_barrier] |= read(instruction)
        if instruction.opcode in STORES and own is not None:  # they have no result that another barrier would signal
            masks[instruction.read_barrier] |= masks[own]
            masks[own] = 0
    return tuple(masks)


def unsignalled(state: State) -> int:
    """The registers in flight that no barrier signals yet."""
    found = 0
    for mask in state[BARRIERS:]:
        found |= mask
    return found


def in_flight(body: list[Instruction]) -> list[State]:
    """The state before each instruction: all that may be in flight, on any path."""
    next_ones, states = successors(body), [NOTHING] * len(body)
    changed = [True] * len(body)
    while any(changed):
        for at, instruction in enumerate(body):
            if not changed[at]:
                continue
            changed[at] = False
            state = after(states[at], instruction)
            for k in next_ones[at]:
                merged = tuple(a | b for a, b in zip(states[k], state, strict=True))
                if merged != states[k]:
                    states[k], changed[k] = merged, True
    return states


def written_before_wait(body: list[Instruction], block: range, barrier: int) -> int:
    """The registers that instructions after a block may write before a barrier is waited for, one bit each. (Paths that lead
    into the block again are checked there.)"""
    next_ones, seen, paths, found = successors(body), set(block), [block.stop], 0
    while paths:
        at = paths.pop()
        if at in seen or at >= len(body) or body[at].waits >> barrier & 1:
            continue
        if body[at].opcode not in STORES | {BRA}:
            found |= may_write(body[at])
        seen.add(at)
        paths += next_ones[at]
    return found


def reads_at_issue(instruction: Instruction) -> bool:
    """True if the instruction certainly reads its operands no earlier than the operations listed in :mod:`.operations`:
    arithmetic, moves, comparisons and reciprocal square roots."""
    family = instruction.opcode & FAMILY
    return operands(instruction) is not None and (family == RSQRT or family not in VARIABLE)


def write_latencies(instruction: Instruction) -> dict[Place, int]:
    """The places that an instruction of fixed latency may write, and after how many cycles. If it is unknown: every place
    that its fields may name, and the longest latency."""
    known = instruction.operation
    if known:
        return {} if known.signalled else dict.fromkeys(places_written(instruction), known.latency)
    variable = instruction.opcode & FAMILY in VARIABLE or instruction.write_barrier != NO_BARRIER
    if variable or instruction.opcode in STORES or instruction.opcode == BRA:
        return {}
    candidates = may_write(instruction)
    found = [(kind, r) for kind in ("register", "uniform") for r in range(ZERO) if candidates >> r & 1]
    found += [("predicate", instruction.field(at, 3)) for at in (81, 84)]
    latency = LONGEST | ({"register": DOUBLE_LATENCY} if instruction.opcode & FAMILY in DOUBLES else {})
    return {(kind, number): latency[kind] for kind, number in found}


def not_ready(body: list[Instruction]) -> list[dict[Place, int]]:
    """The places that are not ready before each instruction, on some path, and the cycles until arithmetic may read
    them (zero or less: only operations that read earlier must wait). For a branch only the cycles of its control bits
    count."""
    next_ones, states = successors(body), [dict[Place, int]() for _ in body]
    changed = list(range(len(body) - 1, -1, -1))
    while changed:
        at = changed.pop()
        state = states[at] | write_latencies(body[at])
        state = {place: left - body[at].stall for place, left in state.items()}
        for k in next_ones[at]:
            later = {place: left for place, left in state.items() if left > states[k].get(place, -SHUFFLES_READ)}
            if later:
                states[k] |= later
                changed.append(k)
    return states
