"""External fields: added to what an engine has computed, in one place for all engines."""

from nbody.fields.added import AddedFields
from nbody.forces.engine import Engine, Targets
from nbody.forces.layers.layer import Layer
from nbody.particles import Particles
from nbody.state import Outputs, State
from nbody.state.host import HostState


class WithFields(Layer):
    """An engine, and a sum of external fields: N evaluations beside the N² pairs."""

    def __init__(self, inner: Engine, fields: AddedFields) -> None:
        super().__init__(inner)
        self._fields = fields

    def load(self, particles: Particles) -> State:
        self._fields.settle(particles)
        return super().load(particles)

    def _rehearse(self, state: State, outputs: Outputs) -> None:
        super()._rehearse(state, outputs)
        if not isinstance(state, HostState):  # there they would be added
            self._fields.add(state, outputs)

    def _fill(self, state: State, outputs: Outputs, targets: Targets = None, potential_alone: bool = False) -> None:
        self._inner._fill(state, outputs, targets, potential_alone)
        kept = potential_alone and self.can.potential == "separate"  # the accelerations have the fields already
        self._fields.add(state, outputs, not kept, targets)


def fields_of(engine: Engine) -> AddedFields | None:
    """The external fields of an engine; None if it has none."""
    return engine._fields if isinstance(engine, WithFields) else None
