"""The look of the lessons' figures: readable at a width of 700 pixels, few colours, no frames."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from nbody.figures import GRID, INK, plain

__all__ = ["GRID", "INK", "bare", "cells", "panels", "plain", "save"]

WIDTH = 7.0
"""Inches across; a picture has 200 pixels per inch and is shown with 100."""

PALE = "#eef1f4"
BLUE, ORANGE, GREEN, RED, VIOLET = "#2f6db3", "#e08a1e", "#3a9a5b", "#c8403a", "#7d5bb0"
SERIES = (BLUE, ORANGE, GREEN, VIOLET, RED, "#3aa5a5", "#8c6d46", "#68737f")
"""Colours of things of one kind, in order."""


def panels(rows: int, columns: int, height: float, **more: Any) -> tuple[Any, Any]:
    """A figure of the common width with this number of panels; the axes as an array of two dimensions."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"font.size": 8.5, "axes.titlesize": 9, "text.color": INK, "axes.edgecolor": GRID})
    figure, axes = plt.subplots(rows, columns, figsize=(WIDTH, height), squeeze=False, layout="constrained", **more)
    return figure, axes


def coloured(colours: np.ndarray) -> np.ndarray:
    """The picture of a grid (rows, columns) of colour names, "" for a pale cell."""
    from matplotlib.colors import to_rgb

    return np.array([[to_rgb(colour or PALE) for colour in row] for row in colours])


def image(axes: Any, picture: np.ndarray, title: str = "", **more: Any) -> None:
    """Draw a picture, a cell per unit, row 0 on top; no ticks and no frame, a title to the left."""
    rows, columns = picture.shape[:2]
    axes.imshow(picture, interpolation="nearest", extent=(0, columns, rows, 0), **more)
    bare(axes, title)


def cells(axes: Any, colours: np.ndarray, title: str = "") -> None:
    """Draw a grid of cells with lines between them; ``colours`` as in :func:`coloured`."""
    image(axes, coloured(colours), title)
    step = 1 if max(colours.shape) <= 48 else 8
    for k in range(0, colours.shape[1] + 1, step):
        axes.axvline(k, color="white", linewidth=0.5)
    for k in range(0, colours.shape[0] + 1, step):
        axes.axhline(k, color="white", linewidth=0.5)


def box(axes: Any, x: float, y: float, width: float, height: float, colour: str, **more: Any) -> None:
    """Draw a rectangle from its corner with the least coordinates."""
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, **{"edgecolor": "none"} | more))


def bare(axes: Any, title: str = "") -> None:
    """No ticks and no frame; a title to the left."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    if title:
        axes.set_title(title, loc="left")


def save(figure: Any, path: Path) -> None:
    """Write a figure as a PNG of 200 colours, a third of the size of one of all colours, and close it."""
    from matplotlib import pyplot as plt
    from PIL import Image

    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=200, facecolor="white")
    plt.close(figure)
    image = Image.open(drawn).convert("RGB").quantize(200, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
