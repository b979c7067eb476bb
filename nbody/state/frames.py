"""Recorded frames on their way from the state to the file: their size, and how many there may be."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from nbody.particles import Particles
from nbody.state.clock import StateClock
from nbody.state.outputs import Outputs

Array = np.ndarray

MOST_PER_BLOCK, BLOCK_BYTES, BLOCKS = 16, 16 << 20, 4
"""The most frames per block, the most bytes per block (at least one frame), and the number of blocks: one is written to the
file, one is copied to the host, one is computed, and a spare one avoids waits."""

LARGE_BYTES = 256 << 20
"""A larger frame has one buffer on the device: a second one would take a ninth of a run's memory there. (One H200, 524288
bodies, frames of 13 MB, ``gpu-tree``, every step recorded: 9.8 ms per step with one buffer, 7.2 with two.)"""


def itemsize(precision: str) -> int:
    """Bytes per number of a state in ``float32``, ``mixed`` or ``float64``."""
    return 4 if precision == "float32" else 8


def frame_bytes(particles: int, precision: str) -> int:
    """Bytes of a recorded frame: three columns of position and three of velocity, in 2-D too."""
    return particles * 6 * itemsize(precision)


EXTRAS = ("potential", "density")
"""What frames may bring for each body, in float64: the potential φ per unit mass, and the local density of
:func:`nbody.diagnostics.local_density`."""


def frames_per_block(particles: int, precision: str) -> int:
    """The number of frames that a run computes and passes on together if every step is recorded: many frames of a small
    state, to reduce Python's overhead; one frame of a large state."""
    return max(1, min(MOST_PER_BLOCK, BLOCK_BYTES // frame_bytes(particles, precision)))


def device_blocks(particles: int, precision: str) -> int:
    """Blocks of frames on the device: one is filled while the other is copied to the host; or only one, if a frame is large:
    it is copied during the next step, and filled after it."""
    return 1 if frame_bytes(particles, precision) > LARGE_BYTES else 2


def bytes_in_transit(particles: int, precision: str) -> int:
    """Host memory, in bytes, of the frames that are computed but not yet in the file."""
    return BLOCKS * frames_per_block(particles, precision) * frame_bytes(particles, precision)


class Slots(NamedTuple):
    """The bodies that are there after mergers and other changes, among the slots of a run.

    Attributes:
        rows: (S,) the row in which the body of each slot is now: its own, or that of the body with which it merged; -1 if
            there is none.
        left: (n,) the slots of the bodies that are there.
        bodies: these n, where they appeared.
    """

    rows: Array
    left: Array
    bodies: Particles

    def spread(self, values: Array) -> Array:
        """The rows (..., n, D) of a state as rows of all slots, (..., S, D); NaN where there is no body."""
        found: Array = values[..., self.rows, :]
        if self.rows.min() < 0:
            found[..., self.rows < 0, :] = np.nan
        return found


@dataclass(eq=False)
class Frame:
    """The bodies at one moment, on their way from a state to the file, or from a file.

    Those of a state on a GPU arrive later: all but ``step`` and ``time`` may be read between :meth:`wait` and
    :meth:`release`.

    Attributes:
        step: the number of steps since the start.
        time: in the scenario's unit.
        position: (N, D) in the recording's precision, D is 2 or 3. Those of a state are (N, 3) and C-contiguous, with z = 0
            in 2-D; a body that has merged is where the other one is,
            and one that is not there is at NaN.
        velocity: (N, D), likewise.
        observables: names of the header's observables to a float or a (width,) array; missing ones are stored as NaN.
        sums: (SUMS,) float64, see :mod:`nbody.state.sums`; empty in a frame from a file.
        extras: (N,) float64 each, by name: what :meth:`StateFrames.request` asked for, if it is known.
        slots: the bodies that are there; None before the first merger or change.
    """

    step: int
    time: float
    position: Array
    velocity: Array
    observables: Mapping[str, float | Array] = field(default_factory=dict)
    sums: Array = field(default_factory=lambda: np.empty(0))
    extras: Mapping[str, Array] = field(default_factory=dict)
    slots: Slots | None = None

    def arrived(self) -> bool:
        """True if :meth:`wait` would return at once."""
        return True

    def wait(self) -> "Frame":
        """Wait until all of it has arrived; returns itself."""
        return self

    def release(self) -> None:
        """Declare that it is no longer read; its memory may be reused."""


class StateFrames(ABC):
    """Makes snapshots of one state.

    Attributes:
        outputs: what :meth:`snapshot` needs to be current.
        extras: the names of :data:`EXTRAS` that snapshots bring.
        slots: the bodies that are there after changes since the beginning of the recording; None before.
        bodies: those of the state, where they were at some time; None if nobody has said.
    """

    offered: tuple[str, ...] = ("potential",)
    """The :data:`EXTRAS` that snapshots of this state can bring."""

    def __init__(self, clock: StateClock) -> None:
        self._clock = clock
        self.outputs, self.extras = Outputs.ENERGY, tuple[str, ...]()
        self.slots: Slots | None = None
        self.bodies: Particles | None = None

    def request(self, names: Collection[str], particles: Particles) -> None:
        """Let snapshots bring :data:`EXTRAS` of the bodies, which are ``particles`` now, except what is faster to compute on
        the host. Call this before the first snapshot."""
        self.extras = tuple(name for name in self.offered if name in names)
        if "potential" in self.extras:
            self.outputs = Outputs.POTENTIAL

    @abstractmethod
    def snapshot(self) -> Frame:
        """A copy of the state at this moment. :attr:`outputs` must be current."""

    def snapshots(self, make: Callable[[Sequence[Any]], None], count: int, key: Hashable) -> list[Frame]:
        """``count`` frames, at most :func:`frames_per_block`. ``make`` makes the steps to several frames, one per item of
        its argument, and the move ``pack`` with it if it is not None. A device may record all of it once, under ``key`` (see
        :class:`nbody.state.moves.Repeats`)."""
        found = []
        for _ in range(count):
            make([None])
            found.append(self.snapshot())
        return found
