"""What a picture shows: the interface between the bodies (of a recording or of a running simulation) and the drawing."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from nbody.diagnostics.structure import FRACTIONS
from nbody.errors import printable, shortened
from nbody.law.gravity import Gravity
from nbody.particles import Particles
from nbody.scenario.quantities import Units
from nbody.viewer.sources.camera import Camera
from nbody.viewer.sources.frames import Array, Selection, ShownFrame, ShownMoment

LARGE = 40
"""The picture has the scenario's units of length and speed where its numbers are between 2 to minus this power and 2 to
this power."""

LONGEST_NAME = 60  # characters of a name that are shown


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
    note: str = ""
    time_unit: str = ""


@dataclass
class Catalogue:
    """What is constant about the N bodies of a run: ``mass`` (N,) float64 in the scenario's units, at the beginning; ``id``
    and ``species``, (N,) int64; ``gravity``, the law between them, None if it is not known; the symbols of ``units``."""

    dimensions: int
    mass: Array
    id: Array
    species: Array
    species_names: tuple[str, ...]
    gravity: Gravity | None
    units: Units

    @property
    def count(self) -> int:
        return len(self.mass)

    def grown(self, bodies: Particles) -> "Catalogue":
        mass, id, species = (np.append(getattr(self, name), getattr(bodies, name)) for name in ("mass", "id", "species"))
        return replace(self, mass=mass, id=id, species=species, species_names=bodies.species_names)

    @property
    def softening2(self) -> Array | None:
        """The softening length squared of each body, (N,), if species have lengths; else None."""
        if self.gravity is None or not self.gravity.per_species:
            return None
        return self.gravity.squares(self.species, self.species_names)


@dataclass(frozen=True, eq=False)
class Curve:
    """``values`` (T,), or (T, F) for F curves, at ``time`` (T,)."""

    time: Array
    values: Array

    def known(self) -> "Curve":
        finite = np.isfinite(self.values)
        return Curve(self.time[finite], self.values[finite])


EMPTY = Curve(np.zeros(0), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Series:
    """What is known of a run at present: (E - E₀)/|E₀|, T/|W|, and the radii that contain ``fractions`` of the mass. A curve
    may have no point, and may miss times. If it is ``complete``, none will be added unless the run goes on."""

    energy_error: Curve = EMPTY
    virial_ratio: Curve = EMPTY
    radii: Curve = EMPTY
    fractions: tuple[float, ...] = FRACTIONS
    complete: bool = True

    @property
    def times(self) -> Array:
        """The times of all curves: their number changes when there is something new to draw."""
        return np.concatenate([self.energy_error.time, self.virial_ratio.time, self.radii.time])


class Source(ABC):
    """The bodies that a window, a picture or a movie shows.

    Attributes:
        name: the title.
        catalogue: what is constant about them. It grows when bodies are added, at its end.
        shown: those that are drawn, as many as every frame has rows.
        length_unit, speed_unit: the picture's units, in the scenario's.
        speeds: (slow, fast), the speeds at the ends of the palette in the scenario's units.
        leaves_view: True if the bodies together leave the view of the run, as a cluster on its way around a galaxy.
    """

    speeds: tuple[float, float]

    def __init__(self, name: object, catalogue: Catalogue, length_unit: float) -> None:
        self.name = shortened(printable(name), LONGEST_NAME) or "run"
        self.catalogue, self.length_unit = catalogue, length_unit
        self.shown = Selection(catalogue.count)

    @property
    def speed_unit(self) -> float:
        return unit_near(self.speeds[1])

    @property
    def leaves_view(self) -> bool:
        return False

    @property
    @abstractmethod
    def frames(self) -> int:
        """The number of frames that can be shown: the last one is the newest."""

    @abstractmethod
    def moment(self, at: float) -> ShownMoment:
        """The moment ``at``, counted in frames: 2.5 is halfway between the frames 2 and 3. Raises InputError if a frame is
        damaged."""

    @abstractmethod
    def caption(self, at: float) -> Caption:
        """The facts about the moment ``at``."""

    @abstractmethod
    def home(self, frame: int | None = None) -> Camera:
        """The initial view, in the picture's units: of the whole run, or one that frames the bodies of ``frame``."""

    @abstractmethod
    def past(self, k: int) -> ShownFrame | None:
        """Frame ``k``; None if there is none, or it is damaged."""

    def place(self, number: int) -> int:
        """Which frame has the number ``number`` (:attr:`ShownFrame.number`), or is the next one: a live simulation does not
        keep all frames."""
        return number

    def flashes(self, at: float) -> tuple[Array, Array]:
        """The places of the latest events before the moment ``at``, (M, 3) in the picture's units, and how much of the time
        for which they are marked has passed, (M,) from 0 to 1."""
        return np.zeros((0, 3)), np.zeros(0)

    def marks(self) -> Array:
        """The moments of events, (M,), for the time line, and of the present of a live simulation; not those at which bodies
        are only changed."""
        return np.zeros(0)

    def waiting(self, at: float) -> bool:
        """True if the frames of the moment ``at`` are being read, so that :meth:`moment` would wait for the disk."""
        return False

    def refresh(self) -> int:
        """Look for new frames (of a recording that grows). Returns their number. Raises InputError."""
        return self.frames

    @abstractmethod
    def series(self) -> Series:
        """Energy error, virial ratio and Lagrangian radii against time, as far as they are known; returns at once."""

    def close(self) -> None:  # noqa: B027
        """End threads."""


def unit_near(size: float) -> float:
    """A power of two near ``size``; 1 for numbers of ordinary size. A graphics card computes in float32, also squares."""
    exponent = math.frexp(size)[1]
    return 1.0 if size == 0 or abs(exponent) <= LARGE else 2.0 ** min(exponent, 1023)
