"""What the window writes over the picture, besides the caption: state and keys, time line, diagrams, chosen body."""

from collections.abc import Callable
from time import perf_counter

import numpy as np

from nbody.viewer.display.body import body_panel, facts, ring
from nbody.viewer.display.diagram import HEIGHT, WIDTH
from nbody.viewer.display.hud import CAPTION_WIDTH, Timeline
from nbody.viewer.display.keys import key_table, state_panel
from nbody.viewer.display.text import MARGIN, text_scale
from nbody.viewer.picture.choices import BACKGROUNDS
from nbody.viewer.picture.overlay import Overlay
from nbody.viewer.sources.frames import ShownMoment
from nbody.viewer.sources.source import Source
from nbody.viewer.window.controls import BODY, Controls
from nbody.viewer.window.diagrams import Diagrams
from nbody.viewer.window.layout import Box, Layout

Array = np.ndarray
Size = tuple[int, int]

FACTS_SECONDS = 0.1
"""The least time between two changes of a moving body's numbers."""

LEAST_HEIGHT = 90
"""The least height of the diagrams, in pixels at scale 1."""

SCALE_BAR_SHARE = 0.2
"""The part of the width, at the right, that the scale bar may take."""


class Panels:
    """Draws the panels into the current target.

    Args:
        source: what the picture shows.
        controls: what the user has chosen.

    Attributes:
        diagrams: those of the source.
        followed: what the camera follows, in words.
    """

    def __init__(self, source: Source, controls: Controls) -> None:
        self._source, self._controls = source, controls
        self._transport = controls.transport
        self._overlay: Overlay | None = None  # compiles shaders when it is made
        self._images: dict[str, tuple[tuple, Array]] = {}
        self.diagrams, self.followed = Diagrams(source), ""
        self._diagram_size, self._scale = (WIDTH, HEIGHT), 1.0
        self._facts_at = 0.0
        self._caption = (CAPTION_WIDTH, 0)  # right and lower edge of the caption that was drawn last

    def tick(self, seconds: float) -> bool:
        """Let time pass. Returns True if there is something new to draw."""
        return self._controls.show_diagrams and self.diagrams.tick(seconds, self._diagram_size, self._scale)

    def close(self) -> None:
        """End the thread that draws diagrams."""
        self.diagrams.close()

    def draw_marker(self, moment: ShownMoment, size: Size, pixel_scale: float) -> None:
        """Draw the ring around the chosen body."""
        row = self._row()
        if row is None:
            return
        x, y = self._controls.camera.project(moment.positions(row)[None], size)[0]
        image = self._cached("ring", (pixel_scale,), lambda: ring(pixel_scale))
        half = image.shape[0] / 2
        if -half < x < size[0] + half and -half < y < size[1] + half:
            self._draw("ring", image, (round(x - half), round(y - half)), size)

    def draw_facts(
        self,
        at: float,
        moment: ShownMoment,
        size: Size,
        pixel_scale: float,
        draw_caption: Callable[[], tuple[int, int]],
    ) -> None:
        """Draw caption, chosen body and diagrams. Where there is no room for all, the caption is left out, then the
        diagrams. ``draw_caption`` returns the caption's right and lower edge."""
        scale = self._scale = text_scale(size, pixel_scale)
        margin, row = round(MARGIN * scale), self._row()
        body = None if row is None else self._body_image(row, at, moment, scale)
        area = margin, margin, size[0] - margin, self._state_top(size, pixel_scale) - margin // 2
        for captioned, with_diagrams in ((True, True), (False, True), (False, False)):
            layout = Layout(area, margin // 2)
            if captioned:
                layout.take((margin, margin, *self._caption))
            corner = (margin, margin) if body is None else layout.place((body.shape[1], body.shape[0]))
            box = self._place_diagrams(layout, scale) if with_diagrams else None
            if corner and (box or not self._controls.show_diagrams):
                break
        if captioned:
            self._caption = draw_caption()
        if body is not None:
            self._draw("body", body, corner or (margin, margin), size)
        if box:
            self._draw_diagrams(at, box, size, scale)

    def _body_image(self, row: int, at: float, moment: ShownMoment, scale: float) -> Array:
        """The panel of the chosen body. While it moves, the numbers change only as fast as they can be read."""
        now = perf_counter()
        key = (row, self._controls.follow == BODY, scale, at, moment.first.number)
        before, image = self._images.get("body", ((None, None, None), None))
        recent = self._transport.playing and now - self._facts_at < FACTS_SECONDS
        if image is None or before[:3] != key[:3] or (before != key and not recent):
            self._facts_at, image = now, body_panel(facts(self._source, moment, row), key[1], scale)
            self._images["body"] = (key, image)
        return image

    def _place_diagrams(self, layout: Layout, scale: float) -> Box | None:
        if not self._controls.show_diagrams:
            return None
        return layout.place_wide((round(WIDTH * scale), round(HEIGHT * scale)), round(LEAST_HEIGHT * scale))

    def _draw_diagrams(self, at: float, box: Box, size: Size, scale: float) -> None:
        self._diagram_size = box[2] - box[0], box[3] - box[1]
        drawn = self.diagrams.drawn
        if drawn is None:
            return
        self._draw("diagram", drawn.image, box[:2], size)
        for k, (x, y, pixels) in enumerate(drawn.cursor(self._source.caption(at).time, scale)):
            self._draw(f"cursor {k}", pixels, (box[0] + x, box[1] + y), size)

    def draw_controls(self, notice: str, size: Size, pixel_scale: float) -> None:
        """Draw time line, state and key help at the bottom, and the table of keys if it is asked for."""
        scale, controls, transport = text_scale(size, pixel_scale), self._controls, self._transport
        line = self.timeline(size, pixel_scale)
        if transport.frames > 1:
            self._draw("timeline", line.image(transport.at, transport.frames), (line.left, line.top), size)
        if controls.show_keys:
            key = (size, scale, controls.camera.flat, transport.kind)
            image = self._cached("keys", key, lambda: key_table(controls.key_table, (size[0], line.top), scale))
            self._draw("keys", image, ((size[0] - image.shape[1]) // 2, (line.top - image.shape[0]) // 2), size)
            return
        width = line.width - (round(SCALE_BAR_SHARE * size[0] + 3 * MARGIN * scale) if controls.look.scale_bar else 0)
        state = (transport.status + self._following(), notice, tuple(controls.hints), width, scale)
        image = self._cached("state", state, lambda: state_panel(state[0], notice, controls.hints, width, scale))
        self._draw("state", image, (line.left, self._state_bottom(size, pixel_scale) - image.shape[0]), size)

    def timeline(self, size: Size, pixel_scale: float) -> Timeline:
        """The time line of a picture of ``size``."""
        return Timeline(size, text_scale(size, pixel_scale))

    def _state_bottom(self, size: Size, pixel_scale: float) -> int:
        line = self.timeline(size, pixel_scale)
        return line.top - round(2 * line.scale) if self._transport.frames > 1 else line.top + line.height

    def _state_top(self, size: Size, pixel_scale: float) -> int:
        """The upper edge of the state panel, as it was drawn last."""
        last = self._images.get("state")
        return self._state_bottom(size, pixel_scale) - (last[1].shape[0] if last else 0)

    def _following(self) -> str:
        return f",  following {self.followed}" if self.followed else ""

    def _row(self) -> int | None:
        """The row of the chosen body in the arrays of a moment."""
        return None if self._controls.chosen is None else self._source.shown.row(self._controls.chosen)

    def _cached(self, name: str, key: tuple, make: Callable[[], Array]) -> Array:
        """The image ``make()``, made again when ``key`` changes."""
        if name not in self._images or self._images[name][0] != key:
            self._images[name] = (key, make())
        return self._images[name][1]

    def _draw(self, name: str, image: Array, at: tuple[int, int], size: Size) -> None:
        self._overlay = self._overlay or Overlay()
        self._overlay.draw(name, image, at, size, BACKGROUNDS.load(self._controls.look.background).paper)
