"""One new order of a kernel's loops, from the compiler's machine code to the new machine code.

    cubin ─► instructions ─► block ─► schedule, allocation ─► emit ─► check ─► cubin

Only blocks of arithmetic are changed, in place, and only if :func:`~nbody.forces.scheduled.check.fault` finds that every
register holds the same expression at the end and that nothing is read before it is ready.
"""

import contextlib

from nbody.forces.scheduled.allocation import allocated, banks, fixed_banks
from nbody.forces.scheduled.block import Block, blocks
from nbody.forces.scheduled.check import fault
from nbody.forces.scheduled.emit import emitted
from nbody.forces.scheduled.instruction import Instruction, encoded, instructions, kernels
from nbody.forces.scheduled.schedule import Scheduler, Tuning

TUNINGS = (
    Tuning(8, 28, 12, False, 0.0),
    Tuning(14, 20, 8, False, 0.0),
    Tuning(10, 24, 9, False, 0.6),
    Tuning(11, 24, 9, True, 0.3),
    Tuning(13, 40, 13, False, 0.3),
    Tuning(11, 28, 8, True, 0.6),
)
"""The parameters that are timed. Of 284 sets, timed with five kernels of ``gpu-symmetric`` on one H200, these six suffice:
for each kernel one of them is at most 1.1 % slower than the fastest of all."""

FEWEST_RSQRTS = 8
"""A block with at least this number of reciprocal square roots is an unrolled loop over pairs."""

NARROWEST = 4
"""The fewest chains in progress that are tried if there are too few registers for more."""


def is_pair_loop(block: Block) -> bool:
    """True for the unrolled loop over pairs."""
    return sum(known.kind == "rsqrt" for known in block.known) >= FEWEST_RSQRTS


def reordered_block(block: Block, tuning: Tuning) -> list[Instruction] | None:
    """A block in the order of a tuning, or of a narrower one if there are too few registers; None if there are too few for
    any, or if the result fails the check."""
    for width in range(tuning.width, NARROWEST - 1, -1):
        slots = Scheduler(block, tuning._replace(width=width), fixed_banks(block)).slots()
        register = allocated(block, slots, banks(block, slots))
        if register is not None:
            body = emitted(block, slots, register)
            return None if body is None or fault(block, body) else body
    return None


def reordered(cubin: bytes, tuning: Tuning) -> bytes | None:
    """A cubin with its loops over pairs in another order; None (use the compiler's code) if no loop is changed, or if the
    code contains something unknown."""
    with contextlib.suppress(ValueError, LookupError, AssertionError):
        return _reordered(cubin, tuning)
    return None


def _reordered(cubin: bytes, tuning: Tuning) -> bytes | None:
    changed = False
    for section in kernels(cubin):
        code = instructions(cubin[section.start : section.start + section.size])
        last_end = None  # of the last changed block; a block right after it relies on code that no longer exists
        for block in blocks(code):
            body = reordered_block(block, tuning) if is_pair_loop(block) and block.start != last_end else None
            if body is not None:
                code[block.start : block.end] = body
                changed, last_end = True, block.end
        cubin = cubin[: section.start] + encoded(code) + cubin[section.start + section.size :]
    return cubin if changed else None
