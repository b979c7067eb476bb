"""Kinetic, potential and total energy over time."""

from matplotlib.axes import Axes

from nbody.analysis.panel import BESIDE, LINES, Plot, View, kinds_legend, labelled, time_axis
from nbody.analysis.plots.energy import NO_ENERGY
from nbody.figures import GREY

ENERGIES = {"kinetic_energy": "T", "potential_energy": "W", "total_energy": "E = T + W"}


def draw(axes: Axes, view: View) -> None:
    """T, W and their sum."""
    for r, run in enumerate(view.runs):
        for k, (name, symbol) in enumerate(ENERGIES.items()):
            values, style = run.observable(name, NO_ENERGY), LINES[k] if view.several else "-"
            axes.plot(run.time, values, color=view.colour(r, k), linestyle=style, label=symbol)
    axes.axhline(0, color=GREY, linewidth=0.6)
    if view.several:
        kinds_legend(axes, list(ENERGIES.values()), **BESIDE)
    else:
        axes.legend(**BESIDE)
    axes.set_ylabel(labelled("energy", view.unit("energy")))
    time_axis(axes, view)


PLOT = Plot(draw)
