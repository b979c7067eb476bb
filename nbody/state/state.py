"""The state: the bodies of a run in the memory in which an engine works, as named columns."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from nbody.errors import InputError
from nbody.particles import Particles
from nbody.state.clock import StateClock
from nbody.state.columns import Column
from nbody.state.frames import StateFrames
from nbody.state.moves import StateMoves
from nbody.state.outputs import Outputs
from nbody.state.progress import ForceProgress

ArrayT = TypeVar("ArrayT")
"""The type of a column: a NumPy array, or :class:`nbody.state.device.DeviceArray`."""


class State(ABC, Generic[ArrayT]):
    """N particles in D dimensions; ``dtype`` is float32 or float64.

    Attributes:
        clock: the step, the time, and which results are current.
        moves: moves the bodies, and repeats steps.
        frames: makes snapshots.
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
        self.clock.revision += 1

    @abstractmethod
    def values(self, *names: str, copy: bool = True, rows: np.ndarray | None = None) -> list[Any]:
        """``position``, ``velocity`` and ``acceleration`` (N, D), ``mass`` and ``potential`` (N,), in the dtype of the
        state; on the host columns that were added too.

        ``rows``: of some bodies, as copies. All requested moves have been made. The potential is defined only after
        ``Outputs.POTENTIAL``. They are copies on the host; without ``copy`` they are the state's own, where they are: NumPy
        arrays, or arrays on the GPU with ``__cuda_array_interface__``. Call :meth:`invalidate` after changing them.
        """

    def column(self, name: str) -> ArrayT:
        """A column by its name, where it is, without a copy."""
        found: ArrayT = getattr(self, name)
        return found

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
                self._from_host(np.ascontiguousarray(values, real), self.column(column.name))

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a bit-exact resume needs, in the state's precision and layout, as copies on the host."""
        self.progress.wait()
        saved = {name: self._to_host(self.column(name)) for name, column in self._columns.items() if column.saved}
        return saved | {"current": np.array([self.clock.current], np.uint8)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the arrays that :meth:`arrays` returned. Raises InputError: they are those of another version's scheme."""
        own = {column.name for column in self.COLUMNS}
        if missing := [name for name, each in self._columns.items() if each.saved and name not in own | arrays.keys()]:
            raise InputError(
                f"the recording is of an earlier version, whose scheme kept no {missing[0]!r}: repeat the run (nbody rerun)"
            )
        for name, column in self._columns.items():
            if column.saved:
                self._from_host(arrays[name], self.column(name))
        self.clock.current = _current(arrays)

    @abstractmethod
    def _allocate(self, zeros: np.ndarray) -> ArrayT:
        """A column of zeros, on the host or the device."""

    @abstractmethod
    def _to_host(self, array: ArrayT) -> np.ndarray: ...

    @abstractmethod
    def _from_host(self, source: np.ndarray, array: ArrayT) -> None: ...


def _current(arrays: dict[str, np.ndarray]) -> Outputs:
    """The results that are current in a checkpoint. (nbody 0.1 stored two numbers, ``fresh``.)"""
    if "current" in arrays:
        return Outputs(int(arrays["current"][0]))
    fresh, potential = map(int, arrays["fresh"])
    energies = Outputs.NOTHING, Outputs.ENERGY, Outputs.POTENTIAL
    return (Outputs.ACCELERATION if fresh else Outputs.NOTHING) | energies[potential]
