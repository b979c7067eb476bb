"""Bodies without mass: they exert no force, so only the others act, M · N interactions for M bodies with mass.

Engines leave out the bodies without mass that come last. The layer sorts the bodies for an evaluation, those with mass
first, and returns the results to the bodies' own rows. These copies are N rows beside M · N interactions: 40 µs for 10⁶
bodies (H200's memory, float32).
"""

from collections.abc import Callable

import numpy as np

from nbody.forces.engine import Identity, Targets
from nbody.forces.layers.layer import Layer
from nbody.forces.layers.sorted import HostSorted, Sorted, acting
from nbody.particles import Particles
from nbody.state import Outputs, State
from nbody.state.host import HostState


class WithoutMassless(Layer):
    """An engine whose sums leave out the bodies without mass, wherever they are among the others, if they are many."""

    def load(self, particles: Particles) -> State:
        state = self._inner._empty_state(particles)
        mass = particles.mass.astype(state.dtype)
        order = np.argsort(mass == 0, kind="stable") if not mass.all() else None
        if order is None or acting(mass[order]) == acting(mass):  # few bodies without mass, or all of them come last
            self._inner._prepare(state, particles)
        else:
            found = HostSorted(state, order) if isinstance(state, HostState) else _on_device(state, order)
            self._inner._prepare(found.state, particles.rows(order))
            state.workspace = found
        return state

    def work(self, state: State, outputs: Outputs = Outputs.ACCELERATION, current: Outputs = Outputs.NOTHING) -> int:
        return super().work(_computed(state), outputs, current)

    def identity(self, state: State | None = None) -> Identity:
        return super().identity(state and _computed(state))

    def _rehearse(self, state: State, outputs: Outputs) -> None:
        super()._rehearse(_computed(state), outputs)

    def _compute(self, state: State, outputs: Outputs) -> None:
        self._sorted(state, outputs, super()._compute)

    def _compute_potential(self, state: State, outputs: Outputs) -> None:
        self._sorted(state, outputs, super()._compute_potential, self.can.potential != "separate")

    def _compute_targets(self, state: State, outputs: Outputs, targets: Targets) -> None:
        found = state.workspace
        if isinstance(found, HostSorted):  # of engines on a GPU only the tree computes targets
            rows = found.index[targets]
            found.gather(state, outputs)
            super()._compute_targets(found.state, outputs, rows)
            found.scatter_rows(state, outputs, targets, rows)
        else:
            super()._compute_targets(state, outputs, targets)

    def _sorted(
        self, state: State, outputs: Outputs, compute: Callable[[State, Outputs], None], accelerations: bool = True
    ) -> None:
        found = state.workspace
        if isinstance(found, Sorted):
            found.gather(state, outputs)
            compute(found.state, outputs)
            found.scatter(state, outputs, accelerations)
        else:
            compute(state, outputs)


def _computed(state: State) -> State:
    """The state that the engine computes."""
    return state.workspace.state if isinstance(state.workspace, Sorted) else state


def _on_device(state: State, order: np.ndarray) -> Sorted:
    from nbody.forces.layers.massless_gpu import DeviceSorted

    return DeviceSorted(state, order)
