"""Numba's simulator, one thread of a block at a time.

The simulator runs each CUDA thread as a Python thread and polls all of them, so that most of its time goes to waiting for
the interpreter's lock. Here a thread runs until it waits at a barrier, then the next one runs: a kernel takes a sixth
of the CPU time, and its threads always take turns in the same order.
"""

import threading
from collections import defaultdict, deque
from typing import Any

import numpy as np
from numba.cuda.simulator import kernel as simulator

BLOCK = "block"
"""The barrier of all threads of a block that have not ended."""


class _Ended(BaseException):
    """Ends a thread whose block has failed."""


class _Thread(simulator.BlockThread):
    """A CUDA thread that runs when it is its turn."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.turn = threading.Lock()
        self.turn.acquire()

    def run(self) -> None:
        try:
            super().run()
        except _Ended:
            return
        self._manager.turns.end(self)

    def resume(self) -> None:
        """Let this thread run, from its start or from the barrier where it waits."""
        if self.ident is None:
            self.start()
        else:
            self.turn.release()

    def wait(self, barrier: Any, count: int) -> None:
        """Wait until ``count`` threads of the block wait at ``barrier``."""
        self._manager.turns.wait(self, barrier, count)

    def syncthreads(self) -> None:
        turns = self._manager.turns
        turns.wait(self, BLOCK, turns.live)


class _Turns:
    """Which thread of a block runs next."""

    def __init__(self, threads: list[_Thread]) -> None:
        self.threads, self.ready, self.live = threads, deque(threads), len(threads)
        self.waiting: dict[Any, list[_Thread]] = defaultdict(list)
        self.failure: BaseException | None = None
        self.done = threading.Event()

    def run(self) -> None:
        """Run all threads to their end; raise what one of them raised."""
        self.next()
        self.done.wait()
        started = [thread for thread in self.threads if thread.ident is not None]
        if self.failure:
            for thread in started:
                thread.turn.release()
        for thread in started:
            thread.join()
        if self.failure:
            raise self.failure

    def next(self) -> None:
        """Resume the next thread that waits for nothing but its turn."""
        if self.ready and not self.failure:
            self.ready.popleft().resume()
        else:
            if self.live and not self.failure:
                self.failure = RuntimeError(f"threads wait for others at the barriers {list(self.waiting)}")
            self.done.set()

    def pass_if(self, barrier: Any, count: int) -> None:
        """Let the threads at a barrier go on if they are as many as it waits for."""
        if len(self.waiting[barrier]) == count:
            self.ready.extend(self.waiting.pop(barrier))

    def wait(self, thread: _Thread, barrier: Any, count: int) -> None:
        self.waiting[barrier].append(thread)
        self.pass_if(barrier, count)
        if self.ready and self.ready[0] is thread:
            self.ready.popleft()
            return
        self.next()
        thread.turn.acquire()
        if self.failure:
            raise _Ended

    def end(self, thread: _Thread) -> None:
        self.live -= 1
        if thread.exception:
            kind, trace = thread.exception
            self.failure = kind.with_traceback(trace)
        elif self.live and BLOCK in self.waiting:
            self.pass_if(BLOCK, self.live)
        self.next()


def _run_block(manager: Any, block: tuple[int, ...], *arguments: Any) -> None:
    """Run one block of a kernel: takes the place of ``BlockManager.run``."""

    def work() -> None:
        manager._f(*arguments)

    places = np.ndindex(*manager._block_dim)
    manager.turns = _Turns([_Thread(work, manager, block, place, manager._debug) for place in places])
    manager.turns.run()


def take_turns() -> None:
    """Make the simulator run its threads in turns."""
    simulator.BlockManager.run = _run_block
