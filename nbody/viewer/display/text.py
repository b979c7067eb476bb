"""Panels of text, as pixels (h, w, RGBA), uint8: lines, the present state with key hints, the table of all keys. All lengths
here are in pixels at scale 1."""

from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from nbody.errors import printable, shortened
from nbody.viewer.sources.frames import Array

Colour = tuple[int, int, int, int]
Line = tuple[str, int, Colour]  # a text, its size and its colour

BRIGHT, DIM, ALERT, ACCENT = (238, 240, 245, 255), (174, 182, 196, 255), (255, 176, 120, 255), (150, 190, 255, 255)
BACKGROUND = (6, 8, 14, 176)  # a panel's: dark and partly transparent, so that text stays legible over a bright core

TITLE, TEXT, SMALL = 18, 14, 12
PAD, MARGIN, CORNER = 10, 14, 6  # around the text in a panel; between panels and the edges; a panel's corners

LINE_HEIGHT = 1.42
LONGEST_LINE = 200  # characters of a line: fonts take no control characters, and minutes for a text of 1 MB

Table = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # groups: a title, and rows of a key and what it does
FIRST_HINT, ENOUGH_HINTS = "F1 all keys", 6  # always shown; and so many are enough for one line, else there are two

COLUMN_GAP, SMALLEST_SCALE = 26, 0.54
DESIGNED_FOR, GROWTH, LARGEST_GROWTH = (1280, 720), 0.6, 3.0
BRIEF_BELOW, LEAST = 500, 0.75  # the height (at scale 1) of small pictures, and their least scale: 9 pixels a letter


def text_scale(size: tuple[int, int], pixel_scale: float = 1.0) -> float:
    """The scale of text in a picture of ``size`` (width, height): larger pictures have larger text, less than in
    proportion, because they are also looked at from nearer; and small ones have smaller text."""
    if size[1] < BRIEF_BELOW * pixel_scale:
        return max(size[1] / BRIEF_BELOW, LEAST * pixel_scale)
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


def panel(lines: list[Line], scale: float, width: float = 0) -> Image.Image:
    """Lines of text, one under another, at least ``width`` pixels wide."""
    pad = round(PAD * scale)
    heights = [height_of(size, scale) for _, size, _ in lines]
    texts = [shortened(printable(text), LONGEST_LINE).split(" ") for text, _, _ in lines]
    words = [[_word(word, round(size * scale)) for word in text] for text, (_, size, _) in zip(texts, lines, strict=True)]
    width = max(width, *(sum(advance for _, advance in line) for line in words))
    image, y = blank(width + 2 * pad, sum(heights) + 2 * pad, scale), pad
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


def wrapped(pieces: list[str], size: int, scale: float, width: float) -> list[str]:
    """``pieces`` joined to lines that are not wider than ``width`` pixels (a piece is never divided)."""
    lines = [""]
    for piece in pieces:
        joined = f"{lines[-1]}{HINT_GAP}{piece}" if lines[-1] else piece
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


@lru_cache(maxsize=4)
def state_panel(status: str, notice: str, hints: tuple[str, ...], width: float, scale: float) -> Array:
    """What the clock does, a notice, and key hints: those that fit into one line of ``width`` pixels, or two if these are
    few."""
    inner = width - 2 * round(PAD * scale)
    lines: list[Line] = [(fitted(status, TEXT, scale, inner), TEXT, BRIGHT)]
    hint_lines = wrapped([FIRST_HINT, *hints], SMALL, scale, inner)
    most = 1 if hint_lines[0].count(HINT_GAP) + 1 >= ENOUGH_HINTS else 2
    lines += [(line, SMALL, DIM) for line in hint_lines[:most]]
    if notice:  # instead of hints, so that the panel keeps its height
        lines[1] = (fitted(notice, SMALL, scale, inner), SMALL, ACCENT)
    return np.asarray(panel(lines, scale))


@lru_cache(maxsize=2)
def key_table(groups: Table, size: tuple[int, int], scale: float) -> Array:
    """All keys, in as many columns as fit into a picture of ``size``; smaller text if they do not fit."""
    room = size[0] - 2 * round(MARGIN * scale), size[1] - 2 * round(MARGIN * scale)
    for factor in (1.0, 0.9, 0.8, 0.7, 0.62, SMALLEST_SCALE):
        for columns in range(1, len(groups) + 1):
            image = table(groups, factor * scale, columns)
            if image.shape[1] <= room[0] and image.shape[0] <= room[1]:
                return image
    return table(groups, SMALLEST_SCALE * scale, 3 if room[0] > room[1] else 2)[: room[1], : room[0]]


def table(
    groups: Table, scale: float, columns: int = 1, size: int = TEXT, least: float = 0, colours: tuple = (BRIGHT, DIM)
) -> Array:
    """Groups of rows of two texts, in ``columns``, which are at least ``least`` pixels wide at scale 1."""
    filled = [[groups[k] for k in each] for each in np.array_split(np.arange(len(groups)), columns)]
    pad, gap, line, head = round(PAD * scale), COLUMN_GAP * scale, height_of(size, scale), height_of(TITLE, scale)
    left = max(width_of(key, size, scale) for _, rows in groups for key, _ in rows) + 12 * scale
    widths = [
        max(
            least * scale,
            *(width_of(title, TEXT, scale) for title, _ in column),
            *(left + width_of(text, size, scale) for _, rows in column for _, text in rows),
        )
        for column in filled
    ]
    tall = max(sum(head + len(rows) * line + pad for _, rows in column) for column in filled)
    image = blank(sum(widths) + (columns - 1) * gap + 2 * pad, tall + pad, scale, (*BACKGROUND[:3], 228))
    draw, x, letters = ImageDraw.Draw(image), float(pad), font(round(size * scale))
    for column, width in zip(filled, widths, strict=True):
        y = pad
        for title, rows in column:
            draw.text((x, y), title, ACCENT, font(round(TEXT * scale)))
            for number, (key, text) in enumerate(rows):
                draw.text((x, y + head + number * line), key, colours[0], letters)
                draw.text((x + left, y + head + number * line), text, colours[1], letters)
            y += head + len(rows) * line + pad
        x += width + gap
    return np.asarray(image)
