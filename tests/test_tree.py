"""The tree on the CPU: error distributions against direct sums in float64, momentum, reproducibility, runs.

A variant of the kernels takes 20 s to compile. So all tests share one, float32 with Plummer softening (forces and
potential); ``pytest -m campaign`` repeats what depends on the arithmetic in float64 without softening, and in 2-D.
"""

import numpy as np
import pytest
from pretended_team import run_ranks
from stepping import interrupt_at, interrupted

import nbody
from nbody import Scenario, Simulation, Trajectory
from nbody.cli import main
from nbody.errors import InputError
from nbody.forces.choose import choose
from nbody.forces.engine import ROUNDOFF, rounding_bound
from nbody.forces.problem import Problem
from nbody.forces.reference import ReferenceEngine
from nbody.forces.tree.engine_cpu import CpuTreeEngine
from nbody.forces.tree.octree.cells_cpu import FEW, cells_of
from nbody.forces.tree.octree.order_cpu import root_box, sorted_bodies
from nbody.forces.tree.options import TreeOptions
from nbody.forces.tree.tree_cpu import HostTree
from nbody.law import Gravity
from nbody.parallel import ALONE
from nbody.particles import Particles
from nbody.run.resume import resume
from nbody.state import Outputs
from nbody.trajectory import first_difference

N = 3000
ACCURACY = 1e-3
NEWTON = Gravity(1.0, 3, "none")
SOFTENED = Gravity(2.0, 3, "plummer", 0.05)

each_arithmetic = pytest.mark.parametrize(
    ("law", "precision"),
    [
        pytest.param(SOFTENED, "float32", id="float32, softened"),
        pytest.param(NEWTON, "float64", id="float64, not softened", marks=pytest.mark.campaign),
    ],
)


def sphere(count=N, seed=1):
    """Positions in Plummer's sphere of scale length 1."""
    random = np.random.default_rng(seed)
    direction = random.normal(size=(count, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    return direction / np.sqrt(random.uniform(0, 0.999, count) ** (-2 / 3) - 1)[:, None]


def bodies(position, mass=None):
    position = np.asarray(position, float)
    mass = np.full(len(position), 1 / len(position)) if mass is None else np.asarray(mass, float)
    return Particles(mass, position, np.zeros_like(position))


def exact(law, particles, outputs=Outputs.ACCELERATION):
    engine = ReferenceEngine(law, "float64")
    state = engine.load(particles)
    engine.evaluate(state, outputs)
    return state.values("acceleration", "potential")


def evaluated(law, particles, precision="float32", outputs=Outputs.ACCELERATION, targets=None, **options):
    engine = CpuTreeEngine(law, precision, TreeOptions(**options))
    state = engine.load(particles)
    engine.evaluate(state, outputs, targets)
    return state


def errors(law, particles, precision="float32", **options):
    """Relative errors of the accelerations."""
    a, expected = evaluated(law, particles, precision, **options).values("acceleration")[0], exact(law, particles)[0]
    return np.linalg.norm(a - expected, axis=1) / np.linalg.norm(expected, axis=1)


def disc(random):
    return random.normal(size=(N, 3)) * [1, 1, 0.01]


def two_groups(random):
    return sphere() + np.where(np.arange(N) % 2, 1000.0, 0.0)[:, None]


def partly_coincident(random):
    return np.concatenate([sphere(N - 300), np.repeat(sphere(1, 9), 300, axis=0)])


PLACES = {
    "Plummer's sphere": lambda random: sphere(),
    "a uniform cube": lambda random: random.uniform(size=(N, 3)),
    "a thin disc": disc,
    "two distant groups": two_groups,
    "coincident bodies": partly_coincident,
}


@each_arithmetic
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_the_median_error_is_the_accuracy_that_was_asked_for(place, law, precision):
    """The criterion bounds the error of each cell by 2e-3 |a|, so that the errors of bodies scatter little: 99 % below
    ten times the accuracy."""
    found = errors(law, bodies(place(np.random.default_rng(3))), precision, accuracy=ACCURACY)
    assert np.median(found) < ACCURACY and np.quantile(found, 0.99) < 10 * ACCURACY
    assert found.max() < 50 * ACCURACY


@each_arithmetic
def test_on_a_line_where_forces_cancel_errors_are_small_against_a_typical_force(law, precision):
    particles = bodies(np.random.default_rng(3).uniform(size=(N, 1)) * [1.0, 0, 0])
    a, expected = evaluated(law, particles, precision).values("acceleration")[0], exact(law, particles)[0]
    size = np.linalg.norm(expected, axis=1)
    found = np.linalg.norm(a - expected, axis=1) / np.maximum(size, np.median(size))
    assert np.median(found) < ACCURACY and np.quantile(found, 0.99) < 10 * ACCURACY


@each_arithmetic
def test_masses_may_differ_by_twelve_decades_and_be_zero(law, precision):
    random = np.random.default_rng(4)
    heavy, mixed = np.full(N, 1.0 / N), 10 ** random.uniform(-12, 0, N)
    heavy[7] = 1.0
    mixed[::3] = 0.0
    for mass in (heavy, mixed):
        found = errors(law, bodies(sphere(), mass), precision, accuracy=ACCURACY)
        assert np.median(found) < ACCURACY and np.quantile(found, 0.99) < 10 * ACCURACY


@each_arithmetic
@pytest.mark.parametrize("distance", [1e6, 1e30])
def test_one_body_far_away_takes_no_accuracy_from_the_others(distance, law, precision):
    """The root cell is cut at 1024 times the size of the bulk, so the others keep the resolution of their keys."""
    position = sphere()
    position[3] = distance
    found = np.delete(errors(law, bodies(position), precision, accuracy=ACCURACY), 3)
    assert np.median(found) < ACCURACY and np.quantile(found, 0.99) < 10 * ACCURACY
    assert found.max() < 50 * ACCURACY


@each_arithmetic
@pytest.mark.parametrize("count", [1, 2, 33])
def test_few_bodies_are_summed_directly(count, law, precision):
    particles = bodies(sphere(count))
    a, expected = evaluated(law, particles, precision).values("acceleration")[0], exact(law, particles)[0]
    bound = rounding_bound(precision, count)
    assert np.all(np.linalg.norm(a - expected, axis=1) <= bound * np.linalg.norm(expected, axis=1))


@each_arithmetic
def test_bodies_in_one_place_exert_no_force_on_each_other(law, precision):
    assert not evaluated(law, bodies(np.ones((200, 3))), precision).values("acceleration")[0].any()


@each_arithmetic
def test_the_potential_in_the_place_of_another_body_is_that_of_every_engine(law, precision):
    """Minus infinity without softening, -G m/ε with it; never an infinity elsewhere."""
    position = sphere().astype(np.float32)  # the same places in every precision
    position[200] = position[100]
    particles, points = bodies(position), position[[5, 100]]
    expected = exact(law, particles, Outputs.POTENTIAL)[1]
    tree = nbody.Tree(position, particles.mass, G=law.G, softening=law.softening, length=law.length, precision=precision)
    found, at = tree.potential(), tree.potential(at=points)
    assert np.array_equal(np.isinf(found), np.isinf(expected)) and np.isinf(found).sum() == (0 if law is SOFTENED else 2)
    finite = np.isfinite(expected)
    assert np.median(np.abs(found / np.where(finite, expected, 1.0) - 1)[finite]) < ACCURACY
    assert np.all(np.isneginf(at)) if law is NEWTON else np.all(np.abs(at) > np.abs(found[[5, 100]]))


@each_arithmetic
@pytest.mark.parametrize("share", [0.05, 0.8])
def test_bodies_in_one_place_keep_the_accuracy_of_their_own_and_of_all_bodies(share, law, precision):
    """They are one target of no size, with one error, and the correction of the momentum divides it among all bodies. An odd
    moment of a pair of bodies is zero, so that it must not be the only one in the estimate for such a target. If most bodies
    are there, the median is this one error."""
    for seed in range(5):
        position = sphere(seed=20 + seed)
        position[round((1 - share) * N) :] = position[0]
        found = errors(law, bodies(position.astype(np.float32)), precision, accuracy=1e-4, order=3)
        assert np.median(found) < 1e-4 and found[-1] < 3e-4
        assert np.quantile(found, 0.99) < 10e-4


def test_a_smaller_accuracy_gives_smaller_errors():
    particles = bodies(sphere())
    coarse, fine = (np.median(errors(SOFTENED, particles, accuracy=a, order=3)) for a in (1e-2, 1e-3))
    assert fine < 0.5 * coarse


def test_float32_with_softening_and_the_potential():
    particles = bodies(sphere())
    state = evaluated(SOFTENED, particles, "float32", Outputs.POTENTIAL, accuracy=ACCURACY)
    (a, phi), (expected, potential) = (
        state.values("acceleration", "potential"),
        exact(SOFTENED, particles, Outputs.POTENTIAL),
    )
    found = np.linalg.norm(a - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert np.median(found) < ACCURACY and np.quantile(found, 0.99) < 10 * ACCURACY
    assert np.median(np.abs(phi / potential - 1)) < ACCURACY


@pytest.mark.campaign
def test_in_two_dimensions_cells_within_the_spline_are_opened():
    """A spline of 2.8 · 0.3 is wider than most cells; expansions know only 1/r."""
    law = Gravity(1.0, 2, "spline", 0.3)
    particles = bodies(np.random.default_rng(6).normal(size=(N, 2)) * 4)
    found = errors(law, particles, "float64", accuracy=5e-3, order=2)
    assert np.median(found) < 1e-2 and np.quantile(found, 0.99) < 0.1


@each_arithmetic
def test_momentum_is_conserved_to_rounding(law, precision):
    """To twice the roundoff of a component; the sum itself is rounded in float64. (The tree's net force is 7e-6.)"""
    particles = bodies(sphere(), np.random.default_rng(1).uniform(size=N))
    a = evaluated(law, particles, precision).values("acceleration")[0].astype(float)
    bound = max(2 * ROUNDOFF[precision], 1e-14)
    assert np.linalg.norm(particles.mass @ a) < bound * (particles.mass @ np.linalg.norm(a, axis=1))


def test_the_bits_and_the_work_are_the_same_again_and_with_any_number_of_workers():
    particles = bodies(sphere())
    found = []
    for workers in (1, 2, 2, 5):
        tree = HostTree(particles.position, particles.mass, SOFTENED, "float32", workers=workers)
        found.append((tree.accelerations().tobytes(), tree.work))
    assert len(set(found)) == 1


def test_children_divide_the_bodies_of_their_cell_and_leaves_are_small():
    """So many bodies that threads share the sort and the wide levels; their keys are in the order of the curve."""
    position = np.random.default_rng(3).normal(size=(40_000, 3)).astype(np.float32)
    keys, order = sorted_bodies(position, root_box(position)[0])
    cells = cells_of(keys, 16, 3)
    first, count = cells.first.astype(int), cells.count.astype(int)
    assert np.array_equal(np.sort(order), np.arange(40_000)) and (keys[1:] >= keys[:-1]).all()
    assert np.diff(cells.levels).max() > FEW and (count[cells.children == 0] <= 16).all()
    for cell in np.flatnonzero(cells.children):
        below = np.arange(cells.child[cell], cells.child[cell] + cells.children[cell])
        assert len(below) > 1 and (cells.parent[below] == cell).all() and first[below[0]] == first[cell]
        assert (first[below[1:]] == (first + count)[below[:-1]]).all() and count[below].sum() == count[cell]


def test_a_tree_answers_for_its_bodies_and_for_any_points():
    particles, points = bodies(sphere()), sphere(100, 8) * 2
    tree = HostTree(particles.position, particles.mass, SOFTENED, "float32")
    together = Particles(
        np.concatenate([particles.mass, np.zeros(100)]),
        np.concatenate([particles.position, points]),
        np.zeros((N + 100, 3)),
    )
    expected = exact(SOFTENED, together)[0][N:]
    found = np.linalg.norm(tree.accelerations(at=points) - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert np.median(found) < ACCURACY and found.max() < 20 * ACCURACY


def test_forces_on_some_bodies():
    particles, targets = bodies(sphere()), np.arange(5, N, 100)
    state = evaluated(SOFTENED, particles, targets=targets)
    expected = exact(SOFTENED, particles)[0][targets]
    found = np.linalg.norm(state.acceleration[targets] - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert np.median(found) < ACCURACY
    others = np.setdiff1d(np.arange(N), targets)
    assert not state.acceleration[others].any()


SCENARIO = """
initial: {generator: plummer, particles: 2000, seed: 5}
gravity: {G: 1, softening: plummer, length: 0.05}
integrator: {scheme: leapfrog, dt: 0.0078125, steps: 12}
engine: {name: cpu-tree, accuracy: 1e-3}
precision: float32
record: {every: 4}
"""


def test_a_run_that_was_stopped_ends_with_the_bits_of_one_that_was_not(tmp_path):
    """The size of each acceleration is in the checkpoint: a resumed run opens the same cells."""
    whole, broken = tmp_path / "whole.h5", tmp_path / "broken.h5"
    Simulation(Scenario.from_text(SCENARIO, "test.yaml"), whole).run()
    simulation = Simulation(Scenario.from_text(SCENARIO, "test.yaml"), broken)
    interrupt_at(simulation, 6)
    interrupted(simulation.run)
    resume(broken).run()
    assert first_difference(whole, broken) is None


WITHIN = (0.1, 0.25, 0.5, 0.75, 0.9)


def recorded(path, scenario, engine):
    """The largest relative energy error of a run, its relative change of momentum, and the last frame's radii with the
    shares ``WITHIN`` of the bodies inside."""
    Simulation(scenario.override(engine=engine), path).run()
    with Trajectory(path) as run:
        assert run.complete  # a signal ends a run early, without an error
        energy, mass = run.observable("total_energy"), np.asarray(run.mass, float)
        first, last = (np.asarray(run[k].velocity, float) for k in (0, -1))
        position = np.asarray(run[-1].position, float)
    momentum = np.linalg.norm(mass @ (last - first)) / (mass @ np.linalg.norm(last, axis=1))
    radii = np.linalg.norm(position - np.median(position, axis=0), axis=1)
    return np.abs(energy / energy[0] - 1).max(), momentum, np.quantile(radii, WITHIN)


@pytest.mark.parametrize(
    ("name", "length", "particles", "steps"),
    [
        ("disc_galaxy", 0.1, 1500, 40),
        pytest.param("disc_galaxy", 0.1, 8000, 1000, marks=pytest.mark.campaign),
        pytest.param("galaxy_collision", 0.12, 8000, 1000, marks=pytest.mark.campaign),
    ],
)
def test_a_galaxy_run_by_a_tree_is_that_by_direct_sums(name, length, particles, steps, tmp_path):
    """The energy errors, which include the tree's, differ by less than the accuracy. Momentum changes by the rounding of one
    component per step. Radii with n bodies inside differ first by the errors of the forces, which add up in the worst case;
    after many close encounters the two runs are two realizations of one galaxy, whose radii differ by chance, 1/√n."""
    keys = [f"gravity.length={length}", f"record.every={steps // 10}"]
    scenario = Scenario.load(name).override(keys, particles=particles, steps=steps)
    direct = recorded(tmp_path / "direct.h5", scenario, "cpu")
    tree = recorded(tmp_path / "tree.h5", scenario, {"name": "cpu-tree", "accuracy": ACCURACY})
    assert tree[0] < direct[0] + ACCURACY
    assert tree[1] < 2 * ROUNDOFF["float32"] * np.sqrt(steps)
    change = np.minimum(steps * ACCURACY, 3 / np.sqrt(np.array(WITHIN) * particles))
    assert np.all(np.abs(tree[2] / direct[2] - 1) < change)


def test_the_command_line_runs_a_tree(tmp_path, capsys):
    path = tmp_path / "run.h5"
    scenario = tmp_path / "cluster.yaml"
    scenario.write_text(
        SCENARIO.replace(
            "cpu-tree", "tree" if choose("tree", Problem(Gravity(), "float32")).name == "cpu-tree" else "cpu-tree"
        )
    )
    assert main(["run", str(scenario), "--output", str(path), "--set", "engine.accuracy=2e-3"]) == 0
    with Trajectory(path) as run:
        assert run.complete and run.resolved["engine"]["accuracy"] == 2e-3
    assert " bodies/s, excluding" in capsys.readouterr().out


def test_an_accuracy_beyond_the_precision_is_refused():
    with pytest.raises(InputError, match="an accuracy of 2e-06 at best in float32"):
        CpuTreeEngine(Gravity(), "float32", TreeOptions(accuracy=1e-9))


def test_ranks_that_divide_the_targets_have_the_bits_of_one_process(monkeypatch):
    """Of all bodies, and of every seventh; the ranks are pretended."""
    monkeypatch.setattr("nbody.parallel.segments.WORTH", 0)
    particles = bodies(sphere())
    some = np.arange(N) % 7 == 0

    def fields(team):
        tree = HostTree(particles.position, particles.mass, SOFTENED, "float32", TreeOptions(accuracy=ACCURACY), team=team)
        scale = tree.scale()
        found = tree.field(False, scale), tree.field(False, np.where(some, scale, np.float32(np.inf)), active=some)
        return [each.tobytes() for each in found]

    for ranks in (2, 3, 5):
        assert run_ranks(ranks, fields) == ranks * [fields(ALONE)]
