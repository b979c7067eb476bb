"""The tree on the GPU: its errors against direct sums, and that it gives the same bits every time."""

import numpy as np
import pytest
from compiled_forces import for_h200
from conftest import random_bodies
from pretended_team import run_ranks

import nbody
from nbody import compute
from nbody.fields.added import AddedFields
from nbody.fields.potentials import PointMass
from nbody.forces import ENGINES
from nbody.forces.api import accelerations
from nbody.forces.layers import layered
from nbody.forces.problem import Problem
from nbody.forces.reusable_tree import Tree
from nbody.forces.transports import ranks as ranks_layer
from nbody.forces.tree import tree_gpu
from nbody.forces.tree.engine_gpu import DeviceTreeQuery
from nbody.forces.tree.octree import cells_gpu
from nbody.forces.tree.octree.cells_gpu import GROUPS
from nbody.forces.tree.octree.groups_gpu import RUN
from nbody.forces.tree.octree.order_gpu import Sort
from nbody.forces.tree.options import TreeOptions
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.law import Gravity
from nbody.parallel import ALONE
from nbody.particles import Particles
from nbody.state import Outputs

ACCURACY = 1e-3
BOUND = 30 * ACCURACY
"""The criterion bounds the error of each accepted cell by 5 ACCURACY · |a|; random errors of many cells add up to a few
times that."""


def bodies(position, mass=None):
    """Bodies at rest; equal masses with a sum of 1 if none are given."""
    x = np.ascontiguousarray(position, float)
    m = np.full(len(x), 1 / len(x)) if mass is None else np.asarray(mass, float)
    return Particles(m, x, np.zeros_like(x))


def plummer(count, seed=1):
    rng = np.random.default_rng(seed)
    r = 1 / np.sqrt(rng.uniform(0, 0.999, count) ** (-2 / 3) - 1)
    direction = rng.standard_normal((count, 3))
    return direction / np.linalg.norm(direction, axis=1)[:, None] * r[:, None]


def disc(count):
    rng = np.random.default_rng(2)
    radius, angle = -np.log1p(-rng.uniform(0, 0.99, count)), rng.uniform(0, 2 * np.pi, count)
    return np.column_stack((radius * np.cos(angle), radius * np.sin(angle), 0.02 * rng.standard_normal(count)))


def line(count):
    return np.column_stack((np.sort(np.random.default_rng(3).uniform(-1, 1, count)), np.zeros(count), np.zeros(count)))


COUNT = 4000
MASSES = 10.0 ** np.random.default_rng(4).uniform(-12, 0, COUNT)
HEAVY = np.where(np.arange(COUNT) == 17, 1.0, 1.0 / COUNT)
MASSLESS = np.where(np.arange(COUNT) % 3 == 0, 0.0, 1.0)
SYSTEMS = {
    "plummer": bodies(plummer(COUNT)),
    "uniform": bodies(np.random.default_rng(5).uniform(-1, 1, (COUNT, 3))),
    "disc": bodies(disc(COUNT)),
    "two distant groups": bodies(np.concatenate((plummer(COUNT // 2), plummer(COUNT // 2, 9) + np.array([3000.0, 0, 0])))),
    "one heavy body": bodies(plummer(COUNT), HEAVY),
    "masses over twelve decades": bodies(plummer(COUNT), MASSES),
    "massless bodies": bodies(plummer(COUNT), MASSLESS),
    "line": bodies(line(COUNT)),
    "coincident bodies": bodies(np.repeat(plummer(COUNT // 100), 100, axis=0)),
    "an outlier": bodies(np.concatenate((plummer(COUNT - 1), [[1e7, 0, 0]]))),
}


def errors(found, expected):
    """Relative errors of vectors."""
    size = np.linalg.norm(expected, axis=1)
    return np.linalg.norm(found - expected, axis=1) / np.where(size > 0, size, 1)


def forces(particles, softening="plummer", length=0.02, precision="float32", **options):
    """Accelerations and potential of the engine, and its state."""
    gravity = Gravity(1.0, particles.dimensions, softening, length)
    engine = ENGINES.load("gpu-tree")(gravity, precision, TreeOptions(**options))
    state = engine.load(particles)
    engine.evaluate(state, Outputs.POTENTIAL)
    return *state.values("acceleration", "potential"), engine, state


def referee(particles, softening="plummer", length=0.02, precision="float32"):
    """Direct float64 sums over the bodies as the engine's precision stores them."""
    x = particles.position.astype(np.float32) if precision == "float32" else particles.position
    return accelerations(
        x, particles.mass, engine="reference", softening=softening, length=length, potential=True
    )  # fmt: skip


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(SYSTEMS))
def test_errors_stay_near_the_accuracy_for_any_distribution(name):
    particles = SYSTEMS[name]
    a, phi = referee(particles)
    got, got_phi, _, _ = forces(particles)
    error = errors(got, a)
    assert np.isfinite(got).all() and np.isfinite(got_phi).all()
    assert np.median(error) < 2 * ACCURACY
    scale = np.linalg.norm(a, axis=1).mean()
    assert (np.linalg.norm(got - a, axis=1) < BOUND * np.maximum(np.linalg.norm(a, axis=1), 0.1 * scale)).all()
    assert np.median(np.abs(got_phi - phi)) < ACCURACY * np.abs(phi).mean()


@pytest.mark.gpu
@pytest.mark.parametrize("softening,length", [("none", 0.0), ("cutoff", 0.3), ("spline", 0.1)])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_every_law_in_two_and_three_dimensions(softening, length, dimensions):
    particles = bodies(plummer(2000)[:, :dimensions])
    a, phi = referee(particles, softening, length)
    got, got_phi, _, _ = forces(particles, softening, length)
    assert np.median(errors(got, a)) < 2 * ACCURACY
    assert np.quantile(errors(got, a), 0.99) < 20 * ACCURACY
    assert np.median(np.abs(got_phi / phi - 1)) < ACCURACY


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 2, 33, 128, 129])
def test_a_few_bodies_are_summed_directly(count):
    particles = random_bodies(count)
    a, phi = referee(particles)
    got, got_phi, _, _ = forces(particles)
    assert errors(got, a).max(initial=0) < (1e-5 if count <= 33 else BOUND)
    assert np.allclose(got_phi, phi, rtol=1e-5 if count <= 33 else BOUND)


@pytest.mark.gpu
def test_mixed_precision_keeps_close_pairs_far_from_the_origin():
    """A coordinate of 1e6 in float32 is a multiple of 1/16: only float64 positions resolve a system of size 1 there."""
    x = plummer(2000)
    a, _ = referee(bodies(x), precision="mixed")
    got, _, _, _ = forces(bodies(x + 1e6), precision="mixed")
    assert np.median(errors(got, a)) < 2 * ACCURACY


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["plummer", "masses over twelve decades", "an outlier"])
def test_the_net_force_is_zero_to_rounding(name):
    """It is subtracted in float32: N rounding errors of random sign."""
    particles = SYSTEMS[name]
    a = forces(particles)[0].astype(float)
    net, size = particles.mass @ a, particles.mass @ np.linalg.norm(a, axis=1)
    assert np.linalg.norm(net) < 4 * 2.0**-24 * size


@pytest.mark.gpu
def test_a_smaller_accuracy_gives_smaller_errors():
    particles = SYSTEMS["plummer"]
    a, _ = referee(particles)
    error = [np.median(errors(forces(particles, accuracy=accuracy)[0], a)) for accuracy in (1e-2, 1e-3, 1e-4)]
    assert error[0] > error[1] > error[2]
    assert error[1] < 2e-3 and error[2] < 2e-4


@pytest.mark.gpu
def test_the_same_bits_twice_and_from_a_graph_and_after_a_resume():
    particles = SYSTEMS["plummer"]
    first, phi, engine, state = forces(particles)
    second, _, _, _ = forces(particles)
    assert np.array_equal(first, second)
    saved = state.arrays()
    state.invalidate()
    engine.evaluate(state)
    third, _ = state.values("acceleration", "potential")
    graph = compute.Graph(state.stream, lambda: (state.invalidate(), engine.evaluate(state)))
    state.restore(saved)
    graph.replay()
    replayed, _ = state.values("acceleration", "potential")
    assert np.array_equal(third, replayed)
    resumed = engine.load(particles)
    resumed.restore(saved)
    resumed.invalidate()
    engine.evaluate(resumed)
    assert np.array_equal(third, resumed.values("acceleration")[0])
    # the potential alone leaves the accelerations as they are
    engine.evaluate(resumed, Outputs.POTENTIAL)
    kept, again = resumed.values("acceleration", "potential")
    assert np.array_equal(third, kept) and np.allclose(again, phi, rtol=BOUND)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "mixed"])
@pytest.mark.parametrize("count", [1, 40])
def test_distant_bodies_cost_the_others_no_accuracy_and_no_time(precision, count):
    """At 1e6 times the size of the cluster. In one box with them it would be two or three of the 2^21 cells of a key wide,
    and all its bodies in a few leaves; in a group with one of them, float32 would not tell its bodies apart."""
    near, far = plummer(8000), 1e6 * np.random.default_rng(6).uniform(0.3, 1, (count, 3))
    _, _, _, alone = forces(bodies(near), precision=precision)
    rows = np.random.default_rng(7).permutation(8000 + count)
    particles = bodies(np.concatenate((near, far))[rows])
    a, _ = referee(particles, precision=precision)
    got, _, _, state = forces(particles, precision=precision)
    error, others = errors(got, a), rows < 8000
    assert np.median(error[others]) < 2 * ACCURACY and np.quantile(error[others], 0.999) < BOUND
    assert error[~others].max() < BOUND
    work, before = (s.workspace.cells.work.copy_to_host()[0] for s in (state, alone))
    assert work < 1.2 * before


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_the_forces_on_some_bodies_are_those_on_all(precision):
    """Other groups accept other cells, so they are the same within the accuracy. The rest keep what they had."""
    particles = SYSTEMS["plummer"]
    a, phi = referee(particles, precision=precision)
    _, _, engine, state = forces(particles, precision=precision)
    before, _ = state.values("acceleration", "potential")
    rows = np.sort(np.random.default_rng(8).choice(COUNT, 300, replace=False))
    engine.evaluate(state, Outputs.POTENTIAL, rows)
    got, got_phi = state.values("acceleration", "potential")
    assert np.median(errors(got[rows], a[rows])) < 2 * ACCURACY and errors(got[rows], a[rows]).max() < BOUND
    assert np.median(np.abs(got_phi[rows] / phi[rows] - 1)) < ACCURACY
    rest = np.setdiff1d(np.arange(COUNT), rows)
    assert np.array_equal(got[rest], before[rest]) and not np.array_equal(got[rows], before[rows])


@pytest.mark.gpu
def test_points_feel_bodies_in_their_place_only_in_the_potential():
    """A point where a body is has the body's own acceleration, and the body's own potential less m/ε."""
    particles = SYSTEMS["plummer"]
    law = {"softening": "plummer", "length": 0.02}
    x = particles.position[:500].astype(np.float32).astype(float)
    tree = Tree(particles.position, particles.mass, engine="gpu-tree", precision="float32", **law)
    a, phi = referee(particles)
    expected = phi[:500] - particles.mass[:500] / 0.02
    for found in (tree.accelerations(x), tree.accelerations()[:500], tree.accelerations(x)):
        assert np.median(errors(found, a[:500])) < 2 * ACCURACY and errors(found, a[:500]).max() < BOUND
    assert np.median(np.abs(tree.potential(x) / expected - 1)) < ACCURACY
    given = {"engine": "gpu-tree", "precision": "float32", "accuracy": ACCURACY, **law}
    called, called_phi = accelerations(particles.position, particles.mass, at=x, potential=True, **given)
    assert np.median(errors(called, a[:500])) < 2 * ACCURACY
    assert np.median(np.abs(called_phi / expected - 1)) < ACCURACY


def moved(engine, scheme, bodies, dt, steps, **options):
    """The motion after some steps, and the scheme."""
    kind, engine = INTEGRATORS.load(scheme), ENGINES.load(engine)(Gravity(1.0, 3, "plummer", 0.02), "float32")
    motion = Motion(engine, engine.load(bodies))
    integrator = kind(dt, kind.Options(**options))
    integrator.prepare(motion)
    integrator.advance(motion, steps)
    return motion, integrator


def energy(motion):
    motion.evaluate(Outputs.ENERGY)
    return motion.state.frames.snapshot().wait().sums[:2].sum()


@pytest.mark.gpu
def test_block_steps_keep_the_energy_as_on_the_cpu():
    """The same bodies choose the same steps, but for those whose accelerations are near a power of two."""
    system = nbody.plummer(4096, seed=3)
    runs = {name: moved(name, "leapfrog_block", system, 1 / 32, 16, eta=0.01) for name in ("gpu-tree", "cpu-tree")}
    (gpu_motion, on_gpu), (cpu_motion, on_cpu) = runs["gpu-tree"], runs["cpu-tree"]
    assert on_gpu.report(gpu_motion).bodies_per_step > 1.5 * 4096
    assert on_gpu.report(gpu_motion).bodies_per_step == pytest.approx(on_cpu.report(cpu_motion).bodies_per_step, rel=0.01)
    changes = []
    for name, motion in (("gpu-tree", gpu_motion), ("cpu-tree", cpu_motion)):
        start = energy(moved(name, "leapfrog", system, 1 / 32, 0)[0])  # potentials have an error of their own
        changes.append(energy(motion) / start - 1)
    assert np.abs(changes).max() < 5e-5 and abs(changes[0] - changes[1]) < 5e-5


@pytest.mark.gpu
def test_if_all_bodies_choose_dt_block_steps_are_leapfrog_bit_for_bit():
    blocks, scheme = moved("gpu-tree", "leapfrog_block", SYSTEMS["plummer"], 1 / 256, 4, eta=10.0)
    plain, _ = moved("gpu-tree", "leapfrog", SYSTEMS["plummer"], 1 / 256, 4)
    assert scheme.report(blocks).bodies_per_step == COUNT
    for a, b in zip(blocks.state.values("position", "velocity"), plain.state.values("position", "velocity"), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.gpu
def test_leaves_grow_if_the_cells_do_not_fit():
    particles = SYSTEMS["plummer"]
    a, _ = referee(particles)
    engine = ENGINES.load("gpu-tree")(Gravity(1.0, 3, "plummer", 0.02), "float32", TreeOptions())
    state = engine.load(particles)
    state.workspace.cells.nodes = state.workspace.cells.nodes[:100]
    engine.evaluate(state)
    assert np.median(errors(state.values("acceleration")[0], a)) < 2 * ACCURACY


@pytest.mark.parametrize("law", [pytest.param("none", marks=pytest.mark.campaign), "plummer"])
def test_all_numbers_of_a_walk_are_in_registers(law):
    """Those of order 4. A branch that divides a warp for all that the compiler knows, such as ``continue`` in the loop over
    groups, doubled the shuffles, needed a stack, and took 10 % of the time."""
    from numba import types

    from nbody.forces.gpu_engine import Shape
    from nbody.forces.tree.expansions.operators import Basis
    from nbody.forces.tree.walk.target_gpu import Sources, Targets
    from nbody.forces.tree.walk.walk_gpu import WalkPlan, walk_kernel

    i, u = types.int32[::1], types.uint32[::1]
    rows, numbers = types.int32[:, ::1], types.float32[:, ::1]
    targets = (i, rows, i, i, rows, i, numbers, u, numbers, numbers, rows, i, types.int64[::1])
    tree = (i, rows, numbers, numbers, numbers, numbers, u, types.float64[::1])
    arrays = types.NamedTuple(targets, Targets), numbers, types.NamedTuple(tree, Sources)
    shape = Shape(law, 3, np.dtype(np.float32), Outputs.ACCELERATION, False)
    kernel = walk_kernel(WalkPlan(shape, Basis(4, 3, law == "plummer", False), False))
    _, found = for_h200(kernel, (*arrays, types.float64, types.float64, types.float32, types.uint32))
    assert found.local == 0


@pytest.mark.simulated
def test_the_simulator_agrees_with_direct_sums():
    """Tiny: the kernels run as Python. Small leaves, groups and regions, so that every kind of interaction occurs. With
    massless bodies many cells have two equal masses, whose third moments are zero: the estimate must not trust that."""
    particles = bodies(plummer(45), np.where(np.arange(45) % 3 == 0, 0.0, 1.0))
    a, _ = referee(particles)
    engine, state = tiny(particles)
    engine.evaluate(state)
    tree = state.workspace.cells
    counts, nodes = tree.counts.copy_to_host(), tree.nodes.copy_to_host()
    leaves = nodes[: counts[22]][nodes[: counts[22], 3] == 0]
    assert sorted(b for first, count, *_ in leaves for b in range(first, first + count)) == list(range(45))
    error = errors(state.values("acceleration")[0], a)
    assert np.median(error) < 2 * ACCURACY
    assert error.max() < BOUND
    found = state.values("acceleration")[0].astype(float)
    size = particles.mass @ np.linalg.norm(found, axis=1)
    assert np.linalg.norm(particles.mass @ found) < 4 * 2.0**-24 * size


@pytest.mark.simulated
@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_the_memory_of_a_run_is_what_was_predicted(precision):
    """The library that sorts is not there: its memory is an estimate."""

    def memory_of(array):
        while array.base is not None:
            array = array.base
        return array

    kind = ENGINES.load("gpu-tree")
    engine = kind(Gravity(1.0, 3, "plummer", 0.02), precision, TreeOptions(accuracy=1e-3))
    state = engine.load(bodies(plummer(5000)))
    owners = state, state.workspace, state.workspace.cells, *state.frames._staging_area()._buffers
    others = {id(state.workspace.cells.last_work), id(state.clock._start)}  # in the host's memory, and of 8 bytes
    arrays = [array for owner in owners for array in vars(owner).values() if hasattr(array, "copy_to_host")]
    taken = {id(memory_of(array._ary)): memory_of(array._ary).nbytes for array in arrays if id(array) not in others}
    assert sum(taken.values()) == kind.memory(Problem(engine.gravity, precision, 5000)).own - Sort.bytes_needed(5000)


@pytest.mark.simulated
def test_the_simulator_agrees_if_the_lists_of_the_regions_touch_the_moments_or_have_no_room():
    """With just enough memory, neither overwrites the other. With a row less, all groups begin with the root."""
    particles = bodies(plummer(33))
    for missing in (0, 1):
        engine, state = tiny(particles)
        cells = state.workspace.cells
        engine.evaluate(state)
        counts, (regions, _, cell_bytes, row_bytes) = cells.counts.copy_to_host(), cells._limits
        found = counts[cells_gpu.REGIONS]
        rows = -(-counts[cells_gpu.LEVELS + 1] * cell_bytes // row_bytes) + found - missing
        cells.lists, cells._limits = cells.lists[:rows], (regions, rows, cell_bytes, row_bytes)
        state.invalidate()
        engine.evaluate(state)
        assert cells.counts.copy_to_host()[cells_gpu.ROOM] == found - missing > 0
        assert errors(state.values("acceleration")[0], referee(particles)[0]).max() < BOUND


def tiny(particles, precision="float32", team=ALONE):
    """The engine and a state with small leaves, groups and regions."""
    engine = ENGINES.load("gpu-tree")(Gravity(1.0, 3, "plummer", 0.02), precision, TreeOptions(leaf=4, order=3), team)
    engine._settings = engine._settings._replace(group=8, error=5e-3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_gpu, "REGION", 16)
        return engine, engine.load(particles)


@pytest.mark.simulated
def test_the_simulator_agrees_with_the_tree_to_read():
    particles = bodies(plummer(40))
    engine, state = tiny(particles)
    engine.evaluate(state)
    judge = accelerations(
        particles.position, particles.mass, engine="barnes-hut", theta=0.1, softening="plummer", length=0.02
    )
    assert errors(state.values("acceleration")[0], judge).max() < BOUND


@pytest.mark.simulated
def test_the_simulator_agrees_for_any_number_of_devices_or_ranks(monkeypatch):
    """Runs of 16 bodies, so that groups and regions lie in the shares of two devices. All are the simulator's only one. What
    they count adds up to what one counts."""
    particles, found = bodies(plummer(33)), set()
    a, phi = referee(particles)
    kind = ENGINES.load("gpu-tree")
    monkeypatch.setattr(kind, "can", kind.can._replace(divided_from=1))
    monkeypatch.setattr(ranks_layer, "DIVIDED_FROM_RANKS", dict.fromkeys(ranks_layer.DIVIDED_FROM_RANKS, 1))
    for devices, ranks in ((1, 1), (3, 1), (1, 2)):
        monkeypatch.setattr(compute, "devices_for", lambda *of, devices=devices: (0,) * devices)

        def of_rank(team):
            engine, state = tiny(particles, "mixed", team)
            before = np.zeros((33, 4))
            before[:, :3] = a
            state.acceleration.copy_to_device(before)
            engine.evaluate(state, Outputs.POTENTIAL)
            trees = [state.workspace, *(helper.part.tree for helper in state.partition.transport.helpers)]
            return state.values("acceleration", "potential"), [tree.cells.work.copy_to_host()[0] for tree in trees]

        of_ranks = run_ranks(ranks, of_rank)
        counted = [number for _, numbers in of_ranks for number in numbers]
        assert len(counted) == devices * ranks and min(counted) > 0
        found |= {(*(array.tobytes() for array in forces), sum(counted)) for forces, _ in of_ranks}
    assert len(found) == 1
    (found_a, found_phi), _ = of_ranks[0]
    assert errors(found_a, a).max() < BOUND and np.allclose(found_phi, phi, rtol=BOUND)


@pytest.mark.simulated
def test_the_simulator_agrees_if_groups_are_walked_in_another_order():
    """Those with the largest costs first. A walk counts the costs for the next one; they change no bits."""
    engine, state = tiny(bodies(plummer(40)))
    cells, found = state.workspace.cells, set()
    assert not cells.costs.copy_to_host().any()
    engine.evaluate(state)
    before, learned = state.acceleration.copy_to_host(), cells.costs.copy_to_host()
    assert (learned > 0).all() and (learned <= 40).all()
    for costs in (learned, learned * np.array([1000, 1], np.int32)):
        state.acceleration.copy_to_device(before)
        cells.costs.copy_to_device(costs)
        state.invalidate()
        engine.evaluate(state)
        groups, sequence = cells.groups.copy_to_host(), cells.sequence.copy_to_host()
        sequence = sequence[: cells.counts.copy_to_host()[GROUPS]]
        assert sorted(sequence) == list(range(len(sequence)))
        octaves = [int(costs[(first + count // 2) // RUN] * count).bit_length() for first, count, *_ in groups[sequence]]
        assert octaves == sorted(octaves, reverse=True) and octaves[0] > octaves[-1]
        assert (cells.costs.copy_to_host() > 0).all() and (cells.costs.copy_to_host() <= 40).all()
        found.add((state.acceleration.copy_to_host().tobytes(), tuple(groups[sequence, 0])))
    assert len({bits for bits, _ in found}) == 1 and len(found) == 2


@pytest.mark.simulated
def test_the_simulator_agrees_for_some_bodies_points_and_an_outlier():
    """Of 80 bodies one is at 1e6 times the size of the others: they have a tree of their own, of usual depth."""
    particles = bodies(np.concatenate((plummer(79), [[1e6, 0, 0]])))
    a, phi = referee(particles)
    engine, state = tiny(particles)
    rows = np.arange(0, 80, 3)
    engine.evaluate(state, Outputs.POTENTIAL, rows)
    counts = state.workspace.cells.counts.copy_to_host()
    assert counts[1] == 2 and counts[23] < 12  # roots, and the deepest level
    assert errors(state.values("acceleration")[0][rows], a[rows]).max() < BOUND
    assert np.allclose(state.values("potential")[0][rows], phi[rows], rtol=BOUND)
    found, found_phi = DeviceTreeQuery(engine, state)._field(particles.position[rows], Outputs.POTENTIAL)
    assert errors(found, a[rows]).max() < BOUND
    before = state.values("acceleration")[0]
    fields = AddedFields([PointMass(mass=1.0)], 1.0)
    layered(engine, fields).evaluate(state, Outputs.ACCELERATION, rows[:20])
    change = state.values("acceleration")[0] - before
    external, _ = fields.at(particles.position)
    assert not change[rows[20:]].any() and not change[1::3].any()
    assert np.linalg.norm((change - external)[rows[:20]], axis=1).max() < BOUND * np.linalg.norm(a, axis=1).max()
    assert np.allclose(found_phi, phi[rows] - particles.mass[rows] / 0.02, rtol=BOUND)


@pytest.mark.simulated
def test_the_simulator_agrees_on_block_steps():
    """With the step of the direct engine on the CPU: the same lengths, and positions to the accuracy."""
    system = nbody.plummer(24, seed=2)
    on_gpu, scheme = moved("gpu-tree", "leapfrog_block", system, 1 / 64, 1, eta=0.01)
    on_cpu, expected = moved("cpu", "leapfrog_block", system, 1 / 64, 1, eta=0.01)
    assert scheme.report(on_gpu).bodies_per_step == expected.report(on_cpu).bodies_per_step > 24
    moves = np.abs(on_cpu.state.position - system.position).max()
    assert np.abs(on_gpu.state.values("position")[0] - on_cpu.state.position).max() < BOUND * moves
