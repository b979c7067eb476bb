"""The facts about one body at one moment, in the scenario's units."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from nbody.viewer.sources.frames import ShownMoment
from nbody.viewer.sources.source import Source

Array = np.ndarray

MOST = 100_000
"""The most bodies for which the potential is summed: so many take 5 ms (an AMD EPYC)."""


@dataclass(frozen=True, eq=False)
class BodyFacts:
    """A body.

    Attributes:
        id: its id.
        species: the name of its species; empty if the run has only one.
        mass: m.
        position, velocity: (D,) float64.
        kinetic_energy: ½ m v².
        units: the symbols of the units of mass, length, velocity, energy and energy per mass, by these names.
        specific_energy: ½ v² + φ, the energy per unit mass, and ``potential`` φ; NaN if not known (some bodies are not
            shown, or the law is not recorded).
    """

    id: int
    species: str
    mass: float
    position: Array
    velocity: Array
    kinetic_energy: float
    specific_energy: float
    potential: float
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def speed(self) -> float:
        """|v|."""
        return float(np.linalg.norm(self.velocity))


def facts(source: Source, moment: ShownMoment, row: int) -> BodyFacts:
    """The facts about the body that is row ``row`` of the moment's arrays."""
    bodies, body = source.catalogue, source.shown.body(row)
    dimensions, symbol = bodies.dimensions, bodies.units.symbol
    position = moment.positions(row)[:dimensions] * source.length_unit
    velocity = moment.velocities(row)[:dimensions] * source.speed_unit
    masses = source.masses(moment.first.number)
    mass, half_square = float(masses[body]), 0.5 * float(velocity @ velocity)
    phi = np.nan
    if bodies.gravity is not None and source.shown.count == bodies.count <= MOST:
        from nbody.forces.reference import direct_sum

        positions = moment.positions()[:, :dimensions] * source.length_unit
        with np.errstate(all="ignore"):  # bodies at infinity
            sums = direct_sum(positions, masses, bodies.gravity, np.array([row]), bodies.softening2)
            phi = float(sums[1][0])
    species = bodies.species_names[int(bodies.species[body])] if len(bodies.species_names) > 1 else ""
    energies = mass * half_square, half_square + phi, phi
    units = {quantity: symbol(quantity) for quantity in ("mass", "length", "velocity", "energy")}
    units["energy per mass"] = f"({units['velocity']})²" if units["velocity"] else ""
    return BodyFacts(int(bodies.id[body]), species, mass, position, velocity, *energies, units)
