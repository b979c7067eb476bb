"""The reads and writes of each thread of a kernel, recorded in Numba's simulator, for the figures of the lessons.

On a card the threads of a warp run in lockstep: the n-th recorded accesses of its 32 threads are one access of the warp,
as long as its threads take the same branches.
"""

import sys
import threading
from collections import defaultdict
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numba.core.types import Type
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
from numba.cuda.simulator.kernelapi import FakeCUDAModule, FakeCUDAShared
from numba.np.numpy_support import as_dtype

from nbody.compute.simulator import functions
from nbody.compute.simulator.threads import current_thread, in_kernel

BARRIER, SHUFFLE = "barrier", "shuffle"
"""Names used instead of an array in an :class:`Access`: a block's barrier, and a shuffle between the lanes of a warp."""


class Access(NamedTuple):
    """One number that a thread reads or writes: the array's name, and the flat index. Arrays in shared memory are
    ``shared0``, ``shared1`` … in the order of the kernel. For a shuffle, ``index`` is the number that arrives."""

    array: str
    write: bool
    index: Any


Trace = dict[tuple[int, int], list[list[Access]]]
"""The accesses of each thread, in order, for each block (x, y)."""


def _numpy_dtype(dtype: Any) -> Any:
    """What NumPy takes for a dtype that Numba takes, such as ``numba.float32``."""
    return as_dtype(dtype) if isinstance(dtype, Type) else dtype


class _Recorded(np.ndarray):
    """An array that records its reads and writes by the simulator's threads."""

    name = ""
    log: Any = None

    def __getitem__(self, index):
        self._note(index, False)
        return super().__getitem__(index)

    def __setitem__(self, index, value):
        self._note(index, True)
        super().__setitem__(index, value)

    @property
    def flat(self):
        """Elements in memory order; reads and writes by a number are recorded."""
        return _Flat(self)

    def _note(self, index, write):
        if self.name and in_kernel():
            whole = index if isinstance(index, tuple) else (index,)
            flat = sum(int(i) * step for i, step in zip(whole, self.strides, strict=True)) // self.itemsize
            self.log(Access(self.name, write, flat))


class _Flat:
    """``array.flat`` of a recorded array."""

    def __init__(self, array: Any) -> None:
        self._array, self._flat = array, np.ndarray.flat.__get__(array)

    def __getitem__(self, index):
        self._array._note(np.unravel_index(index, self._array.shape), False)
        return self._flat[index]

    def __setitem__(self, index, value):
        self._array._note(np.unravel_index(index, self._array.shape), True)
        self._flat[index] = value


def trace(kernel: Any, grid: Any, block: Any, **arguments: Any) -> Trace:
    """Run a kernel in the simulator and return the accesses of its threads.

    Args:
        kernel: the result of ``cuda.jit``.
        grid, block: as in a launch.
        arguments: the kernel's arguments, in order; accesses to NumPy arrays are recorded under the given names, and the
            arrays have the kernel's results afterwards.
    """
    logs: dict = defaultdict(lambda: defaultdict(list))

    def log(access: Access) -> None:
        thread: Any = current_thread()
        logs[thread.blockIdx.x, thread.blockIdx.y][thread.thread_id].append(access)

    def recorded(array: np.ndarray, name: str) -> np.ndarray:
        view = array.view(_Recorded)
        view.name, view.log = name, log
        return view

    exchange, wait, lock = functions._exchange, FakeCUDAModule.syncthreads, threading.Lock()

    def shared_array(self, shape, dtype, alignment=None):
        asking = sys._getframe(1)
        line = asking.f_code.co_filename, asking.f_lineno
        with lock:
            if line not in self._allocations:
                self._allocations[line] = recorded(np.empty(shape, _numpy_dtype(dtype)), f"shared{len(self._allocations)}")
            return self._allocations[line]

    def noted_exchange(value, source):
        found = exchange(value, source)
        log(Access(SHUFFLE, False, found))
        return found

    def noted_wait(self):
        log(Access(BARRIER, False, 0))
        wait(self)

    given = [
        FakeCUDAArray(recorded(value, name)) if isinstance(value, np.ndarray) else value for name, value in arguments.items()
    ]
    with (
        patch.object(FakeCUDAShared, "array", shared_array),
        patch.object(functions, "_exchange", noted_exchange),
        patch.object(FakeCUDAModule, "syncthreads", noted_wait),
    ):
        kernel[grid, block](*given)
    return {block: [threads[t] for t in sorted(threads)] for block, threads in sorted(logs.items())}
