"""Numbers of a run against time, for the small panel of the window."""

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Curve:
    """``values`` (T,), or (T, F) for F curves, at ``time`` (T,), which increases."""

    time: Array
    values: Array


EMPTY = Curve(np.zeros(0), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Series:
    """What is known of a run at present; a curve may have no point, and may miss times.

    Attributes:
        energy_error: (E - E₀)/|E₀|.
        virial_ratio: T/|W|.
        radii: the radii that contain the fractions ``fractions`` of the mass.
        complete: no point will be added unless the run goes on.
    """

    energy_error: Curve = EMPTY
    virial_ratio: Curve = EMPTY
    radii: Curve = EMPTY
    fractions: tuple[float, ...] = (0.1, 0.5, 0.9)
    complete: bool = True

    @property
    def points(self) -> int:
        """The number of points of all curves: it changes when there is something new to draw."""
        return sum(len(curve.time) for curve in (self.energy_error, self.virial_ratio, self.radii))
