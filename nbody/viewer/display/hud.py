"""The head-up display: caption and time line, as pixels (h, w, RGBA), uint8."""

from functools import lru_cache
from textwrap import wrap

import numpy as np
from PIL import Image, ImageDraw

from nbody.errors import printable, shortened
from nbody.scenario.units import shown_time
from nbody.viewer.display.text import ALERT, BRIGHT, DIM, MARGIN, SMALL, TEXT, TITLE, Line, panel
from nbody.viewer.sources.source import Caption

Array = np.ndarray

CAPTION_WIDTH, BRIEF_WIDTH = 250, 110
"""The least width of the caption's text, and of a brief one: fixed, else the edge moves when the numbers change. All lengths
here are in pixels at scale 1."""

ALERT_WIDTH = 48
LONGEST_ALERT = 400
"""Characters per line of an alert, and of the whole."""

TIMELINE_HEIGHT = 22


@lru_cache(maxsize=4)
def caption_panel(caption: Caption, scale: float, alert: str = "", brief: bool = False) -> Array:
    """The caption of a frame; a brief one has name and time only."""
    some = f"{_thousands(caption.shown)} of " if caption.shown < caption.count else ""
    frame = f"frame {caption.frame} / {caption.frames - 1},  " if caption.frames else ""
    factor, unit = shown_time(caption.time_unit)
    lines: list[Line] = [
        (caption.name, TEXT if brief else TITLE, BRIGHT),
        (f"t = {factor * caption.time:.5g} {unit}", TEXT, BRIGHT),
        (f"{frame}step {_thousands(caption.step)}", TEXT, DIM),
        (f"energy error {_signed(caption.energy_error)}", TEXT, DIM),
        (f"{some}{_thousands(caption.count)} particle{'s' * (caption.count != 1)}", TEXT, DIM),
    ]
    if brief:
        lines = lines[:2]
    elif some:
        lines.append((f"one in {caption.count / caption.shown:.3g} is drawn, and as much brighter", SMALL, DIM))
    if caption.note and not brief:
        lines.append((caption.note, SMALL, DIM))
    if alert:
        lines += [(line, TEXT, ALERT) for line in wrap(shortened(printable(alert), LONGEST_ALERT), ALERT_WIDTH)]
    return np.asarray(panel(lines, scale, (BRIEF_WIDTH if brief else CAPTION_WIDTH) * scale))


def _thousands(count: int) -> str:
    """12345678 as ``12 345 678``."""
    return f"{count:,}".replace(",", " ")


def _signed(value: float) -> str:
    return f"{value:+.2e}".replace("-", "−") if np.isfinite(value) else "not recorded"


class Timeline:
    """The bar at the bottom of the picture: it shows the current frame, and the mouse chooses one.

    Args:
        size: (width, height) of the picture in pixels.
        scale: pixels of this screen per pixel of an ordinary one.
    """

    def __init__(self, size: tuple[int, int], scale: float = 1.0) -> None:
        self.scale = scale
        self.left, self.width = round(MARGIN * scale), max(size[0] - 2 * round(MARGIN * scale), 1)
        self.height = round(TIMELINE_HEIGHT * scale)
        self.top = size[1] - self.height - round(MARGIN * scale / 2)

    def contains(self, x: float, y: float) -> bool:
        """True if the pixel is on the bar or below it (the window's edge is easier to hit than the bar)."""
        return self.left <= x < self.left + self.width and y >= self.top

    def frame_at(self, x: float, frames: int) -> int:
        """The frame at pixel column ``x``."""
        fraction = (x - self.left) / self.width
        return min(max(int(fraction * frames), 0), frames - 1)

    def column_of(self, frame: float, frames: int) -> float:
        """The middle of the pixel columns of ``frame``, counted from the bar's left end."""
        return (frame + 0.5) / frames * self.width

    def image(self, frame: float, frames: int) -> Array:
        """The bar with its knob at the moment ``frame``, (h, w, RGBA) uint8."""
        image = Image.new("RGBA", (self.width, self.height))
        draw = ImageDraw.Draw(image)
        middle, thick, knob = self.height / 2, 2 * self.scale, 5 * self.scale
        at = min(max(self.column_of(frame, frames), knob), self.width - 1 - knob)
        draw.rounded_rectangle((0, middle - thick, self.width - 1, middle + thick), thick, fill=(120, 128, 145, 90))
        draw.rounded_rectangle((0, middle - thick, at, middle + thick), thick, fill=(150, 175, 230, 220))
        draw.ellipse((at - knob, middle - knob, at + knob, middle + knob), fill=BRIGHT)
        return np.asarray(image)
