"""Where loads, copies and other instructions stand among the products of a loop.

The loads of the first step come at once, those of a later one during the step before it, one every few products. While the
first are under way, the copies are started, in one run as no load may stand among them (see :mod:`nbody.gpu.sass.copies`):
one every four cycles, so that what moves on their addresses stands in between. (In the assembler's order the first loads
come behind the copies: k21 then makes 27.7 TFLOP/s, and so 27.9. With two products between copies, which can keep no factor
over one, it made 27.7 to 28.0. One H200, n = 4096.) What moves on the addresses of loads is last.
"""

from collections.abc import Iterator
from typing import NamedTuple

from nbody.gpu.sass import copies
from nbody.gpu.sass.block import Block
from nbody.gpu.sass.instruction import Place
from nbody.gpu.sass.liveness import touched
from nbody.gpu.sass.operands import places_filled, places_read
from nbody.gpu.sass.product_steps import NoProducts, Product, steps

BEHIND_OTHERS = 4
"""Products from the one behind which the last other instructions come, those that advance addresses, to the end, itself
counted: by then all loads have been waited for."""


class ProductTuning(NamedTuple):
    """What an order is made by.

    Attributes:
        load_after: products between a load and the column's first.
        stall: cycles from a product to the next.
        yields: products from one that lets another warp come next to the next such one.
    """

    load_after: int = 3
    stall: int = 2
    yields: int = 32


class Arrangement:
    """The order of a block's instructions. Raises NoProducts where there is none.

    Attributes:
        products: all products, in their order.
        rows: products of a column.
        used: by load, when: numbers of products.
    """

    def __init__(self, block: Block, tuning: ProductTuning) -> None:
        found = steps(block)
        self._block, self._tuning, self._step = block, tuning, len(found[0])
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
        every, early = self._step // first, self._early()
        if sorted(loads) != self._of_kind("load") or every <= self._tuning.load_after:
            raise NoProducts
        front = self._in_front(early)
        yield from front
        yield from loads[:first]
        yield from self._copies([at for at in early if at not in front])
        for number, product in enumerate(self.products):
            yield product
            if number % every == self._tuning.load_after and number // every < len(loads) - first:
                yield loads[first + number // every]
            if number == len(self.products) - BEHIND_OTHERS:
                yield from (at for at in self._of_kind("integer", "wide") if at not in early)

    def _in_front(self, early: list[int]) -> list[int]:
        """What comes before the first loads. A barrier of the threads is just before, behind which no load may come at once:
        time for short instructions, and to wait for another barrier."""
        block = self._block
        short = [at for at in early if block.known[at].kind == "integer"]
        return short + [at for at in early if at not in short and any(map(block.guards, touched(block.body[at])))][:1]

    def _copies(self, early: list[int]) -> Iterator[int]:
        """The copies, what stands in front of them, and the ends of their groups; in between, what they need."""
        left = list(early)
        yield from [left.pop(0)] if left else []
        for at in self._of_kind(*copies.KINDS):
            needed = {place for p in self._block.known[at].places for place in places_read(self._block.body[at], p)}
            while any(needed & set(places_filled(self._block.body[other])) for other in left):
                yield left.pop(0)
            yield at
            if left and self._block.known[at].kind == "copy":
                yield left.pop(0)
        yield from left

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

    def _of_kind(self, *kinds: str) -> list[int]:
        return [at for at in range(len(self._block.body)) if self._block.known[at].kind in kinds]
