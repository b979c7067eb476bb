"""Proof that two blocks do the same.

Their results are compared as expressions: what each register holds at the end, in terms of what was there before. And
the control bits of the new one are checked on their own: nothing may be read before it is there.
"""

from collections.abc import Iterator

from nbody.gpu.sass.block import Block
from nbody.gpu.sass.instruction import (
    BARRIER_RISES,
    BARRIERS,
    PLACES,
    SHUFFLES_READ,
    ZERO,
    Instruction,
    Operation,
    Place,
)
from nbody.gpu.sass.order import COMMUTATIVE
from nbody.gpu.sass.scoreboard import UNIFORM


def fault(block: Block, body: list[Instruction]) -> str:
    """What is wrong with new instructions for a block, in a line; empty if nothing is."""
    if len(body) != len(block.body):
        return f"{len(body)} instructions cannot stand where {len(block.body)} did"
    outcomes = Outcomes()
    old, new = outcomes.of(block.body), outcomes.of(body)
    for place in old.keys() | new.keys():
        kind, number = place
        if new.get(place) != old.get(place) and (kind != "register" or block.live_out >> number & 1):
            return f"{kind} {number} holds another number at the end"
    return next(Hardware(block).faults(body), "")


class Outcomes:
    """Numbers for expressions, the same for the same one, whatever registers it went through."""

    def __init__(self) -> None:
        self._numbers: dict[tuple, int] = {}

    def of(self, body: list[Instruction]) -> dict[Place, int]:
        """What is in each place that a block fills, at its end."""
        holds: dict[Place, int] = {}
        for instruction in body:
            known, filled = _known(instruction), instruction.filled
            operands = [
                self._held(holds, ("register", instruction.register(p))) if p in known.places else 0 for p in "abc"
            ]
            if instruction.opcode in COMMUTATIVE:
                operands[:2] = sorted(operands[:2])
            if known.uniform:
                operands.append(self._held(holds, ("uniform", instruction.register("b"))))
            bare = instruction.controlled(0)
            for at in [*(PLACES[p] for p in known.places), *([16] if known.fills != "predicate" else [])]:
                bare = bare.replaced(at, 8, 0)
            if filled:
                holds[filled] = self._number((bare.word, *operands))
        return holds

    def _held(self, holds: dict[Place, int], place: Place) -> int:
        return holds.get(place) or self._number(place)

    def _number(self, expression: tuple) -> int:
        return self._numbers.setdefault(expression, len(self._numbers) + 1)


class Hardware:
    """Goes through a block as the hardware does at its fastest: an instruction begins ``stall`` cycles after the one before
    it, and what it touches must be there: by time, or because its barrier has been waited for. Barriers that tell that an
    operand has been read are not believed in: new instructions name none."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._there = dict(block.fresh)  # from which cycle on
        self._under_way: dict[int, int] = {}  # registers that are being filled, and the barrier that tells
        self._being_read: dict[int, int] = {}  # registers, and all the barriers that tell, a bit each
        self._rises: dict[int, int] = {}  # when a barrier is up
        self._waited = 0

    def faults(self, body: list[Instruction]) -> Iterator[str]:
        """All that is wrong, in the order in which it comes up."""
        clock = 0
        for at, (instruction, following) in enumerate(zip(body, [*body[1:], None], strict=True)):
            wrong = self._lift(instruction.waits, clock) or self._touched(instruction, clock)
            wrong = wrong or self._filled(instruction, clock) or kept_in_vain(instruction, following)
            if wrong:
                yield f"instruction {at} {wrong}"
            self._begin(instruction, clock)
            clock += instruction.stall
        if wrong := self._left_over(clock):
            yield wrong

    def _lift(self, waits: int, clock: int) -> str:
        """Wait for barriers; what is wrong with that."""
        early = [b for b, when in self._rises.items() if waits >> b & 1 and when > clock]
        self._waited |= waits
        self._under_way = {r: barrier for r, barrier in self._under_way.items() if not waits >> barrier & 1}
        self._being_read = {r: left for r, told in self._being_read.items() if (left := told & ~waits)}
        return f"waits for barrier {early[0]} before it is up" if early else ""

    def _touched(self, instruction: Instruction, clock: int) -> str:
        known, filled = _known(instruction), instruction.filled
        reads: list[Place] = [("register", instruction.register(place)) for place in known.places]
        reads += [("uniform", instruction.register("b"))] if known.uniform else []
        needed = clock - SHUFFLES_READ if known.kind == "shuffle" else clock
        for place in reads:
            if self._there.get(place, needed) > needed:
                return f"reads {place[0]} {place[1]} {self._there[place] - needed} cycles too early"
        for kind, number in [*reads, *([filled] if filled else [])]:
            if kind == "uniform" and self._block.guards(UNIFORM + number) & ~self._waited:
                return f"touches uniform {number} before a barrier from before the block"
            if kind != "register" or number == ZERO:
                continue
            if not self._block.usable >> number & 1:
                return f"touches register {number}, which the kernel does not have, or of which no barrier tells"
            if number in self._under_way:
                return f"touches register {number}, which is being filled"
            if self._block.guards(number) & ~self._waited:
                return f"touches register {number} before a barrier from before the block"
        if known.waited and not instruction.write_barrier < BARRIERS:
            return "has no barrier"
        return ""

    def _filled(self, instruction: Instruction, clock: int) -> str:
        """What is wrong with the place that takes the result."""
        known, filled = _known(instruction), instruction.filled
        if filled and filled[0] == "register" and filled[1] in self._being_read:
            return f"fills register {filled[1]}, which is still to be read"
        if filled and self._there.get(filled, clock) > clock + (0 if known.waited else known.latency):
            return f"fills {filled[0]} {filled[1]} before an earlier result, which is to come first"
        return ""

    def _begin(self, instruction: Instruction, clock: int) -> None:
        known, filled = _known(instruction), instruction.filled
        if known.waited:
            barrier = instruction.write_barrier
            self._rises[barrier] = clock + BARRIER_RISES
            if filled:
                self._under_way[filled[1]] = barrier
            for register in {instruction.register(place) for place in known.places} - {instruction.dest, ZERO}:
                self._being_read[register] = self._being_read.get(register, 0) | 1 << barrier
        elif filled:
            self._there[filled] = clock + known.latency

    def _left_over(self, clock: int) -> str:
        """What is wrong at the end: what is under way there must have been so before, with the same barrier."""
        block = self._block
        allowed = {block.fills(at): barrier for at, barrier in block.pending.items()}
        for register, barrier in self._under_way.items():
            if allowed.get(register) != barrier:
                return f"register {register} is under way at the end, and nobody waits for it"
        read_later = {r for at in block.pending for r in block.registers(at)}
        if not set(self._being_read) <= read_later:
            return f"registers {set(self._being_read) - read_later} may be filled before they are read"
        for register, told in self._being_read.items():
            if any(told >> barrier & 1 and mask >> register & 1 for barrier, mask in block.filled_early.items()):
                return f"register {register} may be filled behind the block before it is read"
        behind = clock + block.behind - SHUFFLES_READ  # what comes then may read as early as a shuffle
        late = [place for place, when in self._there.items() if when > behind]
        late += [("barrier", barrier) for barrier, when in self._rises.items() if when > clock]
        if late:
            return f"{late} are not there at the end"
        return "a barrier from before the block is not waited for" if block.waited & ~self._waited else ""


def kept_in_vain(instruction: Instruction, following: Instruction | None) -> str:
    """What is wrong with the operands kept for the next instruction, if that does not find there what it reads."""
    for place in (p for k, p in enumerate(PLACES) if instruction.keeps >> k & 1):
        if instruction.filled == ("register", instruction.register(place)):
            return f"keeps operand {place}, and fills its register"
        reads = following is not None and place in _known(following).places
        if following is None or not reads or following.register(place) != instruction.register(place):
            return f"keeps operand {place}, which the next one does not read there"
    return ""


def _known(instruction: Instruction) -> Operation:
    known = instruction.operation
    if known is None:
        raise ValueError(f"instruction {instruction.word:#034x} is not known")
    return known
