"""A block of arithmetic: instructions that control runs through from the first to the last, and who needs whose result."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from nbody.gpu.sass.instruction import BARRIERS, NO_BARRIER, SHUFFLES_READ, ZERO, Instruction, Operation, Place
from nbody.gpu.sass.liveness import APART, BRANCH, ELSEWHERE, EVERY, MEET, live_before, target, written
from nbody.gpu.sass.scoreboard import State, filled_too_early, fresh, is_punctual, under_way, untold

Value = int
"""A number in a block: the index of the instruction that makes it, or ``~r`` for what register r holds at the beginning."""


class Turn(NamedTuple):
    """An instruction's turn in a new order: its index in the block, and the values that it reads by place. (Operands a and
    b may have changed places, so that one stands where the instruction before has kept it.)"""

    at: int
    sources: dict[str, Value]


@dataclass
class Block:
    """Instructions ``start`` to ``end`` of a kernel, of which all are known.

    Attributes:
        body: the instructions, and ``known`` what is known of each.
        live_in, live_out: the registers that are needed at the beginning, and at the end (a bit each).
        sources: for each instruction, the values that it reads, by place.
        after: for each, the others that it must follow, and by how many cycles at least.
        results: the value that a register which is filled here, and needed at the end, has there.
        state: what is under way at the beginning, see :mod:`nbody.gpu.sass.scoreboard`.
        has: the registers that the kernel has, as far as it fills them anywhere (a bit each).
        fresh: places that are filled just before the block, and in which of its cycles they are there.
        behind: cycles that pass behind the block before one may read early there, see :func:`early_reader`.
        waited: all barriers that are waited for in the block.
        pending: the instructions whose results are still under way at the end, and their barriers.
        filled_early: for such a barrier, the registers that may be filled behind the block before it is waited for.
    """

    start: int
    end: int
    body: list[Instruction]
    live_in: int
    live_out: int
    state: State
    has: int
    fresh: dict[Place, int] = field(default_factory=dict)
    behind: int = 0
    known: list[Operation] = field(init=False)
    sources: list[dict[str, Value]] = field(init=False, default_factory=list)
    after: list[dict[int, int]] = field(init=False, default_factory=list)
    results: dict[int, Value] = field(init=False)
    waited: int = field(init=False)
    pending: dict[int, int] = field(init=False, default_factory=dict)
    filled_early: dict[int, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.known = [instruction.operation for instruction in self.body if instruction.operation]
        assert len(self.known) == len(self.body)
        self._find_sources()
        self._follow_last_readers()
        self._find_pending()

    def fills(self, at: int) -> int | None:
        """The register that instruction ``at`` fills, if it fills one."""
        filled = self.body[at].filled
        return filled[1] if filled and filled[0] == "register" else None

    def guards(self, register: int) -> int:
        """The barriers from before the block, a bit each, that must be waited for before a register is touched."""
        return sum(1 << barrier for barrier in range(BARRIERS) if self.state[barrier] >> register & 1)

    @property
    def usable(self) -> int:
        """The registers that a new order may touch, a bit each: those that the kernel fills anywhere or needs here, but for
        those under way at the beginning of which no barrier tells."""
        return (self.has | self.live_in) & EVERY & ~untold(self.state)

    def registers(self, at: int) -> list[int]:
        """The registers that instruction ``at`` reads or fills."""
        read = [r for place in self.known[at].places if (r := self.body[at].register(place)) != ZERO]
        filled = self.fills(at)
        return read if filled is None else [*read, filled]

    def _find_sources(self) -> None:
        holds: dict[int, Value] = {}
        others: dict[tuple[str, int], int] = {}  # who filled a uniform register or a predicate
        readers: dict[tuple[str, int], list[int]] = {}  # who has read it since
        for at, (instruction, known) in enumerate(zip(self.body, self.known, strict=True)):
            places = {place: instruction.register(place) for place in known.places}
            source = {place: holds.get(r, ~r) for place, r in places.items() if r != ZERO}
            self.sources.append(source)
            late = SHUFFLES_READ if known.kind == "shuffle" else 0
            self.after.append({value: self.known[value].latency + late for value in source.values() if value >= 0})
            if known.uniform:
                read = "uniform", instruction.register("b")
                readers.setdefault(read, []).append(at)
                if read in others:
                    self.after[at][others[read]] = self.known[others[read]].latency
            filled = instruction.filled
            if filled and filled[0] == "register":
                holds[filled[1]] = at
            elif filled:
                before = readers.pop(filled, []) + ([others[filled]] if filled in others else [])
                self.after[at].update(dict.fromkeys(before, 1))
                others[filled] = at
        self.results = {r: value for r, value in holds.items() if self.live_out >> r & 1}

    def _follow_last_readers(self) -> None:
        """A register that keeps its number from the beginning for some, and gets its last one here, gets it after them."""
        for register, value in self.results.items():
            for at, source in enumerate(self.sources):
                if ~register in source.values() and at != value:
                    self.after[value].setdefault(at, 1)

    def _find_pending(self) -> None:
        """An instruction without a barrier of its own is told by that of a later one of its kind: they end in order."""
        told: dict[str, tuple[int, bool]] = {}  # the barrier that tells, and whether it is waited for behind
        waited = 0
        for at in reversed(range(len(self.body))):
            known, barrier = self.known[at], self.body[at].write_barrier
            if known.waited:
                if barrier != NO_BARRIER:
                    told[known.kind] = barrier, bool(waited >> barrier & 1)
                barrier, is_waited = told.get(known.kind, (NO_BARRIER, False))
                if not is_waited:
                    self.pending[at] = barrier
            waited |= self.body[at].waits
        self.waited = waited


def early_reader(body: list[Instruction], at: int) -> int:
    """Cycles from before instruction ``at`` to the first behind it that may read as early as a shuffle: one of which it is
    not known that it does not. Behind a branch they are counted no further."""
    cycles = 0
    while at < len(body) and (body[at].opcode == BRANCH or is_punctual(body[at])):
        cycles += body[at].stall
        if body[at].opcode == BRANCH or cycles >= SHUFFLES_READ:
            break
        at += 1
    return cycles


def blocks(body: list[Instruction]) -> Iterator[Block]:
    """The blocks of a kernel: as long as all instructions are known, and no branch goes into their midst; without those
    at whose beginning something is under way that no barrier tells yet."""
    if any(instruction.opcode in ELSEWHERE for instruction in body):
        return
    entries = {target(at, x) for at, x in enumerate(body) if x.opcode in (BRANCH, MEET, APART)}
    live, states, new, start, has = live_before(body), under_way(body), fresh(body), 0, 0
    for instruction in body:
        has |= written(instruction)
    for at in range(len(body) + 1):
        ends = at == len(body) or body[at].operation is None
        if (ends or at in entries) and at > start:
            live_out = live[at] if at < len(body) else 0
            later = early_reader(body, at)
            block = Block(start, at, body[start:at], live[start], live_out, states[start], has, new[start], later)
            touched = sum({1 << r for k in range(at - start) for r in block.registers(k)})
            for barrier in set(block.pending.values()):
                block.filled_early[barrier] = filled_too_early(body, range(start, at), barrier)
            if not touched & untold(states[start]):
                yield block
        if ends or at in entries:
            start = at + 1 if ends else at
