"""Panels of text, as pixels (h, w, RGBA), uint8. All lengths here are in pixels at scale 1."""

from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from nbody.errors import printable, shortened

Array = np.ndarray
Colour = tuple[int, int, int, int]
Line = tuple[str, int, Colour]
"""A text, its size and its colour."""

BRIGHT, DIM, ALERT, ACCENT = (238, 240, 245, 255), (174, 182, 196, 255), (255, 176, 120, 255), (150, 190, 255, 255)
BACKGROUND = (6, 8, 14, 176)
"""The colour of a panel: dark and partly transparent, so that text stays legible over a bright core."""

TITLE, TEXT, SMALL = 18, 14, 12
PAD, MARGIN, CORNER = 10, 14, 6
"""Around the text in a panel; between panels and the edges of the picture; the radius of a panel's corners."""

LINE_HEIGHT = 1.42
LONGEST_LINE = 200
"""Characters of a line: fonts take no control characters, and minutes for a text of 1 MB."""

DESIGNED_FOR, GROWTH, LARGEST_GROWTH = (1280, 720), 0.6, 3.0


def text_scale(size: tuple[int, int], pixel_scale: float = 1.0) -> float:
    """The scale of text in a picture of ``size`` (width, height): larger pictures have larger text, less than in
    proportion, because they are also looked at from nearer."""
    growth = min(side / pixel_scale / designed for side, designed in zip(size, DESIGNED_FOR, strict=True))
    return pixel_scale * min(max(growth, 1.0) ** GROWTH, LARGEST_GROWTH)


@cache
def font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Matplotlib's DejaVu Sans, which has Greek and arrows; Pillow's default font if matplotlib is not installed."""
    found = find_spec("matplotlib")  # its file is read without importing matplotlib, which would take 0.2 s
    try:
        folder = Path(found.submodule_search_locations[0]) if found and found.submodule_search_locations else Path()
        return ImageFont.truetype(str(folder / "mpl-data/fonts/ttf/DejaVuSans.ttf"), size)
    except (ImportError, OSError):
        return ImageFont.load_default(size)


def width_of(text: str, size: int, scale: float) -> float:
    """The width of a line in pixels."""
    return font(round(size * scale)).getlength(text)


def height_of(size: int, scale: float) -> int:
    """The height of a line in pixels."""
    return round(LINE_HEIGHT * size * scale)


def blank(width: float, height: float, scale: float, colour: Colour = BACKGROUND) -> Image.Image:
    """An empty panel."""
    image = Image.new("RGBA", (max(round(width), 1), max(round(height), 1)))
    edge = (0, 0, image.width - 1, image.height - 1)
    ImageDraw.Draw(image).rounded_rectangle(edge, round(CORNER * scale), fill=colour)
    return image


def panel(lines: list[Line], scale: float, width: float = 0, below: int = 0) -> Image.Image:
    """Lines of text, one under another.

    Args:
        width: the least width of the text in pixels.
        below: the height of the free space below the text in pixels.
    """
    pad = round(PAD * scale)
    heights = [height_of(size, scale) for _, size, _ in lines]
    texts = [shortened(printable(text), LONGEST_LINE).split(" ") for text, _, _ in lines]
    words = [
        [_word(word, round(size * scale)) for word in text] for text, (_, size, _) in zip(texts, lines, strict=True)
    ]
    width = max(width, *(sum(advance for _, advance in line) for line in words))
    image, y = blank(width + 2 * pad, sum(heights) + below + 2 * pad, scale), pad
    for line, (_, _, colour), height in zip(words, lines, heights, strict=True):
        x = float(pad)
        for mask, advance in line:
            image.paste(colour, (round(x) - 1, y), mask)
            x += advance
        y += height
    return image


@lru_cache(maxsize=512)
def _word(text: str, size: int) -> tuple[Image.Image, float]:
    """A word as a mask that begins one pixel before it, and its width with a space. Drawing letters is what takes long in a
    caption, and most of its words stay from picture to picture."""
    letters = font(size)
    image = Image.new("L", (round(letters.getlength(text)) + 3, round(LINE_HEIGHT * size)))
    ImageDraw.Draw(image).text((1, 0), text, 255, letters)
    return image, letters.getlength(text + " ")


HINT_GAP = "   "


def wrapped(pieces: list[str], size: int, scale: float, width: float, gap: str = HINT_GAP) -> list[str]:
    """``pieces`` joined to lines that are not wider than ``width`` pixels (a piece is never divided)."""
    lines = [""]
    for piece in pieces:
        joined = f"{lines[-1]}{gap}{piece}" if lines[-1] else piece
        if lines[-1] and width_of(joined, size, scale) > width:
            lines.append(piece)
        else:
            lines[-1] = joined
    return lines


def fitted(text: str, size: int, scale: float, width: float) -> str:
    """``text``, cut to ``width`` pixels."""
    if width_of(text, size, scale) <= width:
        return text
    while text and width_of(f"{text}…", size, scale) > width:
        text = text[:-1]
    return f"{text}…"
