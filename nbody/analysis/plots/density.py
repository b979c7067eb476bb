"""Density against radius."""

from matplotlib.axes import Axes

from nbody.analysis.panel import Plot, View, labelled, log_y, profile_lines


def draw(axes: Axes, view: View) -> None:
    """Mass per volume around the density centre, or per area around the axis; errors are those of the counts."""
    cylindrical = profile_lines(axes, view, lambda p: p.density, lambda p: p.density_error)
    log_y(axes)
    text, quantity = ("surface density Σ", "surface_density") if cylindrical else ("density ρ", "density")
    axes.set_ylabel(labelled(text, view.unit(quantity)))


PLOT = Plot(draw, over_time=False)
