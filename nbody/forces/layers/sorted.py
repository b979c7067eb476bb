"""Bodies with mass first: what engines leave out of their sums, and how a state is sorted for them and back."""

import copy
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from nbody.state import Outputs
from nbody.state.host import HostState

FEWEST = 1 / 4
"""From this fraction of bodies without mass on they are left out. With a fraction f, the pairs of the others and the rows of
these are 1 - f² of all pairs."""


def acting(mass: np.ndarray) -> int:
    """M: the bodies after the first M have no mass, and are many; N if there are few, or no others."""
    massive = np.flatnonzero(mass)
    first = int(massive[-1]) + 1 if len(massive) else 0
    return first if 0 < first <= (1 - FEWEST) * len(mass) else len(mass)


class Sorted(ABC):
    """The bodies of a state in another order, those with mass first.

    Args:
        state: in the user's order.
        order: (N,) the bodies in the new one.

    Attributes:
        state: in the new order, with arrays of its own for what engines read and write, and everything else of the other.
        index: (N,) the new row of each body.
    """

    def __init__(self, state: Any, order: np.ndarray) -> None:
        self.index = np.empty_like(order)
        self.index[order] = np.arange(len(order))
        self.state = copy.copy(state)

    @abstractmethod
    def gather(self, state: Any, outputs: Outputs) -> None:
        """Copy what an engine reads from the state in the user's order."""

    @abstractmethod
    def scatter(self, state: Any, outputs: Outputs, targets: Any, accelerations: bool) -> None:
        """Copy what an engine has computed of the ``targets``, or (None) of all bodies, to the state in the user's order:
        the potential if ``outputs`` has it, and accelerations if they are new."""


class HostSorted(Sorted):
    """In host memory."""

    def __init__(self, state: HostState, order: np.ndarray) -> None:
        super().__init__(state, order)
        self._order = order
        self.state.mass = state.mass[order]
        for name in ("position", "velocity", "acceleration", "potential"):
            setattr(self.state, name, np.zeros_like(getattr(state, name)))
        if hasattr(state, "softening2"):
            self.state.softening2 = state.softening2[order]

    def gather(self, state: Any, outputs: Outputs) -> None:
        np.take(state.position, self._order, axis=0, out=self.state.position)
        if Outputs.JERK in outputs:
            np.take(state.velocity, self._order, axis=0, out=self.state.velocity)
            self.state.jerk = np.zeros_like(state.jerk)

    def scatter(self, state: Any, outputs: Outputs, targets: Any, accelerations: bool) -> None:
        to, rows = (self._order, slice(None)) if targets is None else (targets, self.index[targets])
        if accelerations:
            state.acceleration[to] = self.state.acceleration[rows]
        if Outputs.JERK in outputs:
            state.jerk[to] = self.state.jerk[rows]
        if Outputs.ENERGY in outputs:
            state.potential[to] = self.state.potential[rows]
