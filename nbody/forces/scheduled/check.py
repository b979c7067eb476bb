"""Verification that new instructions for a block compute the same as the old ones.

The results are compared as expressions: the content of each register at the end, in terms of the registers at the start. The
control bits are checked separately, by simulating the new instructions cycle by cycle.
"""

from collections.abc import Iterator, Sequence

from nbody.forces.scheduled.block import Block
from nbody.forces.scheduled.instruction import BARRIER_DELAY, BARRIERS, PLACES, ZERO, Instruction, Place
from nbody.forces.scheduled.liveness import touched
from nbody.forces.scheduled.operands import places_read, places_written
from nbody.forces.scheduled.operations import COMMUTATIVE, SHUFFLES_READ, Operation
from nbody.forces.scheduled.scoreboard import UNIFORM


def fault(block: Block, body: list[Instruction]) -> str:
    """The first fault of new instructions for a block, in one line; empty if there is none."""
    if len(body) != len(block.body):
        return f"{len(body)} instructions cannot replace {len(block.body)}"
    outcomes = Outcomes()
    old, new = outcomes.of(block.body), outcomes.of(body)
    for place in old.keys() | new.keys():
        kind, number = place
        if new.get(place) != old.get(place) and (kind != "register" or block.live_out >> number & 1):
            return f"{kind} {number} holds another number at the end"
    return next(Hardware(block).faults(body), "")


class Outcomes:
    """Numbers for expressions: equal expressions have equal numbers, whatever registers they use."""

    def __init__(self) -> None:
        self._numbers: dict[tuple, int] = {}

    def of(self, body: list[Instruction]) -> dict[Place, int]:
        """The expression in each place that the instructions write, at their end."""
        holds: dict[Place, int] = {}
        for instruction in body:
            known = _known(instruction)
            operands = [tuple(self._held(holds, place) for place in places_read(instruction, p)) for p in "abc"]
            if instruction.opcode in COMMUTATIVE:
                operands[:2] = sorted(operands[:2])
            operands += [(self._held(holds, place),) for place in instruction.other_sources]
            bare = instruction.controlled(0)
            fields = [PLACES[place] for place in known.places]
            for at in [*fields, *([16] if known.writes != "predicate" else [])]:
                bare = bare.replaced(at, 8, 0)
            for k, place in enumerate(places_written(instruction)):
                holds[place] = self._number((k, bare.word, *operands))
        return holds

    def _held(self, holds: dict[Place, int], place: Place) -> int:
        return holds.get(place) or self._number(place)

    def _number(self, expression: tuple) -> int:
        return self._numbers.setdefault(expression, len(self._numbers) + 1)


class Hardware:
    """Simulates a block as fast as the hardware may run it: an instruction is issued ``stall`` cycles after the previous
    one, and the registers that it touches must be ready by then, after enough cycles or after a wait for their barrier.
    Read barriers are ignored; new instructions have none."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._ready = dict(block.not_ready)  # from which cycle on
        self._writer: dict[Place, Operation] = {}
        self._being_written: dict[int, int] = {}  # registers, and the barrier that signals each
        self._being_read: dict[int, int] = {}  # registers, and all the barriers that signal it, one bit each
        self._set: dict[int, int] = {}  # the cycle in which a barrier is set
        self._waited = 0

    def faults(self, body: list[Instruction]) -> Iterator[str]:
        """All faults, in the order of the instructions."""
        clock = 0
        for at, instruction in enumerate(body):
            wrong = self._wait(instruction.waits, clock) or self._check_touched(instruction, clock)
            wrong = wrong or self._check_written(instruction, clock) or useless_reuse(instruction, body[at + 1 :])
            if wrong or instruction.stall < 1:
                yield f"instruction {at} {wrong or 'does not stall for a cycle'}"
            self._issue(instruction, clock)
            clock += instruction.stall
        if wrong := self._check_end(clock):
            yield wrong

    def _wait(self, waits: int, clock: int) -> str:
        """Wait for barriers; the fault, or an empty text."""
        early = [b for b, when in self._set.items() if waits >> b & 1 and when > clock]
        self._waited |= waits
        self._being_written = {r: barrier for r, barrier in self._being_written.items() if not waits >> barrier & 1}
        self._being_read = {r: left for r, signals in self._being_read.items() if (left := signals & ~waits)}
        return f"waits for barrier {early[0]} before it is set" if early else ""

    def _check_touched(self, instruction: Instruction, clock: int) -> str:
        known, written = _known(instruction), places_written(instruction)
        reads = [*(place for p in known.places for place in places_read(instruction, p)), *instruction.other_sources]
        for place in reads:
            needed = clock - known.reads_earlier(self._writer.get(place)) if place[0] == "register" else clock
            if self._ready.get(place, needed) > needed:
                return f"reads {place[0]} {place[1]} {self._ready[place] - needed} cycles too early"
        for kind, number in [*reads, *written]:
            if kind == "uniform" and self._block.guards(UNIFORM + number) & ~self._waited:
                return f"touches uniform {number} before a barrier from before the block"
            if kind != "register" or number == ZERO:
                continue
            if not self._block.usable >> number & 1:
                return f"touches register {number}, which the kernel does not have, or which no barrier signals"
            if number in self._being_written:
                return f"touches register {number}, which is being written"
            if self._block.guards(number) & ~self._waited:
                return f"touches register {number} before a barrier from before the block"
        return "has no barrier" if known.signalled and not instruction.write_barrier < BARRIERS else ""

    def _check_written(self, instruction: Instruction, clock: int) -> str:
        """The fault of writing the result to its place, or an empty text."""
        known = _known(instruction)
        for kind, number in places_written(instruction):
            if number + UNIFORM * (kind == "uniform") in self._being_read and kind != "predicate":
                return f"writes {kind} {number}, which is still to be read"
            if self._ready.get((kind, number), clock) > clock + (0 if known.signalled else known.latency):
                return f"writes {kind} {number} before an earlier result, which must come first"
        return ""

    def _issue(self, instruction: Instruction, clock: int) -> None:
        known, written = _known(instruction), places_written(instruction)
        if known.signalled:
            barrier = instruction.write_barrier
            self._set[barrier] = clock + BARRIER_DELAY
            self._being_written |= {number: barrier for _, number in written}
            read = {number for place in known.places for _, number in places_read(instruction, place)}
            for register in read - {number for _, number in written} - {ZERO}:
                self._being_read[register] = self._being_read.get(register, 0) | 1 << barrier
        else:
            self._ready |= dict.fromkeys(written, clock + known.latency)
        self._writer |= dict.fromkeys(written, known)

    def _check_end(self, clock: int) -> str:
        """The fault at the end: results in flight must have been in flight in the old code too, with the same barrier."""
        block = self._block
        allowed = {r: barrier for at, barrier in block.pending.items() for _, r in places_written(block.body[at])}
        for register, barrier in self._being_written.items():
            if allowed.get(register) != barrier:
                return f"register {register} is in flight at the end, and nothing waits for it"
        read_later = {r for at in block.pending for r in touched(block.body[at])}
        if not set(self._being_read) <= read_later:
            return f"registers {set(self._being_read) - read_later} may be written before they are read"
        for register, signals in self._being_read.items():
            if any(signals >> barrier & 1 and mask >> register & 1 for barrier, mask in block.written_early.items()):
                return f"register {register} may be written after the block before it is read"
        early = clock + block.cycles_after - SHUFFLES_READ  # what follows may read as early as a shuffle
        late = [place for place, when in self._ready.items() if when > (clock if place[0] == "predicate" else early)]
        late += [("barrier", barrier) for barrier, when in self._set.items() if when > clock]
        if late:
            return f"{late} are not ready at the end"
        return "a barrier from before the block is not waited for" if block.waited & ~self._waited else ""


def useless_reuse(instruction: Instruction, following: Sequence[Instruction]) -> str:
    """The fault of the cached operands: the next instruction must read them in the same place."""
    if instruction.reuse and not instruction.keeps_warp:
        return "keeps an operand, and lets another warp issue next"
    for place in (p for k, p in enumerate(PLACES) if instruction.reuse >> k & 1):
        register = instruction.register(place)
        if ("register", register) in places_written(instruction):
            return f"keeps operand {place}, and writes its register"
        reader = following[0] if following else None
        if reader is None or place not in _known(reader).places or reader.register(place) != register:
            return f"keeps operand {place}, which the next one does not read there"
    return ""


def _known(instruction: Instruction) -> Operation:
    known = instruction.operation
    if known is None:
        raise ValueError(f"instruction {instruction.word:#034x} is not known")
    return known
