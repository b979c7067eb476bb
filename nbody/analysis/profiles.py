"""Profiles at a frame: density, velocity dispersion and rotation against radius."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes

from nbody.analysis.panel import LINES, MARKERS, Plot, View, kinds_legend, labelled, log_y
from nbody.diagnostics import Profile
from nbody.figures import GREY


def profile_lines(
    axes: Axes, view: View, value: Callable[[Profile], np.ndarray], error: Callable[[Profile], np.ndarray]
) -> bool:
    """Points with error bars against a logarithmic radius, per run and frame. Returns True if the radius is cylindrical."""
    cylindrical = False
    labels = []
    for run, frame, label, colour, k in view.moments():
        found = view.profile(run, frame)
        cylindrical = found.cylindrical
        labels += [label] if run == 0 else []
        marker = MARKERS[(run if view.several else k) % len(MARKERS)]
        axes.errorbar(
            found.radius, value(found), error(found), color=colour, label=label, marker=marker, markersize=3,
            linewidth=1, elinewidth=0.8, linestyle=LINES[k % len(LINES)],
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel(labelled("radius R" if cylindrical else "radius r", view.unit("length")))
    if not view.several or len(labels) > 1:
        kinds_legend(axes, view, labels)
    return cylindrical


def draw_density(axes: Axes, view: View) -> None:
    """Mass per volume around the density centre, or per area around the axis; errors are those of the counts."""
    cylindrical = profile_lines(axes, view, lambda p: p.density, lambda p: p.density_error)
    log_y(axes)
    text, quantity = ("surface density Σ", "surface_density") if cylindrical else ("density ρ", "density")
    axes.set_ylabel(labelled(text, view.unit(quantity)))


def draw_dispersion(axes: Axes, view: View) -> None:
    """The one-dimensional velocity dispersion around the mean motion of each bin."""
    profile_lines(axes, view, lambda p: p.dispersion, lambda p: p.dispersion_error)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(labelled("velocity dispersion σ (1-D)", view.unit("velocity")))


def draw_rotation(axes: Axes, view: View) -> None:
    """The mean velocity around the axis of the angular momentum (z in a plane)."""
    profile_lines(axes, view, lambda p: p.rotation, lambda p: p.rotation_error)
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
    axes.set_ylabel(labelled(r"rotation velocity ⟨v$_\varphi$⟩", view.unit("velocity")))


DENSITY, DISPERSION, ROTATION = (Plot(each, over_time=False) for each in (draw_density, draw_dispersion, draw_rotation))
