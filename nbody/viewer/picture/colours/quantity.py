"""What a colour can show: a number per body, and the facts that it is computed from."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nbody.errors import InputError
from nbody.particles import Particles
from nbody.viewer.sources.source import Frame, Source

Array = np.ndarray


class Bodies:
    """The shown bodies at one frame, with what is constant about them.

    Creating it reads the neighbouring frames if ``neighbours`` is set; computing from it afterwards reads nothing, so that a
    thread can do it.

    Attributes:
        position, velocity: (shown, 3) float32 in the picture's units.
        mass: (shown,) float64 in the scenario's units, as if the bodies that are not shown were spread over the others.
        energy_error: of the frame; NaN if it is not known.
        around: the frames before and after, and the time between them in the picture's units; None if there is one frame.
    """

    def __init__(self, source: Source, frame: Frame, neighbours: bool = False) -> None:
        self.source, self.number = source, frame.number
        self.position, self.velocity = frame.position, frame.velocity
        self.energy_error = source.caption(min(frame.number, source.frames - 1)).energy_error
        self.around: tuple[Frame, Frame, float] | None = self._around(frame) if neighbours else None

    @property
    def mass(self) -> Array:
        source = self.source
        return source.chosen_rows(source.masses(self.number)) * (source.count / source.shown)

    def particles(self) -> Particles:
        """These bodies, at rest, in the picture's units of length."""
        position = self.position[:, : self.source.dimensions].astype(np.float64)
        return Particles(self.mass, position, np.zeros_like(position))

    def _around(self, frame: Frame) -> tuple[Frame, Frame, float] | None:
        numbers = range(max(frame.number - 1, 0), min(frame.number + 2, self.source.frames))
        found = [past for past in map(self.source.past, numbers) if past is not None]
        if len(found) < 2 or found[-1][1] <= found[0][1]:
            return None
        return found[0][0], found[-1][0], found[-1][1] - found[0][1]


@dataclass(frozen=True)
class Quantity:
    """A quantity that colours can show.

    Attributes:
        label: its name in the legend.
        scale: one of :mod:`nbody.viewer.picture.scale`.
        compute: (shown,) values from :class:`Bodies`, in units of ``unit``; None: the shader computes the speed.
        unit: the picture's unit of the quantity, in the scenario's.
        symbol: the unit's symbol for the legend, from ``Units``.
        constant: the values are the same in every frame.
        neighbours: it needs the frames before and after.
        most: the most bodies for which it can be computed.
        samples: frames that determine the ends of the scale.
    """

    label: str
    scale: str
    compute: Callable[[Bodies], Array] | None
    unit: Callable[[Source], float] = lambda source: 1.0
    symbol: Callable[..., str] = lambda units: ""
    constant: bool = False
    neighbours: bool = False
    most: int | None = None
    samples: int = 5

    def check(self, name: str, source: Source) -> None:
        """Raise InputError if the quantity can't be shown for ``source``."""
        if self.most is not None and source.shown > self.most:
            raise InputError(f"--color {name}: can be computed for up to {self.most} bodies, not {source.shown}")
