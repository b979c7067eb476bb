"""What a run conserves, and how a system looks as a whole. All sums are in float64, in a fixed order."""

import numpy as np


def observables(
    mass: np.ndarray, position: np.ndarray, velocity: np.ndarray, potential: np.ndarray
) -> dict[str, float | np.ndarray]:
    """The conserved quantities of one moment, in the scenario's units.

    Args:
        mass: (N,).
        position, velocity: (N, D), D 2 or 3.
        potential: (N,) potential energy per unit mass, φ_i = -G Σ_{j≠i} m_j u_ij.

    Returns:
        ``kinetic_energy`` T = ½ Σ m v²; ``potential_energy`` W = ½ Σ m φ (each pair once); ``total_energy`` T + W;
        ``momentum`` Σ m v and ``angular_momentum`` Σ m x × v, (3,) each; ``virial_ratio`` T/|W|.
    """
    m = mass.astype(np.float64, copy=False)
    x, v = (np.zeros((len(m), 3)) for _ in range(2))
    x[:, : position.shape[1]] = position
    v[:, : velocity.shape[1]] = velocity
    kinetic = 0.5 * float(np.sum(m * np.einsum("ij,ij->i", v, v)))
    binding = 0.5 * float(np.sum(m * potential))
    return {
        "kinetic_energy": kinetic,
        "potential_energy": binding,
        "total_energy": kinetic + binding,
        "momentum": (m[:, None] * v).sum(axis=0),
        "angular_momentum": (m[:, None] * np.cross(x, v)).sum(axis=0),
        "virial_ratio": kinetic / abs(binding) if binding else float("inf"),
    }


def relative_energy_error(energy: float, initial: float) -> float:
    """(E - E₀)/|E₀|; the plain difference where E₀ is zero."""
    return (energy - initial) / (abs(initial) or 1.0)


def lagrangian_radii(mass: np.ndarray, position: np.ndarray, fractions=(0.1, 0.5, 0.9)) -> np.ndarray:
    """The radii around the centre of mass that hold the given fractions of the total mass.

    Args:
        mass: (N,).
        position: (N, D).
        fractions: of the total mass, ascending.
    """
    m = mass.astype(np.float64, copy=False)
    centre = (m[:, None] * position).sum(axis=0) / m.sum()
    radius = np.linalg.norm(position - centre, axis=1)
    order = np.argsort(radius, kind="stable")
    enclosed = np.cumsum(m[order]) / m.sum()
    return radius[order][np.minimum(np.searchsorted(enclosed, fractions), len(m) - 1)]
