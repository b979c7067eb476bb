"""Machine code of Hopper (sm_90, "SASS"), put into an order with fewer waits than the assembler's.

    cubin ─► instruction, operations, operands ─► liveness, scoreboard ─► block, flow
    pair_schedule (by pair_pipeline) ─► pair_registers ─► emit ─────┐
    product_steps ─► product_arrangement ─► product_schedule ───────┴─► check, copies ─► cubin

The assembler hides latencies, and does not look at register banks: of a loop over pairs it lets every seventh cycle pass
while a bank gives a second operand. An order in which the multiply-adds that share operands follow each other needs none of
these (:mod:`~nbody.gpu.sass.pair_pipeline`), and in a loop over products of float64 numbers nearly every multiply-add
can keep a factor for the next (:mod:`~nbody.gpu.sass.product_schedule`). Only blocks of arithmetic are touched, in
place, and only if it has been shown (:mod:`~nbody.gpu.sass.check`) that every register holds the same expression at
the end, and that nothing is read before it is there. So the results have the same bits.
"""

import contextlib
from collections.abc import Callable, Collection

from nbody.gpu.sass.block import Block, blocks
from nbody.gpu.sass.check import fault
from nbody.gpu.sass.cubin import kernels
from nbody.gpu.sass.emit import emitted
from nbody.gpu.sass.instruction import Instruction, encoded, instructions
from nbody.gpu.sass.operations import PAIRS, PRODUCTS, WITH_COPIES
from nbody.gpu.sass.pair_registers import allocated, banks, fixed_banks
from nbody.gpu.sass.pair_schedule import PairScheduler, PairTuning
from nbody.gpu.sass.product_schedule import ProductScheduler, ProductTuning
from nbody.gpu.sass.product_steps import NoProducts

PAIR_TUNINGS = (
    PairTuning(8, 28, 12, False, 0.0),
    PairTuning(14, 20, 8, False, 0.0),
    PairTuning(10, 24, 9, False, 0.6),
    PairTuning(11, 24, 9, True, 0.3),
    PairTuning(13, 40, 13, False, 0.3),
    PairTuning(11, 28, 8, True, 0.6),
)
"""Those worth timing: of 284 that were timed with five kernels of ``gpu-symmetric`` (one H200), the six of which one is at
most 1.1 % slower than the fastest for each."""

ROOTS = 4
"""Reciprocal square roots that make a block worth it: those of a loop over pairs, written out for several."""

NARROWEST = 4
"""Strands under way that are tried at least where more find no registers."""


def scheduled_block(block: Block, tuning: PairTuning) -> list[Instruction] | None:
    """A block in the order of a tuning, or of a narrower one that finds registers; None if none does, or if it is not
    shown to do the same."""
    for width in range(tuning.width, NARROWEST - 1, -1):
        turns = PairScheduler(block, tuning._replace(width=width), fixed_banks(block)).turns()
        register = allocated(block, turns, banks(block, turns))
        if register is not None:
            body = emitted(block, turns, register)
            return None if body is None or fault(block, body) else body
    return None


FEWEST_PRODUCTS = 256
"""Multiply-adds in float64 that make a block worth it: those of a loop over a slab."""


def with_products_scheduled(cubin: bytes, tuning: ProductTuning = ProductTuning()) -> bytes | None:
    """A cubin with its loops over products of float64 in an order in which each multiply-add keeps a factor for the next,
    with the copies of the next slab behind the first loads or, if that finds no order, where they are; None if there is
    none."""

    def kept(block: Block) -> list[Instruction] | None:
        if sum(known.kind == "double" for known in block.known) < FEWEST_PRODUCTS:
            return None
        try:
            body = ProductScheduler(block, tuning).instructions()
        except NoProducts:
            return None
        return None if body is None or fault(block, body) else body

    return _replaced(cubin, WITH_COPIES, kept) or _replaced(cubin, PRODUCTS, kept)


def with_pairs_scheduled(cubin: bytes, tuning: PairTuning) -> bytes | None:
    """A cubin with its loops over pairs in another order; None if none of them can be."""

    def in_order(block: Block) -> list[Instruction] | None:
        worth_it = sum(known.kind == "root" for known in block.known) >= ROOTS
        return scheduled_block(block, tuning) if worth_it else None

    return _replaced(cubin, PAIRS, in_order)


def _replaced(
    cubin: bytes, kinds: Collection[str], change: Callable[[Block], list[Instruction] | None]
) -> bytes | None:
    """A cubin with some of its blocks changed; None if none is, or if the code is of a kind that is not understood: for the
    sake of some per cent no run may end."""
    with contextlib.suppress(ValueError, LookupError, AssertionError):
        return _changed(cubin, kinds, change)
    return None


def _changed(cubin: bytes, kinds: Collection[str], change: Callable[[Block], list[Instruction] | None]) -> bytes | None:
    changed = False
    for section in kernels(cubin):
        code = instructions(cubin[section.start : section.start + section.size])
        ends = None  # of the last one that was changed: what the next finds before it would no longer be so
        for block in blocks(code, kinds):
            body = change(block) if block.start != ends else None
            if body is not None:
                code[block.start : block.end] = body
                changed, ends = True, block.end
        cubin = cubin[: section.start] + encoded(code) + cubin[section.start + section.size :]
    return cubin if changed else None


__all__ = ["PAIR_TUNINGS", "PairTuning", "kernels", "with_pairs_scheduled", "with_products_scheduled"]
