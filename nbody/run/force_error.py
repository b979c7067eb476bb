"""The errors of a tree's forces at the start of a run, measured on a sample of the bodies."""

import numpy as np

from nbody.forces import ENGINES
from nbody.forces.engine import Engine
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.state import State, Want

SAMPLE, LEAST, PAIRS = 1000, 100, 1 << 30
"""The number of bodies in a sample, less if they have more than this number of pairs, but not less than ``LEAST``: about
half a second on two cores, with any number of bodies up to 10 million."""

PIECE = 1 << 20
"""The bodies that act at a time: the sums take 100 MB of memory, with any number of bodies."""


def force_errors(engine: Engine, state: State, mass: np.ndarray, seed: int) -> dict[str, float | int]:
    """The relative errors |a - a_exact| / |a_exact| of the state's accelerations, which must be current.

    Args:
        engine: that which has computed them.
        mass: (N,) in float64.
        seed: of the sample.

    Returns:
        ``bodies`` (their number), ``median``, ``99 %`` and ``largest``; a_exact are direct sums in float64.
    """
    position = np.asarray(state.phase_space()[0], np.float64)
    a = np.asarray(state.forces()[0], np.float64)
    count = min(state.count, max(LEAST, min(SAMPLE, PAIRS // state.count)))
    rows = np.sort(np.random.default_rng(seed).choice(state.count, count, replace=False))
    exact = direct_sums(position, mass, engine.gravity, rows)
    if engine.fields is not None and engine.fields.functions:
        exact += engine.fields.at(position[rows], state.now)[0]
    size = np.linalg.norm(exact, axis=1)
    error = np.linalg.norm(a[rows] - exact, axis=1)[size > 0] / size[size > 0]
    if not (len(error) and np.isfinite(error).all()):  # the first frame reports what is not finite
        return {}
    median, most = np.quantile(error, (0.5, 0.99))
    return {"bodies": len(error), "median": float(median), "99 %": float(most), "largest": float(error.max())}


def direct_sums(position: np.ndarray, mass: np.ndarray, gravity: Gravity, rows: np.ndarray) -> np.ndarray:
    """Accelerations (T, D) of the bodies ``rows`` in float64, by the ``cpu`` engine. They are points without mass beside
    each piece of the bodies: a body in the same place, such as the body itself, exerts no force."""
    engine = ENGINES.load("cpu")(gravity, "float64")
    total = np.zeros((len(rows), position.shape[1]))
    for first in range(0, len(position), PIECE):
        some = slice(first, first + PIECE)
        x = np.concatenate([position[some], position[rows]])
        state = engine.load(Particles(np.append(mass[some], np.zeros(len(rows))), x, np.zeros_like(x)))
        engine.evaluate(state, Want.ACCELERATION, np.arange(len(x) - len(rows), len(x)))
        total += state.forces()[0][-len(rows) :]
    return total
