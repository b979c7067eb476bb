"""A block of arithmetic: instructions that control runs through from the first to the last, and who needs whose result."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from nbody.gpu.sass.flow import Flow, Value
from nbody.gpu.sass.instruction import BARRIERS, NO_BARRIER, Instruction, Place
from nbody.gpu.sass.liveness import APART, BRANCH, ELSEWHERE, EVERY, MEET, live_before, target, touched, written
from nbody.gpu.sass.operands import FAMILY
from nbody.gpu.sass.operations import INTEGERS_READ, PAIRS, SHUFFLES_READ, Operation
from nbody.gpu.sass.scoreboard import FLOATS, State, filled_too_early, fresh, is_punctual, under_way, untold

LATEST = 15
"""Cycles: more than any reader behind a block can be late."""


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
        state: what is under way at the beginning, see :mod:`nbody.gpu.sass.scoreboard`.
        has: the registers that the kernel has, as far as it fills them anywhere (a bit each).
        fresh: places that are filled just before the block, and in which of its cycles they are there.
        held_up: kinds of which none may begin at once, because of what is just before the block, and for how many cycles.
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
    held_up: dict[str, int] = field(default_factory=dict)
    behind: int = 0
    known: list[Operation] = field(init=False)
    waited: int = field(init=False)
    pending: dict[int, int] = field(init=False, default_factory=dict)
    filled_early: dict[int, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.known = [instruction.operation for instruction in self.body if instruction.operation]
        assert len(self.known) == len(self.body)
        self._find_pending()

    @cached_property
    def flow(self) -> Flow:
        """Who needs whose result, where all are on single registers."""
        return Flow(self.body, self.known, self.live_out, self.fresh)

    def fills(self, at: int) -> int | None:
        """The register that instruction ``at`` fills, or the first of several, if it fills one."""
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
    """Cycles from before instruction ``at`` to the first behind it that may read as early as a shuffle. Those that read less
    early count as later by the difference; behind a branch any may come."""
    cycles, found = 0, LATEST
    while at < len(body) and cycles < found:
        if body[at].opcode == BRANCH:
            return min(found, cycles + body[at].stall)
        if not is_punctual(body[at]):
            return cycles
        early = 0 if body[at].opcode & FAMILY in FLOATS else INTEGERS_READ
        found = min(found, cycles + SHUFFLES_READ - early)
        cycles += body[at].stall
        at += 1
    return min(found, cycles)


def held_up(body: list[Instruction], at: int) -> dict[str, int]:
    """The kinds of which none may begin at once at instruction ``at``, and for how many cycles. (A branch takes longer.)"""
    found: dict[str, int] = {}
    cycles = 0
    for instruction in reversed(body[max(0, at - LATEST) : at]):
        cycles += instruction.stall
        known = instruction.operation
        for kind in known.holds_up if known else ():
            if known and known.apart > cycles:
                found[kind] = max(found.get(kind, 0), known.apart - cycles)
    return found


def blocks(body: list[Instruction], kinds: Collection[str] = PAIRS) -> Iterator[Block]:
    """The blocks of a kernel: as long as all instructions are of some kinds, and no branch goes into their midst; without
    those at whose beginning something is under way that no barrier tells yet."""
    if any(instruction.opcode in ELSEWHERE for instruction in body):
        return
    entries = {target(at, x) for at, x in enumerate(body) if x.opcode in (BRANCH, MEET, APART)}
    live, states, new, start, has = live_before(body), under_way(body), fresh(body), 0, 0
    for instruction in body:
        has |= written(instruction)
    for at in range(len(body) + 1):
        known = body[at].operation if at < len(body) else None
        ends = known is None or known.kind not in kinds
        if (ends or at in entries) and at > start:
            live_out = live[at] if at < len(body) else 0
            later = early_reader(body, at)
            held = held_up(body, start)
            block = Block(start, at, body[start:at], live[start], live_out, states[start], has, new[start], held, later)
            reached = sum({1 << r for instruction in block.body for r in touched(instruction)})
            for barrier in set(block.pending.values()):
                block.filled_early[barrier] = filled_too_early(body, range(start, at), barrier)
            if not reached & untold(states[start]):
                yield block
        if ends or at in entries:
            start = at + 1 if ends else at
