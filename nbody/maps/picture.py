"""The picture of a map: axes with units, a colour bar, logarithmic where values are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize

from nbody.analysis.figure import LOOK, SINGLE, RunFigure, styled_figure
from nbody.analysis.panel import labelled
from nbody.errors import InputError, counted
from nbody.figures import GREY, GRID, INK, plain, tidy_log

if TYPE_CHECKING:
    from nbody.maps.quantities import Quantity
    from nbody.maps.stability_map import StabilityMap


def plot_map(found: "StabilityMap", names: Sequence[str], axes: Axes | None = None, style: str = "") -> RunFigure:
    """Draw quantities of a map, as :meth:`.StabilityMap.plot` says."""
    if not found.done:
        raise InputError("map: no system is computed yet; compute it first (the same 'nbody map' goes on)")
    with rc_context(LOOK):
        if axes is not None:
            if style:
                raise InputError("plot: a style is of a whole figure, and axes have theirs; leave one of the two out")
            _draw(found, names[0], axes)
            return cast(RunFigure, axes.figure)
        columns = min(len(names), 2)
        rows = -(-len(names) // columns)
        size = SINGLE if len(names) == 1 else (columns * SINGLE[0], rows * SINGLE[1])
        figure = styled_figure(size, style)
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        for name, panel in zip(names, panels, strict=False):
            _draw(found, name, panel)
        for panel in panels[len(names) :]:
            panel.remove()
        title = f"{found.scenario.name}, {counted(found.done, 'system')}"
        figure.suptitle(title, x=0.01, ha="left", fontsize=8.5, color=GREY)
    return figure


def _draw(found: "StabilityMap", name: str, axes: Axes) -> None:
    kind = found.quantity(name)
    plain(axes)
    values, labels = found.values[name], {each: labelled(*both) for each, both in found.labels.items()}
    axes.set_xlabel(labels["x"])
    if found.y is None:
        axes.plot(found.x, values, ".-")
        axes.set_ylabel(labels[name])
        axes.set_yscale("log" if kind.logarithmic and (values > 0).all() else "linear")
    else:
        axes.grid(False)
        dark = (found.status > 0) & kind.whole_runs
        ended, norm = bool(dark.any()), _norm(values[~dark], kind)
        colours = colormaps[kind.colours].with_extremes(over=INK)
        edges = _edges(found.x), _edges(found.y)
        shown = np.where(dark, np.finfo(float).max, np.minimum(values, cast(float, norm.vmax)))
        mesh = axes.pcolormesh(*edges, shown, cmap=colours, norm=norm, rasterized=True)
        axes.set_facecolor(GRID)  # of what is not computed, or not a number
        note = " (dark: ended before)" if ended else ""
        bar = axes.figure.colorbar(mesh, ax=axes, label=labels[name] + note, extend="max" if ended else "neither")
        axes.set_ylabel(labels["y"])
        axes.set_yscale("log" if _geometric(found.y) else "linear")
        if isinstance(mesh.norm, LogNorm):
            tidy_log(bar.ax.yaxis)
    axes.set_xscale("log" if _geometric(found.x) else "linear")
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            tidy_log(axis)


def _norm(values: np.ndarray, kind: "Quantity") -> Normalize:
    """The scale of the colours; some hundredths of the values may be beyond it."""
    finite = values[np.isfinite(values)]
    low, high = np.quantile(finite, (0.01, 0.99)) if len(finite) else (0.0, 1.0)
    low, high = (given if given is not None else own for given, own in zip(kind.limits, (low, high), strict=True))
    if kind.logarithmic and low <= 0:
        low = min(finite[finite > 0], default=high / 10)
    high = max(high, 2 * low) if kind.logarithmic else high
    return LogNorm(low, high) if kind.logarithmic and high > low > 0 else Normalize(low, high)


def _geometric(values: np.ndarray) -> bool:
    """True if the values have equal ratios rather than equal distances."""
    if len(values) < 3 or not (values > 0).all():
        return False
    logarithms, steps = np.diff(np.log(values)), np.diff(values)
    return bool(np.ptp(logarithms) < 1e-6 * abs(logarithms).max() and np.ptp(steps) > 1e-6 * abs(steps).max())


def _edges(values: np.ndarray) -> np.ndarray:
    """The edges of the cells about values."""
    if _geometric(values):
        return np.exp(_edges(np.log(values)))
    between = (values[1:] + values[:-1]) / 2
    first, last = (2 * values[0] - between[0], 2 * values[-1] - between[-1]) if len(values) > 1 else values[0] + [-0.5, 0.5]
    return np.concatenate(([first], between, [last]))
