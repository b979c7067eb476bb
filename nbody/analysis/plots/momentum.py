"""The change of the momentum and the angular momentum over time."""

import numpy as np
from matplotlib.axes import Axes

from nbody.analysis.data import RunData
from nbody.analysis.panel import LINES, Plot, View, error_axis, kinds_legend, time_axis

PARTS = ("|P − P$_0$| / Σ m |v|", "|L − L$_0$| / Σ m |x × v|")


def draw(axes: Axes, view: View) -> None:
    """Both relative to the sum of magnitudes at the first frame, because the sum itself may be zero."""
    for r, run in enumerate(view.runs):
        time, *momenta = run.momenta()
        for k, (values, scale) in enumerate(zip(momenta, _scales(run), strict=True)):
            change = np.linalg.norm(values - values[0], axis=1) / (scale or 1.0)
            style = LINES[k] if view.several else "-"
            axes.plot(time, change, color=view.colour(r, k), linestyle=style, label=PARTS[k])
    error_axis(axes)
    axes.set_ylabel("relative change of momentum")
    if view.several:
        kinds_legend(axes, PARTS)
    else:
        axes.legend()
    time_axis(axes, view)


def _scales(run: RunData) -> tuple[float, float]:
    """Σ m |v| and Σ m |x × v| of the first frame."""
    first = run.particles(0)
    x, v = np.zeros((2, first.count, 3))
    x[:, : first.dimensions], v[:, : first.dimensions] = first.position, first.velocity
    return tuple(float(first.mass @ np.linalg.norm(each, axis=1)) for each in (v, np.cross(x, v)))  # type: ignore


PLOT = Plot(draw)
