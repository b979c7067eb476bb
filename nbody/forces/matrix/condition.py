"""The condition number of the split sum of :mod:`nbody.forces.matrix.engine`, a difference of two large sums."""

import numpy as np

from nbody.forces.engine import Engine, ForceError, Targets, rounding_bound, typical_error
from nbody.forces.reference import BLOCK_PAIRS, pair_factors
from nbody.law import Gravity
from nbody.linalg.rung import Rung
from nbody.particles import Particles


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


def split_error(engine: Engine, particles: Particles, targets: Targets, rung: Rung) -> ForceError:
    """The error of an engine that splits the sum: the rounding errors of direct sums, times the condition number."""
    rows = np.arange(particles.count) if targets is None else targets
    condition = split_condition(particles, engine.gravity, rows, rung)
    bound = rounding_bound(engine.precision, particles.count, condition)
    return ForceError(typical_error(engine.precision, particles.count), bound)
