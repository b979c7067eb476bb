"""Profiles at a frame: density, velocity dispersion and rotation against radius, beside a model and over it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from nbody.analysis.panel import ABOVE, LINES, MARKERS, Plot, View, kinds_legend, labelled, log_y
from nbody.figures import GREY

Line = Callable[[Any, Any], np.ndarray]
"""Of a Profile and its Model, None if there is none."""


def profile_lines(axes: Axes, view: View, value: Line, error: Line, curve: Line | None = None, model: bool = False) -> bool:
    """Points with error bars against a logarithmic radius, per run and frame; the ``curve`` of the model if one is chosen,
    which ``value`` and ``error`` need too if ``model`` is True. Returns True if the radius is cylindrical."""
    cylindrical, labels, named = False, [], False
    for run, frame, label, colour, k in view.moments():
        found = view.profile(run, frame)
        sphere = view.sphere(run, frame) if model or (curve and view.model) else None
        cylindrical = found.cylindrical
        labels += [label] if run == 0 else []
        if sphere and curve and sphere not in view.models_named:  # in the first panel only
            view.models_named.append(sphere)
            named, label = True, f"{label}, {sphere.label}"
        axes.errorbar(
            found.radius, value(found, sphere), error(found, sphere), color=colour, label=label, markersize=3, linewidth=1,
            marker=MARKERS[(run if view.several else k) % len(MARKERS)], elinewidth=0.8,
            linestyle="" if sphere else LINES[k % len(LINES)],
        )  # fmt: skip
        if sphere and curve:
            axes.plot(found.radius, curve(found, sphere), color=colour, linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel(labelled("radius R" if cylindrical else "radius r", view.unit("length")))
    if named:
        axes.legend(fontsize="x-small", **ABOVE)
    elif not view.several or len(labels) > 1:
        kinds_legend(axes, view, labels, ncols=3, **ABOVE)
    return cylindrical


def draw_density(axes: Axes, view: View) -> None:
    """Mass per volume around the density centre, or per area around the axis; errors are those of the counts."""
    cylindrical = profile_lines(
        axes, view, lambda p, m: p.density, lambda p, m: p.density_error, lambda p, m: m.density(p.inner, p.outer)
    )
    log_y(axes)
    text, quantity = ("surface density Σ", "surface_density") if cylindrical else ("density ρ", "density")
    axes.set_ylabel(labelled(text, view.unit(quantity)))


def draw_residuals(axes: Axes, view: View) -> None:
    """The density over that of the model, on a logarithmic axis."""

    def ratio(p: Any, m: Any) -> np.ndarray:
        return p.density / m.density(p.inner, p.outer)

    profile_lines(axes, view, ratio, lambda p, m: ratio(p, m) * p.density_error / p.density, model=True)
    log_y(axes)
    axes.axhline(1, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
    axes.set_ylabel(f"density / density of {view.model}")


def draw_dispersion(axes: Axes, view: View) -> None:
    """The one-dimensional velocity dispersion around the mean motion of each bin."""
    profile_lines(
        axes, view, lambda p, m: p.dispersion, lambda p, m: p.dispersion_error, lambda p, m: m.dispersion(p.radius)
    )
    axes.set_ylim(bottom=0)
    pairs = any("'binaries': {" in str(run.run.resolved) for run in view.runs)
    more = "\nwith the motion within binaries" if pairs else ""  # which the model does not have
    axes.set_ylabel(labelled("velocity dispersion σ (1-D)", view.unit("velocity")) + more)


def draw_rotation(axes: Axes, view: View) -> None:
    """The mean velocity around the axis of the angular momentum (z in a plane)."""
    profile_lines(axes, view, lambda p, m: p.rotation, lambda p, m: p.rotation_error)
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
    axes.set_ylabel(labelled(r"rotation velocity ⟨v$_\varphi$⟩", view.unit("velocity")))


AT_FRAMES = ("frame", "species", "cylindrical")
ROTATION = Plot(draw_rotation, False, AT_FRAMES)
DENSITY, DISPERSION, RESIDUALS = (
    Plot(each, False, (*AT_FRAMES, "model")) for each in (draw_density, draw_dispersion, draw_residuals)
)
