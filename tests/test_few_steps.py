"""A few bodies on the CPU: their forces, and their steps in one compiled call, are those of the law and of single moves."""

import numpy as np
import pytest
from conftest import random_bodies, sample

from nbody import Particles, Simulation, Trajectory
from nbody.compute import SIMULATED
from nbody.errors import InputError, RunFailed
from nbody.forces.api import accelerations
from nbody.forces.direct.cpu import FEW
from nbody.forces.reference import direct_sum
from nbody.integrators import INTEGRATORS, adaptive
from nbody.integrators.schemes import table
from nbody.integrators.schemes.table import MoveTable
from nbody.law import Gravity

LAWS = [("plummer", 0.05), ("spline", 0.3), ("cutoff", 0.3), ("none", 0.0)]
TABLES = [name for name in INTEGRATORS if issubclass(INTEGRATORS.load(name), MoveTable)]

pytestmark = pytest.mark.skipif(SIMULATED, reason="needs no simulator")


def flat(bodies, dimensions):
    """The bodies in the plane, or as they are."""
    return Particles(bodies.mass, bodies.position[:, :dimensions], bodies.velocity[:, :dimensions])


PRECISIONS = "float32", "float64"
IN_SPACE = [(*law, 3, precision) for law in LAWS for precision in PRECISIONS]
IN_THE_PLANE = [(*law, 2, PRECISIONS[k % 2]) for k, law in [*enumerate(LAWS), *enumerate(LAWS, 1)]]


# In the plane each law in one precision, and in a campaign in both: a kernel takes a second to compile.
@pytest.mark.parametrize("softening,length,dimensions,precision", [*IN_SPACE, *sample(IN_THE_PLANE, 4)])
def test_forces_of_few_bodies_are_those_of_the_law(softening, length, dimensions, precision):
    """Two of them have no mass, and one of these is in the place of a body with mass."""
    law = Gravity(G=0.7, dimensions=dimensions, softening=softening, length=length)
    for count in (2, 5, FEW):
        bodies = flat(random_bodies(count), dimensions)
        position, mass = bodies.position.astype(precision).astype(float), bodies.mass.astype(precision).astype(float)
        mass[-2 if count > 2 else -1 :] = 0.0
        if count > 2:
            position[-1] = position[0]
        expected, _ = direct_sum(position, mass, law)
        massive = mass > 0
        _, expected_phi = direct_sum(position[massive], mass[massive], law)
        a, phi = accelerations(
            position, mass, G=0.7, softening=softening, length=length, engine="cpu", precision=precision, potential=True
        )
        bound = (100 if softening == "spline" else 8) * np.finfo(precision).eps  # a spline's polynomials cancel
        assert np.abs(a - expected).max() <= bound * np.abs(expected).max()
        assert (np.abs(phi[massive] - expected_phi) <= bound * np.abs(expected_phi)).all()
        assert count == 2 or np.isneginf(phi[-1]) == (softening == "none")


@pytest.mark.parametrize("mass,potential", [([1.0, 1.0], [-np.inf, -np.inf]), ([1.0, 0.0], [0.0, -np.inf])])
def test_coincident_bodies_exert_no_force_and_only_mass_binds(mass, potential):
    a, phi = accelerations(np.ones((2, 3)), mass, engine="cpu", potential=True)
    assert not a.any() and phi.tolist() == potential


def moved(scheme, bodies, precision, divisions, **values):
    simulation = Simulation(bodies, dt=0.01, integrator=scheme, engine="cpu", precision=precision, **values)
    simulation.stepper.integrator.start(simulation.stepper.motion)
    for steps in divisions:
        simulation.stepper.integrator.advance(simulation.stepper.motion, steps)
    return simulation.stepper.arrays() | {"time": np.array(simulation.time)}


@pytest.mark.parametrize("scheme", [*TABLES, "leapfrog_adaptive", "hermite4", {"scheme": "hermite4", "eta": 0.02}])
def test_one_compiled_call_has_the_bits_of_single_moves(scheme, monkeypatch):
    rng = np.random.default_rng(4)
    for precision, dimensions in (("float64", 3), ("float32", 2)):
        bodies = flat(random_bodies(7), dimensions)
        given = {"softening": "plummer", "length": 0.1}
        ends = [moved(scheme, bodies, precision, sizes, **given) for sizes in ([40], rng.multinomial(40, [1 / 9] * 9))]
        with monkeypatch.context() as patch:
            patch.setattr(table, "in_one_call_or_fields", lambda motion: False)
            patch.setattr(adaptive, "in_one_call", lambda motion: False)
            ends.append(moved(scheme, bodies, precision, [40], **given))
        for end in ends[1:]:
            for name, values in ends[0].items():
                np.testing.assert_array_equal(end[name], values, err_msg=name)


FIELDS = [
    {"field": "rotating_bar", "mass": 2.0, "a": 1.1, "c": 0.2, "omega": 0.6},
    {"field": "plummer", "mass": 3.0, "b": 0.7, "centre": [0.1, 0.2, 0.0]},
    {"field": "plummer", "mass": 1.0, "b": 0.3},
]


@pytest.mark.parametrize("scheme", ["leapfrog", "leapfrog_dkd", "yoshida4", "taylor"])
def test_fields_in_one_compiled_call_have_the_bits_of_single_moves(scheme, monkeypatch):
    """At the time of each force, though one of them turns."""
    for precision, dimensions, fields in (("float64", 3, FIELDS), ("float32", 2, FIELDS[1:])):
        bodies = flat(random_bodies(5), dimensions)
        bodies.time, bodies.step = 0.7, 3
        ends = [moved(scheme, bodies, precision, sizes, fields=fields) for sizes in ([30], [7, 1, 22])]
        with monkeypatch.context() as patch:
            patch.setattr(table, "in_one_call_or_fields", lambda motion: False)
            ends.append(moved(scheme, bodies, precision, [30], fields=fields))
        for end in ends[1:]:
            for name, values in ends[0].items():
                np.testing.assert_array_equal(end[name], values, err_msg=name)


def small(**values):
    given = {"dt": 0.01, "softening": "plummer", "length": 0.1, "engine": "cpu", "precision": "float64"}
    return Simulation(random_bodies(6), **given | values)


@pytest.mark.parametrize("scheme", ["leapfrog", "leapfrog_dkd", "yoshida4", "hermite4", "leapfrog_adaptive"])
def test_steps_one_by_one_are_those_of_a_run(scheme):
    """With their time, particles and energies; and an energy that is asked for changes nothing."""
    made, run = small(integrator=scheme), small(integrator=scheme)
    for n in (1, 1, 5, 0, 3):
        made.step(n)
        assert np.isfinite(made.energies.latest)
    made.step()
    summary = run.run(steps=11)
    assert (made.steps_made, made.time) == (run.steps_made, run.time) and made.steps_made == 11
    assert made.time == 0.11 or scheme == "leapfrog_adaptive"
    for name in ("position", "velocity"):
        np.testing.assert_array_equal(getattr(made.particles, name), getattr(run.particles, name))
    assert made.energies.initial == summary.energy_initial and made.energies.latest == summary.energy_final
    assert made.energies == run.energies
    made.step(2)
    assert made.run(steps=1).step == 14


def test_steps_of_a_recorded_simulation_are_in_its_file(tmp_path):
    simulation = small()
    simulation.step(3)
    simulation.record(tmp_path / "run.h5")
    simulation.step(2)
    with Trajectory(tmp_path / "run.h5") as run:
        assert list(run.step) == [3, 4, 5]


def test_a_small_run_without_an_output_starts_no_thread_and_does_not_ask_for_the_free_memory(monkeypatch):
    """Both take longer than all the rest of it."""

    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr("nbody.memory.memory_available", refuse)
    monkeypatch.setattr("threading.Thread.start", refuse)
    assert small().run(steps=2).frames == 2


def test_a_run_that_records_nothing_has_the_bits_of_one_that_records(tmp_path):
    ends = [small(every=3), small(every=3), small(every=3)]
    ends[1].record(tmp_path / "run.h5")
    frames = [ends[0].run(steps=40).frames, ends[1].run(steps=40).frames]
    ends[2].run(steps=40, callback=lambda now: ends[2].energies, every=7)
    assert frames == [2, 15]
    for end in ends[1:]:
        np.testing.assert_array_equal(end.particles.position, ends[0].particles.position)


def test_numbers_that_are_no_longer_finite_stop_a_run_that_records_nothing():
    simulation = small()
    simulation.step()
    simulation.arrays["position"][2, 0] = np.nan
    simulation.state.invalidate()
    simulation.step()
    with pytest.raises(RunFailed, match="step 2"):
        _ = simulation.energies
    with pytest.raises(RunFailed):
        simulation.run(steps=3)


def test_an_energy_limit_is_checked_though_nothing_is_recorded():
    bodies = Particles([1.0, 1.0], [[-1.0, 0, 0], [1.0, 0, 0]], [[0.0, 0.01, 0], [0.0, -0.01, 0]])
    simulation = Simulation(
        bodies, dt=0.1, engine="cpu", precision="float64", on_energy_error={"limit": 0.1, "action": "stop"}
    )
    with pytest.raises(RunFailed, match="energy error"):
        simulation.run(steps=1000)
    assert simulation.steps_made < 1000


def test_the_number_of_steps_is_not_called_step():
    simulation = small()
    for use in (lambda now: now == 0, lambda now: now + 1, lambda now: f"{now}", int, range):
        with pytest.raises(InputError, match="steps_made"):
            use(simulation.step)
    with pytest.raises(InputError, match="zero or more"):
        simulation.step(-1)


def test_adaptive_hermite_without_a_force_that_limits_its_step_stops_with_the_reason():
    """Two bodies that fall into each other's cutoff, where force and jerk vanish: Aarseth's step becomes zero."""
    bodies = Particles([1.0, 1.0], [[-0.5, 0, 0], [0.5, 0, 0]], [[0, 0.3, 0], [0, -0.3, 0]])
    scheme = {"scheme": "hermite4", "eta": 0.02}
    simulation = Simulation(bodies, softening="cutoff:0.2", integrator=scheme, precision="float64")
    with pytest.raises(RunFailed, match="step"):
        simulation.integrate(20.0)
