"""Bodies that are added, removed and changed between steps: they count at once, and the energy that they add is booked."""

import shutil

import numpy as np
import pytest

from nbody import Particles, Simulation, Trajectory, plummer
from nbody.errors import InputError
from nbody.run.resume import resume
from nbody.trajectory import TrajectoryWriter, first_difference

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


# --- The file ---


def recorded(path, scheme="leapfrog", steps=(20, 20), then=(), **more):
    """A recorded run whose bodies are changed after its first call, and have one more after each of ``then``."""
    values = {"end": 1.0, "record": {"dt": 0.125}} if scheme in ("ias15", "hermite4_block") else {"every": 5}
    run = simulation(path, scheme, overwrite=True, **{**values, **more})
    run.run(steps[0])
    change_all(run)
    run.run(steps[1])
    for count in then:
        run.add(mass=0.01, position=[count, 1, 0], velocity=[0, 0, 0])
        run.run(count)
    return run


def test_a_file_has_the_bodies_of_each_frame(tmp_path):
    run = recorded(tmp_path / "run.h5", then=(10,))
    with Trajectory(tmp_path / "run.h5") as file:
        assert file.status == "complete" and not file.verify() and file.count == 26
        assert [file.particles(k).count for k in range(len(file))] == [24] * 5 + [23] * 4 + [24] * 2
        assert file.observable("bodies").tolist() == [24] * 5 + [23] * 4 + [24] * 2
        last, now = file.particles(-1), run.particles
        for name in ("mass", "position", "velocity", "id"):
            assert (getattr(last, name) == getattr(now, name)).all()
        assert np.isnan(file.position[-1]).any(axis=1).nonzero()[0].tolist() == [0, 7]
        assert np.isnan(file.position[0]).any(axis=1).nonzero()[0].tolist() == [24, 25]
        # Without what is booked, the energy is constant but for the error of the scheme.
        energy, total = file.energy_balance(), file.observable("total_energy")
        assert np.ptp(energy) < 0.05 * np.ptp(total)
        assert file.observable("booked_energy")[-1] == pytest.approx(file.event_rows()["energy_change"].sum())
        assert sorted(set(file.event_rows()["kind"].tolist())) == [b"added", b"changed", b"removed"]
        assert run.summary.energy_error == pytest.approx((energy[-1] - energy[0]) / abs(energy[0]))
        assert run.summary.booked_energy == file.observable("booked_energy")[-1]
        halfway = file.at(float(file.time[4] + file.time[5]) / 2)
        assert halfway.count == 24 and np.isfinite(halfway.position).all()


@pytest.mark.parametrize("scheme", ["leapfrog", "hermite4_block", "ias15"])
def test_a_resumed_run_of_changed_bodies_has_the_bits_of_one_that_was_not_interrupted(scheme, tmp_path):
    whole, part = tmp_path / "whole.h5", tmp_path / "part.h5"
    run = recorded(part, scheme)
    shutil.copy(part, whole)
    run.run(10)
    shutil.move(part, tmp_path / "other.h5")
    again = resume(whole, notify=lambda line: None)
    again.run(10)
    assert again.particles.id.tolist() == run.particles.id.tolist()
    assert first_difference(whole, tmp_path / "other.h5") is None
    assert (again.particles.position == run.particles.position).all()


def test_a_killed_run_forgets_the_bodies_that_came_after_its_last_checkpoint(tmp_path, monkeypatch):
    run = recorded(tmp_path / "run.h5")
    now = run.particles
    with monkeypatch.context() as patch:
        patch.setattr(TrajectoryWriter, "checkpoint", lambda *_: None)
        run.add(plummer(3, seed=2))
        run.run(10)
    again = resume(tmp_path / "run.h5", notify=lambda line: None)
    assert again.particles.id.tolist() == now.id.tolist()
    again.run(10)
    with Trajectory(tmp_path / "run.h5") as file:
        assert file.count == 25 and file.particles(-1).count == 23 and not file.verify()


# --- Escapers ---


def leaving(fast=(3, 8)):
    """A cluster that some bodies leave at once."""
    bodies = plummer(24, seed=1)
    bodies.velocity[list(fast)] *= 20 / np.linalg.norm(bodies.velocity[list(fast)], axis=1)[:, None]
    return bodies


@pytest.mark.parametrize("scheme", ["leapfrog", "ias15", "hermite4_block"])
def test_escapers_are_removed_and_their_energy_is_booked(scheme, tmp_path):
    whole, part = tmp_path / "whole.h5", tmp_path / "part.h5"
    values = {"particles": leaving(), "record": {"dt": 0.25}, "end": 1.0, "escape": {"radius": 10.0, "every": 4}}
    run = simulation(whole, scheme, **values)
    run.run()
    with Trajectory(whole) as file:
        rows = file.event_rows()
        assert sorted(rows["id_1"].tolist()) == [3, 8] and set(rows["kind"].tolist()) == {b"escaped"}
        assert (rows["distance"] > 10).all() and (rows["step"] % 4 == 0).all()
        gone = [int(np.searchsorted(file.time, time)) for time in sorted(rows["time"])]
        assert file.observable("bodies").tolist() == [24 - sum(k >= first for first in gone) for k in range(len(file))]
        assert file.particles(-1).count == 22
        # The escapers took most of the energy: 2 · 20²/48; the rest is conserved with the accuracy of the scheme.
        assert file.observable("booked_energy")[-1] == pytest.approx(-(20**2) / 24, rel=0.05)
        assert np.ptp(file.energy_balance()) < 2e-3 * 20**2 / 24
    once = simulation(part, scheme, **values)
    once.integrate(0.25)
    resume(part, notify=lambda line: None, end=1.0).run()
    assert first_difference(whole, part) is None


def test_an_escape_radius_may_be_given_in_half_mass_radii():
    bodies = leaving()
    for radius in ("10 r_h", 8.0):
        run = simulation(particles=bodies, escape=radius)
        run.run(64)
        assert run.summary.particles_left == 22 and run.particles.count == 22
    with pytest.raises(InputError, match=r"escape.*: must be a length, or a number of half-mass radii"):
        simulation(escape={"radius": "many r_h"})
