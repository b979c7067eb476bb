"""One comparison with a published answer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from nbody.diagnostics.energy import Energies
from nbody.particles import Particles
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario


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
        return abs(self.got - self.expected) <= self.tolerance


Case = Callable[[str], Iterator[Check]]


def run_case(case: Case, engine: str) -> list[Check]:
    """The checks of a case, computed with an engine."""
    return list(case(engine))


@dataclass(frozen=True)
class Done:
    """A finished run: its bodies at the start and at the end, and its energies."""

    start: Particles
    end: Particles
    energies: Energies


def simulated(
    engine: str, initial: dict[str, Any], gravity: dict[str, Any], fields: Any = None, **integrator: Any
) -> Done:
    """A run in float64 to its end, without a file. The engine is ``cpu``, ``gpu`` or any other name."""
    values = {
        "initial": initial,
        "gravity": gravity,
        "fields": fields,
        "integrator": integrator,
        "engine": engine,
        "precision": "float64",
    }
    record = {"dt": integrator["end"]} if "end" in integrator else {"every": 1_000_000}  # only the first and the last
    simulation = Simulation(Scenario.from_dict(values | {"record": record}))
    start = simulation.particles
    simulation.run()
    return Done(start, simulation.particles, simulation.energies)
