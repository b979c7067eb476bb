"""Escapers are removed from a run: bodies that are farther from the centre of mass than ``escape.radius``."""

import numpy as np

from nbody.diagnostics.structure import centre_of_mass, half_mass_radius
from nbody.errors import InputError, RunFailed
from nbody.run.observers import Observer
from nbody.run.setup import Setup
from nbody.run.stepper import Stepper
from nbody.scenario.groups import HALF_MASS_RADIUS
from nbody.trajectory.structure.layout import ESCAPED, event_rows


class Escape(Observer):
    """Removes bodies beyond a radius around the centre of mass, after every so many steps of the run. Raises InputError: the
    half-mass radius is 0."""

    def __init__(self, stepper: Stepper) -> None:
        super().__init__(stepper)
        keys = stepper.setup.scenario.escape
        assert keys is not None
        self._every, self._looked, radius = keys.every, stepper.moment.complete, keys.radius
        self.radius = self._in_half_mass_radii(stepper.setup, radius) if isinstance(radius, str) else radius

    @staticmethod
    def _in_half_mass_radii(setup: Setup, written: str) -> float:
        bodies = setup.bodies
        radius = float(written.removesuffix(HALF_MASS_RADIUS)) * half_mass_radius(bodies, centre_of_mass(bodies))
        if not radius > 0:
            raise InputError(f"{setup.scenario.where('escape.radius')}the half-mass radius r_h is 0; give a length")
        return radius

    def next(self, until: float) -> tuple[int, float]:
        now = self._stepper.moment  # a step that is shown partway is counted, and made again
        return self._every - now.complete % self._every - now.within, until

    def look(self) -> bool:
        now = self._stepper.moment
        if now.within or now.step % self._every or now.step == self._looked:
            return True
        self._looked = now.step
        bodies = self._stepper.particles()
        distance = np.linalg.norm(bodies.position - centre_of_mass(bodies), axis=1)
        if not (gone := distance > self.radius).any():
            return True
        if not bodies.mass[~gone].any():
            raise RunFailed(
                f"step {now.step}: all bodies are beyond escape.radius, {self.radius:g}; none would be left"
            )
        rows = event_rows(ESCAPED, bodies.rows(gone))
        rows["distance"] = distance[gone]
        self._stepper.apply(rows, shown=True)
        return True
