"""Transit times and their linear ephemeris."""

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class LinearEphemeris(NamedTuple):
    """Transit times tₙ = t₀ + n P, and how much the observed times differ from these.

    Attributes:
        start, period: t₀ and P of the best fit, least squares.
        epoch: (K,) the numbers n of the transits, from 0.
        residual: (K,) the observed minus the calculated times, O - C: transit timing variations (TTV).
    """

    start: float
    period: float
    epoch: Array
    residual: Array


def linear_ephemeris(times: Array) -> LinearEphemeris:
    """The linear ephemeris of transit times (K,), K > 1, in any order. Some transits may be missing, if neighbours remain:
    numbers are counted by the median of the times between two."""
    times = np.unique(times)
    apart = np.diff(times)
    epoch = np.concatenate([[0.0], np.cumsum(np.round(apart / np.median(apart)))])
    middle = epoch.mean(), times.mean()  # from here rounding is smallest
    n, t = epoch - middle[0], times - middle[1]
    period = float(n @ t / (n @ n))
    return LinearEphemeris(float(middle[1] - period * middle[0]), period, epoch.astype(np.int64), t - period * n)
