"""What a scheme of block steps asks of the loop over blocks, on either processor."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from nbody.forces.layers.fields import fields_of
from nbody.integrators.integrator import Motion
from nbody.integrators.solvers.blocks.bodies import PARKED, BlockBodies
from nbody.integrators.solvers.blocks.fields import BlockFields
from nbody.integrators.solvers.blocks.formulas import TICKS
from nbody.integrators.solvers.blocks.pairs import Orbits, Pairs


class BlockProgress(NamedTuple):
    """What :meth:`BlockLoop.advance` did.

    Attributes:
        blocks, singles: the numbers of blocks and of steps of single bodies.
        reached: the time reached, in ticks.
        failed: a body whose step would be too short, or -1.
    """

    blocks: int
    reached: int
    singles: int
    failed: int


class BlockLoop(ABC):
    """The loop over blocks of one state. Times are in ticks from the beginning of a stretch.

    Args:
        order, eta: of the scheme.
        shared: all bodies make the shortest step.
        threshold: the perturbation at which a pair is dissolved; 0: none forms.
        mass: (N,) on the host.
    """

    message = ""
    """A line for the user."""

    _columns: BlockBodies
    """The bodies, where the loop works."""

    _now: int
    """The time reached."""

    def __init__(self, motion: Motion, order: int, eta: float, shared: bool, threshold: float, mass: np.ndarray) -> None:
        self._state: Any = motion.state
        self._gravity, self._order, self._eta, self._shared = motion.engine.gravity, order, eta, shared
        fields = BlockFields(fields_of(motion.engine), motion.state.dimensions, self._gravity.G)
        threshold = threshold if fields.smooth else 0.0
        self.pairs, self._fields = (
            Pairs(self._gravity, order, eta, np.array(mass, np.float64), threshold, fields),
            fields,
        )
        self._orbits: Orbits | None = None  # of the formed pairs; None: to be found

    def begin(self, time: float) -> None:
        """Let a stretch begin at this time."""
        self._fields.begin = time

    # --- Columns ---

    @abstractmethod
    def column(self, name: str) -> np.ndarray:
        """A column on the host."""

    @abstractmethod
    def set_column(self, name: str, values: np.ndarray) -> None:
        """Replace a column."""

    def step_to(self, end: int) -> None:
        """Let the next steps of all bodies end at the time ``end``, steps back too."""
        last, step = self.column("last"), self.column("step")
        self.set_column("step", np.where((last != end) & (step < PARKED), end - last, step))

    # --- The loop ---

    def _formed(self) -> Orbits:
        """The formed pairs; after a restore, masses and limits follow from them."""
        if self._orbits is None:
            self._pairs_changed()
        assert self._orbits is not None
        return self._orbits

    @abstractmethod
    def _pairs_changed(self) -> None:
        """Pairs have formed or dissolved: find the orbits, masses and limits."""

    @abstractmethod
    def restored(self, now: int = TICKS) -> None:
        """The state's columns have been restored from a checkpoint of the time ``now``. Raises ValueError if they are
        damaged."""

    @abstractmethod
    def first_derivatives(self) -> np.ndarray:
        """Evaluate acceleration, jerk and snap of all bodies, in two passes over the pairs. Returns all, (18, N)."""

    @abstractmethod
    def new_stretch(self, before: float, tick: float, unit: int, smallest: int) -> int:
        """All bodies are at the same time, 0 ticks from now on; ``before``: the length of a tick until now. Forms pairs.
        Returns a body whose step is too short, or -1."""

    @abstractmethod
    def search_pairs(self, tick: float, unit: int) -> None:
        """Form the pairs that are hardly perturbed at present."""

    @abstractmethod
    def advance(self, tick: float, end: int, unit: int, smallest: int, steps: int) -> BlockProgress:
        """Make up to ``steps`` blocks, or all until ``end``."""

    @contextmanager
    def trial_steps(self) -> Iterator[None]:
        """Steps that are made inside this ``with`` block are undone at its end, however it ends; they dissolve no pair."""
        self._formed()
        now, copies = self._now, self._copy_columns()
        try:
            self.set_column("limit", np.zeros(self._state.count))
            yield
        finally:
            self._restore_columns(copies)
            self._now = now

    @abstractmethod
    def _copy_columns(self) -> BlockBodies:
        """A copy of the bodies, where the loop works."""

    @abstractmethod
    def _restore_columns(self, copies: BlockBodies) -> None:
        """Replace the bodies by a copy."""

    @abstractmethod
    def present(self, now: float, tick: float) -> None:
        """Predict all bodies to one time into the state's positions and velocities."""
