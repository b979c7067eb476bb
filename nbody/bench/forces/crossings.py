"""Where trees become faster than direct sums, and the picture that shows it."""

import math
from itertools import pairwise
from typing import NamedTuple

from nbody.bench.columns import grouped
from nbody.bench.forces.rows import ForceRow, TreeRow
from nbody.bench.plot import Line, Panel, Picture
from nbody.bench.report import Report


class Crossing(NamedTuple):
    """A tree, and the number of particles from which it is faster than the fastest direct sums of its device: infinite if
    that is beyond the largest N, 0 if below the smallest; ``measured`` are these two, smallest first."""

    name: str
    precision: str
    particles: float
    measured: tuple[int, int]

    @property
    def rounded(self) -> int:
        """The number of particles to two digits."""
        return int(float(f"{self.particles:.2g}"))

    def __str__(self) -> str:
        """A clause about it."""
        if math.isinf(self.particles):
            return f"{self.name} ({self.precision}) above N = {self.measured[1]}"
        at = f"from N = {self.rounded} on" if self.particles else f"at every N from {self.measured[0]} on"
        return f"{self.name} ({self.precision}) {at}"


def crossings(report: Report) -> list[Crossing]:
    """Where each tree becomes faster than direct sums."""
    trees = [row for row in report.of(TreeRow) if row.seconds and row.count and row.accuracy]
    direct = [row for row in report.of(ForceRow) if row.seconds and row.count]
    found = []
    for (name, precision), own in grouped(trees, "name", "precision").items():
        sums = [row for row in direct if row.device == own[0].device and row.precision == precision]
        if ratios := _ratios(own, sums):
            ends = (round(math.exp(ratios[0][0])), round(math.exp(ratios[-1][0])))
            found.append(Crossing(name, precision, _crossing(ratios), ends))
    return found


def _ratios(trees: list[TreeRow], direct: list[ForceRow]) -> list[tuple[float, float]]:
    """Logarithms of N, and of the ratio of the direct sums' time to the tree's; direct sums beyond the last N that was
    measured take a time that grows like N²."""
    ratios = []
    for tree in sorted(trees, key=lambda row: row.count):
        below = [row for row in direct if row.count <= tree.count]
        if below:
            last = max(row.count for row in below)
            seconds = min(row.seconds or math.inf for row in below if row.count == last)
            longer = seconds * (tree.count / last) ** 2 / (tree.seconds or math.inf)
            ratios.append((math.log(tree.count), math.log(longer)))
    return ratios


def _crossing(ratios: list[tuple[float, float]]) -> float:
    """The N where the ratio of the two times is 1, on lines between the logarithms."""
    for (x, before), (y, after) in pairwise(ratios):
        if before < 0 <= after:
            return math.exp(x + (y - x) * before / (before - after))
    return math.inf if ratios[-1][1] < 0 else 0.0


def picture(report: Report) -> Picture:
    """Seconds per force evaluation against N, where trees overtake direct sums, and the errors of both."""
    rows = [row for row in (*report.of(ForceRow), *report.of(TreeRow)) if row.seconds]
    largest = max((row.count for row in rows), default=1)
    times, errors = [], []
    for key, own in grouped(rows, "precision", "name").items():
        label, last, x = f"{key[1]}, {key[0]}", own[-1], [row.count for row in own]
        times.append(Line(label, x, [row.seconds or 0 for row in own]))
        errors.append(Line(label, x, [row.error_median or 0 for row in own]))
        errors.append(Line(label, x, [row.error_99 or 0 for row in own], dotted=True))
        if type(last) is ForceRow and last.seconds and last.count < largest:
            beyond = [last.seconds, last.seconds * (largest / last.count) ** 2]
            times.append(Line(label, [last.count, largest], beyond, dotted=True))
    marks = [(f"{at.name}: {at.rounded}", at.particles) for at in crossings(report) if 0 < at.particles < math.inf]
    what = "N, number of particles"
    panels = [
        Panel("seconds per force evaluation (dotted: as N²)", what, "seconds", times, marks=marks),
        Panel("relative error: median (dotted: 99 %)", what, "relative error", errors),
    ]
    return Picture(f"Direct sums and trees, 3-D, softened: {report.device}", panels)
