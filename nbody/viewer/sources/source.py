"""What a picture shows: the interface between the bodies (of a recording or of a running simulation) and the drawing."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from nbody.viewer.picture.camera import Camera

Array = np.ndarray

LARGE = 40
"""The picture has the scenario's units of length and speed where its numbers are between 2 to minus this power and 2 to
this power."""


@dataclass(frozen=True)
class Caption:
    """The facts shown about a moment. ``energy_error`` is (E - E₀)/|E₀|, NaN if no energy is known."""

    name: str
    time: float
    step: int
    frame: int
    frames: int
    energy_error: float
    count: int
    shown: int
    speeds: tuple[float, float]


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


class Source(ABC):
    """The bodies that a window, a picture or a movie shows.

    Attributes:
        name: the title.
        count: N, the number of bodies.
        dimensions: 2 or 3.
        speeds: (slow, fast), the speeds at the ends of the palette in the scenario's units.
        palette_speeds: the same in the picture's units.
    """

    name: str
    count: int
    dimensions: int
    speeds: tuple[float, float]

    def __init__(self) -> None:
        self._choice: slice | Array = slice(None)

    def thin_out(self, budget: int) -> None:
        """Show at most ``budget`` bodies: a random choice, the same in every frame."""
        if self.count > budget:
            self._choice = np.sort(np.random.default_rng(0).permutation(self.count)[:budget])

    @property
    def shown(self) -> int:
        """The number of bodies that are drawn."""
        return self.count if isinstance(self._choice, slice) else len(self._choice)

    @property
    def palette_speeds(self) -> tuple[float, float]:
        """:attr:`speeds` in the picture's units."""
        unit = unit_near(self.speeds[1])
        return self.speeds[0] / unit, self.speeds[1] / unit

    @np.errstate(over="ignore")  # a body that far away is outside every picture
    def chosen(self, values: Array, unit: float) -> Array:
        """The rows of ``values`` (N, D) that are shown, divided by ``unit``: (shown, 3) float32."""
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
    def home(self, frame: int = 0) -> Camera:
        """The initial view, in the picture's units, which frames the bodies of ``frame``."""


def unit_near(size: float) -> float:
    """A power of two near ``size``; 1 for numbers of ordinary size. A graphics card computes in float32, also squares."""
    exponent = math.frexp(size)[1]
    return 1.0 if size == 0 or abs(exponent) <= LARGE else 2.0 ** min(exponent, 1023)
