"""Accelerations of some bodies among many by the engine ``cpu``, to measure the errors of others."""

import numpy as np

from nbody.forces.registry import ENGINES
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.state import Outputs

PIECE = 1 << 20
"""The bodies of :func:`direct_sums` that act at a time: they take 100 MB of memory, with any number of bodies."""


def direct_sums(position: np.ndarray, mass: np.ndarray, gravity: Gravity, rows: np.ndarray) -> np.ndarray:
    """Accelerations (T, D) of the bodies ``rows`` in float64, by the ``cpu`` engine, which takes a second for 1000 of a
    million bodies, :func:`~nbody.forces.reference.direct_sum` 12 on a core. They are points without mass beside
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
