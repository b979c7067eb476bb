"""What is asked of the forces: one question, which every engine and every scheme answers by ``supports``."""

from typing import NamedTuple

from nbody.law import Gravity
from nbody.state.want import Want

PRECISIONS = ("float32", "mixed", "float64")
"""The precisions that an engine may offer, the fastest first."""


class Problem(NamedTuple):
    """What is asked of the forces.

    Attributes:
        gravity: the law of a pair, its softening (one length, or one per species) and the number of dimensions.
        precision: one of :data:`PRECISIONS`.
        particles: the number of bodies.
        outputs: what is computed besides the accelerations.
        targets: True if the forces on some of the bodies are asked for.
        accuracy: the median relative error of the accelerations; None for that of the precision.
        ranks: the number of processes that compute the forces together.
    """

    gravity: Gravity
    precision: str = "float64"
    particles: int = 1
    outputs: Want = Want.ACCELERATION
    targets: bool = False
    accuracy: float | None = None
    ranks: int = 1
