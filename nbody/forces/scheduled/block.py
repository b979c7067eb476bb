"""A block: instructions that run from the first to the last, and the data flow between them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from nbody.forces.scheduled.instruction import BARRIERS, NO_BARRIER, ZERO, Instruction, Place
from nbody.forces.scheduled.liveness import (
    BRA,
    BSSY,
    EVERY,
    INDIRECT,
    WARPSYNC,
    live_before,
    target,
    touched,
    written,
)
from nbody.forces.scheduled.operands import FAMILY
from nbody.forces.scheduled.operations import INTEGERS_READ, SHUFFLES_READ, Operation
from nbody.forces.scheduled.scoreboard import (
    FLOATS,
    State,
    in_flight,
    not_ready,
    reads_at_issue,
    unsignalled,
    written_before_wait,
)

LATEST = 15
"""Cycles after a block in which an early reader may still read."""

Value = int
"""A value in a block: the index of the instruction that computes it, or ``~r`` for register r at the start."""


class Slot(NamedTuple):
    """A position in a new order: the index of the instruction in the block, and the values that it reads, by place.
    (Operands a and b may have been exchanged, so that one stands where the previous instruction has kept it.)"""

    at: int
    sources: dict[str, Value]


@dataclass
class Block:
    """Instructions ``start`` to ``end`` of a kernel, all of known meaning.

    Attributes:
        body: the instructions; ``known``: what is known about each.
        live_in, live_out: the registers that are needed at the start, and at the end (one bit each).
        state: what is in flight at the start, see :mod:`.scoreboard`.
        registers: those that the kernel writes anywhere (one bit each).
        not_ready: places written just before the block, and the cycle of the block in which they are ready.
        cycles_after: cycles after the block before one of its results may be read early, see :func:`cycles_to_early_reader`.
        waited: all barriers that are waited for in the block.
        pending: the instructions whose results are still in flight at the end, and their barriers.
        written_early: for each of these barriers, the registers that may be written after the block before it is waited for.
    """

    start: int
    end: int
    body: list[Instruction]
    live_in: int
    live_out: int
    state: State
    registers: int
    not_ready: dict[Place, int] = field(default_factory=dict)
    cycles_after: int = 0
    known: list[Operation] = field(init=False)
    waited: int = field(init=False)
    pending: dict[int, int] = field(init=False, default_factory=dict)
    written_early: dict[int, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.known = [instruction.operation for instruction in self.body if instruction.operation]
        assert len(self.known) == len(self.body)
        self._find_pending()

    @cached_property
    def flow(self) -> "Flow":
        """The data flow between the instructions."""
        return Flow(self.body, self.known, self.live_out, self.not_ready)

    def register_written(self, at: int) -> int | None:
        """The register that instruction ``at`` writes, or None."""
        place = self.body[at].destination
        return place[1] if place and place[0] == "register" else None

    def guards(self, register: int) -> int:
        """The barriers from before the block, one bit each, that must be waited for before a register is touched."""
        return sum(1 << barrier for barrier in range(BARRIERS) if self.state[barrier] >> register & 1)

    @property
    def usable(self) -> int:
        """The registers that a new order may touch, one bit each: those that the kernel writes anywhere or needs here,
        except those in flight at the start that no barrier signals."""
        return (self.registers | self.live_in) & EVERY & ~unsignalled(self.state)

    def _find_pending(self) -> None:
        """An instruction without a barrier is signalled by that of a later one of its kind: they complete in order."""
        signal: dict[
            str, tuple[int, bool]
        ] = {}  # by kind: the barrier, and whether it is waited for later in the block
        waited = 0
        for at in reversed(range(len(self.body))):
            known, barrier = self.known[at], self.body[at].write_barrier
            if known.signalled:
                if barrier != NO_BARRIER:
                    signal[known.kind] = barrier, bool(waited >> barrier & 1)
                barrier, is_waited = signal.get(known.kind, (NO_BARRIER, False))
                if not is_waited:
                    self.pending[at] = barrier
            waited |= self.body[at].waits
        self.waited = waited


@dataclass
class Flow:
    """The data flow of a block.

    Attributes:
        sources: for each instruction, the values that it reads, by place.
        after: for each, the others that it must follow, and by how many cycles at least.
        earliest: for each, the cycle of the block in which what it reads from before the block is ready.
        results: the final value of each register that the block writes and that is needed at the end.
    """

    body: list[Instruction]
    known: list[Operation]
    live_out: int
    not_ready: dict[Place, int]
    sources: list[dict[str, Value]] = field(init=False, default_factory=list)
    after: list[dict[int, int]] = field(init=False, default_factory=list)
    earliest: list[int] = field(init=False, default_factory=list)
    results: dict[int, Value] = field(init=False)

    def __post_init__(self) -> None:
        self._find_sources()
        self._write_after_last_readers()

    def _find_sources(self) -> None:
        holds: dict[int, Value] = {}
        writer: dict[Place, int] = {}  # of uniform registers and predicates
        readers: dict[Place, list[int]] = {}  # since then
        for at, instruction in enumerate(self.body):
            known = self.known[at]
            registers = {place: instruction.register(place) for place in known.places}
            source = {place: holds.get(r, ~r) for place, r in registers.items() if r != ZERO}
            self.sources.append(source)
            self.after.append(
                {v: self.known[v].latency + known.reads_earlier(self.known[v]) for v in source.values() if v >= 0}
            )
            early = known.reads_earlier(None)
            ready = [self.not_ready.get(("register", ~value), -early) for value in source.values() if value < 0]
            for place in instruction.other_sources:
                readers.setdefault(place, []).append(at)
                if place in writer:
                    self.after[at][writer[place]] = self.known[writer[place]].latency
                else:
                    ready.append(self.not_ready.get(place, -early))
            self.earliest.append(max([0, *(cycle + early for cycle in ready)]))
            written = instruction.destination
            if written and written[0] == "register":
                holds[written[1]] = at
            elif written:
                before = readers.pop(written, []) + ([writer[written]] if written in writer else [])
                self.after[at].update(dict.fromkeys(before, 1))
                writer[written] = at
        self.results = {r: value for r, value in holds.items() if self.live_out >> r & 1}

    def _write_after_last_readers(self) -> None:
        """A register's final value is written after all instructions that read its value from the start of the block."""
        for register, value in self.results.items():
            for at, source in enumerate(self.sources):
                if ~register in source.values() and at != value:
                    self.after[value].setdefault(at, 1)


def cycles_to_early_reader(body: list[Instruction], at: int) -> int:
    """Cycles from instruction ``at`` to the first later one that may read as early as a shuffle. An instruction that reads
    later than a shuffle counts as issued later by the difference; after a branch any instruction may follow."""
    cycles, found = 0, LATEST
    while at < len(body) and cycles < found:
        if body[at].opcode == BRA:
            return min(found, cycles + body[at].stall)
        if not reads_at_issue(body[at]):
            return cycles
        early = 0 if body[at].opcode & FAMILY in FLOATS else INTEGERS_READ
        found = min(found, cycles + SHUFFLES_READ - early)
        cycles += body[at].stall
        at += 1
    return min(found, cycles)


def blocks(body: list[Instruction]) -> Iterator[Block]:
    """The blocks of a kernel, as long as possible: all instructions are known, and no branch enters in between. A block is
    left out if something that it touches is in flight at its start and no barrier signals it."""
    if any(instruction.opcode in INDIRECT for instruction in body):
        return
    entries = {target(at, x) for at, x in enumerate(body) if x.opcode in (BRA, BSSY, WARPSYNC)}
    live, states, late, start, registers = live_before(body), in_flight(body), not_ready(body), 0, 0
    for instruction in body:
        registers |= written(instruction)
    for at in range(len(body) + 1):
        ends = at == len(body) or body[at].operation is None
        if (ends or at in entries) and at > start:
            live_out = live[at] if at < len(body) else 0
            cycles = cycles_to_early_reader(body, at)
            block = Block(
                start, at, body[start:at], live[start], live_out, states[start], registers, late[start], cycles
            )
            for barrier in set(block.pending.values()):
                block.written_early[barrier] = written_before_wait(body, range(start, at), barrier)
            used = sum({1 << r for instruction in block.body for r in touched(instruction)})
            if not used & unsignalled(states[start]):
                yield block
        if ends or at in entries:
            start = at + 1 if ends else at
