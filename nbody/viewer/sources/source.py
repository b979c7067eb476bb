"""What a picture shows: the interface between the bodies (of a recording or of a running simulation) and the drawing."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbody.law.gravity import Gravity
from nbody.viewer.picture.camera import Camera
from nbody.viewer.sources.interpolation import interpolated
from nbody.viewer.sources.series import Series

Array = np.ndarray

LARGE = 40
"""The picture has the scenario's units of length and speed where its numbers are between 2 to minus this power and 2 to
this power."""


@dataclass(frozen=True)
class Caption:
    """The facts shown about a moment. ``energy_error`` is (E - E₀)/|E₀|, NaN if no energy is known; ``frames`` is 0 while a
    simulation is running, ``note`` another line, and ``time_unit`` the symbol of the unit of time."""

    name: str
    time: float
    step: int
    frame: int
    frames: int
    energy_error: float
    count: int
    shown: int
    speeds: tuple[float, float]
    note: str = ""
    time_unit: str = ""


@dataclass(frozen=True, eq=False)
class Frame:
    """The shown bodies at one moment, in the picture's units.

    Attributes:
        number: identifies the frame: buffers of a graphics card that hold this frame are not filled again.
        position, velocity: (shown, 3) float32; z is 0 in a plane.
    """

    number: int
    position: Array
    velocity: Array

    def fill(self, position, velocity) -> None:
        """Copy the frame into two vertex buffers (vispy) of the current OpenGL context."""
        position.set_data(self.position)
        velocity.set_data(self.velocity)


@dataclass(frozen=True, eq=False)
class Moment:
    """A moment between two frames; the drawing interpolates (cubic Hermite, from positions and velocities).

    Attributes:
        first: the frame at or before the moment.
        second: the frame after it; None if the moment is that of ``first``.
        share: the time since ``first``, as a fraction of the time between the frames, 0 to 1.
        interval: the time between the frames in the picture's units (unit of length per unit of speed).
    """

    first: Frame
    second: Frame | None = None
    share: float = 0.0
    interval: float = 0.0

    def positions(self, rows: slice | int | Array = slice(None)) -> Array:
        """The positions of ``rows`` in float64, interpolated as the shader does it: (rows, 3), or (3,) of one row."""
        first = self.first.position[rows].astype(np.float64)
        if self.second is None or not self.share:
            return first
        end = self.second.position[rows].astype(np.float64)
        out, into = (self.interval * each.velocity[rows].astype(np.float64) for each in (self.first, self.second))
        return interpolated(first, end, out, into, self.share)

    def velocities(self, rows: slice | int | Array = slice(None)) -> Array:
        """The velocities of ``rows`` in float64, interpolated linearly, as their colours are."""
        first = self.first.velocity[rows].astype(np.float64)
        return first if self.second is None else first + self.share * (self.second.velocity[rows] - first)


class Source(ABC):
    """The bodies that a window, a picture or a movie shows.

    Attributes:
        name: the title.
        count: N, the number of bodies.
        dimensions: 2 or 3.
        mass: (N,) float64 in the scenario's units.
        id: (N,) int64.
        species, species_names: (N,) int64 that count ``species_names``.
        units: the symbols of the scenario's units; None if they are not known.
        wanders: True if the bodies together leave the view of the run, as a cluster on its way around a galaxy.
        gravity: the law between the bodies, for the potential of a chosen body; None if it is not known.
        speeds: (slow, fast), the speeds at the ends of the palette in the scenario's units.
        palette_speeds: the same in the picture's units.
        recorded: frames of the past can be had (:meth:`past`).
        length_unit: the picture's unit of length, in the scenario's.
    """

    name: str
    count: int
    dimensions: int
    mass: Array
    id: Array
    species: Array | None = None
    species_names: tuple[str, ...] = ("",)
    units: Any = None
    wanders: bool = False
    gravity: Gravity | None = None
    speeds: tuple[float, float]
    recorded: bool = False
    length_unit: float = 1.0

    def __init__(self) -> None:
        self._choice: slice | Array = slice(None)
        self._kept: list[int] = []

    def symbol(self, quantity: str) -> str:
        """The symbol of the unit of ``quantity`` (``length``, ``mass``, ``time``, ``velocity``, ``energy``); empty if the
        scenario has no units."""
        return self.units.symbol(quantity) if self.units else ""

    @property
    def softening2(self) -> Array | None:
        """The softening length squared of each body, (N,), if species have lengths; else None."""
        if self.gravity is None or not self.gravity.per_species:
            return None
        species = np.zeros(self.count, np.int64) if self.species is None else self.species
        return self.gravity.squares(species, self.species_names)

    def thin_out(self, budget: int) -> None:
        """Show at most ``budget`` bodies: a random one of each group of neighbouring bodies, the same in every frame."""
        if self.count > budget:
            begin = np.arange(budget + 1) * self.count // budget
            chosen = np.random.default_rng(0).integers(begin[:-1], begin[1:])
            self._choice = np.union1d(chosen, np.array(self._kept, np.int64))

    def keep(self, body: int) -> None:
        """Show ``body`` (0 to N-1) even if others are left out; call this before :meth:`thin_out`."""
        self._kept.append(body)

    @property
    def shown(self) -> int:
        """The number of bodies that are drawn."""
        return self.count if isinstance(self._choice, slice) else len(self._choice)

    def body(self, row: int) -> int:
        """The body (0 to N-1) that is row ``row`` of the arrays of a :class:`Frame`."""
        return row if isinstance(self._choice, slice) else int(self._choice[row])

    def row(self, body: int) -> int | None:
        """The inverse of :meth:`body`; None if the body is not shown."""
        if isinstance(self._choice, slice):
            return body
        row = int(np.searchsorted(self._choice, body))
        return row if row < len(self._choice) and self._choice[row] == body else None

    @property
    def shown_mass(self) -> Array:
        """The masses of the shown bodies, (shown,) float64."""
        return self.chosen_rows(self.mass)

    def masses(self, number: int) -> Array:
        """The masses at frame ``number``, (N,) float64: those of merged bodies change, and 0 is left of the others."""
        return self.mass

    def flashes(self, at: float) -> tuple[Array, Array]:
        """The places of the latest collisions before the moment ``at``, (M, 3) in the picture's units, and how much of the
        time for which they are marked has passed, (M,) from 0 to 1."""
        return np.zeros((0, 3)), np.zeros(0)

    def chosen_rows(self, values: Array) -> Array:
        """The rows of ``values`` (N, ...) that are shown."""
        return values[self._choice]

    @property
    def speed_unit(self) -> float:
        """The picture's unit of speed, in the scenario's."""
        return unit_near(self.speeds[1])

    @property
    def palette_speeds(self) -> tuple[float, float]:
        """:attr:`speeds` in the picture's units."""
        return self.speeds[0] / self.speed_unit, self.speeds[1] / self.speed_unit

    @np.errstate(over="ignore")  # a body that far away is outside every picture
    def chosen(self, values: Array, unit: float) -> Array:
        """The rows of ``values`` (N, D) that are shown, divided by ``unit``: (shown, 3) float32; perhaps a view."""
        if values.dtype == np.float32 and values.shape[1] == 3 and unit == 1.0:
            return values[self._choice]
        out = np.zeros((self.shown, 3), np.float32)
        out[:, : values.shape[1]] = values[self._choice] / unit
        return out

    @property
    @abstractmethod
    def frames(self) -> int:
        """The number of frames that can be shown now."""

    @abstractmethod
    def moment(self, at: float) -> Moment:
        """The moment ``at``, counted in frames: 2.5 is halfway between the frames 2 and 3.

        Raises:
            InputError: a frame is damaged.
        """

    @abstractmethod
    def caption(self, at: float) -> Caption:
        """The facts about the moment ``at``."""

    @abstractmethod
    def home(self, frame: int | None = None) -> Camera:
        """The initial view, in the picture's units: of the whole run, or one that frames the bodies of ``frame``."""

    def past(self, number: int) -> tuple[Frame, float] | None:
        """Frame ``number`` and its time in the picture's units; None if it can't be had any more (a live simulation)."""
        return None

    def waiting(self, at: float) -> bool:
        """True if the frames of the moment ``at`` are being read, so that :meth:`moment` would wait for the disk."""
        return False

    def refresh(self) -> int:
        """Look for new frames (of a recording that grows). Returns their number. Raises InputError."""
        return self.frames

    def series(self) -> Series:
        """Energy error, virial ratio and Lagrangian radii against time, as far as they are known now.

        Called a few times per second while the panel is shown; it returns at once (work belongs on a thread).
        """
        return Series()

    def close(self) -> None:  # noqa: B027
        """End threads."""


def unit_near(size: float) -> float:
    """A power of two near ``size``; 1 for numbers of ordinary size. A graphics card computes in float32, also squares."""
    exponent = math.frexp(size)[1]
    return 1.0 if size == 0 or abs(exponent) <= LARGE else 2.0 ** min(exponent, 1023)
