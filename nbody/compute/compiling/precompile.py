"""Kernels that are compiled before they are called: several at a time, in processes that fill the cache on disk.

A kernel is compiled when it is called first, so kernels would be compiled one after the other. Here a force evaluation is
rehearsed: its kernels are not run but noted, with the types of their arguments. Those that are not cached are compiled by
this process and by workers (:mod:`nbody.compute.compiling.precompile_worker`), each of which takes the next one when it
has finished one; the largest come first. Which process compiles a kernel does not change its bits.

One missing kernel, or a folder that can't be written, is no reason to start a process. On the first run of a machine the
workers start early (:func:`workers_ahead`): they import Numba while this process does, and makes the bodies.
"""

import contextlib
import pickle
import subprocess
from collections.abc import Callable, Iterable, Iterator
from queue import Queue
from threading import Thread, local
from typing import Any, NamedTuple

from nbody import child, machine
from nbody.compute.compiling import cache
from nbody.compute.compiling.announce import compiling
from nbody.compute.gpu.driver import SIMULATED

MOST = 6
"""Processes. Each takes 0.15 GB of memory. With more, a first run would be slower: the
largest kernel bounds it, and compiles at half the speed where two processes share a core. GPU tree, a million bodies, one
machine with an H100 and 16 hardware threads: 13.4 s with 6 processes, 13.2 and 15.1 s with 8, 15.9 to 16.4 s with 16."""

PLAIN = {"NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "1"}
"""The environment of a worker: coloured messages, which Numba makes and drops while it tries types, take a fifth of the time
where the package colorama is installed."""

TIMEOUT, IDLE = 120.0, 60
"""Seconds that a worker gets for its last kernel, when this process has none left, and that it waits for its first."""


class Call(NamedTuple):
    """A kernel, and the types of its arguments."""

    kernel: Any
    types: tuple

    @classmethod
    def of(cls, kernel: Any, arguments: tuple) -> "Call":
        """A call with these arguments. (In the simulator arguments have no types.)"""
        return cls(kernel, tuple(map(kernel.typeof_pyval, arguments)) if hasattr(kernel, "typeof_pyval") else ())


class _Noting(local):
    calls: list[Call] | None = None


_noting = _Noting()


def rehearsing() -> bool:
    """True in a rehearsal."""
    return _noting.calls is not None


def note(kernel: Any, arguments: tuple) -> bool:
    """In a rehearsal: note a call of a kernel, which is not to be made, and return True."""
    if _noting.calls is not None:
        _noting.calls.append(Call.of(kernel, arguments))
    return _noting.calls is not None


@contextlib.contextmanager
def rehearsal() -> Iterator[list[Call]]:
    """Inside this ``with`` block kernels are not run but noted in the list (on the CPU those that are not compiled yet). One
    rehearsal within another adds to its list."""
    outer = _noting.calls
    _noting.calls = calls = list[Call]() if outer is None else outer
    try:
        yield calls
    finally:
        _noting.calls = outer


def compile_together(work: Callable[[], object]) -> None:
    """Compile the kernels that ``work()`` calls and that are not cached, or leave them to the calls. ``work`` is rehearsed:
    it must not depend on what its kernels compute."""
    with rehearsal() as calls, contextlib.suppress(Exception):  # it will be raised again
        work()
    compile_missing(calls)


def compile_missing(calls: Iterable[Call]) -> None:
    """Compile the kernels of some calls that are not cached. Within a rehearsal they are only noted."""
    if _noting.calls is not None:
        _noting.calls += calls
        return
    missing: dict[str, Call] = {}
    for each in calls:
        stored = getattr(each.kernel, "_cache", None)  # None in the simulator
        if stored is not None and each.types not in each.kernel.overloads:
            name = stored.name(each.types)
            if name and not cache.exists(name):
                missing[name] = each
    processes = min(len(missing), machine.cores(), MOST)
    ready = [worker for worker in _take_ahead() if worker.poll() is None]
    try:
        if processes > 1 and cache.is_writable():
            with compiling(cache.kernels(), f"{len(missing)} kernels for this machine, {processes} at a time"):
                _compile(missing, ready, processes - 1)
    finally:
        _end(ready)


def _compile(missing: dict[str, Call], workers: list["subprocess.Popen[bytes]"], count: int) -> None:
    """Compile the missing kernels in this process and in ``count`` workers, which are started if they do not run yet."""
    first, *others = sorted(missing.items(), key=lambda item: item[1].kernel._cache.size, reverse=True)
    if workers:
        own, others = [], [first, *others]  # they compile at once
    else:
        own = [first[1]]  # a new worker would first import Numba
    workers += [_start() for _ in range(count - len(workers))]
    queue = Queue[tuple[bytes, Call] | None]()
    threads = [Thread(target=_feed, args=(worker, queue), daemon=True) for worker in workers[:count]]
    for thread in threads:
        thread.start()
    for name, each in others:  # while the workers start
        queue.put((each.kernel._cache.job(name, each.types), each))
    for _ in range(count + 1):
        queue.put(None)
    for each in own:
        each.kernel.compile(each.types)
    while (job := queue.get()) is not None:
        job[1].kernel.compile(job[1].types)
    for thread in threads:
        thread.join(TIMEOUT)


# --- Workers ---


@contextlib.contextmanager
def workers_ahead(module: str) -> Iterator[None]:
    """On the first run of a machine, when no kernel is cached: start workers, which import a module and what compiling
    needs, and await the next :func:`compile_missing`. They end if the ``with`` block fails, with this process, or after
    :data:`IDLE` seconds without a kernel."""
    if not SIMULATED and not _ahead and cache.is_empty("kernels") and cache.is_writable():
        _ahead.extend(_start(module) for _ in range(min(machine.cores(), MOST) - 1))
    try:
        yield
    except BaseException:
        _end(_take_ahead())
        raise


_ahead: list["subprocess.Popen[bytes]"] = []
"""The workers that no call of :func:`compile_missing` has taken yet."""


def _take_ahead() -> list["subprocess.Popen[bytes]"]:
    taken = _ahead[:]
    _ahead.clear()
    return taken


def _start(*modules: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        **child.python("-m", "nbody.compute.compiling.precompile_worker", *modules, **PLAIN),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _end(workers: Iterable["subprocess.Popen[bytes]"]) -> None:
    for worker in workers:
        worker.kill()
        with contextlib.suppress(OSError), worker:  # waits, and closes its pipes
            pass


def _feed(worker: "subprocess.Popen[bytes]", queue: "Queue[tuple[bytes, Call] | None]") -> None:
    """Give jobs to a worker until there are none. What it fails to compile is compiled when it is called."""
    to, back = worker.stdin, worker.stdout
    assert to is not None and back is not None
    with contextlib.suppress(OSError), to, back:
        while back.read(1) and (job := queue.get()) is not None:  # it has started, or finished a job
            pickle.dump(job[0], to)
            to.flush()
