"""Axes, velocity vectors and the scale bar: what is drawn over a picture to measure it."""

import math
from dataclasses import dataclass

import numpy as np

from nbody.viewer.picture.background import Background
from nbody.viewer.picture.camera import Camera
from nbody.viewer.picture.ribbons import Ribbons
from nbody.viewer.sources.frames import ShownMoment

Array = np.ndarray
Size = tuple[int, int]

MOST_ARROWS = 1000
"""More arrows would hide the bodies; these are spread evenly over the bodies of the file."""

LONGEST_ARROW = 0.10
"""The length of the fastest body's arrow, in units of the view's radius."""

HEAD, HEAD_WIDTH = 0.3, 0.12
"""Length and half width of an arrow's head, in units of the arrow."""

AXIS_SHARE, BAR_SHARE = 0.6, 0.2
"""The greatest length of an axis in units of the view's radius, and of the scale bar in units of the picture's width."""

TICK = 0.012
"""Half the length of a tick of an axis, in units of the view's radius."""


@dataclass(frozen=True, eq=False)
class Mark:
    """A text beyond the end of a line that comes from the origin: ``at`` (3,) in the picture's units."""

    text: str
    at: Array

    def pixel(self, camera: Camera, size: Size, width: int, height: int, gap: float) -> tuple[int, int]:
        """The top left corner of the text, ``width`` x ``height`` pixels large, ``gap`` pixels from the line."""
        origin, end = camera.project(np.stack([0 * self.at, self.at]), size)
        along = (end - origin) / max(float(np.linalg.norm(end - origin)), 1e-9)
        far = gap + abs(along[0]) * width / 2 + abs(along[1]) * height / 2
        x, y = end + far * along
        return round(x - width / 2), round(y - height / 2)


def round_length(most: float) -> float:
    """The largest of 1, 2 or 5 times a power of ten that is at most ``most``."""
    power = 10.0 ** math.floor(math.log10(most))
    return next((digit * power for digit in (5.0, 2.0) if digit * power <= most), power)


def bar_length(camera: Camera, size: Size, length_unit: float) -> tuple[float, float]:
    """The scale bar at the depth of the view's centre: its round length in the scenario's units, and in pixels."""
    pixels = min(size) / 2 / camera.radius / length_unit
    length = round_length(BAR_SHARE * size[0] / pixels)
    return length, length * pixels


class Arrows:
    """The velocities of some bodies as arrows."""

    def __init__(self) -> None:
        self._ribbons = Ribbons()
        self._begin = self._vector = np.zeros((0, 3))

    def load(self, moment: ShownMoment, fastest: float) -> None:
        """Take the positions and velocities of up to :data:`MOST_ARROWS` bodies; ``fastest`` is a speed of the run."""
        if moment.first.position is None or not fastest:
            return
        count = len(moment.first.position)
        rows = np.unique(np.linspace(0, count - 1, min(count, MOST_ARROWS)).astype(int))
        self._begin, self._vector = moment.positions(rows), moment.velocities(rows) / fastest

    def draw(self, camera: Camera, size: Size, scale: float, background: Background) -> None:
        """Draw the arrows over a finished picture."""
        begin, vector = self._begin, self._vector * LONGEST_ARROW * camera.radius
        end = begin + vector
        side = np.cross(vector, camera.axes()[2])  # in the plane of the picture
        heads = [end - HEAD * vector + sign * HEAD_WIDTH * side for sign in (-1, 1)]
        ink = np.array([*background.ink, 0.8])
        self._ribbons.load(np.concatenate([begin, end, end]), np.concatenate([end, *heads]), ink, ink)
        self._ribbons.draw(camera, size, 1.2 * scale)


class Axes:
    """The axes through the origin, with ticks and their lengths."""

    def __init__(self) -> None:
        self._ribbons = Ribbons()

    def draw(
        self, camera: Camera, home: Camera, size: Size, scale: float, background: Background, length_unit: float
    ) -> list[Mark]:
        """Draw the axes over a finished picture. Returns the texts at their ends.

        Args:
            home: the initial view, which determines the length: it changes when the zoom exceeds a factor of five.
            length_unit: the picture's unit of length, in the scenario's.
        """
        zoom = 5.0 ** round(math.log(camera.radius / home.radius, 5.0))
        length = round_length(AXIS_SHARE * home.radius * zoom * length_unit) / length_unit
        tips = length * np.eye(3)[: 2 if camera.flat else 3]
        ticks = np.concatenate([tips * share for share in (0.25, 0.5, 0.75, 1.0)])
        across = np.cross(ticks, camera.axes()[2])
        across *= TICK * camera.radius / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-30)
        begin = np.concatenate([0 * tips, ticks - across])
        ink = np.array([*background.ink, 0.85])
        self._ribbons.load(begin, np.concatenate([tips, ticks + across]), ink, ink)
        self._ribbons.draw(camera, size, 1.4 * scale)
        text = f"{length * length_unit:g}"
        return [Mark(f"{name} = {text}", tip) for name, tip in zip("xyz", tips, strict=False)]
