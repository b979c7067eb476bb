"""The idea of a rung and the resources of its kernel: ``nbody bench matmul --explain RUNG``."""

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nbody import install
from nbody.errors import counted
from nbody.linalg.elementwise import Elementwise
from nbody.linalg.ladder import ELEMENTWISE, LADDER
from nbody.linalg.rung import LECTURE_SIZE, ProductLaunch, ProductShape, Rung


class Limits(NamedTuple):
    """The resources of a multiprocessor."""

    registers: int = 65536
    shared: int = 233472
    threads: int = 2048
    blocks: int = 32


HOPPER = Limits()
"""The limits of an H200 (compute capability 9.0), used if there is no card."""


class Occupancy(NamedTuple):
    """Blocks per multiprocessor, the fraction of its threads that they use, and the resource that limits their number."""

    blocks: int
    fraction: float
    limit: str


def occupancy(threads: int, registers: int, shared: int, limits: Limits = HOPPER) -> Occupancy:
    """The number of blocks that fit a multiprocessor, for ``threads`` threads per block, ``registers`` registers per thread
    and ``shared`` bytes per block. Registers are allocated 256 at a time per warp."""
    warps = -(-threads // 32)
    room = {
        "registers": limits.registers // (warps * (-(-registers * 32 // 256) * 256)),
        "shared memory": limits.shared // shared if shared else limits.blocks,
        "threads": limits.threads // (warps * 32),
        "the number of blocks": limits.blocks,
    }
    limit = min(room, key=lambda what: room[what])
    return Occupancy(room[limit], room[limit] * warps * 32 / limits.threads, limit)


RESERVED = 1024
"""Bytes of shared memory that the system reserves per block that uses shared memory, from compute capability 8.0 on."""


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
    if rung.on == "gpu":
        lines += ["", *_model_lines(rung), "", *_kernel_lines(rung, rung.example_shape, rung.dtypes)]
    return "\n".join(lines)


def _explain_elementwise(name: str, kernel: Elementwise) -> str:
    lines = [f"{name}: {kernel.title}", "", *textwrap.wrap(kernel.idea, 100), ""]
    lines += [f"What limits it: the bandwidth of global memory; {kernel.moved} numbers move for one result.", ""]
    shape = ProductShape(LECTURE_SIZE, LECTURE_SIZE, LECTURE_SIZE)
    return "\n".join(lines + _kernel_lines(kernel, shape, ("float32", "float64")))


def _model_lines(rung: Rung) -> list[str]:
    """The prediction of the simple model for a rung on the GPU."""
    shape = rung.example_shape
    reads = rung.reads(shape)
    what = f"n = {shape.m}" if shape.n == shape.m else str(shape)
    shared = f" and {reads.from_shared:g} reads from shared memory" if reads.from_shared else ""
    return textwrap.wrap(
        f"For {what}, one result takes {reads.from_global:g} reads from global memory{shared}: "
        f"{reads.cycles:.0f} cycles in the simple model (1000 and 10 each).",
        100,
    )


def _kernel_lines(thing: Rung | Elementwise, shape: ProductShape, dtypes: Sequence[str]) -> list[str]:
    """Registers, shared memory and occupancy of the kernel for a product, in each precision, on this card, or the reason
    why they are not known."""
    from nbody import compute

    if compute.SIMULATED:
        return ["Kernels are simulated here (NUMBA_ENABLE_CUDASIM is set): what one takes of a card is not known."]
    card, version, limits = _card()
    lines = [f"Compiled for {card} (compute capability {version[0]}.{version[1]}):"]
    for dtype in dtypes:
        try:
            lines.append(f"{dtype}: {_kernel_line(thing, shape, dtype, version, limits)}")
        except Exception as error:
            text = " ".join(str(error).split())
            if isinstance(error, ImportError) or any(name in text.lower() for name in ("nvvm", "nvjitlink", "nvrtc")):
                return [f"To see what the kernel takes of a card, also without one: {install.install_extra('cu13')}"]
            lines.append(f"{dtype}: does not compile for it ({type(error).__name__}: {text[:80]})")
    return lines


def _card() -> tuple[str, tuple[int, int], Limits]:
    """This machine's card, its compute capability and limits; an H200 if there is none."""
    from nbody import compute

    if not compute.available():
        return "an H200, for there is no card here", (9, 0), HOPPER
    facts = compute.facts()
    return facts.name, facts.compute_capability, Limits(*compute.multiprocessor_limits())


def _kernel_line(
    thing: Rung | Elementwise, shape: ProductShape, dtype: str, version: tuple[int, int], limits: Limits
) -> str:
    from nbody import compute

    launch = thing.launch(shape, np.dtype(dtype))
    assert isinstance(launch, ProductLaunch)
    used = compute.resources(compute.ptx(launch.kernel, launch.signature(dtype), version), version)
    fits = occupancy(launch.threads, used.registers, used.shared, limits)
    shared = max(0, used.shared - (RESERVED if version >= (8, 0) else 0))
    limit = f"{fits.fraction:.0%} of its threads, limited by {fits.limit}" if fits.fraction < 1 else "all of its threads"
    return (
        f"{counted(launch.threads, 'thread')} per block, {counted(used.registers, 'register')} per thread, "
        f"{shared} bytes of shared memory; {counted(fits.blocks, 'block')} per multiprocessor, {limit}"
    )
