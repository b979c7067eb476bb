"""The only door to ``numba.cuda``: is there a device, what can it do, and the intrinsics that kernels share.

Kernel files import :data:`cuda` from here and nothing else of Numba's CUDA target, so that a change of that target is
a change of this room. Importing it costs 0.6 s; commands that need no GPU do not import it.
"""

from nbody.gpu.compiled import (
    Launch,
    Resources,
    assembled,
    launches,
    machine_code,
    ptx,
    replace_machine_code,
    resources,
)
from nbody.gpu.device import (
    FAST,
    SIMULATED,
    Facts,
    available,
    blocks_at_most,
    bounded,
    cuda,
    facts,
    multiprocessor_limits,
    out_of_memory,
    require,
    resident_blocks,
    threads_a_multiprocessor,
    uuid,
    version_in,
    why_unavailable,
)
from nbody.gpu.graph import Graph, milliseconds, times
from nbody.gpu.waiting import is_done, mark, wait_for

if SIMULATED:
    from nbody.gpu.simulated import add, device_function, multiply, multiply_add, row, rsqrt, shuffle, subtract
else:
    from nbody.gpu.intrinsics import add, device_function, multiply, multiply_add, row, rsqrt, shuffle, subtract

__all__ = [
    "FAST",
    "SIMULATED",
    "Facts",
    "Graph",
    "Launch",
    "Resources",
    "add",
    "assembled",
    "available",
    "blocks_at_most",
    "bounded",
    "cuda",
    "device_function",
    "facts",
    "is_done",
    "launches",
    "machine_code",
    "mark",
    "milliseconds",
    "multiply",
    "multiply_add",
    "multiprocessor_limits",
    "out_of_memory",
    "ptx",
    "replace_machine_code",
    "require",
    "resident_blocks",
    "resources",
    "row",
    "rsqrt",
    "shuffle",
    "subtract",
    "threads_a_multiprocessor",
    "times",
    "uuid",
    "version_in",
    "wait_for",
    "why_unavailable",
]
