"""Divides the systems of an ensemble among the cores.

Each core calls the same serial kernel. (Numba's ``prange`` compiles it twice: 18 s instead of 9 for the map.)
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any

from numba import get_num_threads

CHUNKS_PER_CORE = 8
"""Systems need different times; a core that has finished a chunk takes the next one."""


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "systems")


def divided(kernel: Callable, systems: int, *arguments: Any) -> list[Any]:
    """Call ``kernel(first, last, *arguments)``, which is compiled and releases the interpreter, for chunks that make up
    all systems, on as many cores as Numba may use. Returns the results, in order. One core moves a system, so their number
    does not change its bits."""
    cores = get_num_threads()
    chunks = min(systems, CHUNKS_PER_CORE * cores) if cores > 1 else 1
    ends = [systems * k // chunks for k in range(chunks + 1)]
    kernel(ends[0], ends[0], *arguments)  # compiles it, once
    if chunks == 1:
        return [kernel(0, systems, *arguments)]
    jobs = [_threads(cores).submit(kernel, ends[k], ends[k + 1], *arguments) for k in range(chunks)]
    try:
        wait(jobs)
    finally:  # after an interrupt too, no thread writes to the arrays
        wait(jobs)
    return [job.result() for job in jobs]
