"""Recorded frames on their way from the state to the file: how many there may be, and what one holds."""

import numpy as np

MOST_PER_BLOCK, BLOCK_BYTES, BLOCKS = 16, 16 << 20, 4
"""At most so many frames per block, and bytes per block (or one frame); and the number of blocks: one is written, one
arrives, one is computed and one waits, so that nobody waits for it."""

SIDES = 2
"""Blocks of frames for which a device has room: one is filled while the other is copied to the host."""


def _itemsize(precision: str) -> int:
    return 4 if precision == "float32" else 8


def frame_bytes(particles: int, precision: str) -> int:
    """Bytes of a recorded frame: three columns of position and of velocity, in two dimensions too."""
    return particles * 6 * _itemsize(precision)


def frames_per_block(particles: int, precision: str) -> int:
    """How many frames a run computes and hands on together where every step is recorded: many frames of a small state, so
    that Python's part is small; one frame of a large state, whose frames are large and whose steps take long."""
    return max(1, min(MOST_PER_BLOCK, BLOCK_BYTES // frame_bytes(particles, precision)))


def bytes_in_transit(particles: int, precision: str) -> int:
    """Host memory of the frames between the steps that made them and the file."""
    return BLOCKS * frames_per_block(particles, precision) * frame_bytes(particles, precision)


class Snapshot:
    """The state at one moment, on its way to the host.

    Attributes, to be read between :meth:`wait` and :meth:`release`:
        position, velocity: (N, 3), in the state's precision, C-contiguous: as a recording stores them; z = 0 in 2-D.
        sums: (SUMS,) float64, see :mod:`nbody.state.sums`.
    """

    position: np.ndarray
    velocity: np.ndarray
    sums: np.ndarray

    def __init__(self, position: np.ndarray, velocity: np.ndarray, sums: np.ndarray) -> None:
        self.position, self.velocity, self.sums = position, velocity, sums

    def arrived(self) -> bool:
        """True if :meth:`wait` would return at once."""
        return True

    def wait(self) -> "Snapshot":
        """Itself, once all of it has arrived."""
        return self

    def release(self) -> None:
        """Declare that it is not read any more; its memory may then be used again."""
