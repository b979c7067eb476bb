"""The small panel: energy error, virial ratio and Lagrangian radii against time, drawn by matplotlib into an array, on a
thread, so that the window goes on."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from PIL import Image

from nbody.viewer.display.text import BACKGROUND, BRIGHT, DIM, blank
from nbody.viewer.sources.frames import Array
from nbody.viewer.sources.source import Curve, Series, Source

WIDTH, HEIGHT = 340, 310  # the size where there is room, in pixels at scale 1
ROW_HEIGHT = 75  # three diagrams stand one under another if each gets this height, else side by side
SIZE = 10.0  # text in pixels at scale 1; matplotlib's dots per inch are 72, so that points are pixels
REFRESH = 0.5  # seconds between looks for new points

LEFT, RIGHT, TOP, BOTTOM, GAP = 50, 14, 20, 20, 24
LINE = 1.3  # the width of a curve
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
    canvas = FigureCanvasAgg(figure)
    boxes = _boxes(size, scale)
    stacked = boxes[0][0] == boxes[-1][0]
    for k, ((left, top, right, bottom), draw) in enumerate(zip(boxes, (_error, _virial, _radii), strict=True)):
        rectangle = (left / size[0], 1 - bottom / size[1], (right - left) / size[0], (bottom - top) / size[1])
        axes = figure.add_axes(rectangle, facecolor="none")
        axes.set_xlim(*limits)
        _style(axes, scale, stacked, stacked and k < len(boxes) - 1)
        draw(axes, series, scale)
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


def _begun(axes, title: str, curve: Curve, scale: float, why: str) -> bool:
    """Write the title. False, and ``why`` is written, if there are no points."""
    axes.set_title(title, fontsize=(SIZE + 1) * scale, color=_hex(BRIGHT), loc="left", pad=3 * scale)
    if np.isfinite(curve.values).any():
        return True
    axes.set_yticks([])
    axes.text(0.5, 0.5, why, transform=axes.transAxes, ha="center", va="center", fontsize=SIZE * scale, color=_hex(DIM))
    return False


def _error(axes, series: Series, scale: float) -> None:
    time, size = series.energy_error.time, np.abs(series.energy_error.values)
    if not _begun(axes, "|energy error|", Curve(time, size), scale, "not recorded"):
        return
    positive = size[np.isfinite(size) & (size > 0)]
    drawn = np.where(size > 0, size, np.nan) if len(positive) else size
    axes.plot(time, drawn, linewidth=LINE * scale, solid_joinstyle="round", color=COLOURS[0])
    if len(positive):
        _logarithmic(axes, max(positive.min(), positive.max() * 1e-6), positive.max())
    else:
        axes.set_ylim(-1e-16, 1e-15)


def _virial(axes, series: Series, scale: float) -> None:
    from matplotlib.ticker import MaxNLocator

    time, values = series.virial_ratio.time, series.virial_ratio.values
    if not _begun(axes, "virial ratio  T/|W|", series.virial_ratio, scale, "not recorded"):
        return
    axes.axhline(0.5, color=(1, 1, 1, 0.3), linewidth=0.8 * scale, linestyle=(0, (4, 3)))
    axes.plot(time, values, linewidth=LINE * scale, solid_joinstyle="round", color=COLOURS[1])
    low, high = float(np.nanmin(values)), float(np.nanquantile(values, 0.995))
    middle, half = (low + high) / 2, max((high - low) / 2, 0.01 * abs(high), 1e-12)
    axes.set_ylim(middle - 1.15 * half, middle + 1.15 * half)
    axes.yaxis.set_major_locator(MaxNLocator(3))


def _radii(axes, series: Series, scale: float) -> None:
    names = " ".join(f"{100 * f:.3g}" for f in series.fractions if np.isfinite(f))
    title = f"radii {names} %" if names else "Lagrangian radii"
    why = "not known" if series.complete else "being computed …"
    if not _begun(axes, title, series.radii, scale, why):
        return
    values = np.where(series.radii.values > 0, series.radii.values, np.nan)
    axes.set_prop_cycle(color=COLOURS)
    axes.plot(series.radii.time, values, linewidth=LINE * scale, solid_joinstyle="round")
    if np.isfinite(values).any():
        _logarithmic(axes, float(np.nanmin(values)), float(np.nanmax(values)))


def _logarithmic(axes, low: float, high: float) -> None:
    """A logarithmic scale with two to five labels: powers of ten, or within two of them 1, 2, 5 times such a power."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_yscale("log")
    low, high = low / 1.3, high * 1.3
    axes.set_ylim(low, high)
    decades = np.log10(high / low)
    subs = (1.0,) if decades > 2 else (1.0, 2.0, 5.0) if decades > 0.5 else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    axes.yaxis.set_major_locator(LogLocator(10.0, subs=subs, numticks=5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(_label))


def _label(value: float, _) -> str:
    if 1e-3 <= value < 1e4:
        return f"{value:.3g}"
    power = int(np.floor(np.log10(value) + 1e-9))
    factor = value / 10.0**power
    digits = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}" if abs(factor - 1) < 1e-6 else f"{factor:.2g}·10{digits}"


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
        """End the thread."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
