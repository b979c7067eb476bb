"""The order of a loop over products of float64 numbers: each multiply-add keeps a factor for the next one.

Two operands of a multiply-add can be read in the two cycles that it takes; a third costs one more, unless the one before has
kept it in the same place. The products of a step are those of all its left with all its right factors. Column by column,
down and up, each keeps the right factor, and at a turn the left one; only the first of a step reads three operands. (Of 1024
in a loop of ``k21`` the assembler lets 805 keep one.) Now and then the warp lets another come next, which keeps nothing for
either: after every 4th product k21 made 24.2 TFLOP/s, after every 8th 26.7, 16th 27.3, 32nd 27.4, never 26.5 (one H200,
n = 4096). Where in a column loads stand does not matter (27.0 to 27.4) but at its end, where the left factor is kept (25.8).

The factors come from shared memory, four registers at a time. Those of the first step are loaded at once, those of a later
one during the step before it, one every few products. Sums stay in their registers, so that the rest are free for factors.
"""

from collections.abc import Iterator
from typing import NamedTuple

from nbody.gpu.sass.block import Block
from nbody.gpu.sass.emit import Guard, LoadBarriers, held_back
from nbody.gpu.sass.instruction import LONGEST_STALL, NO_BARRIER, PLACES, SHUFFLES_READ, ZERO, Instruction
from nbody.gpu.sass.liveness import touched

BEHIND_OTHERS = 4
"""Products behind the last other instruction, one that advances an address: by then all loads have been waited for."""


class Factor(NamedTuple):
    """Half of what a load brings: the load's index in the block, and which half."""

    load: int
    half: int


class Product(NamedTuple):
    """A multiply-add: its index in the block, its factors, and the register of its sum."""

    at: int
    left: Factor
    right: Factor
    sum: int


class ProductStyle(NamedTuple):
    """What an order is made by.

    Attributes:
        load_after: products between a load and the column's first.
        stall: cycles from a product to the next.
        yields: products from one that lets another warp come next to the next such one.
    """

    load_after: int = 3
    stall: int = 2
    yields: int = 32


class NoProducts(Exception):
    """A block is not made of steps in each of which all left factors meet all right ones."""


def steps(block: Block) -> list[list[Product]]:
    """The products of a block, step by step, each step in an order in which they keep a factor. Raises NoProducts."""
    found: list[list[Product]] = []
    for group in _depths(block):
        group = _sided(group)
        rows, columns = sorted({p.left for p in group}), sorted({p.right for p in group})
        by_factors = {(p.left, p.right): p for p in group}
        if not len(by_factors) == len(group) == len(rows) * len(columns) == len(found[0] if found else group):
            raise NoProducts
        order = [(row, column) for k, column in enumerate(columns) for row in (reversed(rows) if k % 2 else rows)]
        found.append([by_factors[pair] for pair in order])
    if not found:
        raise NoProducts
    return found


def _depths(block: Block) -> list[list[Product]]:
    """A block's products by how many of their sum's come before them."""
    factor: dict[int, Factor] = {}  # by the register that holds it
    sums: dict[int, tuple[int, int]] = {}  # by register: the one that the sum had at first, and its products so far
    found: list[list[Product]] = []
    for at, (instruction, known) in enumerate(zip(block.body, block.known, strict=True)):
        if known.kind == "load":
            for k in range(4):
                sums.pop(instruction.dest + k, None)
            factor |= {instruction.dest: Factor(at, 0), instruction.dest + 2: Factor(at, 1)}
        elif known.kind == "double":
            a, b, c = (instruction.register(place) for place in "abc")
            if a not in factor or b not in factor or c in factor:
                raise NoProducts
            first, depth = sums.get(c, (c, 0))
            found += [[]] if depth == len(found) else []
            found[depth].append(Product(at, factor[a], factor[b], first))
            factor.pop(instruction.dest, None)
            sums[instruction.dest] = first, depth + 1
    ends = {first: register for register, (first, depth) in sums.items() if depth == len(found)}
    if any(len(group) != len(found[0]) for group in found) or any(first != end for first, end in ends.items()):
        raise NoProducts
    return found


def _sided(group: list[Product]) -> list[Product]:
    """A step's products with their factors exchanged where these stand on the other side than in the first."""
    left, right = {group[0].left}, {group[0].right}
    found, rest = [], list(group)
    while rest:
        later = []
        for product in rest:
            if product.left in right or product.right in left:
                product = product._replace(left=product.right, right=product.left)
            if product.left in left or product.right in right:
                left.add(product.left)
                right.add(product.right)
                found.append(product)
            else:
                later.append(product)
        if len(later) == len(rest) or left & right:
            raise NoProducts
        rest = later
    return found


class Ordered:
    """A block's instructions in the new order."""

    def __init__(self, block: Block, style: ProductStyle) -> None:
        self._block, self._style = block, style
        self._steps = steps(block)
        self._rows = len({product.left for product in self._steps[0]})
        self._products = [product for step in self._steps for product in step]
        self._used: dict[int, list[int]] = {}  # by load, when: numbers of products
        for number, product in enumerate(self._products):
            for factor in (product.left, product.right):
                self._used.setdefault(factor.load, []).append(number)
        self._sequence = list(self._arranged())

    def _arranged(self) -> Iterator[int | Product]:
        """Loads and others, by their index, and products."""
        loads = sorted(self._used, key=lambda at: (self._used[at][0], at))
        first = sum(self._used[at][0] < len(self._steps[0]) for at in loads)
        every = len(self._steps[0]) // first
        if sorted(loads) != self._of_kind("load") or every <= self._style.load_after:
            raise NoProducts
        yield from loads[:first]
        yield from self._of_kind("mark")
        for number, product in enumerate(self._products):
            yield product
            if number % every == self._style.load_after and number // every < len(loads) - first:
                yield loads[first + number // every]
            if number == len(self._products) - BEHIND_OTHERS:
                yield from self._of_kind("integer")

    def _of_kind(self, kind: str) -> list[int]:
        return [at for at, known in enumerate(self._block.known) if known.kind == kind]

    def registers(self) -> dict[int, int] | None:
        """The first of the four registers of each load; None if there are not enough."""
        block, taken = self._block, {product.sum + k for product in self._products for k in (0, 1)}
        kept = block.live_in | block.live_out

        def is_free(r: int) -> bool:
            return bool(block.usable >> r & 1) and not kept >> r & 1 and r not in taken and not block.guards(r)

        room = [r for r in range(0, ZERO - 3, 4) if all(is_free(r + k) for k in range(4))]
        found: dict[int, int] = {}
        until: dict[int, int] = {}  # the last product that needs what is there
        number = 0
        for item in self._sequence:
            if isinstance(item, Product):
                number += 1
            elif item in self._used:
                free = [r for r in room if until.get(r, -1) < number]
                if not free:
                    return None
                found[item] = min(free, key=lambda r: (until.get(r, -1), r))
                until[found[item]] = self._used[item][-1]
        return found

    def instructions(self) -> list[Instruction] | None:
        """The instructions; None if they find no registers."""
        quads = self.registers()
        if quads is None:
            return None
        block, guard, barriers = self._block, Guard(self._block), LoadBarriers(self._block)
        made, products = [], 0
        for k, item in enumerate(self._sequence):
            last, stall, waits, barrier, keeps = k == len(self._sequence) - 1, 1, 0, NO_BARRIER, 0
            if isinstance(item, Product):
                instruction = self._product(item, quads)
                waits = barriers.waits(item.left.load) | barriers.waits(item.right.load)
                keeps = self._keeps(k)
                if last:
                    stall = max(1, block.known[item.at].latency + SHUFFLES_READ - block.behind)  # as in emit.beginnings
                    if stall > LONGEST_STALL:
                        return None
                elif isinstance(self._sequence[k + 1], Product):
                    stall = self._style.stall
            else:
                instruction = block.body[item]
                if block.known[item].kind == "load":
                    instruction = instruction.replaced(16, 8, quads[item])
                    barrier = barriers.taken(item, self._used[item][0] // (2 * self._rows))
                elif block.known[item].kind == "mark":
                    barrier = instruction.write_barrier
            waits |= guard.waits(touched(instruction))
            products += isinstance(item, Product)
            lets_go = isinstance(item, Product) and products % self._style.yields == 0
            instruction = instruction.controlled(
                stall, barrier, waits | guard.waits_left() * last, keeps * (not lets_go)
            )
            made.append(instruction.yielding() if lets_go else instruction)
        return held_back(made)

    def _product(self, product: Product, quads: dict[int, int]) -> Instruction:
        left, right = (quads[factor.load] + 2 * factor.half for factor in (product.left, product.right))
        instruction = self._block.body[product.at].replaced(16, 8, product.sum)
        for place, register in zip("abc", (left, right, product.sum), strict=True):
            instruction = instruction.replaced(PLACES[place], 8, register)
        return instruction

    def _keeps(self, k: int) -> int:
        """The operands that a product keeps for the next one, a bit each: what a load between them reads is its address, in
        place a."""
        item, following = self._sequence[k], self._sequence[k + 1 : k + 3]
        between = bool(following) and following[0] in self._used
        reader = following[between] if len(following) > between else None
        if not isinstance(item, Product) or not isinstance(reader, Product):
            return 0
        return (reader.left == item.left and not between) << 0 | (reader.right == item.right) << 1
