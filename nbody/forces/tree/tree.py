"""A tree over bodies on the CPU: built once, it gives accelerations and potentials of its bodies or at any points.

tree = Tree(position, mass, Gravity(G=1.0), accuracy=1e-4)
tree.accelerations()            # of the bodies, (N, 3)
tree.potential(at=points)       # (M,)
"""

import math
from functools import cached_property, partial
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from numba import get_num_threads

from nbody.forces.direct.cpu import mark_coincident
from nbody.forces.tree.bodies import Bodies
from nbody.forces.tree.box import root_box
from nbody.forces.tree.criterion import rules_for
from nbody.forces.tree.descent import descend_for
from nbody.forces.tree.domain import Domain, domain_for
from nbody.forces.tree.options import PER_BODY, Settings, TreeOptions, settings
from nbody.forces.tree.order import put
from nbody.forces.tree.pieces import Variant
from nbody.forces.tree.room import Result, Room, Side
from nbody.forces.tree.units import NEAREST, units_for
from nbody.forces.tree.upward import ALONE
from nbody.forces.tree.workers import one_thread_for_few, run
from nbody.law import LAWS, Gravity
from nbody.parallel import ALONE as ONE_RANK
from nbody.parallel import Team
from nbody.parallel.shares import worth_dividing

WORKERS_PER_RANK = 16
"""Threads for which the targets are divided if there are several ranks, which must all divide them in the same way."""

FEW = 8
"""Leaves with at most this number of bodies take part in direct sums rather than in M2P, which costs more."""

FIRST_ROOM = 1 << 15
"""The room for lists at first; it grows until every list fits."""


class Work(NamedTuple):
    """What an evaluation computed: M2L, M2P on bodies, P2P pairs, and tests of the criterion."""

    cells: int
    multipoles: int
    pairs: int
    tests: int

    @property
    def interactions(self) -> int:
        """All but the tests."""
        return self.cells + self.multipoles + self.pairs


class Tree:
    """A tree over bodies.

    Args:
        position: (N, D), D 2 or 3.
        mass: (N,), zero or more. Bodies without mass are targets only.
        gravity: the law, with one softening length.
        precision: ``float32`` or ``float64``.
        options: accuracy and what follows from it.
        workers: threads; 0 for all.
        team: ranks that have the same bodies, and divide their fields among them.
        costs: those of an earlier tree of the same bodies.

    Attributes:
        work: what the last evaluation computed.
        costs: (N,) if ranks divide the tree, what the last evaluation of all bodies took for those of this rank.

    Raises:
        InputError: the precision cannot give the accuracy.
    """

    def __init__(
        self, position: np.ndarray, mass: np.ndarray, gravity: Gravity, precision: str = "float64",
        options: TreeOptions | None = None, workers: int = 0, team: Team = ONE_RANK, costs: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self.gravity, self.precision = gravity, precision
        self.settings: Settings = settings(options or TreeOptions(), precision)
        self.real = np.float32 if precision == "float32" else np.float64
        self.position = np.array(position, self.real, order="C")
        self.mass = np.array(mass, self.real)
        with one_thread_for_few(len(self.mass)):
            self.box, bulk = root_box(self.position)
        self.units = units_for(bulk, float(self.mass.max(initial=0.0)), gravity.G)
        self.work = Work(0, 0, 0, 0)
        self._workers, self._team = workers or get_num_threads(), team
        self._room = FIRST_ROOM
        self._own_scale: np.ndarray | None = None
        self._domain = domain_for(self.position, self.mass, self.box, self.units, self.settings, team, costs)
        self.costs = costs if self._domain else None

    @cached_property
    def bodies(self) -> Bodies:
        """All bodies, in one process, and their cells."""
        return Bodies.all(self.position, self.mass, self.box, self.units, self.settings.leaf)

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
        mark_coincident(found, self.gravity, self.units.factors, NEAREST[self.precision], asked)
        return phi[asked]

    def scale(self, at: np.ndarray | None = None) -> np.ndarray | None:
        """|a| of bodies or points in the kernel's units, from a geometric criterion; None if that is all a user wants."""
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
            active: (N,) bool, the bodies that are wanted; None for all. The rows of others are zero.
        """
        law = LAWS.load(self.gravity.softening).name
        variant = Variant(self.settings.order, self.position.shape[1], law, self.precision, potential)
        if at is None and self._domain is not None:
            return self._over_domains(self._domain, variant, scale, active)
        ones = np.ones(len(self.position), self.real)
        sources = self.bodies.side(variant, ones if scale is None or at is not None else scale)
        bodies, targets = self.bodies, sources
        if at is not None:
            points = np.array(at, self.real, order="C")
            bodies = Bodies.all(points, np.zeros(len(points), self.real), self.box, self.units, self.settings.leaf)
            targets = bodies.side(variant, np.ones(len(points), self.real) if scale is None else scale)
        order = bodies.order.order
        counted = np.zeros(0, np.int64)
        if active is not None:
            counted = np.concatenate(([0], np.cumsum(active[order])))
        result = Result(order, counted, np.zeros((len(order), 4), self.real), np.zeros(0, np.float32))
        error = self._error(scale, at is None and active is None)
        wanted = len(order) if active is None else int(counted[-1])
        team = worth_dividing(self._team, wanted * PER_BODY) if at is None else ONE_RANK
        workers = self._workers if team.size == 1 else WORKERS_PER_RANK * team.size
        tasks = bodies.tasks(self.settings.group, workers)
        self._descend(variant, sources, targets, tasks[team.rank :: team.size], at is None, error, result)
        if team.size > 1:
            self._gather(team, tasks, result)
        return result.field

    def _error(self, scale: np.ndarray | None, all_bodies: bool) -> float:
        """The criterion's relative error; infinite for a geometric one."""
        return math.inf if scale is None else self.settings.error * (1.0 if all_bodies else ALONE)

    def _over_domains(
        self, domain: Domain, variant: Variant, scale: np.ndarray | None, active: np.ndarray | None
    ) -> np.ndarray:
        """The field of the bodies, see :meth:`field`. Each rank computes it for its domain and receives the rest."""
        error = self._error(scale, active is None)
        criterion = partial(rules_for, self.gravity, self.units, self.settings.theta, error)
        side, above = domain.side(variant, np.ones(len(self.mass), self.real) if scale is None else scale, criterion)
        order, counted = domain.own.order.order, np.zeros(0, np.int64)
        if active is not None:
            # Cells of the trunk extend beyond the bodies of this rank. What is counted there exceeds all that is counted
            # here, so that a descent never leaves out such a cell.
            counted = np.full(len(order) + len(self.mass) + 1, len(order) + 1)
            counted[: len(order) + 1] = np.concatenate(([0], np.cumsum(active[order])))
        costs = np.zeros(len(order) if active is None else 0, np.float32)
        result = Result(domain.places, counted, np.zeros((len(order), 4), self.real), costs)
        tasks = domain.own.tasks(self.settings.group, self._workers) + above
        complete = self._descend(variant, side, side, tasks, True, error, result)
        gathered = self._team.all((complete, tuple(self.work)), soon=True)
        if not all(complete for complete, _ in gathered):  # the margins of `essential` were too small for these bodies
            self._domain = self.costs = None
            return self.field(variant.potential, scale, active=active)
        self.work = Work(*(sum(work[k] for _, work in gathered) for k in range(4)))
        if active is None:
            self.costs = np.zeros(len(self.mass), np.float32)
            put(costs[:, None], order, self.costs[:, None])
            return self._gathered(domain.rows, result.field)
        return self._gathered(domain.rows[active[domain.rows]], result.field[active[domain.rows]])

    def _gathered(self, rows: np.ndarray, field: np.ndarray) -> np.ndarray:
        """The fields that all ranks have computed, (N, 4); this rank has computed ``field`` (n, 4), of the bodies ``rows``
        (n,). The rows of other bodies are zero."""
        counts = self._team.all(len(rows), soon=True)
        bounds = np.cumsum([0, *counts]).tolist()
        own = slice(*bounds[self._team.rank : self._team.rank + 2])
        all_rows, fields = np.empty(bounds[-1], np.uint32), np.empty((bounds[-1], 4), self.real)
        all_rows[own], fields[own] = rows, field
        self._team.gather_rows(all_rows, bounds)
        self._team.gather_rows(fields, bounds)
        complete = np.zeros((len(self.mass), 4), self.real)
        put(fields, all_rows, complete)
        return complete

    def _gather(self, team: Team, tasks: np.ndarray, result: Result) -> None:
        """Complete the field and the counts of what was computed; rank p of P has made the tasks p, p + P, p + 2 P, …
        (Neighbours cost about the same, so that the ranks have about the same work.)"""
        first, count = self.bodies.cells.first.astype(np.int64), self.bodies.cells.count
        parts = []
        for p in range(team.size):
            places = [np.arange(first[cell], first[cell] + count[cell]) for cell in tasks[p :: team.size]]
            found = np.concatenate([np.empty(0, np.int64), *places])
            wanted = result.active[found + 1] > result.active[found] if len(result.active) else slice(None)
            parts.append(result.order[found[wanted]])
        bounds = np.cumsum([0, *map(len, parts)]).tolist()
        rows = np.empty((bounds[-1], 4), result.field.dtype)
        rows[bounds[team.rank] : bounds[team.rank + 1]] = result.field[parts[team.rank]]
        team.gather_rows(rows, bounds)
        result.field[np.concatenate(parts)] = rows
        self.work = Work(*(sum(each) for each in zip(*team.all(tuple(self.work), soon=True), strict=True)))

    def _descend(
        self, variant: Variant, sources: Side, targets: Side, tasks: np.ndarray, same: bool, error: float, result: Result
    ) -> bool:  # fmt: skip
        """Compute the field of the targets of ``tasks``. Returns False if children of a source were not received."""
        descend = descend_for(variant.text())
        rules = rules_for(self.gravity, self.units, self.settings.theta, error, sources.fields.records[0])
        while True:
            room = Room.allocate(variant, max(1, min(self._workers, len(tasks))), self.settings.group, self._room)
            counter = np.zeros(1, np.int64)
            group, last = self.settings.group, len(tasks)
            if run(descend, sources, targets, last, counter, tasks, same, rules, group, FEW, room, result):
                break
            if room.counts[:, 4].any():
                return False
            self._room *= 4
        self.work = Work(*map(int, room.counts.sum(0)[:4]))
        return True


def norms(field: np.ndarray) -> np.ndarray:
    """|a| of rows ax, ay, az, φ."""
    found: np.ndarray = np.sqrt((field[:, :3] ** 2).sum(1))
    return found
