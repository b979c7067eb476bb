"""Draws one complete picture: sprites, glow, tone mapping, and the display over them."""

from vispy import gloo
from vispy.gloo import gl

from nbody.errors import InputError
from nbody.viewer.display import hud
from nbody.viewer.display.text import MARGIN, text_scale
from nbody.viewer.picture.camera import Camera
from nbody.viewer.picture.glow import Glow
from nbody.viewer.picture.look import Look
from nbody.viewer.picture.overlay import Overlay
from nbody.viewer.picture.sprites import Sprites, float_targets_work
from nbody.viewer.picture.tonemap import ToneMap, metered
from nbody.viewer.sources.source import Source

SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software rasterizer")
"""Words in the names of OpenGL renderers that run on the processor."""

METER_ATTEMPTS = 10
"""The frames that are tried for the exposure, if the first ones are damaged."""

METER_SIZE = (1280, 720)
"""The size at which the exposure is measured, so that it does not depend on the window's size."""


class Renderer:
    """Draws moments of a source into the current target of ``canvas``.

    Args:
        canvas: a vispy canvas; its context is current.
        source: what to draw.
        budget: the most particles to draw if OpenGL runs on the processor; None for no limit.
        look: how the bodies are drawn.

    Attributes:
        home: the view of the run, in which the exposure is measured.
        moment: the moment loaded last.
        look: give another value at any time. It takes effect with the next :meth:`load` and :meth:`draw`.

    Raises:
        InputError: the first frame is damaged, and so are those after it.
    """

    def __init__(self, canvas, source: Source, budget: int | None = None, look: Look = Look()) -> None:
        self.source, self.look = source, look
        self.name = str(gl.glGetParameter(gl.GL_RENDERER))
        self.software = any(word in self.name.lower() for word in SOFTWARE)
        if budget and self.software:
            source.thin_out(budget)
        self.home = source.home()
        self.sprites = Sprites(source.shown, self.home, float_targets_work(canvas))
        self._glow = Glow(self.sprites.format)
        self._tonemap = ToneMap()
        self._caption = Overlay()
        self._meter()

    def _meter(self) -> None:
        """Set the exposure from the first frame, in the initial view. It stays fixed, so that brightness can be compared."""
        for k in range(attempts := min(self.source.frames, METER_ATTEMPTS)):
            try:
                self.load(k)
                break
            except InputError:  # damaged
                if k == attempts - 1:
                    raise
        self.sprites.draw(self.home, METER_SIZE)
        self._tonemap.white = metered(self.sprites.read())

    def load(self, at: float) -> None:
        """Load the moment ``at``, counted in frames, for :meth:`draw`. Raises InputError for a damaged frame."""
        self.moment = self.source.moment(at)
        self.sprites.load(self.moment, self.source.palette_speeds)

    def draw(self, camera: Camera, size: tuple[int, int], scale: float = 1.0) -> None:
        """Draw the loaded moment into the whole target, ``size`` (width, height) in pixels."""
        self.sprites.draw(camera, size, scale)
        self._glow.draw(self.sprites.light, size, scale)
        gloo.set_viewport(0, 0, *size)
        self._tonemap.draw(self.sprites.light, self._glow.light, self.sprites.range)

    def draw_caption(
        self, at: float, size: tuple[int, int], pixel_scale: float = 1.0, alert: str = ""
    ) -> tuple[int, int]:
        """Draw the caption of the moment ``at`` at the top left. Returns its right and lower edge."""
        scale = text_scale(size, pixel_scale)
        margin = round(MARGIN * scale)
        panel = hud.caption_panel(self.source.caption(at), scale, alert)
        self._caption.draw(panel, (margin, margin), size)
        return margin + panel.shape[1], margin + panel.shape[0]
