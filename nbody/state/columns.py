"""The columns of a state: arrays, checkpoints and memory estimates are all derived from them."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np


class Column(NamedTuple):
    """One array of a state, with a row per particle.

    Attributes:
        name: the attribute of the state.
        width: numbers per particle: 4 on a GPU; ``"D"`` for the dimensions of space; 0 for one number without a second
            axis.
        saved: True if it is part of checkpoints. (Masses of a host state are constant, and scratch space has no meaning.)
        dtype: its dtype; empty for the dtype of the state.
    """

    name: str
    width: int | str
    saved: bool = True
    dtype: str = ""

    def shape(self, particles: int, dimensions: int) -> tuple[int, ...]:
        """(N,), (N, D) or (N, width)."""
        width = dimensions if self.width == "D" else int(self.width)
        return (particles, width) if width else (particles,)

    def real(self, precision: str) -> np.dtype:
        """The dtype of its numbers for a run in ``precision``."""
        return np.dtype(self.dtype or ("float32" if precision == "float32" else "float64"))

    def bytes(self, particles: int, dimensions: int, precision: str) -> int:
        """Its memory in bytes."""
        return math.prod(self.shape(particles, dimensions)) * self.real(precision).itemsize

    def empty(self, particles: int, dimensions: int, precision: str) -> np.ndarray:
        """A read-only array of zeros of its shape and dtype that takes no memory."""
        return np.broadcast_to(np.zeros((), self.real(precision)), self.shape(particles, dimensions))


def bytes_of(columns: Iterable[Column], particles: int, dimensions: int, precision: str) -> int:
    """Memory of columns in bytes, on the host or the device."""
    return sum(column.bytes(particles, dimensions, precision) for column in columns)


def checkpoint_arrays(columns: Iterable[Column], particles: int, dimensions: int, precision: str) -> dict[str, np.ndarray]:
    """Arrays with the names, dtypes and shapes of :meth:`nbody.state.State.arrays` that take no memory: they give the size
    of a checkpoint."""
    shapes = {column.name: column.empty(particles, dimensions, precision) for column in columns if column.saved}
    return shapes | {"current": np.zeros(1, np.uint8)}
