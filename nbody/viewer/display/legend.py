"""The legend of the colours, the scale bar and other texts of the picture, as pixels (h, w, RGBA), uint8."""

from functools import lru_cache
from math import isnan

import numpy as np
from PIL import Image, ImageDraw

from nbody.errors import printable, shortened
from nbody.viewer.display.text import BRIGHT, DIM, PAD, SMALL, TEXT, blank, font, height_of, width_of
from nbody.viewer.picture.choices import BACKGROUNDS
from nbody.viewer.picture.coloring import Legend
from nbody.viewer.picture.colours.quantity import LOGARITHMIC

Array = np.ndarray

BAR = (210, 7)
"""Width and height of the map."""

MOST_NAMES, LONGEST_NAME = 12, 24
"""Species that are named, and characters of a name."""


@lru_cache(maxsize=32)
def legend_panel(legend: Legend, scale: float, background: str) -> Array:
    """The legend: the quantity with its unit, the map with the values at its ends, and how the scale was chosen."""
    title = f"{legend.label} ({printable(legend.symbol)})" if legend.symbol else legend.label
    if legend.names:
        return _names(title, legend, scale, background)
    if not legend.high > legend.low:  # one value, or none
        value = "not known at this moment" if isnan(legend.high) else f"{number(legend.high)} for all bodies"
        return np.asarray(_ground([title, legend.note or value], scale)[0])
    how = (
        f"{legend.scale}, least to greatest"
        if legend.scale != LOGARITHMIC
        else f"{legend.scale}, 5th to 98th percentile"
    )
    image, draw, rows = _ground([title, "", "", legend.note or how], scale)
    small, pad, (width, height) = font(round(SMALL * scale)), round(PAD * scale), (round(side * scale) for side in BAR)
    y = rows[1] + round(4 * scale)
    low, high = number(legend.low), number(legend.high)
    draw.text((pad, rows[2]), low, BRIGHT, small)
    draw.text((pad + width - small.getlength(high), rows[2]), high, BRIGHT, small)
    pixels = np.array(image)
    pixels[y : y + height, pad : pad + width, :3] = BACKGROUNDS.load(background).in_panel(legend.colours(width))
    pixels[y : y + height, pad : pad + width, 3] = 255
    return pixels


def _names(title: str, legend: Legend, scale: float, background: str) -> Array:
    """The names of the species, each with its colour."""
    names = [shortened(printable(name), LONGEST_NAME) for name in legend.names]
    more = len(names) - MOST_NAMES
    lines = [title, *("      " + name for name in names[:MOST_NAMES]), *([f"and {more} more"] if more > 0 else [])]
    image, _, rows = _ground(lines, scale)
    side, pad = round(9 * scale), round(PAD * scale)
    pixels, colours = np.array(image), BACKGROUNDS.load(background).in_panel(legend.colours(len(names)))
    for y, colour in zip(rows[1:], colours[:MOST_NAMES], strict=False):
        top = y + round(3 * scale)
        pixels[top : top + side, pad : pad + side] = (*colour, 255)
    return pixels


@lru_cache(maxsize=8)
def bar_panel(length: float, pixels: int, unit: str, scale: float) -> Array:
    """A bar of ``pixels`` pixels with its length above it, without a ground: it stands on the picture."""
    text, medium = f"{number(length)} {printable(unit)}".strip(), font(round(TEXT * scale))
    height, thick = round(26 * scale), max(1, round(2 * scale))
    width = max(pixels, round(medium.getlength(text))) + 2
    image = Image.new("RGBA", (width, height))
    draw = ImageDraw.Draw(image)
    draw.text(((width - medium.getlength(text)) / 2, 0), text, BRIGHT, medium)
    left, bottom = (width - pixels) // 2, height - 1
    draw.rectangle((left, bottom - thick + 1, left + pixels - 1, bottom), fill=BRIGHT)
    for x in (left, left + pixels - thick):
        draw.rectangle((x, bottom - round(6 * scale), x + thick - 1, bottom), fill=BRIGHT)
    return np.asarray(image)


@lru_cache(maxsize=32)
def text_panel(text: str, scale: float) -> Array:
    """One line of text without a ground."""
    image = Image.new("RGBA", (round(width_of(text, TEXT, scale)) + 2, height_of(TEXT, scale)))
    ImageDraw.Draw(image).text((0, 0), text, BRIGHT, font(round(TEXT * scale)))
    return np.asarray(image)


def _ground(lines: list[str], scale: float) -> tuple[Image.Image, ImageDraw.ImageDraw, list[int]]:
    """A panel with small lines, the first one brighter; the rows at which they begin."""
    pad, step = round(PAD * scale), height_of(SMALL, scale)
    width = max(round(BAR[0] * scale), *(round(width_of(line, SMALL, scale)) for line in lines))
    image = blank(width + 2 * pad, len(lines) * step + round(1.4 * pad), scale)
    draw = ImageDraw.Draw(image)
    rows = [round(0.7 * pad) + k * step for k in range(len(lines))]
    for k, (y, line) in enumerate(zip(rows, lines, strict=True)):
        draw.text((pad, y), line, DIM if k else BRIGHT, font(round(SMALL * scale)))
    return image, draw, rows


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}".replace("-", "−")
