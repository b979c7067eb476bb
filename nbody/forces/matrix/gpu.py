"""The force matrix on a GPU: one kernel writes a block of its rows, a rung of the ladder multiplies it.

The formulas are in :mod:`nbody.forces.matrix.engine`. A force evaluation consists of these launches on one stream:

    write_factor body (N, 4) ─► factor (K, 4) = [x - c | 1]       c: the centre of mass
    write_block  body ─► block (rows, K) of W                     ┐ for each
    the rung     block · factor ─► product (rows, 4)              ┘ block of rows
    combine      a_i = G (product_i,0..2 - (x_i - c) product_i,3)

K is N rounded up to a multiple of four, with zeros in the columns beyond N: every row of W then begins at a multiple of
16 bytes, which the 128-bit loads of the rungs need.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.compute.in_kernels.reduction import add_row, block_reduction
from nbody.forces.engine import Memory
from nbody.forces.gpu_engine import KernelEngine, Shape
from nbody.forces.matrix.condition import SplitSum
from nbody.forces.problem import Problem
from nbody.forces.resources import block_rows
from nbody.linalg.rung import ProductLaunch, ProductShape
from nbody.particles import Particles
from nbody.state import Outputs, State
from nbody.state.device import DeviceState

THREADS = 256
ROWS = 16
"""Rows of W per thread, which reads the acting body once for all of them. (4, 8, 16 rows: 1.50, 1.37, 1.30 ms per force
evaluation of 20480 bodies on an H200, float32, 3-D, Plummer softening.)"""

BUDGET = 512 << 20
"""Bytes per block of W. A block that fits the L2 cache is slower, since the skinny product then has too few rows to reuse
the factor: 48 MB 1.93 ms, 128 MB 1.44, 512 MB 1.30, 1 GB 1.22; for N = 65536 and 8 rows per thread 28 ms with 64 MB, 13.4
with 512 MB, 12.6 with 4 GB (H200, as above)."""


@cache
def build_write_factor(real: type) -> Any:
    """The kernel that fills the factor, for a NumPy scalar type: one block of threads, which sum the centre of mass in
    shared memory. (The centre need not be accurate, only the same each time.)"""
    reduce = block_reduction(THREADS, add_row)

    @compute.kernel("gpu", **compute.FAST)
    def write_factor(body, factor):
        partial = cuda.shared.array((THREADS, 4), real)
        n, t = body.shape[0], cuda.threadIdx.x
        for k in range(4):
            partial[t, k] = real(0)
        for j in range(t, n, THREADS):
            partial[t, 3] += body[j, 3]
        reduce(partial, t)
        mass = partial[0, 3] if partial[0, 3] > real(0) else real(1)
        cuda.syncthreads()
        for j in range(t, n, THREADS):
            weight = body[j, 3] / mass  # the ratio first: m x overflows float32 in kilograms and metres
            for k in range(3):
                partial[t, k] += weight * (body[j, k] - body[0, k])
        reduce(partial, t)
        for j in range(t, factor.shape[0], THREADS):
            for k in range(3):
                factor[j, k] = body[j, k] - body[0, k] - partial[0, k] if j < n else real(0)
            factor[j, 3] = real(1) if j < n else real(0)

    return write_factor


@cache
def build_write_block(shape: Shape) -> Any:
    """The kernel that writes rows ``first`` … of W, or of U for the potential."""
    law, potential_factor, real, potential = shape.law, shape.potential_factor, shape.real, shape.potential

    @compute.kernel("gpu", **compute.FAST)
    def write_block(body, block, first, length2):
        j = cuda.grid(1)
        n = body.shape[0]
        if j >= block.shape[1]:
            return
        x, y, z, m = compute.row(body, min(j, n - 1))
        top = cuda.blockIdx.y * ROWS
        for r in range(top, min(top + ROWS, block.shape[0])):
            i = first + r
            xi, yi, zi, _ = compute.row(body, i)
            f, u = law(x - xi, y - yi, z - zi, length2)
            weight = (potential_factor(u, m) if potential else f) * m
            block[r, j] = weight if j != i and j < n else real(0)

    return write_block


@cache
def build_combine(shape: Shape) -> Any:
    """The kernel that computes accelerations, or potentials, from the product."""
    potential = shape.potential

    @compute.kernel("gpu", **compute.FAST)
    def combine(factor, product, acceleration, G):
        i = cuda.grid(1)
        if i < acceleration.shape[0]:
            if potential:
                acceleration[i, 3] = -(G * product[i, 3])
            else:
                for k in range(3):
                    acceleration[i, k] = G * (product[i, k] - factor[i, k] * product[i, 3])

    return combine


class MatrixBlock(NamedTuple):
    """Rows of W from row ``first`` on, the same rows of the product, and the launch that multiplies them."""

    first: Any
    rows: Any
    product: Any
    multiply: ProductLaunch


class DeviceOperands(NamedTuple):
    """The factor F (K, 4), the whole product (N, 4), and the blocks of W: the workspace of a state."""

    factor: Any
    product: Any
    blocks: list[MatrixBlock]


class GpuMatrixEngine(SplitSum, KernelEngine):
    """The force matrix in blocks of rows, multiplied by a rung of the matrix course."""

    _build = staticmethod(build_write_block)

    def _prepare(self, state: State, particles: Particles) -> None:
        # Allocates a block of W, the factor and the product.
        super()._prepare(state, particles)
        count, columns, rows = state.count, _columns(state.count), self._rows(state.count, self._dtype.itemsize)
        with compute.out_of_memory(f"the force matrix of {count} particles", _bytes(count, columns, rows, self._dtype)):
            factor = cuda.device_array((columns, 4), self._dtype)
            result = cuda.device_array((count, 4), self._dtype)
            block = cuda.device_array((rows, columns), self._dtype)
        blocks = []
        for first in range(0, count, rows):
            held = min(rows, count - first)
            multiply = self._rung.launch(ProductShape(held, 4, columns), self._dtype)
            assert isinstance(multiply, ProductLaunch)
            blocks.append(MatrixBlock(np.int64(first), block[:held], result[first : first + held], multiply))
        state.workspace = DeviceOperands(factor, result, blocks)

    def _multiply(self, state: State, outputs: Outputs) -> None:
        KernelEngine._compute(self, state, outputs)

    def _kernel(self, outputs: Outputs, state: DeviceState) -> Any:
        """The kernels :func:`build_write_factor`, :func:`build_write_block` and :func:`build_combine`."""
        shape = self._shape(outputs)
        return build_write_factor(shape.real), self._build(shape), build_combine(shape)

    def _launch(self, kernel: Any, state: DeviceState, G: Any, length2: Any) -> None:
        write_factor, write_block, combine = kernel
        factor, result, blocks = state.workspace
        write_factor[1, THREADS, state.stream](state.body, factor)
        for first, rows, product, multiply in blocks:
            grid = -(-rows.shape[1] // THREADS), -(-rows.shape[0] // ROWS)
            write_block[grid, THREADS, state.stream](state.body, rows, first, length2)
            multiply(rows, factor, product, state.stream)
            state.progress.report(len(rows) * state.count)
        combine[-(-state.count // THREADS), THREADS, state.stream](factor, result, state.acceleration, G)

    @classmethod
    def memory(cls, problem: Problem) -> Memory:
        # A block of W, the factor and the product.
        count, dtype = problem.particles, np.dtype(problem.precision)
        rows = cls._rows(count, dtype.itemsize)
        return Memory(super().memory(problem).own + _bytes(count, _columns(count), rows, dtype))

    @classmethod
    def _rows(cls, count: int, itemsize: int) -> int:
        return block_rows(count, _columns(count) * itemsize, BUDGET, cls._rung.largest)


def _columns(count: int) -> int:
    """N rounded up to a multiple of four."""
    return -(-count // 4) * 4


def _bytes(count: int, columns: int, rows: int, dtype: np.dtype) -> int:
    return (rows * columns + 4 * columns + 4 * count) * dtype.itemsize
