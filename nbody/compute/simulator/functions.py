"""The intrinsics and shuffles for Numba's simulator, which runs kernels on the CPU as Python code."""

import math
import sys
from typing import Any

import numpy as np
from numba.cuda.simulator.api import Event
from numba.cuda.simulator.kernelapi import FakeCUDAShared

from nbody.compute.simulator.threads import BLOCK, current_thread


def _shared_array(self, shape, dtype, alignment=None):
    """One array for each line of a kernel that creates one. (The simulator's own function refuses an alignment, and
    sometimes gives two threads different arrays.)"""
    asking = sys._getframe(1)
    place = asking.f_code.co_filename, asking.f_lineno
    return self._allocations.setdefault(place, np.empty(shape, dtype))


FakeCUDAShared.array = _shared_array


def _exchange(value, source):
    """The value of lane ``source`` of this thread's warp. All threads of the block must take part."""
    thread: Any = current_thread()
    number, turns = thread.thread_id, thread.turns
    thread.exchanges += 1
    board = turns.boards[thread.exchanges % 2]
    board[number] = value
    thread.wait(BLOCK, turns.live)
    return board[number - number % 32 + source]


# The simulator completes all work at once.
Event.__init__ = lambda self, timing=True: None
Event.query = lambda self: True


def device_function(function):
    """The function itself: in the simulator kernels call Python functions."""
    return function


exact_function = device_function


def shuffle(value, lane):
    """The value of another lane of the warp. All threads of the warp must call it."""
    return _exchange(value, lane % 32)


def ballot(predicate):
    """A bit for each lane of the warp, 1 where ``predicate`` is true. All threads of the block must call it."""
    thread: Any = current_thread()
    x = thread.threadIdx.x
    thread.exchanges += 1
    warp, bits = (thread.exchanges, x // 32, thread.threadIdx.y), thread.turns.ballots
    bits[warp] = bits.get(warp, 0) | bool(predicate) << x % 32
    thread.syncthreads()
    return bits[warp]


def sync_threads():
    """Wait for all threads of the block."""
    current_thread().syncthreads()


sync_warp = sync_threads  # of a block of one warp


def lane():
    """The number of this thread in its warp."""
    return current_thread().thread_id % 32


def count_ones(x):
    """The number of bits that are 1."""
    return int(x).bit_count()


def leading_zeros(x):
    """The number of zero bits before the first 1 of a 64-bit number."""
    return 64 - int(x).bit_length()


float32 = np.float32


def rsqrt(x):
    """1/√x in the precision of ``x``; infinity at 0, as in float32 on the hardware. (In float64 the hardware gives NaN.)"""
    real = float32 if type(x) is float32 else np.float64  # (half of the simulator's time: no look-up in NumPy)
    return real(1.0 / math.sqrt(x)) if x > 0 else real(math.inf)


def row(array, i):
    """Row i of an (N, 4) array as four numbers."""
    return array[i, 0], array[i, 1], array[i, 2], array[i, 3]


def set_row(array, i, a, b, c, d):
    """Set row i of an (N, 4) array."""
    array[i, 0], array[i, 1], array[i, 2], array[i, 3] = a, b, c, d


def add(a, b):
    """a + b."""
    return a + b


def subtract(a, b):
    """a - b."""
    return a - b


def multiply(a, b):
    """a · b."""
    return a * b


def multiply_add(a, b, c):
    """a · b + c."""
    return a * b + c


def is_nan(x):
    """True for a NaN."""
    return x != x
