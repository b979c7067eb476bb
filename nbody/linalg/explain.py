"""What a rung is and what its kernel takes from a multiprocessor: ``nbody bench --matmul --explain RUNG``."""

import textwrap
from typing import NamedTuple

import numpy as np

from nbody.linalg import ELEMENTWISE, LADDER
from nbody.linalg.elementwise import Elementwise
from nbody.linalg.rung import LECTURE_SIZE, Launch, Rung, Shape


class Limits(NamedTuple):
    """What a multiprocessor has to give to its blocks."""

    registers: int = 65536
    shared: int = 233472
    threads: int = 2048
    blocks: int = 32


HOPPER = Limits()
"""An H200's (compute capability 9.0), taken where there is no GPU to ask."""


class Occupancy(NamedTuple):
    """Blocks that share a multiprocessor, the part of its threads that they are, and what keeps a further block
    out."""

    blocks: int
    fraction: float
    limit: str


def occupancy(threads: int, registers: int, shared: int, limits: Limits = HOPPER) -> Occupancy:
    """How many blocks of ``threads`` threads, with ``registers`` registers each and ``shared`` bytes a block, fit a
    multiprocessor. Registers are given out 256 at a time to a warp."""
    warps = -(-threads // 32)
    room = {
        "registers": limits.registers // (warps * (-(-registers * 32 // 256) * 256)),
        "shared memory": limits.shared // shared if shared else limits.blocks,
        "threads": limits.threads // (warps * 32),
        "the number of blocks": limits.blocks,
    }
    limit = min(room, key=lambda what: room[what])
    return Occupancy(room[limit], room[limit] * warps * 32 / limits.threads, limit)


def explain(name: str) -> str:
    """The idea of the rung or element-wise kernel ``name``, and for each precision its kernel's registers, shared memory
    and occupancy.

    Raises:
        InputError: there is none of this name.
    """
    if name in ELEMENTWISE:
        return _explain_elementwise(name, ELEMENTWISE.load(name))
    rung: Rung = LADDER.load(name)
    lines = [f"{name}: {rung.title}" + (f" (improves {rung.improves})" if rung.improves else "")]
    lines += ["", *textwrap.wrap(rung.idea, 100), "", *textwrap.wrap(f"What limits it: {rung.limit}", 100)]
    reads = rung.reads(Shape(rung.example, rung.example, rung.example))
    lines += [
        "",
        f"For n = {rung.example}, one result takes {reads.from_global:g} reads from global and {reads.from_shared:g} from "
        f"shared memory: {reads.cycles:g} cycles in the simple model (1000 and 10 each).",
    ]
    if rung.on == "gpu":
        lines += ["", *(_kernel_line(rung, rung.largest or rung.example, dtype) for dtype in rung.dtypes)]
    return "\n".join(lines)


def _explain_elementwise(name: str, kernel: Elementwise) -> str:
    lines = [f"{name}: {kernel.title}", "", *textwrap.wrap(kernel.idea, 100), ""]
    lines += [f"What limits it: the bandwidth of global memory; {kernel.moved} numbers move for one result.", ""]
    return "\n".join(lines + [_kernel_line(kernel, LECTURE_SIZE, dtype) for dtype in ("float32", "float64")])


def _kernel_line(thing: Rung | Elementwise, side: int, dtype: str) -> str:
    """Registers, shared memory and occupancy of a kernel for square matrices, or the reason why they are not known
    here."""
    from nbody import gpu

    launch = thing.launch(Shape(side, side, side), np.dtype(dtype))
    assert isinstance(launch, Launch)
    try:
        used = gpu.resources(gpu.ptx(launch.kernel, launch.signature(dtype)))
    except Exception as error:  # NVVM or nvJitLink is not installed, or the kernels are simulated
        return f"{dtype}: the kernel can't be compiled here ({type(error).__name__}: {str(error)[:80]})"
    fits = occupancy(launch.threads, used.registers, used.shared)
    return (
        f"{dtype}: {launch.threads} threads a block, {used.registers} registers a thread, {used.shared} bytes of "
        f"shared memory; {fits.blocks} blocks a multiprocessor, {fits.fraction:.0%} of its threads, limited by "
        f"{fits.limit} (compute capability 9.0)"
    )
