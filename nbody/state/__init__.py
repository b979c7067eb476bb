"""The particles during a run: in host memory, or on a GPU from the first step to the last.

A :class:`State` holds named columns (positions, velocities, accelerations …) in the engine's precision, the time, and the
moves of which integrators consist: kick, drift, and the lecture's Taylor drift. Only snapshots, forces and arrays that are
requested are copied from a GPU to the host.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable
from typing import Any, ClassVar

import numpy as np

from nbody.particles import Particles
from nbody.state.columns import Column
from nbody.state.frames import BLOCKS, Snapshot, bytes_in_transit, frame_bytes, frames_per_block, itemsize, sides
from nbody.state.want import Want

__all__ = [
    "BLOCKS", "Column", "Snapshot", "State", "Want",
    "bytes_in_transit", "frame_bytes", "frames_per_block", "itemsize", "sides",
]  # fmt: skip


class State(ABC):
    """N particles in D dimensions; ``dtype`` is float32 or float64.

    Attributes:
        step: steps made since time :attr:`origin`.
        time: the time of the positions and velocities, in the scenario's units, float64.
        now: the same during a step too, when only some of its moves are made; setting ``time`` sets it.
        time_dependent: True if forces depend on the time itself.
        origin: the time of step 0.
        dt: the length of steps that are all the same.
        made, drifts: steps that ``step`` does not count yet, and the drifts since the last step.
        current: the results that belong to the present positions. Engines add to it, moves of the positions clear it; see
            :meth:`nbody.forces.engine.Engine.evaluate`.
        workspace: buffers and plans of the engine that loaded the state. They belong to the state, so that one engine
            may work with several states.
        watch: called with :attr:`computed` during a force evaluation; an exception that it raises ends the evaluation,
            and leaves the accelerations undefined.
        slots: after mergers the row in which each body of the run's beginning is now; None before.
        frame_want: what :meth:`snapshot` needs to be current.
        frame_columns: the names of the columns that snapshots bring.
        requested, computed: interactions that were requested, and that were computed, while a watch was set.
    """

    COLUMNS: ClassVar[tuple[Column, ...]]
    """The columns of every state of this kind; integrators may :meth:`add` others."""

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        self.count = particles.count
        self.slots: np.ndarray | None = None
        self.dimensions = particles.dimensions
        self.dtype = np.dtype(dtype)
        self.step = 0
        self.dt = 0.0
        self.time = self.origin = float(particles.time)
        self.time_dependent = False
        self.current = Want.NOTHING
        self.frame_want, self.frame_columns = Want.ENERGY, tuple[str, ...]()
        self.workspace: Any = None
        self.watch: Callable[[int], None] | None = None
        self.requested = self.computed = 0
        self._columns = {column.name: column for column in self.COLUMNS}
        for column in self.COLUMNS:
            setattr(self, column.name, self._allocate(column))

    @property
    def time(self) -> float:
        """The time of the positions and velocities between steps."""
        return self._time

    @time.setter
    def time(self, time: float) -> None:
        self._time = self.now = float(time)
        self.made, self.drifts = 0, list[float]()

    def begin_steps(self, dt: float) -> None:
        """Declare that the next steps have the length ``dt``."""
        self.dt, self.made, self.drifts = dt, 0, []

    def end_steps(self, steps: int = 1) -> None:
        """Declare that one or more steps are complete, which ``step`` does not count yet."""
        self.made, self.drifts = self.made + steps, []
        self.now = self.origin + (self.step + self.made) * self.dt  # (a sum of steps would accumulate rounding errors)

    def _pass(self, dt: float) -> None:
        """Let time pass with the positions."""
        self.now += dt
        self.drifts.append(dt)
        self.invalidate()

    def report(self, interactions: int) -> None:
        """Called by an engine when it has finished a piece of a force evaluation, or has launched it on the device.

        On a device this waits until little more than that piece is left to compute. So a run can be stopped soon for any N,
        and the device always has work.
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
        self._pass(dt)

    def drift_taylor(self, dt: float) -> None:
        """x += v dt + a dt²/2, the lecture's position update, in float32 rounded once. The accelerations are out of date
        afterwards, but keep their values: the kick that follows uses them."""
        self._drift_taylor(self.dtype.type(dt), self.dtype.type(0.5 * dt * dt))
        self._pass(dt)

    def invalidate(self) -> None:
        """Declare that the positions have changed: no result is current."""
        self.current = Want.NOTHING

    def repeat(self, step: Callable[[], None], count: int, key: Hashable) -> None:
        """Call ``step`` ``count`` times. A device may record the call once, under ``key``, and replay it: calls with the
        same key do the same, here and in :meth:`snapshots`. With None no two calls do the same."""
        for _ in range(count):
            step()

    @abstractmethod
    def _kick(self, dt) -> None: ...

    @abstractmethod
    def _drift(self, dt) -> None: ...

    @abstractmethod
    def _drift_taylor(self, dt, half_dt2) -> None: ...

    # --- Results ---

    def send_with_frames(self, names: Collection[str], particles: Particles) -> None:
        """Let snapshots bring columns (:data:`~nbody.state.frames.COLUMNS`) of the bodies, which are ``particles`` now.
        Call this before the first snapshot. A column that is faster to compute on the host is not brought."""
        self.frame_columns = tuple(name for name in self._offered_columns() if name in names)
        if "potential" in self.frame_columns:
            self.frame_want = Want.POTENTIAL

    def _offered_columns(self) -> tuple[str, ...]:
        """The columns that snapshots of this kind of state can bring."""
        return ("potential",)

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """A copy of the state at this moment. :attr:`frame_want` must be current."""

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
        """Copies on the host of the accelerations (N, D) and of the potential per unit mass (N,). The potential is defined
        only after ``Want.POTENTIAL``."""

    @abstractmethod
    def phase_space(self) -> tuple[np.ndarray, np.ndarray]:
        """Copies on the host of the positions and the velocities, (N, D) each, in the dtype of the state."""

    @abstractmethod
    def views(self) -> tuple[Any, Any]:
        """The positions and the velocities themselves, (N, D) each, where they are: NumPy arrays, or arrays on the GPU with
        ``__cuda_array_interface__``. All requested moves have been made. Call :meth:`invalidate` after changing them."""

    def synchronize(self, soon: bool = False) -> None:  # noqa: B027  (nothing to wait for on the host)
        """Return when the device has finished its work. Signals are handled meanwhile, unless ``soon`` (the work is almost
        done)."""

    # --- Columns ---

    def add(self, *columns: Column) -> None:
        """Add columns of zeros, which become part of checkpoints; columns that exist already stay as they are."""
        for column in columns:
            if column.name not in self._columns:
                self._columns[column.name] = column
                setattr(self, column.name, self._allocate(column))

    def fill(self, column: Column, values: np.ndarray) -> None:
        """Copy values from the host to a column, in its dtype."""
        self._from_host(np.ascontiguousarray(values, column.real(self.dtype.name)), getattr(self, column.name))

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a bit-exact resume needs, in the state's precision and layout, as copies on the host."""
        self.synchronize()
        saved = {name: self._to_host(getattr(self, name)) for name, column in self._columns.items() if column.saved}
        return saved | {"current": np.array([self.current], np.uint8)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the arrays that :meth:`arrays` returned."""
        for name, column in self._columns.items():
            if column.saved:
                self._from_host(arrays[name], getattr(self, name))
        self.current = _current(arrays)

    @classmethod
    def bytes_needed(cls, particles: int, dimensions: int, precision: str, added: tuple[Column, ...] = ()) -> int:
        """Memory of a state in bytes, on the host or the device. ``added``: columns that the integrator adds."""
        return sum(column.bytes(particles, dimensions, precision) for column in (*cls.COLUMNS, *added))

    @classmethod
    def checkpoint_arrays(
        cls, particles: int, dimensions: int, precision: str, added: tuple[Column, ...] = ()
    ) -> dict[str, np.ndarray]:
        """Arrays with the names, dtypes and shapes of :meth:`arrays` that take no memory: they give the size of a
        checkpoint."""
        saved = [column for column in (*cls.COLUMNS, *added) if column.saved]
        shapes = {column.name: column.empty(particles, dimensions, precision) for column in saved}
        return shapes | {"current": np.zeros(1, np.uint8)}

    def _empty(self, column: Column) -> np.ndarray:
        return column.empty(self.count, self.dimensions, self.dtype.name)

    @abstractmethod
    def _allocate(self, column: Column) -> Any:
        """An array of zeros for a column, on the host or the device."""

    @abstractmethod
    def _to_host(self, array: Any) -> np.ndarray: ...

    @abstractmethod
    def _from_host(self, source: np.ndarray, array: Any) -> None: ...


def _current(arrays: dict[str, np.ndarray]) -> Want:
    """The results that are current in a checkpoint. (nbody 0.1 stored two numbers, ``fresh``.)"""
    if "current" in arrays:
        return Want(int(arrays["current"][0]))
    fresh, potential = map(int, arrays["fresh"])
    return (Want.NOTHING, Want.ACCELERATION)[fresh] | (Want.NOTHING, Want.ENERGY, Want.POTENTIAL)[potential]
