"""The instructions of a new order: their registers, and control bits that make each wait until its operands are ready."""

from nbody.forces.scheduled.block import Block, Slot, Value
from nbody.forces.scheduled.instruction import (
    BARRIER_DELAY,
    BARRIERS,
    LONGEST_STALL,
    NO_BARRIER,
    PLACES,
    Instruction,
)
from nbody.forces.scheduled.operations import SHUFFLES_READ


def emitted(block: Block, slots: list[Slot], register: dict[Value, int]) -> list[Instruction] | None:
    """The instructions; None if one would have to stall for longer than the control bits can express."""
    begins = issue_cycles(block, slots)
    guarded = 0  # barriers from before the block that have been waited for
    barriers: dict[int, int] = {}  # of the rsqrts and shuffles in flight
    made = []
    for k, slot in enumerate(slots):
        waits = 0
        for value in slot.sources.values():
            if value in barriers:
                waits |= 1 << barriers[value]
                barriers = {at: barrier for at, barrier in barriers.items() if barrier != barriers[value]}
        if block.known[slot.at].signalled:
            barriers[slot.at] = _barrier_for(block, slots, k, barriers)
        registers = [register[value] for value in slot.sources.values()]
        writes = block.register_written(slot.at) is not None
        needed = 0
        for r in [*registers, register[slot.at]] if writes else registers:
            needed |= block.guards(r)
        if k == len(slots) - 1:
            needed |= block.waited
            waits |= sum({1 << barriers[at] for at in barriers if at not in block.pending})
        waits |= needed & ~guarded
        guarded |= needed
        stall = begins[k + 1] - begins[k]
        if stall > LONGEST_STALL:
            return None
        reuse = reused_places(block, slots, k + 1) if stall == 1 else set()  # as the compiler does
        if writes:
            reuse = {place for place in reuse if register[slot.sources[place]] != register[slot.at]}
        bits = sum(1 << "abc".index(place) for place in reuse)
        instruction = _with_registers(block, slot, register)
        made.append(instruction.controlled(stall, barriers.get(slot.at, NO_BARRIER), waits, bits))
    return wait_for_set_barriers(made)


def wait_for_set_barriers(made: list[Instruction]) -> list[Instruction] | None:
    """The same instructions with longer stalls, so that none waits for a barrier before it is set (an instruction issued
    just before may share the barrier)."""
    set_at, clock = [0] * BARRIERS, 0
    for k, instruction in enumerate(made):
        late = max((set_at[b] - clock for b in range(BARRIERS) if instruction.waits >> b & 1), default=0)
        if late > 0:
            if k == 0 or made[k - 1].stall + late > LONGEST_STALL:
                return None
            made[k - 1] = made[k - 1].replaced(105, 4, made[k - 1].stall + late)
            clock += late
        if instruction.write_barrier < BARRIERS:
            set_at[instruction.write_barrier] = clock + BARRIER_DELAY
        clock += instruction.stall
    return made


def _barrier_for(block: Block, slots: list[Slot], k: int, in_use: dict[int, int]) -> int:
    """A barrier for slot ``k``: its original one, if that is waited for after the block; else a free one, or the latest
    one. Waiting for a barrier waits for all instructions that share it."""
    if slots[k].at in block.pending:
        return block.pending[slots[k].at]
    free = [barrier for barrier in range(BARRIERS) if barrier not in in_use.values()]
    return free[0] if free else list(in_use.values())[-1]


def reused_places(block: Block, slots: list[Slot], k: int) -> set[str]:
    """The places in which slot ``k`` reads the same value as the previous slot."""
    if k in (0, len(slots)) or any(block.known[slot.at].kind != "float" for slot in slots[k - 1 : k + 1]):
        return set()
    before, now = slots[k - 1], slots[k]
    return {place for place, value in now.sources.items() if before.sources.get(place) == value}


def issue_cycles(block: Block, slots: list[Slot]) -> list[int]:
    """The earliest cycle in which each slot can be issued; the last number is the cycle in which the results of the block
    are ready (except those that are waited for after it)."""
    issued: dict[int, int] = {}
    clock, found = 0, []
    for slot in slots:
        clock = max(clock, block.flow.earliest[slot.at])
        for k, delay in block.flow.after[slot.at].items():
            clock = max(clock, issued[k] + (BARRIER_DELAY if block.known[k].signalled else delay))
        issued[slot.at] = clock
        found.append(clock)
        clock += 1
    early = max(0, SHUFFLES_READ - block.cycles_after)  # what follows may read as early as a shuffle
    ends = [
        when + BARRIER_DELAY if block.known[at].signalled else when + block.known[at].latency + early
        for at, when in issued.items()
    ]
    return [*found, max([clock, *ends, *(when + early for when in block.not_ready.values())])]


def _with_registers(block: Block, slot: Slot, register: dict[Value, int]) -> Instruction:
    instruction = block.body[slot.at]
    for place, value in slot.sources.items():
        instruction = instruction.replaced(PLACES[place], 8, register[value])
    writes = block.register_written(slot.at) is not None
    return instruction.replaced(16, 8, register[slot.at]) if writes else instruction
