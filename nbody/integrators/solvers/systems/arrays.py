"""What the kernels of both schemes do with the arrays of one system."""

import numpy as np

from nbody.compute.compiling.cpu_inner import inner


@inner
def closest_pair(x):
    """The shortest distance of two of the bodies x, (3, n); NaN if a position is not finite."""
    least, total = np.inf, 0.0
    for i in range(1, x.shape[1]):
        for j in range(i):
            dx, dy, dz = x[0, j] - x[0, i], x[1, j] - x[1, i], x[2, j] - x[2, i]
            r2 = dx * dx + dy * dy + dz * dz
            total += r2
            least = min(least, r2)
    return np.sqrt(least) + 0.0 * total


@inner
def is_finite(rows):
    """True if all numbers of a (k, n) array are finite."""
    total = 0.0
    for c in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            total += 0.0 * rows[c, i]
    return total == 0.0


@inner
def copy(source, target):
    """Copy a (k, n) array."""
    for c in range(source.shape[0]):
        for i in range(source.shape[1]):
            target[c, i] = source[c, i]
