"""The paths of chosen bodies, seen along z."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from nbody.analysis.data import RunData, spread
from nbody.analysis.panel import BESIDE, LINES, Plot, View, labelled
from nbody.errors import InputError

FRAMES = 2000
"""Frames at most that are read."""

DEFAULT, DEFAULT_OF_SEVERAL = 8, 2
"""Bodies at most that are drawn of one run, or of each of several, if none are named: evenly spread in the file's order."""


def draw(axes: Axes, view: View) -> None:
    """A line per body, with a dot at its last position."""
    for r, run in enumerate(view.runs):
        rows = _rows(run, view.bodies, DEFAULT_OF_SEVERAL if view.several else DEFAULT)
        frames = spread(len(run.time), FRAMES)
        paths = np.array([run.run.position[k][rows, :2] for k in frames])
        for k, row in enumerate(rows):
            colour, style = view.colour(r, k), LINES[k % len(LINES)] if view.several else "-"
            axes.plot(*paths[:, k].T, color=colour, linestyle=style, linewidth=0.9, label=_name(run, row))
            axes.plot(*paths[-1, k], "o", color=colour, markersize=4)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel(labelled("x", view.unit("length")))
    axes.set_ylabel(labelled("y", view.unit("length")))
    if not view.several:
        axes.legend(**BESIDE)


def _name(run: RunData, row: int) -> str:
    """The species of a body if it is the only one of it, as planets are; else its id."""
    species, names = run.run.species, run.run.species_names
    name = names[species[row]]
    return name if name and (species == species[row]).sum() == 1 else f"body {run.run.id[row]}"


def _rows(run: RunData, bodies: Sequence[int], default: int) -> list[int]:
    """Where the bodies with these ids are in the arrays."""
    ids = run.run.id
    if not bodies:
        return spread(len(ids), default)
    row = {int(each): k for k, each in enumerate(ids)}
    if missing := [each for each in bodies if each not in row]:
        raise InputError(
            f"--bodies {missing[0]}: {run.run.path} has no body with this id; they go from {ids.min()} to {ids.max()}"
        )
    return [row[each] for each in bodies]


PLOT = Plot(draw)
