"""What the window writes over the picture, besides the caption: state and keys, time line, diagrams, chosen body."""

from collections.abc import Callable
from time import perf_counter

from nbody.viewer.display.body import body_panel, facts, ring
from nbody.viewer.display.diagram import HEIGHT, WIDTH, Diagrams
from nbody.viewer.display.hud import CAPTION_WIDTH, Timeline
from nbody.viewer.display.text import MARGIN, key_table, state_panel, text_scale
from nbody.viewer.gl.shaders import Overlay
from nbody.viewer.picture.look import BACKGROUNDS
from nbody.viewer.sources.camera import Size
from nbody.viewer.sources.frames import Array, ShownMoment
from nbody.viewer.sources.source import Source
from nbody.viewer.window.controls import BODY, Controls

Box = tuple[int, int, int, int]  # left, top, right, bottom, in pixels from the top left corner
FACTS_SECONDS = 0.1  # the least time between two changes of a moving body's numbers
LEAST_HEIGHT = 90  # the least height of the diagrams, in pixels at scale 1
SCALE_BAR_FRACTION = 0.2  # the part of the width, at the right, that the scale bar may take


class Layout:
    """Finds places in ``area`` for panels that cover neither each other nor what is ``taken``, ``gap`` pixels apart."""

    def __init__(self, area: Box, gap: int, taken: tuple[Box, ...] = ()) -> None:
        self._area, self._gap, self._taken = area, gap, list(taken)

    def place(self, size: Size) -> Box | None:
        """The box of a new panel, below the others or else beside them; None without room."""
        left, top, *_ = self._area
        beside, below, (width, height) = self._beyond(2, left), self._beyond(3, top), size
        return self._take((left, below, left + width, below + height), (beside, top, beside + width, top + height))

    def place_wide(self, size: Size, least_height: int) -> Box | None:
        """The box of a panel at the top right, perhaps lower than wanted, or below all others in the full width."""
        left, top, right, bottom = self._area
        height, below = min(size[1], bottom - top), self._beyond(3, top)
        boxes = (right - size[0], top, right, top + height), (left, below, right, min(below + height, bottom))
        return self._take(*(box for box in boxes if box[3] - box[1] >= least_height))

    def _beyond(self, side: int, least: int) -> int:
        return max([least, *(box[side] + self._gap for box in self._taken)])

    def _take(self, *boxes: Box) -> Box | None:
        """The first of ``boxes`` that is in the area and covers nothing."""
        (left, top, right, bottom), gap = self._area, self._gap
        for a, b, c, d in boxes:
            apart = (c + gap <= e or g + gap <= a or d + gap <= f or h + gap <= b for e, f, g, h in self._taken)
            if a >= left and b >= top and c <= right and d <= bottom and all(apart):
                self._taken.append((a, b, c, d))
                return a, b, c, d
        return None


class Panels:
    """Draws the panels of ``source`` into the current target, as far as ``controls`` shows them; call :meth:`fit` first.

    Attributes:
        diagrams: those of the source.
        followed: what the camera follows, in words.
        timeline: the time line.
    """

    def __init__(self, source: Source, controls: Controls) -> None:
        self._source, self._controls = source, controls
        self._transport = controls.transport
        self._overlay: Overlay | None = None  # compiles shaders when it is made
        self._body: tuple[tuple, Array | None] = ((None, None, None), None)  # its panel, and what that shows
        self._state_height = 0  # of the state panel, as it was drawn last
        self.diagrams, self.followed = Diagrams(source), ""
        self._diagram_size = (WIDTH, HEIGHT)
        self._facts_at = 0.0
        self._caption = (CAPTION_WIDTH, 0)  # right and lower edge of the caption that was drawn last
        self.fit((1, 1), 1.0)

    def fit(self, size: Size, pixel_scale: float) -> None:
        """Draw into a picture of ``size`` from now on."""
        self._size, self._pixel_scale = size, pixel_scale
        self._scale = text_scale(size, pixel_scale)
        self.timeline = Timeline(size, self._scale)

    def tick(self, seconds: float) -> bool:
        """Let time pass. Returns True if there is something new to draw."""
        return self._controls.show_diagrams and self.diagrams.tick(seconds, self._diagram_size, self._scale)

    def draw_marker(self, moment: ShownMoment) -> None:
        """Draw the ring around the chosen body."""
        row, size = self._row(), self._size
        if row is None:
            return
        x, y = self._controls.camera.project(moment.positions(row)[None], size)[0]
        image = ring(self._pixel_scale)
        half = image.shape[0] / 2
        if -half < x < size[0] + half and -half < y < size[1] + half:
            self._draw("ring", image, (round(x - half), round(y - half)))

    def draw_facts(self, at: float, moment: ShownMoment, draw_caption: Callable[[], tuple[int, int]]) -> None:
        """Draw caption, chosen body and diagrams. Where there is no room for all, the caption is left out, or else the
        diagrams, or both. ``draw_caption`` returns the caption's right and lower edge."""
        scale, row, shown = self._scale, self._row(), self._controls.show_diagrams
        margin, largest = round(MARGIN * scale), (round(WIDTH * scale), round(HEIGHT * scale))
        body = None if row is None else self._body_image(row, at, moment)
        area = margin, margin, self._size[0] - margin, self._state_bottom() - self._state_height - margin // 2
        for captioned, with_diagrams in ((True, True), (False, True), (True, False), (False, False)):
            layout = Layout(area, margin // 2, ((margin, margin, *self._caption),) if captioned else ())
            place = area if body is None else layout.place((body.shape[1], body.shape[0]))
            box = layout.place_wide(largest, round(LEAST_HEIGHT * scale)) if with_diagrams and shown else None
            if place and (box or not (with_diagrams and shown)):
                break
        if captioned:
            self._caption = draw_caption()
        if body is not None:
            self._draw("body", body, (place or area)[:2])
        if box:
            self._draw_diagrams(at, box)

    def _body_image(self, row: int, at: float, moment: ShownMoment) -> Array:
        """The panel of the chosen body. While it moves, the numbers change only as fast as they can be read."""
        now, scale = perf_counter(), self._scale
        key = (row, self._controls.follow == BODY, scale, at, moment.first.number)
        before, image = self._body
        recent = self._transport.playing and now - self._facts_at < FACTS_SECONDS
        if image is None or before[:3] != key[:3] or (before != key and not recent):
            self._facts_at, image = now, body_panel(facts(self._source, moment, row), key[1], scale)
            self._body = key, image
        return image

    def _draw_diagrams(self, at: float, box: Box) -> None:
        self._diagram_size = box[2] - box[0], box[3] - box[1]
        drawn = self.diagrams.drawn
        if drawn is None:
            return
        self._draw("diagram", drawn.image, box[:2])
        for k, (x, y, pixels) in enumerate(drawn.cursor(self._source.caption(at).time, self._scale)):
            self._draw(f"cursor {k}", pixels, (box[0] + x, box[1] + y))

    def draw_controls(self, notice: str) -> None:
        """Draw time line, state and key help at the bottom, and the table of keys if it is asked for."""
        size, scale, controls, transport = self._size, self._scale, self._controls, self._transport
        line = self.timeline
        if transport.frames > 1:
            marks = [transport.place(at) for at in self._source.marks()]
            self._draw("timeline", line.image(transport.place(transport.at), marks), (line.left, line.top))
        if controls.show_keys:
            image = key_table(controls.key_table, (size[0], line.top), scale)
            self._draw("keys", image, ((size[0] - image.shape[1]) // 2, (line.top - image.shape[0]) // 2))
            return
        bar = round(SCALE_BAR_FRACTION * size[0] + 3 * MARGIN * scale) if controls.look.scale_bar else 0
        status = transport.status + (f",  following {self.followed}" if self.followed else "")
        status += ",  free flight" if controls.flying else ""
        image = state_panel(status, notice, controls.hints, line.width - bar, scale)
        self._state_height = image.shape[0]
        self._draw("state", image, (line.left, self._state_bottom() - image.shape[0]))

    def _state_bottom(self) -> int:
        line = self.timeline
        return line.top - round(2 * line.scale) if self._transport.frames > 1 else line.top + line.height

    def _row(self) -> int | None:
        """The row of the chosen body in the arrays of a moment."""
        return None if self._controls.chosen is None else self._source.shown.row(self._controls.chosen)

    def _draw(self, name: str, image: Array, at: tuple[int, int]) -> None:
        self._overlay = self._overlay or Overlay()
        self._overlay.draw(name, image, at, self._size, BACKGROUNDS.load(self._controls.look.background).paper)
