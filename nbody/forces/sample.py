"""Direct sums in float64 for some of many bodies: what the forces of a tree are compared with.

The referee (:mod:`nbody.forces.reference`) needs 12 s on a core for 1000 of a million bodies, these a second.
"""

import numpy as np

from nbody.forces.registry import ENGINES
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.state import Outputs

PIECE = 1 << 20
"""The bodies that act at a time: the sums take 100 MB of memory, with any number of bodies."""


def direct_sums(position: np.ndarray, mass: np.ndarray, gravity: Gravity, rows: np.ndarray) -> np.ndarray:
    """Accelerations (T, D) of the bodies ``rows`` in float64, by the ``cpu`` engine. They are points without mass beside
    each piece of the bodies: a body in the same place, such as the body itself, exerts no force."""
    engine = ENGINES.load("cpu")(gravity, "float64")
    total = np.zeros((len(rows), position.shape[1]))
    for first in range(0, len(position), PIECE):
        some = slice(first, first + PIECE)
        x = np.concatenate([position[some], position[rows]])
        state = engine.load(Particles(np.append(mass[some], np.zeros(len(rows))), x, np.zeros_like(x)))
        engine.evaluate(state, Outputs.ACCELERATION, np.arange(len(x) - len(rows), len(x)))
        total += state.values("acceleration")[0][-len(rows) :]
    return total
