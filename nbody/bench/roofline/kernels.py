"""What an engine's force kernel is: its code, its resources, and how it fills the card."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nbody import gpu
from nbody.bench.roofline import slots


@dataclass(frozen=True)
class KernelFacts:
    """The kernel that computes the pairs, as it was launched once.

    Attributes:
        kernel: its name.
        launches: kernels that one force evaluation launches, this one among them.
        registers: per thread.
        shared_bytes: shared memory per block, in bytes.
        local_bytes: local memory per thread, in bytes; more than 0 means that registers did not suffice.
        threads_a_block: threads of a block.
        blocks: of the grid.
        waves: blocks over those that the card holds at a time. The last wave may leave part of it idle.
        occupancy: warps that a multiprocessor holds, over the most it can hold.
    """

    kernel: str
    launches: int
    registers: int
    shared_bytes: int
    local_bytes: int
    threads_a_block: int
    blocks: int
    waves: float
    occupancy: float


_LOOPS: dict[Any, slots.Loop | None] = {}
"""What was counted, by compiled kernel."""


def pairs_loop(launch: gpu.Launch) -> slots.Loop | None:
    """What the innermost loop of a kernel issues; None if it computes no pairs."""
    if launch.kernel not in _LOOPS:
        _LOOPS[launch.kernel] = slots.hottest_loop(slots.disassembled(launch.cubin()) or "")
    return _LOOPS[launch.kernel]


def pairs_launch(seen: Sequence[gpu.Launch]) -> gpu.Launch | None:
    """Of the launches of a force evaluation the one that computes the pairs: the largest whose loop has roots."""
    return max((each for each in seen if pairs_loop(each)), key=lambda each: each.blocks * each.threads, default=None)


def facts_of(launch: gpu.Launch, launches: int) -> KernelFacts:
    """The facts of a launch, one of so many. Asks the current device."""
    used, resident = launch.resources(), launch.resident()
    warps = resident / gpu.facts().multiprocessors * -(-launch.threads // 32)
    return KernelFacts(
        kernel=launch.kernel.py_func.__name__,
        launches=launches,
        registers=used.registers,
        shared_bytes=used.shared + launch.dynamic_shared,
        local_bytes=used.local,
        threads_a_block=launch.threads,
        blocks=launch.blocks,
        waves=launch.blocks / resident,
        occupancy=warps / (gpu.threads_a_multiprocessor() / 32),
    )
