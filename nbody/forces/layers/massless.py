"""Bodies without mass: they exert no force, so only the others act, M · N interactions for M bodies with mass.

Engines leave out the bodies without mass that come last. The layer sorts the bodies for an evaluation, those with mass
first, and returns the results to the bodies' own rows. These copies are N rows beside M · N interactions: 40 µs for 10⁶
bodies (H200's memory, float32).
"""

import numpy as np

from nbody.forces.engine import Targets
from nbody.forces.layers.layer import Layer
from nbody.forces.layers.sorted import Sorted, acting
from nbody.particles import Particles
from nbody.registry import imported
from nbody.state import Outputs, State

SORTED = {"cpu": "nbody.forces.layers.sorted:HostSorted", "gpu": "nbody.forces.layers.massless_gpu:DeviceSorted"}


class WithoutMassless(Layer):
    """An engine whose sums leave out the bodies without mass, wherever they are among the others, if they are many."""

    def load(self, particles: Particles) -> State:
        state = self._inner._empty_state(particles)
        mass = particles.mass.astype(state.dtype)
        order = np.argsort(mass == 0, kind="stable") if not mass.all() else None
        if order is None or acting(mass[order]) == acting(mass):  # few bodies without mass, or all of them come last
            self._inner._prepare(state, particles)
        else:
            found = imported(SORTED[self.can.device])(state, order, self.gravity.per_species)
            self._inner._prepare(found.state, particles.rows(order))
            state.workspace = found
        return state

    def _computed(self, state: State) -> State:
        return state.workspace.state if isinstance(state.workspace, Sorted) else state

    def _fill(self, state: State, outputs: Outputs, targets: Targets = None, potential_alone: bool = False) -> None:
        found = state.workspace
        if not isinstance(found, Sorted):
            self._inner._fill(state, outputs, targets, potential_alone)
            return
        found.gather(state, outputs)
        rows = None if targets is None else found.index[targets]
        self._inner._fill(found.state, outputs, rows, potential_alone)
        found.scatter(state, outputs, targets, not (potential_alone and self.can.potential == "separate"))
