"""Copies and pickles of a simulation go on with its bits."""

import copy
import multiprocessing
import pickle

import numpy as np
import pytest
from conftest import random_bodies

import nbody
from nbody import Simulation, Trajectory
from nbody.errors import InputError
from nbody.integrators import INTEGRATORS
from nbody.particles import Particles

KEYS = {"softening": 0.25, "engine": "cpu", "precision": "float64"}
PLANETS = Particles([1.0, 1e-3, 1e-4], [[0.0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0.0, 0, 0], [0, 1, 0], [0, 0.7, 0]])


def made(scheme, **more):
    """A run of a star and two planets by a scheme."""
    star = INTEGRATORS.load(scheme).facts.star
    softening = "none" if star else 0.01
    return Simulation(PLANETS, **KEYS | {"softening": softening, "integrator": {"scheme": scheme}, "dt": 0.01} | more)


def same_bits(one, other):
    """Whether two simulations have the same state, with all that their schemes keep."""
    mine, theirs = one.stepper.arrays(), other.stepper.arrays()
    return mine.keys() == theirs.keys() and all(np.array_equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.parametrize("scheme", INTEGRATORS)
def test_a_copy_and_a_pickle_go_on_with_the_same_bits(scheme):
    run = made(scheme)
    run.integrate(0.1)
    others = [run.copy(), copy.copy(run), copy.deepcopy(run), pickle.loads(pickle.dumps(run))]
    run.integrate(0.2)
    for each in others:
        assert each.time == 0.1
        each.integrate(0.2)
        assert same_bits(run, each) and each.steps_made == run.steps_made
        assert each.energies.initial == run.energies.initial


def test_a_copy_of_a_run_that_has_not_begun_is_one_too():
    run = made("leapfrog")
    other = pickle.loads(pickle.dumps(run))
    assert other.run(steps=3).energy_error == run.run(steps=3).energy_error
    assert same_bits(run, other)


def test_a_copy_has_no_output_and_its_original_keeps_its_own(tmp_path):
    run = Simulation(random_bodies(24), tmp_path / "run.h5", dt=0.0078125, every=2, **KEYS)
    run.run(steps=4)
    other = run.copy()
    assert other.output is None and other.run(steps=4).output is None
    run.run(steps=4)
    assert same_bits(run, other)
    other.record(tmp_path / "other.h5")
    other.run(steps=2)
    with Trajectory(tmp_path / "run.h5") as found, Trajectory(tmp_path / "other.h5") as branch:
        assert list(found.step) == [0, 2, 4, 6, 8] and list(branch.step) == [8, 10]


def test_a_copy_goes_on_after_a_merger():
    pair = Particles([1.0, 1.0, 1e-3], [[-1.0, 0, 0], [1.0, 0, 0], [5.0, 0, 0]], [[0.0, 0, 0], [0, 0, 0], [0, 0.6, 0]])
    run = Simulation(pair, dt=0.01, collisions={"rule": "merge", "radius": 0.2}, engine="cpu", precision="float64", end=3.0)
    run.integrate(2.5)
    assert run.state.count == 2
    other = pickle.loads(pickle.dumps(run))
    assert run.integrate(3.0).collision_energy == other.integrate(3.0).collision_energy
    assert same_bits(run, other)


def first_stays(pair):
    """An outcome of a collision: the second body is gone."""
    return pair.rows(np.array([0]))


def test_a_pickle_keeps_the_function_that_decides_collisions():
    pair = Particles([1.0, 1.0], [[-1.0, 0, 0], [1.0, 0, 0]], np.zeros((2, 3)), radius=[0.1, 0.1])
    run = Simulation(pair, integrator="ias15", softening="none", precision="float64", on_collision=first_stays)
    run.integrate(1.0)
    other = pickle.loads(pickle.dumps(run))
    for each in (run, other):
        each.integrate(3.0)
    assert run.state.count == 1
    assert same_bits(run, other)


def test_a_simulation_that_runs_is_not_copied():
    run = made("leapfrog")
    events = run.progress_events(steps=5)
    next(events)
    with pytest.raises(InputError, match="is running"):
        run.copy()
    events.close()


def later(run):
    """What another process makes of a simulation."""
    run.step(3)
    return run.particles.position, run


def test_other_processes_go_on_with_a_simulation():
    run = made("leapfrog")
    run.step(2)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        position, other = pool.apply(later, (run,))
    run.step(3)
    assert np.array_equal(position, run.particles.position) and same_bits(run, other)


def spring(x, y, z):
    return -x, -y, -z


@nbody.force(potential=lambda x, y, z: (x * x + y * y + z * z) / 2)
def decorated(x, y, z):
    return -x, -y, -z


def test_a_pickle_goes_on_in_a_process_that_does_not_know_its_force(monkeypatch):
    run = Simulation(PLANETS, dt=1 / 64, fields=[nbody.force(spring)], **KEYS)
    run.step()
    pickled = pickle.dumps(run)
    without = pickle.dumps(Simulation(PLANETS, dt=1 / 64, fields=[nbody.force(lambda x, y, z: (-x, -y, -z))], **KEYS))
    monkeypatch.setattr(nbody.fields.function, "_known", {})
    other = pickle.loads(pickled)
    for each in (run, other):
        each.step(4)
    assert np.array_equal(run.state.position, other.state.position)
    with pytest.raises(InputError, match="force 'lambda': is not in this process; define it with 'def' in a module"):
        pickle.loads(without)


@pytest.mark.parametrize("made", [decorated, nbody.force(lambda x, y, z: (-x, -y, -z))])
def test_a_pickle_keeps_forces_that_no_module_has_as_functions(made):
    run = Simulation(PLANETS, dt=1 / 64, fields=[made], **KEYS)
    other = pickle.loads(pickle.dumps(run))
    for each in (run, other):
        each.step(4)
    assert np.array_equal(run.state.position, other.state.position)
    if made is decorated:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert np.array_equal(pool.apply_async(later, (run,)).get(120)[0], later(other)[0])
