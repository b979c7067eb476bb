"""The line of the present state and the most useful keys, and the table of all keys."""

import numpy as np
from PIL import ImageDraw

from nbody.viewer.display.text import (
    ACCENT,
    BRIGHT,
    DIM,
    HINT_GAP,
    MARGIN,
    PAD,
    SMALL,
    TEXT,
    TITLE,
    Line,
    blank,
    fitted,
    font,
    height_of,
    panel,
    width_of,
    wrapped,
)

Array = np.ndarray
Size = tuple[int, int]
Table = list[tuple[str, list[tuple[str, str]]]]
"""Groups: a title, and rows of a key and what it does."""

FIRST_HINT, ENOUGH_HINTS = "F1 all keys", 6
"""The hint that is always shown; and so many are enough for one line, else there are two."""

COLUMN_GAP, SMALLEST_SCALE = 26, 0.54


def state_panel(status: str, notice: str, hints: list[str], width: float, scale: float) -> Array:
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


def key_table(groups: Table, size: Size, scale: float) -> Array:
    """All keys, in as many columns as fit into a picture of ``size``; smaller text if they do not fit."""
    room = size[0] - 2 * round(MARGIN * scale), size[1] - 2 * round(MARGIN * scale)
    for factor in (1.0, 0.9, 0.8, 0.7, 0.62, SMALLEST_SCALE):
        for columns in (1, 2, 3, 4):
            image = _table(groups, columns, factor * scale)
            if image.shape[1] <= room[0] and image.shape[0] <= room[1]:
                return image
    return _table(groups, 3 if room[0] > room[1] else 2, SMALLEST_SCALE * scale)[: room[1], : room[0]]


def _table(groups: Table, columns: int, scale: float) -> Array:
    heights = [height_of(TITLE, scale) + len(rows) * height_of(TEXT, scale) + round(PAD * scale) for _, rows in groups]
    filled = _balanced(heights, columns)
    key_width = max(width_of(key, TEXT, scale) for _, rows in groups for key, _ in rows) + 12 * scale
    widths = [max(width_of(text, TEXT, scale) for k in column for _, text in groups[k][1]) for column in filled]
    pad, gap = round(1.6 * PAD * scale), round(COLUMN_GAP * scale)
    total = sum(widths) + len(filled) * key_width + (len(filled) - 1) * gap
    tall = max(sum(heights[k] for k in column) for column in filled)
    image = blank(total + 2 * pad, tall + 2 * pad - round(PAD * scale), scale, (6, 8, 14, 228))
    draw, x = ImageDraw.Draw(image), float(pad)
    for column, width in zip(filled, widths, strict=True):
        y = pad
        for title, rows in (groups[k] for k in column):
            draw.text((x, y), title, ACCENT, font(round(TEXT * scale)))
            y += height_of(TITLE, scale)
            for key, text in rows:
                draw.text((x, y), key, BRIGHT, font(round(TEXT * scale)))
                draw.text((x + key_width, y), text, DIM, font(round(TEXT * scale)))
                y += height_of(TEXT, scale)
            y += round(PAD * scale)
        x += key_width + width + gap
    return np.asarray(image)


def _balanced(heights: list[int], columns: int) -> list[list[int]]:
    """The indices of ``heights``, in order, in up to ``columns`` columns, the highest as low as possible."""
    limit = max(max(heights), -(-sum(heights) // columns))
    while True:
        filled: list[list[int]] = [[]]
        used = 0
        for k, height in enumerate(heights):
            if filled[-1] and used + height > limit:
                filled.append([])
                used = 0
            filled[-1].append(k)
            used += height
        if len(filled) <= columns:
            return filled
        limit += max(1, min(heights) // 4)
