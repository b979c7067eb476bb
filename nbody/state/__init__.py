"""Where the particles live while a run goes on: on the host, or on a GPU from the first step to the last.

A :class:`State` holds positions, velocities and accelerations in the engine's precision and knows the three moves that
integrators are made of: kick, drift, and the Taylor drift of the lecture. Only snapshots, and
who asks for forces or arrays, bring anything back to the host.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import Any

import numpy as np

from nbody.particles import Particles

MOST_AT_A_TIME, BYTES_AT_A_TIME, BLOCKS = 16, 16 << 20, 4
"""Frames of a block at most, bytes of it (or one frame), and how many blocks there are: one is written, one arrives, one is
made, and one waits, so that nobody does."""

SIDES = 2
"""Blocks of frames that there is room for on a device: one is made while the other leaves."""


def itemsize(precision: str) -> int:
    """Bytes of a number of a state."""
    return 4 if precision == "float32" else 8


def frame_bytes(particles: int, precision: str) -> int:
    """Bytes of a recorded frame: three columns of position and of velocity, in two dimensions too."""
    return particles * 6 * itemsize(precision)


def frames_at_a_time(particles: int, precision: str) -> int:
    """How many frames a run makes and hands on at a time where every step is recorded: as many of a small state as
    make Python's part small, and one of a large one, of which a frame is much memory and a step takes long."""
    return max(1, min(MOST_AT_A_TIME, BYTES_AT_A_TIME // frame_bytes(particles, precision)))


def bytes_on_the_way(particles: int, precision: str) -> int:
    """Host memory of the frames between the steps that made them and the file."""
    return BLOCKS * frames_at_a_time(particles, precision) * frame_bytes(particles, precision)


class Potential(IntEnum):
    """How much of the potential belongs to the positions, or is to be computed for them; each includes those before it."""

    NONE = 0
    ENERGY = 1
    """Numbers q_i with which W = ½ Σ m_i q_i is the potential energy. Where each pair is met once, they cost less than φ:
    the whole term of a pair goes to one of the two bodies."""
    OF_EACH = 2
    """The potential of each body per unit mass, φ_i = -G Σ_{j≠i} m_j u_ij. These are such numbers q_i."""


class Snapshot:
    """One moment of a state on its way to the host.

    Attributes, to be looked at between :meth:`wait` and :meth:`release`:
        position, velocity: (N, 3), in the state's precision, C-contiguous: as a recording stores them; z = 0 in 2-D.
        sums: (SUMS,) float64, see :mod:`nbody.state.sums`.
    """

    position: np.ndarray
    velocity: np.ndarray
    sums: np.ndarray

    def __init__(self, position: np.ndarray, velocity: np.ndarray, sums: np.ndarray) -> None:
        self.position, self.velocity, self.sums = position, velocity, sums

    def arrived(self) -> bool:
        """True if :meth:`wait` would not wait."""
        return True

    def wait(self) -> "Snapshot":
        """Itself, once all of it has arrived."""
        return self

    def release(self) -> None:
        """Say that it is no longer looked at; its memory may then be used again."""


class State(ABC):
    """N particles in D dimensions somewhere; ``dtype`` is float32 or float64.

    ``fresh`` is True while the accelerations belong to the positions (a drift makes them stale), and ``has_potential``
    says how much of the potential does too. Engines set both; see :meth:`nbody.forces.engine.Engine.evaluate`.

    Attributes:
        workspace: what the engine that loaded the state keeps beside it: buffers, and a plan of the work. They belong to
            the state, so that one engine may serve several.
        watch: called while a force evaluation goes on, with ``computed``; what it raises ends the evaluation, and leaves
            the accelerations without meaning.
        asked, computed: interactions that were asked for, and that were computed, while there was a watch.
    """

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        self.count = particles.count
        self.dimensions = particles.dimensions
        self.dtype = np.dtype(dtype)
        self.fresh = False
        self.has_potential = Potential.NONE
        self.workspace: Any = None
        self.watch: Callable[[int], None] | None = None
        self.asked = self.computed = 0

    def report(self, interactions: int) -> None:
        """An engine says that it has done a further piece of a force evaluation, or has asked the device for it.

        On a device this waits until little more than that piece is left to do. So what is queued ends soon, whatever N,
        when a run is stopped; and the device is never without work.
        """
        self.asked += interactions
        self._done(interactions)

    def _done(self, interactions: int) -> None:
        """So many more interactions have been computed."""
        self.computed += interactions
        if self.watch is not None:
            self.watch(self.computed)

    def kick(self, dt: float) -> None:
        """v += a dt."""
        self._kick(self.dtype.type(dt))

    def drift(self, dt: float) -> None:
        """x += v dt. The accelerations are stale afterwards."""
        self._drift(self.dtype.type(dt))
        self._make_stale()

    def drift_taylor(self, dt: float) -> None:
        """x += v dt + a dt²/2, the lecture's position update. The accelerations are stale afterwards, but kept: the
        kick that follows uses the old ones."""
        self._drift_taylor(self.dtype.type(dt), self.dtype.type(0.5 * dt * dt))
        self._make_stale()

    def _make_stale(self) -> None:
        self.fresh, self.has_potential = False, Potential.NONE

    def repeat(self, step: Callable[[], None], count: int, key: Hashable) -> None:
        """Call ``step`` so many times. A device may record it once, under ``key``, and replay it: what has the same key does
        the same, here and in :meth:`snapshots`."""
        for _ in range(count):
            step()

    @abstractmethod
    def _kick(self, dt) -> None: ...

    @abstractmethod
    def _drift(self, dt) -> None: ...

    @abstractmethod
    def _drift_taylor(self, dt, half_dt2) -> None: ...

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The moment as it is now, whatever later steps do; the potential's energy at least must belong to the positions."""

    def snapshots(self, step: Callable[[], None], count: int, key: Hashable) -> list[Snapshot]:
        """The moments after each of ``count`` calls of ``step``, :func:`frames_at_a_time` at most. A device may record
        all of it once, under ``key``, and replay it."""
        found = []
        for _ in range(count):
            step()
            found.append(self.snapshot())
        return found

    @abstractmethod
    def forces(self) -> tuple[np.ndarray, np.ndarray]:
        """The accelerations (N, D) and the potential per unit mass (N,) on the host, as copies; the latter only
        after it was asked for (``Potential.OF_EACH``)."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Everything a bit-exact resume needs, in the state's own precision and layout, on the host."""

    @abstractmethod
    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back what :meth:`arrays` gave."""

    def synchronize(self, soon: bool = False) -> None:  # noqa: B027  (nothing to wait for on the host)
        """Return when all that was asked of the device is done; signals are answered meanwhile, unless that is ``soon``."""
