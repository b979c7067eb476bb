"""The tree on the CPU: error distributions against direct sums in float64, momentum, reproducibility, runs.

Kernels take seconds to compile, so the tests share three variants: float64 without softening, float32 with Plummer
softening (forces and potential), and a spline in two dimensions.
"""

import os
import signal

import numpy as np
import pytest

from nbody import Scenario, Simulation, Trajectory
from nbody.cli import main
from nbody.errors import InputError
from nbody.forces import resolve
from nbody.forces.reference import ReferenceEngine
from nbody.forces.tree.cpu_engine import CpuTreeEngine
from nbody.forces.tree.options import TreeOptions, settings
from nbody.forces.tree.tree import Tree
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run.resume import resume
from nbody.state import Want
from nbody.trajectory import first_difference

N = 3000
ACCURACY = 1e-3
NEWTON = Gravity(1.0, 3, "none")
SOFTENED = Gravity(2.0, 3, "plummer", 0.05)


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


def exact(law, particles, want=Want.ACCELERATION):
    engine = ReferenceEngine(law, "float64")
    state = engine.load(particles)
    engine.evaluate(state, want)
    return state.forces()


def evaluated(law, particles, precision="float64", want=Want.ACCELERATION, targets=None, **options):
    engine = CpuTreeEngine(law, precision, TreeOptions(**options))
    state = engine.load(particles)
    engine.evaluate(state, want, targets)
    return state


def errors(law, particles, precision="float64", **options):
    """Relative errors of the accelerations."""
    a, expected = evaluated(law, particles, precision, **options).forces()[0], exact(law, particles)[0]
    return np.linalg.norm(a - expected, axis=1) / np.linalg.norm(expected, axis=1)


def disc(random):
    return random.normal(size=(N, 3)) * [1, 1, 0.01]


def two_groups(random):
    return sphere() + np.where(np.arange(N) % 2, 1000.0, 0.0)[:, None]


def line(random):
    return random.uniform(size=(N, 1)) * [1.0, 0, 0]


def partly_coincident(random):
    return np.concatenate([sphere(N - 300), np.repeat(sphere(1, 9), 300, axis=0)])


PLACES = {
    "Plummer's sphere": lambda random: sphere(),
    "a uniform cube": lambda random: random.uniform(size=(N, 3)),
    "a thin disc": disc,
    "two distant groups": two_groups,
    "a line": line,
    "coincident bodies": partly_coincident,
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_the_median_error_is_the_accuracy_that_was_asked_for(place):
    """The criterion bounds the error of each cell by 2e-3 |a|, so that the errors of bodies scatter little: 99 % below
    ten times the accuracy. (On a line forces cancel on some bodies, so the largest relative error has no bound there.)"""
    found = errors(NEWTON, bodies(place(np.random.default_rng(3))), accuracy=ACCURACY)
    assert np.median(found) < ACCURACY and np.quantile(found, 0.99) < 10 * ACCURACY
    if place is not line:
        assert found.max() < 50 * ACCURACY


def test_masses_may_differ_by_twelve_decades_and_be_zero():
    random = np.random.default_rng(4)
    heavy, mixed = np.full(N, 1.0 / N), 10 ** random.uniform(-12, 0, N)
    heavy[7] = 1.0
    mixed[::3] = 0.0
    for mass in (heavy, mixed):
        found = errors(NEWTON, bodies(sphere(), mass), accuracy=ACCURACY)
        assert np.median(found) < ACCURACY and np.quantile(found, 0.99) < 10 * ACCURACY


def test_one_body_far_away_takes_no_accuracy_from_the_others():
    position = sphere()
    position[3] = 1e30
    found = errors(NEWTON, bodies(position), accuracy=ACCURACY)
    assert np.quantile(found, 0.99) < 10 * ACCURACY


@pytest.mark.parametrize("count", [1, 2, 33])
def test_few_bodies_are_summed_directly(count):
    particles = bodies(sphere(count))
    a = evaluated(NEWTON, particles).forces()[0]
    assert a == pytest.approx(exact(NEWTON, particles)[0], rel=1e-13, abs=1e-15)


def test_bodies_in_one_place_exert_no_force_on_each_other():
    assert not evaluated(NEWTON, bodies(np.ones((200, 3)))).forces()[0].any()


def test_a_smaller_accuracy_gives_smaller_errors():
    particles = bodies(sphere())
    coarse, fine = (np.median(errors(NEWTON, particles, accuracy=a, order=3)) for a in (1e-2, 1e-3))
    assert fine < 0.5 * coarse


def test_float32_with_softening_and_the_potential():
    particles = bodies(sphere())
    state = evaluated(SOFTENED, particles, "float32", Want.POTENTIAL, accuracy=ACCURACY)
    (a, phi), (expected, potential) = state.forces(), exact(SOFTENED, particles, Want.POTENTIAL)
    found = np.linalg.norm(a - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert np.median(found) < ACCURACY and np.quantile(found, 0.99) < 10 * ACCURACY
    assert np.median(np.abs(phi / potential - 1)) < ACCURACY


def test_in_two_dimensions_cells_within_the_spline_are_opened():
    """A spline of 2.8 · 0.3 is wider than most cells; expansions know only 1/r."""
    law = Gravity(1.0, 2, "spline", 0.3)
    particles = bodies(np.random.default_rng(6).normal(size=(N, 2)) * 4)
    found = errors(law, particles, accuracy=5e-3, order=2)
    assert np.median(found) < 1e-2 and np.quantile(found, 0.99) < 0.1


def test_momentum_is_conserved_to_rounding():
    particles = bodies(sphere(), np.random.default_rng(1).uniform(size=N))
    a = evaluated(NEWTON, particles).forces()[0]
    assert np.linalg.norm(particles.mass @ a) < 1e-14 * (particles.mass @ np.linalg.norm(a, axis=1))


def test_the_bits_are_the_same_again_and_with_one_and_two_threads():
    particles = bodies(sphere())
    found = [Tree(particles.position, particles.mass, NEWTON, workers=workers).accelerations() for workers in (1, 2, 2)]
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[1], found[2])


def test_a_tree_answers_for_its_bodies_and_for_any_points():
    particles, points = bodies(sphere()), sphere(100, 8) * 2
    tree = Tree(particles.position, particles.mass, NEWTON)
    together = Particles(
        np.concatenate([particles.mass, np.zeros(100)]),
        np.concatenate([particles.position, points]),
        np.zeros((N + 100, 3)),
    )
    expected = exact(NEWTON, together)[0][N:]
    found = np.linalg.norm(tree.accelerations(at=points) - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert np.median(found) < ACCURACY and found.max() < 20 * ACCURACY


def test_forces_on_some_bodies():
    particles, targets = bodies(sphere()), np.arange(5, N, 100)
    state = evaluated(NEWTON, particles, targets=targets)
    expected = exact(NEWTON, particles)[0][targets]
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
    advance = simulation._advance

    def advance_and_interrupt(*arguments):
        made = advance(*arguments)
        if simulation.step >= 6:
            os.kill(os.getpid(), signal.SIGINT)
        return made

    simulation._advance = advance_and_interrupt
    simulation.run()
    resume(broken).run()
    assert first_difference(whole, broken) is None


def test_the_command_line_runs_a_tree(tmp_path, capsys):
    path = tmp_path / "run.h5"
    scenario = tmp_path / "cluster.yaml"
    scenario.write_text(
        SCENARIO.replace("cpu-tree", "tree" if resolve("tree", "float32", 1)[0] == "cpu-tree" else "cpu-tree")
    )
    assert main(["run", str(scenario), "--output", str(path), "--set", "engine.accuracy=2e-3"]) == 0
    with Trajectory(path) as run:
        assert run.complete and run.resolved["engine"]["accuracy"] == 2e-3
    assert " bodies/s, excluding" in capsys.readouterr().out


def test_an_accuracy_beyond_the_precision_is_refused_by_one_line():
    with pytest.raises(InputError, match="float32 has no accuracy of 1e-09"):
        settings(TreeOptions(accuracy=1e-9), "float32")
