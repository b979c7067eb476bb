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
        super().__init__(self._work)
        self._manager, self.thread_id, self.turns = manager, number, manager.turns
        self.blockIdx, self.threadIdx = kernelapi.Dim3(*block), kernelapi.Dim3(*place)
        self.exchanges = 0

    def _work(self) -> None:
        try:
            self.turns.work()
        except Exception as error:
            error.add_note(f"in the CUDA thread {list(self.threadIdx)} of block {list(self.blockIdx)}")
            raise
        self.turns.live -= 1
        self.turns.pass_if(BLOCK, self.turns.live)

    def wait(self, barrier: Any, count: int) -> None:
        """Wait until ``count`` threads of the block wait at ``barrier``."""
        turns = self.turns
        waiting = turns.waiting[barrier]
        waiting.append(self)
        if len(waiting) == count:
            turns.pass_if(barrier, count)
        begun = turns.ready and turns.ready[0]  # others begin at the scheduler's depth of calls
        (turns.ready.popleft() if begun else self.parent).switch()

    def syncthreads(self) -> None:
        """Wait for all threads of the block that have not ended."""
        self.wait(BLOCK, self.turns.live)


class _Turns:
    """The scheduler of a block's threads. A thread that waits switches to the next one that is ready.

    Attributes:
        boards: what threads offer to each other in every second exchange, and in the others: so a thread may write the next
            value while others read the last one.
        ballots: the bits of each warp, by the number of the exchange.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self.work, self.live = work, 0
        self.ready: deque[_Thread] = deque()
        self.waiting: dict[Any, list[_Thread]] = defaultdict(list)
        self.boards: tuple[dict[int, Any], dict[int, Any]] = {}, {}
        self.ballots: dict[Any, int] = {}

    def run(self, threads: list[_Thread]) -> None:
        """Run all threads to their end; raise the exception of the first that fails, with a note that names the thread."""
        self.ready, self.live = deque(threads), len(threads)
        try:
            while self.ready:
                self.ready.popleft().switch()
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
    """Make the simulator run its threads in turns, with NumPy's arrays: its own take seven times as long to read."""
    kernel.FakeWithinKernelCUDAArray = lambda array: array._ary
    kernel.BlockManager.run = _run_block
    kernelapi.threading = SimpleNamespace(current_thread=current_thread)
