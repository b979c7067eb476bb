"""Bodies with mass first: what engines leave out of their sums, and how a state is sorted for them and back."""

import copy
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from nbody.forces.engine import Targets
from nbody.state import Outputs, State
from nbody.state.host import HostState

LEFT_OUT_FROM = 1 / 4
"""From this fraction of bodies without mass on they are left out. With a fraction f, the pairs of the others and the rows of
these are 1 - f² of all pairs."""


def acting(mass: np.ndarray) -> int:
    """M: the bodies after the first M have no mass, and are many; N if there are few, or no others."""
    massive = np.flatnonzero(mass)
    first = int(massive[-1]) + 1 if len(massive) else 0
    return first if 0 < first <= (1 - LEFT_OUT_FROM) * len(mass) else len(mass)


StateT = TypeVar("StateT", bound=State)


class Sorted(ABC, Generic[StateT]):
    """The bodies of a state in another order, those with mass first.

    Args:
        state: in the user's order.
        order: (N,) the bodies in the new one.

    Attributes:
        state: in the new order, with arrays of its own for what engines read and write, and everything else of the other.
        index: (N,) the new row of each body.
    """

    def __init__(self, state: StateT, order: np.ndarray) -> None:
        self.index = np.empty_like(order)
        self.index[order] = np.arange(len(order))
        self.state = copy.copy(state)
        self._order = order

    @abstractmethod
    def gather(self, state: StateT, outputs: Outputs) -> None:
        """Copy what an engine reads from the state in the user's order."""

    @abstractmethod
    def scatter(self, state: StateT, outputs: Outputs, targets: Targets, accelerations: bool) -> None:
        """Copy what an engine has computed of the ``targets``, or (None) of all bodies, to the state in the user's order:
        the potential if ``outputs`` has it, and accelerations if they are new."""


class HostSorted(Sorted[HostState]):
    """In host memory."""

    def __init__(self, state: HostState, order: np.ndarray, per_species: bool) -> None:
        super().__init__(state, order)
        for name in ("mass", *["softening2"] * per_species):
            setattr(self.state, name, state.column(name)[order])
        for name in ("position", "velocity", "acceleration", "potential"):
            setattr(self.state, name, np.zeros_like(state.column(name)))

    def gather(self, state: HostState, outputs: Outputs) -> None:
        np.take(state.position, self._order, axis=0, out=self.state.position)
        if Outputs.JERK in outputs:
            np.take(state.velocity, self._order, axis=0, out=self.state.velocity)
            vars(self.state)["jerk"] = self._jerk

    def scatter(self, state: HostState, outputs: Outputs, targets: Targets, accelerations: bool) -> None:
        to, rows = (self._order, slice(None)) if targets is None else (targets, self.index[targets])
        names = ["acceleration"] * accelerations + ["jerk"] * (Outputs.JERK in outputs)
        for name in [*names, *["potential"] * (Outputs.ENERGY in outputs)]:
            state.column(name)[to] = self.state.column(name)[rows]

    @cached_property
    def _jerk(self) -> np.ndarray:
        return np.zeros_like(self.state.velocity)
