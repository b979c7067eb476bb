"""The bodies at the ends of steps, which a compiled loop over steps writes down for those who look at every step."""

from typing import NamedTuple

import numpy as np


class StepNotes(NamedTuple):
    """The bodies at the ends of K steps. Schemes fill these in as far as they make steps.

    Attributes:
        times: (K,), if the scheme chooses the lengths of its steps.
        vectors: (K, 2, N, D) positions and velocities.
    """

    times: np.ndarray
    vectors: np.ndarray


NO_NOTES = StepNotes(np.empty(0), np.empty((0, 2, 0, 0)))
"""Nobody looks."""


def note(notes, k, time, x, v):  # type: ignore[no-untyped-def]
    """Write down the bodies after step k, to be compiled; ``x``, ``v``: (N, D) or more components."""
    times, vectors = notes
    if k < times.size:
        times[k] = time
        for i in range(vectors.shape[2]):
            for d in range(vectors.shape[3]):
                vectors[k, 0, i, d], vectors[k, 1, i, d] = x[i, d], v[i, d]
