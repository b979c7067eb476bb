"""The picture of a report: lines or bars in panels. A suite's ``picture`` gives what is drawn."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nbody.bench import tables
from nbody.bench.report import Report
from nbody.figures import GREY, RC, SERIES, plain


class Line(NamedTuple):
    """The values of ``name``, which has the same colour in all panels; dotted for bounds and guesses."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    label: str = ""
    dotted: bool = False


class Bar(NamedTuple):
    """A horizontal bar: its label in the left margin, and the figure at its end."""

    name: str
    value: float
    text: str
    colour: int = 0


class Panel(NamedTuple):
    """One diagram. ``marks`` are marked on the x axis, each with its text; ``ticks`` are the only labels of the x axis, and
    ``show`` formats those of the y axis."""

    title: str
    xlabel: str
    ylabel: str = ""
    lines: Sequence[Line] = ()
    bars: Sequence[Bar] = ()
    marks: Sequence[tuple[str, float]] = ()
    ticks: Sequence[int] = ()
    show: Callable[[float], str] | None = None
    scale: str = "log"


class Picture(NamedTuple):
    """Panels side by side, with the same y axis if ``shared``; ``height`` in inches."""

    title: str
    panels: Sequence[Panel]
    shared: bool = False
    height: float = 5.5


def plot(report: Report, path: Path) -> None:
    """Draw the picture of a report's first suite to a PNG. Needs no display."""
    import matplotlib
    from matplotlib.figure import Figure

    picture: Picture = tables([*report.suites, "forces"][0]).picture(report)
    panels = picture.panels or [Panel("none", "")]
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(1 + 6.5 * len(panels), picture.height), layout="constrained")
        figure.suptitle(picture.title, fontsize=10)
        found = figure.subplots(1, len(panels), sharey=picture.shared, squeeze=False)[0]
        for axes, panel in zip(found, panels, strict=True):
            plain(axes, panel.title)
            axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
            if panel.bars:
                _bars(axes, panel)
            else:
                _lines(axes, panel, names)
        figure.savefig(path, format="png", dpi=130, metadata={"Description": picture.title})


def _lines(axes: Any, panel: Panel, names: Sequence[str]) -> None:
    """The lines of a panel, and a legend beside it in the order of their ends."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set(xscale=panel.scale, yscale=panel.scale)
    for line in panel.lines:
        again, colour = divmod(names.index(line.name), len(SERIES))
        style = {"ls": ":"} if line.dotted else {"marker": "os^D"[again % 4], "label": line.label or line.name}
        axes.plot(line.x, line.y, color=SERIES[colour], markersize=4, **style)
    for text, x in panel.marks:
        axes.axvline(x, color=GREY, linewidth=0.9, linestyle="-.")
        axes.annotate(text, (x, 0.98), xycoords=("data", "axes fraction"), rotation=90, fontsize=7, va="top")
    if panel.ticks:
        axes.set_xticks(panel.ticks, [str(tick) for tick in panel.ticks], rotation=30)
        axes.xaxis.set_minor_formatter(NullFormatter())
    if panel.show:
        show = panel.show
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    labelled = sorted(zip(*axes.get_legend_handles_labels(), strict=True), key=lambda each: -each[0].get_ydata()[-1])
    if labelled:
        axes.legend(*zip(*labelled, strict=True), loc="center left", bbox_to_anchor=(1.01, 0.5))


def _bars(axes: Any, panel: Panel) -> None:
    """The bars of a panel from the top down, and its marks."""
    for k, bar in enumerate(panel.bars):
        drawn = axes.barh(k, bar.value, color=SERIES[bar.colour], height=0.7)
        axes.bar_label(drawn, [bar.text], padding=4, fontsize=7)
    for k, (text, x) in enumerate(panel.marks):
        axes.axvline(x, color=GREY, linestyle=("-", "--")[k % 2], zorder=0, label=text)
    if panel.marks:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1.005), ncols=2)
    axes.set_yticks(range(len(panel.bars)), [bar.name for bar in panel.bars])
    axes.set_ylim(len(panel.bars) - 0.4, -0.6)
    axes.margins(x=0.3)
