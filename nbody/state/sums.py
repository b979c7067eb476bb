"""The sums over all particles that give the energies and momenta, in float64 and in a fixed order.

A NaN or an infinity in any position, velocity, or potential of a body with mass makes a sum non-finite: these eight numbers
show whether the whole state is finite.
"""

import numpy as np

SUMS = 8
"""T = ½ Σ m v²; W = ½ Σ m φ (each pair once); P = Σ m v (3); L = Σ m x × v (3)."""


def system_sums(mass: np.ndarray, position: np.ndarray, velocity: np.ndarray, potential: np.ndarray) -> np.ndarray:
    """The :data:`SUMS` of a state.

    Args:
        mass: (N,).
        position, velocity: (N, D), D 2 or 3.
        potential: (N,) per unit mass, φ_i = -G Σ_{j≠i} m_j u_ij.
    """
    m = mass.astype(np.float64)
    x, v = np.zeros((2, 3, len(m)))
    x[: position.shape[1]] = position.T
    v[: velocity.shape[1]] = velocity.T
    terms = np.empty((SUMS, len(m)))
    terms[0] = 0.5 * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    terms[1] = np.where(m != 0, 0.5 * potential.astype(np.float64), 0.0)  # -∞ in the place of another body
    terms[2:5] = v
    terms[5] = x[1] * v[2] - x[2] * v[1]
    terms[6] = x[2] * v[0] - x[0] * v[2]
    terms[7] = x[0] * v[1] - x[1] * v[0]
    terms *= m  # a massless particle adds nothing, unless one of its numbers is not finite: 0 · NaN is a NaN
    return terms.sum(axis=1)
