"""Figures of measured numbers, read from the tables that ``nbody bench`` writes into the lessons: the reports themselves are
not kept in a checkout, and figures of the same numbers as the text can't contradict it."""

import re
from pathlib import Path

from matplotlib.figure import Figure

from nbody.bench.forces.lecture import K40C
from nbody.bench.forces.problems import LECTURE_STEPS
from nbody.figures import BLUE, GRID, INK, ORANGE, SERIES, plain
from nbody.lessons.style import panels

ROOMS = Path(__file__).parents[1]

OF_THE_LECTURE = {"gpu-tiled": "K40c, shared memory", "gpu-global": "K40c, global memory"}
"""The lecture's kernels, on its card."""

POWERS = {"": 1.0, "M": 1e6, "G": 1e9, "T": 1e12}


def tables(room: str, suite: str) -> list[list[dict[str, str]]]:
    """The Markdown tables between a suite's markers in the lesson of a room: their rows, by the headings."""
    text = (ROOMS / room / "README.md").read_text(encoding="utf-8")
    text = text.split(f"<!-- {suite}:begin -->")[1].split(f"<!-- {suite}:end -->")[0]
    found = []
    for block in re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE):
        lines = [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in block.splitlines()]
        rows = (zip(lines[0][::-1], line[::-1], strict=True) for line in lines[2:])  # of equal headings the first counts
        found.append([dict(row) for row in rows])
    return found


def number(text: str) -> float | None:
    """``1.90 T`` as a number; None for a dash."""
    match = re.match(r"([0-9.e+-]+) ?([MGT]?)", text)
    return float(match[1]) * POWERS[match[2]] if match and match[1] != "-" else None


def model() -> Figure:
    """The gain over k02 that the cost model expects, and the one that was measured, in float32."""
    rows = tables("linalg", "matmul")[0]
    figure, axes = panels(1, 1, 3.6)
    panel = axes[0, 0]
    points: list[tuple[float, float, str]] = []
    for row in rows:
        expected, got = number(row["× by the model"]), number(row["× naive"])
        if expected and got and row["rung"] not in ("k01", "k02", "k18") and row["rung"].startswith("k"):
            points.append((expected, got, row["rung"]))
    panel.loglog([1, 200], [1, 200], color=GRID, linewidth=1.2, base=10)
    panel.text(12, 14, "as expected", fontsize=7.5, color="0.4", rotation=24, rotation_mode="anchor", ha="right")
    for x, y, _ in points:
        panel.plot(x, y, "o", color=ORANGE if y < 0.5 * x else BLUE, markersize=5)
    for x, y, names in _neighbours(points):
        panel.annotate(names, (x, y), xytext=(5, -3), textcoords="offset points", fontsize=7.5)
    panel.set_xlabel("times k02, by the model: 1000 cycles per global read, 10 per shared read")
    panel.set_ylabel("times k02, measured")
    plain(panel, "float32; orange: less than half of what the model expects")
    return figure


def _neighbours(points: list[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """The points, those within a tenth of each other as one with all their names."""
    found: list[tuple[float, float, str]] = []
    for x, y, name in points:
        for k, (x0, y0, names) in enumerate(found):
            if abs(x / x0 - 1) < 0.1 and abs(y / y0 - 1) < 0.1:
                found[k] = max(x, x0), (y + y0) / 2, f"{names}, {name}"
                break
        else:
            found.append((x, y, name))
    return found


def speed() -> Figure:
    """Interactions per second against N of the GPU's engines and the cpu engine in float32, and what two old cards did."""
    rows = [row for row in tables("forces", "bench")[0] if row["precision"] == "float32"]
    sizes = [heading for heading in rows[0] if re.fullmatch(r"N = \d+", heading)]
    figure, axes = panels(1, 1, 4.2)
    panel = axes[0, 0]
    ends = []
    for k, row in enumerate(row for row in rows if row["engine"].startswith(("gpu", "cpu", "matrix"))):
        points = sorted((int(heading[4:]), value) for heading in sizes if (value := number(row[heading])))
        colour, style = SERIES[k % len(SERIES)], "o-" if k < len(SERIES) else "s--"
        panel.loglog(*zip(*points, strict=True), style, color=colour, markersize=3.5, linewidth=1.4)
        ends.append((points[-1][1], row["engine"].split(" (exp")[0], colour))
    for marker, (engine, name) in zip("v^", OF_THE_LECTURE.items(), strict=True):
        took = {n: seconds for (kernel, n), (seconds, _) in K40C.items() if kernel == engine}
        panel.plot(list(took), [LECTURE_STEPS * n * n / s for n, s in took.items()], marker, color=INK, label=name)
    panel.plot(16384, 10e9, "*", color=INK, markersize=9, label="8800 GTX, Nyland et al. 2007")
    height = 0.0
    for value, name, colour in sorted(ends):
        height = max(height * 1.27, value)
        panel.annotate(name, (1.02, height), xycoords=("axes fraction", "data"), fontsize=8, color=colour, va="center")
    panel.set_xlabel("N")
    panel.set_ylabel("interactions per second")
    panel.legend(frameon=False, fontsize=7.5, loc="upper left")
    plain(panel, "float32")
    return figure
