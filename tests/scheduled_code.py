"""Machine code for the tests of ``gpu-scheduled``: instructions made by hand, and real kernels compiled for an H200."""

import re
import subprocess
from functools import cache

import numpy as np
import pytest

from nbody.bench.roofline.slots import disassembler
from nbody.forces.scheduled.block import Block, Slot, blocks
from nbody.forces.scheduled.instruction import NO_BARRIER, PLACES, ZERO, Instruction, instructions, kernels
from nbody.forces.scheduled.liveness import EVERY
from nbody.forces.scheduled.pipeline import cycles
from nbody.forces.scheduled.reorder import is_pair_loop
from nbody.forces.scheduled.scoreboard import NOTHING
from nbody.state import Want

# --- Instructions by hand ---------------------------------------------------------------------------------------------


def instruction(low, high=0, **fields):
    """An instruction from the two halves of a known one, with other registers (``dest``, a, b, c) and control bits."""
    made = Instruction(high << 64 | low)
    for place, at in {"dest": 16, **PLACES}.items():
        if place in fields:
            made = made.replaced(at, 8, fields.pop(place))
    read_barrier, predicate = fields.pop("read_barrier", NO_BARRIER), fields.pop("predicate", made.predicate)
    return made.controlled(**{"stall": 1} | fields).replaced(113, 3, read_barrier).replaced(12, 4, predicate)


def add(dest, a, b, **control):
    return instruction(0x7221, 0x10000, dest=dest, a=a, b=b, **control)


def multiply_add(dest, a, b, c, **control):
    return instruction(0x7223, 0x10000, dest=dest, a=a, b=b, c=c, **control)


def rsqrt(dest, b, **control):
    return instruction(0x7308, 0x1400, dest=dest, b=b, **control)


def shuffle(dest, a, b, **control):
    return instruction(0x1F0000007589, 0xE0000, dest=dest, a=a, b=b, **control)


def load(dest, a, **control):
    return instruction(0x7984, 0x800, dest=dest, a=a, **control)


def store(a, b, **control):
    return instruction(0x7388, 0x800, a=a, b=b, **control)


def branch(at, to, predicate=0, stall=6):
    offset = (to - at - 1) * 4
    word = 0x947 | (offset & 255) << 16 | (offset >> 8 & (1 << 48) - 1) << 34 | 0xE0 << 82
    return instruction(word & (1 << 64) - 1, word >> 64, predicate=predicate, stall=stall)


EXIT = instruction(0x794D, 0x3800000, stall=5)


def block_of(*body, live_out=0, **fields):
    """A block of some instructions, with nothing under way before it."""
    return Block(0, len(body), list(body), EVERY, live_out, NOTHING, EVERY, **fields)


def bits(*registers):
    return sum(1 << register for register in registers)


# --- Real kernels -----------------------------------------------------------------------------------------------------

KERNELS = [
    ((4, 18), "product", Want.ACCELERATION), ((4, 22), "equal", Want.ACCELERATION), ((1, 10), "product", Want.ACCELERATION),
    ((1, 10), "product", Want.ENERGY), ((1, 10), "equal", Want.ENERGY, "cutoff", 2),
]  # fmt: skip
"""Each number of bodies per thread, masses and potential with and without their own terms, and both kinds of softening. (A
tiling of two warps has the loop of four.)"""


def machine_code(tiling, masses, potential, softening="plummer", dimensions=3):
    """The cubin of a kernel of gpu-symmetric for an H200, in float32."""
    pytest.importorskip("cuda.core")
    from numba import types

    from nbody import gpu
    from nbody.forces.direct import gpu_pairs
    from nbody.forces.direct.gpu_engine import Shape
    from nbody.forces.direct.gpu_triangle import Tiling

    real = types.float32
    kernel = gpu_pairs.build(Shape(softening, dimensions, np.dtype(np.float32), potential), Tiling(*tiling), masses)
    signature = (real[:, ::1], real[:, :, ::1], real[:, :, ::1], real, *[types.int64] * 4, types.uint32)
    try:
        return gpu.assembled(gpu.ptx(kernel, signature))[0]
    except Exception as error:
        if "nvvm" in str(error).lower() or "nvjitlink" in str(error).lower():
            pytest.skip(f"no compiler here: {error}")
        raise


@cache
def cubin(*kernel):
    """A kernel's machine code, compiled once per process."""
    return machine_code(*kernel)


def code_of(cubin):
    (section,) = kernels(cubin)
    return section, instructions(cubin[section.start : section.start + section.size])


def loops(cubin):
    """The blocks of a kernel that are loops over pairs, or the first iteration of one."""
    found = blocks(code_of(cubin)[1])
    return [block for block in found if is_pair_loop(block)]


def modelled(block, body):
    """Cycles of instructions according to the model of the register banks."""
    made = Block(0, len(body), body, block.live_in, block.live_out, block.state, block.registers)
    bank = {~register: register & 1 for register in range(ZERO)}
    bank |= {at: register & 1 for at in range(len(body)) if (register := made.register_written(at)) is not None}
    return cycles(made, [Slot(at, sources) for at, sources in enumerate(made.flow.sources)], bank)


STACK = 1
"""The stack pointer, which nvdisasm shows as live throughout the kernel."""


def lives_shown(cubin, tmp_path):
    """By instruction, the mark of each register that lives there, from ``nvdisasm -plr``."""
    program = disassembler()
    if program is None:
        pytest.skip("no nvdisasm here")
    (tmp_path / "cubin").write_bytes(cubin)
    command = [program, "-plr", str(tmp_path / "cubin")]
    found, columns = {}, {}
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        code, _, table = line.partition("//")
        registers = table.partition("|")[2].partition("|")[
            0
        ]  # the first group of columns; predicates and others follow
        if registers.lstrip().startswith("#"):
            begins = len(code) + 2 + table.index("|") + 1
            columns = {begins + number.end() - 1: int(number.group()) for number in re.finditer(r"\d+", registers)}
        elif address := re.match(r"\s*/\*([0-9a-f]{4,})\*/", code):
            marks = {r: line[at] for at, r in columns.items() if line[at : at + 1].strip()}
            found[int(address[1], 16) // 16] = marks
    return found
