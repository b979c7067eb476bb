"""External fields: added to what an engine has computed, in one place for all engines."""

from nbody.fields.added import AddedFields
from nbody.forces.engine import Engine, Targets
from nbody.forces.layers.layer import Layer
from nbody.state import Outputs, State


class WithFields(Layer):
    """An engine, and a sum of external fields: N evaluations beside the N² pairs."""

    def __init__(self, inner: Engine, fields: AddedFields) -> None:
        super().__init__(inner)
        self._fields = fields

    def _rehearse(self, state: State, outputs: Outputs) -> None:
        super()._rehearse(state, outputs)
        if self.can.device == "gpu":  # on the host they would be added
            self._fields.add(state, outputs)

    def _compute(self, state: State, outputs: Outputs) -> None:
        super()._compute(state, outputs)
        self._fields.add(state, outputs)

    def _compute_potential(self, state: State, outputs: Outputs) -> None:
        super()._compute_potential(state, outputs)
        self._fields.add(state, outputs, accelerations=self.can.potential != "separate")

    def _compute_targets(self, state: State, outputs: Outputs, targets: Targets) -> None:
        super()._compute_targets(state, outputs, targets)
        self._fields.add(state, outputs, targets=targets)


def fields_of(engine: Engine) -> AddedFields | None:
    """The external fields of an engine; None if it has none."""
    return engine._fields if isinstance(engine, WithFields) else None
