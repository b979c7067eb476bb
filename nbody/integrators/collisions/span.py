"""A step in which bodies may touch. (Without Numba, which runs that look for no collisions need not import.)"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np


class Encounter(NamedTuple):
    """Bodies that a scheme has moved by shorter steps within a step: contacts between them are looked for in those.

    Attributes:
        pairs: (P, 2) pairs i > j that have moved together.
        hurried: (N,) bodies that have passed the star: their paths are no cubics.
        times: (S, 2) the beginnings and ends of the shorter steps in which two of them touch, in units of the step.
        ends: (S, 4, 3, N) positions and velocities at the beginning, and at the end, up to a motion of all bodies together.
        members: (S, N) the bodies that make such a step.
        owners: (S,) the body without mass that makes it among copies of the others; 0 if there are no copies.
    """

    pairs: np.ndarray
    hurried: np.ndarray
    times: np.ndarray
    ends: np.ndarray
    members: np.ndarray
    owners: np.ndarray


class Span(NamedTuple):
    """The bodies at the beginning and at the end of a step: positions and velocities (N, D) each, and the times. ``star``:
    they have moved on Kepler orbits about body 0 (:class:`nbody.integrators.facts.SchemeFacts`). ``encounter``:
    those of them that have met. ``show``: lets the state be the bodies at a time within the step, and returns their
    positions, velocities and the number of steps that have begun; None if the scheme shows none."""

    x0: np.ndarray
    v0: np.ndarray
    x1: np.ndarray
    v1: np.ndarray
    begin: float
    end: float
    star: bool = False
    encounter: Encounter | None = None
    show: Callable[[float], tuple[np.ndarray, np.ndarray, int]] | None = None


class Watcher(Protocol):
    """Says whether two bodies touch in a step."""

    @property
    def radii(self) -> np.ndarray:
        """(N,)."""

    @property
    def changes(self) -> bool:
        """True if bodies that touch merge or become others."""

    @property
    def ends_steps(self) -> bool:
        """True if a step ends where two bodies touch, if the scheme can show the bodies then."""

    def touching(self, span: Span) -> bool:
        """True if two bodies touch."""
