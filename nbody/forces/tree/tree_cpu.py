"""A tree over bodies on the CPU: built once, it gives accelerations and potentials of its bodies or at any points.

tree = HostTree(position, mass, Gravity(G=1.0), options=TreeOptions(accuracy=1e-4))
tree.accelerations()            # of the bodies, (N, 3)
tree.potential(at=points)       # (M,)
"""

import math
from functools import cached_property
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from numba import get_num_threads

from nbody.compute.in_kernels.cpu_threads import one_thread_for_few
from nbody.forces.compute_units import NEAREST, ComputeUnits, exponent, mark_coincident
from nbody.forces.direct.cpu_tiles import aligned_zeros
from nbody.forces.tree.criterion import rules_for
from nbody.forces.tree.octree.cells_cpu import Cells, cells_of
from nbody.forces.tree.octree.moments_cpu import ALONE, fields_of
from nbody.forces.tree.octree.order_cpu import PAD, Box, Order, gather, root_box, sorted_bodies
from nbody.forces.tree.options import PER_BODY, Settings, TreeOptions, settings
from nbody.forces.tree.variant_cpu import Variant
from nbody.forces.tree.walk.lists_cpu import Result, TreeView, Walk, WalkMemory
from nbody.forces.tree.walk.walk_cpu import descend_for
from nbody.law import LAWS, Gravity
from nbody.parallel import ALONE as ONE_RANK
from nbody.parallel import Team
from nbody.parallel.segments import worth_dividing

TASKS_PER_WORKER = 32
"""The number of subtrees per thread into which the targets are divided, at least."""

WORKERS_PER_RANK = 16
"""Threads for which the targets are divided if there are several ranks, which must all divide them in the same way."""

UNIT = 4
"""The bulk of the bodies is in a ball of 2 to this power kernel units, nearly."""

FEW = 8
"""Leaves with at most this number of bodies take part in direct sums rather than in M2P, which costs more."""

FIRST_CAPACITY = 1 << 15
"""The capacity of lists at first; it grows until every list fits."""


class TreeWork(NamedTuple):
    """What an evaluation computed: M2L, M2P on bodies, P2P pairs, and tests of the criterion."""

    cells: int
    multipoles: int
    pairs: int
    tests: int

    @property
    def interactions(self) -> int:
        """All but the tests."""
        return self.cells + self.multipoles + self.pairs


class SortedBodies:
    """Bodies in Morton order and their cells: the sources and the targets of a tree.

    Args:
        position: (N, D) in the precision of the kernel.
        mass: (N,) the same; zeros for points that are no bodies.
        box: the root cell.
        units: the kernel's units.
        leaf: cells with more bodies are divided.
    """

    def __init__(self, position: np.ndarray, mass: np.ndarray, box: Box, units: ComputeUnits, leaf: int) -> None:
        with one_thread_for_few(len(mass)):
            self.order: Order = sorted_bodies(position, box)
            self.bodies = aligned_zeros((4, len(mass) + PAD), position.dtype)
            factors = position.dtype.type(units.position), mass.dtype.type(units.mass)
            gather(position, mass, self.order.order, *factors, self.bodies)
            self.cells: Cells = cells_of(self.order.keys, leaf, position.shape[1])

    def view(self, variant: Variant, scale: np.ndarray) -> TreeView:
        """The tree for kernels; ``scale`` (N,) is |a| of all bodies in the kernel's units."""
        with one_thread_for_few(len(self.order.order)):
            fields = fields_of(variant, self.cells, self.bodies, self.order.order, scale)
            return TreeView(self.bodies, self.cells, fields)

    def tasks(self, group: int, workers: int) -> np.ndarray:
        """The highest cells with not too many bodies, in order: the root for one worker, some hundred for two."""
        count, bodies = self.cells.count, len(self.order.order)
        most = max(group, bodies // TASKS_PER_WORKER // workers) if workers > 1 else bodies
        above = count[self.cells.parent] > most
        above[0] = True
        chosen = np.flatnonzero(above & ((count <= most) | (self.cells.children == 0)))
        return chosen[np.argsort(self.cells.first[chosen], kind="stable")].astype(np.int64)


class HostTree:
    """A tree over bodies.

    Args:
        position: (N, D), D 2 or 3.
        mass: (N,), zero or more. Bodies without mass are targets only.
        gravity: the law, with one softening length.
        precision: ``float32`` or ``float64``.
        options: accuracy and what follows from it.
        workers: threads; 0 for all.
        team: ranks that have the same bodies, and divide the targets among them.

    Attributes:
        work: what the last evaluation computed.

    Raises:
        InputError: the precision cannot give the accuracy.
    """

    def __init__(
        self, position: np.ndarray, mass: np.ndarray, gravity: Gravity, precision: str = "float64",
        options: TreeOptions | None = None, workers: int = 0, team: Team = ONE_RANK,
    ) -> None:  # fmt: skip
        self.gravity, self.precision = gravity, precision
        self.settings: Settings = settings(options or TreeOptions())
        self.real = np.float32 if precision == "float32" else np.float64
        self.position = np.array(position, self.real, order="C")
        self.mass = np.array(mass, self.real)
        with one_thread_for_few(len(self.mass)):
            self.box, bulk = root_box(self.position)
        self.units = ComputeUnits.of(exponent(bulk) - UNIT, exponent(self.mass), gravity.G)
        self.work = TreeWork(0, 0, 0, 0)
        self._workers, self._team = workers or get_num_threads(), team
        self._capacity = FIRST_CAPACITY
        self._own_scale: np.ndarray | None = None

    @cached_property
    def bodies(self) -> SortedBodies:
        """All bodies and their cells."""
        return SortedBodies(self.position, self.mass, self.box, self.units, self.settings.leaf)

    def accelerations(self, at: np.ndarray | None = None) -> np.ndarray:
        """Accelerations (M, D) of the bodies, or at points (M, D) that are no bodies."""
        field = self.field(False, self.scale(at), at)
        return field[:, : self.position.shape[1]] * self.real(self.units.acceleration)

    def potential(self, at: np.ndarray | None = None) -> np.ndarray:
        """The potential per unit mass (M,) of the bodies, without themselves, or at points (M, D). Without softening it is
        minus infinity in the place of a body with mass, other than itself."""
        phi = self.field(True, self.scale(at), at)[:, 3] * self.real(self.units.potential)
        x, m, asked = self.position, self.mass, slice(None)
        if at is not None:
            x, m = np.concatenate([x, np.array(at, self.real)]), np.append(m, np.zeros(len(at), self.real))
            phi, asked = np.append(np.zeros_like(self.mass), phi), slice(len(self.mass), None)
        found = SimpleNamespace(position=x, mass=m, potential=phi)
        mark_coincident(found, self.gravity, self.units, NEAREST[self.precision], asked)
        return phi[asked]

    def scale(self, at: np.ndarray | None = None) -> np.ndarray | None:
        """|a| of bodies or points in the kernel's units, from a geometric criterion; None if the user asks for no other."""
        if self.settings.theta is not None:
            return None
        if at is not None:
            return norms(self.field(False, None, at))
        if self._own_scale is None:
            self._own_scale = norms(self.field(False, None))
        return self._own_scale

    def field(
        self, potential: bool, scale: np.ndarray | None, at: np.ndarray | None = None, active: np.ndarray | None = None
    ) -> np.ndarray:
        """(M, 4) ax, ay, az, φ in the kernel's units: accelerations, or if ``potential`` the potential instead.

        Args:
            scale: (M,) |a| of the targets in the kernel's units; None for a geometric criterion.
            at: (M, D) points; None for the bodies.
            active: (N,) bool, the requested bodies; None for all. The rows of others are zero.
        """
        law = LAWS.load(self.gravity.softening).name
        variant = Variant(self.settings.order, self.position.shape[1], law, self.precision, potential)
        ones = np.ones(len(self.position), self.real)
        sources = self.bodies.view(variant, ones if scale is None or at is not None else scale)
        bodies, targets = self.bodies, sources
        if at is not None:
            points = np.array(at, self.real, order="C")
            bodies = SortedBodies(points, np.zeros(len(points), self.real), self.box, self.units, self.settings.leaf)
            targets = bodies.view(variant, np.ones(len(points), self.real) if scale is None else scale)
        order = bodies.order.order
        counted = np.zeros(0, np.int64)
        if active is not None:
            counted = np.concatenate(([0], np.cumsum(active[order])))
        result = Result(order, counted, np.zeros((len(order), 4), self.real))
        error = self._error(scale, at is None and active is None)
        requested = len(order) if active is None else int(counted[-1])
        team = worth_dividing(self._team, requested * PER_BODY) if at is None else ONE_RANK
        workers = self._workers if team.size == 1 else WORKERS_PER_RANK * team.size
        tasks = bodies.tasks(self.settings.group, workers)
        self._descend(variant, sources, targets, tasks[team.rank :: team.size], at is None, error, result)
        if team.size > 1:
            self._gather(team, tasks, result)
        return result.field

    def _error(self, scale: np.ndarray | None, all_bodies: bool) -> float:
        """The criterion's relative error; infinite for a geometric one."""
        return math.inf if scale is None else self.settings.error * (1.0 if all_bodies else ALONE)

    def _gather(self, team: Team, tasks: np.ndarray, result: Result) -> None:
        """Complete the field and the counts of what was computed; rank p of P has made the tasks p, p + P, p + 2 P, …
        (Neighbours cost about the same, so that the ranks have about the same work.)"""
        first, count = self.bodies.cells.first.astype(np.int64), self.bodies.cells.count
        parts = []
        for p in range(team.size):
            places = [np.arange(first[cell], first[cell] + count[cell]) for cell in tasks[p :: team.size]]
            found = np.concatenate([np.empty(0, np.int64), *places])
            requested = result.active[found + 1] > result.active[found] if len(result.active) else slice(None)
            parts.append(result.order[found[requested]])
        bounds = np.cumsum([0, *map(len, parts)]).tolist()
        rows = np.empty((bounds[-1], 4), result.field.dtype)
        rows[bounds[team.rank] : bounds[team.rank + 1]] = result.field[parts[team.rank]]
        team.gather_rows(rows, bounds)
        result.field[np.concatenate(parts)] = rows
        of_ranks = team.allgather(tuple(self.work), short_timeout=True)
        self.work = TreeWork(*(sum(each) for each in zip(*of_ranks, strict=True)))

    def _descend(
        self, variant: Variant, sources: TreeView, targets: TreeView, tasks: np.ndarray, same: bool, error: float,
        result: Result,
    ) -> None:  # fmt: skip
        """Compute the field of the targets of ``tasks``."""
        descend, group = descend_for(variant._replace(potential=False)), self.settings.group
        rules = rules_for(self.gravity, self.units, self.settings.theta, error, sources.fields.records[0])
        walk = Walk(sources, targets, variant.potential, same, rules, group, FEW, result)
        while True:
            workers = max(1, min(self._workers, len(tasks)))
            memory = WalkMemory.allocate(variant._replace(potential=True), workers, group, self._capacity)
            descend(walk, memory, tasks, np.zeros(1, np.int64))
            if not memory.counts[:, 4].any():
                break
            self._capacity *= 4
        self.work = TreeWork(*map(int, memory.counts.sum(0)[:4]))


def norms(field: np.ndarray) -> np.ndarray:
    """|a| of rows ax, ay, az, φ."""
    found: np.ndarray = np.sqrt((field[:, :3] ** 2).sum(1))
    return found
