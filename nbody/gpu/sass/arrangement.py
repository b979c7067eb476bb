"""Where loads, copies and other instructions stand among the products of a loop.

The loads of the first step come at once, those of a later one during the step before it, one every few products. What the
copies need is computed while the first loads are under way. The copies come one every few products; no load may stand among
them (see :mod:`nbody.gpu.sass.copies`), so those that would come before them. What moves on the addresses of loads is last.
"""

from collections.abc import Iterator
from typing import NamedTuple

from nbody.gpu.sass import copies
from nbody.gpu.sass.block import Block
from nbody.gpu.sass.instruction import Place
from nbody.gpu.sass.operands import places_filled, places_read
from nbody.gpu.sass.steps import NoProducts, Product, steps

BEHIND_OTHERS = 4
"""Products behind the last other instruction, one that advances an address: by then all loads have been waited for."""

BEHIND_COPY = 2
"""Products at least between a copy and the end of its group: the assembler leaves four cycles."""


class ProductStyle(NamedTuple):
    """What an order is made by.

    Attributes:
        load_after: products between a load and the column's first.
        stall: cycles from a product to the next.
        yields: products from one that lets another warp come next to the next such one.
        copies_from: products before the first copy.
        copies_every: products from one copy to the next; 0: all stand together.
    """

    load_after: int = 3
    stall: int = 2
    yields: int = 32
    copies_from: int = 0
    copies_every: int = 2


class Arrangement:
    """The order of a block's instructions. Raises NoProducts where there is none.

    Attributes:
        products: all products, in their order.
        rows: products of a column.
        used: by load, when: numbers of products.
    """

    def __init__(self, block: Block, style: ProductStyle) -> None:
        found = steps(block)
        self._block, self._style, self._step = block, style, len(found[0])
        self.products = [product for step in found for product in step]
        self.rows = len({product.left for product in found[0]})
        self.used: dict[int, list[int]] = {}
        for number, product in enumerate(self.products):
            for factor in (product.left, product.right):
                self.used.setdefault(factor.load, []).append(number)

    def sequence(self) -> Iterator[int | Product]:
        """Products, and the indices of the others."""
        loads = sorted(self.used, key=lambda at: (self.used[at][0], at))
        first = sum(self.used[at][0] < self._step for at in loads)
        every, early, started = self._step // first, self._early(), self._copies()
        if sorted(loads) != self._of_kind("load") or every <= self._style.load_after:
            raise NoProducts
        among = [number for at, number in started.items() if self._kind(at) == "copy"]
        before: dict[int, list[int]] = {0: loads[:first]}  # what stands before a product, by its number
        for k, load in enumerate(loads[first:]):
            number = k * every + self._style.load_after + 1
            is_among = bool(among) and among[0] <= number <= among[-1]
            before.setdefault(among[0] if is_among else number, []).append(load)
        before[0] += early
        for at, number in started.items():
            before.setdefault(number, []).append(at)
        late = [at for at in self._of_kind("integer", "wide") if at not in early]
        before.setdefault(len(self.products) - BEHIND_OTHERS + 1, []).extend(late)
        for number, product in enumerate(self.products):
            yield from before.get(number, [])
            yield product

    def _copies(self) -> dict[int, int]:
        """For each copy, what stands in front of it, and each end of a group: the number of the product behind it."""
        number, every, found = self._style.copies_from, self._style.copies_every, dict[int, int]()
        copied = False
        for at in self._of_kind(*copies.KINDS):
            if self._kind(at) == "mark":
                found[at] = self._end_of_group(number) if copied else 0
                continue
            if self._kind(at) == "copy" and copied:
                number += every
                number += every > 0 and number % self.rows == 0 and not self._starts_anew(number)
            copied |= self._kind(at) == "copy"
            found[at] = number
        if max(found.values(), default=0) > len(self.products) - BEHIND_OTHERS:
            raise NoProducts
        return found

    def _end_of_group(self, number: int) -> int:
        """The number of a product for the end of a group whose last copy comes before one: where it costs no factor kept."""
        number += BEHIND_COPY
        while not self._starts_anew(number):
            number += 1
        return number

    def _starts_anew(self, number: int) -> bool:
        """True for a product for which the one before keeps no factor."""
        return number % self._style.yields == 0 or number % self._step == 0

    def _early(self) -> list[int]:
        """The instructions that copies need the results of."""
        needed, found = set[Place](), []
        for at in reversed(range(len(self._block.body))):
            instruction, known = self._block.body[at], self._block.known[at]
            filled = set(places_filled(instruction))
            if known.kind in ("integer", "wide") and filled & needed:
                found.append(at)
                needed -= filled
            elif known.kind != "copy":
                continue
            needed |= {place for p in known.places for place in places_read(instruction, p)} | set(instruction.beside)
        return found[::-1]

    def _kind(self, at: int) -> str:
        return self._block.known[at].kind

    def _of_kind(self, *kinds: str) -> list[int]:
        return [at for at in range(len(self._block.body)) if self._kind(at) in kinds]
