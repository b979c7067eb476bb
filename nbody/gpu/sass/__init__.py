"""Machine code of Hopper (sm_90, "SASS"), put into an order with fewer waits than the assembler's.

    cubin ─ sections, instructions ─► block ─ order, registers, emit ─► the block anew ─ check ─► cubin

The assembler hides latencies, and does not look at register banks: of a loop over pairs it lets every seventh cycle pass
while a bank gives a second operand. An order in which the multiply-adds that share operands follow each other needs none of
these (:mod:`~nbody.gpu.sass.pipeline`). Only blocks of arithmetic are touched, in place, and only if it has been shown
(:mod:`~nbody.gpu.sass.check`) that every register holds the same expression at the end, and that nothing is read before it
is there. So the results have the same bits.
"""

from nbody.gpu.sass.block import Block, blocks
from nbody.gpu.sass.check import fault
from nbody.gpu.sass.cubin import kernels
from nbody.gpu.sass.emit import emitted
from nbody.gpu.sass.instruction import Instruction, encoded, instructions
from nbody.gpu.sass.order import Ordering, Style
from nbody.gpu.sass.registers import allocated, banks, fixed_banks

STYLES = (
    Style(8, 28, 12, False, 0.0),
    Style(14, 20, 8, False, 0.0),
    Style(10, 24, 9, False, 0.6),
    Style(11, 24, 9, True, 0.3),
    Style(13, 40, 13, False, 0.3),
    Style(11, 28, 8, True, 0.6),
)
"""Styles worth timing: of 284 that were timed with five kernels of ``gpu-symmetric`` (one H200), the six of which one is at
most 1.1 % slower than the fastest for each."""

ROOTS = 4
"""Reciprocal square roots that make a block worth it: those of a loop over pairs, written out for several."""


def reordered(block: Block, style: Style) -> list[Instruction] | None:
    """A block in an order of some style; None if it finds no registers, or is not shown to do the same."""
    turns = Ordering(block, style, fixed_banks(block)).made()
    register = allocated(block, turns, banks(block, turns))
    body = emitted(block, turns, register) if register is not None else None
    return None if body is None or fault(block, body) else body


def rescheduled(cubin: bytes, style: Style) -> bytes | None:
    """A cubin with its loops over pairs in another order; None if none of them can be."""
    changed = False
    for section in kernels(cubin):
        code = instructions(cubin[section.start : section.start + section.size])
        for block in blocks(code):
            worth_it = sum(known.kind == "root" for known in block.known) >= ROOTS
            body = reordered(block, style) if worth_it else None
            if body is not None:
                code[block.start : block.end] = body
                changed = True
        cubin = cubin[: section.start] + encoded(code) + cubin[section.start + section.size :]
    return cubin if changed else None


__all__ = ["STYLES", "Style", "kernels", "rescheduled"]
