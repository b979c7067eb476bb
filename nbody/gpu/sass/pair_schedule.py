"""The order in which the instructions of a block run: the one with the fewest waits for register banks.

What belongs to one reciprocal square root is a strand. Some strands are under way at a time, so that their latencies
overlap, and no more, since each holds registers. Of the instructions that can run, the one runs next that begins first;
among these one that shares operands with the one before; among these the oldest strand's. So the six multiply-adds of a
pair's sums, which share what they multiply, run one after the other.
"""

from typing import NamedTuple

from nbody.gpu.sass.block import Block, Turn
from nbody.gpu.sass.flow import Value
from nbody.gpu.sass.operations import COMMUTATIVE
from nbody.gpu.sass.pair_pipeline import Pipeline


class PairTuning(NamedTuple):
    """What an order is made by. None is the best for every block: those of a list are made, and timed.

    Attributes:
        width: strands under way beside the oldest.
        root_latency: cycles after which a root's result is planned to be used.
        root_every: cycles from one root to the next; the hardware begins one in eight.
        patient: True if an instruction may begin though a bank has an operand for it only a cycle later.
        sharing: cycles that one may begin later for each operand it shares.
    """

    width: int
    root_latency: int
    root_every: int
    patient: bool
    sharing: float


def strands(block: Block) -> list[int]:
    """For each instruction of a block, the strand that it belongs to, numbered in the order in which their sums go on; -1 if
    to none."""
    count, roots = len(block.body), [known.kind == "root" for known in block.known]
    depth, before, behind = [0] * count, [-1] * count, [-1] * count
    for at in range(count):
        sources = [value for value in block.flow.sources[at].values() if value >= 0]
        depth[at] = 1 + max((depth[value] for value in sources), default=0)
        found = [value if roots[value] else before[value] for value in sources]
        before[at] = max(found, default=-1, key=lambda k: depth[k] if k >= 0 else -1)
    for at in reversed(range(count)):
        for value in block.flow.sources[at].values():
            if value >= 0 and behind[value] < 0:
                behind[value] = at if roots[at] else behind[at]
    root = [at if roots[at] else behind[at] if behind[at] >= 0 else before[at] for at in range(count)]
    ends = {r: max(depth[at] for at in range(count) if root[at] == r) for r in set(root) - {-1}}
    rank = {r: k for k, r in enumerate(sorted(ends, key=lambda r: (ends[r], r)))}
    return [rank.get(r, -1) for r in root]


class PairScheduler:
    """Puts a block's instructions into an order, with some strands under way at a time.

    Args:
        block: the block.
        tuning: what the order is made by.
        bank: the banks of values as far as they are known; for others it is given one when it is read first.
    """

    def __init__(self, block: Block, tuning: PairTuning, bank: dict[Value, int]) -> None:
        self._block, self._tuning = block, tuning
        self._strand = strands(block)
        self._left = [len(after) for after in block.flow.after]
        self._followers: list[list[int]] = [[] for _ in block.body]
        for at, after in enumerate(block.flow.after):
            for k in after:
                self._followers[k].append(at)
        self._unfinished = [self._strand.count(k) for k in range(max(self._strand, default=0) + 1)]
        self._ready = {at for at, n in enumerate(self._left) if n == 0}
        self._earliest = list(block.flow.earliest)
        self._pipeline = Pipeline(block, bank, tuning.root_every, tuning.patient)
        self._oldest = 0

    def turns(self) -> list[Turn]:
        """The instructions in their order."""
        turns = []
        while self._ready:
            turn, begun, free = self._best()
            self._pipeline.take(turn, begun, free)
            turns.append(turn)
            self._finish(turn.at, begun)
        return turns

    def _best(self) -> tuple[Turn, int, list[int]]:
        strand, block, tuning = self._strand, self._block, self._tuning
        while self._oldest < len(self._unfinished) - 1 and self._unfinished[self._oldest] == 0:
            self._oldest += 1
        candidates = [at for at in self._ready if strand[at] <= self._oldest + tuning.width] or list(self._ready)
        best = None
        for at in candidates:
            turn, shared = self._fitted(at)
            begun, free = self._pipeline.begin(turn, self._earliest[at])
            later = block.known[at].kind != "root"
            key = (begun - tuning.sharing * shared, later, -shared, strand[at], at)
            if best is None or key < best[0]:
                best = key, turn, begun, free
        assert best is not None
        return best[1:]

    def _fitted(self, at: int) -> tuple[Turn, int]:
        """An instruction's turn as it shares most operands with the one before, and how many."""
        block, kept = self._block, self._pipeline.kept
        sources = block.flow.sources[at]
        turn = Turn(at, sources)
        shared = sum(kept.get(place) == value for place, value in sources.items())
        if block.body[at].opcode in COMMUTATIVE and "a" in sources and "b" in sources:
            exchanged = sources | {"a": sources["b"], "b": sources["a"]}
            other = sum(kept.get(place) == value for place, value in exchanged.items())
            if other > shared:
                return Turn(at, exchanged), other
        return turn, shared

    def _finish(self, at: int, begun: int) -> None:
        self._ready.remove(at)
        if self._strand[at] >= 0:
            self._unfinished[self._strand[at]] -= 1
        for k in self._followers[at]:
            delay = self._tuning.root_latency if self._block.known[at].kind == "root" else self._block.flow.after[k][at]
            self._earliest[k] = max(self._earliest[k], begun + delay)
            self._left[k] -= 1
            if self._left[k] == 0:
                self._ready.add(k)
