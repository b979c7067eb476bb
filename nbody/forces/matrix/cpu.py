"""The force matrix on the CPU: Numba writes a block of its rows, NumPy's BLAS multiplies it.

The formulas are in :mod:`nbody.forces.matrix.engine`. The rows are written on one core, since the threads of Numba and of
BLAS wait for each other in busy loops: two cores wrote 0.14e9 numbers of W per second in float32 (Zen 4, other programs
running), and one core 3.0e9.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.forces.engine import Identity, Memory
from nbody.forces.matrix import blas
from nbody.forces.matrix.condition import SplitSum
from nbody.forces.problem import Problem
from nbody.forces.resources import block_rows
from nbody.law import inverse_root, pair_law, potential_factor
from nbody.linalg.rung import ProductShape
from nbody.particles import Particles
from nbody.state import Outputs, State
from nbody.state.host import HostState

BUDGET = 64 << 20
"""Bytes per block of W."""

EXACT: dict[str, Any] = {"fastmath": {"contract", "nsz"}}
"""Multiply-adds are contracted; 1/√x is computed with the square root and the division, correctly rounded."""


@cache
def block_writer(softening: str, dimensions: int, real: Any, potential: bool) -> Callable:
    """The compiled function ``write_block(x, y, z, mass, block, first, length2)``, which writes rows ``first`` … of W,
    or of U if ``potential``."""
    zero, rsqrt = real(0), inner(**EXACT)(inverse_root)
    law = pair_law(softening, dimensions, rsqrt, inner(forceinline=True, **EXACT))
    factor = inner(forceinline=True, **EXACT)(potential_factor)

    @compute.kernel("cpu", **EXACT)
    def write_block(x, y, z, mass, block, first, length2):
        for r in range(len(block)):
            i = first + r
            xi, yi, zi, row = x[i], y[i], z[i], block[r]
            for j in range(len(row)):
                f, u = law(x[j] - xi, y[j] - yi, z[j] - zi, length2)
                row[j] = mass[j] * (factor(u, mass[j]) if potential else f)
            row[i] = zero

    return write_block


def factor_of(position: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """F (N, 4) = [x - c | 1] in the positions' dtype, c the centre of mass; z is 0 in 2-D."""
    origin = position[0].astype(np.float64)
    relative, total = position - origin, float(mass.sum(dtype=np.float64))
    centre = (mass / total) @ relative if total > 0 else 0.0
    factor = np.zeros((len(mass), 4), position.dtype)
    factor[:, : position.shape[1]] = relative - centre
    factor[:, 3] = 1
    return factor


class HostOperands(NamedTuple):
    """A block of W (rows, N), and the product (N, 4): the workspace of a state."""

    block: np.ndarray
    product: np.ndarray


class CpuMatrixEngine(SplitSum):
    """The force matrix in blocks of rows, multiplied by a rung that runs on the CPU: NumPy's BLAS by default."""

    state_type = HostState

    def _prepare(self, state: State, particles: Particles) -> None:
        count, rows = state.count, self._rows(state.count, self._dtype.itemsize)
        state.workspace = HostOperands(np.empty((rows, count), self._dtype), np.empty((count, 4), self._dtype))

    def _multiply(self, state: State, outputs: Outputs) -> None:
        assert isinstance(state, HostState)
        real: Any = self._dtype.type
        (block, product), dimensions, potential = state.workspace, state.dimensions, Outputs.ENERGY in outputs
        write_block = block_writer(self.gravity.softening, dimensions, real, potential)
        factor, G = factor_of(state.position, state.mass), real(self.gravity.G)
        x = np.zeros((3, state.count), self._dtype)  # component after component: contiguous for the vector loop
        x[:dimensions] = state.position.T
        for first in range(0, state.count, len(block)):
            rows = block[: state.count - first]
            write_block(*x, state.mass, rows, first, real(self.gravity.length2))
            multiply: Any = self._rung.launch(ProductShape(len(rows), 4, state.count), self._dtype)
            multiply(rows, factor, product[first : first + len(rows)])
            state.progress.report(len(rows) * state.count)
        if potential:
            state.potential[...] = -G * product[:, 3]
        else:
            state.acceleration[...] = G * (product[:, :dimensions] - factor[:, :dimensions] * product[:, 3:])

    def identity(self, state: State | None = None) -> Identity:
        library = f"{blas.name()}, threads: {blas.threads()}"
        return super().identity(state)._replace(bits={"blas": library})

    @classmethod
    def memory(cls, problem: Problem) -> Memory:
        # A block of W, and the operands of the product.
        count, itemsize = problem.particles, np.dtype(problem.precision).itemsize
        numbers = count * (4 + 4 + 3 + 3 * 4) + cls._rows(count, itemsize) * count
        return Memory(super().memory(problem).own + numbers * itemsize)

    @classmethod
    def _rows(cls, count: int, itemsize: int) -> int:
        return block_rows(count, count * itemsize, BUDGET, cls._rung.largest)
