"""The core radius over time."""

from matplotlib.axes import Axes

from nbody.analysis.panel import Plot, View, labelled, log_y, run_lines


def draw(axes: Axes, view: View) -> None:
    """Casertano & Hut's core radius on a logarithmic axis."""
    run_lines(axes, view, lambda run: run.structure("core_radius"))
    log_y(axes)
    axes.set_ylabel(labelled("core radius", view.unit("length")))


PLOT = Plot(draw)
