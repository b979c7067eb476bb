"""A step in which bodies may touch. (Without Numba, which runs that look for no collisions need not import.)"""

from typing import NamedTuple, Protocol

import numpy as np


class Span(NamedTuple):
    """The bodies at the beginning and at the end of a step: positions and velocities (N, D) each, and the times. ``star``:
    they have moved on Kepler orbits about body 0 (:attr:`nbody.integrators.integrator.Integrator.star`)."""

    x0: np.ndarray
    v0: np.ndarray
    x1: np.ndarray
    v1: np.ndarray
    begin: float
    end: float
    star: bool = False


class Watcher(Protocol):
    """Says whether two bodies touch in a step."""

    @property
    def radii(self) -> np.ndarray:
        """(N,)."""

    def touching(self, span: Span) -> bool:
        """True if two bodies touch."""
