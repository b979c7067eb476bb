"""``gpu-tree``: the tree on the GPU, built anew for each evaluation, without a number returning to the host.

One evaluation: the box, Morton keys, sort and gather; the cells; their moments, from the leaves upward; a walk per region
and per group of neighbours. The launches are the same for any positions, so a CUDA graph replays them. Some bodies, or
points, are sorted and divided into groups in the same way, and walk the same tree. Several GPUs, or ranks, divide the groups
(:mod:`.partition_gpu`); the forces at points, or on some bodies, are computed by the first GPU, or by every rank.

The acceptance test needs |a| of the evaluation before, which the state's accelerations hold, also in a checkpoint. If they
are all zero, the first evaluation opens cells by an angle, and a second one follows at once.
"""

from functools import partial
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.engine import ForceError, Memory, Targets
from nbody.forces.gpu_engine import GpuEngine
from nbody.forces.options import GpuOptions
from nbody.forces.problem import Abilities, Problem
from nbody.forces.tree import momentum_gpu as momentum
from nbody.forces.tree.expansions.operators import Basis
from nbody.forces.tree.options import (
    FINEST,
    Settings,
    TreeOptions,
    interactions,
    is_softened,
    settings,
    support_of,
    without_expansions,
)
from nbody.forces.tree.partition_gpu import TreePartition
from nbody.forces.tree.tree_gpu import DeviceCells, DeviceTree, capacity_for
from nbody.forces.tree.walk.regions_gpu import region_kernel
from nbody.forces.tree.walk.walk_gpu import GROUP, RESIDENT, THREADS, WalkPlan, walk_kernel
from nbody.law import Gravity
from nbody.parallel import ALONE, Team
from nbody.particles import Particles
from nbody.scenario.values import Group
from nbody.state import Outputs, State
from nbody.state.device import DeviceArray, DeviceState

LOWEST_ORDER = 3
"""The acceptance test of quadrupoles needs the third moments."""

STEPS = (
    # least accuracy, order, median error for error = 1e-3, exponent
    (2.5e-4, 4, 3.1e-4, 1.3),
    (2e-5, 5, 1.84e-4, 1.85),
)
"""The order, and the criterion's error 1e-3 · (accuracy/median)^exponent, measured for Plummer's sphere of 1M bodies. A
smaller accuracy takes the settings of the CPU."""

BODIES_PER_GROUP = 96
"""One H200, 1M bodies, order 4: 3.4 ms instead of 4.5 ms with 128 (error 1e-4), 2.08 instead of 2.16 (1e-3): the groups
with the longest lists end sooner."""


def gpu_settings(options: TreeOptions) -> Settings:
    """:func:`~nbody.forces.tree.options.settings`, with what is the fastest on a GPU."""
    found = settings(options)
    step = next((step for step in STEPS if options.accuracy >= step[0]), None)
    if step is not None and options.order is None:
        _, order, median, exponent = step
        found = found._replace(order=order, error=min(1e-3 * (options.accuracy / median) ** exponent, 0.05))
    return found._replace(
        order=max(found.order, LOWEST_ORDER), group=min(max(BODIES_PER_GROUP, found.leaf), GROUP)
    )  # fmt: skip


class GpuTreeOptions(TreeOptions, GpuOptions):
    """The options of ``gpu-tree``: those of a tree, and the GPUs that divide its work."""


DIVIDED_FROM = 262144
"""Bodies from which on several GPUs divide the work. One H200 and two, accuracy 1e-3: 0.79 and 0.70 ms with this many,
0.68 and 0.70 ms with half as many (before the walk listed only its own groups); 1.94 and 1.33 ms with 1M, of which each
builds the tree for 0.5 ms."""

SPARSE = 64
"""Targets that are fewer than the bodies by this factor have smaller groups."""


class TreeEngine(GpuEngine):
    """An octree and Cartesian multipoles to an accuracy that the user names. The net force Σ m a, which is an error, is
    subtracted: :mod:`.momentum_gpu`."""

    Options = GpuTreeOptions  # type: ignore[assignment]
    can = Abilities(
        ("float32", "mixed"), "gpu", potential="separate", targets=True, ranks=True, own_units=True, gpus=True,
        divided_from=DIVIDED_FROM, finest=FINEST, growth=1,
        auto_range=range(8192, 1 << 62),  # below, the launches of a tree take longer than direct sums on any card
    )  # fmt: skip
    _name = "gpu-tree"

    @classmethod
    def supports(cls, problem: Problem) -> str:
        return super().supports(problem) or without_expansions(problem.gravity)

    def __init__(
        self, gravity: Gravity, precision: str = "float32", options: Group | None = None, team: Team = ALONE
    ) -> None:
        super().__init__(gravity, precision, options, team)
        assert isinstance(self._options, TreeOptions)
        self._settings = gpu_settings(self._options)

    def _basis(self, potential: bool = False) -> Basis:
        """The expansions for the law of this run."""
        return Basis(self._settings.order, self.gravity.dimensions, is_softened(self.gravity.softening), potential)

    def _prepare(self, state: State, particles: Particles) -> None:
        super()._prepare(state, particles)
        assert isinstance(state, DeviceState)
        state.workspace = tree = self._tree(state.count, state.stream)
        if state.partition.transport.size > 1:
            tree.partition = TreePartition(state, tree, partial(self._tree, state.count))
        state.partition.interactions = interactions(0, state.count)

    def _tree(self, count: int, stream: Any) -> DeviceTree:
        return DeviceTree(count, self._settings.leaf, self._basis(), _wide(self.precision), stream)

    def _work_per_evaluation(self, state: State) -> int:
        # That before the last one.
        tree = state.workspace
        counted = tree.partition.counted(state) if tree.partition else int(tree.cells.last_work[0])
        return interactions(counted, state.count)

    def _rehearse(self, state: State, outputs: Outputs) -> None:
        if compute.SIMULATED:  # it would run the kernels, and change the accelerations that the criterion needs
            return
        assert isinstance(state, DeviceState)
        tree: DeviceTree = state.workspace
        tree.launch(state.body, self.gravity.G, self._settings.group)
        later = [(outputs, True)] if Outputs.ENERGY in outputs else []  # what a recorded frame needs
        for each, keep in ((Outputs.ACCELERATION, False), (outputs, False), *later):
            self._walk(tree, tree.cells, state.acceleration, each, keep)
        momentum.balance(state.body, state.acceleration, tree.forces, state.stream)

    def _compute(self, state: State, outputs: Outputs) -> None:
        assert isinstance(state, DeviceState)
        tree: DeviceTree = state.workspace
        if not tree.begun:
            tree.begun = True
            state.progress.wait()
            if not state.acceleration.copy_to_host().any():
                self._evaluate(state, Outputs.ACCELERATION)
        self._evaluate(state, outputs)

    def _compute_potential(self, state: State, outputs: Outputs) -> None:
        assert isinstance(state, DeviceState)
        self._evaluate(state, outputs, keep=True)

    def _compute_targets(self, state: State, outputs: Outputs, targets: Targets) -> None:
        # ``targets`` may be an array on the device.
        assert isinstance(state, DeviceState)
        rows = cuda.to_device(targets.astype(np.int32)) if isinstance(targets, np.ndarray) else targets
        if not state.workspace.begun:
            state.progress.wait()
            if not state.acceleration.copy_to_host()[rows.copy_to_host()].any(axis=1).all():
                self._enqueue(state, Outputs.ACCELERATION, rows=rows)
        self._enqueue(state, outputs, rows=rows)
        state.progress.report(interactions(int(state.workspace.targets.last_work[0]), rows.shape[0]))

    def _evaluate(self, state: DeviceState, outputs: Outputs, keep: bool = False) -> None:
        self._enqueue(state, outputs, keep)
        if not keep:
            momentum.balance(state.body, state.acceleration, state.workspace.forces, state.stream)
        state.progress.report(self.work(state))

    def _enqueue(self, state: DeviceState, outputs: Outputs, keep: bool = False, rows: Any = None) -> None:
        """Enqueue the tree, and the forces on all bodies or on some rows, which are an array on the device."""
        tree: DeviceTree = state.workspace

        def build(tree: DeviceTree, body: DeviceArray) -> None:
            tree.build(body, self.gravity.G, self._settings.group)

        def walk(tree: DeviceTree, acceleration: DeviceArray) -> None:
            self._walk(tree, tree.cells, acceleration, outputs, keep)

        if rows is not None:
            build(tree, state.body)
            cells = tree.cells_of(state.body, self._group(rows.shape[0], state.count), rows)
            self._walk(tree, cells, state.acceleration, outputs)
        elif tree.partition:
            tree.partition.compute(state, build, walk, (outputs, keep))
        else:
            build(tree, state.body)
            walk(tree, state.acceleration)

    def _walk(
        self,
        tree: DeviceTree,
        targets: DeviceCells,
        result: DeviceArray,
        outputs: Outputs,
        keep: bool = False,
        shift: int = 0,
    ) -> None:
        """Enqueue the forces of a tree on ``targets``. The rows ``targets.index`` of ``result`` hold the
        accelerations of the evaluation before, and receive those of this one (``keep``: only the potential)."""
        s, shape = self._settings, self._shape(outputs)
        basis, geometric = self._basis(shape.potential), s.theta is not None
        bound = np.float32(s.error if s.theta is None else s.theta)
        reach = support_of(self.gravity) * float(self.gravity.length2) ** 0.5  # from there on expansions have the law
        law = np.float64(self.gravity.length2), np.float64(reach), bound
        grid = RESIDENT * compute.facts().multiprocessors, THREADS, targets.stream
        regions, walk = region_kernel(basis, tree.wide, geometric), walk_kernel(WalkPlan(shape, basis, geometric, keep))
        arrays = targets.targets, result, tree.sources
        regions[grid](*arrays, *law)
        walk[grid](*arrays, *law, np.uint32(shift))

    def _group(self, targets: int, bodies: int) -> int:
        """The most targets of a group: fewer if they are far apart (1M bodies, one H200: with every 512th 3.6 instead of
        8.8 ms)."""
        return self._settings.group if targets > bodies // SPARSE else min(self._settings.group, 32)

    def _query(self, particles: Particles) -> "DeviceTreeQuery":
        """The tree over some bodies, built once."""
        state = self.load(particles)
        assert isinstance(state, DeviceState)
        state.workspace.build(state.body, self.gravity.G, self._settings.group)
        return DeviceTreeQuery(self, state)

    def error(self, particles: Particles, targets: Targets = None) -> ForceError:
        """The error that was asked for; beyond 100 times that a force is wrong."""
        assert isinstance(self._options, TreeOptions)
        return ForceError(self._options.accuracy, 100 * self._options.accuracy)

    @classmethod
    def memory(cls, problem: Problem) -> Memory:
        # A tree, with leaves of 32 and order 4; a row per body that devices exchange; on a helper the results of its
        # part, at most half of all; and groups of targets.
        count, typical = problem.particles, (32, Basis(4, 3, True), _wide(problem.precision))
        own, helper = super().memory(problem)
        tree, rows = DeviceTree.bytes_needed(count, *typical), 4 * count * (4 if problem.precision == "float32" else 8)
        exchanged = rows if max(problem.gpus, problem.ranks) > 1 else 0
        groups = DeviceCells.bytes_needed(capacity_for(count, count), *typical) if problem.targets else 0
        return Memory(own + tree + exchanged + groups, helper + tree + rows // 2)


class DeviceTreeQuery:
    """The tree of a state, which was built last, asked for forces on its bodies or at points (M, D)."""

    def __init__(self, engine: TreeEngine, state: DeviceState) -> None:
        self._engine, self._state = engine, state

    def accelerations(self, at: np.ndarray | None) -> np.ndarray:
        """(N, D), or (M, D). A body in the place of a point exerts no force on it."""
        return self._field(at, Outputs.ACCELERATION)[0]

    def potential(self, at: np.ndarray | None) -> np.ndarray:
        """(N,), or (M,)."""
        return self._field(at, Outputs.POTENTIAL)[1]

    def _field(self, at: np.ndarray | None, outputs: Outputs) -> tuple[np.ndarray, np.ndarray]:
        engine, state, tree = self._engine, self._state, self._state.workspace
        if at is None:
            engine.evaluate(state, outputs)
            a, phi = state.values("acceleration", "potential")
            return a, phi
        rows = np.zeros((len(at), 4), state.dtype)
        rows[:, : state.dimensions] = at
        result = cuda.to_device(np.zeros_like(rows))
        cells = tree.cells_of(cuda.to_device(rows), engine._group(len(at), state.count))
        engine._walk(tree, cells, result, Outputs.ACCELERATION, shift=state.count)  # learns |a|
        cells.restart()
        engine._walk(tree, cells, result, outputs, shift=state.count)
        state.progress.wait()
        found = result.copy_to_host()
        return found[:, : state.dimensions].copy(), found[:, 3].copy()


def _wide(precision: str) -> type:
    """The type of coordinates."""
    return np.float64 if precision == "mixed" else np.float32
