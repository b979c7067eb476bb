"""What a colour can show: a number per body, the facts that it is computed from, and the ends of its scale."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nbody.errors import InputError
from nbody.particles import Particles
from nbody.viewer.sources.frames import ShownFrame
from nbody.viewer.sources.source import Source

if TYPE_CHECKING:
    from nbody.scenario.units import Units

Array = np.ndarray

LOGARITHMIC, LINEAR, CATEGORIES = "logarithmic", "linear", "categories"

PERCENTILES = (5.0, 98.0)
"""The percentiles of the values at the ends of a logarithmic scale; bodies beyond get the colour of the end."""

STEEPEST = 1e6
"""The largest ratio of the ends of a logarithmic scale."""


class ShownBodies:
    """The shown bodies at one frame, with what is constant about them.

    Creating it reads the neighbouring frames if ``neighbours`` is set; computing from it afterwards reads nothing, so that a
    thread can do it.

    Attributes:
        position, velocity: (shown, 3) float32 in the picture's units.
        mass: (shown,) float64 in the scenario's units, as if the bodies that are not shown were spread over the others.
        energy_error: of the frame; NaN if it is not known.
        around: the frames before and after; None if there is one frame.
    """

    def __init__(self, source: Source, frame: ShownFrame, neighbours: bool = False) -> None:
        self.source, self.number = source, frame.number
        self.position, self.velocity = frame.position, frame.velocity
        self.energy_error = source.caption(frame.number).energy_error
        self.around = self._around(frame) if neighbours else None

    @property
    def mass(self) -> Array:
        source = self.source
        return source.shown.of(source.masses(self.number)) * (source.catalogue.count / source.shown.count)

    def particles(self) -> Particles:
        """These bodies, at rest, in the picture's units of length."""
        position = self.position[:, : self.source.catalogue.dimensions].astype(np.float64)
        return Particles(self.mass, position, np.zeros_like(position))

    def _around(self, frame: ShownFrame) -> tuple[ShownFrame, ShownFrame] | None:
        around = map(self.source.past, range(frame.number - 1, frame.number + 2))
        found = [each for each in around if each is not None]
        return (found[0], found[-1]) if found and found[-1].time > found[0].time else None


@dataclass(frozen=True)
class ColourQuantity:
    """A quantity that colours can show.

    Attributes:
        label: its name in the legend.
        scale: :data:`LOGARITHMIC`, :data:`LINEAR` or :data:`CATEGORIES`.
        compute: (shown,) values from :class:`ShownBodies`, in units of ``unit``; None: the shader computes the speed.
        unit: the picture's unit of the quantity, in the scenario's.
        symbol: the unit's symbol for the legend, from ``Units``.
        constant: the values are the same in every frame.
        neighbours: it needs the frames before and after.
        most: the most bodies for which it can be computed.
        samples: frames that determine the ends of the scale.
    """

    label: str
    scale: str
    compute: Callable[[ShownBodies], Array] | None
    unit: Callable[[Source], float] = lambda source: 1.0
    symbol: Callable[["Units"], str] = lambda units: ""
    constant: bool = False
    neighbours: bool = False
    most: int | None = None
    samples: int = 5

    def check(self, name: str, source: Source) -> None:
        """Raise InputError if the quantity can't be shown for ``source``."""
        if self.most is not None and source.shown.count > self.most:
            raise InputError(f"--color {name}: can be computed for up to {self.most} bodies, not {source.shown.count}")


def ends(values: Array, scale: str) -> tuple[float, float]:
    """The ends of a scale: :data:`PERCENTILES` of the finite values if it is logarithmic (zeros do not count), else their
    least and greatest. They are equal if all values are, and zero if there is none."""
    values = values[np.isfinite(values)].astype(np.float64)
    if scale == LOGARITHMIC:
        values = values[values > 0]
    if not len(values):
        return 0.0, 0.0
    low, high = np.percentile(values, PERCENTILES) if scale == LOGARITHMIC else (values.min(), values.max())
    if high <= low * (1 + 1e-6) if low > 0 else high == low:
        low, high = values.min(), values.max()  # most bodies have one value
    return float(max(low, high / STEEPEST) if scale == LOGARITHMIC else low), float(high)
