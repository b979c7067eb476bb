"""Escapers are removed from a run."""

import numpy as np

from nbody.errors import InputError, RunFailed
from nbody.events.bodies import ORIGIN
from nbody.events.kinds import Escaping
from nbody.run.observers import Observer
from nbody.run.stepper import Stepper
from nbody.scenario.escape import EscapeLimit
from nbody.trajectory.structure.layout import ESCAPED, event_rows


class Escape(Observer):
    """Removes the bodies that the scenario's group ``escape`` describes, every few steps of the run. Raises
    InputError: the half-mass radius is 0, or there is no such body."""

    def __init__(self, stepper: Stepper) -> None:
        super().__init__(stepper)
        setup, keys = stepper.setup, stepper.setup.scenario.escape
        assert keys is not None
        self._every, self._looked = keys.every, stepper.moment.complete
        kind = Escaping.model_construct(**{name: getattr(keys, name) for name in EscapeLimit.model_fields})
        self._kind = kind.of(setup.bodies, setup.scenario.where("escape.about" if keys.about else "escape.radius"))

    def next(self, until: float) -> tuple[int, float]:
        now = self._stepper.moment  # a step that is shown partway is counted, and made again
        return self._every - now.complete % self._every - now.within, until

    def look(self) -> bool:
        now = self._stepper.moment
        if now.within or now.step % self._every or now.step == self._looked:
            return True
        self._looked = now.step
        bodies = self._stepper.bodies()
        centre = np.flatnonzero(bodies.known.id == self._kind.about) if isinstance(self._kind.about, int) else ORIGIN
        if centre is not ORIGIN and not len(centre):  # it has merged, or is gone
            return True
        rows = np.arange(bodies.known.count)
        if centre is not ORIGIN:
            rows = np.delete(rows, centre)
        beyond, _ = self._kind.measure(bodies, rows, centre)
        if not (gone := beyond > 0).any():
            return True
        escapers = rows[gone]
        if not np.delete(bodies.known.mass, escapers).any():
            raise RunFailed(f"step {now.step}: all bodies with mass escape ('escape'); none would be left")
        changes = event_rows(ESCAPED, bodies.particles().rows(escapers))
        changes["distance"] = self._kind.distance(bodies, escapers, centre)
        try:
            self._stepper.apply(changes, shown=True)
        except InputError as error:
            raise RunFailed(f"step {now.step}: 'escape': {error}") from None
        return True
