"""What a force engine is: positions in, accelerations (jerk, potential) out, in the run's precision.

An engine never moves a particle and an integrator never computes a force. To add one: a file with a subclass of
:class:`Engine` (or of :class:`~nbody.forces.direct.gpu_engine.GpuEngine`), and a line in ``ENGINES``.
"""

from abc import ABC, abstractmethod
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nbody import machine
from nbody.errors import InputError
from nbody.fields.added import AddedFields
from nbody.forces.problem import ROUNDOFF, Abilities, Problem
from nbody.law import Gravity
from nbody.parallel import ALONE, Team
from nbody.particles import Particles
from nbody.scenario.fields import Group
from nbody.state import Column, State, Want, itemsize
from nbody.state.want import missing, union

SOFTENING2 = Column("softening2", 0, saved=False)
"""The softening length squared of each body, if species have lengths. A resumed run computes it again."""

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


def rounding_bound(precision: str, count: int, condition: np.ndarray | float = 1.0) -> np.ndarray | float:
    """The largest relative error of a force that rounding explains: 32 κ u √(N + 64), with the unit roundoff u and the
    ``condition`` κ of the sum (:meth:`Engine.condition`), at least 1.

    The rounding errors of a sum of N terms grow like u √N (a random walk; Higham 2002, section 2.8). Plain float32 sums,
    one body after the other, reached 5 u √(N + 64) at worst, N from 2 to 20480; six times that is left for bodies on
    which the forces nearly cancel. The ``matrix`` engine reached 0.8 κ u √(N + 64), and 11 with a rung that adds 20480
    numbers one after the other (k02).
    """
    return 32 * np.maximum(1.0, condition) * ROUNDOFF[precision] * float(np.sqrt(count + 64))


class Engine(ABC):
    """Gravity of all particles on all particles, for a state made by :meth:`load`.

    The engine's buffers for a state are in that state's ``workspace``. A force evaluation consists of pieces that do not
    depend on each other (slabs of rows, panels of the triangle); :meth:`State.report` is called after each.
    """

    class Options(Group):
        """The engine's own options in a scenario, ``engine: {name: …, option: …}``: none."""

    device: ClassVar[str] = "cpu"
    """``cpu`` or ``gpu``."""

    can: ClassVar[Abilities] = Abilities()
    """What it can compute; :meth:`supports` answers from it."""

    potential_pass: ClassVar[str] = "joint"
    """How it computes the potential: ``joint`` with the accelerations; in a ``separate`` pass over all pairs; or ``summed``:
    the energy alone is faster than the potential of each body."""

    state_type: ClassVar[type[State]]
    """The kind of state that :meth:`load` makes."""

    def __init__(self, gravity: Gravity, precision: str = "float64", options: Group | None = None) -> None:
        self.gravity = gravity.check()
        self.precision = precision
        self.options = options or self.Options()
        asked = Problem(gravity, precision, accuracy=getattr(self.options, "accuracy", None))
        if reason := self.supports(asked):
            raise InputError(f"engine: {reason}")
        self.team: Team = ALONE
        """The ranks that compute the forces together."""
        self.fields: AddedFields | None = None
        """External fields, which :meth:`evaluate` adds to what the engine computes."""
        self.dtype = np.dtype(np.float32 if itemsize(precision) == 4 else np.float64)

    @classmethod
    def supports(cls, problem: Problem) -> str:
        """Why the engine cannot compute what is asked, in one clause; empty if it can. (Whether this machine has the device
        and enough memory is another question: :meth:`require_device`, :mod:`nbody.forces.memory`.)"""
        return cls.can.refusal(problem)

    @classmethod
    def require_device(cls) -> None:
        """Raise a DeviceError if this machine lacks what the engine computes on. (There always is a CPU.)"""
        return

    @abstractmethod
    def load(self, particles: Particles) -> State:
        """The particles in the memory that this engine uses, in its precision."""

    def soften(self, state: State, particles: Particles) -> None:
        """Give the state the column ``softening2``, the ε² of each body, if species have lengths. Raises InputError if
        they do not fit the species of the bodies."""
        if self.gravity.per_species:
            state.add(SOFTENING2)
            state.fill(SOFTENING2, self.gravity.squares(particles.species, particles.species_names))

    def evaluate(self, state: State, want: Want = Want.ACCELERATION, targets: Targets = None) -> None:
        """Compute what is wanted for the state's positions, unless it is current already.

        So the start of a step costs nothing if the end of the last step or a recorded frame has computed the same. With
        ``targets`` only the rows of these bodies are computed (every time), and nothing becomes current.
        """
        if targets is not None:
            self._compute_targets(state, want, targets)
            if self.fields is not None:
                self.fields.add(state, want, targets=targets)
            return
        want, current = _offered(type(self), want), state.current
        if not missing(want, current):
            return
        only_potential = current is not Want.NOTHING and want in Want.POTENTIAL
        if only_potential:
            self._compute_potential(state, want)
        else:
            self._compute(state, union(want, current))
        if self.fields is not None:
            self.fields.add(state, union(want, current), not (only_potential and self.potential_pass == "separate"))
        state.current = union(want, current)

    def work(self, state: State, want: Want = Want.ACCELERATION, current: Want = Want.NOTHING) -> int:
        """Interactions that :meth:`evaluate` computes for all bodies if ``current`` belongs to the positions already."""
        want = _offered(type(self), want)
        if not missing(want, current):
            return 0
        both = self.potential_pass == "separate" and Want.ENERGY in want and Want.ACCELERATION not in current
        return (1 + both) * state.count * self.acting(state)

    def acting(self, state: State) -> int:
        """The number of bodies whose forces are computed: all, unless the engine leaves out those without mass."""
        return state.count

    def expected_error(self, particles: Particles, targets: Targets = None) -> ForceError:
        """The error that rounding explains: :func:`rounding_bound`, and typically u √N / 8 with the unit roundoff u."""
        rows = np.arange(particles.count) if targets is None else targets
        condition = self.condition(particles, self.gravity, rows)
        typical = ROUNDOFF[self.precision] * float(np.sqrt(particles.count)) / 8
        return ForceError(typical, rounding_bound(self.precision, particles.count, condition))

    @classmethod
    def condition(cls, particles: Particles, gravity: Gravity, rows: np.ndarray) -> np.ndarray | float:
        """The factor by which the engine's way to sum multiplies the rounding errors of the forces on some particles,
        (T,) or one number for all; 1 for the plain sum over pairs."""
        return 1.0

    @classmethod
    def bytes_needed(cls, particles: int, precision: str) -> int:
        """Memory of a state of ``particles`` particles in 3-D and of this engine's buffers, in bytes."""
        return cls.state_type.bytes_needed(particles, 3, precision)

    @classmethod
    def target_bytes(cls, particles: int, precision: str) -> int:
        """Memory of this engine's buffers for the forces on some of ``particles`` particles, in bytes."""
        return 0

    def device_name(self) -> str:
        """The CPU or GPU on which the forces are computed."""
        return machine.cpu_name()

    def devices_name(self, state: State) -> str:
        """The name of the device, and the number of devices that compute the forces of a state if there are several."""
        return self.device_name()

    def driver(self) -> str:
        """The version of the device's driver; empty where there is none."""
        return ""

    def scope(self) -> dict[str, str]:
        """What else the bits of the forces depend on, beside the device and the versions of programs."""
        return {}

    @classmethod
    def bytes_to_help(cls, particles: int, precision: str) -> int:
        """Bytes of memory on each further GPU that divides the work."""
        return 0

    @classmethod
    def bytes_to_exchange(cls, particles: int, precision: str, devices: int, ranks: bool = False) -> int:
        """Bytes that the first of several GPUs, or each of several ranks, needs for what the others have computed."""
        return 0

    @abstractmethod
    def _compute(self, state: State, want: Want) -> None:
        """Fill the state's accelerations, and what else is wanted."""

    def _compute_potential(self, state: State, want: Want) -> None:
        """Fill the state's potential; its accelerations are current, and keep their bits."""
        self._compute(state, want)

    def _compute_targets(self, state: State, want: Want, targets: np.ndarray) -> None:
        """Fill the rows of the targets, in engines that compute targets."""
        raise NotImplementedError


@cache
def _offered(kind: type[Engine], want: Want) -> Want:
    """``want``, with the potential of each body where the engine has nothing cheaper for the energy."""
    if missing(want, kind.can.outputs):
        raise InputError("engine: it does not compute the jerk")
    return want | Want.POTENTIAL if Want.ENERGY in want and kind.potential_pass != "summed" else want
