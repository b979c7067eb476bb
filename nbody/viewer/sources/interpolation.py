"""Positions between two frames, on the host: what the vertex shader computes, for picking and for cameras that follow."""

import numpy as np

Array = np.ndarray

RESOLVED, UNRESOLVED = 12.0, 3.0
"""The longest tangents, in units of the distance between the two positions, where the velocities explain this distance and
where they do not."""

AGREES, DISAGREES = 0.5, 1.0
"""The velocities explain the distance if it differs from the mean of the tangents by less than the first fraction of itself;
from the second on they do not."""

LEAST = 1e-37


def interpolated(begin: Array, end: Array, out: Array, into: Array, share: float) -> Array:
    """Positions (..., 3) between ``begin`` and ``end``, on a cubic Hermite polynomial with limited tangents.

    A tangent is a velocity times the time between the frames: ``out`` at the begin, ``into`` at the end. The polynomial
    leaves the straight line by up to 4/27 of each, which is wrong for a body that has turned several times in between: a
    binary star of radius a that made ten turns has tangents of 63 a. Such a body shows itself: its velocities do not explain
    how far it came. (A limit relative to the chord, as of Fritsch and Carlson 1980 for monotone interpolation.)
    """
    s, chord = share, end - begin
    moved = _length(chord)
    mismatch = _length(chord - (out + into) / 2) / np.maximum(moved, LEAST)
    blend = np.clip((mismatch - AGREES) / (DISAGREES - AGREES), 0.0, 1.0)
    blend = blend * blend * (3 - 2 * blend)
    most = moved * (RESOLVED + (UNRESOLVED - RESOLVED) * blend)
    out, into = (tangent * np.minimum(1.0, most / np.maximum(_length(tangent), LEAST)) for tangent in (out, into))
    return begin + s * s * (3 - 2 * s) * chord + (1 - s) ** 2 * s * out - s * s * (1 - s) * into


def _length(vectors: Array) -> Array:
    return np.linalg.norm(vectors, axis=-1, keepdims=True)
