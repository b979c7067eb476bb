"""What the lessons' figures are made of: panels and grids of cells, readable at a width of 700 pixels."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

WIDTH = 7.0
"""Inches across; a picture has 200 pixels per inch and is shown with 100."""

PALE = "#eef1f4"  # the ground of a grid


def panels(rows: int, columns: int, height: float, **more: Any) -> tuple[Figure, np.ndarray]:
    """A figure of the common width with this number of panels, and their axes (rows, columns)."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor="white")
    return figure, figure.subplots(rows, columns, squeeze=False, sharey=more.pop("sharey", False), gridspec_kw=more)


def coloured(colours: np.ndarray) -> np.ndarray:
    """The picture of a grid (rows, columns) of colour names, "" for a pale cell."""
    return np.array([[to_rgb(colour or PALE) for colour in row] for row in colours])


def image(axes: Axes, picture: np.ndarray, title: str = "", **more: Any) -> None:
    """Draw a picture, a cell per unit, row 0 on top; no ticks and no frame, a title to the left."""
    rows, columns = picture.shape[:2]
    axes.imshow(picture, interpolation="nearest", extent=(0, columns, rows, 0), **more)
    bare(axes, title)


def cells(axes: Axes, colours: np.ndarray, title: str = "") -> None:
    """Draw a grid of cells with lines between them; ``colours`` as in :func:`coloured`."""
    image(axes, coloured(colours), title)
    (rows, columns), step = colours.shape, 1 if max(colours.shape) <= 48 else 8
    axes.vlines(range(0, columns + 1, step), 0, rows, "white", linewidth=0.5)
    axes.hlines(range(0, rows + 1, step), 0, columns, "white", linewidth=0.5)


def box(axes: Axes, x: float, y: float, width: float, height: float, colour: str, edge: str = "none") -> None:
    """Draw a rectangle from its corner with the least coordinates."""
    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor=edge, linewidth=0.6))


def bare(axes: Axes, title: str = "") -> None:
    """No ticks and no frame; a title to the left."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    if title:
        axes.set_title(title, loc="left")


def save(figure: Figure, path: Path) -> None:
    """Write a figure as a PNG of 200 colours, a third of the size of one of all colours."""
    drawn = BytesIO()
    figure.savefig(drawn, format="png", dpi=200)
    Image.open(drawn).convert("RGB").quantize(200, dither=Image.Dither.NONE).save(path, optimize=True)
