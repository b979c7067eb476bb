"""The shown bodies at one frame, and at a moment between two: from the file, or the running simulation, to the screen."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from vispy.gloo import VertexBuffer

Array = np.ndarray

RESOLVED, UNRESOLVED = 12.0, 3.0
"""The longest tangents, in units of the distance between the two positions, where the velocities explain this distance and
where they do not."""

AGREES, DISAGREES = 0.5, 1.0
"""The velocities explain the distance if it differs from the mean of the tangents by less than the first fraction of itself;
from the second on they do not."""

LEAST = 1e-37


@dataclass(eq=False)
class ShownFrame:
    """The shown bodies at one time, in the picture's units.

    Attributes:
        number: identifies the frame: buffers of a graphics card that hold this frame are not filled again.
        position, velocity: (shown, 3) float32; z is 0 in a plane.
        time: in the picture's unit of length per unit of speed.
        step: of the run.
    """

    number: int
    position: Array
    velocity: Array
    time: float = 0.0
    step: int = 0

    def fill(self, position: "VertexBuffer", velocity: "VertexBuffer") -> None:
        """Copy the frame into two vertex buffers of the current OpenGL context."""
        position.set_data(self.position)
        velocity.set_data(self.velocity)

    def release(self) -> None:
        """Declare that the frame is no longer shown: device memory is reused."""


@dataclass(frozen=True, eq=False)
class ShownMoment:
    """A moment between two frames; the drawing interpolates (cubic Hermite, from positions and velocities).

    Attributes:
        first: the frame at or before the moment.
        second: the frame after it; None if the moment is that of ``first``.
        fraction: the time since ``first``, as a fraction of the time between the frames, 0 to 1.
    """

    first: ShownFrame
    second: ShownFrame | None = None
    fraction: float = 0.0

    @property
    def interval(self) -> float:
        """The time between the frames, in the picture's unit."""
        return 0.0 if self.second is None else self.second.time - self.first.time

    def positions(self, rows: slice | int | Array = slice(None)) -> Array:
        """The positions of ``rows`` in float64, interpolated as the shader does it: (rows, 3), or (3,) of one row."""
        first = self.first.position[rows].astype(np.float64)
        if self.second is None or not self.fraction:
            return first
        end = self.second.position[rows].astype(np.float64)
        out, into = (self.interval * each.velocity[rows].astype(np.float64) for each in (self.first, self.second))
        return interpolated(first, end, out, into, self.fraction)

    def velocities(self, rows: slice | int | Array = slice(None)) -> Array:
        """The velocities of ``rows`` in float64, interpolated linearly, as their colours are."""
        first = self.first.velocity[rows].astype(np.float64)
        return first if self.second is None else first + self.fraction * (self.second.velocity[rows] - first)


def interpolated(begin: Array, end: Array, out: Array, into: Array, fraction: float) -> Array:
    """Positions (..., 3) between ``begin`` and ``end``, on a cubic Hermite polynomial with limited tangents.

    A tangent is a velocity times the time between the frames: ``out`` at the begin, ``into`` at the end. The polynomial
    leaves the straight line by up to 4/27 of each, which is wrong for a body that has turned several times in between: a
    binary star of radius a that made ten turns has tangents of 63 a. Such a body shows itself: its velocities do not explain
    how far it came. (A limit relative to the chord, as of Fritsch and Carlson 1980 for monotone interpolation.)
    """
    s, chord = fraction, end - begin
    moved = _length(chord)
    mismatch = _length(chord - (out + into) / 2) / np.maximum(moved, LEAST)
    blend = np.clip((mismatch - AGREES) / (DISAGREES - AGREES), 0.0, 1.0)
    blend = blend * blend * (3 - 2 * blend)
    most = moved * (RESOLVED + (UNRESOLVED - RESOLVED) * blend)
    out, into = (tangent * np.minimum(1.0, most / np.maximum(_length(tangent), LEAST)) for tangent in (out, into))
    return begin + s * s * (3 - 2 * s) * chord + (1 - s) ** 2 * s * out - s * s * (1 - s) * into


def _length(vectors: Array) -> Array:
    return np.linalg.norm(vectors, axis=-1, keepdims=True)
