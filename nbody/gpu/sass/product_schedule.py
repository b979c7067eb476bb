"""The order of a loop over products of float64 numbers: each multiply-add keeps a factor for the next one.

Two operands of a multiply-add can be read in the two cycles that it takes; a third costs one more, unless the one before has
kept it in the same place. The products of a step are those of all its left with all its right factors. Column by column,
down and up, each keeps the right factor, and at a turn the left one; only the first of a step reads three operands. (Of 1024
in a loop of ``k21`` the assembler lets 805 keep one.) Now and then the warp lets another come next, which keeps nothing for
either: after every 4th product k21 made 24.2 TFLOP/s, after every 8th 26.7, 16th 27.3, 32nd 27.4, never 26.5 (one H200,
n = 4096). Where in a column loads stand does not matter (27.0 to 27.4) but at its end, where the left factor is kept (25.8).

The factors come from shared memory, four registers at a time, and where the loads stand is in
:mod:`~nbody.gpu.sass.product_arrangement`. Sums stay in their registers, so that the rest are free for factors. A copy
reads its addresses when it comes to it, and a barrier tells when it has; the last product waits for that, so that the
loop may then fill them anew.
"""

from nbody.gpu.sass.block import Block
from nbody.gpu.sass.emit import Guard, LoadBarriers, held_back
from nbody.gpu.sass.instruction import LONGEST_STALL, NO_BARRIER, PLACES, ZERO, Instruction
from nbody.gpu.sass.liveness import touched
from nbody.gpu.sass.operations import SHUFFLES_READ
from nbody.gpu.sass.product_arrangement import Arrangement, ProductTuning
from nbody.gpu.sass.product_steps import Product


class ProductScheduler:
    """A block's instructions in the new order."""

    def __init__(self, block: Block, tuning: ProductTuning) -> None:
        arrangement = Arrangement(block, tuning)
        self._block, self._tuning = block, tuning
        self._products, self._rows, self._used = arrangement.products, arrangement.rows, arrangement.used
        self._sequence = list(arrangement.sequence())

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
        made, products, copying = [], 0, 0
        for k, item in enumerate(self._sequence):
            last, stall, waits, keeps = k == len(self._sequence) - 1, 1, 0, 0
            barrier = read_barrier = NO_BARRIER
            if isinstance(item, Product):
                instruction = self._product(item, quads)
                waits = barriers.waits(item.left.load) | barriers.waits(item.right.load)
                keeps = self._keeps(k)
                if last:
                    stall = max(1, block.known[item.at].latency + SHUFFLES_READ - block.behind)  # as in emit.beginnings
                    if stall > LONGEST_STALL:
                        return None
                elif isinstance(self._sequence[k + 1], Product):
                    stall = self._tuning.stall
            else:
                instruction = block.body[item]
                if block.known[item].kind == "load":
                    instruction = instruction.replaced(16, 8, quads[item])
                    barrier = barriers.taken(item, self._used[item][0] // (2 * self._rows))
                elif block.known[item].kind == "mark":
                    barrier = instruction.write_barrier
                elif block.known[item].kind == "copy":
                    read_barrier, copying = barriers.copies, 1 << barriers.copies
            waits |= guard.waits(touched(instruction))
            products += isinstance(item, Product)
            lets_go = isinstance(item, Product) and products % self._tuning.yields == 0
            waits |= (guard.waits_left() | copying) * last
            instruction = instruction.controlled(stall, barrier, waits, keeps * (not lets_go), read_barrier)
            made.append(instruction.yielding() if lets_go else instruction)
        return held_back(made, block)

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
