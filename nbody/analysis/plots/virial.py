"""The virial ratio over time."""

from matplotlib.axes import Axes

from nbody.analysis.panel import Plot, View, run_lines
from nbody.analysis.plots.energy import NO_ENERGY
from nbody.figures import GREY


def draw(axes: Axes, view: View) -> None:
    """T/|W|, with a line at 1/2, its value in equilibrium. (No line with external fields, whose energy W includes: a system
    that orbits in them has any value.)"""
    run_lines(axes, view, lambda run: (run.time, run.observable("virial_ratio", NO_ENERGY)))
    if not any(data.run.resolved.get("fields") for data in view.runs):
        axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
    axes.set_ylabel("virial ratio T / |W|")
    axes.margins(y=0.15)


PLOT = Plot(draw)
