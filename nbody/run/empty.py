"""A simulation that has not begun: it collects bodies until it has some, and a time step if its scheme needs one. Also one
of which all bodies were removed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.initial.combine import concatenated
from nbody.integrators import INTEGRATORS
from nbody.particles import Particles, rows_of
from nbody.run.changes import new_bodies, removed, species_among
from nbody.run.progress import Summary
from nbody.run.schedule import steps_given, time_given
from nbody.run.setup import Setup, asked_for
from nbody.scenario import Scenario


class Collected:
    """The bodies of a run that has not begun.

    Args:
        given: the arguments of the simulation; or, if all its bodies were removed, what it was.
        begin: makes the run of the bodies.
        bodies: none, in the dimensions and at the time of the simulation; by default those of its scenario, at 0.
        used: the ids of bodies that were there before, which are not used again.

    Attributes:
        bodies: those that were added.
    """

    def __init__(
        self,
        given: dict[str, Any] | Setup,
        begin: Callable[[Particles], None],
        bodies: Particles | None = None,
        used: np.ndarray | None = None,
    ) -> None:
        self.given, self.begin = given, begin
        self.used = np.empty(0, np.int64) if used is None else used
        self.scenario, self._open_ended = _asked(given, None)
        D = self.scenario.gravity.dimensions
        self.bodies = Particles(np.empty(0), np.empty((0, D)), np.empty((0, D))) if bodies is None else replace(bodies)

    def add(self, given: Particles | None, values: dict[str, Any]) -> np.ndarray:
        """Add bodies, also of new species. Returns their ids."""
        now = self.bodies
        new = new_bodies(given, values, now, np.union1d(self.used, now.id), self.scenario)
        names, species = species_among(new, now)
        parts, kinds = ([now, new], [now.species, species]) if now.count else ([new], [species])
        self.bodies = replace(
            concatenated(parts, kinds, names), id=np.concatenate([now.id, new.id]), time=now.time, step=now.step
        )
        return new.id.copy()

    def remove(self, ids: Any) -> None:
        """Remove bodies, all of them too. Raises InputError."""
        now = self.bodies
        gone = np.isin(now.id, now.id[rows_of(now, ids, "remove: ")])
        if not gone.all():
            removed(ids, now)  # which checks that a mass is left
        self.bodies, self.used = now.rows(~gone), np.union1d(self.used, now.id[gone])

    @property
    def waits(self) -> bool:
        """True if the run can't begin yet: it has no bodies, or no time step (``dt``) and its scheme needs one."""
        chosen = self.scenario.integrator
        return not self.bodies.count or (chosen.dt is None and not INTEGRATORS.load(chosen.scheme).facts.adaptive)

    @property
    def described(self) -> Scenario:
        """The scenario of the bodies so far."""
        return _asked(self.given, self.bodies)[0] if self.bodies.count else self.scenario

    def move(self, steps: Any, until: Any) -> Summary:
        """Let time pass: there is nothing to move."""
        if isinstance(self.given, dict) and self.given["output"] is not None:
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


def _asked(given: dict[str, Any] | Setup, bodies: Particles | None) -> tuple[Scenario, bool]:
    """The scenario of bodies, and whether nothing says where the run ends. If ``bodies`` is None, one body without a
    softening takes their place. Raises InputError: values do not fit."""
    if isinstance(given, Setup):
        return given.scenario, given.open_ended
    others = {"output", "overwrite", "notify", "on_collision"}
    if bodies is None:
        others |= {"softening", "length", "particles"}
    values = {name: value for name, value in given.items() if name not in others}
    asked = asked_for(bodies or Particles(np.ones(1), *np.zeros((2, 1, 3))), None, values, False)
    INTEGRATORS.check(asked.scenario.integrator.scheme, "integrator.scheme: ")
    return asked.scenario, asked.open_ended
