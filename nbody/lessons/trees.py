"""Figures of trees: the curve and its cells, what acts on one body, and what opening cells costs and gains."""

import time

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from nbody import machine
from nbody.bench.forces.problems import ForceProblem, Judge
from nbody.compute.in_kernels.cpu_threads import threads
from nbody.figures import BLUE, GREEN, GRID, INK, ORANGE, VIOLET, plain
from nbody.forces import ENGINES
from nbody.forces.engine import Engine
from nbody.forces.timing import GRAVITY, seconds_on_cpu
from nbody.forces.tree.barnes_hut import NONE, octree
from nbody.initial import make_particles
from nbody.lessons.style import PALE, bare, box, panels
from nbody.particles import Particles
from nbody.scenario import Scenario

BODIES, THETA = 120, 0.6
"""Of the picture of the curve."""

COUNT, THETAS, ACCURACIES = 100_000, (0.3, 0.4, 0.5, 0.6, 0.7, 0.8), (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5)
"""Of the measurement of errors."""

DIRECT, TREE = [1 << k for k in range(10, 17)], [1 << k for k in range(11, 18)]
"""The numbers of bodies in the measurement of times."""


def squares(x: np.ndarray, size: float, child: np.ndarray) -> dict[int, tuple[float, float, float, float]]:
    """The nodes of a tree of bodies in a plane (N, 2), depth first, with their squares: corner, width and height."""
    found: dict[int, tuple[float, float, float, float]] = {}

    def visit(node: int, left: float, bottom: float, width: float) -> None:
        found[node] = left, bottom, width, width
        half = width / 2
        for k in np.flatnonzero(child[node] != NONE):
            visit(int(child[node, k]), left + half * (k & 1), bottom + half * (k >> 1 & 1), half)

    left, bottom = (x.min(0) + x.max(0) - size) / 2
    visit(len(x), left, bottom, size)
    return found


def acting(target: int, tree: tuple[np.ndarray, ...], theta: float, node: int) -> list[int]:
    """The cells that act on a body as a whole, and bodies, of those in a node of an octree: the rule of ``barnes-hut``."""
    centre_of_mass, _, width, child, _ = tree
    if width[node] < theta * np.linalg.norm(centre_of_mass[node] - centre_of_mass[target]):
        return [node]
    return [each for k in child[node] if k not in (NONE, target) for each in acting(target, tree, theta, int(k))]


def morton() -> Figure:
    """Bodies joined in the depth-first order of ``barnes-hut``'s tree, that of Morton keys; and the cells and bodies
    that act on one."""
    random = np.random.default_rng(4)
    angle, radius = random.uniform(0, 2 * np.pi, BODIES), random.gamma(2.0, 0.5, BODIES)
    x = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    tree = octree(x, np.ones(BODIES))
    _, _, width, child, _ = tree
    square = squares(x, width[BODIES], child)
    order = [node for node in square if node < BODIES]
    target = int(np.argmin(np.linalg.norm(x - (1.0, 0.5), axis=1)))
    acts = acting(target, tree, THETA, BODIES)
    figure, axes = panels(1, 2, 3.7)
    left, right = axes[0]
    for node in order:
        box(left, *square[node], "none", edge=GRID)
    left.plot(*x[order].T, color=BLUE, linewidth=0.8)
    for node in [*acts, target]:
        colour = ORANGE if node == target else "#fbe3c4" if node < BODIES else PALE
        box(right, *square[node], colour, edge=INK)
    for panel in (left, right):
        panel.plot(*x.T, ".", color=INK, markersize=2.5)
        panel.set_aspect("equal")
        for limits, low in zip((panel.set_xlim, panel.set_ylim), square[BODIES], strict=False):
            limits(low, low + width[BODIES])
    bare(left, f"{BODIES} bodies in the order of their keys")
    cells = sum(node >= BODIES for node in acts)
    bare(right, f"on the orange body act {cells} cells, {len(acts) - cells} bodies")
    return figure


def opening() -> Figure:
    """Errors against the time of an evaluation, by an angle and by an estimate; and times against N, beside direct sums."""
    figure, axes = panels(1, 2, 3.3)
    errors, times = axes[0]
    ways: tuple[tuple[str, str, list[dict[str, float]]], ...] = (
        ("by an angle θ", ORANGE, [{"theta": theta, "order": 4} for theta in THETAS]),
        ("by the estimated error", BLUE, [{"accuracy": accuracy} for accuracy in ACCURACIES]),
    )
    handles = []
    for name, colour, options in ways:
        took, median, most = np.array([measured(each) for each in options]).T
        errors.loglog(took, median, "o-", color=colour, markersize=3)
        errors.loglog(took, most, "o--", color=colour, markersize=3, markerfacecolor="white")
        handles.append(Line2D([], [], color=colour, label=name))
    handles += [Line2D([], [], color=INK, label="median"), Line2D([], [], color=INK, linestyle="--", label="99 %")]
    errors.legend(handles=handles, frameon=False, fontsize=7.5)
    errors.set_xlabel("seconds per evaluation")
    errors.xaxis.set_major_locator(LogLocator(subs=(1, 2, 4)))
    errors.xaxis.set_major_formatter("{x:g}")
    errors.xaxis.set_minor_formatter(NullFormatter())
    errors.set_ylabel("relative error of the force")
    plain(errors, f"what opening cells costs, N = {COUNT}")

    direct = [seconds("cpu", sphere(count)) for count in DIRECT]
    times.loglog(DIRECT, direct, "o-", color=INK, markersize=3, label="direct sums")
    for accuracy, colour in ((1e-2, GREEN), (1e-3, BLUE), (1e-5, VIOLET)):
        found = [seconds("cpu-tree", sphere(count), accuracy=accuracy) for count in TREE]
        times.loglog(TREE, found, "o-", color=colour, markersize=3, label=f"tree, {accuracy:g}")
    times.legend(frameon=False, fontsize=7.5)
    times.set_xlabel("N")
    times.set_ylabel("seconds per evaluation")
    plain(times, f"one core, {machine.cpu_name()}, float32")
    return figure


def sphere(count: int) -> Particles:
    """Plummer's sphere."""
    return make_particles(Scenario.load("plummer").override(particles=count))


def engine_of(name: str, options: dict[str, float]) -> Engine:
    """An engine in float32 with Plummer's softening."""
    kind = ENGINES.load(name)
    return kind(GRAVITY, "float32", kind.Options(**options))


def seconds(name: str, bodies: Particles, **options: float) -> float:
    """The CPU time of an evaluation by an engine on one core, which other programs hardly change."""
    with threads(1):
        return seconds_on_cpu(engine_of(name, options), bodies, time.process_time)


def measured(options: dict[str, float]) -> tuple[float, float, float]:
    """Seconds of an evaluation by the ``cpu-tree`` engine, and its median and 99 % error."""
    bodies, engine = sphere(COUNT), engine_of("cpu-tree", options)
    state = engine.load(bodies)
    for _ in range(2):  # the second one knows the size of the forces, as in each step of a run
        state.invalidate()
        engine.evaluate(state)
    error = Judge(ForceProblem(bodies, GRAVITY)).error(state.values("acceleration")[0])
    return seconds("cpu-tree", bodies, **options), error.median, error.percentile_99
