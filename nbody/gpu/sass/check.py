"""Proof that two blocks do the same.

Their results are compared as expressions: what each register holds at the end, in terms of what was there before. And
the control bits of the new one are checked on their own: nothing may be read before it is there.
"""

from collections.abc import Iterator, Sequence

from nbody.gpu.sass import copies
from nbody.gpu.sass.block import Block
from nbody.gpu.sass.instruction import BARRIER_RISES, BARRIERS, NO_BARRIER, PLACES, ZERO, Instruction, Place
from nbody.gpu.sass.liveness import touched
from nbody.gpu.sass.operands import places_filled, places_read
from nbody.gpu.sass.operations import COMMUTATIVE, SHUFFLES_READ, Operation
from nbody.gpu.sass.scoreboard import UNIFORM


def fault(block: Block, body: list[Instruction]) -> str:
    """What is wrong with new instructions for a block, in a line; empty if nothing is."""
    if len(body) != len(block.body):
        return f"{len(body)} instructions cannot stand where {len(block.body)} did"
    outcomes = Outcomes()
    old, new = outcomes.of(block.body), outcomes.of(body)
    if new.pop(COPIES, None) != old.pop(COPIES, None):
        return "other copies are started, or in another order"
    for place in old.keys() | new.keys():
        kind, number = place
        if new.get(place) != old.get(place) and (kind != "register" or block.live_out >> number & 1):
            return f"{kind} {number} holds another number at the end"
    if marks(body) != marks(block.body):
        return "other groups of copies end here"
    return copies.fault(block.body, body) or next(Hardware(block).faults(body), "")


COPIES: Place = ("copies", 0)
"""Stands for all the copies that have been started."""


def marks(body: Sequence[Instruction]) -> list[tuple[Instruction, int]]:
    """What ends a group of copies, and the barriers that tell of it."""
    return [(x.controlled(0), x.write_barrier) for x in body if _known(x).kind == "mark"]


class Outcomes:
    """Numbers for expressions, the same for the same one, whatever registers it went through."""

    def __init__(self) -> None:
        self._numbers: dict[tuple, int] = {}

    def of(self, body: list[Instruction]) -> dict[Place, int]:
        """What is in each place that a block fills, at its end. A copy, what stands in front of it, and the end of a group
        fill :data:`COPIES` with themselves and what was there: whence, to where, on what condition, and in what order."""
        holds: dict[Place, int] = {}
        for instruction in body:
            known = _known(instruction)
            factors = [tuple(self._held(holds, place) for place in places_read(instruction, p)) for p in "abcd"]
            if instruction.opcode in COMMUTATIVE:
                factors[:2] = sorted(factors[:2])
            factors += [(self._held(holds, place),) for place in instruction.beside]
            bare = instruction.controlled(0)
            named = [PLACES[p] for p in known.places if p in PLACES]
            for at in [*named, *([16] if known.fills != "predicate" else [])]:
                bare = bare.replaced(at, 8, 0)
            if known.kind in copies.KINDS:
                holds[COPIES] = self._number((self._held(holds, COPIES), bare.word, *factors))
            for k, place in enumerate(places_filled(instruction)):
                holds[place] = self._number((k, bare.word, *factors))
        return holds

    def _held(self, holds: dict[Place, int], place: Place) -> int:
        return holds.get(place) or self._number(place)

    def _number(self, expression: tuple) -> int:
        return self._numbers.setdefault(expression, len(self._numbers) + 1)


class Hardware:
    """Goes through a block as the hardware does at its fastest: an instruction begins ``stall`` cycles after the one before
    it, and what it touches must be there: by time, or because its barrier has been waited for. Barriers that tell that an
    operand has been read are believed in only where they are copies', which have no others; other new instructions name
    none."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._there = dict(block.fresh)  # from which cycle on
        self._by: dict[Place, Operation] = {}  # and by what
        self._under_way: dict[int, int] = {}  # registers that are being filled, and the barrier that tells
        self._being_read: dict[int, int] = {}  # registers, and all the barriers that tell, a bit each
        self._copying = 0  # the barriers of copies that may still have to read, a bit each
        self._rises: dict[int, int] = {}  # when a barrier is up
        self._next = dict(block.held_up)  # by kind, when another may begin
        self._waited = 0

    def faults(self, body: list[Instruction]) -> Iterator[str]:
        """All that is wrong, in the order in which it comes up."""
        clock = 0
        for at, instruction in enumerate(body):
            wrong = self._lift(instruction.waits, clock) or self._touched(instruction, clock)
            wrong = wrong or self._filled(instruction, clock) or kept_in_vain(instruction, body[at + 1 :])
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
        self._copying &= ~waits
        self._under_way = {r: barrier for r, barrier in self._under_way.items() if not waits >> barrier & 1}
        self._being_read = {r: left for r, told in self._being_read.items() if (left := told & ~waits)}
        return f"waits for barrier {early[0]} before it is up" if early else ""

    def _touched(self, instruction: Instruction, clock: int) -> str:
        known, filled = _known(instruction), places_filled(instruction)
        if self._next.get(known.kind, clock) > clock:
            return f"begins {self._next[known.kind] - clock} cycles too soon behind what holds it up"
        reads = [*(place for p in known.places for place in places_read(instruction, p)), *instruction.beside]
        for place in reads:
            needed = clock - known.reads_earlier(self._by.get(place)) if place[0] == "register" else clock
            if self._there.get(place, needed) > needed:
                return f"reads {place[0]} {place[1]} {self._there[place] - needed} cycles too early"
        for kind, number in [*reads, *filled]:
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
        barriers = instruction.read_barrier < BARRIERS, instruction.write_barrier == NO_BARRIER
        if known.kind == "copy" and not all(barriers):
            return "has no barrier that tells that it has read, or one for a result"
        return ""

    def _filled(self, instruction: Instruction, clock: int) -> str:
        """What is wrong with the place that takes the result."""
        known = _known(instruction)
        for kind, number in places_filled(instruction):
            if number + UNIFORM * (kind == "uniform") in self._being_read and kind != "predicate":
                return f"fills {kind} {number}, which is still to be read"
            if self._there.get((kind, number), clock) > clock + (0 if known.waited else known.latency):
                return f"fills {kind} {number} before an earlier result, which is to come first"
        return ""

    def _begin(self, instruction: Instruction, clock: int) -> None:
        known, filled = _known(instruction), places_filled(instruction)
        self._next |= dict.fromkeys(known.holds_up, clock + known.apart)
        if known.waited:
            barrier = instruction.write_barrier
            self._rises[barrier] = clock + BARRIER_RISES
            self._under_way |= {number: barrier for _, number in filled}
            read = {number for place in known.places for _, number in places_read(instruction, place)}
            for register in read - {number for _, number in filled} - {ZERO}:
                self._being_read[register] = self._being_read.get(register, 0) | 1 << barrier
        else:
            self._there |= dict.fromkeys(filled, clock + known.latency)
        if known.kind == "copy":
            barrier = instruction.read_barrier
            self._rises[barrier] = clock + BARRIER_RISES
            self._copying |= 1 << barrier
            uniform = {UNIFORM + number for kind, number in instruction.beside if kind == "uniform"}
            for register in uniform | {n for p in known.places for _, n in places_read(instruction, p)} - {ZERO}:
                self._being_read[register] = self._being_read.get(register, 0) | 1 << barrier
        self._by |= dict.fromkeys(filled, known)
        if known.kind == "mark":
            self._rises[instruction.write_barrier] = clock + BARRIER_RISES

    def _left_over(self, clock: int) -> str:
        """What is wrong at the end: what is under way there must have been so before, with the same barrier."""
        block = self._block
        allowed = {r: barrier for at, barrier in block.pending.items() for _, r in places_filled(block.body[at])}
        for register, barrier in self._under_way.items():
            if allowed.get(register) != barrier:
                return f"register {register} is under way at the end, and nobody waits for it"
        if self._copying:
            return "a copy may still have to read its addresses at the end"
        read_later = {r for at in block.pending for r in touched(block.body[at])}
        if not set(self._being_read) <= read_later:
            return f"registers {set(self._being_read) - read_later} may be filled before they are read"
        for register, told in self._being_read.items():
            if any(told >> barrier & 1 and mask >> register & 1 for barrier, mask in block.filled_early.items()):
                return f"register {register} may be filled behind the block before it is read"
        behind = clock + block.behind - SHUFFLES_READ  # what comes then may read as early as a shuffle
        late = [place for place, when in self._there.items() if when > (clock if place[0] == "predicate" else behind)]
        late += [("barrier", barrier) for barrier, when in self._rises.items() if when > clock]
        late += [(f"another {kind}", when - clock) for kind, when in self._next.items() if when > clock]
        if late:
            return f"{late} are not there at the end"
        return "a barrier from before the block is not waited for" if block.waited & ~self._waited else ""


def kept_in_vain(instruction: Instruction, following: Sequence[Instruction]) -> str:
    """What is wrong with the operands kept for the next instruction, if that does not find there what it reads. (A load
    between the two leaves what is in another place than its address.)"""
    if instruction.keeps and not instruction.holds:
        return "keeps an operand, and lets another warp come next"
    for place in (p for k, p in enumerate(PLACES) if instruction.keeps >> k & 1):
        register = instruction.register(place)
        if ("register", register) in places_filled(instruction):
            return f"keeps operand {place}, and fills its register"
        others = (x for x in following if _known(x).kind != "load" or place in _known(x).places)
        reader = next(others, None)
        if reader is None or place not in _known(reader).places or reader.register(place) != register:
            return f"keeps operand {place}, which the next one does not read there"
    return ""


def _known(instruction: Instruction) -> Operation:
    known = instruction.operation
    if known is None:
        raise ValueError(f"instruction {instruction.word:#034x} is not known")
    return known
