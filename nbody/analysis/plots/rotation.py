"""Mean rotation velocity against radius."""

from matplotlib.axes import Axes

from nbody.analysis.panel import Plot, View, labelled, profile_lines
from nbody.figures import GREY


def draw(axes: Axes, view: View) -> None:
    """The mean velocity around the axis of the angular momentum (z in a plane)."""
    profile_lines(axes, view, lambda p: p.rotation, lambda p: p.rotation_error)
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle=":", zorder=1)
    axes.set_ylabel(labelled(r"rotation velocity ⟨v$_\varphi$⟩", view.unit("velocity")))


PLOT = Plot(draw, over_time=False)
