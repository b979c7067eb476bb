"""The split sum of :mod:`nbody.forces.matrix.engine` on each processor, a difference of two large sums, and its condition
number."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from nbody.forces.engine import Engine, ForceError, Targets, rounding_bound, typical_error
from nbody.forces.reference import BLOCK_PAIRS, pair_factors
from nbody.law import Gravity
from nbody.linalg.rung import Rung
from nbody.particles import Particles
from nbody.state import Outputs, State


def split_condition(particles: Particles, gravity: Gravity, rows: np.ndarray, rung: Rung) -> np.ndarray:
    """The factor by which the split sum multiplies rounding errors, (T,) for the particles ``rows`` (T,):

        κ_i = Σ_j W_ij (|x_j - c| + |x_i - c|) / |Σ_j W_ij (x_j - x_i)|

    times the ratio of the rung's roundoff to float32's, if that is larger than 1. For N = 20480, 1024 sampled bodies: the
    lecture's disc with a cutoff of 0.01 has a median of 214 and a maximum of 18292 (69984 over all bodies), the softened
    cluster 13 and 247 (634).
    """
    x, mass = np.ascontiguousarray(particles.position.T), particles.mass  # (D, N): long contiguous rows
    centre = x @ mass / max(mass.sum(), np.finfo(float).tiny)
    distance = np.linalg.norm(x - centre[:, None], axis=0)
    condition = np.empty(len(rows))
    step = max(1, BLOCK_PAIRS // len(mass))
    for first in range(0, len(rows), step):
        i = rows[first : first + step]
        d = [axis - axis[i, None] for axis in x]  # each (rows, N): x_j - x_i
        weight = mass * pair_factors(sum(dk * dk for dk in d), gravity, gravity.length2)[0]
        weight[np.arange(len(i)), i] = 0.0
        # (No matrix product here: the threads of NumPy's BLAS would compete with those of the caller.)
        moved = (weight * distance).sum(axis=1) + weight.sum(axis=1) * distance[i]
        force = np.linalg.norm([(weight * dk).sum(axis=1) for dk in d], axis=0)
        condition[first : first + step] = np.divide(moved, force, out=np.ones(len(i)), where=force > 0)
    return condition * max(1.0, rung.roundoff / 2.0**-24)


class SplitSum(Engine):
    """An engine that splits the sum, and multiplies with a rung of the matrix course."""

    _rung: ClassVar[Rung]
    """Set by :func:`nbody.forces.matrix.engine.matrix_engine`."""

    @abstractmethod
    def _multiply(self, state: State, outputs: Outputs) -> None:
        """Fill the accelerations from W·F; or, if ``outputs`` has it, the potential from U·F instead."""

    def _compute(self, state: State, outputs: Outputs) -> None:
        self._multiply(state, Outputs.ACCELERATION)
        if Outputs.ENERGY in outputs:
            self._multiply(state, outputs)

    def _compute_potential(self, state: State, outputs: Outputs) -> None:
        self._multiply(state, outputs)

    def error(self, particles: Particles, targets: Targets = None) -> ForceError:
        """The rounding errors of direct sums, times the condition number."""
        rows = np.arange(particles.count) if targets is None else targets
        condition = split_condition(particles, self.gravity, rows, self._rung)
        bound = rounding_bound(self.precision, particles.count, condition)
        return ForceError(typical_error(self.precision, particles.count), bound)
