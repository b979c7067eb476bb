"""The bodies of a block scheme, on the host and on a GPU."""

from typing import Any, NamedTuple

import numpy as np

from nbody.integrators.solvers.blocks.formulas import FIRST, TICKS

PARKED = 1 << 60
"""The step of a parked body, in ticks; no time is as late."""


class BlockBodies(NamedTuple):
    """Arrays with an element or a column per body, all on one device.

    Attributes:
        rows: (ROWS, N), see :data:`.formulas.ROWS`.
        last, step: (N,) int64, the end of that step and the length of the next one in ticks.
        required: (N,) the length that accuracy asks for, in units of time.
        mass: (N,) with the mass of both in the first body of a pair, and none in the second.
        limit: (N,) the perturbation at which a pair is dissolved, divided by γ's other factors, for its first body; 0 for
            others; negative once it is exceeded.
    """

    rows: Any
    last: Any
    step: Any
    required: Any
    mass: Any
    limit: Any


def check_restored(rows: np.ndarray, last: np.ndarray, step: np.ndarray, now: int) -> None:
    """Raise ValueError if the columns of a checkpoint at the time ``now``, in ticks, are none of a block scheme: its loop
    would not end."""
    first = rows[FIRST, step >= PARKED]
    ahead = (last < 0) | (last > now) | ((step <= 0) & (now < TICKS))  # at the end of a stretch there are no steps yet
    if ahead.any() or not ((first >= 0) & (first < len(last))).all():
        raise ValueError("the steps of the bodies do not fit the time")
