"""One whole picture: particles as light, the light as colours, the display over it."""

from vispy import gloo
from vispy.gloo import gl

from nbody.viewer import hud
from nbody.viewer.camera import Camera
from nbody.viewer.glow import Glow
from nbody.viewer.overlay import Overlay
from nbody.viewer.recording import Recording
from nbody.viewer.sprites import Sprites, float_targets_work
from nbody.viewer.tonemap import ToneMap, metered

SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software rasterizer")
"""Words in the names of what draws without a graphics card."""

METER_SIZE = (1280, 720)
"""The picture that the exposure is measured in, so that a small window is not brighter than a large one."""


class Renderer:
    """Draws frames of a recording into the current target of ``canvas``.

    Args:
        canvas: a vispy canvas; its context is current.
        recording: what to draw.
        budget: the most particles to draw where a processor does the work of a graphics card.
        first: the frame that the view and the exposure begin with.
    """

    def __init__(self, canvas, recording: Recording, budget: int | None = None, first: int = 0) -> None:
        self.recording = recording
        self.name = str(gl.glGetParameter(gl.GL_RENDERER))
        self.software = any(word in self.name.lower() for word in SOFTWARE)
        if budget and self.software:
            recording.thin_out(budget)
        self.home = recording.home(first)
        self.sprites = Sprites(recording.shown, self.home, float_targets_work(canvas))
        self._glow = Glow(self.sprites.format)
        self._tonemap = ToneMap()
        self._caption, self._keys, self._timeline = Overlay(), Overlay(), Overlay()
        self._loaded = -1
        self._meter(first)

    def _meter(self, frame: int) -> None:
        """Set the exposure by a frame, framed; it stays, so that brightness can be compared."""
        self.load(frame)
        self.sprites.draw(self.home, METER_SIZE)
        self._tonemap.white = metered(self.sprites.read())

    def load(self, frame: int) -> None:
        """Put the particles of ``frame`` where :meth:`draw` finds them. Raises InputError for a damaged frame."""
        if frame != self._loaded:
            self.sprites.load(*self.recording.particles(frame), self.recording.palette_speeds)
            self._loaded = frame

    def draw(self, camera: Camera, size: tuple[int, int], scale: float = 1.0) -> None:
        """Draw the particles of the loaded frame over the whole target, ``size`` (width, height) in pixels."""
        self.sprites.draw(camera, size, scale)
        self._glow.draw(self.sprites.light, size, scale)
        gloo.set_viewport(0, 0, *size)
        self._tonemap.draw(self.sprites.light, self._glow.light, self.sprites.range)

    def draw_caption(self, frame: int, size: tuple[int, int], scale: float = 1.0, alert: str = "") -> None:
        """Draw what there is to say about a frame, at the top left."""
        margin = round(hud.MARGIN * scale)
        panel = hud.caption_panel(self.recording.caption(frame), scale, alert)
        self._caption.draw(panel, (margin, margin), size)

    def draw_controls(self, keys: str, frame: int, frames: int, size: tuple[int, int], scale: float) -> None:
        """Draw the time line at the bottom, and the line of keys above it."""
        line = hud.Timeline(size, scale)
        self._timeline.draw(line.image(frame, frames), (line.left, line.top), size)
        panel = hud.key_panel(keys, scale)
        self._keys.draw(panel, (line.left, line.top - panel.shape[0] - round(2 * scale)), size)
