"""When instructions can begin: the model of Hopper's register banks that orders are made by.

A register lies in the bank that its number's last bit names. A bank gives one number a cycle. An instruction that begins
in cycle t asks for its operands a and b in t, for c in t + 1, and has each at the latest one cycle after; if a bank cannot,
it begins later, and all behind it. An operand that the instruction before it has kept in the same place needs no bank.
After a reciprocal square root no float operation can begin for a cycle, except another one.

One H200, measured with loops of 300 instructions: 30 patterns of operands come out within 1.5 %, among them
(a, b in one bank) 2 cycles, but 1 if the next one's are in the other; (a, c in one bank) with a next one that keeps a and b
and has its c in the other bank 1 cycle; 1 root in 17 instructions 1 cycle more, 2 side by side in 34 1.2.
"""

from collections.abc import Mapping

from nbody.gpu.sass.block import Block, Turn
from nbody.gpu.sass.flow import Value

ROOT_EVERY = 8
"""Cycles from one reciprocal square root to the next. A third within 16 cycles takes 12 more."""

LONGEST = 6
"""Cycles that an instruction waits at most for banks."""


class Pipeline:
    """Instructions of one warp, one after the other.

    Attributes:
        clock: the cycle in which the last one began.
        kept: the operands that it has kept, by place, if the next one reads them there.
    """

    def __init__(
        self, block: Block, bank: Mapping[Value, int], root_every: int = ROOT_EVERY, patient: bool = True
    ) -> None:
        self._block, self.bank, self._root_every, self._patience = block, bank, root_every, int(patient)
        self.clock = -1
        self.kept: dict[str, Value] = {}
        self._free = [0, 0]
        self._float_from = self._root_from = 0

    def begin(self, turn: Turn, earliest: int = 0) -> tuple[int, list[int]]:
        """The cycle in which a turn would begin, and from when on the banks would be free. A value whose bank is not
        known yet is read from either."""
        fresh = {place: value for place, value in turn.sources.items() if self.kept.get(place) != value}
        early = {value for place, value in fresh.items() if place != "c"}
        late = {value for place, value in fresh.items() if place == "c"} - early
        of_floats = self._block.known[turn.at].kind == "float"
        is_root = self._block.known[turn.at].kind == "root"
        when = max(self.clock + 1, earliest, self._float_from if of_floats else 0, self._root_from if is_root else 0)
        for cycle in range(when, when + LONGEST):
            free, more = list(self._free), int(cycle - when > 1)  # three in one bank: it must not wait for ever
            early_by, late_by = cycle + max(self._patience, more), cycle + 1 + more
            if self._served(early, free, cycle, early_by) and self._served(late, free, cycle + 1, late_by):
                break
        return cycle, free

    def _served(self, values: set[Value], free: list[int], since: int, until: int) -> bool:
        for value in values:
            known = self.bank.get(value)
            bank = known if known is not None else free.index(min(free))
            cycle = max(free[bank], since)
            if cycle > until:
                return False
            free[bank] = cycle + 1
        return True

    def take(self, turn: Turn, begun: int, free: list[int]) -> None:
        """Let a turn begin as :meth:`begin` has said."""
        self.clock, self._free = begun, free
        kind = self._block.known[turn.at].kind
        self.kept = turn.sources if kind == "float" else {}
        if kind == "root":
            self._float_from, self._root_from = begun + 2, begun + self._root_every


def clocks(block: Block, turns: list[Turn], bank: Mapping[Value, int]) -> int:
    """Cycles of some turns whose operands are there in time: what the banks and the roots alone allow."""
    pipeline = Pipeline(block, bank)
    for turn in turns:
        pipeline.take(turn, *pipeline.begin(turn))
    return pipeline.clock + 1
