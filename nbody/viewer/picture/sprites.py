"""Draws particles as additive point sprites into a texture of half floats, which the tone map then converts to colours."""

import numpy as np
from vispy import gloo
from vispy.gloo import gl

from nbody.viewer.picture.camera import Camera
from nbody.viewer.picture.palette import palette
from nbody.viewer.picture.shaders import source
from nbody.viewer.sources.source import Frame, Moment

Array = np.ndarray
Size = tuple[int, int]

SPACING_SHARE = 0.12
"""Width (sigma) of a sprite as a fraction of the mean distance between particles in the initial view."""

LEAST_SIGMA = 0.6
"""The smallest sigma, in pixels at scale 1. At this width the flux of a Gaussian depends on its position between the pixels
by less than 1 %."""

GREATEST_SIGMA = 4.0 / 720
"""The largest sigma, as a fraction of the picture's shorter side, so that a few bodies look the same at every size."""

BYTES_PER_SPRITE = 4.0
"""Without half floats, the value (0 to 255) at the middle of a sprite in the initial view. A smaller value would be lost in
rounding; with this one a core of 64 sprites per pixel saturates."""


class FrameBuffers:
    """The vertex buffers that hold one frame of ``count`` bodies."""

    def __init__(self, count: int) -> None:
        self.number = -1
        self.position, self.velocity = (gloo.VertexBuffer(np.zeros((count, 3), np.float32)) for _ in range(2))

    def load(self, frame: Frame) -> None:
        """Copy ``frame`` into the buffers, unless they hold it."""
        if frame.number != self.number:
            frame.fill(self.position, self.velocity)
            self.number = frame.number


class Sprites:
    """Draws particles into ``light``, a texture of shape (height, width, 4): RGB and an alpha of 1.

    Each particle has 1/N of the light. Spread evenly over a disc of radius ``home.radius``, the light of all particles
    is 1/π per pixel, independent of N and of the picture's size.

    Args:
        count: N, the number of particles that are drawn.
        home: the initial view, to which the light and the width of a sprite refer.
        float_target: True for a texture of half floats; False for bytes in units of ``range``/255.
    """

    def __init__(self, count: int, home: Camera, float_target: bool = True) -> None:
        self.format = "rgba16f" if float_target else "rgba8"
        self.range = 1.0 if float_target else 255 / BYTES_PER_SPRITE * _peak(count)
        self._first, self._second = FrameBuffers(count), FrameBuffers(count)
        self._program = gloo.Program(source("sprites.vert"), source("sprites.frag"))
        self._program["u_palette"] = gloo.Texture2D(palette()[None], interpolation="linear", wrapping="clamp_to_edge")
        self._program["u_flux"] = home.radius**2 / count / self.range
        self._program["u_sigma"] = SPACING_SHARE * home.radius * np.sqrt(np.pi / count)
        self._size: Size = (0, 0)

    def load(self, moment: Moment, speeds: tuple[float, float]) -> None:
        """Load a moment, and the speeds at the palette's ends. A frame that is loaded already is not copied again."""
        first, second = moment.first, moment.second or moment.first
        if self._second.number == first.number or self._first.number == second.number:
            self._first, self._second = self._second, self._first
        self._first.load(first)
        if second is first:
            after = self._first
        else:
            after = self._second
            after.load(second)
        program = self._program
        program["a_position"], program["a_velocity"] = self._first.position, self._first.velocity
        program["a_next_position"], program["a_next_velocity"] = after.position, after.velocity
        program["u_share"], program["u_interval"] = moment.share, moment.interval
        program["u_speeds"] = speeds

    def draw(self, camera: Camera, size: Size, scale: float = 1.0) -> None:
        """Draw the particles into :attr:`light` as seen by ``camera``, at ``size`` (width, height) in pixels."""
        if size != self._size:
            self._make_target(size)
        program = self._program
        program["u_view"] = camera.view().T.astype(np.float32)
        program["u_projection"] = camera.projection(size).T.astype(np.float32)
        program["u_pixels"] = camera.pixels_per_length(size)
        program["u_sigma_limits"] = scale * LEAST_SIGMA, max(scale * LEAST_SIGMA, GREATEST_SIGMA * min(size))
        with self._target:
            gloo.set_viewport(0, 0, *size)
            gloo.set_state(blend=True, blend_func=("one", "one"), depth_test=False, cull_face=False)
            # Alpha 1, because vispy later clears the window's alpha with this same clear colour.
            gloo.clear(color=(0, 0, 0, 1))
            program.draw("points")

    def _make_target(self, size: Size) -> None:
        self._size = size
        shape = (size[1], size[0], 4)
        self.light = gloo.Texture2D(shape, format="rgba", internalformat=self.format, interpolation="linear")
        self._target = gloo.FrameBuffer(color=self.light)

    def read(self) -> Array:
        """:attr:`light` as a (height, width, 3) float32 array, the top row first."""
        with self._target:
            values = gloo.read_pixels((0, 0, *self._size), alpha=False, out_type=np.float32)
        return values.reshape(self._size[1], self._size[0], 3) * self.range


def _peak(count: int) -> float:
    """The light in the middle of a sprite, in the initial view at a height of 720 pixels."""
    unclamped = 1 / (2 * np.pi**2 * SPACING_SHARE**2)
    return min(unclamped, 360.0**2 / (2 * np.pi * count * LEAST_SIGMA**2))


def float_targets_work(canvas) -> bool:
    """True if this OpenGL can draw into half floats, that is, if it stores a value above 1."""
    try:
        texture = gloo.Texture2D((4, 4, 4), format="rgba", internalformat="rgba16f")
        target = gloo.FrameBuffer(color=texture)
        with target:
            canvas.context.flush_commands()
            gl.glClearColor(4.0, 0.0, 0.0, 1.0)  # gloo's own clear() refuses values above 1
            gl.glClear(gl.GL_COLOR_BUFFER_BIT)
            return bool(gloo.read_pixels((0, 0, 4, 4), out_type=np.float32).max() > 2.0)
    except RuntimeError:
        return False
