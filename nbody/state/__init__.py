"""The particles during a run: in host memory, or on a GPU from the first step to the last.

A :class:`State` holds named columns (positions, velocities, accelerations …) in the engine's precision. Beside them it has
a clock, the moves of which integrators consist (kick, drift, and the lecture's Taylor drift), the frames that are recorded,
and the progress of force evaluations. Only snapshots and columns that are requested are copied from a GPU to the host.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from nbody.particles import Particles
from nbody.state.clock import StateClock
from nbody.state.columns import Column, bytes_of, checkpoint_arrays
from nbody.state.frames import (
    BLOCKS,
    Frame,
    Slots,
    StateFrames,
    bytes_in_transit,
    device_blocks,
    frame_bytes,
    frames_per_block,
    itemsize,
)
from nbody.state.outputs import Outputs
from nbody.state.progress import ForceProgress

__all__ = [
    "BLOCKS", "Column", "ForceProgress", "Frame", "Outputs", "Slots", "State", "StateClock", "StateFrames", "StateMoves",
    "bytes_in_transit", "bytes_of", "checkpoint_arrays", "device_blocks", "frame_bytes", "frames_per_block", "itemsize",
]  # fmt: skip


class StateMoves(ABC):
    """The moves of the bodies of one state."""

    def __init__(self, dtype: np.dtype, clock: StateClock) -> None:
        self._dtype, self._clock = dtype, clock

    def kick(self, dt: float) -> None:
        """v += a dt."""
        self._kick(self._dtype.type(dt))

    def drift(self, dt: float) -> None:
        """x += v dt. The accelerations are out of date afterwards."""
        self._drift(self._dtype.type(dt))
        self._clock.drift(dt)

    def drift_taylor(self, dt: float) -> None:
        """x += v dt + a dt²/2, the lecture's position update, in float32 rounded once. The accelerations are out of date
        afterwards, but keep their values: the kick that follows uses them."""
        self._drift_taylor(self._dtype.type(dt), self._dtype.type(0.5 * dt * dt))
        self._clock.drift(dt)

    def flush(self) -> None:  # noqa: B027  (moves on the host are made at once)
        """Make the moves that are collected."""

    @abstractmethod
    def _kick(self, dt) -> None: ...

    @abstractmethod
    def _drift(self, dt) -> None: ...

    @abstractmethod
    def _drift_taylor(self, dt, half_dt2) -> None: ...


class State(ABC):
    """N particles in D dimensions; ``dtype`` is float32 or float64.

    Attributes:
        clock: the step, the time, and which results are current.
        moves: moves the bodies.
        frames: makes repeated steps and snapshots.
        progress: the progress of force evaluations.
        workspace: buffers and plans of the engine that loaded the state. They belong to the state, so that one engine
            may work with several states.
    """

    COLUMNS: ClassVar[tuple[Column, ...]]
    """The columns of every state of this kind; engines and integrators may :meth:`add` others."""

    clock: StateClock
    moves: StateMoves
    frames: StateFrames
    progress: ForceProgress

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        self.count, self.dimensions = particles.count, particles.dimensions
        self.dtype = np.dtype(dtype)
        self.workspace: Any = None
        self._columns: dict[str, Column] = {}
        self.add(*self.COLUMNS)

    def invalidate(self) -> None:
        """Declare that the positions have changed: no result is current."""
        self.clock.current = Outputs.NOTHING

    @abstractmethod
    def values(self, *names: str, copy: bool = True) -> list[Any]:
        """``position``, ``velocity`` and ``acceleration`` (N, D), ``mass`` and ``potential`` (N,), in the dtype of the
        state; on the host columns that were added too.

        All requested moves have been made. The potential is defined only after ``Outputs.POTENTIAL``. They are copies on the
        host; without ``copy`` they are the state's own, where they are: NumPy arrays, or arrays on the GPU with
        ``__cuda_array_interface__``. Call :meth:`invalidate` after changing them.
        """

    def add(self, *columns: Column, values: np.ndarray | None = None) -> None:
        """Add columns of zeros, or of ``values`` from the host, which become part of checkpoints. Columns that exist already
        stay as they are."""
        precision = self.dtype.name  # NumPy makes this text anew each time
        for column in columns:
            real = column.real(precision)
            if column.name not in self._columns:
                self._columns[column.name] = column
                zeros = np.zeros(column.shape(self.count, self.dimensions), real)
                setattr(self, column.name, self._allocate(zeros))
            if values is not None:
                self._from_host(np.ascontiguousarray(values, real), getattr(self, column.name))

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a bit-exact resume needs, in the state's precision and layout, as copies on the host."""
        self.progress.wait()
        saved = {name: self._to_host(getattr(self, name)) for name, column in self._columns.items() if column.saved}
        return saved | {"current": np.array([self.clock.current], np.uint8)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the arrays that :meth:`arrays` returned."""
        for name, column in self._columns.items():
            if column.saved:
                self._from_host(arrays[name], getattr(self, name))
        self.clock.current = _current(arrays)

    @abstractmethod
    def _allocate(self, zeros: np.ndarray) -> Any:
        """A column of zeros, on the host or the device."""

    @abstractmethod
    def _to_host(self, array: Any) -> np.ndarray: ...

    @abstractmethod
    def _from_host(self, source: np.ndarray, array: Any) -> None: ...


def _current(arrays: dict[str, np.ndarray]) -> Outputs:
    """The results that are current in a checkpoint. (nbody 0.1 stored two numbers, ``fresh``.)"""
    if "current" in arrays:
        return Outputs(int(arrays["current"][0]))
    fresh, potential = map(int, arrays["fresh"])
    return (Outputs.ACCELERATION if fresh else Outputs.NOTHING) | (Outputs.NOTHING, Outputs.ENERGY, Outputs.POTENTIAL)[
        potential
    ]
