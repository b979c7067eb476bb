"""The steps of ``leapfrog_block`` for a state on a GPU. Lengths, kicks and the rows of a block stay there; per block two
numbers return to the host: the tick at which it ends, and how many bodies it has."""

from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.compute.in_kernels.reduction import block_reduction, keep_least
from nbody.integrators.integrator import Motion
from nbody.integrators.schemes.leapfrog_block_steps import END, TICKS, body_steps, half_steps

THREADS = 64 if compute.SIMULATED else 256

BLOCK, COUNT = range(2)
"""Indices of ``found``, int32."""


_begin, _end = body_steps(
    compute.device_function,
    compute.device_function(lambda length: 63 - compute.leading_zeros(np.uint64(length))),
    dimensions=3,
)


_earliest = block_reduction(THREADS, keep_least)


@compute.device_function
def _sums(shared, t, value):
    """The sum of the values of the threads up to this one, and of all."""
    cuda.syncthreads()
    shared[t] = value
    step = 1
    while step < THREADS:
        cuda.syncthreads()
        other = shared[t - step] if t >= step else 0
        cuda.syncthreads()
        shared[t] += other
        step *= 2
    cuda.syncthreads()
    return shared[t], shared[THREADS - 1]


@compute.device_function
def _ends(steps, i, found):
    """1 if the step of body i ends with the block."""
    return 1 if i < steps.shape[0] and steps[min(i, steps.shape[0] - 1), END] == found[BLOCK] else 0


@compute.kernel("gpu")
def begin_steps(velocity, acceleration, steps, found, halves, scale):
    """All bodies choose a step, and are kicked over half of it."""
    i = cuda.grid(1)
    if i == 0:
        found[BLOCK] = TICKS
    if i < steps.shape[0]:
        _begin(velocity, acceleration, steps, i, halves, scale)


@compute.kernel("gpu")
def end_steps(velocity, acceleration, steps, found, halves, scale, rows, now):
    """Kick some bodies over half of the steps that end now; unless dt is over, they begin new ones with a kick."""
    k = cuda.grid(1)
    if k == 0:
        found[BLOCK] = TICKS
    if k < rows.shape[0]:
        _end(velocity, acceleration, steps, rows[k], halves, scale, now)


@compute.kernel("gpu")
def find_block(steps, found):
    """The smallest end."""
    shared = cuda.shared.array(THREADS, np.int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    shared[t] = steps[i, END] if i < steps.shape[0] else TICKS
    _earliest(shared, t)
    if t == 0:
        cuda.atomic.min(found, BLOCK, shared[0])


@compute.kernel("gpu")
def count_rows(steps, found, counts):
    """The bodies of the block among those of each block of threads."""
    shared = cuda.shared.array(THREADS, np.int32)
    t = cuda.threadIdx.x
    _, total = _sums(shared, t, _ends(steps, cuda.grid(1), found))
    if t == 0:
        counts[cuda.blockIdx.x] = total


@compute.kernel("gpu")
def collect_rows(steps, found, counts, rows):
    """The bodies of the block in order, and their number."""
    shared = cuda.shared.array(THREADS, np.int32)
    t, i, before = cuda.threadIdx.x, cuda.grid(1), 0
    for block in range(t, cuda.blockIdx.x, THREADS):
        before += counts[block]
    _, before = _sums(shared, t, before)
    ends = _ends(steps, i, found)
    upto, total = _sums(shared, t, ends)
    if ends:
        rows[before + upto - 1] = i
    if t == 0 and cuda.blockIdx.x == cuda.gridDim.x - 1:
        found[COUNT] = before + total


class DeviceLengths:
    """The lengths of the steps of all bodies on the device, as :class:`.HostLengths`."""

    def __init__(self, motion: Motion, dt: float, eta: float) -> None:
        state: Any = motion.state
        self.state, count = state, state.count
        self._blocks = -(-count // THREADS)
        self._scale = np.float64(2 * eta * float(motion.engine.gravity.length2) ** 0.5 / dt**2)
        with compute.out_of_memory(f"block steps of {count} particles", 12 * count):
            self._steps, self._rows = cuda.device_array((count, 2), np.int32), cuda.device_array(count, np.int32)
            self._counts = cuda.device_array(self._blocks, np.int32)
            self._found = cuda.device_array(2, np.int32)
        self._halves = cuda.to_device(half_steps(dt, state.dtype))
        self._host = cuda.pinned_array(2, np.int32)

    def begin(self) -> None:
        begin_steps[self._blocks, THREADS, self.state.stream](*self._arrays)

    def next_block(self) -> tuple[int, Any]:
        state, grid = self.state, (self._blocks, THREADS, self.state.stream)
        find_block[grid](self._steps, self._found)
        count_rows[grid](self._steps, self._found, self._counts)
        collect_rows[grid](self._steps, self._found, self._counts, self._rows)
        self._found.copy_to_host(self._host, stream=state.stream)
        state.progress.wait(soon=True)
        return int(self._host[BLOCK]), self._rows[: int(self._host[COUNT])]

    def end(self, rows: Any, now: int) -> None:
        blocks = -(-rows.shape[0] // THREADS)
        end_steps[blocks, THREADS, self.state.stream](*self._arrays, rows, np.int32(now))

    @property
    def _arrays(self) -> tuple[Any, ...]:
        state = self.state
        return state.velocity, state.acceleration, self._steps, self._found, self._halves, self._scale
