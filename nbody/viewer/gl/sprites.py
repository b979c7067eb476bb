"""Draws particles as additive point sprites into a texture of floats, which the tone map then converts to colours."""

from collections.abc import Callable

import numpy as np
from vispy import gloo
from vispy.gloo import gl

from nbody.viewer.gl.shaders import new_target, source
from nbody.viewer.picture.coloring import STEPS, Coloring
from nbody.viewer.sources.camera import FEW, Camera, Size
from nbody.viewer.sources.frames import Array, ShownFrame, ShownMoment

SPACING_FRACTION = 0.12  # sigma of a sprite per mean distance between particles in the initial view
LEAST_SIGMA = 0.6  # in pixels at scale 1; with it the flux depends on the position between the pixels by less than 1 %
GREATEST_SIGMA = 4.0 / 720  # per shorter side of the picture, so that a few bodies look the same at every size
SPLINE_SCALE = 1.25  # up to this scale, the narrowest sprites are splines of 3 × 3 pixels; a Gaussian needs 4 × 4
CLOUDS_FROM = 2_000_000  # bodies from which on splines have 2 × 2 pixels: less smooth, but nobody sees a single body

DISCS_UP_TO, DISC_PEAK = 512, 0.5
"""The most bodies that are drawn as discs, and the light of a disc in units of the texture's values."""

DISC_RADIUS = 8.0 / 720  # of up to FEW discs, per shorter side of the picture; more have a smaller one

BYTES_PER_SPRITE = 4.0
"""Without floats, the value (0 to 255) at the middle of a sprite in the initial view. A smaller value would be lost in
rounding; with this one a core of 64 sprites per pixel saturates."""


class FrameBuffers:
    """The vertex buffers that hold one frame of ``count`` bodies."""

    def __init__(self, count: int) -> None:
        self._count, self.number = count, -1
        self.position, self.velocity = (gloo.VertexBuffer(np.zeros((count, 3), np.float32)) for _ in range(2))
        self.value: gloo.VertexBuffer | None = None
        self._valued: tuple[Coloring | None, int] = (None, -1)

    def load(self, frame: ShownFrame, coloring: Coloring) -> None:
        """Copy ``frame`` and the values of its colours into the buffers, unless they hold them."""
        if frame.number != self.number:
            frame.fill(self.position, self.velocity)
            self.number = frame.number
        if coloring.in_shader:
            return
        number, values = coloring.values(frame)
        if self.value is None:
            self.value = gloo.VertexBuffer(np.zeros(self._count, np.float32))
        if values is not None and self._valued != (coloring, number):
            self.value.set_data(values)
            self._valued = (coloring, number)


class Sprites:
    """Draws particles into ``light``, a texture of shape (height, width, 4): RGB, and in alpha the light without a colour.

    Each particle has 1/N of the light. Spread evenly over a disc of radius ``home.radius``, the light of all particles
    is 1/π per pixel, independent of N and of the picture's size. Up to :data:`DISCS_UP_TO` particles are discs instead,
    which have one brightness and one size in pixels in every view.

    ``count`` is N, and ``room`` how many there are after some were added, which are drawn as the others; light and width of
    a sprite refer to the initial view ``home``. Without a ``float_target`` the texture
    has bytes in units of ``range``/255. (A half float stops to grow at 2048 times what is added, which would cut off the
    brightness of cores.)
    """

    def __init__(self, count: int, home: Camera, float_target: bool = True) -> None:
        self.discs = count <= DISCS_UP_TO
        self.format = "rgba32f" if float_target else "rgba8"
        # The light in the middle of a sprite, in the initial view at a height of 720 pixels.
        peak = min(1 / (2 * np.pi**2 * SPACING_FRACTION**2), 360.0**2 / (2 * np.pi * count * LEAST_SIGMA**2))
        self.range = 1.0 if float_target or self.discs else 255 / BYTES_PER_SPRITE * peak
        self._count = count
        self.make_room(count)
        self._flux = home.radius**2 / count / self.range
        self._sigma = SPACING_FRACTION * home.radius * np.sqrt(np.pi / count)
        self._sizes: gloo.VertexBuffer | None = None
        self._palette_of: tuple[Coloring, str] | None = None
        self._programs: dict[tuple[str, ...], gloo.Program] = {}
        self._program: gloo.Program | None = None
        self._size: Size = (0, 0)

    @property
    def varied(self) -> bool:
        """True if :attr:`light` has faint and bright parts: discs and bytes have not."""
        return not self.discs and self.format != "rgba8"

    def make_room(self, count: int) -> None:
        """From now on frames have ``count`` rows."""
        self.room = count
        self._first, self._second = FrameBuffers(count), FrameBuffers(count)

    def resize(self, sizes: Array | None) -> None:
        """Set a factor of the width and a factor of the light of each body, (count, 2); None if no body differs."""
        self._sizes = None if sizes is None else gloo.VertexBuffer(np.ascontiguousarray(sizes, np.float32))

    def load(self, moment: ShownMoment, coloring: Coloring) -> None:
        """Load a moment with its colours. A frame that is loaded already is not copied again."""
        first, second = moment.first, moment.second or moment.first
        if self._second.number == first.number or self._first.number == second.number:
            self._first, self._second = self._second, self._first
        self._first.load(first, coloring)
        if second is not first:
            self._second.load(second, coloring)
        self._program = program = self._compiled(second is first, coloring)
        program["a_position"], program["a_velocity"] = self._first.position, self._first.velocity
        if not coloring.in_shader:
            program["a_value"] = self._first.value
        if second is not first:
            program["a_next_position"], program["a_next_velocity"] = self._second.position, self._second.velocity
            program["u_fraction"], program["u_interval"] = moment.fraction, moment.interval
            if not coloring.in_shader:
                program["a_next_value"] = self._second.value
        if self._sizes is not None:
            program["a_size"] = self._sizes
        if (coloring, coloring.map) != self._palette_of:
            self._palette_of, palette = (coloring, coloring.map), coloring.legend().colours(STEPS)[None]
            self._palette = gloo.Texture2D(palette, interpolation="linear", wrapping="clamp_to_edge")
        program["u_palette"], program["u_scale"] = self._palette, coloring.scale()

    def _compiled(self, still: bool, coloring: Coloring) -> gloo.Program:
        """The program that computes no more than is needed."""
        uses = {
            "STILL": still, "VALUES": not coloring.in_shader, "SIZES": self._sizes is not None,
            "DISCS": self.discs, "CLOUDS": self._count >= CLOUDS_FROM,
        }  # fmt: skip
        words = tuple(word for word, used in uses.items() if used)
        if words not in self._programs:
            program = gloo.Program(source("sprites.vert", words), source("sprites.frag", words))
            program["u_sigma"], program["u_peak"] = self._sigma, DISC_PEAK
            self._programs[words] = program
        return self._programs[words]

    def draw(self, camera: Camera, size: Size, scale: float = 1.0, before: Callable[[], object] = lambda: None) -> None:
        """Draw the particles into :attr:`light` as seen by ``camera``, at ``size`` (width, height) in pixels, after what
        ``before`` draws there."""
        if size != self._size:
            self._size = size
            self.light, self._target = new_target(size, self.format)
        program = self._program
        assert program is not None, "load a moment first"
        program["u_view"] = camera.view().T.astype(np.float32)
        program["u_projection"] = camera.projection(size).T.astype(np.float32)
        program["u_pixels"] = camera.pixels_per_length(size)
        program["u_sigma_limits"] = scale * LEAST_SIGMA, max(scale * LEAST_SIGMA, GREATEST_SIGMA * min(size))
        program["u_radius"] = DISC_RADIUS * min(size) * min(1.0, np.sqrt(FEW / self._count))
        program["u_flux"] = self._flux
        program["u_spline"] = float(scale <= SPLINE_SCALE)
        with self._target:
            gloo.set_viewport(0, 0, *size)
            gloo.clear(color=(0, 0, 0, 0))
            gloo.set_clear_color((0, 0, 0, 1))  # vispy later clears the window's alpha with this colour
            before()
            gloo.set_state(blend=True, blend_func=("one", "one"), depth_test=False, cull_face=False)
            program.draw("points")

    def light_of_one(self, camera: Camera, size: Size, scale: float, blur: float) -> float:
        """The light in the middle of a sprite at the distance of the camera's centre, blurred by a Gaussian of ``blur``
        pixels."""
        pixels = camera.pixels_per_length(size) / (1.0 if camera.flat else camera.distance)
        sigma = np.clip(self._sigma * pixels, scale * LEAST_SIGMA, max(scale * LEAST_SIGMA, GREATEST_SIGMA * min(size)))
        return float(self._flux * self.range * pixels**2 / (2 * np.pi * (sigma**2 + blur**2)))

    def read(self) -> Array:
        """:attr:`light` as a (height, width, 3) float32 array, the top row first."""
        with self._target:
            values = gloo.read_pixels((0, 0, *self._size), alpha=False, out_type=np.float32)
        return values.reshape(self._size[1], self._size[0], 3) * self.range


def float_targets_work(canvas) -> bool:
    """True if this OpenGL can draw into floats, that is, if it stores a value above 1."""
    try:
        with new_target((4, 4), "rgba32f")[1]:
            canvas.context.flush_commands()
            gl.glClearColor(4.0, 0.0, 0.0, 1.0)  # gloo's own clear() refuses values above 1
            gl.glClear(gl.GL_COLOR_BUFFER_BIT)
            return bool(gloo.read_pixels((0, 0, 4, 4), out_type=np.float32).max() > 2.0)
    except RuntimeError:
        return False
