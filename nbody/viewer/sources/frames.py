"""The bodies on the way to the screen: which are shown, at one frame, and at a moment between two frames."""

from copy import copy
from dataclasses import dataclass, field
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

LEAST, FAR = 1e-37, 2.0**50
"""Where a body that has merged into another, or has no finite position, is drawn: outside every picture, whose lengths are
below 2^40."""


def drawn(position: Array) -> Array:
    """Which of the positions (..., D) are finite, and not :data:`FAR`: (...) bool."""
    inside: Array = (np.abs(position) < FAR).all(axis=-1)
    return inside


class Selection:
    """Which of ``total`` bodies are drawn: ``count`` of them, all unless they are thinned out. ``rows`` are their numbers (0
    to N-1), increasing; or the slice of all."""

    def __init__(self, total: int) -> None:
        self.count = self._total = total
        self.rows: slice | Array = slice(None)
        self._always: list[int] = []

    def thin_out(self, budget: int) -> None:
        """Draw at most ``budget`` bodies: a random one of each group of neighbouring bodies, the same in every frame."""
        if self._total > budget:
            begin = np.arange(budget + 1) * self._total // budget
            chosen = np.random.default_rng(0).integers(begin[:-1], begin[1:])
            self.rows = rows = np.union1d(chosen, np.array(self._always, np.int64))
            self.count = len(rows)

    def grown(self, total: int) -> "Selection":
        """The same of ``total`` bodies: those that were added are drawn too."""
        other, new = copy(self), np.arange(self._total, total)
        other._total, other.count = total, self.count + len(new)
        if not isinstance(self.rows, slice):
            other.rows = np.append(self.rows, new)
        return other

    def always_draw(self, body: int) -> None:
        """Draw ``body`` (0 to N-1) even if others are left out; call this before :meth:`thin_out`."""
        self._always.append(body)

    def body(self, row: int) -> int:
        """The body (0 to N-1) that is row ``row`` of the arrays of a frame."""
        return row if isinstance(self.rows, slice) else int(self.rows[row])

    def row(self, body: int) -> int | None:
        """The inverse of :meth:`body`; None if the body is not drawn."""
        if isinstance(self.rows, slice):
            return body
        row = int(np.searchsorted(self.rows, body))
        return row if row < len(self.rows) and self.rows[row] == body else None

    def of(self, values: Array) -> Array:
        """The rows of ``values`` (N, ...) that are drawn."""
        return values[self.rows]

    @np.errstate(over="ignore")  # a body that far away is outside every picture
    def vectors(self, values: Array, unit: float) -> Array:
        """The rows of ``values`` (N, D) that are drawn, divided by ``unit``: (count, 3) float32; perhaps a view."""
        if values.dtype == np.float32 and values.shape[1] == 3 and unit == 1.0:
            return values[self.rows]
        out = np.zeros((self.count, 3), np.float32)
        out[:, : values.shape[1]] = values[self.rows] / unit
        return out


@dataclass(eq=False)
class ShownFrame:
    """The shown bodies at one time, in the picture's units: ``position`` and ``velocity`` (shown, 3) float32, ``time`` in
    units of length per speed.

    Attributes:
        number: identifies the frame: buffers of a graphics card that hold this frame are not filled again.
        energy_error: (E - E₀)/|E₀|; NaN if it is not known.
        mass: (N,) float64, of all bodies: those of merged bodies change, and 0 is left of the others.
    """

    number: int
    position: Array
    velocity: Array
    time: float = 0.0
    step: int = 0
    energy_error: float = np.nan
    mass: Array = field(default_factory=lambda: np.zeros(0))

    def on_host(self) -> "ShownFrame":
        """The frame in host memory, where it stays when device memory is reused."""
        return self

    def grown(self, shown: int, total: int) -> "ShownFrame":
        """The frame of ``shown`` of ``total`` bodies, of which those that were added are not there yet."""
        frame = copy(self.on_host())
        frame.position = np.full((shown, 3), FAR, np.float32)
        frame.velocity = np.zeros((shown, 3), np.float32)
        frame.position[: len(self.position)], frame.velocity[: len(self.velocity)] = self.position, self.velocity
        frame.mass = np.append(self.mass, np.zeros(total - len(self.mass)))
        return frame

    def fill(self, position: "VertexBuffer", velocity: "VertexBuffer") -> None:
        """Copy the frame into two vertex buffers of the current OpenGL context."""
        position.set_data(self.position)
        velocity.set_data(self.velocity)

    def release(self) -> None:
        """Declare that the frame is no longer shown: device memory is reused."""


@dataclass(frozen=True, eq=False)
class ShownMoment:
    """A moment between two frames; the drawing interpolates (cubic Hermite, from positions and velocities). ``fraction`` of
    the time between them has passed; ``second`` is None if the moment is that of ``first``."""

    first: ShownFrame
    second: ShownFrame | None = None
    fraction: float = 0.0

    @property
    def interval(self) -> float:
        """The time between the frames, in the picture's unit."""
        return 0.0 if self.second is None else self.second.time - self.first.time

    @property
    def number(self) -> float:
        """The moment, counted in frames."""
        return self.first.number + self.fraction * ((self.second or self.first).number - self.first.number)

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
