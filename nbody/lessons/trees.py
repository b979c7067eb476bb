"""Figures of the tree: the curve and its cells, what one leaf sees, and what opening cells costs and gains."""

import time
from typing import Any

import numpy as np

from nbody import machine
from nbody.lessons.style import BLUE, GREEN, GRID, INK, ORANGE, PALE, VIOLET, bare, box, panels, plain

BODIES, LEAF, THETA = 120, 4, 0.6
"""Of the picture of the curve."""

COUNT, THETAS, ACCURACIES = 100_000, (0.3, 0.4, 0.5, 0.6, 0.7, 0.8), (1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5)
"""Of the measurement of errors."""

DIRECT, TREE = [1 << k for k in range(10, 17)], [1 << k for k in range(11, 18)]
"""The numbers of bodies in the measurement of times."""


def plane() -> tuple[np.ndarray, Any, np.ndarray]:
    """Bodies in a plane in the order of their keys (N, 2), the cells, and the squares of these: corner and side (K, 3)."""
    from nbody.forces.tree.kernels_cpu import one_thread_for_few
    from nbody.forces.tree.octree.cells_cpu import cells_of
    from nbody.forces.tree.octree.order_cpu import root_box, sorted_bodies

    random = np.random.default_rng(4)
    angle, radius = random.uniform(0, 2 * np.pi, BODIES), random.gamma(2.0, 0.5, BODIES)
    position = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    with one_thread_for_few(BODIES):
        box, _ = root_box(position)
        keys, order = sorted_bodies(position, box)
        cells = cells_of(keys, LEAF, 2)
    squares = np.empty((len(cells.count), 3))
    squares[0] = box.low[0], box.low[1], box.side
    for cell in range(1, len(cells.count)):
        up = int(cells.parent[cell])
        start, count = int(cells.first[up]), int(cells.count[up])
        differing = int(keys[start]) ^ int(keys[start + count - 1])
        level = 32 - (differing.bit_length() + 1) // 2  # below the highest digit that differs among the parent's bodies
        digits = int(keys[int(cells.first[cell])]) >> 2 * (31 - level)
        corner = [sum((digits >> 2 * k + part & 1) << k for k in range(level)) for part in (1, 0)]
        side = box.side / 2**level
        squares[cell] = box.low[0] + corner[0] * side, box.low[1] + corner[1] * side, side
    return position[order], cells, squares


def morton() -> Any:
    """Bodies joined in the order of their keys, with the leaves; and what acts on one leaf as a whole, or body by body."""
    x, cells, squares = plane()
    figure, axes = panels(1, 2, 3.7)
    left, right = axes[0]
    leaves = np.flatnonzero(cells.children == 0)

    def square(panel: Any, cell: int, colour: str, filled: bool = False) -> None:
        x, y, side = squares[cell]
        box(panel, x, y, side, side, colour if filled else "none", edgecolor=INK if filled else GRID, linewidth=0.6)

    for leaf in map(int, leaves):
        square(left, leaf, GRID)
    left.plot(x[:, 0], x[:, 1], color=BLUE, linewidth=0.8)
    left.plot(x[:, 0], x[:, 1], ".", color=INK, markersize=2.5)
    bare(left, f"{BODIES} bodies in the order of their keys")

    target = int(leaves[np.argmin(np.linalg.norm(squares[leaves, :2] + squares[leaves, 2:] / 2 - (1.0, 0.5), axis=1))])
    accepted, near = seen_from(target, x, cells)
    for cell in accepted:
        square(right, cell, PALE, filled=True)
    for cell in near:
        square(right, cell, "#fbe3c4", filled=True)
    square(right, target, ORANGE, filled=True)
    right.plot(x[:, 0], x[:, 1], ".", color=INK, markersize=2.5)
    bodies = int(cells.count[near].sum())
    bare(right, f"on the orange leaf act {len(accepted)} cells, {bodies} bodies")
    for panel in (left, right):
        panel.set_aspect("equal")
        panel.set_xlim(squares[0, 0], squares[0, 0] + squares[0, 2])
        panel.set_ylim(squares[0, 1], squares[0, 1] + squares[0, 2])
    return figure


def seen_from(target: int, x: np.ndarray, cells: Any) -> tuple[list[int], list[int]]:
    """The cells that act on a leaf as a whole, (r + R)/d < θ, and the leaves whose bodies act one by one."""

    def ball(cell: int) -> tuple[np.ndarray, float]:
        own = x[int(cells.first[cell]) :][: int(cells.count[cell])]
        return own.mean(axis=0), float(np.linalg.norm(own - own.mean(axis=0), axis=1).max())

    centre, size = ball(target)
    accepted: list[int] = []
    near: list[int] = []
    waiting = [0]
    while waiting:
        cell = waiting.pop()
        other, radius = ball(cell)
        if size + radius < THETA * np.linalg.norm(other - centre):
            accepted.append(cell)
        elif cells.children[cell]:
            waiting += range(int(cells.child[cell]), int(cells.child[cell]) + int(cells.children[cell]))
        else:
            near.append(cell)
    return accepted, near


def opening() -> Any:
    """Errors against the time of an evaluation, by an angle and by an estimate; and times against N, beside direct sums."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import NullFormatter

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
    errors.set_xticks([0.1, 0.2, 0.4], ["0.1", "0.2", "0.4"])
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


def sphere(count: int) -> Any:
    """Plummer's sphere."""
    from nbody.initial import make_particles
    from nbody.scenario import Scenario

    return make_particles(Scenario.load("plummer").override(particles=count))


def seconds(name: str, bodies: Any, **options: float) -> float:
    """The CPU time of an evaluation by an engine on one core, which other programs hardly change."""
    import numba

    from nbody.forces.timing import seconds_on_cpu

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        return seconds_on_cpu(engine_of(name, options), bodies, time.process_time)
    finally:
        numba.set_num_threads(before)


def engine_of(name: str, options: dict[str, float]) -> Any:
    """An engine in float32 with Plummer's softening."""
    from nbody.forces import ENGINES
    from nbody.forces.timing import GRAVITY

    kind = ENGINES.load(name)
    return kind(GRAVITY, "float32", kind.Options(**options))


def measured(options: dict[str, float]) -> tuple[float, float, float]:
    """Seconds of an evaluation by the ``cpu-tree`` engine, and the median and the 99 % error of 1000 bodies."""
    from nbody.forces.reference import direct_sums

    bodies, engine = sphere(COUNT), engine_of("cpu-tree", options)
    state = engine.load(bodies)
    engine.evaluate(state)
    state.invalidate()
    engine.evaluate(state)  # with the size of the forces known, as in each step of a run
    rows = np.sort(np.random.default_rng(1).choice(COUNT, 1000, replace=False))
    exact = direct_sums(bodies.position, bodies.mass, engine.gravity, rows)
    error = np.linalg.norm(state.values("acceleration")[0][rows] - exact, axis=1) / np.linalg.norm(exact, axis=1)
    median, most = np.quantile(error, (0.5, 0.99))
    return seconds("cpu-tree", bodies, **options), float(median), float(most)
