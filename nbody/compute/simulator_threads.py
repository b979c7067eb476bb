"""Numba's simulator, one thread of a block at a time.

The simulator runs each CUDA thread as a Python thread and polls all of them, so that it spends most of its time waiting for
the interpreter's lock. Here a CUDA thread is a greenlet, which runs until it waits at a barrier or ends. Then the next one
runs, always in the same order.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from greenlet import getcurrent, greenlet
from numba.cuda.simulator import kernel, kernelapi

BLOCK = "block"
"""The barrier of all running threads of a block."""

current_thread: Callable[[], Any] = getcurrent
"""The CUDA thread that runs now."""


def in_kernel() -> bool:
    """True where a CUDA thread asks, False on the host."""
    return isinstance(getcurrent(), _Thread)


class _Thread(greenlet):
    """A CUDA thread, with the interface of the simulator's ``BlockThread``."""

    syncthreads_count = kernel.BlockThread.syncthreads_count
    syncthreads_and = kernel.BlockThread.syncthreads_and
    syncthreads_or = kernel.BlockThread.syncthreads_or

    def __init__(self, manager: Any, block: tuple[int, ...], place: tuple[int, ...], number: int) -> None:
        super().__init__(manager.turns.work)
        self._manager, self.thread_id = manager, number
        self.blockIdx, self.threadIdx = kernelapi.Dim3(*block), kernelapi.Dim3(*place)

    def wait(self, barrier: Any, count: int) -> None:
        """Wait until ``count`` threads of the block wait at ``barrier``."""
        turns = self._manager.turns
        turns.waiting[barrier].append(self)
        turns.pass_if(barrier, count)
        self.parent.switch()

    def syncthreads(self) -> None:
        """Wait for all threads of the block that have not ended."""
        self.wait(BLOCK, self._manager.turns.live)


class _Turns:
    """The scheduler of a block's threads."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work, self.live = work, 0
        self.ready: deque[_Thread] = deque()
        self.waiting: dict[Any, list[_Thread]] = defaultdict(list)

    def run(self, threads: list[_Thread]) -> None:
        """Run all threads to their end; raise the exception of the first that fails, with a note that names the thread."""
        self.ready, self.live = deque(threads), len(threads)
        try:
            while self.ready:
                thread = self.ready.popleft()
                try:
                    thread.switch()
                except Exception as error:
                    error.add_note(f"in the CUDA thread {list(thread.threadIdx)} of block {list(thread.blockIdx)}")
                    raise
                if thread.dead:
                    self.live -= 1
                    self.pass_if(BLOCK, self.live)
            if self.live:
                barriers = [barrier for barrier, waiting in self.waiting.items() if waiting]
                raise RuntimeError(f"threads wait for others at the barriers {barriers}")
        finally:
            for thread in threads:
                if thread:  # it waits
                    thread.throw()

    def pass_if(self, barrier: Any, count: int) -> None:
        """Release the threads at a barrier if ``count`` threads wait there."""
        if count and len(self.waiting[barrier]) == count:  # 0: the last thread has ended
            self.ready.extend(self.waiting.pop(barrier))


def _run_block(manager: Any, block: tuple[int, ...], *arguments: Any) -> None:
    """Run one block of a kernel: replaces ``BlockManager.run``."""
    x, y, z = (*manager._block_dim, 1, 1)[:3]
    places = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]

    def work() -> None:
        with np.errstate(all="ignore"):  # as on a GPU
            manager._f(*arguments)

    manager.turns = _Turns(work)
    manager.turns.run([_Thread(manager, block, place, number) for number, place in enumerate(places)])


def take_turns() -> None:
    """Make the simulator run its threads in turns."""
    kernel.BlockManager.run = _run_block
    kernelapi.threading = SimpleNamespace(current_thread=current_thread)
