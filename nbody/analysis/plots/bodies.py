"""The positions of all bodies at a frame, seen along z: points, or a map of the surface density for many bodies."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nbody.analysis.panel import Plot, View, labelled
from nbody.diagnostics.structure import square_around
from nbody.figures import INK, tidy_log
from nbody.particles import Particles

POINTS = 4000
"""Bodies at most that are drawn as points."""

FEWEST_CELLS, MOST_CELLS = 32, 256
"""Cells per side of a map: about four bodies per cell, were they evenly spread."""


def draw(axes: Axes, view: View) -> None:
    """The last of the chosen frames; several runs as points of different colours."""
    chosen = {run: (frame, label, colour) for run, frame, label, colour, _ in view.moments()}
    for r, (frame, label, colour) in chosen.items():
        p = view.runs[r].particles(frame)
        if r == 0:
            _frame(axes, p)
            axes.set_title(label, loc="right", fontsize=7.5)
        if view.several or p.count <= POINTS:
            _points(axes, p, colour if view.several else INK)
        else:
            _map(axes, view, p)
    axes.set_aspect("equal")
    axes.grid(False)
    axes.set_xlabel(labelled("x", view.unit("length")))
    axes.set_ylabel(labelled("y", view.unit("length")))


def _points(axes: Axes, p: Particles, colour: str) -> None:
    shown = p.position[:: -(-p.count // POINTS), :2]
    size = min(max(2000 / len(shown), 0.8), 12)
    axes.scatter(shown[:, 0], shown[:, 1], s=size, color=colour, linewidths=0, alpha=0.8, rasterized=len(shown) > 500)


def _frame(axes: Axes, p: Particles) -> None:
    (x, y, *_), half = square_around(p)
    axes.set_xlim(x - half, x + half)
    axes.set_ylim(y - half, y + half)


def _map(axes: Axes, view: View, p: Particles) -> None:
    """Mass per area in square cells, on a logarithmic scale with a bar."""
    from matplotlib.colors import LogNorm

    (x, y, *_), half = square_around(p)
    cells = round(min(max((p.count / 4) ** 0.5, FEWEST_CELLS), MOST_CELLS))
    edges: Any = [np.linspace(c - half, c + half, cells + 1) for c in (x, y)]
    mass, *_ = np.histogram2d(p.position[:, 0], p.position[:, 1], bins=edges, weights=p.mass)
    density = mass / (edges[0][1] - edges[0][0]) ** 2
    drawn = axes.pcolormesh(*edges, np.where(density > 0, density, np.nan).T, cmap="viridis", norm=LogNorm(),
                            rasterized=True)  # fmt: skip
    label = labelled("surface density", view.unit("surface_density"))
    bar = axes.figure.colorbar(drawn, ax=axes, label=label, pad=0.02, fraction=0.046)
    tidy_log(bar.ax.yaxis)


PLOT = Plot(draw, over_time=False)
