"""``barnes-hut``: a tree code to read from top to bottom, and the referee of the fast trees (Barnes & Hut 1986).

A cube around all bodies is divided into eight, and each of these again, until every cell holds one body at most. A cell of
side l at distance d acts as one body in its centre of mass if l/d < θ; otherwise its children are asked. A body is a node
without size, so bodies and cells have one numbering: the bodies first, then the cells, each after its parent.

Nothing here is shared with ``cpu-tree`` and ``gpu-tree``: with their functions the referee would have their mistakes.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.forces.engine import Engine, ForceError, Memory, Targets, rounding_bound
from nbody.forces.problem import Abilities, Problem
from nbody.particles import Particles
from nbody.scenario.values import Group, Positive
from nbody.state import Outputs, State
from nbody.state.host import HostState

NONE = -1
"""No child, and no further body in the same place."""

DEEPEST = 40
"""The most divisions of the root cell: bodies that share a smaller cell are in one place, and form a chain."""


class BarnesHutOptions(Group):
    """The option of ``barnes-hut``.

    Attributes:
        theta: a cell of side l at distance d is one body if l/d < theta. From 0.58 on (1/√3) a body may meet its own cell
            so.
    """

    theta: Annotated[Positive, Field(le=1.0)] = 0.5


@inner
def _octant(place, middle):
    """The child, 0 to 7, that holds a place: a bit per axis, set above the cell's middle."""
    return (place[0] > middle[0]) + 2 * (place[1] > middle[1]) + 4 * (place[2] > middle[2])


@compute.kernel("cpu")
def build(bodies, place, mass, side, child, chain):
    """Insert one body after the other into the root cell, whose middle and side are known; then add up the cells.

    Args:
        bodies: their number N; the rest is (N + K, …), with room for K cells.
        place, mass: of bodies; and, as the result, the centres of mass and masses of cells. That of the root is its middle.
        side: the sides of cells, 0 for a body.
        child: the children of cells, all NONE.
        chain: the next body in the same place, all NONE.

    Returns:
        The number of nodes, or 0 if there are more cells than fit.
    """
    middle, root, nodes = np.empty(3), place[bodies].copy(), bodies + 1
    for i in range(bodies):
        cell = bodies
        middle[:] = root
        half = side[bodies] / 2
        while True:
            k = _octant(place[i], middle)
            half /= 2
            for axis in range(3):
                middle[axis] += half if k >> axis & 1 else -half
            other = child[cell, k]
            if other == NONE or (other < bodies and half <= side[bodies] / 2.0**DEEPEST):
                child[cell, k], chain[i] = i, other
                break
            if other < bodies:  # a body has the place: a new cell divides it
                if nodes == len(mass):
                    return 0
                side[nodes] = 2 * half
                child[nodes, _octant(place[other], middle)] = other
                child[cell, k] = nodes
                nodes += 1
            cell = child[cell, k]
    for cell in range(nodes - 1, bodies - 1, -1):
        place[cell] = 0
        for k in range(8):
            node = child[cell, k]
            while node != NONE:
                mass[cell] += mass[node]
                place[cell] += mass[node] * place[node]
                node = chain[node]
        if mass[cell] > 0:
            place[cell] /= mass[cell]
    return nodes


@compute.kernel("cpu")
def walk(bodies, place, mass, side, child, chain, targets, theta, softening2, nearest2, field):
    """Fill ``field`` (T, 4), ax, ay, az and φ of the bodies ``targets``, for G = 1; returns the number of interactions. The
    law of a pair: u = 1/√(max(r², nearest²) + softening²), a force m u³ d beyond ``nearest``, a potential -m u."""
    waiting, interactions = np.empty(8 * DEEPEST + 8 + bodies, np.int64), 0
    for t in range(len(targets)):
        i = targets[t]
        ax = ay = az = phi = 0.0
        waiting[0], number = bodies, 1
        while number:
            number -= 1
            node = waiting[number]
            dx, dy, dz = place[node, 0] - place[i, 0], place[node, 1] - place[i, 1], place[node, 2] - place[i, 2]
            r2 = dx * dx + dy * dy + dz * dz
            if node < bodies or side[node] ** 2 < theta**2 * r2:
                interactions += 1
                if node != i and mass[node] > 0:
                    u = 1.0 / np.sqrt(max(r2, nearest2) + softening2)
                    w = mass[node] * u**3 if r2 > nearest2 or softening2 > 0 else 0.0
                    ax, ay, az, phi = ax + w * dx, ay + w * dy, az + w * dz, phi - mass[node] * u
            else:
                for k in range(8):
                    node_below = child[node, k]
                    while node_below != NONE:
                        waiting[number] = node_below
                        number += 1
                        node_below = chain[node_below]
        field[t, 0], field[t, 1], field[t, 2], field[t, 3] = ax, ay, az, phi
    return interactions


class BarnesHutEngine(Engine):
    """An octree of monopoles with one opening angle, on one core: a lesson, and a referee. It computes in float64, also
    where the bodies are float32."""

    can = Abilities(compiled=True, targets=True, finest={"float32": 1e-2, "float64": 1e-2}, growth=1)
    Options = BarnesHutOptions  # type: ignore[assignment]
    state_type = HostState

    @classmethod
    def supports(cls, problem: Problem) -> str:
        # The law of a pair is written out in the walk.
        known = problem.gravity.softening in ("plummer", "cutoff", "none")
        return super().supports(problem) or ("" if known else f"it has no softening '{problem.gravity.softening}'")

    def error(self, particles: Particles, targets: Targets = None) -> ForceError:
        """The error of monopoles, which falls like θ²: for the median body of a thin disc 0.04 θ²."""
        square = float(self._options.theta) ** 2  # type: ignore[attr-defined]
        return ForceError(0.04 * square, square + rounding_bound(self.precision, particles.count))

    @classmethod
    def memory(cls, problem: Problem) -> Memory:
        # The state, and two nodes per body.
        return Memory(super().memory(problem).own + 2 * problem.particles * 8 * (3 + 2 + 8 + 1))

    def _compute(self, state: State, outputs: Outputs) -> None:
        self._compute_targets(state, outputs, np.arange(state.count))

    def _compute_targets(self, state: State, outputs: Outputs, targets: Targets) -> None:
        assert isinstance(state, HostState)
        law, theta, field = self.gravity, self._options.theta, np.empty((len(targets), 4))  # type: ignore[attr-defined]
        squares = (law.length2, 0.0) if law.softening == "plummer" else (0.0, law.length2)
        work = walk(state.count, *octree(state.position, state.mass), np.asarray(targets), theta, *squares, field)
        state.acceleration[targets] = law.G * field[:, : state.dimensions]
        state.potential[targets] = law.G * field[:, 3]
        state.progress.report(int(work))


def octree(position: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, ...]:
    """The nodes of bodies (N, D) for :func:`walk`: ``place``, ``mass``, ``side``, ``child`` and ``chain``."""
    count, dimensions = position.shape
    low, high = position.min(0), position.max(0)
    room = 2 * count + DEEPEST
    while True:
        place, masses, side = np.zeros((count + room, 3)), np.zeros(count + room), np.zeros(count + room)
        child, chain = np.full((count + room, 8), NONE), np.full(count + room, NONE)
        place[:count, :dimensions], masses[:count] = position, mass
        place[count, :dimensions], side[count] = (low + high) / 2, (high - low).max() * 1.001
        if build(count, place, masses, side, child, chain):
            return place, masses, side, child, chain
        room *= 4
