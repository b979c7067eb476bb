"""What a force engine is: positions in, accelerations (jerk, potential) out, in the run's precision.

An engine never moves a particle. To add one: a file with a subclass of :class:`Engine` (or of
:class:`~nbody.forces.gpu_engine.GpuEngine`), and a line in ``ENGINES``. External fields and bodies without mass are
layers around any engine: :mod:`nbody.forces.layers`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import machine
from nbody.compute.compiling.precompile import compile_together
from nbody.errors import InputError
from nbody.forces.problem import ROUNDOFF, Abilities, Problem
from nbody.law import Gravity
from nbody.parallel import ALONE, Team
from nbody.particles import Particles
from nbody.scenario.values import Group
from nbody.state import Column, Outputs, State, bytes_of, itemsize
from nbody.state.outputs import missing, union

SOFTENING2 = Column("softening2", 0, saved=False)
"""The softening length squared of each body, if species have lengths. A resumed run computes it again."""

_REHEARSED = set[tuple]()
"""The evaluations whose kernels this process has compiled."""

Targets = Any
"""Indices (T,) of the bodies whose forces are to be computed, an array on the host or on the engine's device; None for
all."""


class ForceError(NamedTuple):
    """Relative errors of accelerations, |a - a_exact| / |a_exact|, that an engine may make.

    Attributes:
        typical: of the median body, without the bodies whose forces nearly cancel.
        bound: beyond this the force on a body is wrong; one number, or (T,) for some bodies.
    """

    typical: float
    bound: np.ndarray | float


class Memory(NamedTuple):
    """Bytes of memory that an engine needs for a problem.

    Attributes:
        own: where it works, with the state (in 3-D).
        helper: on each further GPU that divides the work.
    """

    own: int
    helper: int = 0


class Identity(NamedTuple):
    """What computes the forces.

    Attributes:
        device: the name of the CPU or GPU.
        driver: the version of its driver; empty where there is none.
        bits: what else the bits of the forces depend on, beside the versions of programs.
    """

    device: str
    driver: str = ""
    bits: Mapping[str, str] = {}


def rounding_bound(precision: str, count: int, condition: np.ndarray | float = 1.0) -> np.ndarray | float:
    """The largest relative error of a force that rounding explains: 32 κ u √(N + 64), with the unit roundoff u and the
    ``condition`` κ of the sum, at least 1, by which an engine's way to sum multiplies rounding errors.

    The rounding errors of a sum of N terms grow like u √N (a random walk; Higham 2002, section 2.8). Plain float32 sums,
    one body after the other, reached 5 u √(N + 64) at worst, N from 2 to 20480; six times that is left for bodies on
    which the forces nearly cancel. The ``matrix`` engine reached 0.8 κ u √(N + 64), and 11 with a rung that adds 20480
    numbers one after the other (k02).
    """
    return 32 * np.maximum(1.0, condition) * ROUNDOFF[precision] * float(np.sqrt(count + 64))


def typical_error(precision: str, count: int) -> float:
    """The median relative error of direct sums, u √N / 8 with the unit roundoff u."""
    return ROUNDOFF[precision] * float(np.sqrt(count)) / 8


class Engine(ABC):
    """Gravity of all particles on all particles, for a state made by :meth:`load`.

    The engine's buffers for a state are in that state's ``workspace``. A force evaluation consists of pieces that do not
    depend on each other (slabs of rows, panels of the triangle); :meth:`~nbody.state.ForceProgress.report` is called after
    each.

    Args:
        gravity: the law of a pair.
        precision: one that it offers.
        options: an instance of ``Options``.
        team: the ranks that compute the forces together.
    """

    class Options(Group):
        """The engine's own options in a scenario, ``engine: {name: …, option: …}``: none."""

    can: Abilities = Abilities()
    """What it can compute; :meth:`supports` answers from it."""

    state_type: type[State]
    """The kind of state that :meth:`load` makes."""

    _devices: tuple[int, ...] = (0,)
    """The GPUs that compute the forces together, of which the first one holds the state."""

    def __init__(
        self, gravity: Gravity, precision: str = "float64", options: Group | None = None, team: Team = ALONE
    ) -> None:
        self.gravity = gravity.check()
        self.precision = precision
        self._options = options or self.Options()
        self._team = team
        self._rehearsed = set[Outputs]()
        asked = Problem(gravity, precision, accuracy=getattr(self._options, "accuracy", None))
        if reason := self.supports(asked):
            raise InputError(f"engine: {reason}")
        self._dtype = np.dtype(np.float32 if itemsize(precision) == 4 else np.float64)

    @classmethod
    def supports(cls, problem: Problem) -> str:
        """Why the engine cannot compute what is asked, in one clause; empty if it can. (Whether this machine has the device
        and enough memory is another question: :mod:`nbody.forces.resources`.)"""
        return cls.can.refusal(problem)

    @classmethod
    def memory(cls, problem: Problem) -> Memory:
        """The memory that the engine needs for a problem."""
        return Memory(bytes_of(cls.state_type.COLUMNS, problem.particles, 3, problem.precision))

    def load(self, particles: Particles) -> State:
        """The particles in the memory that this engine uses, in its precision."""
        state = self._empty_state(particles)
        self._prepare(state, particles)
        return state

    def evaluate(self, state: State, outputs: Outputs = Outputs.ACCELERATION, targets: Targets = None) -> None:
        """Compute ``outputs`` for the state's positions, unless they are current already.

        So the start of a step costs nothing if the end of the last step or a recorded frame has computed the same. With
        ``targets`` only the rows of these bodies are computed (every time), and nothing becomes current.
        """
        if targets is not None:
            self._fill(state, outputs, targets)
            return
        outputs, current = _offered(self.can, outputs), state.clock.current
        if not missing(outputs, current):
            return
        if outputs not in self._rehearsed:
            compile_kernels(self, state, [outputs])
        if current is not Outputs.NOTHING and outputs in Outputs.POTENTIAL:
            self._fill(state, outputs, potential_alone=True)
        else:
            self._fill(state, union(outputs, current))
        state.clock.current = union(outputs, current)

    def _fill(self, state: State, outputs: Outputs, targets: Targets = None, potential_alone: bool = False) -> None:
        """Compute ``outputs``, for the ``targets`` or all bodies; of these perhaps the potential alone. A layer changes this
        method (:mod:`nbody.forces.layers`), an engine the three that it calls."""
        if targets is not None:
            self._compute_targets(state, outputs, targets)
        elif potential_alone:
            self._compute_potential(state, outputs)
        else:
            self._compute(state, outputs)

    def work(self, state: State, outputs: Outputs = Outputs.ACCELERATION, current: Outputs = Outputs.NOTHING) -> int:
        """Interactions that :meth:`evaluate` computes for all bodies if ``current`` belongs to the positions already."""
        outputs = _offered(self.can, outputs)
        if not missing(outputs, current):
            return 0
        separate = self.can.potential == "separate" and Outputs.ENERGY in outputs and Outputs.ACCELERATION not in current
        return (1 + separate) * self._work_per_evaluation(state)

    def error(self, particles: Particles, targets: Targets = None) -> ForceError:
        """The error that the engine may make for some particles; for direct sums that which rounding explains:
        :func:`typical_error`, :func:`rounding_bound`."""
        return ForceError(typical_error(self.precision, particles.count), rounding_bound(self.precision, particles.count))

    def identity(self, state: State | None = None) -> Identity:
        """What computes the forces, with the number of devices that compute those of a state if there are several."""
        return Identity(machine.cpu_name())

    def _kernels(self, state: State, outputs: Outputs) -> tuple:
        """What the kernels of an evaluation depend on. Those for about as many bodies are the same."""
        law, options = (self.gravity.softening, self.gravity.per_species), repr(self._options)
        bodies = state.dimensions, state.count.bit_length()
        return type(self), self.precision, law, options, bodies, outputs

    def _rehearse(self, state: State, outputs: Outputs) -> None:  # noqa: B027
        """Call the kernels of :meth:`_compute` where it does not depend on what they compute: they are noted, not run. What
        else is done must leave the results of the state as they are."""

    def _empty_state(self, particles: Particles) -> State:
        """A state of the particles without buffers. Raises InputError if species have lengths that do not fit theirs."""
        state = self.state_type(particles, self._dtype)
        if self.gravity.per_species:
            state.add(SOFTENING2, values=self.gravity.squares(particles.species, particles.species_names))
        return state

    def _prepare(self, state: State, particles: Particles) -> None:  # noqa: B027  (many engines have no buffers)
        """Make the engine's buffers for a state of some particles, its ``workspace``."""

    def _work_per_evaluation(self, state: State) -> int:
        """Interactions that the engine computes for the forces on all bodies of a state."""
        return state.count * state.count

    @abstractmethod
    def _compute(self, state: State, outputs: Outputs) -> None:
        """Fill the state's accelerations, and the other ``outputs``."""

    def _compute_potential(self, state: State, outputs: Outputs) -> None:
        """Fill the state's potential; its accelerations are current, and keep their bits."""
        self._compute(state, outputs)

    def _compute_targets(self, state: State, outputs: Outputs, targets: Targets) -> None:
        """Fill the rows of the targets, in engines that compute targets."""
        raise NotImplementedError


def compile_kernels(engine: Engine, state: State, evaluations: Sequence[Outputs], *others: Callable[[], object]) -> None:
    """Compile the kernels that are not cached, several at a time: those of each of some evaluations, as far as the engine
    rehearses them, and those that ``others`` call. Nothing is computed."""
    asked = {_offered(engine.can, outputs) for outputs in evaluations} - engine._rehearsed
    engine._rehearsed |= asked
    rehearsed = {each: engine._kernels(state, each) for each in asked}
    if engine._team.size > 1 or _REHEARSED.issuperset(rehearsed.values()):
        return
    _REHEARSED.update(rehearsed.values())
    progress = state.progress
    watch, requested, computed = progress.watch, progress.requested, progress.computed
    progress.watch = None

    def work() -> None:
        for outputs in sorted(rehearsed):
            engine._rehearse(state, outputs)
        for each in others:
            each()

    try:
        with np.errstate(all="ignore"):
            compile_together(work)
    finally:
        progress.watch, progress.requested, progress.computed = watch, requested, computed


def team_of(engine: Engine) -> Team:
    """The ranks that compute the forces together."""
    return engine._team


def devices_of(engine: Engine) -> tuple[int, ...]:
    """The numbers of the GPUs that compute the forces together, of which the first one holds the state."""
    return engine._devices


def _offered(can: Abilities, outputs: Outputs) -> Outputs:
    """``outputs``, with the potential of each body where the engine has nothing cheaper for the energy."""
    return _complete(can.outputs, can.potential == "summed", outputs)


@cache
def _complete(offered: Outputs, summed: bool, outputs: Outputs) -> Outputs:
    assert not missing(outputs, offered), "ask Engine.supports first"
    return outputs | Outputs.POTENTIAL if Outputs.ENERGY in outputs and not summed else outputs
