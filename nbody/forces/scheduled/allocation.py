"""The registers of a block's values, chosen so that few instructions wait for a bank.

A value that is there at the start, or needed at the end, keeps its register.
"""

from nbody.forces.scheduled.block import Block, Slot, Value
from nbody.forces.scheduled.instruction import ZERO
from nbody.forces.scheduled.pipeline import cycles

SWEEPS = 4
BEFORE, AFTER = 3, 6
"""Slots before and after a changed slot for which the cycles are counted again."""


def fixed_banks(block: Block) -> dict[Value, int]:
    """The banks of the values whose registers are given."""
    bank = {value: register & 1 for register, value in block.flow.results.items()}
    return bank | {~register: register & 1 for register in range(ZERO)}


def banks(block: Block, slots: list[Slot]) -> dict[Value, int]:
    """The bank of each value, improved by changing one at a time."""
    bank = fixed_banks(block)
    readers: dict[Value, list[int]] = {}
    for k, slot in enumerate(slots):
        for value in set(slot.sources.values()):
            if value not in bank:
                readers.setdefault(value, []).append(k)
    bank |= {value: k & 1 for k, value in enumerate(readers)}

    def cost(value: Value) -> int:
        return sum(cycles(block, slots[max(0, k - BEFORE) : k + AFTER], bank) for k in readers[value])

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
    """The first and the last slot at which each value needs a register; -1 is before the block, ``len(slots)`` after it."""

    def __init__(self, block: Block, slots: list[Slot]) -> None:
        self.made = {slot.at: k for k, slot in enumerate(slots) if block.register_written(slot.at) is not None}
        self.last: dict[Value, int] = dict(self.made)
        first_reader: dict[Value, int] = {}
        for k, slot in enumerate(slots):
            for value in slot.sources.values():
                self.last[value] = k
                first_reader.setdefault(value, k)
        self.replaced_by = self._replaced_by(block, slots)
        for slot in slots:
            # The operand of an rsqrt or a shuffle stays until its result is waited for, unless the result replaces it.
            if block.known[slot.at].signalled:
                for value in slot.sources.values():
                    if self.replaced_by.get(value) != slot.at:
                        self.last[value] = max(self.last[value], first_reader.get(slot.at, len(slots)))
        for value in block.flow.results.values():
            self.last[value] = len(slots)

    def _replaced_by(self, block: Block, slots: list[Slot]) -> dict[Value, int]:
        """Values whose last reader is a shuffle, and that shuffle: its result takes the same register."""
        found, needed = {}, set(block.flow.results.values())
        for k, slot in enumerate(slots):
            source = slot.sources.get("a", slot.at)
            if block.known[slot.at].kind == "shuffle" and self.last.get(source) == k and source not in needed:
                found[source] = slot.at
        return found


def allocated(block: Block, slots: list[Slot], bank: dict[Value, int]) -> dict[Value, int] | None:
    """A register for each value, in its bank if one is free there; None if there are too few. Usually the registers that the
    block writes already suffice; otherwise all registers of the kernel are used."""
    written = sum({1 << r for at in range(len(block.body)) if (r := block.register_written(at)) is not None})
    found = _allocated(block, slots, bank, written & block.usable)
    return found if found is not None else _allocated(block, slots, bank, block.usable)


def _allocated(block: Block, slots: list[Slot], bank: dict[Value, int], allowed: int) -> dict[Value, int] | None:
    lives = Lifetimes(block, slots)
    register = {value: r for r, value in block.flow.results.items()}
    register |= {value: register[at] for value, at in lives.replaced_by.items() if at in register and value >= 0}
    register |= {value: ~value for value in lives.last if value < 0}
    taken: dict[int, list[tuple[int, int]]] = {r: [] for r in range(ZERO)}
    for r in range(ZERO):
        if block.live_in >> r & 1:
            passes_through = block.live_out >> r & 1 and r not in block.flow.results
            taken[r].append((-1, len(slots) if passes_through else lives.last.get(~r, -1)))
    spare = [r for r in range(ZERO) if allowed >> r & 1]
    made = [slot.at for slot in slots if slot.at in lives.made]
    for at in sorted(made, key=lambda at: at not in register):  # those that have one already come first
        k, end = lives.made[at], max(lives.last[at], lives.made[at] + 1)
        free = [r for r in ([register[at]] if at in register else spare) if _is_free(taken[r], k, end)]
        if not free:
            return None
        register[at] = min(free, key=lambda r: ((r & 1) != bank.get(at, 0), block.guards(r).bit_count(), r))
        taken[register[at]].append((k, end))
    return register


def _is_free(taken: list[tuple[int, int]], since: int, until: int) -> bool:
    return all(until <= begin or end <= since for begin, end in taken)
