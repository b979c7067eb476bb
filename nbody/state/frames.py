"""Recorded frames on their way from the state to the file: their size, and how many there may be."""

from collections.abc import Mapping

import numpy as np

MOST_PER_BLOCK, BLOCK_BYTES, BLOCKS = 16, 16 << 20, 4
"""The most frames per block, the most bytes per block (at least one frame), and the number of blocks: one is written to the
file, one is copied to the host, one is computed, and a spare one avoids waits."""

LARGE_BYTES = 256 << 20
"""A larger frame has one place on the device: a second one would take a ninth of a run's memory there. (One H200, 524288
bodies, frames of 13 MB, ``gpu-tree``, every step recorded: 9.8 ms per step with one place, 7.2 with two.)"""


def itemsize(precision: str) -> int:
    """Bytes per number of a state in ``float32``, ``mixed`` or ``float64``."""
    return 4 if precision == "float32" else 8


def frame_bytes(particles: int, precision: str) -> int:
    """Bytes of a recorded frame: three columns of position and three of velocity, in 2-D too."""
    return particles * 6 * itemsize(precision)


COLUMNS = ("potential", "density")
"""What frames may bring for each body, in float64: the potential φ per unit mass, and the local density of
:mod:`nbody.diagnostics.density`."""


def frames_per_block(particles: int, precision: str) -> int:
    """The number of frames that a run computes and passes on together if every step is recorded: many frames of a small
    state, to reduce Python's overhead; one frame of a large state."""
    return max(1, min(MOST_PER_BLOCK, BLOCK_BYTES // frame_bytes(particles, precision)))


def sides(particles: int, precision: str) -> int:
    """Blocks of frames on the device: one is filled while the other is copied to the host; or only one, if a frame is large:
    it is copied during the next step, and filled after it."""
    return 1 if frame_bytes(particles, precision) > LARGE_BYTES else 2


def bytes_in_transit(particles: int, precision: str) -> int:
    """Host memory, in bytes, of the frames that are computed but not yet in the file."""
    return BLOCKS * frames_per_block(particles, precision) * frame_bytes(particles, precision)


class Snapshot:
    """The state at one moment, on its way to the host.

    Attributes, to be read between :meth:`wait` and :meth:`release`:
        position, velocity: (N, 3), in the state's precision, C-contiguous, as stored in a recording; z = 0 in 2-D.
        sums: (SUMS,) float64, see :mod:`nbody.state.sums`.
        left: the rows of bodies that are left after mergers.
        columns: (N,) float64 each, by name: what :meth:`nbody.state.State.send_with_frames` asked for, if it is known.
    """

    position: np.ndarray
    velocity: np.ndarray
    sums: np.ndarray
    left: np.ndarray | None = None

    columns: Mapping[str, np.ndarray]

    def __init__(
        self,
        position: np.ndarray,
        velocity: np.ndarray,
        sums: np.ndarray,
        columns: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.position, self.velocity, self.sums, self.columns = position, velocity, sums, columns or {}

    def arrived(self) -> bool:
        """True if :meth:`wait` would return at once."""
        return True

    def wait(self) -> "Snapshot":
        """Wait until all of it has arrived; returns itself."""
        return self

    def release(self) -> None:
        """Declare that it is no longer read; its memory may be reused."""
