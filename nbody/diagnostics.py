"""What a run conserves, and how a system looks as a whole."""

import numpy as np


def observables(sums: np.ndarray) -> dict[str, float | np.ndarray]:
    """The conserved quantities of one moment, in the scenario's units, from its :mod:`nbody.state.sums`.

    Returns:
        ``kinetic_energy`` T = ½ Σ m v²; ``potential_energy`` W = ½ Σ m φ; ``total_energy`` T + W; ``momentum`` Σ m v
        and ``angular_momentum`` Σ m x × v, (3,) each; ``virial_ratio`` T/|W|.
    """
    kinetic, binding = float(sums[0]), float(sums[1])
    return {
        "kinetic_energy": kinetic,
        "potential_energy": binding,
        "total_energy": kinetic + binding,
        "momentum": sums[2:5].copy(),
        "angular_momentum": sums[5:8].copy(),
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
