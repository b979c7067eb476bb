"""The head-up display: caption, key help and time line, as pixels (h, w, RGBA), uint8."""

from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from nbody.errors import printable, shortened
from nbody.viewer.picture.palette import on_screen, palette
from nbody.viewer.sources.recording import Caption

Array = np.ndarray
Colour = tuple[int, int, int, int]

BRIGHT, DIM, ALERT = (238, 240, 245, 255), (166, 174, 188, 255), (255, 176, 120, 255)
BACKGROUND = (6, 8, 14, 160)
"""The colour of a panel: dark and half transparent, so that text stays legible over a bright core."""

TITLE, TEXT, SMALL = 18, 14, 11
PAD = 10
MARGIN = 14
"""The distance between panels and the edges of the picture. All lengths here are in pixels at scale 1."""

PALETTE_BAR = (110, 5)
TIMELINE_HEIGHT = 22
Line = tuple[str, int, Colour]

LONGEST_LINE = 200
"""Characters of a line: fonts take no control characters, and minutes for a text of 1 MB."""


@cache
def _font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Matplotlib's DejaVu Sans, which has Greek and arrows; Pillow's default font if matplotlib is not installed."""
    try:
        from matplotlib import get_data_path

        return ImageFont.truetype(str(Path(get_data_path(), "fonts/ttf/DejaVuSans.ttf")), size)
    except (ImportError, OSError):
        return ImageFont.load_default(size)


def caption_panel(caption: Caption, scale: float, alert: str = "") -> Array:
    """The caption of a frame, above the palette and the speeds at its ends."""
    some = f"{_thousands(caption.shown)} of " if caption.shown < caption.count else ""
    lines: list[Line] = [
        (caption.name, TITLE, BRIGHT),
        (f"t = {caption.time:.5g}", TEXT, BRIGHT),
        (f"frame {caption.frame} / {caption.frames - 1},  step {_thousands(caption.step)}", TEXT, DIM),
        (f"energy error {_signed(caption.energy_error)}", TEXT, DIM),
        (f"{some}{_thousands(caption.count)} particles", TEXT, DIM),
    ]
    if some:
        lines.append(("(no GPU draws here: some are left out)", SMALL, DIM))
    if alert:
        lines.append((alert, TEXT, ALERT))
    return _panel(lines, scale, caption.speeds)


def key_panel(keys: str, scale: float) -> Array:
    """One line of key help."""
    return _panel([(keys, SMALL, DIM)], scale)


def _panel(lines: list[Line], scale: float, speeds: tuple[float, float] | None = None) -> Array:
    lines = [(shortened(printable(text), LONGEST_LINE), size, colour) for text, size, colour in lines]
    fonts = [_font(round(size * scale)) for _, size, _ in lines]
    heights = [round(1.45 * size * scale) for _, size, _ in lines]
    pad, bar_height = round(PAD * scale), round(22 * scale) if speeds else 0
    width = max(font.getlength(text) for font, (text, _, _) in zip(fonts, lines, strict=True))
    width = max(width, 250 * scale if speeds else 0)  # a fixed width: else the edge moves when the numbers change
    image = Image.new("RGBA", (round(width) + 2 * pad, sum(heights) + bar_height + 2 * pad))
    draw = ImageDraw.Draw(image)
    draw.rounded_rectangle((0, 0, image.width - 1, image.height - 1), round(6 * scale), fill=BACKGROUND)
    y = pad
    for font, height, (text, _, colour) in zip(fonts, heights, lines, strict=True):
        draw.text((pad, y), text, colour, font)
        y += height
    if speeds:
        _draw_palette(image, draw, (pad, y + round(4 * scale)), speeds, scale)
    return np.asarray(image)


def _draw_palette(image: Image.Image, draw: ImageDraw.ImageDraw, at: tuple[int, int], speeds, scale: float) -> None:
    """Draw ``speed 0.1 ▬▬▬ 2.5`` at pixel ``at``."""
    font, (x, y) = _font(round(SMALL * scale)), at
    width, height = (round(length * scale) for length in PALETTE_BAR)
    colours = on_screen(palette(width))
    slow, fast = (f"{speed:.3g}" for speed in speeds)
    draw.text((x, y), f"speed {slow}", DIM, font)
    x += round(font.getlength(f"speed {slow} ") + 3 * scale)
    image.paste(Image.fromarray(np.tile(colours, (height, 1, 1))), (x, y + round(5 * scale)))
    draw.text((x + width + round(6 * scale), y), fast, DIM, font)


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

    def column_of(self, frame: int, frames: int) -> float:
        """The middle of the pixel columns of ``frame``, counted from the bar's left end."""
        return (frame + 0.5) / frames * self.width

    def image(self, frame: int, frames: int) -> Array:
        """The bar with its knob at ``frame``, (h, w, RGBA) uint8."""
        image = Image.new("RGBA", (self.width, self.height))
        draw = ImageDraw.Draw(image)
        middle, thick, knob = self.height / 2, 2 * self.scale, 5 * self.scale
        at = min(max(self.column_of(frame, frames), knob), self.width - 1 - knob)
        draw.rounded_rectangle((0, middle - thick, self.width - 1, middle + thick), thick, fill=(120, 128, 145, 90))
        draw.rounded_rectangle((0, middle - thick, at, middle + thick), thick, fill=(150, 175, 230, 220))
        draw.ellipse((at - knob, middle - knob, at + knob, middle + knob), fill=BRIGHT)
        return np.asarray(image)
