"""A recorded moment of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray

OBSERVABLES: dict[str, int] = {
    "kinetic_energy": 1,
    "potential_energy": 1,
    "total_energy": 1,
    "momentum": 3,
    "angular_momentum": 3,
    "virial_ratio": 1,
}
"""What is stored beside each frame, and how many numbers it has. Units: the scenario's."""


@dataclass
class Frame:
    """The particles at one step.

    Attributes:
        step: how many steps led here.
        time: step times dt, in the scenario's unit.
        position: (N, D) in the recording's precision, D is 2 or 3.
        velocity: (N, D), likewise.
        observables: names of :data:`OBSERVABLES` to a float or a (3,) array; what is missing is stored as NaN.
    """

    step: int
    time: float
    position: Array
    velocity: Array
    observables: Mapping[str, float | Array] = field(default_factory=dict)
