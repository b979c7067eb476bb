"""Velocity dispersion against radius."""

from matplotlib.axes import Axes

from nbody.analysis.panel import Plot, View, labelled, profile_lines


def draw(axes: Axes, view: View) -> None:
    """The one-dimensional dispersion around the mean motion of each bin."""
    profile_lines(axes, view, lambda p: p.dispersion, lambda p: p.dispersion_error)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(labelled("velocity dispersion σ (1-D)", view.unit("velocity")))


PLOT = Plot(draw, over_time=False)
