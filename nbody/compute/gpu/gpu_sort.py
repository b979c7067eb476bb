"""Sorts keys on the GPU.

Keys are sorted by a bitonic network, whose comparisons do not depend on the data, so that a CUDA graph may replay it
(Batcher 1968). Pair t of a distance d (a power of two) is that of the keys i = 2 d (t // d) + t % d and i + d. Distances
below CHUNK are compared in shared memory, the others in one launch each: 21 launches for 32768 keys, 66 for 2²⁰.
"""

from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda

THREADS = 32 if compute.SIMULATED else 512  # a simulated thread takes as long as a step of it
CHUNK = 2 * THREADS
"""Keys per block of the sort: each thread compares one pair at a time."""


def padded(count: int) -> int:
    """The length of an array that holds ``count`` keys and can be sorted: a power of two."""
    return max(CHUNK, 1 << (count - 1).bit_length())


def sort(keys: Any, stream: Any) -> None:
    """Sort keys on the device, (:func:`padded`,) uint64, in ascending order. Launches only."""
    length = len(keys)
    blocks = length // CHUNK
    compare_in_chunks[blocks, THREADS, stream](keys, np.int64(2), np.int64(CHUNK))
    run = 2 * CHUNK
    while run <= length:
        distance = run // 2
        while distance >= CHUNK:
            compare_far[blocks, THREADS, stream](keys, np.int64(run), np.int64(distance))
            distance //= 2
        compare_in_chunks[blocks, THREADS, stream](keys, np.int64(run), np.int64(run))
        run *= 2


@compute.kernel("gpu")
def compare_in_chunks(keys, first, last):
    """Merge runs of ``first`` to ``last`` keys, as far as both keys of a pair are in one chunk."""
    chunk = cuda.shared.array(CHUNK, np.uint64)
    t = cuda.threadIdx.x
    start = cuda.blockIdx.x * CHUNK
    chunk[t], chunk[t + THREADS] = keys[start + t], keys[start + t + THREADS]
    run = first
    while run <= last:
        distance = min(run, CHUNK) // 2
        while distance > 0:
            cuda.syncthreads()
            i = 2 * t - (t & (distance - 1))
            a, b = chunk[i], chunk[i + distance]
            if (a > b) == ((start + i) & run == 0):
                chunk[i], chunk[i + distance] = b, a
            distance //= 2
        run *= 2
    cuda.syncthreads()
    keys[start + t], keys[start + t + THREADS] = chunk[t], chunk[t + THREADS]


@compute.kernel("gpu")
def compare_far(keys, run, distance):
    """Compare keys at one distance within runs that are to be merged."""
    t = cuda.grid(1)
    i = 2 * t - (t & (distance - 1))
    a, b = keys[i], keys[i + distance]
    if (a > b) == (i & run == 0):
        keys[i], keys[i + distance] = b, a
