"""Figures of tiles: what blocks and threads compute and read."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nbody.errors import counted
from nbody.figures import BLUE, GREEN, INK, ORANGE, SERIES, plain
from nbody.lessons.accesses import CHAMPION, ONE_BLOCK, count, traced
from nbody.lessons.style import PALE, bare, box, cells, coloured, image, panels
from nbody.linalg import LADDER
from nbody.linalg.rung import ProductShape

SIDE = 32
"""Rows and columns of the matrices in :func:`who_reads_what`."""


def who_reads_what() -> Figure:
    """k00 to k03: a grid of A (left), B (above) and C each, with what one block reads and computes."""
    figure, axes = panels(1, 4, 2.45)
    _column_of_b(axes[0, 0])
    for panel, name, block in zip(axes[0, 1:], ("k01", "k02", "k03"), ((0, 0), (1, 0), (1, 0)), strict=True):
        accesses = [event for thread in traced(name, ProductShape(SIDE, SIDE, SIDE))[block] for event in thread]
        reads = {matrix: {e.index for e in accesses if e.array == matrix and not e.write} for matrix in "ab"}
        results = {e.index for e in accesses if e.array == "c"}
        grid = np.full((2 * SIDE + 2, 2 * SIDE + 2), "", dtype=object)
        grid[: SIDE + 2, : SIDE + 2] = grid[SIDE : SIDE + 2] = grid[:, SIDE : SIDE + 2] = "white"
        parts = (("a", reads["a"], SIDE + 2, 0, BLUE), ("b", reads["b"], 0, SIDE + 2, ORANGE))
        for _, indices, top, left, colour in (*parts, ("c", results, SIDE + 2, SIDE + 2, GREEN)):
            for index in indices:
                grid[top + index // SIDE, left + index % SIDE] = colour
        total = len(reads["a"] | {SIDE * SIDE + i for i in reads["b"]})
        image(panel, coloured(grid), f"{name}: {len(results)} results\nof a block need\n{total} numbers")
        for text, x, y in (("A", 8.5, 45.5), ("B", 46.5, 8.5), ("C", 46.5, 62.5)):
            panel.text(x, y, text, fontsize=10, weight="bold", color=INK)
    return figure


def _column_of_b(panel: Axes) -> None:
    """k00: the numbers of B that one result reads, and the lines of 64 bytes that come with them."""
    grid = np.full((SIDE, SIDE), "", dtype=object)
    grid[:, :16] = "#f6d9b0"
    grid[:, 5] = ORANGE
    cells(panel, grid, f"k00: one column of B,\n{SIDE} cache lines of\n16 numbers")


def register_tiles() -> Figure:
    """k06 to k13: in the block's tile of C, the results of one thread, and what it reads for them in one step along k."""
    names = ("k06", "k07", "k08", "k09", "k11", "k12", "k13", "k14")
    figure, axes = panels(2, 4, 4.9)
    for panel, name in zip(axes.flat, names, strict=True):
        shape, work = ONE_BLOCK[name], count(name)
        threads = traced(name)[0, 0]
        thread = threads[len(threads) // 2 + 5]
        results = sorted({e.index for e in thread if e.array == "c" and e.write})
        rows, columns = sorted({i // shape.n for i in results}), sorted({i % shape.n for i in results})
        side, dot = shape.m, max(1.0, shape.m / 45)
        panel.set_xlim(-0.16 * side, side)
        panel.set_ylim(side, -0.16 * side)
        panel.set_aspect("equal")
        box(panel, 0, 0, side, side, PALE)
        for row in rows:
            box(panel, -0.12 * side, row, 0.08 * side, dot, BLUE)
        for column in columns:
            box(panel, column, -0.12 * side, dot, 0.08 * side, ORANGE)
        for i in results:
            box(panel, i % shape.n, i // shape.n, dot, dot, GREEN)
        steps = work.products // len(results)
        reads = work.from_shared / steps
        made = counted(len(results), "result")
        bare(panel, f"{name}: {side}×{side}\n{len(threads)} threads, {made}\n{reads:.3g} reads per step")
    figure.supxlabel(
        "blue: numbers of A, orange: of B, green: the results of one thread in the tile of its block", fontsize=8.5
    )
    return figure


def reads() -> Figure:
    """k04 to k17: reads per multiply-add, counted in the kernels (bars) and as the ladder's model has them (lines)."""
    names = [name for name in ONE_BLOCK if name != "k01"]
    work = {name: count(name) for name in names}
    figure, axes = panels(1, 2, 2.9, sharey=True)
    for panel, where, colour in zip(axes[0], ("shared", "global"), (ORANGE, BLUE), strict=True):
        for y, name in enumerate(names):
            model = getattr(LADDER.load(name).reads(ONE_BLOCK[name]), f"from_{where}") / ONE_BLOCK[name].k
            value = getattr(work[name], f"from_{where}") / work[name].products
            panel.barh(y, value, color=colour, height=0.7)
            panel.plot([model, model], [y - 0.45, y + 0.45], color=INK, linewidth=1.4)
            panel.text(value * 1.1, y, f"{value:.3g}", va="center", fontsize=7.5)
        panel.set_xscale("log")
        panel.set_xlim(0.005, 8)
        panel.set_yticks(range(len(names)), names)
        panel.set_ylim(len(names) - 0.4, -0.6)
        plain(panel, f"reads of {where} memory per multiply-add")
    return figure


def champion() -> Figure:
    """k17: which warp computes what of a block's tile, and which lane what of a warp's."""
    shape, threads = ONE_BLOCK["k17"], traced("k17")[0, 0]
    owner = np.zeros((shape.m, shape.n), int)
    for t, thread in enumerate(threads):
        for event in thread:
            if event.array == "c" and event.write:
                owner[divmod(event.index, shape.n)] = t
    figure, axes = panels(1, 2, 3.2)
    warps = np.array(SERIES, dtype=object)[owner // 32]
    image(axes[0, 0], coloured(warps), f"a block's tile, {shape.m}×{shape.n}:\n{len(threads) // 32} warps")
    height, width = CHAMPION.warp
    warp = owner[:height, :width]
    lanes = np.where(warp == 5, INK, np.array(("#cfe0f1", "#9fc1e4"), dtype=object)[(warp % 8 + warp // 8) % 2])
    held = int((owner == 5).sum())
    image(axes[0, 1], coloured(lanes), f"the tile of warp 0, {height}×{width}:\nlane 5 of 32 (dark) has {held} results")
    return figure
