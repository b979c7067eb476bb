"""Facts about an engine's force kernel: its code, its resources, and its occupancy."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from nbody import compute
from nbody.lessons.roofline import slots


def pairs_loop(launch: compute.Launch) -> slots.InstructionCounts | None:
    """The instructions of a kernel's innermost loop; None if the kernel computes no pairs."""
    return _loop(launch.kernel, compute.machine_code)


@cache
def _loop(kernel: Any, machine_code: Any) -> slots.InstructionCounts | None:
    return slots.hottest_loop(slots.disassembled(machine_code(kernel)) or "")


def pairs_launch(seen: Sequence[compute.Launch]) -> compute.Launch | None:
    """The launch of a force evaluation that computes the pairs: the largest whose loop has reciprocal square roots."""
    return max((each for each in seen if pairs_loop(each)), key=lambda each: each.blocks * each.threads, default=None)


def facts_of(launch: compute.Launch) -> dict[str, Any]:
    """The facts of a launch, by their names in :class:`~nbody.bench.row.Row`. Asks the current device."""
    used, resident = launch.resources(), launch.resident()
    warps = resident / compute.facts().multiprocessors * -(-launch.threads // 32)
    return {
        "kernel": launch.kernel.py_func.__name__,
        "registers": used.registers,
        "shared_bytes": used.shared + launch.dynamic_shared,
        "local_bytes": used.local,
        "threads_a_block": launch.threads,
        "blocks": launch.blocks,
        "waves": launch.blocks / resident,
        "occupancy": warps / (compute.threads_per_multiprocessor() / 32),
    }
