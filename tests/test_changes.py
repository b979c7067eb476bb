"""Bodies that are added, removed and changed between steps: they count at once, and the energy that they add is booked."""

import copy
import json
import pickle
import shutil
from dataclasses import replace

import numpy as np
import pytest

from nbody import Particles, Simulation, Trajectory, planets, plummer
from nbody.cli import main
from nbody.errors import InputError, RunFailed
from nbody.run.resume import rerun, resume
from nbody.trajectory import TrajectoryWriter, first_difference

EXACT = {"engine": "cpu", "precision": "float64", "softening": 0.05}

POINTS = {"softening": "none", "precision": "float64", "engine": "cpu"}


def simulation(output=None, scheme="leapfrog", particles=None, **more):
    bodies = plummer(24, seed=1) if particles is None else particles
    values = {"integrator": {"scheme": scheme, "dt": 1 / 64}, **EXACT, **more}
    return Simulation(bodies, output=output, notify=lambda line: None, **values)


def change_all(run):
    """One change of each kind. Returns the id of the body that was added."""
    run.change([3, 5], mass=[0.01, 0.02])
    (new,) = run.add(mass=0.05, position=[1, 0.5, 0], velocity=[0, 0.3, 0], species="guest")
    run.remove([7, 0])
    run.particles.velocity[2] *= 0.5
    return new


def test_radii_that_are_not_there_can_not_be_written():
    with pytest.raises(InputError, match="radius: the bodies of this run have none"):
        simulation().particles.radius[:3] = 0.1


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


def test_values_belong_to_the_ids_in_their_order():
    run = simulation(particles=replace(plummer(24, seed=1), id=np.arange(24)[::-1] + 100))
    run.change([107, 103, 120], mass=[0.7, 0.3, 2.0])
    now = run.particles
    assert [now.mass[now.id == id].item() for id in (103, 107, 120)] == [0.3, 0.7, 2.0]
    with pytest.raises(InputError, match="change: position of the body with the id 107 is not a finite number; give"):
        run.change([103, 107], position=[[0, 0, 0], [np.nan, 0, 0]])


def test_a_callback_may_change_the_bodies():
    def heavier(particles):
        particles.mass[0] *= 1.1

    run = simulation()
    first = run.particles.mass[0]
    run.run(10, callback=heavier, every=5)
    assert run.particles.mass[0] == pytest.approx(1.1**2 * first)


def test_bodies_of_a_generator_get_new_ids_and_those_that_a_user_chose_are_kept():
    run, comets = simulation(), plummer(6, seed=2)
    used = run.particles.id.max()
    assert run.add(comets.rows(np.array([1, 4]))).tolist() == [used + 1, used + 2]
    assert run.add(comets.rows(np.array([1])), id=200).tolist() == [200]
    assert run.add(Particles([0.1], [[9, 0, 0]], [[0, 0, 0]], id=[100])).tolist() == [100]  # which nobody had
    assert run.add(comets, id=None).tolist() == list(range(201, 207))
    with pytest.raises(InputError, match="id 200 belongs to a body of this run, or did; leave id out"):
        run.add(comets.rows(np.array([1, 4])), id=[300, 200])
    with pytest.raises(InputError, match="id has 1 rows but mass has 6"):
        run.add(comets, id=300)


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
        (lambda run: run.remove(run.particles.mass > 0), "of a mask these are particles.id"),
        (lambda run: run.run(1, callback=lambda now: run.remove(now.id)), "this simulation is running"),
        (lambda run: run.add(mass=1), "add: position is missing"),
        (lambda run: run.add(mass=1, position=[0, 0], velocity=[0, 0]), "are in 2-D, and the run is in 3-D"),
        (lambda run: run.change(1), "change: to what"),
        (lambda run: run.change(1, mass=-1), "change: mass of the body with the id 1 is negative"),
        (lambda run: run.change(1, mass="3 Msun"), "change: mass: must be plain numbers, one for all or one for each"),
        (lambda run: run.change([1, 2, 1], mass=[1, 2, 3]), "change: an id is given twice"),
        (lambda run: run.change([1, 2], position=[[0, 0, 0]] * 3), "one for each"),
        (lambda run: run.change([1, 2], position=[1.0, 2.0]), "one for each"),
        (lambda run: run.change(1, radius=1), "radius: the bodies of this run have none"),
    ],
)
def test_wrong_changes_are_refused(wrong, line):
    run = simulation()
    with pytest.raises(InputError, match=line):
        wrong(run)
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


@pytest.mark.parametrize("new", [1, 3])  # there is room for one
def test_a_killed_run_forgets_the_bodies_that_came_after_its_last_checkpoint(new, tmp_path, monkeypatch):
    run = recorded(tmp_path / "run.h5")
    now = run.particles
    with monkeypatch.context() as patch:
        patch.setattr(TrajectoryWriter, "checkpoint", lambda *_: None)
        run.add(plummer(new, seed=2))
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


@pytest.mark.parametrize("about", ["densest", "origin", 2])
def test_a_place_about_which_bodies_escape_is_no_other(about):
    """24 bodies about (100, 0, 0), two of them far away; and body 2, which nothing is near."""
    bodies = plummer(24, seed=1)
    bodies.position += [100.0, 0, 0]
    bodies.position[[3, 8]] += [0, 50.0, 0]
    run = simulation(particles=bodies, escape={"radius": 30.0, "about": about, "every": 1})
    if about == "origin":
        with pytest.raises(RunFailed, match="none would be left"):
            run.run(2)
        return
    run.run(2)
    assert sorted(set(range(24)) - set(run.particles.id.tolist())) == [3, 8]


def test_bound_bodies_stay_and_an_escape_may_end_the_run():
    bodies = leaving()
    bodies.velocity[[3, 8]] = [[0, 20, 0], [0, -20, 0]]
    bodies.position[5], bodies.velocity[5] = [12, 0, 0], 0.0  # far away, and bound
    run = simulation(particles=bodies, escape={"radius": "10 r_h", "unbound": True})
    run.run(64)
    assert sorted(set(range(24)) - set(run.particles.id.tolist())) == [3, 8]
    escape, event = {"radius": "10 r_h", "action": "stop"}, "escape(radius='10 r_h'): stop"
    runs = simulation(particles=leaving(), escape=escape), simulation(particles=leaving(), events=event)
    for run in runs:
        run.run(64)
    assert runs[0].time == runs[1].time < 1.0 and run.particles.count == 24
    with pytest.raises(InputError, match="'every' belongs to 'action: remove'"):
        simulation(escape={"radius": 10, "action": "stop", "every": 2})
    with pytest.raises(InputError, match="no body"):
        simulation(escape={"radius": 10, "about": 99}).run(1)


def test_megno_says_that_it_begins_anew_after_a_change():
    said, bodies = [], planets(bodies=[{"m": 1.0}, {"m": 1e-3, "a": 1.0}, {"m": 1e-3, "a": 1.7}])
    record = {"every": 10, "observables": ["megno"]}
    run = Simulation(bodies, integrator="wisdom_holman", dt=0.05, record=record, notify=said.append, **POINTS)
    run.run(10)
    run.add(mass=1e-6, position=[3, 0, 0], velocity=[0, 0.57, 0])
    assert said[-1] == "warning: megno and lyapunov begin anew at step 10, because of a change of the bodies"


def test_a_species_on_which_a_force_acts_stays_in_one_piece_or_the_change_is_refused():
    x, v = np.eye(4, 3), np.zeros((4, 3))
    bodies = Particles([1.0, 0, 0, 1e-3], x, v, species=[0, 1, 1, 2], species_names=("star", "dust", "planet"))
    field = {"field": "j2", "about": "star", "on": "dust", "j2": 0.01, "radius": 0.1}
    run = Simulation(bodies, dt=0.01, fields=[field], **POINTS)
    run.run(2)
    with pytest.raises(InputError, match="on: the bodies of 'dust' do not follow one another"):
        run.add(mass=0, position=[2, 2, 2], velocity=[0, 0, 0], species="dust")
    assert run.particles.count == 4 and len(run.stepper.ids) == 4
    run.run(2)


def test_the_two_parts_of_the_energy_are_those_of_the_frames(tmp_path):
    run = simulation(tmp_path / "run.h5")
    first = run.kinetic_energy, run.potential_energy
    run.run(10)
    last = run.kinetic_energy, run.potential_energy
    with Trajectory(tmp_path / "run.h5") as file:
        for k, parts in ((0, first), (-1, last)):
            assert parts == tuple(float(file.observable(name)[k]) for name in ("kinetic_energy", "potential_energy"))
    run.change(mass=0.01)
    assert run.kinetic_energy == pytest.approx(0.005 * (run.particles.velocity**2).sum(), rel=1e-6)


# --- Outcomes of collisions ---


def spheres(count=20, mass=1e-6):
    """Hard spheres in a box of size 1 that meet often, with hardly any gravity."""
    rng = np.random.default_rng(3)
    x = np.stack(np.meshgrid(*[np.arange(3)] * 3), axis=-1).reshape(-1, 3)[:count] + rng.uniform(-0.1, 0.1, (count, 3))
    v = -4 * (x - 1) + rng.normal(size=(count, 3))
    return Particles(np.full(count, mass), x, v, radius=np.full(count, 0.3))


def test_a_head_on_bounce_reverses_the_velocities():
    for restitution in (1.0, 0.5, 0.0):
        bodies = Particles([1e-9, 3e-9], [[-1, 0, 0], [1.0, 0, 0]], [[1, 0.5, 0], [-1, 0.5, 0]], radius=[0.3, 0.2])
        rule = {"rule": "bounce", "restitution": restitution}
        run = Simulation(bodies, dt=0.4, engine="cpu", precision="float64", softening="none", collisions=rule)
        run.run(5)
        event = run.stepper.roster.booked_energy
        assert event == pytest.approx(-0.5 * 0.75e-9 * (1 - restitution**2) * 4, rel=1e-6, abs=1e-24)
        # The centre of mass moves at -0.5; they meet at t = 0.75 at a relative speed of 2, and part at 1.3e-6, 0.01 of their
        # escape speed, at least.
        now = run.particles
        assert now.velocity[:, 1] == pytest.approx([0.5, 0.5])
        assert now.velocity[:, 0] == pytest.approx([-0.5 - 1.5 * restitution, -0.5 + 0.5 * restitution], abs=2e-6)
        first = -1 + 0.75 - (0.5 + 1.5 * restitution) * 1.25
        assert now.position[0, 0] == pytest.approx(first, abs=2e-6)


@pytest.mark.parametrize("scheme,restitution", [("leapfrog", 0.7), ("hermite4_block", 0.7), ("ias15", 1.0)])
def test_hard_spheres_keep_their_momentum_and_lose_what_is_booked(scheme, restitution, tmp_path):
    bodies = spheres()
    rule = {"rule": "bounce", "restitution": restitution}
    values = {"record": {"dt": 0.25}, "end": 1.0, "softening": "none", "collisions": rule}
    run = simulation(tmp_path / "run.h5", scheme, particles=bodies, **values)
    run.run()
    assert run.summary.collisions > 20 and run.summary.particles_left == 20
    with Trajectory(tmp_path / "run.h5") as file:
        momentum, energy = file.observable("momentum"), file.energy_balance()
        size = np.abs(bodies.mass @ np.abs(bodies.velocity)).max()
        assert np.abs(momentum - momentum[0]).max() < 1e-13 * size * run.summary.collisions
        assert np.abs(energy - energy[0]).max() < 1e-5 * energy[0]
        lost = file.observable("collision_energy")[-1]
        assert (abs(lost) < 1e-12 * energy[0]) if restitution == 1 else lost < -0.1 * energy[0]
        x, (i, j) = file.position[-1], np.triu_indices(20, 1)
        assert np.linalg.norm(x[i] - x[j], axis=1).min() > 0.6 * (1 - 1e-3)


def test_a_function_says_what_becomes_of_bodies_that_touch(tmp_path):
    bodies = Particles(
        [3.0, 1.0, 1e-3, 1e-3, 1e-3, 1e-3],
        [[0, 0, 0], [1, 0, 0], [20, 0, 0], [20.5, 0, 0], [0, 20, 0], [0.5, 20.1, 0]],
        [[0, 0, 0], [-4, 0, 0], [0, 0, 0], [-4, 0, 0], [0, 0, 0], [-4, 0, 0]], radius=[0.1] * 6, id=[5, 6, 7, 8, 9, 10],
    )  # fmt: skip
    seen = []

    def outcome(pair):
        if (ids := sorted(pair.id.tolist())) in seen:
            return None  # they still pass through each other
        seen.append(ids)
        assert np.linalg.norm(pair.position[1] - pair.position[0]) == pytest.approx(0.2)
        if ids == [5, 6]:  # a quarter of the smaller mass is lost, and three fragments remain
            centre = pair.mass @ pair.position / pair.mass.sum()
            motion = pair.mass @ pair.velocity / pair.mass.sum()
            x = centre + np.array([[0, 0, 0], [0, 1, 0], [0, -1, 0.0]])
            return Particles([3.0, 0.5, 0.25], x, motion + (x - centre), radius=[0.1, 0.05, 0.05])
        return pair.rows(np.array([0])) if 7 in ids else None

    values = {"integrator": {"scheme": "ias15"}, "precision": "float64", "end": 0.5, "record": {"dt": 0.125}}
    path = tmp_path / "run.h5"
    run = Simulation(bodies, path, on_collision=outcome, **values)
    run.run()
    assert sorted(seen) == [[5, 6], [7, 8], [9, 10]] and run.particles.id.tolist() == [5, 6, 7, 9, 10, 11]
    assert run.particles.mass[[0, 1, -1]].tolist() == [3.0, 0.5, 0.25]
    with Trajectory(path) as file:
        kinds = [kind.decode() for kind in file.event_rows()["kind"].tolist()]
        assert sorted(set(kinds)) == ["altered", "consumed", "contact", "fragment"] and not file.verify()
        assert file.particles(-1).id.tolist() == [5, 6, 7, 9, 10, 11] and file.particles(0).count == 6
        energy = file.energy_balance()
        assert np.ptp(energy) < 1e-3 * np.ptp(file.observable("total_energy"))
    with pytest.raises(InputError, match="'function' is a function in Python"):
        resume(path)
    resume(path, notify=lambda line: None, end=0.75, on_collision=outcome).run()


def test_a_fragment_gets_no_id_that_another_body_had():
    """Not of one either that was removed before the first step, where the run begins with the others."""
    x, v = [[0, 0, 0], [1, 0, 0], [20, 0, 0]], [[0, 0, 0], [-4, 0, 0], [0, 0, 0]]
    bodies, calls = Particles([3.0, 1.0, 1e-3], x, v, radius=[0.1] * 3, id=[5, 6, 9]), []

    def outcome(pair):
        calls.append(pair)
        apart = Particles([0.5], pair.position[1:] + 1.0, pair.velocity[1:], radius=[0.1])
        return None if calls[1:] else Particles(
            np.append(pair.mass, apart.mass), np.vstack([pair.position, apart.position]),
            np.vstack([pair.velocity, apart.velocity]), radius=[0.1] * 3,
        )  # fmt: skip

    run = Simulation(bodies, on_collision=outcome, integrator={"scheme": "ias15"}, precision="float64", end=0.17)
    run.remove(9)
    run.run()
    assert calls and run.particles.id.tolist() == [5, 6, 10]


@pytest.mark.parametrize("scheme", ["leapfrog", "ias15"])
def test_a_rerun_makes_the_changes_of_a_program_again(scheme, tmp_path):
    first, again = tmp_path / "first.h5", tmp_path / "again.h5"
    run = recorded(first, scheme, steps=(0, 20))
    change = {"mass": 0.01} if scheme == "leapfrog" else {"velocity": [0, 0, 0]}
    run.change([4, 9], **change)
    run.run(20)
    rerun(first, again, notify=lambda line: None).run()
    assert first_difference(first, again) is None
    with Trajectory(again) as file:
        assert file.particles(-1).id.tolist() == run.particles.id.tolist()


@pytest.mark.parametrize("scheme", ["leapfrog", "leapfrog_block"])
def test_a_frame_on_the_first_step_after_an_addition_has_the_new_body(scheme, tmp_path):
    run = simulation(tmp_path / "run.h5", scheme, every=1)
    run.run(3)
    run.add(mass=0.01, position=[1, 0, 0], velocity=[0, 1, 0])
    run.run(3)
    run.add(mass=0.01, position=[-1, 0, 0], velocity=[0, 1, 0])
    run.step()
    with Trajectory(tmp_path / "run.h5") as file:
        assert [file.particles(k).count for k in range(len(file))] == [24] * 4 + [25] * 3 + [26] and not file.verify()


def test_a_callback_may_add_and_remove_bodies(tmp_path):
    def exchange(particles):
        run.remove(particles.id[0])
        run.add(mass=0.01, position=[1, 1, particles.step], velocity=[0, 0, 0])

    run = simulation(tmp_path / "run.h5", every=5)
    run.run(20, callback=exchange, every=10)
    with Trajectory(tmp_path / "run.h5") as file:
        assert [file.particles(k).id[0] for k in range(len(file))] == [
            0,
            0,
            0,
            1,
            1,
        ]  # the frame comes before the callback
        assert file.count == 26 and [file.particles(k).count for k in range(len(file))] == [24] * 5
    assert run.particles.id[[0, -1]].tolist() == [2, 25]


# --- On the command line, in the viewer and on a GPU ---

CLUSTER = """
initial: {generator: plummer, particles: 24, seed: 1}
gravity: {softening: plummer, length: 0.05}
integrator: {dt: 0.015625, steps: 20}
engine: cpu
"""


def test_the_command_line_removes_escapers_and_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    assert main(["run", "cluster.yaml", "--set", "escape.radius=2", "-o", "run.h5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["particles_left"] < 24 and found["booked_energy"] > 0 and found["collisions"] is None
    assert abs(found["energy_error"]) < 0.1 * found["booked_energy"] / abs(found["energy_initial"])
    assert main(["info", "run.h5"]) == 0
    text = capsys.readouterr().out
    assert f"{found['particles_left']} particles are left" in text and "escaped" in text
    assert main(["rerun", "run.h5", "-o", "again.h5"]) == 0 and main(["diff", "run.h5", "again.h5"]) == 0
    capsys.readouterr()
    assert main(["run", "cluster.yaml", "--set", "escape.radius=-2"]) == 2
    assert "escape.radius: must be greater than 0, got -2" in capsys.readouterr().err


def test_a_viewer_shows_the_bodies_that_are_there(tmp_path):
    from nbody.viewer.sources.frames import drawn
    from nbody.viewer.sources.recording import RecordedSource

    recorded(tmp_path / "run.h5", then=(10,))
    lines = []
    with Trajectory(tmp_path / "run.h5") as file:
        source = RecordedSource(file, lines.append)
        for k in range(len(file)):
            shown = drawn(source.moment(float(k)).first.position)
            assert file.id[shown].tolist() == file.particles(k).id.tolist()
        assert not lines and source.caption(10.0).note == "24 particles are left"
        source.close()


def test_a_viewer_follows_a_recording_to_which_bodies_are_added(tmp_path):
    """Into the room for them, and by a larger copy that replaces the file."""
    from nbody.viewer.sources.frames import drawn
    from nbody.viewer.sources.recording import RecordedSource

    run = recorded(tmp_path / "run.h5", then=(10,))
    with Trajectory(tmp_path / "run.h5") as file:
        source = RecordedSource(file)
        source.shown.thin_out(20)
        before = source.moment(1.5)
        for k in range(3):
            run.add(mass=0.02, position=[k, 2, 0], velocity=[0, 0, 0], species=["guest", "", "late"][k])
            run.run(10)
            frames = source.refresh()
            assert frames == len(file) and source.catalogue.count == 27 + k and source.shown.count == 21 + k
            shown = drawn(source.moment(frames - 1.0).first.position)
            assert source.shown.of(np.isin(file.id, run.particles.id)).tolist() == shown.tolist()
            assert source.catalogue.mass[-1] == 0.02 and file.verify() == []
            assert source.catalogue.species[-1] == [1, 0, 2][k]
        assert source.catalogue.species_names == ("", "guest", "late")
        now, then = source.moment(1.5).first.position, before.first.position
        assert np.array_equal(now[:20], then) and not drawn(now[20:]).any()
        source.close()
    recorded(tmp_path / "other.h5", particles=plummer(24, seed=2))
    with Trajectory(tmp_path / "other.h5") as file:
        shutil.move(tmp_path / "run.h5", tmp_path / "other.h5")
        with pytest.raises(InputError, match="replaced by another recording; open it anew"):
            file.refresh()


def test_many_additions_copy_the_file_few_times(tmp_path, monkeypatch):
    copies, enlarge = [], TrajectoryWriter._enlarge
    monkeypatch.setattr(TrajectoryWriter, "_enlarge", lambda *given, **more: copies.append(1) or enlarge(*given, **more))
    run = simulation(tmp_path / "run.h5", every=10)
    run.run(100, callback=lambda now: run.add(mass=1e-3, position=[now.step, 1, 0], velocity=[0, 0, 0]) is not None, every=1)
    assert len(copies) <= 1 + np.log2(100) + 3  # room for bodies doubles; so does that for events, and for a checkpoint
    with Trajectory(tmp_path / "run.h5") as file:
        assert file.count == 124 and not file.verify()
        assert [file.particles(k).count for k in range(len(file))] == [24, *range(33, 124, 10)]


@pytest.mark.simulated
@pytest.mark.parametrize(
    ("scheme", "precision"), [("leapfrog", "float32"), ("leapfrog", "mixed"), ("hermite4_block", "float64")]
)
def test_a_gpu_goes_on_with_changed_bodies(scheme, precision):
    def begun(bodies):
        integrator = {"scheme": scheme, "dt": 1 / 64}
        return Simulation(bodies, integrator=integrator, softening=0.05, engine="gpu", precision=precision)

    run = begun(plummer(24, seed=1))
    run.step(2)
    change_all(run)
    now = run.particles
    other = begun(Particles(now.mass, now.position, now.velocity))
    run.step(2)
    other.step(2)
    assert (run.particles.position == other.particles.position).all() and abs(run.energies.error) < 1e-3


# --- A simulation that is filled in the hand ---


def test_an_empty_simulation_is_filled_body_by_body_and_is_that_of_all_bodies():
    bodies = [
        {"m": 1.0, "name": "sun"},
        {"m": 1e-3, "a": 1.0, "e": 0.1, "name": "b"},
        {"m": 1e-6, "a": 2.0, "inc": 3.0},
    ]
    filled = Simulation(integrator="ias15", precision="float64", events=["apsis(1)"])
    assert (filled.time, filled.energies.latest, filled.particles.count) == (0.0, 0.0, 0)
    with pytest.raises(InputError, match="has no bodies yet; add some"):
        filled.orbits()
    assert filled.integrate(2.0).particles == 0 and filled.time == 2.0
    ids = [filled.add(**keys)[0] for keys in bodies]
    at_once = planets(bodies=bodies)
    whole = Simulation(replace(filled.particles), integrator="ias15", precision="float64", events=["apsis(1)"])
    for name in ("position", "velocity"):  # those of nbody.planets are about the centre of mass
        own, made = (getattr(each, name) - getattr(each, name)[0] for each in (filled.particles, at_once))
        np.testing.assert_allclose(own, made, atol=1e-15)
    for run in (filled, whole):
        run.integrate(12.0)
    assert ids == [0, 1, 2] and len(filled.events["time"]) == 3
    np.testing.assert_array_equal(filled.particles.position, whole.particles.position)
    with pytest.raises(InputError, match="name: there is a body 'b'; give it another name, or species='b'"):
        filled.add(m=1e-9, a=0.01, about="b", name="b")
    filled.add(m=1e-9, a=0.01, about="b", species="b")
    assert filled.particles.count == 4 and abs(filled.orbits(1, [3]).a[0] - 0.01) < 1e-15


def test_an_added_orbit_may_have_units():
    units = {"length": "au", "mass": "Msun", "time": "yr"}
    sim = Simulation(integrator="ias15", units=units)
    sim.add(m=1.0)
    sim.add(m="1 jupiterMass", P="11.86 yr")
    assert sim.orbits().P[0] == pytest.approx(11.86, rel=1e-12)
    assert sim.particles.mass[1] == pytest.approx(1 / 1047.57, rel=1e-4)  # IAU 2015: G M of Jupiter


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"m": 1.0, "aa": 2.0}, r"unknown value 'aa' \(did you mean 'a'\?\)"),
        ({"m": 1.0, "a": 2.0, "primary": 0}, r"unknown value 'primary' \(did you mean 'about'\?\)"),
        ({"m": 1.0, "e": 0.1}, "a is missing; an orbit has a, P or q"),
        ({"m": 1.0, "a": 1.0, "e": 1.5}, "add: a: 1 does not fit e = 1.5"),
        ({"m": 1.0, "a": 1.0, "position": [1, 0, 0]}, "add: position and a exclude each other; leave one of them out"),
        ({"m": 1.0, "a": 1.0, "x": 7.0}, "x and a exclude"),
        ({"m": 1.0, "x": 2.0, "velocity": [0, 0.7, 0]}, "velocity and x exclude"),
        ({"m": 1.0, "position": [2, 0, 0], "vy": 0.7}, "position and vy exclude"),
        ({"m": 1.0, "x": 0.1, "vy": 0.1, "about": 0}, "x and about exclude"),
        ({"m": 1.0, "about": 0}, "a is missing"),
        ({"m": 1.0, "mass": 2.0, "x": 1.0}, "m and mass exclude"),
        ({"m": 1.0, "x": 1.0, "name": "b", "species": "c"}, "name and species exclude"),
        ({"m": 1.0, "a": 1.0, "about": "moon"}, "add: about: there is no body named 'moon'"),
    ],
)
def test_wrong_values_of_a_new_body_are_refused(values, line):
    run = Simulation()
    run.add(m=1.0)
    with pytest.raises(InputError, match=line):
        run.add(**values)
    with pytest.raises(InputError, match="the first body has no orbit"):
        Simulation().add(m=1.0, a=1.0)


@pytest.mark.parametrize("values,name", [({"x": 2, "vz": 3}, "vz"), ({"x": 2, "z": 5}, "z"), ({"a": 2, "inc": 60}, "inc")])
def test_a_body_that_leaves_the_plane_of_a_run_in_two_dimensions_is_refused(values, name):
    run = simulation(particles=Particles([1.0], [[0.0, 0]], [[0.0, 0]]))
    with pytest.raises(InputError, match=f"add: {name}: the run is in 2-D"):
        run.add(m=1e-3, **values)
    run.add(m=1e-3, x=2, z=0)
    run.add(m=1e-3, a=2, inc=180)  # backward
    assert run.particles.count == 3 and run.particles.position[2, 0] > 2


def test_a_simulation_without_bodies_goes_as_far_as_its_scenario_says_and_checks_what_it_gets():
    run = Simulation(steps=100, dt=0.01)
    run.run(steps=40)
    assert (run.run().steps, run.steps_made, run.time, run.run().steps) == (60, 100, 1.0, 0)
    timed = Simulation(end=1, dt=0.01)
    timed.run()
    assert timed.time == 1.0
    with pytest.raises(InputError, match="how far"):
        Simulation(dt=0.01).run()
    for wrong in ({"callback": 3}, {"every": 2}, {"callback": print, "interval": -1}, {"progress": 3}):
        with pytest.raises(InputError, match=r"^run: "):
            run.run(1, **wrong)
    assert run.run(1, callback=print, interval=0.5).steps == 1


def test_a_simulation_without_bodies_has_copies_and_no_state():
    run = Simulation(integrator="ias15", precision="float64")
    run.integrate(2.0)
    assert not hasattr(run, "state") and not hasattr(run, "stepper")
    for each in (run.copy(), copy.copy(run), copy.deepcopy(run), pickle.loads(pickle.dumps(run))):
        each.add(m=1.0)
        each.integrate(3.0)
        assert (each.time, each.particles.count, each.scenario.integrator.scheme) == (3.0, 1, "ias15")
    assert (run.time, run.particles.count) == (2.0, 0)


def test_bodies_are_looked_at_and_changed_before_there_is_a_time_step(tmp_path):
    run = Simulation(overwrite=True)
    run.add(m=1)
    run.add(m=1e-3, a=1.0, e=0.1)
    other = pickle.loads(pickle.dumps(run.copy()))
    other.change(0, mass=2.0)
    other.particles[1].m *= 2
    other.remove(0)
    assert (len(other.particles), other.particles[0].m, *other.add(m=1.0, x=1)) == (1, 2e-3, 2)
    assert len(run.particles) == 2 and run.orbits().e == pytest.approx(0.1) and run.time == run.steps_made == 0
    for move in (run.step, run.run, lambda: run.integrate(1.0)):
        with pytest.raises(InputError, match=r"dt: is missing; .*simulation\.dt = .*Simulation\(dt="):
            move()
    assert (run.scenario.integrator.scheme, run.scenario.initial.particles) == ("leapfrog", 2)
    run.record(tmp_path / "run.h5")
    run.dt = 1 / 64
    assert run.energies.latest == pytest.approx(-5e-4, rel=2e-3)  # -G m m'/(2 a), before there is a frame
    run.integrate(1.0)
    assert run.steps_made == 64 and run.frames == 65
    with pytest.raises(InputError, match="give it at the beginning"):
        run.dt = 0.1


def test_all_bodies_may_be_removed_and_others_added(tmp_path):
    """Ids and time go on; the bits are those of a run that begins with the new bodies."""
    run = simulation(particles=planets(bodies=[{"m": 1, "name": "a"}, {"m": 1e-3, "a": 1, "name": "b"}]))
    run.step(8)
    run.remove(["a", "b"])
    run.integrate(0.25)
    assert (run.particles.count, run.time, run.energies.latest) == (0, 0.25, 0.0)
    for each in (run, run.copy(), pickle.loads(pickle.dumps(run))):
        assert [*each.add(m=1.0, name="c"), *each.add(m=1e-3, a=1.0)] == [2, 3]
        new = simulation(particles=replace(each.particles))
        for one in (each, new):
            one.integrate(1.0)
        assert each.particles == new.particles and each.scenario.integrator.dt == 1 / 64
    run.record(tmp_path / "run.h5")
    with pytest.raises(InputError, match=r"a recording needs a body with a mass; end it first"):
        run.remove([2, 3])


def test_a_body_with_a_new_name_joins_a_run_of_named_bodies(tmp_path):
    run = simulation(tmp_path / "run.h5", "ias15", planets(bodies=[{"m": 1, "name": "a"}, {"m": 1e-3, "a": 1, "name": "b"}]))
    run.integrate(1.0)
    run.add(m=1e-3, a=3, name="c")
    run.add(m=0, a=5)
    others = [run.copy(), pickle.loads(pickle.dumps(run))]
    for each in (run, *others):
        each.integrate(2.0)
        assert each.particles == run.particles and each.particles.species_names == ("a", "b", "c", "")
    run.remove("c")
    run.integrate(3.0)
    with Trajectory(tmp_path / "run.h5") as file:
        assert file.species_names == ("a", "b", "c", "") and file.species.tolist() == [0, 1, 2, 3]
        a, time = file.orbits(bodies=["c"]).a[:, 0], file.time[:]
        np.testing.assert_array_equal(np.isfinite(a), (time > 1) & (time <= 2))
    two = simulation(softening={"disc": 0.1}, particles=replace(plummer(8, seed=1), species_names=("disc",)))
    with pytest.raises(InputError, match="the species 'guest' has no softening length; those of the run are disc"):
        two.add(mass=0, position=[1, 0, 0], velocity=[0, 0, 0], species="guest")


class Own(Simulation):
    """A user's simulation."""

    @property
    def label(self):
        return self._label

    @label.setter
    def label(self, value):
        self._label = value


class OwnParticles(Particles):
    """A user's particles."""


def test_a_user_s_subclass_has_its_own_attributes():
    run, mine = Own(plummer(4), dt=0.01), OwnParticles([1.0], [[0.0, 0, 0]], [[0.0, 0, 0]])
    run.label, run.colour, mine.colour = "a", "red", "blue"
    assert (run.label, run.colour, mine.colour) == ("a", "red", "blue")
    with pytest.raises(InputError, match=r"simulation\.time can.t be set"):
        run.time = 1.0


def test_what_is_set_under_a_wrong_name_is_refused(tmp_path):
    run = Simulation(plummer(4), tmp_path / "run.h5", dt=0.01)
    run.run(steps=1)
    with Trajectory(tmp_path / "run.h5") as file:
        for each, name, near in ((run, "times", "time"), (run.particles, "mas", "mass"), (file, "masss", "mass")):
            with pytest.raises(InputError, match=f"{name} can't be set: .*did you mean '{near}'"):
                setattr(each, name, 1)


def test_a_scenario_in_the_hand_has_its_bodies():
    """With one softening length per body too, whose species the scenario names."""
    bodies = plummer(6, seed=2)
    run = Simulation(bodies, dt=0.01, softening=[0.1, 0.2] * 3)
    others = [Simulation(run.scenario), Simulation(run.scenario, particles=bodies, dt=0.01)]
    for each in (run, *others):
        each.step(5)
        np.testing.assert_array_equal(each.particles.position, run.particles.position)


def test_a_callback_without_every_is_called_at_the_end_of_each_call_too():
    """Mass loss by the elapsed time, in calls that end within the steps of ias15."""
    run, last = (
        Simulation(planets(bodies=[{"m": 1.0}, {"m": 1e-3, "a": 1.0}]), integrator="ias15", precision="float64"),
        [0.0],
    )

    def lose(now):
        now.mass[0] *= np.exp(-0.01 * (now.time - last[0]))
        last[0] = now.time

    for until in (1.0, 2.0, 3.0):
        run.integrate(until, callback=lose)
        assert last[0] == until and abs(run.particles.mass[0] - np.exp(-0.01 * until)) < 1e-14  # √n roundings
    assert run.particles == run.copy().particles != run.at(3.1) and len(run.particles) == 2
    with pytest.raises(InputError, match=r"\+ does not join them; .*simulation.add\(particles\)"):
        run.particles + run.particles
    with pytest.raises(AttributeError, match=r"it is simulation\.time"):
        run.t  # noqa: B018
    with pytest.raises(InputError, match=r"simulation\.time can.t be set"):
        run.time = 0.0
