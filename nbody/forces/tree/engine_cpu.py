"""The ``cpu-tree`` engine: forces to an accuracy that the user names, in a time that grows like N.

Bodies far away act together. An octree divides the bodies into cells; the moments of a cell act on another cell as a whole,
and only bodies of neighbouring cells are summed over one by one. A pair of cells is accepted if the estimated error of the
acceleration is a small fraction of |a| itself, which is known from the evaluation before (Dehnen 2002, 2014). Ranks divide
the targets.
"""

from typing import Any

import numpy as np

from nbody.compute.compiling.cpu_inner import inner, kernel
from nbody.compute.in_kernels.cpu_threads import for_each, one_thread_for_few
from nbody.forces.compute_units import NEAREST, mark_coincident
from nbody.forces.engine import Engine, ForceError, Identity, Memory, Targets, rounding_bound
from nbody.forces.problem import Abilities, Problem
from nbody.forces.tree.octree.cells_cpu import one_leaf
from nbody.forces.tree.options import FINEST, TreeOptions, interactions, settings, without_expansions
from nbody.forces.tree.tree_cpu import HostTree, norms
from nbody.law import Gravity
from nbody.parallel import ALONE, Team
from nbody.particles import Particles
from nbody.scenario.values import Group
from nbody.state import Column, Outputs, State
from nbody.state.host import HostMoves, HostState

NODE_BYTES, BODY_BYTES = 100, 64
"""Memory of the tree per body, by size of a number: cells (an eighth per body) and the bodies in order; and of its keys."""

CHUNKS = 64
"""Partial sums of the momentum: fixed, so that it does not depend on the number of threads."""

LARGEST = 50.0
"""The largest error of a body, in units of the accuracy, that the criterion explains; measured: 10 to 20."""


class ThreadedMoves(HostMoves):
    """The moves of a host state by all threads, with the same bits. (On 16 cores NumPy would take a sixth of a step.)"""

    @staticmethod
    def _add_product(target: np.ndarray, rate: np.ndarray, factor: Any) -> None:
        with one_thread_for_few(len(target)):
            add_product(target.reshape(-1), rate.reshape(-1), target.dtype.type(factor))


class TreeState(HostState):
    """A host state with the size of each body's acceleration in the evaluation before, which the criterion needs. It is
    part of checkpoints, so that a resumed run opens the same cells."""

    COLUMNS = (*HostState.COLUMNS, Column("acceleration_norm", 0))  # type: ignore[assignment]
    _MOVES = ThreadedMoves


class CpuTreeEngine(Engine):
    """A tree with Cartesian multipoles to order p on all cores; see :class:`TreeOptions` for what a user may choose.

    Momentum: the net force Σ m a, which is an error (7e-6 of Σ m |a| at an accuracy of 1e-3), is subtracted after an
    evaluation for all bodies, from each body in proportion to m |a|. The potential is a sum over the same cells, and has an
    error of the same size.
    """

    can = Abilities(
        compiled=True, potential="separate", targets=True, ranks=True, own_units=True, finest=FINEST, growth=1,
        auto_range=range(2048, 1 << 62),  # with fewer bodies most cells are neighbours
    )  # fmt: skip
    Options = TreeOptions  # type: ignore[assignment]
    state_type = TreeState

    @classmethod
    def supports(cls, problem: Problem) -> str:
        return super().supports(problem) or without_expansions(problem.gravity)

    def __init__(
        self, gravity: Gravity, precision: str = "float32", options: Group | None = None, team: Team = ALONE
    ) -> None:
        super().__init__(gravity, precision, options, team)
        assert isinstance(self._options, TreeOptions)
        self._settings = settings(self._options)

    def _work_per_evaluation(self, state: State) -> int:
        # That of the last one.
        tree = state.workspace
        return interactions(tree.work.interactions if tree is not None else 0, state.count)

    def _query(self, particles: Particles) -> HostTree:
        """The tree over some bodies, built once."""
        assert isinstance(self._options, TreeOptions)
        return HostTree(particles.position, particles.mass, self.gravity, self.precision, self._options)

    def error(self, particles: Particles, targets: Targets = None) -> ForceError:
        """The accuracy, and a bound that no body exceeds unless the forces on it nearly cancel."""
        rounding = rounding_bound(self.precision, particles.count)
        accuracy = self._options.accuracy  # type: ignore[attr-defined]
        return ForceError(max(accuracy, float(rounding) / 256), LARGEST * accuracy + rounding)

    @classmethod
    def memory(cls, problem: Problem) -> Memory:
        # The state and the tree.
        size = 4 if problem.precision == "float32" else 8
        tree = problem.particles * (NODE_BYTES // 4 * size + BODY_BYTES)
        return Memory(super().memory(problem).own + tree)

    def identity(self, state: State | None = None) -> Identity:
        chosen = self._settings
        tree = f"order {chosen.order}, leaf {chosen.leaf}, error {chosen.error:g}"
        return super().identity(state)._replace(bits={"tree": tree})

    def _rehearse(self, state: State, outputs: Outputs) -> None:
        x, m = np.zeros((2, state.dimensions), self._dtype), np.ones(2, self._dtype)
        assert isinstance(self._options, TreeOptions)
        tree = HostTree(x, m, self.gravity, self.precision, self._options)
        tree.bodies.cells = one_leaf(2)  # as what the kernels would compute
        field = tree.field(False, None)  # the potential has the same kernels
        deliver(field, self._dtype.type(1), m, np.zeros((CHUNKS + 1, 4)), x, m)
        add_product(m, m, self._dtype.type(1))

    def _compute(self, state: State, outputs: Outputs) -> None:
        assert isinstance(state, TreeState)
        tree = self._tree(state)
        field = self._field(state, tree, None)
        a, norm = state.acceleration, state.column("acceleration_norm")
        deliver(field, self._dtype.type(tree.units.acceleration), state.mass, np.zeros((CHUNKS + 1, 4)), a, norm)
        state.progress.report(tree.work.interactions)
        if Outputs.ENERGY in outputs:
            self._fill_potential(state, tree)

    def _compute_potential(self, state: State, outputs: Outputs) -> None:
        assert isinstance(state, TreeState)
        self._fill_potential(state, self._tree(state))

    def _fill_potential(
        self, state: TreeState, tree: HostTree, targets: Targets = slice(None), active: np.ndarray | None = None
    ) -> None:
        phi = tree.field(True, self._scale(state, tree, active), active=active)[targets, 3]
        state.potential[targets] = phi * self._dtype.type(tree.units.potential)
        mark_coincident(state, self.gravity, tree.units, NEAREST[self.precision], targets)
        state.progress.report(tree.work.interactions)

    def _compute_targets(self, state: State, outputs: Outputs, targets: np.ndarray) -> None:
        assert isinstance(state, TreeState)
        tree, active = self._tree(state), np.zeros(state.count, bool)
        active[targets] = True
        rows = self._field(state, tree, active)[targets, : state.dimensions]
        state.acceleration[targets] = rows * self._dtype.type(tree.units.acceleration)
        state.column("acceleration_norm")[targets] = np.sqrt((state.acceleration[targets] ** 2).sum(1))
        state.progress.report(tree.work.interactions)
        if Outputs.ENERGY in outputs:
            self._fill_potential(state, tree, targets, active)

    def _field(self, state: TreeState, tree: HostTree, active: np.ndarray | None) -> np.ndarray:
        """Accelerations in the kernel's units; the first time twice: |a| for the criterion from a geometric one."""
        scale = self._scale(state, tree, active)
        if scale is None and self._settings.theta is None:
            scale = norms(tree.field(False, None, active=active))
            if active is not None:
                scale[~active] = np.inf
        return tree.field(False, scale, active=active)

    def _scale(self, state: TreeState, tree: HostTree, active: np.ndarray | None = None) -> np.ndarray | None:
        """|a| of the evaluation before in the kernel's units; None if there was none, or if the criterion is geometric.
        Bodies that are not requested have an infinite one."""
        norm, factor = state.column("acceleration_norm"), tree.units.acceleration
        known = norm if active is None else norm[active]
        if self._settings.theta is not None or not factor or not known.any():
            return None
        scale: np.ndarray = norm / self._dtype.type(factor)
        if active is not None:
            scale[~active] = np.inf
        return scale

    def _tree(self, state: TreeState) -> HostTree:
        """The tree of the present positions; that of the last evaluation if they are the same."""
        tree = state.workspace
        current = state.clock.current is not Outputs.NOTHING
        if tree is None or not (current and np.array_equal(tree.position, state.position)):
            assert isinstance(self._options, TreeOptions)
            tree = HostTree(state.position, state.mass, self.gravity, self.precision, self._options, team=self._team)
            state.workspace = tree
        return tree


@kernel
def deliver(field, factor, mass, partial, acceleration, norm):
    """Accelerations (N, D) and their sizes (N,) from the field (N, 4) and the unit of acceleration, without a net force.
    ``partial`` (CHUNKS + 1, 4) are zeros, for the sums of each chunk and of all."""
    for_each(_deliver, CHUNKS, 2, (field, factor, mass, partial, acceleration, norm))
    total = partial[CHUNKS]
    for c in range(CHUNKS):
        for k in range(4):
            total[k] += partial[c, k]
    if total[3] > 0:
        for_each(_subtract, CHUNKS, 2, (total, acceleration, norm))


@inner
def _deliver(c, field, factor, mass, partial, acceleration, norm):
    count, dimensions = acceleration.shape
    size = -(-count // CHUNKS)
    for i in range(c * size, min((c + 1) * size, count)):
        square = factor * 0
        for k in range(dimensions):
            a = field[i, k] * factor
            acceleration[i, k] = a
            square += a * a
            partial[c, k] += np.float64(mass[i]) * np.float64(a)
        norm[i] = np.sqrt(square)
        partial[c, 3] += np.float64(mass[i]) * np.float64(norm[i])


@inner
def _subtract(c, total, acceleration, norm):
    count, dimensions = acceleration.shape
    size = -(-count // CHUNKS)
    for i in range(c * size, min((c + 1) * size, count)):
        for k in range(dimensions):
            acceleration[i, k] = np.float64(acceleration[i, k]) - total[k] / total[3] * np.float64(norm[i])


@kernel
def add_product(target, rate, factor):
    """target += rate · factor, both of them rounded."""
    for_each(_add_product, CHUNKS, 2, (target, rate, factor))


@inner
def _add_product(c, target, rate, factor):
    size = -(-len(target) // CHUNKS)
    for k in range(c * size, min((c + 1) * size, len(target))):
        target[k] += rate[k] * factor
