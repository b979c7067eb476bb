"""Conserved quantities of a run, the virial ratio and the energy error."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

ALWAYS: dict[str, int] = {
    "kinetic_energy": 1,
    "potential_energy": 1,
    "total_energy": 1,
    "momentum": 3,
    "angular_momentum": 3,
    "virial_ratio": 1,
}
"""The observables that every run records, and how many numbers each has. Units are those of the scenario."""


def observables(sums: np.ndarray) -> dict[str, float | np.ndarray]:
    """The conserved quantities at one moment, in the scenario's units, computed from :mod:`nbody.state.sums`.

    Returns:
        ``kinetic_energy`` T = ½ Σ m v²; ``potential_energy`` W = ½ Σ m φ; ``total_energy`` T + W; ``momentum`` Σ m v
        and ``angular_momentum`` Σ m x × v, (3,) each; ``virial_ratio`` T/|W|. W includes Σ m Φ of external fields, with
        which T/|W| is not 1/2 in equilibrium.
    """
    kinetic, binding = float(sums[0]), float(sums[1])
    return {
        "kinetic_energy": kinetic,
        "potential_energy": binding,
        "total_energy": kinetic + binding,
        "momentum": sums[2:5].copy(),
        "angular_momentum": sums[5:8].copy(),
        "virial_ratio": virial_ratio(kinetic, binding),
    }


def virial_ratio(kinetic: float, potential: float) -> float:
    """T/|W|: 1/2 in equilibrium, 0 for bodies at rest, infinite without a force."""
    return kinetic / abs(potential) if potential else math.inf


def relative_energy_error(energy: float, initial: float) -> float:
    """(E - E₀)/|E₀|; the plain difference where E₀ is zero."""
    return (energy - initial) / (abs(initial) or 1.0)


@dataclass(frozen=True)
class Energies:
    """Total energies of the first and the latest recorded frame (NaN before the first frame), and of the frame with the
    largest error so far."""

    initial: float = math.nan
    latest: float = math.nan
    farthest: float = math.nan

    @classmethod
    def of(cls, energies: np.ndarray) -> Self:
        """Those of frames with these total energies."""
        found = cls()
        for energy in energies:
            found = found.after(float(energy))
        return found

    @property
    def error(self) -> float:
        """(E - E₀)/|E₀|."""
        return relative_energy_error(self.latest, self.initial)

    @property
    def largest_error(self) -> float:
        """The largest (E - E₀)/|E₀| of all frames, with its sign."""
        return relative_energy_error(self.farthest, self.initial)

    def after(self, energy: float) -> Self:
        """A copy to which a frame with this energy is added."""
        initial = energy if math.isnan(self.initial) else self.initial
        nearer = math.isnan(self.farthest) or abs(energy - initial) > abs(self.farthest - initial)
        return replace(self, initial=initial, latest=energy, farthest=energy if nearer else self.farthest)
