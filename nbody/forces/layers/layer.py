"""An engine around another one."""

from typing import Any

from nbody.forces.engine import Engine, ForceError, Identity, Memory, Targets
from nbody.forces.problem import Problem
from nbody.parallel import Team
from nbody.particles import Particles
from nbody.state import Outputs, State


class Layer(Engine):
    """An engine that lets another one compute, and changes what goes in or comes out; by itself it changes nothing."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.gravity, self.precision = inner.gravity, inner.precision
        self.can, self.state_type = inner.can, inner.state_type  # type: ignore[misc]

    def supports(self, problem: Problem) -> str:  # type: ignore[override]
        return self._inner.supports(problem)

    def memory(self, problem: Problem) -> Memory:  # type: ignore[override]
        return self._inner.memory(problem)

    def load(self, particles: Particles) -> State:
        return self._inner.load(particles)

    def work(self, state: State, outputs: Outputs = Outputs.ACCELERATION, current: Outputs = Outputs.NOTHING) -> int:
        return self._inner.work(state, outputs, current)

    def error(self, particles: Particles, targets: Targets = None) -> ForceError:
        return self._inner.error(particles, targets)

    def identity(self, state: State | None = None) -> Identity:
        return self._inner.identity(state)

    def _compute(self, state: State, outputs: Outputs) -> None:
        self._inner._compute(state, outputs)

    def _compute_potential(self, state: State, outputs: Outputs) -> None:
        self._inner._compute_potential(state, outputs)

    def _compute_targets(self, state: State, outputs: Outputs, targets: Targets) -> None:
        self._inner._compute_targets(state, outputs, targets)


def innermost(engine: Engine) -> Any:
    """The engine inside all layers."""
    while isinstance(engine, Layer):
        engine = engine._inner
    return engine


def team_of(engine: Engine) -> Team:
    """The ranks that compute the forces together."""
    team: Team = innermost(engine)._team
    return team


def devices_of(engine: Engine) -> tuple[int, ...]:
    """The numbers of the GPUs that compute the forces together, of which the first one holds the state."""
    devices: tuple[int, ...] = getattr(innermost(engine), "_devices", (0,))
    return devices
