"""Numba's simulator, one thread of a block at a time.

The simulator runs each CUDA thread as a Python thread and polls all of them, so that it spends most of its time waiting for
the interpreter's lock. Here a thread runs until it waits at a barrier or ends, then the next one runs, always in the same
order: a kernel takes about a tenth of the CPU time. CUDA threads that never wait share one Python thread, and Python threads
are reused for the next block.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from numba.cuda.simulator import kernel, kernelapi

BLOCK = "block"
"""The barrier of all running threads of a block."""

_current: Any = None
_idle: list["_Worker"] = []


def current_thread() -> Any:
    """The CUDA thread that runs now."""
    return _current


def in_kernel() -> bool:
    """True where a CUDA thread asks, False on the host."""
    return isinstance(threading.current_thread(), _Worker)


class _Ended(BaseException):
    """Ends a thread whose block has failed."""


class _Worker(threading.Thread):
    """A Python thread that runs CUDA threads, each to its end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.turn = threading.Lock()
        self.turn.acquire()
        self.thread: _Thread | None = None
        self.start()

    def run(self) -> None:
        while True:
            self.turn.acquire()
            thread = self.thread
            while thread:
                thread = thread.run()


class _Thread:
    """A CUDA thread, with the interface of the simulator's ``BlockThread``, and the Python thread that runs it."""

    syncthreads_count = kernel.BlockThread.syncthreads_count
    syncthreads_and = kernel.BlockThread.syncthreads_and
    syncthreads_or = kernel.BlockThread.syncthreads_or

    def __init__(self, manager: Any, block: tuple[int, ...], place: tuple[int, ...], number: int) -> None:
        self._manager, self.thread_id = manager, number
        self.blockIdx, self.threadIdx = kernelapi.Dim3(*block), kernelapi.Dim3(*place)
        self.worker: _Worker | None = None

    def run(self) -> "_Thread | None":
        """Run to the end; return the thread that the same worker runs next."""
        global _current
        block, error = self._manager.turns, None
        _current = self
        try:
            block.work()
        except _Ended:
            pass
        except BaseException as raised:
            where = f"tid={list(self.threadIdx)} ctaid={list(self.blockIdx)}"
            error = type(raised)(f"{where}: {raised}" if str(raised) else where).with_traceback(raised.__traceback__)
        return block.end(self, error)

    def resume(self) -> None:
        """Let this thread run, from its start or from the barrier where it waits."""
        if self.worker is None:
            self.worker = _idle.pop() if _idle else _Worker()
            self.worker.thread = self
        self.worker.turn.release()

    def wait(self, barrier: Any, count: int) -> None:
        """Wait until ``count`` threads of the block wait at ``barrier``."""
        self._manager.turns.wait(self, barrier, count)

    def syncthreads(self) -> None:
        self.wait(BLOCK, self._manager.turns.live)


class _Turns:
    """The scheduler of a block's threads."""

    def __init__(self, work: Callable[[], None], threads: list[_Thread]) -> None:
        self.work, self.ready, self.live = work, deque(threads), len(threads)
        self.waiting: dict[Any, list[_Thread]] = defaultdict(list)
        self.failure: BaseException | None = None
        self.done = threading.Lock()

    def run(self) -> None:
        """Run all threads to their end; raise the exception of the first that failed."""
        self.done.acquire()
        self.ready.popleft().resume()
        try:
            self.done.acquire()
        except BaseException:  # Control-C: no other kernel may start before this block has ended
            self.done.acquire()
            raise
        if self.failure:
            raise self.failure

    def wait(self, thread: _Thread, barrier: Any, count: int) -> None:
        global _current
        self.waiting[barrier].append(thread)
        self.pass_if(barrier, count)
        following = self.next()
        if following is not thread:
            worker = thread.worker
            following.resume()
            worker.turn.acquire()  # type: ignore[union-attr]
        if self.failure:
            raise _Ended
        _current = thread

    def pass_if(self, barrier: Any, count: int) -> None:
        """Release the threads at a barrier if ``count`` threads wait there."""
        if len(self.waiting[barrier]) == count:
            self.ready.extend(self.waiting.pop(barrier))

    def next(self) -> _Thread:
        """The next thread that is ready to run."""
        if not self.ready:
            self.fail(RuntimeError(f"threads wait for others at the barriers {list(self.waiting)}"))
        return self.ready.popleft()

    def fail(self, error: BaseException) -> None:
        """End the threads that have started, and start no more."""
        self.failure = error
        begun = [thread for thread in self.ready if thread.worker]
        self.ready = deque(begun + [thread for barrier in self.waiting.values() for thread in barrier])
        self.live = len(self.ready)
        self.waiting.clear()

    def end(self, thread: _Thread, error: BaseException | None) -> _Thread | None:
        """Remove a thread that has ended; return the thread that its worker runs next, if that has not started."""
        self.live -= 1
        if error and not self.failure:
            self.fail(error)
        elif self.live and BLOCK in self.waiting:
            self.pass_if(BLOCK, self.live)
        worker = thread.worker
        following = self.next() if self.live else None
        if following and not following.worker:
            following.worker = worker
            return following
        _idle.append(worker)  # type: ignore[arg-type]
        if following:
            following.resume()
        else:
            self.done.release()
        return None


def _run_block(manager: Any, block: tuple[int, ...], *arguments: Any) -> None:
    """Run one block of a kernel: replaces ``BlockManager.run``."""
    x, y, z = (*manager._block_dim, 1, 1)[:3]
    places = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    threads = [_Thread(manager, block, place, number) for number, place in enumerate(places)]
    manager.turns = _Turns(lambda: manager._f(*arguments), threads)
    manager.turns.run()


def take_turns() -> None:
    """Make the simulator run its threads in turns."""
    kernel.BlockManager.run = _run_block
    kernelapi.threading = SimpleNamespace(current_thread=current_thread)
