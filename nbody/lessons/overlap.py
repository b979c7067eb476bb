"""Figures of order: what a thread does one after the other, and what it streams."""

from itertools import groupby, pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nbody.compute.simulator.traced import BARRIER, Access, trace
from nbody.figures import BLUE, GREEN, INK, ORANGE, SERIES, VIOLET
from nbody.lessons.accesses import trace_of, traced
from nbody.lessons.style import cells, panels
from nbody.linalg.k17_champion import ProductTiling, tiled_launch
from nbody.linalg.k18_skinny import THREADS, kernel
from nbody.linalg.rung import ProductShape

WIDTHS = {"load": 1.0, "store": 1.0, "copy": 1.2, "multiply": 3.2, "barrier": 0.12}
COLOURS = {"load": BLUE, "store": ORANGE, "copy": VIOLET, "multiply": GREEN, "barrier": INK}
WORDS = {"load": "load s{}", "store": "store s{}", "copy": "start\ncopy s{}", "multiply": "multiply slab {}"}


def _k17() -> list[Access]:
    """What thread 0 of the champion does for three slabs, with a small tile."""
    shape, tiling = ProductShape(32, 64, 48), ProductTiling((32, 64), (32, 32), (4, 8), depth=16, stages=2, resident=1)
    return trace_of(tiled_launch(shape, np.dtype(np.float32), tiling, 1), shape)[0][0, 0][0]


def _phases(events: list[Access], copies: bool) -> list[str]:
    """The kinds of work, in order. ``copies``: what is written to shared memory comes straight from global memory."""

    def kind(event: Access) -> str:
        if event.array == BARRIER:
            return "barrier"
        if event.array in ("a", "b"):
            return "copy" if copies else "load"
        return ("copy" if copies else "store") if event.write else "multiply"

    events = [e for e in events if e.array != "c"]
    if copies:  # before a copy the simulator reads the place it goes to
        events = [e for e, after in zip(events, [*events[1:], events[-1]], strict=True)
                  if e.write or e.array in ("a", "b", BARRIER) or after.array not in ("a", "b")]  # fmt: skip
    runs = [(name, len(list(run))) for name, run in groupby(events, kind)]
    return [name for name, length in runs if name == "barrier" or length > 1]


def overlap() -> Figure:
    """k14, k15, k17: what a thread does for three slabs, in order, with the way of each slab's numbers."""
    orders = {
        "k14": _phases(traced("k14", ProductShape(128, 128, 24))[0, 0][0], copies=False),
        "k15": _phases(traced("k15", ProductShape(128, 128, 24))[0, 0][0], copies=False),
        "k17": _phases(_k17(), copies=True),
    }
    figure, axes = panels(1, 1, 2.7)
    panel = axes[0, 0]
    for y, (name, order) in enumerate(orders.items()):
        _row(panel, y, order)
        panel.text(-0.3, y, name, ha="right", va="center", weight="bold")
    panel.set_ylim(len(orders) - 0.4, -0.75)
    panel.set_xlim(-0.9, 19.6)
    panel.axis("off")
    panel.set_title(
        "a thread's work in order, three slabs (s0, s1, s2); thin bars are barriers, arrows the numbers on their way",
        loc="left",
    )
    return figure


def _row(panel: Axes, y: float, order: list[str]) -> None:
    """Boxes for the phases of one rung; an arrow from where a slab is asked for to where it is first used."""
    x, seen = 0.0, dict.fromkeys(WIDTHS, 0)
    asked: dict[int, float] = {}
    for before, name in pairwise(["", *order]):
        slab, width = seen[name], WIDTHS[name]
        seen[name] += 1
        if (before, name) == ("load", "store"):  # nothing hides the way of these numbers
            panel.text(x + 0.42, y, "wait", ha="center", va="center", fontsize=7, color=INK, style="italic")
            x += 0.85
        panel.barh(y, width, left=x, height=0.62, color=COLOURS[name])
        if name in WORDS:
            small = 7 if name == "multiply" else 5.6
            panel.text(x + width / 2, y, WORDS[name].format(slab), ha="center", va="center", fontsize=small, color="white")
        if name in ("load", "copy"):
            asked[slab] = x + width / 2
        if name == ("multiply" if "copy" in order else "store") and slab in asked:
            start, end = asked[slab], x + 0.15
            panel.annotate(
                "", (end, y - 0.33), (start, y - 0.33),
                arrowprops={"arrowstyle": "->", "color": INK, "lw": 0.9, "connectionstyle": "arc3,rad=-0.18"},
            )  # fmt: skip
        x += width + 0.04


def skinny() -> Figure:
    """k18: what the lanes of the first warp read of eight rows of A, and of B, in one step."""
    rows, columns = 8, 4 * THREADS
    arrays = {"a": np.ones((rows, columns), np.float32), "b": np.ones((columns, 4), np.float32)}
    block = trace(kernel(np.float32, rows, True, True), 1, THREADS, **arrays, c=np.zeros((rows, 4), np.float32))[0, 0]
    shown = 48
    grids = {"a": np.full((rows, shown), "", dtype=object), "b": np.full((4, shown), "", dtype=object)}
    for lane, thread in enumerate(block[:32]):
        for event in thread:
            if event.array == "a" and event.index % columns < shown:
                grids["a"][event.index // columns, event.index % columns] = SERIES[lane % 6]
            if event.array == "b" and event.index // 4 < shown:
                grids["b"][event.index % 4, event.index // 4] = SERIES[lane % 6]
    figure, axes = panels(2, 1, 2.6, height_ratios=(2, 1))
    cells(
        axes[0, 0],
        grids["a"],
        f"A: {rows} rows of a block, a colour per lane: 16 bytes in one load, each number read once",
    )
    cells(axes[1, 0], grids["b"], "B, turned: the rows that go with them, read once for all rows of A")
    return figure
