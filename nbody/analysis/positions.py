"""Positions seen along z: all bodies at a frame, as points or as a map; and the paths of chosen bodies."""

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes

from nbody.analysis.arcs import kepler_arcs
from nbody.analysis.data import PATH_FRAMES, spread
from nbody.analysis.panel import BESIDE, Plot, View, frames_per_oscillation, kinds_legend, labelled, warn_if_sparse
from nbody.diagnostics.structure import column_density, square_around
from nbody.figures import tidy_log
from nbody.particles import Particles

POINTS, SMALL = 4000, 0.01
"""Bodies at most that are drawn as points; and of the width of a panel: paths below this are dots without a shape."""

FEWEST_CELLS, MOST_CELLS = 32, 256
"""Cells per side of a map: about four bodies per cell, were they evenly spread."""


def draw_bodies(axes: Axes, view: View) -> None:
    """All bodies at the last of the chosen frames; several runs as points of different colours."""
    chosen = {run: (frame, label, colour) for run, frame, label, colour, _ in view.moments()}
    squares = (square_around(view.runs[r].everything(frame)) for r, (frame, *_) in chosen.items())
    (x, y, *_), half = max(squares, key=lambda square: square[1])
    axes.set(xlim=(x - half, x + half), ylim=(y - half, y + half))
    axes.set_title(chosen[0][1], loc="right", fontsize=7.5)
    for r, (frame, _, colour) in chosen.items():
        p = view.runs[r].particles(frame)
        if view.several or p.count <= POINTS:
            shown, colour = p.position[:: -(-p.count // POINTS), :2], colour if view.several else rcParams["text.color"]
            size, many = min(max(2000 / len(shown), 0.8), 12), len(shown) > 500
            axes.scatter(shown[:, 0], shown[:, 1], s=size, color=colour, linewidths=0, alpha=0.8, rasterized=many)
        else:
            _map(axes, view, p)
    axes.set_aspect("equal")
    axes.grid(False)
    _label(axes, view)


def _label(axes: Axes, view: View) -> None:
    axes.set(xlabel=labelled("x", view.unit("length")), ylabel=labelled("y", view.unit("length")))


def _map(axes: Axes, view: View, p: Particles) -> None:
    """Mass per area in square cells, on a logarithmic scale with a bar."""
    from matplotlib.colors import LogNorm

    density, *edges = column_density(p, round(min(max((p.count / 4) ** 0.5, FEWEST_CELLS), MOST_CELLS)))
    drawn = axes.pcolormesh(*edges, np.where(density > 0, density, np.nan).T, cmap="viridis", norm=LogNorm(),
                            rasterized=True)  # fmt: skip
    label = labelled("surface density", view.unit("surface_density"))
    bar = axes.figure.colorbar(drawn, ax=axes, label=label, pad=0.02, fraction=0.046)
    tidy_log(bar.ax.yaxis)


def draw_orbits(axes: Axes, view: View) -> None:
    """The paths of chosen bodies: a line per body, with a dot at its last position. Between frames that are far apart the
    line follows Kepler's orbit about the star, where the bodies move on it."""
    for r, run in enumerate(view.runs):
        rows = run.rows(view.bodies, view.most_bodies)
        frames, position = spread(len(run.time), PATH_FRAMES), run.run.position
        found = dict(run.drawable("paths", frames, position.__getitem__))
        paths = np.array([x[rows, :2] for x in found.values()])
        arcs = kepler_arcs(run.run, list(found), rows)
        seen = np.ptp(paths, axis=0).max(axis=1) > SMALL * np.ptp(paths, axis=(0, 1)).max()  # (a star hardly moves)
        chords = (each for k, row in enumerate(rows) if row not in arcs and seen[k] for each in paths[:, k].T)
        warn_if_sparse(axes, run, min(map(frames_per_oscillation, chords), default=np.inf), "orbits")
        for k, row in enumerate(rows):
            path, style = arcs.get(row, paths[:, k]), view.style(r, k)
            axes.plot(*path.T, linewidth=0.9, label=run.name(run.run.id[row]), **style)
            axes.plot(*paths[-1, k], "o", color=style["color"], markersize=4)
    axes.set_aspect("equal", adjustable="datalim")
    _label(axes, view)
    rows = view.runs[0].rows(view.bodies, view.most_bodies)
    kinds_legend(axes, view, [view.runs[0].name(view.runs[0].run.id[row]) for row in rows], **BESIDE)


BODIES, ORBITS = Plot(draw_bodies, False, ("frame", "species")), Plot(draw_orbits, options=("bodies", "species"))
