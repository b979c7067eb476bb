"""Where the particles are during a run: in the computer's memory, or on a GPU from the first step to the last.

A :class:`State` holds named columns (positions, velocities, accelerations …) in the engine's precision, the time, and the
moves that integrators are made of: kick, drift, and the lecture's Taylor drift. Only snapshots, forces and arrays that
somebody asks for are copied back to the host.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

import numpy as np

from nbody.particles import Particles
from nbody.state.columns import Column
from nbody.state.frames import BLOCKS, SIDES, Snapshot, bytes_in_transit, frame_bytes, frames_per_block
from nbody.state.want import Want

__all__ = [
    "BLOCKS", "SIDES", "Column", "Snapshot", "State", "Want",
    "bytes_in_transit", "frame_bytes", "frames_per_block", "itemsize",
]  # fmt: skip


def itemsize(precision: str) -> int:
    """Bytes per number of a state in ``float32``, ``mixed`` or ``float64``."""
    return 4 if precision == "float32" else 8


class State(ABC):
    """N particles in D dimensions; ``dtype`` is float32 or float64.

    Attributes:
        step: steps made since time :attr:`origin`.
        time: the time of the positions and velocities, in the scenario's units, float64.
        origin: the time of step 0.
        current: what belongs to the positions. Engines add to it, moves of the positions clear it; see
            :meth:`nbody.forces.engine.Engine.evaluate`.
        workspace: buffers and plans of the engine that loaded the state. They belong to the state, so that one engine
            may serve several states.
        watch: called with :attr:`computed` while a force evaluation goes on; an exception that it raises ends the
            evaluation, and leaves the accelerations undefined.
        requested, computed: interactions that were requested, and that were computed, while there was a watch.
    """

    COLUMNS: ClassVar[tuple[Column, ...]]
    """The columns of every state of this kind; integrators may :meth:`add` others."""

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        self.count = particles.count
        self.dimensions = particles.dimensions
        self.dtype = np.dtype(dtype)
        self.step = 0
        self.time = self.origin = float(particles.time)
        self.current = Want.NOTHING
        self.workspace: Any = None
        self.watch: Callable[[int], None] | None = None
        self.requested = self.computed = 0
        self._columns = {column.name: column for column in self.COLUMNS}
        for column in self.COLUMNS:
            setattr(self, column.name, self._allocate(column))

    def report(self, interactions: int) -> None:
        """Called by an engine that has finished a piece of a force evaluation, or has launched it on the device.

        On a device this waits until little more than that piece is left to do. So a run can be stopped soon whatever N
        is, and the device always has work.
        """
        self.requested += interactions
        self._add_computed(interactions)

    def _add_computed(self, interactions: int) -> None:
        self.computed += interactions
        if self.watch is not None:
            self.watch(self.computed)

    # --- Moves ---

    def kick(self, dt: float) -> None:
        """v += a dt."""
        self._kick(self.dtype.type(dt))

    def drift(self, dt: float) -> None:
        """x += v dt. The accelerations are out of date afterwards."""
        self._drift(self.dtype.type(dt))
        self.invalidate()

    def drift_taylor(self, dt: float) -> None:
        """x += v dt + a dt²/2, the lecture's position update, in float32 rounded once. The accelerations are out of date
        afterwards, but keep their values: the kick that follows uses them."""
        self._drift_taylor(self.dtype.type(dt), self.dtype.type(0.5 * dt * dt))
        self.invalidate()

    def invalidate(self) -> None:
        """Declare that the positions have changed: nothing computed belongs to them any more."""
        self.current = Want.NOTHING

    def repeat(self, step: Callable[[], None], count: int, key: Hashable) -> None:
        """Call ``step`` ``count`` times. A device may record the call once, under ``key``, and replay it: calls with the
        same key do the same, here and in :meth:`snapshots`."""
        for _ in range(count):
            step()

    @abstractmethod
    def _kick(self, dt) -> None: ...

    @abstractmethod
    def _drift(self, dt) -> None: ...

    @abstractmethod
    def _drift_taylor(self, dt, half_dt2) -> None: ...

    # --- What leaves the state ---

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The state at this moment, whatever later steps do. The potential energy must be current."""

    def snapshots(self, step: Callable[[], None], count: int, key: Hashable) -> list[Snapshot]:
        """The states after each of ``count`` calls of ``step``, at most :func:`frames_per_block`. A device may record all
        of it once, under ``key``, and replay it."""
        found = []
        for _ in range(count):
            step()
            found.append(self.snapshot())
        return found

    @abstractmethod
    def forces(self) -> tuple[np.ndarray, np.ndarray]:
        """Copies on the host of the accelerations (N, D) and of the potential per unit mass (N,); the latter is defined
        only after ``Want.POTENTIAL``."""

    def synchronize(self, soon: bool = False) -> None:  # noqa: B027  (nothing to wait for on the host)
        """Return when the device has finished its work. Signals are handled meanwhile, except if the work is ``soon``
        done."""

    # --- Columns ---

    def add(self, *columns: Column) -> None:
        """Add columns of zeros, which checkpoints then keep too; columns that exist already are kept as they are."""
        for column in columns:
            if column.name not in self._columns:
                self._columns[column.name] = column
                setattr(self, column.name, self._allocate(column))

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a bit-exact resume needs, in the state's own precision and layout, as copies on the host."""
        self.synchronize()
        kept = {name: self._to_host(getattr(self, name)) for name, column in self._columns.items() if column.kept}
        return kept | {"current": np.array([self.current], np.uint8)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back the arrays that :meth:`arrays` gave."""
        for name, column in self._columns.items():
            if column.kept:
                self._from_host(arrays[name], getattr(self, name))
        self.current = _current(arrays)

    @classmethod
    def bytes_needed(cls, particles: int, dimensions: int, precision: str, added: tuple[Column, ...] = ()) -> int:
        """Memory of a state in bytes, where it is. ``added``: columns that the integrator adds."""
        return sum(column.bytes(particles, dimensions, precision) for column in (*cls.COLUMNS, *added))

    @classmethod
    def checkpoint_arrays(
        cls, particles: int, dimensions: int, precision: str, added: tuple[Column, ...] = ()
    ) -> dict[str, np.ndarray]:
        """Arrays with the names, dtypes and shapes of :meth:`arrays`, without memory of their own: their size is that of
        a checkpoint."""
        kept = [column for column in (*cls.COLUMNS, *added) if column.kept]
        shapes = {column.name: column.empty(particles, dimensions, precision) for column in kept}
        return shapes | {"current": np.zeros(1, np.uint8)}

    def _empty(self, column: Column) -> np.ndarray:
        return column.empty(self.count, self.dimensions, self.dtype.name)

    @abstractmethod
    def _allocate(self, column: Column) -> Any:
        """An array of zeros for a column, where the state is."""

    @abstractmethod
    def _to_host(self, array: Any) -> np.ndarray: ...

    @abstractmethod
    def _from_host(self, source: np.ndarray, array: Any) -> None: ...


def _current(arrays: dict[str, np.ndarray]) -> Want:
    """What belongs to the positions of a checkpoint. (nbody 0.1 kept two numbers, ``fresh``.)"""
    if "current" in arrays:
        return Want(int(arrays["current"][0]))
    fresh, potential = map(int, arrays["fresh"])
    return (Want.NOTHING, Want.ACCELERATION)[fresh] | (Want.NOTHING, Want.ENERGY, Want.POTENTIAL)[potential]
