"""Draws one complete picture: sprites, glow, tone mapping, and the display over them."""

from vispy import gloo
from vispy.gloo import gl

from nbody.viewer.display import hud
from nbody.viewer.picture.camera import Camera
from nbody.viewer.picture.glow import Glow
from nbody.viewer.picture.overlay import Overlay
from nbody.viewer.picture.sprites import Sprites, float_targets_work
from nbody.viewer.picture.tonemap import ToneMap, metered
from nbody.viewer.sources.source import Source

SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software rasterizer")
"""Words in the names of OpenGL renderers that run on the processor."""

METER_SIZE = (1280, 720)
"""The size at which the exposure is measured, so that it does not depend on the window's size."""


class Renderer:
    """Draws moments of a source into the current target of ``canvas``.

    Args:
        canvas: a vispy canvas; its context is current.
        source: what to draw.
        budget: the most particles to draw if OpenGL runs on the processor; None for no limit.
        first: the frame from which view and exposure are determined.
    """

    def __init__(self, canvas, source: Source, budget: int | None = None, first: int = 0) -> None:
        self.source = source
        self.name = str(gl.glGetParameter(gl.GL_RENDERER))
        self.software = any(word in self.name.lower() for word in SOFTWARE)
        if budget and self.software:
            source.thin_out(budget)
        self.home = source.home(first)
        self.sprites = Sprites(source.shown, self.home, float_targets_work(canvas))
        self._glow = Glow(self.sprites.format)
        self._tonemap = ToneMap()
        self._caption, self._keys, self._timeline = Overlay(), Overlay(), Overlay()
        self._meter(first)

    def _meter(self, frame: int) -> None:
        """Set the exposure from one frame in the initial view. It stays fixed, so that brightness can be compared."""
        self.load(frame)
        self.sprites.draw(self.home, METER_SIZE)
        self._tonemap.white = metered(self.sprites.read())

    def load(self, at: float) -> None:
        """Load the moment ``at``, counted in frames, for :meth:`draw`. Raises InputError for a damaged frame."""
        self.sprites.load(self.source.moment(at), self.source.palette_speeds)

    def draw(self, camera: Camera, size: tuple[int, int], scale: float = 1.0) -> None:
        """Draw the loaded moment into the whole target, ``size`` (width, height) in pixels."""
        self.sprites.draw(camera, size, scale)
        self._glow.draw(self.sprites.light, size, scale)
        gloo.set_viewport(0, 0, *size)
        self._tonemap.draw(self.sprites.light, self._glow.light, self.sprites.range)

    def draw_caption(self, at: float, size: tuple[int, int], scale: float = 1.0, alert: str = "") -> None:
        """Draw the caption of the moment ``at`` at the top left."""
        margin = round(hud.MARGIN * scale)
        panel = hud.caption_panel(self.source.caption(at), scale, alert)
        self._caption.draw(panel, (margin, margin), size)

    def draw_controls(self, keys: str, frame: int, frames: int, size: tuple[int, int], scale: float) -> None:
        """Draw the time line at the bottom and the key help above it."""
        line = hud.Timeline(size, scale)
        self._timeline.draw(line.image(frame, frames), (line.left, line.top), size)
        panel = hud.key_panel(keys, scale)
        self._keys.draw(panel, (line.left, line.top - panel.shape[0] - round(2 * scale)), size)
