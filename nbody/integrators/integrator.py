"""The interface of an integrator, and the base class of schemes with a fixed time step."""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import ClassVar, NamedTuple

import numpy as np

from nbody.errors import InputError
from nbody.forces.engine import Engine
from nbody.forces.problem import Problem
from nbody.integrators.collisions.span import Encounter, Span, Watcher
from nbody.law import Gravity
from nbody.scenario.fields import Group
from nbody.state import Column, Snapshot, State, Want


class Motion(NamedTuple):
    """A state, and the engine that computes the forces on it."""

    engine: Engine
    state: State

    def evaluate(self, want: Want = Want.ACCELERATION) -> None:
        """Compute ``want`` for the present positions, unless it is current."""
        self.engine.evaluate(self.state, want)

    def work(self, want: Want = Want.ACCELERATION) -> int:
        """Interactions that :meth:`evaluate` would compute now."""
        return self.engine.work(self.state, want, self.state.current)


class Integrator(ABC):
    """A scheme with its options. Numbers that it needs from step to step are columns of the state, and :meth:`arrays`.

    Args:
        dt: the time step in the scenario's unit of time; the largest time step if :attr:`adaptive`.
        options: an instance of ``Options``.
    """

    class Options(Group):
        """The scheme's own keys in a scenario's ``integrator``: none."""

    order: ClassVar[int]
    """The error of a run of given length is proportional to dt to this power."""

    source: ClassVar[str]
    """Author and year."""

    needs: ClassVar[Want] = Want.ACCELERATION
    """The results that the engine must offer."""

    columns: ClassVar[tuple[Column, ...]] = ()
    """The columns that it adds to the state."""

    leaves: ClassVar[Want] = Want.NOTHING
    """The results that are current after a step."""

    evaluations: int = 1
    """Force evaluations per step."""

    power_of_dt: ClassVar[int] = 1
    """The highest power of the time step that the scheme forms."""

    adaptive: bool = False
    """True if the scheme chooses the length of each step."""

    lengths: ClassVar[str] = "fixed"
    """The lengths of steps in words: fixed, adaptive (one for all bodies), or individual."""

    own_forces: ClassVar[bool] = False
    """True if the scheme computes the forces in its own kernel."""

    for_ensembles: ClassVar[str] = ""
    """The class (``module:Class``) that moves many small systems by this scheme; empty if there is none."""

    star: ClassVar[bool] = False
    """True if it moves planets about a star, which is body 0 and the heaviest."""

    velocity_fields: ClassVar[bool] = False
    """True if the scheme computes forces that depend on velocities (:class:`nbody.fields.field.VelocityField`)."""

    softened: ClassVar[bool] = False
    """True if the steps follow from the softening length, so that there must be one."""

    encounter: Encounter | None = None
    """The bodies that have met in the last step; None if all bodies make the same steps."""

    single: int | None = None
    """Steps of single bodies made so far; None if all bodies make the same steps."""

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        self.options = options or self.Options()
        self._dt = dt

    @property
    def dt(self) -> float:
        """The time step, or the largest one if adaptive. Raises InputError if it is required and missing."""
        if self._dt is None and not self.adaptive:
            raise InputError("is missing; this scheme makes steps of one length, as in 'dt: 0.001'")
        return math.inf if self._dt is None else self._dt

    @classmethod
    def divides_over_ranks(cls, engine: type[Engine]) -> bool:
        """True if ranks divide its forces: those of an engine that does, unless it computes its own."""
        return engine.can.ranks and not cls.own_forces

    @classmethod
    def problem(cls, gravity: Gravity, precision: str, count: int = 1) -> Problem:
        """What the scheme asks of the forces."""
        return Problem(gravity, precision, count, cls.needs)

    @classmethod
    def supports(cls, engine: type[Engine], problem: Problem) -> str:
        """Why the scheme cannot run with an engine that supports a problem, in one clause; empty if it can."""
        return "a tree gives accelerations only" if cls.own_forces and engine.can.growth == 1 else ""

    @classmethod
    def working_bytes(cls, engine: type[Engine], particles: int, precision: str) -> int:
        """Bytes of its working arrays besides the columns, in the memory in which the engine works."""
        return 0

    @classmethod
    def bytes_to_help(cls, engine: type[Engine], particles: int, precision: str) -> int:
        """Bytes on each other GPU, if several make the steps."""
        return 0

    @classmethod
    def bytes_to_exchange(cls, engine: type[Engine], particles: int, precision: str) -> int:
        """Bytes that the first GPU needs besides its working arrays, if several make the steps."""
        return 0

    def prepare(self, motion: Motion) -> None:
        """Add the scheme's columns to the state. Raises InputError if the engine does not offer what it needs."""
        engine = motion.engine
        if reason := unsupported(type(self), type(engine), engine.gravity, engine.precision):
            raise InputError(f"scheme: {reason}")
        motion.state.add(*self.columns)

    def start(self, motion: Motion) -> None:  # noqa: B027  (nothing to do for most)
        """Called before the first step of a run, not when a run is resumed."""

    @abstractmethod
    def advance(self, motion: Motion, steps: int, until: float = math.inf) -> None:
        """Make at most ``steps`` steps. No step goes beyond the time ``until``, which is reached exactly."""

    def advance_to_contact(self, motion: Motion, steps: int, until: float, watcher: Watcher) -> Span | None:
        """Make steps as :meth:`advance` does, and stop after one in which two bodies touch. Returns that step; None if there
        was none. (The bodies are copied to the host after each step.)"""
        state = motion.state
        now = *state.phase_space(), state.time
        while steps > 0 and state.time < until:
            made = state.step
            self.advance(motion, 1, until)
            before, now = now, (*state.phase_space(), state.time)
            span = Span(*before[:2], *now[:2], before[2], now[2], self.star, self.encounter)
            if watcher.touching(span):
                return span
            steps -= state.step - made
        return None

    def expect_contacts(self) -> None:  # noqa: B027  (nothing to change for most)
        """Called before :meth:`prepare` if the run looks for collisions."""

    def synchronize(self, motion: Motion) -> None:  # noqa: B027  (most schemes have one time for all bodies)
        """Let all bodies end a step now, so that some of them can merge."""

    @abstractmethod
    def work(self, motion: Motion, steps: int, want: Want = Want.ACCELERATION) -> int:
        """Interactions of the next ``steps`` steps, if ``want`` is current after the last one."""

    def pairs_per_step(self, motion: Motion) -> float:
        """Interactions per step, the mean of the steps so far; excluding recording."""
        return self.evaluations * motion.engine.work(motion.state)

    def bodies_per_step(self, motion: Motion) -> float:
        """Bodies whose forces are computed in a step, the mean of the steps so far."""
        return float(self.evaluations * motion.state.count)

    def observed(self, motion: Motion) -> dict[str, np.ndarray]:
        """Further observables of the scheme, recorded with each frame (:data:`nbody.trajectory.systems.COLUMNS`)."""
        return {}

    def remark(self) -> str:
        """A line for the user at the end of a run that was not interrupted; empty for most."""
        return ""

    def arrays(self) -> dict[str, np.ndarray]:
        """Numbers that the scheme needs from step to step besides its columns, without a copy: a checkpoint copies them
        (:meth:`nbody.run.simulation.Simulation.checkpoint_arrays`)."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:  # noqa: B027
        """Restore the numbers that :meth:`arrays` returned."""


def unsupported(scheme: type[Integrator], engine: type[Engine], gravity: Gravity, precision: str) -> str:
    """Why a scheme and an engine cannot be combined, in one clause; empty if they can."""
    asked = scheme.problem(gravity, precision)
    return engine.supports(asked) or scheme.supports(engine, asked)


class FixedStep(Integrator):
    """A scheme whose steps have one length. If it makes the same moves in every step, a device may record steps and replay
    them."""

    same_moves: ClassVar[bool] = True
    """True if it does."""

    @abstractmethod
    def step(self, motion: Motion, want: Want = Want.ACCELERATION) -> None:
        """Make one step. If ``want`` is more than accelerations, it is current after the step."""

    def advance(self, motion: Motion, steps: int, until: float = math.inf) -> None:
        # ``until`` is ignored, since the run's schedule counts steps.
        motion.state.begin_steps(self.dt)
        motion.state.repeat(lambda: self._timed_step(motion), steps, key=self._key(0))
        self._count(motion.state, steps)

    def frames(self, motion: Motion, count: int = 1, every: int = 1) -> list[Snapshot]:
        """Make ``count`` frames, at most :func:`~nbody.state.frames_per_block`, each ``every`` steps after the last one.
        Returns their snapshots."""

        def steps() -> None:
            for _ in range(every - 1):
                self._timed_step(motion)
            self._timed_step(motion, motion.state.frame_want)

        motion.state.begin_steps(self.dt)
        found = motion.state.snapshots(steps, count, key=self._key(every))
        self._count(motion.state, count * every)
        return found

    def _timed_step(self, motion: Motion, want: Want = Want.ACCELERATION) -> None:
        """Make one step, and set the time for the forces of the next one."""
        self.step(motion, want)
        motion.state.end_steps()

    def _key(self, every: int) -> Hashable:
        return (type(self), self.dt, every) if self.same_moves else None

    def time_at(self, state: State, step: int) -> float:
        """The time of a step, origin + step · dt. (Adding up time steps would accumulate rounding errors.)"""
        return state.origin + step * self.dt

    def _count(self, state: State, steps: int) -> None:
        state.step += steps
        state.time = self.time_at(state, state.step)
