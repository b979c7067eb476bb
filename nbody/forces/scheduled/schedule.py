"""The order of the instructions of a block: list scheduling with the fewest waits for register banks.

All instructions that belong to one reciprocal square root form a chain. Several chains are in progress at a time, so that
their latencies overlap, and no more than that, since each needs registers. Of the instructions that are ready, the one that
can be issued first is chosen; among these one that shares operands with the previous one; among these that of the oldest
chain. So the six multiply-adds of a pair's sums, which share their factors, are issued in succession.
"""

from typing import NamedTuple

from nbody.forces.scheduled.block import Block, Slot, Value
from nbody.forces.scheduled.operations import COMMUTATIVE
from nbody.forces.scheduled.pipeline import Pipeline


class Tuning(NamedTuple):
    """The parameters of an order. No order is the best for every block: those of a list are timed.

    Attributes:
        width: chains in progress besides the oldest.
        rsqrt_latency: cycles after which the result of an rsqrt is planned to be used.
        rsqrt_interval: cycles from one rsqrt to the next; the hardware issues one in eight.
        patient: True if an instruction may be issued although a bank delivers an operand one cycle later.
        sharing: cycles that an instruction may be issued later for each operand that it shares.
    """

    width: int
    rsqrt_latency: int
    rsqrt_interval: int
    patient: bool
    sharing: float


def chains(block: Block) -> list[int]:
    """For each instruction of a block, the chain that it belongs to, numbered in the order in which their sums continue; -1
    for none."""
    count, is_rsqrt = len(block.body), [known.kind == "rsqrt" for known in block.known]
    depth, before, after = [0] * count, [-1] * count, [-1] * count
    for at in range(count):
        sources = [value for value in block.flow.sources[at].values() if value >= 0]
        depth[at] = 1 + max((depth[value] for value in sources), default=0)
        found = [value if is_rsqrt[value] else before[value] for value in sources]
        before[at] = max(found, default=-1, key=lambda k: depth[k] if k >= 0 else -1)
    for at in reversed(range(count)):
        for value in block.flow.sources[at].values():
            if value >= 0 and after[value] < 0:
                after[value] = at if is_rsqrt[at] else after[at]
    rsqrt = [at if is_rsqrt[at] else after[at] if after[at] >= 0 else before[at] for at in range(count)]
    ends = {r: max(depth[at] for at in range(count) if rsqrt[at] == r) for r in set(rsqrt) - {-1}}
    rank = {r: k for k, r in enumerate(sorted(ends, key=lambda r: (ends[r], r)))}
    return [rank.get(r, -1) for r in rsqrt]


class Scheduler:
    """Chooses the order of a block.

    Args:
        block: the block.
        tuning: the parameters.
        bank: the banks of the values whose registers are given; another value is assigned one when it is first read.
    """

    def __init__(self, block: Block, tuning: Tuning, bank: dict[Value, int]) -> None:
        self._block, self._tuning = block, tuning
        self._chain = chains(block)
        self._waits_for = [len(after) for after in block.flow.after]
        self._followers: list[list[int]] = [[] for _ in block.body]
        for at, after in enumerate(block.flow.after):
            for k in after:
                self._followers[k].append(at)
        self._unfinished = [self._chain.count(k) for k in range(max(self._chain, default=0) + 1)]
        self._ready = {at for at, n in enumerate(self._waits_for) if n == 0}
        self._earliest = list(block.flow.earliest)
        self._pipeline = Pipeline(block, bank, tuning.rsqrt_interval, tuning.patient)
        self._oldest = 0

    def slots(self) -> list[Slot]:
        """The instructions in their order."""
        found = []
        while self._ready:
            slot, cycle, free = self._best()
            self._pipeline.issue(slot, cycle, free)
            found.append(slot)
            self._finish(slot.at, cycle)
        return found

    def _best(self) -> tuple[Slot, int, list[int]]:
        chain, tuning = self._chain, self._tuning
        while self._oldest < len(self._unfinished) - 1 and self._unfinished[self._oldest] == 0:
            self._oldest += 1
        candidates = [at for at in self._ready if chain[at] <= self._oldest + tuning.width] or list(self._ready)
        best = None
        for at in candidates:
            slot, shared = self._slot(at)
            cycle, free = self._pipeline.earliest(slot, self._earliest[at])
            later = self._block.known[at].kind != "rsqrt"
            key = (cycle - tuning.sharing * shared, later, -shared, chain[at], at)
            if best is None or key < best[0]:
                best = key, slot, cycle, free
        assert best is not None
        return best[1:]

    def _slot(self, at: int) -> tuple[Slot, int]:
        """An instruction with its operands arranged to share as many as possible with the previous one, and how many."""
        block, kept = self._block, self._pipeline.kept
        sources = block.flow.sources[at]
        shared = sum(kept.get(place) == value for place, value in sources.items())
        if block.body[at].opcode in COMMUTATIVE and "a" in sources and "b" in sources:
            exchanged = sources | {"a": sources["b"], "b": sources["a"]}
            other = sum(kept.get(place) == value for place, value in exchanged.items())
            if other > shared:
                return Slot(at, exchanged), other
        return Slot(at, sources), shared

    def _finish(self, at: int, cycle: int) -> None:
        self._ready.remove(at)
        if self._chain[at] >= 0:
            self._unfinished[self._chain[at]] -= 1
        is_rsqrt = self._block.known[at].kind == "rsqrt"
        for k in self._followers[at]:
            delay = self._tuning.rsqrt_latency if is_rsqrt else self._block.flow.after[k][at]
            self._earliest[k] = max(self._earliest[k], cycle + delay)
            self._waits_for[k] -= 1
            if self._waits_for[k] == 0:
                self._ready.add(k)
