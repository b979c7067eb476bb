"""The errors of the forces at the start of a run, measured on a sample of the bodies."""

import numpy as np

from nbody.forces.direct.sums import direct_sums
from nbody.forces.engine import Engine
from nbody.forces.layers.fields import fields_of
from nbody.state import State

SAMPLE, LEAST, PAIRS = 1000, 100, 1 << 30
"""The number of bodies in a sample, less if they have more than this number of pairs, but not less than ``LEAST``: about
half a second on two cores, with any number of bodies up to 10 million."""


def force_errors(engine: Engine, state: State, mass: np.ndarray, seed: int) -> dict[str, float | int]:
    """The relative errors |a - a_exact| / |a_exact| of the state's accelerations, which must be current.

    Args:
        engine: that which has computed them.
        mass: (N,) in float64.
        seed: of the sample.

    Returns:
        ``bodies`` (their number), ``median``, ``99 %`` and ``largest``; a_exact are direct sums in float64.
    """
    position = np.asarray(state.values("position")[0], np.float64)
    a = np.asarray(state.values("acceleration")[0], np.float64)
    count = min(state.count, max(LEAST, min(SAMPLE, PAIRS // state.count)))
    rows = np.sort(np.random.default_rng(seed).choice(state.count, count, replace=False))
    exact = direct_sums(position, mass, engine.gravity, rows)
    fields = fields_of(engine)
    if fields is not None and fields.terms:
        v = np.asarray(state.values("velocity")[0])[rows]
        exact += fields.at(position[rows], state.clock.now, v, mass[rows])[0]
    size = np.linalg.norm(exact, axis=1)
    error = np.linalg.norm(a[rows] - exact, axis=1)[size > 0] / size[size > 0]
    if not (len(error) and np.isfinite(error).all()):  # the first frame reports what is not finite
        return {}
    median, most = np.quantile(error, (0.5, 0.99))
    return {"bodies": len(error), "median": float(median), "99 %": float(most), "largest": float(error.max())}


def rehearse(engine: Engine, dimensions: int) -> None:
    """Call the kernels of :func:`force_errors`, for two bodies."""
    direct_sums(np.zeros((2, dimensions)), np.ones(2), engine.gravity, np.arange(2))
