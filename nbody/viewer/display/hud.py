"""The head-up display: caption, legend of the colours, scale bar and time line, as pixels (h, w, RGBA), uint8."""

from collections.abc import Sequence
from functools import lru_cache
from math import isnan
from textwrap import wrap

import numpy as np
from PIL import Image, ImageDraw

from nbody.errors import printable, shortened
from nbody.scenario.quantities import shown_time
from nbody.viewer.display.text import ALERT, BRIGHT, DIM, MARGIN, PAD, SMALL, TEXT, TITLE, font, height_of, panel
from nbody.viewer.picture.coloring import Legend
from nbody.viewer.picture.look import BACKGROUNDS
from nbody.viewer.sources.frames import Array
from nbody.viewer.sources.samples import LOGARITHMIC
from nbody.viewer.sources.source import Caption

CAPTION_WIDTH, BRIEF_WIDTH = 250, 110  # least widths of a caption's text: fixed, else its edge moves with the numbers;
# a brief one is that of small pictures
ALERT_WIDTH, LONGEST_ALERT = 48, 400  # characters per line of an alert, and of the whole
TIMELINE_HEIGHT, SPARSE = 22, 12  # the height of the time line; ticks that are closer together are fainter
BAR_WIDTH, BAR_HEIGHT = 210, 7  # of the map
MOST_NAMES, LONGEST_NAME = 12, 24  # species that are named, and characters of a name


@lru_cache(maxsize=4)
def caption_panel(caption: Caption, scale: float, alert: str = "", brief: bool = False) -> Array:
    """The caption of a frame; a brief one has name and time only."""
    some = f"{_thousands(caption.shown)} of " if caption.shown < caption.count else ""
    frame = f"frame {caption.frame} / {caption.frames - 1},  " if caption.frames else ""
    factor, unit = shown_time(caption.time_unit)
    error = f"{caption.energy_error:+.2e}".replace("-", "−")
    lines = [
        (caption.name, TEXT if brief else TITLE, BRIGHT),
        (f"t = {factor * caption.time:.5g} {unit}", TEXT, BRIGHT),
        (f"{frame}step {_thousands(caption.step)}", TEXT, DIM),
        (f"energy error {error if np.isfinite(caption.energy_error) else 'not recorded'}", TEXT, DIM),
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


@lru_cache(maxsize=32)
def legend_panel(legend: Legend, scale: float, background: str, brief: bool = False) -> Array:
    """The legend: the quantity with its unit, the map with the values at its ends, and how the scale was chosen. A ``brief``
    one is narrow, and does not say how."""
    title = f"{legend.label} ({printable(legend.symbol)})" if legend.symbol else legend.label
    if legend.names:
        return _names(title, legend, scale, background, BRIEF_WIDTH if brief else BAR_WIDTH)
    low, high = number(legend.low), number(legend.high)
    least = max(BRIEF_WIDTH if brief else BAR_WIDTH, font(SMALL).getlength(f"{low}   {high}"))
    if not legend.high > legend.low:  # one value, or none
        value = "not known at this moment" if isnan(legend.high) else f"{high} for all bodies"
        return np.asarray(_lines([title, legend.note or value], scale, least))
    how = f"{legend.scale}, " + ("5th to 98th percentile" if legend.scale == LOGARITHMIC else "least to greatest")
    note = legend.note or ("" if brief else how)
    image, line = _lines([title, "", "", *([note] if note else [])], scale, least), height_of(SMALL, scale)
    small, pad, width, height = (font(round(SMALL * scale)), *(round(x * scale) for x in (PAD, least, BAR_HEIGHT)))
    draw, y = ImageDraw.Draw(image), pad + line + round(4 * scale)
    draw.text((pad, pad + 2 * line), low, BRIGHT, small)
    draw.text((pad + width - small.getlength(high), pad + 2 * line), high, BRIGHT, small)
    pixels = np.array(image)
    pixels[y : y + height, pad : pad + width, :3] = BACKGROUNDS.load(background).in_panel(legend.colours(width))
    pixels[y : y + height, pad : pad + width, 3] = 255
    return pixels


def _names(title: str, legend: Legend, scale: float, background: str, least: float) -> Array:
    """The names of the species, each with its colour."""
    names = [shortened(printable(name), LONGEST_NAME) for name in legend.names]
    more = len(names) - MOST_NAMES
    lines = [title, *("      " + name for name in names[:MOST_NAMES]), *([f"and {more} more"] if more > 0 else [])]
    side, pad, line = round(9 * scale), round(PAD * scale), height_of(SMALL, scale)
    pixels = np.array(_lines(lines, scale, least))
    colours = BACKGROUNDS.load(background).in_panel(legend.colours(len(names)))
    for number, colour in enumerate(colours[:MOST_NAMES], 1):
        top = pad + number * line + round(3 * scale)
        pixels[top : top + side, pad : pad + side] = (*colour, 255)
    return pixels


def _lines(lines: list[str], scale: float, least: float) -> Image.Image:
    """A panel with small lines, at least ``least`` pixels wide at scale 1, the first line brighter."""
    return panel([(line, SMALL, DIM if k else BRIGHT) for k, line in enumerate(lines)], scale, round(least * scale))


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
    medium = font(round(TEXT * scale))
    image = Image.new("RGBA", (round(medium.getlength(text)) + 2, height_of(TEXT, scale)))
    ImageDraw.Draw(image).text((0, 0), text, BRIGHT, medium)
    return np.asarray(image)


def number(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}".replace("-", "−")


class Timeline:
    """The bar at the bottom of a picture of ``size`` that shows the current frame; the mouse chooses one."""

    def __init__(self, size: tuple[int, int], scale: float = 1.0) -> None:
        self.scale = scale
        self.left, self.width = round(MARGIN * scale), max(size[0] - 2 * round(MARGIN * scale), 1)
        self.height = round(TIMELINE_HEIGHT * scale)
        self.top = size[1] - self.height - round(MARGIN * scale / 2)

    def contains(self, x: float, y: float) -> bool:
        """True if the pixel is on the bar or below it (the window's edge is easier to hit than the bar)."""
        return self.left <= x < self.left + self.width and y >= self.top

    def place(self, x: float) -> float:
        """The place on the bar, from 0 to 1, at pixel column ``x``."""
        return (x - self.left) / self.width

    def image(self, place: float, marks: Sequence[float] = ()) -> Array:
        """The bar with its knob at ``place``, and ticks at the places ``marks``, (h, w, RGBA) uint8."""
        image = Image.new("RGBA", (self.width, self.height))
        draw = ImageDraw.Draw(image)
        middle, thick, knob = self.height / 2, 2 * self.scale, 5 * self.scale
        at = min(max(place * self.width, knob), self.width - 1 - knob)
        draw.rounded_rectangle((0, middle - thick, self.width - 1, middle + thick), thick, fill=(120, 128, 145, 90))
        draw.rounded_rectangle((0, middle - thick, at, middle + thick), thick, fill=(150, 175, 230, 220))
        columns = {min(int(mark * self.width), self.width - 1) for mark in marks}
        faint = min(1.0, self.width / (SPARSE * self.scale * max(len(columns), 1)))  # many would hide the bar
        for x in columns:
            ends = x, middle - (1 + faint) * thick, x, middle + (1 + faint) * thick
            draw.line(ends, fill=(240, 190, 110, round(230 * faint)), width=max(1, round(self.scale)))
        draw.ellipse((at - knob, middle - knob, at + knob, middle + knob), fill=BRIGHT)
        return np.asarray(image)
