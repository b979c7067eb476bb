"""The number of bodies from which a tree is faster than direct sums, from measured times."""

import math
from itertools import pairwise
from typing import NamedTuple

from nbody.bench.report import Report
from nbody.bench.row import Row, grouped


class Crossing(NamedTuple):
    """A tree, and the number of particles from which it is faster than the fastest direct sums of its device: infinite if
    that is beyond the largest N, 0 if below the smallest; ``measured`` are these two, smallest first."""

    name: str
    precision: str
    particles: float
    measured: tuple[int, int]

    def __str__(self) -> str:
        """A clause about it."""
        if math.isinf(self.particles):
            return f"{self.name} ({self.precision}) above N = {self.measured[1]}"
        at = f"from N = {rounded(self.particles)} on" if self.particles else f"at every N from {self.measured[0]} on"
        return f"{self.name} ({self.precision}) {at}"


def rounded(particles: float) -> int:
    """A number of particles to two digits."""
    return int(float(f"{particles:.2g}"))


def crossings(report: Report) -> list[Crossing]:
    """Where each tree becomes faster than direct sums."""
    trees = [row for row in report.of("trees") if row.seconds and row.particles and row["accuracy"]]
    direct = [row for row in report.of("forces") if row.seconds and row.particles]
    found = []
    for (name, precision), own in grouped(trees, "name", "precision").items():
        sums = [row for row in direct if row.device == own[0].device and row.precision == precision]
        ratios = _ratios(own, sums)
        if ratios:
            ends = (round(math.exp(ratios[0][0])), round(math.exp(ratios[-1][0])))
            found.append(Crossing(name, precision, _crossing(ratios), ends))
    return found


def _ratios(trees: list[Row], direct: list[Row]) -> list[tuple[float, float]]:
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
