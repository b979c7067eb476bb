"""Draws one complete picture: bodies, trails, glow, tone mapping, marks, and the caption with its legend."""

from dataclasses import replace

import numpy as np
from vispy import gloo
from vispy.gloo import gl

from nbody.errors import InputError
from nbody.viewer.display.body import RING_SHADES, faded_ring
from nbody.viewer.display.hud import bar_panel, caption_panel, legend_panel, text_panel
from nbody.viewer.display.text import BRIEF_BELOW, MARGIN, text_scale
from nbody.viewer.gl.lines import Ribbons, bar_length, draw_arrows, draw_axes
from nbody.viewer.gl.shaders import Overlay
from nbody.viewer.gl.sprites import Sprites, float_targets_work
from nbody.viewer.gl.tonemap import BLUR, Glow, ToneMap, metered
from nbody.viewer.gl.trails import Trails, check_trails
from nbody.viewer.picture.coloring import Coloring
from nbody.viewer.picture.look import BACKGROUNDS, SIZES, Look
from nbody.viewer.picture.styles import Background
from nbody.viewer.sources.camera import Camera
from nbody.viewer.sources.frames import ShownMoment
from nbody.viewer.sources.source import Source

SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software rasterizer")  # OpenGL on the processor

MOST_IN_A_WINDOW, MOST_ON_A_CPU = 2_000_000, 50_000
"""The most bodies that a window draws with a graphics card (an H200 through EGL draws so many in 25 ms),
and where OpenGL runs on the processor. Each has more light instead."""

METER_ATTEMPTS = 10  # the frames that are tried for the exposure, if the first ones are damaged
MEASURED = 4  # a picture in so many is measured for the automatic exposure
METER_SIZE = (1280, 720)  # the size at which the exposure is measured, so that it does not depend on the window's size
GAP = 6  # pixels between the caption and the legend at scale 1
BAR_BOTTOM = 62  # pixels below the scale bar at scale 1: it stands above a window's time line


class PictureRenderer:
    """Draws moments of a source into the current target of a vispy canvas, whose context is current.

    If ``exact``, it waits for values of colours that take long to compute, and draws every body, so that each picture is
    exact. A window is not: it shows the values known so far, and at most :data:`MOST_IN_A_WINDOW` bodies. Raises InputError
    if the first frames are damaged, or the look can't be drawn for this source.

    Attributes:
        home: the view of the run, in which the exposure is measured.
        moment: the moment loaded last.
        look: may be changed at any time. It takes effect with the next :meth:`load` and :meth:`draw`. If it asks for what
            this source does not have, its color stays what it was, and ``problem`` says why.
        problem: a line about ``look``; empty if there is none.
    """

    def __init__(self, canvas, source: Source, look: Look = Look(), exact: bool = True) -> None:
        self.source, self.look, self._exact = source, look, exact
        self.name = str(gl.glGetParameter(gl.GL_RENDERER))
        self.software = any(word in self.name.lower() for word in SOFTWARE)
        if not exact:
            source.shown.thin_out(MOST_ON_A_CPU if self.software else MOST_IN_A_WINDOW)
        self.home, self.problem = source.home(), ""
        self.sprites = Sprites(source.shown.count, self.home, float_targets_work(canvas))
        self._glow = Glow("rgba8" if self.sprites.format == "rgba8" else "rgba16f")  # it does not sum light
        self._tonemap, self._trails = ToneMap(), Trails(source)
        self._lines, self._overlay = Ribbons(), Overlay()
        check_trails(source, look)
        self._coloring = Coloring(source, look.color, look.map, exact)
        self._drawn, self._pictures = look, 0
        self._meter()

    def _meter(self) -> None:
        """Set the exposure from the first frame, in the initial view: with the automatic one, the least."""
        self._resize()
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
        self.moment: ShownMoment = self.source.moment(at)
        self._follow_look()
        if self.sprites.room != self.source.shown.count:  # bodies were added
            self.sprites.make_room(self.source.shown.count)
            self._resize()
            self._recolour(self._drawn.color)
        self.sprites.load(self.moment, self._coloring)
        self._trails.load(self.moment, self._drawn, self._coloring)

    @property
    def has_newer(self) -> bool:
        """True if another picture of the same moment would have newer colours, or an exposure that suits it better."""
        return self._coloring.has_newer_colours or not self._tonemap.settled

    def _follow_look(self) -> None:
        """Take a new :attr:`look` over."""
        if self.look == self._drawn:
            return
        before, self._drawn, self.problem = self._drawn, self.look, ""
        if self.look.color != before.color:
            try:
                self._recolour(self.look.color)
            except InputError as error:
                self.problem = str(error)
                self._drawn = replace(self.look, color=before.color)
        if self.look.map != before.map:
            self._coloring.map = self.look.map
        if self.look.sizes != before.sizes:
            self._resize()

    def _recolour(self, color: str) -> None:
        coloring = Coloring(self.source, color, self._drawn.map, self._exact)
        self._coloring.close()
        self._coloring = coloring

    def _resize(self) -> None:
        self.sprites.resize(SIZES.load(self.look.sizes)(self.source.shown.of(self.source.catalogue.mass)))

    def draw(self, camera: Camera, size: tuple[int, int], scale: float = 1.0) -> None:
        """Draw the loaded moment into the whole target, ``size`` (width, height) in pixels."""
        look, sprites = self._drawn, self.sprites
        white = self._tonemap.levels(look)[0] * 2**look.exposure / sprites.range
        sprites.draw(camera, size, scale, lambda: self._trails.draw(camera, size, scale, white))
        measure = look.auto_exposure and sprites.varied and self._pictures % MEASURED == 0
        self._pictures += 1
        shrunk = self._glow.draw(sprites.light, size, scale, measure)
        if shrunk is not None:
            self._tonemap.measure(shrunk * sprites.range)
            if self._pictures == 1 and len(self._trails.rows):  # drawn before the first measurement, too dark
                return self.draw(camera, size, scale)
        gloo.set_viewport(0, 0, *size)
        of_one = sprites.light_of_one(camera, size, scale, BLUR * scale) if look.contours or look.smooth else 0.0
        self._tonemap.draw(sprites.light, self._glow.light, sprites.range, look, of_one)
        self._draw_marks(camera, size, scale)

    def _draw_marks(self, camera: Camera, size: tuple[int, int], scale: float) -> None:
        """Draw arrows, axes and the scale bar over the finished picture."""
        look, unit, text = self._drawn, self.source.length_unit, text_scale(size, scale)
        background: Background = BACKGROUNDS.load(look.background)
        width = max(text, scale)  # thinner lines would be dim
        ink = np.array([*background.ink, 0.85])
        if look.vectors:
            fastest = self.source.speeds[1] / self.source.speed_unit
            draw_arrows(self._lines, camera, size, width, ink, self.moment, fastest)
        if look.axes:
            for mark in draw_axes(self._lines, camera, size, width, ink, self.home, unit):
                image = text_panel(mark.text, text)
                corner = mark.pixel(camera, size, image.shape[1], image.shape[0], GAP * text)
                self._overlay.draw(mark.text[0], image, corner, size, background.paper)
        self._draw_flashes(camera, size, text, background.paper)
        if look.scale_bar:
            length, pixels = bar_length(camera, size, unit)
            symbol = self.source.catalogue.units.symbol("length")
            image = bar_panel(length, round(pixels), symbol, text)
            corner = size[0] - image.shape[1] - round(2 * MARGIN * text), size[1] - round(BAR_BOTTOM * text)
            self._overlay.draw("scale bar", image, corner, size, background.paper)

    def _draw_flashes(self, camera: Camera, size: tuple[int, int], text: float, paper: bool) -> None:
        """Mark the latest events with rings that fade."""
        places, ages = self.source.flashes(self.moment.number)
        for (x, y), age in zip(camera.project(places, size) if len(places) else (), ages, strict=True):
            image = faded_ring(text, round((1 - age) * RING_SHADES))
            if 0 <= x < size[0] and 0 <= y < size[1]:
                corner = round(x - image.shape[1] / 2), round(y - image.shape[0] / 2)
                self._overlay.draw("flash", image, corner, size, paper)

    def draw_caption(self, at: float, size: tuple[int, int], pixel_scale: float = 1.0, alert: str = "") -> tuple[int, int]:
        """Draw the caption of the moment ``at`` and, where there is room, the legend at the top left. Returns their
        right and lower edge."""
        scale = text_scale(size, pixel_scale)
        margin, paper = round(MARGIN * scale), BACKGROUNDS.load(self._drawn.background).paper
        brief = size[1] < BRIEF_BELOW * pixel_scale  # all lines would cover a third of the picture
        caption = caption_panel(self.source.caption(at), scale, alert or self.problem, brief)
        self._overlay.draw("caption", caption, (margin, margin), size, paper)
        below = margin + caption.shape[0] + round(GAP * scale)
        legend = legend_panel(self._coloring.legend(), scale, self._drawn.background, brief)
        if margin + legend.shape[1] > size[0] or below + legend.shape[0] > size[1]:
            return margin + caption.shape[1], below
        self._overlay.draw("legend", legend, (margin, below), size, paper)
        return margin + max(caption.shape[1], legend.shape[1]), below + legend.shape[0]
