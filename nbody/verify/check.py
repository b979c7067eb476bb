"""One comparison with a published answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nbody.diagnostics.energy import Energies
from nbody.particles import Particles
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario

Group = Mapping[str, object]
"""Keys of a scenario."""


@dataclass(frozen=True)
class Check:
    """A number, and what it should be.

    Attributes:
        what: the quantity.
        expected, got: its values.
        tolerance: the largest difference that passes.
        source: who published the answer, or what it follows from.
    """

    what: str
    expected: float
    got: float
    tolerance: float
    source: str

    @property
    def passed(self) -> bool:
        """True if the difference is within the tolerance. (Never for a NaN.)"""
        return bool(abs(self.got - self.expected) <= self.tolerance)


class FinishedRun(NamedTuple):
    """A finished run: its bodies at the start and at the end, and its energies."""

    start: Particles
    end: Particles
    energies: Energies


def simulated(engine: str, initial: Group, gravity: Group, integrator: Group, fields: Sequence[Group] = ()) -> FinishedRun:
    """A run in float64 to its end, without a file. The engine is ``cpu``, ``gpu`` or any other name."""
    record = {"dt": integrator["end"]} if "end" in integrator else {"every": 1_000_000}  # only the first and the last
    values = {
        "initial": initial,
        "gravity": gravity,
        "fields": list(fields),
        "integrator": integrator,
        "record": record,
    }
    simulation = Simulation(Scenario.from_dict(values | {"engine": engine, "precision": "float64"}))
    start = simulation.particles
    simulation.run()
    return FinishedRun(start, simulation.particles, simulation.energies)
