"""What a force engine is: positions in, accelerations (and potential) out, in the precision asked for.

An engine never moves a particle and an integrator never computes a force. To add one: a file with a subclass of
:class:`Engine` (or of :class:`~nbody.forces.direct.gpu_engine.GpuEngine`), and a line in ``ENGINES``.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from nbody import machine
from nbody.errors import InputError
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.state import Potential, State


class Engine(ABC):
    """Gravity of all particles on all particles, for a state of the kind that :meth:`load` makes.

    Whatever an engine needs for a state lies in that state's ``workspace``. A pass over all pairs is made of pieces that
    do not depend on each other (slabs of rows, panels of the triangle), each told by :meth:`State.report`.
    """

    device: ClassVar[str] = "cpu"
    """``cpu`` or ``gpu``."""

    precisions: ClassVar[tuple[str, ...]] = ("float32", "float64")
    """The precisions it offers."""

    potential_apart: ClassVar[bool] = False
    """True if accelerations and potential are two passes over all pairs, and not one."""

    energy_apart: ClassVar[bool] = False
    """True if it has something cheaper than the potential of each body where only the energy is wanted."""

    contends: ClassVar[range] = range(0)
    """The numbers of particles for which it may be the fastest engine of some GPU: ``auto`` considers it for these."""

    def __init__(self, gravity: Gravity, precision: str = "float64") -> None:
        self.require_precision(precision)
        self.gravity = gravity.check()
        self.precision = precision
        self.dtype = np.dtype(np.float32 if precision == "float32" else np.float64)

    @classmethod
    def require_precision(cls, precision: str, where: str = "") -> None:
        """Raise an InputError, which begins with ``where``, if the engine does not offer a precision."""
        if precision not in cls.precisions:
            raise InputError(
                f"{where}this engine computes in {' or '.join(cls.precisions)}, not in {precision}; "
                f"choose --precision {cls.precisions[0]}, or an --engine that has {precision}"
                + (" (gpu-symmetric)" if precision == "mixed" else "")
            )

    @classmethod
    def require_device(cls) -> None:
        """Raise a DeviceError if this machine lacks what the engine computes on. (There always is a processor.)"""
        return

    @abstractmethod
    def load(self, particles: Particles) -> State:
        """The particles where this engine works, in its precision."""

    @abstractmethod
    def _compute(self, state: State, potential: Potential) -> None:
        """Fill the state's accelerations, and as much of its potential as is asked for."""

    def _compute_potential(self, state: State, potential: Potential) -> None:
        """Fill the state's potential; its accelerations belong to its positions already, and keep their bits."""
        self._compute(state, potential)

    @classmethod
    @abstractmethod
    def bytes_needed(cls, particles: int, precision: str) -> int:
        """The memory that a state of so many particles and this engine's buffers take, in bytes."""

    @classmethod
    def condition(cls, particles: Particles, gravity: Gravity, rows: np.ndarray) -> np.ndarray | float:
        """By what the rounding of numbers is multiplied in the forces on some particles, for the way that the engine
        takes the sum, (T,) or one number for all; 1 for the plain sum over pairs."""
        return 1.0

    def device_name(self) -> str:
        """The processor or card the forces are computed on."""
        return machine.cpu_name()

    def driver(self) -> str:
        """The version of the device's driver; empty where there is none."""
        return ""

    def evaluate(self, state: State, potential: Potential = Potential.NONE) -> None:
        """Make the state's accelerations, and as much of its potential as is asked for, belong to its positions.

        Does nothing when they already do, so a scheme may ask at the start of a step for what the end of the last step
        or a recorded frame has computed."""
        if potential and not self.energy_apart:
            potential = Potential.OF_EACH
        if not state.fresh:
            self._compute(state, potential)
        elif potential > state.has_potential:
            self._compute_potential(state, potential)
        state.has_potential = max(potential, state.has_potential) if state.fresh else potential
        state.fresh = True
