"""Draws straight pieces of lines of constant width on the screen, with soft edges: trails, arrows and axes."""

import numpy as np
from vispy import gloo

from nbody.viewer.picture.camera import Camera
from nbody.viewer.picture.shaders import source

Array = np.ndarray
Size = tuple[int, int]

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
        """Have no pieces."""
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
        """Draw the pieces, ``width`` pixels wide.

        Args:
            light: their light in the current target of light, where the brightest of crossing lines is seen; None: draw
                them over a finished picture.
            now: later parts of the pieces are not drawn.
            memory: earlier parts fade, and are not seen ``memory`` before ``now``.
        """
        if not self._count:
            return
        program = self._program
        program["u_view"], program["u_projection"] = (
            matrix.T.astype(np.float32) for matrix in (camera.view(), camera.projection(size))
        )
        program["u_size"], program["u_width"] = size, width
        program["u_now"], program["u_memory"], program["u_light"] = now, memory, 1.0 if light is None else light
        if light is None:
            gloo.set_state(
                blend=True, blend_func=("src_alpha", "one_minus_src_alpha"), depth_test=False, cull_face=False
            )
        else:
            gloo.set_state(blend=True, blend_func=("one", "one"), depth_test=False, cull_face=False)
            gloo.set_blend_equation("max")
        program.draw("triangles", self._triangles)
        gloo.set_blend_equation("func_add")
