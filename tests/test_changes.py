"""Bodies that are added, removed and changed between steps: they count at once, and the energy that they add is booked."""

import numpy as np
import pytest

from nbody import Particles, Simulation, plummer
from nbody.errors import InputError

EXACT = {"engine": "cpu", "precision": "float64", "softening": 0.05}


def simulation(output=None, scheme="leapfrog", particles=None, **more):
    bodies = plummer(24, seed=1) if particles is None else particles
    values = {"integrator": {"scheme": scheme, "dt": 1 / 64}, **EXACT, **more}
    return Simulation(bodies, output=output, notify=lambda line: None, **values)


def change_all(run):
    """One change of each kind. Returns the id of the body that was added."""
    run.change([3, 5], mass=[0.01, 0.02])
    (new,) = run.add(mass=0.05, position=[1, 0.5, 0], velocity=[0, 0.3, 0])
    run.remove([7, 0])
    run.particles.velocity[2] *= 0.5
    return new


# --- The state ---


def test_a_run_goes_on_as_one_that_begins_with_the_changed_bodies():
    run = simulation()
    run.step(20)
    new = change_all(run)
    now = run.particles
    assert now.id.tolist() == [k for k in range(24) if k not in (0, 7)] + [new] and new == 24
    other = simulation(particles=Particles(now.mass, now.position, now.velocity))
    run.step(30)
    other.step(30)
    assert (run.particles.position == other.particles.position).all()
    assert (run.particles.velocity == other.particles.velocity).all()


@pytest.mark.parametrize("scheme", ["leapfrog", "hermite4", "hermite4_block", "ias15", "leapfrog_adaptive"])
def test_no_change_changes_the_energy_error(scheme):
    run = simulation(scheme=scheme)
    run.step(20)
    before = run.energies
    change_all(run)
    after = run.energies
    # Rounding of sums over 24 bodies; between blocks bodies are predicted, and a change lets all of them make a step.
    assert after.latest == pytest.approx(before.latest, abs=1e-7 if "block" in scheme else 1e-13)
    run.step(20)
    assert abs(run.energies.error) < max(1e-5, 4 * abs(before.error))


def test_what_is_written_into_the_particles_counts():
    written, called = simulation(), simulation()
    for run in (written, called):
        run.step(3)
    written.particles.mass[:10] *= 0.5
    now = written.particles
    now.position = now.position + np.array([1.0, 0, 0])
    called.change(called.particles.id[:10], mass=0.5 * called.particles.mass[:10])
    called.change(position=called.particles.position + np.array([1, 0, 0]))
    for run in (written, called):
        run.step(3)
    assert (written.particles.position == called.particles.position).all()
    with pytest.raises(ValueError, match="read-only"):
        now.mass[0] = 1.0  # the bodies of an earlier moment


def test_a_callback_may_change_the_bodies():
    def heavier(particles):
        particles.mass[0] *= 1.1

    run = simulation()
    first = run.particles.mass[0]
    run.run(10, callback=heavier, every=5)
    assert run.particles.mass[0] == pytest.approx(1.1**2 * first)


def test_an_id_is_never_used_again():
    run = simulation()
    (first,) = run.add(mass=0, position=[2, 0, 0], velocity=[0, 0, 0])
    run.remove(first)
    run.step(2)
    assert run.add(plummer(3, seed=2)).tolist() == [first + 1, first + 2, first + 3]
    with pytest.raises(InputError, match=f"id {first} belongs to a body of this run, or did"):
        run.add(mass=0, position=[2, 0, 0], velocity=[0, 0, 0], id=first)


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (lambda run: run.remove(99), "remove: there is no body with the id 99"),
        (lambda run: run.remove(run.particles.mass > 0), "needs ids; of a mask"),
        (lambda run: run.remove(run.particles.id), "no body would be left"),
        (lambda run: run.add(mass=1), "add: position is missing"),
        (lambda run: run.add(mass=1, position=[0, 0], velocity=[0, 0]), "are in 2-D, and the run is in 3-D"),
        (lambda run: run.change(1), "change: to what"),
        (lambda run: run.change(1, mass=-1), "change: mass of particle 1 .* negative"),
        (lambda run: run.change([1, 2], position=[[0, 0, 0]] * 3), "one for each"),
        (lambda run: run.change(1, radius=1), "radius: the bodies of this run have none"),
    ],
)
def test_wrong_changes_are_refused_in_one_line(wrong, line):
    run = simulation()
    with pytest.raises(InputError, match=line) as found:
        wrong(run)
    assert "\n" not in str(found.value)
    run.step(1)


def test_an_ensemble_refuses_changes():
    three = Particles(np.tile([1.0, 1e-3, 1e-3], 2), np.random.default_rng(1).normal(size=(6, 3)), np.zeros((6, 3)))
    run = Simulation(three, ensemble={"systems": 2}, integrator={"scheme": "ias15", "end": 0.1}, precision="float64")
    with pytest.raises(InputError, match="all systems of an ensemble have the same number of bodies"):
        run.remove(1)
