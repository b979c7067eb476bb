"""The small panel: energy error, virial ratio and Lagrangian radii against time, drawn by matplotlib into an array, on a
thread, so that the window goes on."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from PIL import Image

from nbody.figures import tidy_log
from nbody.viewer.display.text import BACKGROUND, BRIGHT, DIM, blank
from nbody.viewer.sources.frames import Array
from nbody.viewer.sources.source import Curve, Series, Source

WIDTH, HEIGHT = 340, 310  # the size where there is room, in pixels at scale 1
ROW_HEIGHT = 75  # three diagrams stand one under another if each gets this height, else side by side
SIZE = 10.0  # text in pixels at scale 1; matplotlib's dots per inch are 72, so that points are pixels
REFRESH = 0.5  # seconds between looks for new points

LEFT, RIGHT, TOP, BOTTOM, GAP = 50, 14, 20, 20, 24
LINE = 1.3  # the width of a curve
STEEPEST = 1e-6  # the least value on a logarithmic scale, in units of the greatest
COLOURS = ("#f2b26b", "#96beff", "#d79bf0", "#8fd6c4", "#e8e8ee")


@dataclass(frozen=True, eq=False)
class Diagram:
    """The drawn panel: its image (h, w, RGBA), uint8; left, top, right and bottom of each diagram, in pixels of the image;
    and the times at its left and right edges."""

    image: Array
    boxes: tuple[tuple[int, int, int, int], ...]
    limits: tuple[float, float]

    def cursor(self, time: float, scale: float) -> list[tuple[int, int, Array]]:
        """Thin lines at ``time``: of each, the left and top pixel in the image, and its pixels."""
        fraction = (time - self.limits[0]) / (self.limits[1] - self.limits[0])
        if not 0 <= fraction <= 1:
            return []
        width, lines = max(1, round(1.2 * scale)), []
        for left, top, right, bottom in self.boxes:
            pixels = np.empty((bottom - top, width, 4), np.uint8)
            pixels[:] = (*BRIGHT[:3], 200)
            lines.append((round(left + fraction * (right - left)) - width // 2, top, pixels))
        return lines


def draw_diagram(series: Series, size: tuple[int, int], scale: float) -> Diagram:
    """Draw ``series`` in a panel of ``size`` (width, height) pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    first, last = (float(series.times.min()), float(series.times.max())) if len(series.times) else (0.0, 1.0)
    limits = (first, last) if last > first else (first - 0.5, first + 0.5)
    figure = Figure(figsize=(size[0] / 72, size[1] / 72), dpi=72, facecolor="none")
    canvas, boxes, error = FigureCanvasAgg(figure), _boxes(size, scale), series.energy_error
    names = " ".join(f"{100 * f:.3g}" for f in series.fractions if np.isfinite(f))
    why = "not known" if series.complete else "being computed …"
    curves: tuple[tuple, ...] = (
        ("|energy error|", Curve(error.time, np.abs(error.values)), "not recorded"),
        ("virial ratio  T/|W|", series.virial_ratio, "not recorded", False),
        (f"radii {names} %" if names else "Lagrangian radii", series.radii, why),
    )
    stacked = boxes[0][0] == boxes[-1][0]
    for k, ((left, top, right, bottom), curve) in enumerate(zip(boxes, curves, strict=True)):
        rectangle = (left / size[0], 1 - bottom / size[1], (right - left) / size[0], (bottom - top) / size[1])
        axes = figure.add_axes(rectangle, facecolor="none", xlim=limits)
        _style(axes, scale, stacked, stacked and k < len(boxes) - 1)
        _draw(axes, scale, *curve)
    canvas.draw()
    image = blank(*size, scale, (*BACKGROUND[:3], 205))
    image.alpha_composite(Image.fromarray(np.asarray(canvas.buffer_rgba())))
    return Diagram(np.asarray(image), boxes, limits)


def _boxes(size: tuple[int, int], scale: float) -> tuple[tuple[int, int, int, int], ...]:
    left, right, top, bottom, gap = (round(x * scale) for x in (LEFT, RIGHT, TOP, BOTTOM, GAP))
    width, height = size
    if height >= 3 * ROW_HEIGHT * scale:
        each = (height - top - bottom - 2 * gap) / 3
        tops = [round(top + k * (each + gap)) for k in range(3)]
        return tuple((left, y, width - right, y + round(each)) for y in tops)
    each = width / 3
    return tuple((round(k * each) + left, top, round((k + 1) * each) - right, height - bottom) for k in range(3))


def _style(axes, scale: float, wide: bool, hide_times: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.tick_params(labelsize=SIZE * scale, colors=_hex(DIM), length=2.5 * scale, width=0.6 * scale, pad=2 * scale)
    axes.xaxis.set_major_locator(MaxNLocator(4 if wide else 2))
    axes.tick_params(axis="x", labelbottom=not hide_times)
    axes.tick_params(which="minor", left=False, labelleft=False)
    for spine in axes.spines.values():
        spine.set_color((1, 1, 1, 0.25))
        spine.set_linewidth(0.6 * scale)


def _draw(axes, scale: float, title: str, curve: Curve, why: str, logarithmic: bool = True) -> None:
    """Draw a curve; or ``why`` there is none. One that is not logarithmic has a line at equilibrium."""
    from matplotlib.ticker import MaxNLocator

    axes.set_title(title, fontsize=(SIZE + 1) * scale, color=_hex(BRIGHT), loc="left", pad=3 * scale)
    values = curve.values
    if not np.isfinite(values).any():
        axes.set_yticks([])
        style = {"ha": "center", "va": "center", "fontsize": SIZE * scale, "color": _hex(DIM)}
        axes.text(0.5, 0.5, why, transform=axes.transAxes, **style)
        return
    axes.set_prop_cycle(color=COLOURS if logarithmic else COLOURS[1:])
    positive = values[np.isfinite(values) & (values > 0)]
    if logarithmic and len(positive):
        values = np.where(values > 0, values, np.nan)
        axes.set_yscale("log")
        axes.set_ylim(max(positive.min(), positive.max() * STEEPEST) / 1.3, positive.max() * 1.3)
        tidy_log(axes.yaxis)
    else:
        low, high = float(np.nanmin(values)), float(np.nanquantile(values, 0.995))
        middle, half = (low + high) / 2, max((high - low) / 2, 0.01 * abs(high)) or 1.0
        axes.set_ylim(middle - 1.15 * half, middle + 1.15 * half)
        axes.yaxis.set_major_locator(MaxNLocator(3))
    if not logarithmic:
        axes.axhline(0.5, color=(1, 1, 1, 0.3), linewidth=0.8 * scale, linestyle=(0, (4, 3)))
    axes.plot(curve.time, values, linewidth=LINE * scale, solid_joinstyle="round")


def _hex(colour: tuple[int, ...]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour[:3])


class Diagrams:
    """The diagrams of a source; ``drawn`` is the latest drawing, None before the first."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.drawn: Diagram | None = None
        self._series: Series | None = None
        self._age = REFRESH
        self._begun: tuple = ()  # what the present drawing shows
        self._future: Future[Diagram] | None = None
        self._thread: ThreadPoolExecutor | None = None

    def tick(self, seconds: float, size: tuple[int, int], scale: float) -> bool:
        """Call this while the diagrams are shown. Returns True if there is a new drawing."""
        self._age += seconds
        if self._age >= REFRESH:
            self._age, self._series = 0.0, self._source.series()
        if finished := self._future is not None and self._future.done():
            self.drawn, self._future = self._future.result(), None
        if self._series is not None and self._future is None:
            needed = (len(self._series.times), self._series.complete, size, scale)
            if needed != self._begun:
                self._begun = needed
                self._thread = self._thread or ThreadPoolExecutor(1, "diagrams")
                self._future = self._thread.submit(draw_diagram, self._series, size, scale)
        return finished

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
