"""Which registers are under way before each instruction: being filled or read by one that takes as long as it takes.

Such an instruction names a barrier, and who needs its result waits for that. One that names none is told by the barrier of
the next one of its kind: they end in the order in which they began.
"""

from nbody.gpu.sass.instruction import BARRIERS, NO_BARRIER, Instruction
from nbody.gpu.sass.liveness import filled_widely, read, successors

VARYING = (0x184, 0x181, 0x182, 0x108, 0x189, 0x119, 0x105, 0x106, 0x111, 0x112)
"""Operations of varying length (their lower nine bits): loads, special functions, shuffles, conversions."""

KIND = 0x1FF

State = tuple[int, ...]
"""For each barrier the registers that are under way, a bit each; then, for each of :data:`VARYING`, those of which no
barrier tells yet."""

NOTHING: State = (0,) * (BARRIERS + len(VARYING))


def after(state: State, instruction: Instruction) -> State:
    """The state after an instruction has begun."""
    masks = [0 if k < BARRIERS and instruction.waits >> k & 1 else mask for k, mask in enumerate(state)]
    touched, kind = read(instruction) | filled_widely(instruction), instruction.opcode & KIND
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
