"""The registers of a block's numbers, so that few instructions wait for a bank.

What is there at the beginning, or needed at the end, keeps its register.
"""

from nbody.gpu.sass.block import Block, Turn
from nbody.gpu.sass.flow import Value
from nbody.gpu.sass.instruction import ZERO
from nbody.gpu.sass.pair_pipeline import clocks

SWEEPS = 4
BEFORE, BEHIND = 3, 6
"""Turns around one whose operands change banks that are looked at: what it makes others wait for."""


def fixed_banks(block: Block) -> dict[Value, int]:
    """The banks of the values whose registers are given."""
    bank = {value: register & 1 for register, value in block.flow.results.items()}
    return bank | {~register: register & 1 for register in range(ZERO)}


def banks(block: Block, turns: list[Turn]) -> dict[Value, int]:
    """The bank for each value: better and better ones, found by changing one at a time."""
    bank = fixed_banks(block)
    readers: dict[Value, list[int]] = {}
    for k, turn in enumerate(turns):
        for value in set(turn.sources.values()):
            if value not in bank:
                readers.setdefault(value, []).append(k)
    bank |= {value: k & 1 for k, value in enumerate(readers)}

    def cost(value: Value) -> int:
        return sum(clocks(block, turns[max(0, k - BEFORE) : k + BEHIND], bank) for k in readers[value])

    for _ in range(SWEEPS):
        changed = False
        for value in readers:
            before = cost(value)
            bank[value] ^= 1
            if cost(value) < before:
                changed = True
            else:
                bank[value] ^= 1
        if not changed:
            break
    return bank


class Lifetimes:
    """From which turn to which a register is taken by each value; -1 is before the block, ``len(turns)`` behind it."""

    def __init__(self, block: Block, turns: list[Turn]) -> None:
        self.made = {turn.at: k for k, turn in enumerate(turns) if block.fills(turn.at) is not None}
        self.last: dict[Value, int] = dict(self.made)
        reader: dict[Value, int] = {}  # the first one
        for k, turn in enumerate(turns):
            for value in turn.sources.values():
                self.last[value] = k
                reader.setdefault(value, k)
        self.passed_on = self._passed_on(block, turns)
        for turn in turns:
            # What roots and shuffles read stays until their result is waited for, unless that takes its place.
            if block.known[turn.at].waited:
                for value in turn.sources.values():
                    if self.passed_on.get(value) != turn.at:
                        self.last[value] = max(self.last[value], reader.get(turn.at, len(turns)))
        for value in block.flow.results.values():
            self.last[value] = len(turns)

    def _passed_on(self, block: Block, turns: list[Turn]) -> dict[Value, int]:
        """Values that a shuffle reads last of all, and whose place its result takes."""
        found, needed = {}, set(block.flow.results.values())
        for k, turn in enumerate(turns):
            source = turn.sources.get("a", turn.at)
            if block.known[turn.at].kind == "shuffle" and self.last.get(source) == k and source not in needed:
                found[source] = turn.at
        return found


def allocated(block: Block, turns: list[Turn], bank: dict[Value, int]) -> dict[Value, int] | None:
    """A register for each value, in its bank if one is free there; None if there are not enough. Those that the block fills
    already are enough for most; else all that the kernel has are taken."""
    filled = sum({1 << r for at in range(len(block.body)) if (r := block.fills(at)) is not None})
    found = _allocated(block, turns, bank, filled & block.usable)
    return found if found is not None else _allocated(block, turns, bank, block.usable)


def _allocated(block: Block, turns: list[Turn], bank: dict[Value, int], room: int) -> dict[Value, int] | None:
    lives = Lifetimes(block, turns)
    register = {value: r for r, value in block.flow.results.items()}
    register |= {value: register[at] for value, at in lives.passed_on.items() if at in register and value >= 0}
    register |= {value: ~value for value in lives.last if value < 0}
    taken: dict[int, list[tuple[int, int]]] = {r: [] for r in range(ZERO)}
    for r in range(ZERO):
        if block.live_in >> r & 1:
            through = block.live_out >> r & 1 and r not in block.flow.results
            taken[r].append((-1, len(turns) if through else lives.last.get(~r, -1)))
    spare = [r for r in range(ZERO) if room >> r & 1]
    made = [turn.at for turn in turns if turn.at in lives.made]
    for at in sorted(made, key=lambda at: at not in register):  # those that have one already come first
        k, end = lives.made[at], max(lives.last[at], lives.made[at] + 1)
        usable = [r for r in ([register[at]] if at in register else spare) if _is_free(taken[r], k, end)]
        if not usable:
            return None
        register[at] = min(usable, key=lambda r: ((r & 1) != bank.get(at, 0), block.guards(r).bit_count(), r))
        taken[register[at]].append((k, end))
    return register


def _is_free(taken: list[tuple[int, int]], since: int, until: int) -> bool:
    return all(until <= begin or end <= since for begin, end in taken)
