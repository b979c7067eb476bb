"""A simulation that has no bodies yet, as ``nbody.Simulation()`` is: it collects those that are added until it begins."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.integrators import INTEGRATORS
from nbody.particles import Particles
from nbody.run.changes import new_bodies
from nbody.run.progress import Summary
from nbody.run.schedule import steps_given, time_given
from nbody.run.setup import asked_for
from nbody.scenario import Scenario


class Collected:
    """The bodies of a run that has not begun.

    Args:
        values: keyword values of the simulation.
        begin: makes the run of the bodies.
        records: the run is recorded.
        others: further arguments of the simulation, which its copies have too.

    Attributes:
        keys: the arguments of a copy.
        bodies: those that were added.
    """

    def __init__(
        self, values: dict[str, Any], begin: Callable[[Particles], None], records: bool, **others: Any
    ) -> None:
        self.begin, self._records, self.keys = begin, records, values | others
        one = {name: value for name, value in values.items() if name not in ("softening", "length", "particles")}
        asked = asked_for(Particles(np.ones(1), *np.zeros((2, 1, 3))), None, one, False)
        self.scenario: Scenario = asked.scenario
        INTEGRATORS.check(self.scenario.integrator.scheme, "integrator.scheme: ")
        self._open_ended = asked.open_ended
        D = self.scenario.gravity.dimensions
        self.bodies = Particles(np.empty(0), np.empty((0, D)), np.empty((0, D)))

    def add(self, given: Particles | None, values: dict[str, Any]) -> np.ndarray:
        """Add bodies, also of new species. Returns their ids."""
        now = self.bodies
        new = new_bodies(given, values, now, now.id, self.scenario)
        names = tuple(dict.fromkeys((*(now.species_names if now.count else ()), *new.species_names)))
        if names.count("") and len(names) > 1:  # bodies without a name are a species too
            names = ("", *(name for name in names if name))
        radius = [each.radius if len(each.radius) else np.zeros(each.count) for each in (now, new)]
        species = [
            np.array([names.index(each.species_names[k]) for k in each.species], np.int64) for each in (now, new)
        ]
        mass, position, velocity, id = (
            np.concatenate([getattr(each, name) for each in (now, new) if each.count])
            for name in ("mass", "position", "velocity", "id")
        )
        radii = np.concatenate(radius) if len(now.radius) or len(new.radius) else np.empty(0)
        self.bodies = Particles(mass, position, velocity, id, now.time, now.step, np.concatenate(species), names, radii)
        return new.id.copy()

    def move(self, steps: Any, until: Any) -> Summary:
        """Let time pass: there is nothing to move."""
        if self._records:
            raise InputError("run: the simulation has no bodies yet, and a recording needs some; add them first")
        scenario, chosen = self.scenario, self.scenario.integrator
        if until is not None:
            until = time_given("integrate: until: ", until, scenario)
        elif steps is None:
            if self._open_ended:
                raise InputError("run: how far? say run(steps=100), or integrate(until=10.0)")
            until = chosen.end
            steps = max(0, chosen.steps - self.bodies.step) if chosen.steps is not None else None
        made = 0 if steps is None else steps_given("run: steps: ", steps)
        if until is not None:
            self.bodies.time = until
        self.bodies.time += made * (scenario.integrator.dt or 0.0)
        self.bodies.step += made
        return Summary(
            name=scenario.name, output=None, engine="none", device="", precision=scenario.precision,
            integrator=scenario.integrator.scheme, particles=0, steps=made, step=self.bodies.step, time=self.bodies.time,
            wall_s=0.0, steps_per_s=0.0, interactions_per_s=0.0, energy_initial=0.0, energy_final=0.0, energy_error=0.0,
            frames=0, interrupted=False,
        )  # fmt: skip
