"""Who needs whose result in a block of instructions on single registers, and how much later."""

from dataclasses import dataclass, field

from nbody.gpu.sass.instruction import ZERO, Instruction, Place
from nbody.gpu.sass.operations import Operation

Value = int
"""A number in a block: the index of the instruction that makes it, or ``~r`` for what register r holds at the beginning."""


@dataclass
class Flow:
    """The values of a block.

    Args:
        body: its instructions, and ``known`` what is known of each.
        live_out: the registers that are needed at the end (a bit each).
        fresh: places that are filled just before the block, and in which of its cycles they are there.

    Attributes:
        sources: for each instruction, the values that it reads, by place.
        after: for each, the others that it must follow, and by how many cycles at least.
        earliest: for each, the cycle of the block from which on what it reads from before the block is there.
        results: the value that a register which is filled here, and needed at the end, has there.
    """

    body: list[Instruction]
    known: list[Operation]
    live_out: int
    fresh: dict[Place, int]
    sources: list[dict[str, Value]] = field(init=False, default_factory=list)
    after: list[dict[int, int]] = field(init=False, default_factory=list)
    earliest: list[int] = field(init=False, default_factory=list)
    results: dict[int, Value] = field(init=False)

    def __post_init__(self) -> None:
        self._find_sources()
        self._follow_last_readers()

    def _find_sources(self) -> None:
        holds: dict[int, Value] = {}
        others: dict[tuple[str, int], int] = {}  # who filled a uniform register or a predicate
        readers: dict[tuple[str, int], list[int]] = {}  # who has read it since
        known = self.known
        for at, instruction in enumerate(self.body):
            places = {place: instruction.register(place) for place in known[at].places}
            source = {place: holds.get(r, ~r) for place, r in places.items() if r != ZERO}
            self.sources.append(source)
            operation, late = known[at], known[at].reads_earlier(None)
            self.after.append(
                {v: known[v].latency + operation.reads_earlier(known[v]) for v in source.values() if v >= 0}
            )
            there = [self.fresh.get(("register", ~value), -late) for value in source.values() if value < 0]
            for place in instruction.beside:
                readers.setdefault(place, []).append(at)
                if place in others:
                    self.after[at][others[place]] = known[others[place]].latency
                else:
                    there.append(self.fresh.get(place, -late))
            self.earliest.append(max([0, *(cycle + late for cycle in there)]))
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
