"""Density against radius."""

from typing import Any

from nbody.analysis.panel import Plot, View, labelled, log_y, profile_lines


def draw(axes: Any, view: View) -> None:
    """Mass per volume around the density centre, or per area around the axis; errors are those of the counts."""
    cylindrical = profile_lines(axes, view, lambda p: p.density, lambda p: p.density_error)
    log_y(axes)
    mass, length = view.unit("mass"), view.unit("length")
    unit = f"{mass}/{length}{'²' if cylindrical else '³'}" if mass and length else ""
    axes.set_ylabel(labelled("surface density Σ" if cylindrical else "density ρ", unit))


PLOT = Plot(draw, over_time=False)
