"""The instructions of an order: with their registers, and with control bits that let none read what is not there yet."""

from collections.abc import Mapping

from nbody.gpu.sass.block import Block, Turn
from nbody.gpu.sass.flow import Value
from nbody.gpu.sass.instruction import BARRIER_RISES, BARRIERS, LONGEST_STALL, NO_BARRIER, PLACES, Instruction, Place
from nbody.gpu.sass.operands import places_filled, places_read
from nbody.gpu.sass.operations import SHUFFLES_READ, Operation


def emitted(block: Block, turns: list[Turn], register: dict[Value, int]) -> list[Instruction] | None:
    """The instructions; None if one would have to wait longer than control bits can say."""
    begins, guard = beginnings(block, turns), Guard(block)
    barriers: dict[int, int] = {}  # of roots and shuffles under way
    made = []
    for k, turn in enumerate(turns):
        waits = 0
        for value in turn.sources.values():
            if value in barriers:
                waits |= 1 << barriers[value]
                barriers = {at: barrier for at, barrier in barriers.items() if barrier != barriers[value]}
        if block.known[turn.at].waited:
            barriers[turn.at] = _barrier_for(block, turns, k, barriers)
        touched = [register[value] for value in turn.sources.values()]
        fills = block.fills(turn.at) is not None
        waits |= guard.waits([*touched, register[turn.at]] if fills else touched)
        if k == len(turns) - 1:
            waits |= guard.waits_left() | sum({1 << barriers[at] for at in barriers if at not in block.pending})
        stall = begins[k + 1] - begins[k]
        keeps = kept_places(block, turns, k + 1) if stall == 1 else set()  # as the assembler does
        if fills:
            keeps = {place for place in keeps if register[turn.sources[place]] != register[turn.at]}
        bits = sum(1 << "abc".index(place) for place in keeps)
        if stall > LONGEST_STALL:
            return None
        instruction = _with_registers(block, turn, register)
        made.append(instruction.controlled(stall, barriers.get(turn.at, NO_BARRIER), waits, bits))
    return held_back(made)


def held_back(made: list[Instruction], block: Block | None = None) -> list[Instruction] | None:
    """The same, but no barrier is waited for before it is up: who shares it may only just have begun. With the ``block``,
    nothing is read before it is there, or begins before it may, either."""
    rises, clock, there = [0] * BARRIERS, 0, _There(block.fresh, block.held_up) if block else _There({}, {})
    for k, instruction in enumerate(made):
        late = max((rises[b] - clock for b in range(BARRIERS) if instruction.waits >> b & 1), default=0)
        if block is not None:
            late = max(late, there.late(instruction, clock))
        if late > 0:
            if k == 0 or made[k - 1].stall + late > LONGEST_STALL:
                return None
            made[k - 1] = made[k - 1].replaced(105, 4, made[k - 1].stall + late)
            clock += late
        for barrier in (instruction.write_barrier, instruction.read_barrier):
            if barrier < BARRIERS:
                rises[barrier] = clock + BARRIER_RISES
        there.begin(instruction, clock)
        clock += instruction.stall
    return made


class _There:
    """From which cycle on the results of fixed length can be read, and another instruction of a kind may begin."""

    def __init__(self, fresh: Mapping[Place, int], held_up: Mapping[str, int]) -> None:
        self._from: dict[Place, tuple[int, Operation | None]] = {place: (when, None) for place, when in fresh.items()}
        self._next = dict(held_up)

    def late(self, instruction: Instruction, clock: int) -> int:
        """Cycles by which an instruction that begins at some clock would begin or read too early."""
        known = instruction.operation
        assert known is not None
        reads = [place for p in known.places for place in places_read(instruction, p)]
        found = [0, self._next.get(known.kind, clock) - clock]
        for place in [*reads, *instruction.beside]:
            when, by = self._from.get(place, (clock - LONGEST_STALL, None))
            early = known.reads_earlier(by) if place[0] == "register" else 0
            found.append(when + early - clock)
        return max(found)

    def begin(self, instruction: Instruction, clock: int) -> None:
        """Take note of what it fills, and when."""
        known = instruction.operation
        assert known is not None
        self._next |= dict.fromkeys(known.holds_up, clock + known.apart)
        for place in places_filled(instruction):
            if known.waited:
                self._from.pop(place, None)
            else:
                self._from[place] = clock + known.latency, known


def _barrier_for(block: Block, turns: list[Turn], k: int, under_way: dict[int, int]) -> int:
    """A barrier for turn ``k``: the one that it had, if somebody behind the block waits for it; else one that is
    free, or the latest one's. Who waits for a barrier waits for all that share it."""
    if turns[k].at in block.pending:
        return block.pending[turns[k].at]
    free = [barrier for barrier in range(BARRIERS) if barrier not in under_way.values()]
    return free[0] if free else list(under_way.values())[-1]


def kept_places(block: Block, turns: list[Turn], k: int) -> set[str]:
    """The places in which turn ``k`` reads what the turn before it has read there."""
    if k in (0, len(turns)) or any(block.known[turn.at].kind != "float" for turn in turns[k - 1 : k + 1]):
        return set()
    before, now = turns[k - 1], turns[k]
    return {place for place, value in now.sources.items() if before.sources.get(place) == value}


def beginnings(block: Block, turns: list[Turn]) -> list[int]:
    """The cycle in which each turn begins at the earliest, and, last, that in which the results of the block are there
    (except those that are waited for behind it)."""
    begin: dict[int, int] = {}
    clock, found = 0, []
    for turn in turns:
        clock = max(clock, block.flow.earliest[turn.at])
        for k, delay in block.flow.after[turn.at].items():
            clock = max(clock, begin[k] + (BARRIER_RISES if block.known[k].waited else delay))
        begin[turn.at] = clock
        found.append(clock)
        clock += 1
    early = max(0, SHUFFLES_READ - block.behind)  # what comes then may read as early as a shuffle
    ends = [
        when + BARRIER_RISES if block.known[at].waited else when + block.known[at].latency + early
        for at, when in begin.items()
    ]
    return [*found, max([clock, *ends, *(when + early for when in block.fresh.values())])]


def _with_registers(block: Block, turn: Turn, register: dict[Value, int]) -> Instruction:
    instruction = block.body[turn.at]
    for place, value in turn.sources.items():
        instruction = instruction.replaced(PLACES[place], 8, register[value])
    return instruction if block.fills(turn.at) is None else instruction.replaced(16, 8, register[turn.at])


class Guard:
    """The barriers from before the block that are still to be waited for."""

    def __init__(self, block: Block) -> None:
        self._block, self._waited = block, 0

    def waits(self, registers: list[int]) -> int:
        """What must be waited for before some registers are touched."""
        needed = 0
        for register in registers:
            needed |= self._block.guards(register)
        new = needed & ~self._waited
        self._waited |= new
        return new

    def waits_left(self) -> int:
        """What the block waited for, and has not yet."""
        return self._block.waited & ~self._waited


class LoadBarriers:
    """The barriers that tell of loads: one for all that are needed in the same columns.

    Attributes:
        copies: the barrier that tells that copies have read their addresses, which no load has.
    """

    def __init__(self, block: Block) -> None:
        marked = {x.write_barrier for x, known in zip(block.body, block.known, strict=True) if known.kind == "mark"}
        unmarked = [barrier for barrier in range(BARRIERS) if barrier not in marked]
        busy = [barrier for barrier in unmarked if block.state[barrier]]
        copying = any(known.kind == "copy" for known in block.known)
        self.copies = [*busy, *unmarked][0] if copying else NO_BARRIER
        unmarked = [barrier for barrier in unmarked if barrier != self.copies]
        self._usable = [barrier for barrier in unmarked if barrier not in busy] or unmarked
        self._of: dict[int, int] = {}  # by load
        self._columns: dict[int, int] = {}  # by barrier

    def taken(self, load: int, columns: int) -> int:
        """The barrier for a load: that of others for the same columns, a free one, or the latest one's."""
        same = [barrier for barrier, others in self._columns.items() if others == columns]
        free = [barrier for barrier in self._usable if barrier not in self._columns]
        barrier = (same or free or [list(self._columns)[-1]])[0]
        self._of[load], self._columns[barrier] = barrier, columns
        return barrier

    def waits(self, load: int) -> int:
        """What must be waited for before a load's numbers are read."""
        barrier = self._of.get(load)
        if barrier is None:
            return 0
        self._of = {other: b for other, b in self._of.items() if b != barrier}
        del self._columns[barrier]
        return 1 << barrier
