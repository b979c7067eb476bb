"""Lines on the screen: straight pieces of constant width with soft edges; axes, velocity vectors and the scale bar."""

import math
from dataclasses import dataclass

import numpy as np
from vispy import gloo

from nbody.viewer.gl.shaders import source
from nbody.viewer.sources.camera import Camera, Size
from nbody.viewer.sources.frames import Array, ShownMoment

CORNERS = np.array([[0, -1], [0, 1], [1, -1], [1, 1]], np.float32)
TRIANGLES = np.array([0, 1, 2, 2, 1, 3], np.uint32)

VERTEX = np.dtype(
    [("a_from", "3f4"), ("a_to", "3f4"), ("a_from_colour", "4f4"), ("a_to_colour", "4f4"), ("a_time", "2f4"),
     ("a_corner", "2f4")]
)  # fmt: skip
"""One of the four corners of a piece."""


class Ribbons:
    """Pieces of lines."""

    def __init__(self) -> None:
        self._program = gloo.Program(source("ribbon.vert"), source("ribbon.frag"))
        self._count = 0
        self._made_for = -1

    def clear(self) -> None:
        self._count = 0

    def load(self, begin: Array, end: Array, begin_colour: Array, end_colour: Array, time: Array | None = None) -> None:
        """Set the pieces: their ends (S, 3), the colours there (S, RGBA), and the times there (S, 2), for :meth:`draw`."""
        self._count = len(begin)
        if not self._count:
            return
        vertices = np.zeros((self._count, 4), VERTEX)
        for name, values in (
            ("a_from", begin), ("a_to", end), ("a_from_colour", begin_colour), ("a_to_colour", end_colour)
        ):  # fmt: skip
            vertices[name] = np.broadcast_to(values, (self._count, np.shape(values)[-1]))[:, None]
        vertices["a_time"] = 0.0 if time is None else time[:, None]
        vertices["a_corner"] = CORNERS
        self._program.bind(gloo.VertexBuffer(vertices.reshape(-1)))
        if self._made_for != self._count:
            corners = 4 * np.arange(self._count, dtype=np.uint32)[:, None] + TRIANGLES
            self._triangles, self._made_for = gloo.IndexBuffer(corners.reshape(-1)), self._count

    def draw(
        self,
        camera: Camera,
        size: Size,
        width: float,
        light: float | None = None,
        now: float = 0.0,
        memory: float = 1e30,
    ) -> None:
        """Draw the pieces, ``width`` pixels wide: over a finished picture, or, with ``light``, into the current target of
        light, where the brightest of crossing lines is seen. Their parts later than ``now`` are not drawn, and earlier ones
        fade until they are not seen ``memory`` before ``now``."""
        if not self._count:
            return
        program = self._program
        program["u_view"], program["u_projection"] = (
            matrix.T.astype(np.float32) for matrix in (camera.view(), camera.projection(size))
        )
        program["u_size"], program["u_width"] = size, width
        program["u_now"], program["u_memory"], program["u_light"] = now, memory, 1.0 if light is None else light
        blending = ("src_alpha", "one_minus_src_alpha") if light is None else ("one", "one")
        gloo.set_state(blend=True, blend_func=blending, depth_test=False, cull_face=False)
        if light is not None:
            gloo.set_blend_equation("max")
        program.draw("triangles", self._triangles)
        gloo.set_blend_equation("func_add")


MOST_ARROWS = 1000  # more arrows would hide the bodies; these are spread evenly over the bodies of the file
LONGEST_ARROW = 0.10  # the length of the fastest body's arrow, in units of the view's radius
HEAD, HEAD_WIDTH = 0.3, 0.12  # length and half width of an arrow's head, in units of the arrow
AXIS_FRACTION = 0.6  # longest axis, in units of the view's radius
BAR_FRACTION = 0.2  # longest scale bar, in units of the picture's width
TICK = 0.012  # half the length of a tick of an axis, in units of the view's radius


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
    length = round_length(BAR_FRACTION * size[0] / pixels)
    return length, length * pixels


def draw_arrows(
    ribbons: Ribbons, camera: Camera, size: Size, scale: float, ink: Array, moment: ShownMoment, fastest: float
) -> None:
    """Draw the velocities of up to :data:`MOST_ARROWS` bodies over a finished picture; ``fastest`` is a speed of the run."""
    count = len(moment.first.position) if fastest else 0
    rows = np.unique(np.linspace(0, count - 1, min(count, MOST_ARROWS)).astype(int))
    begin, vector = moment.positions(rows), moment.velocities(rows) * (LONGEST_ARROW * camera.radius / (fastest or 1.0))
    end, side = begin + vector, np.cross(vector, camera.axes()[2])  # in the plane of the picture
    heads = [end - HEAD * vector + sign * HEAD_WIDTH * side for sign in (-1, 1)]
    ribbons.load(np.concatenate([begin, end, end]), np.concatenate([end, *heads]), ink, ink)
    ribbons.draw(camera, size, 1.2 * scale)


def draw_axes(
    ribbons: Ribbons, camera: Camera, size: Size, scale: float, ink: Array, home: Camera, length_unit: float
) -> list[Mark]:
    """Draw the axes through the origin over a finished picture, with ticks. Returns the texts at their ends. The initial
    view ``home`` determines the length: it changes when the zoom exceeds a factor of five."""
    zoom = 5.0 ** round(math.log(camera.radius / home.radius, 5.0))
    length = round_length(AXIS_FRACTION * home.radius * zoom * length_unit) / length_unit
    tips = length * np.eye(3)[: 2 if camera.flat else 3]
    ticks = np.concatenate([tips * part for part in (0.25, 0.5, 0.75, 1.0)])
    across = np.cross(ticks, camera.axes()[2])
    across *= TICK * camera.radius / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-30)
    begin = np.concatenate([0 * tips, ticks - across])
    ribbons.load(begin, np.concatenate([tips, ticks + across]), ink, ink)
    ribbons.draw(camera, size, 1.4 * scale)
    text = f"{length * length_unit:g}"
    return [Mark(f"{name} = {text}", tip) for name, tip in zip("xyz", tips, strict=False)]
