"""An engine around another one."""

from nbody.forces.engine import Engine, ForceError, Identity, Memory, Targets
from nbody.forces.problem import Problem
from nbody.particles import Particles
from nbody.state import Outputs, State


class Layer(Engine):
    """An engine that lets another one compute. What it can do is what the other one can. (An engine answers :meth:`supports`
    and :meth:`memory` as a class, before it is made; a layer exists only around an engine.)

    A layer overrides :meth:`_fill`, which surrounds every evaluation; and :meth:`load` and :meth:`_computed` if the other
    engine computes another state than the user's.
    """

    def __init__(self, inner: Engine) -> None:
        self._inner, self.can, self.state_type = inner, inner.can, inner.state_type
        super().__init__(inner.gravity, inner.precision, inner._options, inner._team)
        self._devices = inner._devices

    def supports(self, problem: Problem) -> str:  # type: ignore[override]
        return self._inner.supports(problem)

    def memory(self, problem: Problem) -> Memory:  # type: ignore[override]
        return self._inner.memory(problem)

    def load(self, particles: Particles) -> State:
        return self._inner.load(particles)

    def work(self, state: State, outputs: Outputs = Outputs.ACCELERATION, current: Outputs = Outputs.NOTHING) -> int:
        return self._inner.work(self._computed(state), outputs, current)

    def error(self, particles: Particles, targets: Targets = None) -> ForceError:
        return self._inner.error(particles, targets)

    def identity(self, state: State | None = None) -> Identity:
        return self._inner.identity(state and self._computed(state))

    def _computed(self, state: State) -> State:
        """The state that the other engine computes."""
        return state

    def _kernels(self, state: State, outputs: Outputs) -> tuple:
        return type(self), *self._inner._kernels(state, outputs)

    def _rehearse(self, state: State, outputs: Outputs) -> None:
        self._inner._rehearse(self._computed(state), outputs)

    def _fill(self, state: State, outputs: Outputs, targets: Targets = None, potential_alone: bool = False) -> None:
        self._inner._fill(state, outputs, targets, potential_alone)

    def _compute(self, state: State, outputs: Outputs) -> None:
        raise NotImplementedError
