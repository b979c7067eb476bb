"""Lagrangian radii over time: the radii that contain given fractions of the mass."""

from matplotlib.axes import Axes

from nbody.analysis.panel import LINES, Plot, View, at_the_end, labelled, log_y, time_axis
from nbody.diagnostics import FRACTIONS
from nbody.figures import INK, ramp


def draw(axes: Axes, view: View) -> None:
    """One line per fraction on a logarithmic axis; of several runs, one line style per fraction."""
    for r, run in enumerate(view.runs):
        time, radii = run.structure("lagrangian_radii")
        colours = [view.colour(r)] * len(FRACTIONS) if view.several else ramp(len(FRACTIONS))
        for k, (fraction, colour) in enumerate(zip(FRACTIONS, colours, strict=True)):
            axes.plot(time, radii[:, k], color=colour, linestyle=LINES[k % len(LINES)] if view.several else "-")
            if r == 0:
                at_the_end(axes, f"{100 * fraction:g} %", radii[-1, k], INK if view.several else colour)
    log_y(axes)
    axes.set_ylabel(labelled("Lagrangian radius", view.unit("length")))
    time_axis(axes, view)


PLOT = Plot(draw)
