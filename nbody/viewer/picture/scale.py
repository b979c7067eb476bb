"""The ends of a scale of colours."""

import numpy as np

Array = np.ndarray

LOGARITHMIC, LINEAR, CATEGORIES = "logarithmic", "linear", "categories"

PERCENTILES = (5.0, 98.0)
"""The percentiles of the values at the ends of a logarithmic scale; bodies beyond get the colour of the end."""

STEEPEST = 1e6
"""The largest ratio of the ends of a logarithmic scale."""


def ends(values: Array, scale: str) -> tuple[float, float]:
    """The ends of a scale: :data:`PERCENTILES` of the finite values if it is logarithmic (zeros do not count), else their
    least and greatest. They are equal if all values are, and zero if there is none."""
    values = values[np.isfinite(values)].astype(np.float64)
    if scale == LOGARITHMIC:
        values = values[values > 0]
    if not len(values):
        return 0.0, 0.0
    low, high = np.percentile(values, PERCENTILES) if scale == LOGARITHMIC else (values.min(), values.max())
    if high <= low * (1 + 1e-6) if low > 0 else high == low:
        low, high = values.min(), values.max()  # most bodies have one value
    return float(max(low, high / STEEPEST) if scale == LOGARITHMIC else low), float(high)
