"""What a Python program does with a simulation: keywords, several runs, the present state, callbacks, threads."""

import copy
import pickle
import re
import threading
from dataclasses import fields, replace

import numpy as np
import pytest
from conftest import random_bodies

import nbody
from nbody import Scenario, Simulation, Trajectory, Tree, errors, planets, plummer, simulate
from nbody.errors import InputError, RunFailed
from nbody.initial import GENERATORS
from nbody.initial.functions import function
from nbody.particles import Particles
from nbody.run.resume import rerun, resume
from nbody.scenario import OPTIONS
from nbody.trajectory import first_difference
from nbody.viewer.picture.look import Look

KEYS = {"dt": 0.0078125, "softening": 0.25, "engine": "cpu", "precision": "float64"}


def bodies(count=24):
    """Few bodies, which compile the same kernels as the other tests' bodies."""
    return random_bodies(count)


def test_keywords_make_the_run_that_yaml_makes(tmp_path):
    Simulation(bodies(), tmp_path / "keywords.h5", every=4, **KEYS).run(steps=8)
    np.savez(tmp_path / "bodies.npz", **{name: getattr(bodies(), name) for name in ("mass", "position", "velocity")})
    text = """
    initial: {file: bodies.npz}
    gravity: {softening: plummer, length: 0.25}
    integrator: {dt: 0.0078125, steps: 8}
    engine: cpu
    precision: float64
    record: {every: 4}"""
    Simulation(Scenario.from_text(text, folder=tmp_path), tmp_path / "yaml.h5").run()
    assert first_difference(tmp_path / "keywords.h5", tmp_path / "yaml.h5") is None


@pytest.mark.parametrize("softening", [0.25, "0.25", "plummer:0.25", ("plummer", 0.25)])
def test_a_softening_may_be_written_in_short(softening):
    gravity = Simulation(bodies(), **KEYS | {"softening": softening}).scenario.gravity
    assert (gravity.softening, gravity.length) == ("plummer", 0.25)


@pytest.mark.parametrize(
    "keywords,line",
    [
        ({"dt": 0}, "^dt: must not be 0$"),
        ({"epsilon": 0.1}, "^unknown keyword 'epsilon'.*one of: particles, steps, end, dt, seed"),
        ({"particles": 10}, "^particles: the 24 particles are given; leave it out$"),
        ({"softening": "plummer"}, "length: is missing.*needs one"),
        ({"softening": "plummer:x"}, "'x' is not a length"),
        ({"engine": "cuda"}, "^engine: unknown engine 'cuda'"),
        ({"dt": None}, "dt: is missing"),
    ],
)
def test_invalid_keywords_are_refused_by_name(keywords, line):
    with pytest.raises(InputError, match=line):
        Simulation(bodies(), **KEYS | keywords)


def test_the_number_of_particles_and_the_seed_of_a_scenario_are_keywords():
    run = Simulation("plummer", particles=24, seed=5, **KEYS)
    assert run.setup.bodies.count == 24
    assert (run.setup.bodies.position == plummer(24, seed=5).position).all()


def test_a_run_needs_to_know_how_far():
    with pytest.raises(InputError, match="how far"):
        Simulation(bodies(), **KEYS).run()


def test_several_runs_are_recorded_as_one(tmp_path):
    whole = Simulation(bodies(), tmp_path / "whole.h5", every=4, **KEYS)
    whole.run(steps=30)
    parts = Simulation(bodies(), tmp_path / "parts.h5", every=4, **KEYS)
    for steps in (3, 5, 0, 1, 13):
        summary = parts.run(steps=steps)
        with Trajectory(tmp_path / "parts.h5") as run:
            assert run.step[-1] == parts.steps_made and run.complete and len(run) == summary.frames
    summary = parts.integrate(until=30 * KEYS["dt"])
    assert (summary.step, summary.steps) == (30, 8) and summary.energy_error_largest != 0
    assert first_difference(tmp_path / "whole.h5", tmp_path / "parts.h5") is None
    again = rerun(tmp_path / "parts.h5", tmp_path / "again.h5")
    again.run()
    assert first_difference(tmp_path / "parts.h5", tmp_path / "again.h5") is None
    resume(tmp_path / "parts.h5", steps=34).run()
    with Trajectory(tmp_path / "parts.h5") as run:
        assert list(run.step) == [0, 4, 8, 12, 16, 20, 24, 28, 32, 34]


def test_nothing_is_appended_to_a_file_that_is_gone_or_changed(tmp_path):
    simulation = Simulation(bodies(), tmp_path / "run.h5", **KEYS)
    simulation.run(steps=2)
    resume(tmp_path / "run.h5", steps=4).run()
    with pytest.raises(InputError, match="does not end with the present state"):
        simulation.run(steps=2)
    (tmp_path / "run.h5").unlink()
    with pytest.raises(InputError, match="no such file"):
        simulation.run(steps=2)
    simulation.record(tmp_path / "other.h5")
    assert simulation.run(steps=2).frames == 3


def test_the_energy_of_the_beginning_is_there_before_the_first_step_and_changes_no_bits():
    asked, other = Simulation(bodies(), **KEYS), Simulation(bodies(), **KEYS)
    before = asked.energies
    assert before.initial == before.latest == pytest.approx(Simulation(bodies(), **KEYS).run(steps=1).energy_initial)
    for simulation in (asked, other):
        simulation.step(3)
    assert asked.energies.initial == before.initial != asked.energies.latest
    np.testing.assert_array_equal(asked.particles.position, other.particles.position)


def test_particles_are_the_present_state(tmp_path):
    simulation = Simulation(bodies(), tmp_path / "run.h5", **KEYS)
    np.testing.assert_array_equal(simulation.particles.position, bodies().position)
    simulation.run(steps=3)
    now = simulation.particles
    assert (now.step, now.time) == (3, 3 * KEYS["dt"])
    with Trajectory(tmp_path / "run.h5") as run:
        np.testing.assert_array_equal(now.position, run.position[3])
        np.testing.assert_array_equal(now.velocity, run.velocity[3])
    simulation.run(steps=1)
    assert not np.array_equal(now.position, simulation.particles.position)


def test_particles_are_those_of_the_state_until_the_next_step_before_the_first_one_too():
    mine = replace(bodies(), radius=np.ones(24))
    simulation = Simulation(mine, **KEYS)
    for _ in range(2):
        now = simulation.particles
        assert simulation.particles is now
        for name in ("mass", "position", "velocity", "id", "species", "radius"):
            assert getattr(mine, name).flags.writeable
            assert not np.shares_memory(getattr(now, name), getattr(mine, name))
            assert not np.shares_memory(getattr(now, name), simulation.arrays.get(name, mine.mass))
        simulation.run(steps=1)
        for name in ("mass", "position", "velocity", "radius"):  # it would be lost
            with pytest.raises(ValueError, match="read-only"):
                getattr(now, name)[0] = 1
    again = Simulation(replace(now, mass=2 * now.mass), **KEYS)
    np.testing.assert_array_equal(again.particles.mass, 2 * bodies().mass)
    again.run(steps=1)
    rounded = Simulation(bodies(), **KEYS | {"precision": "float32"})
    np.testing.assert_array_equal(rounded.particles.position, bodies().position)  # with all digits


def test_what_is_written_into_the_memory_of_a_simulation_is_shown():
    simulation = Simulation(bodies(), **KEYS)
    simulation.arrays["velocity"][...] = 5.0
    simulation.state.invalidate()
    assert (simulation.particles.velocity == 5.0).all()


def test_a_recording_may_begin_in_the_middle_of_a_run(tmp_path):
    """With the same simulation, and with a new one that starts from the live state: the frames of the whole run."""
    live = Simulation(bodies(), every=4, **KEYS)
    live.run(steps=7)
    begun = live.particles
    live.record(tmp_path / "live.h5")
    live.run(steps=9)
    Simulation(begun, tmp_path / "new.h5", every=4, **KEYS).run(steps=9)
    Simulation(bodies(), tmp_path / "whole.h5", every=1, **KEYS).run(steps=16)
    with Trajectory(tmp_path / "whole.h5") as whole:
        for name in ("live", "new"):
            with Trajectory(tmp_path / f"{name}.h5") as run:
                assert list(run.step) == [7, 8, 12, 16] and run.verify() == []
                for k, step in enumerate(run.step):
                    assert run.time[k] == whole.time[step]
                    np.testing.assert_array_equal(run.position[k], whole.position[int(step)])
    resume(tmp_path / "new.h5", steps=20).run()
    with Trajectory(tmp_path / "new.h5") as run:
        assert list(run.step) == [7, 8, 12, 16, 20] and run.time[-1] == 20 * KEYS["dt"]
    rerun(tmp_path / "new.h5", tmp_path / "again.h5").run()
    assert first_difference(tmp_path / "new.h5", tmp_path / "again.h5") is None


def test_repeating_a_recording_that_began_inside_a_run_warns_where_the_scheme_remembers_steps(tmp_path):
    for integrator, warned in ((None, False), ({"scheme": "hermite4", "eta": 0.02}, True)):
        live, said = Simulation(bodies(), integrator=integrator, **KEYS), []
        live.run(steps=2)
        live.record(tmp_path / "live.h5", overwrite=True)
        live.run(steps=2)
        rerun(tmp_path / "live.h5", tmp_path / "again.h5", overwrite=True, notify=said.append)
        assert any("begins at step 2" in line for line in said) == warned


def test_bodies_from_arrays_are_not_recorded_as_those_of_a_generator(tmp_path):
    scenario = Scenario.load("plummer").override(particles=24, steps=1, engine="cpu")
    Simulation(scenario, tmp_path / "given.h5", particles=bodies()).run()
    live = Simulation(scenario)
    live.run(steps=1)
    live.record(tmp_path / "middle.h5")
    live.run(steps=1)
    Simulation(scenario, tmp_path / "made.h5").run()
    for name in ("given", "middle"):
        with Trajectory(tmp_path / f"{name}.h5") as run:
            assert run.resolved["initial"] == {"source": "arrays", "particles": 24}
            assert "arrays" in run.provenance["seed"]
            assert ("arrays" if name == "given" else "step 1, t =") in run.provenance["bodies"]
    with Trajectory(tmp_path / "made.h5") as run:
        assert run.resolved["initial"]["generator"] == "plummer" and run.provenance["seed"] == 1
    with Trajectory(tmp_path / "given.h5") as run, pytest.raises(InputError, match="frame: 0"):
        Simulation(Scenario.from_dict(run.resolved))


def test_a_simulation_may_be_driven_by_any_thread(tmp_path):
    simulation, steps = Simulation(bodies(), tmp_path / "run.h5", **KEYS), []

    def drive():
        steps.extend(event.progress.step for event in simulation.progress_events(steps=5))

    for _ in range(2):
        thread = threading.Thread(target=drive)
        thread.start()
        thread.join()
    assert steps[-1] == 10 == simulation.run(steps=0).step
    with Trajectory(tmp_path / "run.h5") as run:
        assert list(run.step) == list(range(11))


def test_a_simulation_that_is_running_is_not_run_again():
    simulation = Simulation(bodies(), **KEYS)
    progress_events = simulation.progress_events(steps=10)
    next(progress_events)
    with pytest.raises(InputError, match="is running"):
        simulation.run(steps=1)
    progress_events.close()
    assert simulation.run(steps=1).steps == 1


def test_a_callback_gets_the_particles_every_few_steps_or_at_times(tmp_path):
    seen = []

    def look(now):
        seen.append((now.step, now.time))

    simulation = Simulation(bodies(), tmp_path / "run.h5", every=3, **KEYS)
    simulation.run(steps=10, callback=look, every=4)
    simulation.integrate(until=16 * KEYS["dt"], callback=look, interval=2 * KEYS["dt"])
    assert [step for step, _ in seen] == [4, 8, 12, 14, 16]
    assert all(time == step * KEYS["dt"] for step, time in seen)
    Simulation(bodies(), tmp_path / "silent.h5", every=3, **KEYS).run(steps=16)
    assert first_difference(tmp_path / "run.h5", tmp_path / "silent.h5") is None


def test_a_callback_at_times_is_on_time_where_the_steps_have_no_fixed_length():
    seen = []
    simulation = Simulation(bodies(), integrator={"scheme": "hermite4", "eta": 0.02}, **KEYS | {"dt": None})
    simulation.integrate(until=0.1, callback=lambda now: seen.append(now.time), interval=0.025)
    assert seen == pytest.approx([0.025, 0.05, 0.075, 0.1], rel=1e-15) and simulation.time == 0.1


def test_frames_every_few_steps_until_a_time_are_refused_where_steps_have_no_fixed_length():
    simulation = Simulation(bodies(), every=2, integrator={"scheme": "hermite4", "eta": 0.02}, **KEYS | {"dt": None})
    with pytest.raises(InputError, match=r"'every' can't be used; give record=\{'dt': TIME\}"):
        simulation.integrate(until=0.1)


def test_calls_and_frames_at_times_that_differ_by_rounding_are_one_moment():
    """3 · 0.1 is not 0.3. A step between the two, of 6e-17, would spoil the schemes' derivatives."""
    seen = []
    simulation = Simulation(bodies(), integrator="hermite6_block", softening=0.05, precision="float64", engine="cpu")
    simulation.integrate(until=0.5, callback=lambda now: seen.append(now.time), interval=0.1)
    assert seen == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5], rel=1e-15) and simulation.time == 0.5


def test_a_callback_at_times_counts_from_the_present_moment():
    seen = []
    simulation = Simulation(bodies(), **KEYS)
    simulation.run(steps=3)
    simulation.run(steps=7, callback=lambda now: seen.append(now.step), interval=3 * KEYS["dt"])
    assert seen == [6, 9]


def test_a_callback_ends_a_run_by_false_or_an_error_and_the_file_is_whole(tmp_path):
    simulation = Simulation(bodies(), tmp_path / "run.h5", every=5, **KEYS)
    assert simulation.run(steps=100, callback=lambda now: now.step < 7).step == 7
    with pytest.raises(ZeroDivisionError):
        simulation.run(steps=100, callback=lambda now: 1 / 0)
    with Trajectory(tmp_path / "run.h5") as run:
        assert list(run.step) == [0, 5, 8] and run.status == "stopped" and run.verify() == []
    simulation.run(steps=2)
    for wrong in ({"callback": 3}, {"every": 2}, {"callback": print, "every": 0}, {"callback": print, "interval": -1}):
        with pytest.raises(InputError, match=r"^run: "):
            simulation.run(steps=1, **wrong)


def test_arrays_of_a_simulation_are_its_memory():
    simulation = Simulation(bodies(), **KEYS)
    position = simulation.arrays["position"]
    simulation.run(steps=1)
    assert position is simulation.state.position and np.shares_memory(np.from_dlpack(position), position)
    np.testing.assert_array_equal(position, simulation.particles.position)
    simulation.arrays["velocity"][:] = 0.0
    simulation.state.invalidate()
    assert not simulation.particles.velocity.any()


@pytest.mark.simulated
def test_a_gpu_has_the_same_particles_arrays_and_threads(tmp_path):
    few, keys = bodies(8), {"dt": 0.01, "softening": 0.25, "precision": "float64"}
    ends = []
    for engine in ("gpu-tiled", "cpu"):
        sim = Simulation(few, tmp_path / f"{engine}.h5", engine=engine, **keys)
        thread = threading.Thread(target=sim.run, args=(2,))
        thread.start()
        thread.join()
        sim.run(steps=1, callback=lambda now: ends.append(now.position))
        view = np.asarray(sim.arrays["position"].copy_to_host() if engine == "gpu-tiled" else sim.arrays["position"])
        assert view.shape == (8, 3) and np.array_equal(view, sim.particles.position) and np.array_equal(view, ends[-1])
        with Trajectory(tmp_path / f"{engine}.h5") as run:
            assert list(run.step) == [0, 1, 2, 3] and np.array_equal(run.position[3], view)
    assert np.allclose(ends[0], ends[1], rtol=1e-12)
    for engine, precision in {"auto": "float32", "cpu": "float64"}.items():  # where none is given
        assert Simulation(few, dt=0.01, softening=0.25, engine=engine).scenario.precision == precision


@pytest.mark.parametrize("scheme", ["ias15", "hermite4_block"])
def test_a_scheme_in_float64_alone_gets_it_unless_another_precision_is_written(scheme):
    keys, said = {"engine": "cpu", "softening": 0.25, "end": 0.1, "integrator": scheme}, []
    simulation = Simulation(bodies(), notify=said.append, **keys)
    assert simulation.scenario.precision == simulation.state.dtype.name == "float64"
    assert f"precision: float64 (scheme '{scheme}' computes in it)" in said
    with pytest.raises(InputError, match="choose --precision float64"):
        Simulation(bodies(), precision="float32", **keys)


def test_a_scenario_may_be_a_name_or_a_path_and_anything_else_is_refused(tmp_path):
    (tmp_path / "own.yaml").write_text("initial: {generator: plummer, particles: 8}\nintegrator: {dt: 0.01, steps: 1}\n")
    with simulate(str(tmp_path / "own.yaml"), engine="cpu") as run:
        assert run.count == 8
    simulation = Simulation("kepler", engine="cpu")
    assert repr(simulation).startswith("<Simulation 'kepler': 2 bodies, ") and "engine cpu" in repr(simulation)
    for wrong in ((np.ones(2), np.ones((2, 3)), np.ones((2, 3))), 3):
        with pytest.raises(InputError, match=r"^Simulation: needs a scenario, its name or path, or particles"):
            Simulation(wrong)
    with pytest.raises(InputError, match=r"^plumer: there is no such file, .*did you mean 'plummer'"):
        simulate("plumer")


def test_what_is_printed_of_one_body_is_in_the_singular(tmp_path):
    alone = Simulation(plummer(1), dt=0.1, engine="reference", precision="float64", output=tmp_path / "one.h5")
    alone.run(1)
    with Trajectory(tmp_path / "one.h5") as run:
        for each in (alone, alone.summary, run, run[0], Tree([[0.0, 0, 0]], [1.0], accuracy=1e-3)):
            assert re.search(r"\b1 (body|particle)\b", repr(each)), repr(each)


def test_a_recorded_simulation_stands_for_its_file(tmp_path):
    simulation = Simulation(plummer(3), dt=0.1, engine="reference", precision="float64", output=tmp_path / "run.h5")
    simulation.run(1)
    assert [line.get_label() for line in nbody.plot(simulation, "energy").axes[0].lines]
    with pytest.raises(InputError, match="this simulation was not recorded; make it with output="):
        nbody.plot(Simulation(plummer(3), dt=0.1), "energy")
    with pytest.raises(InputError, match=r"^record: needs the path of a new file, got a simulation$"):
        simulation.record(simulation)
    with pytest.raises(InputError, match=r"^output: needs the path of a new file, got a simulation$"):
        Simulation(plummer(3), dt=0.1, output=simulation)
    for call in (resume, nbody.plot, nbody.Trajectory, lambda wrong: rerun(tmp_path / "run.h5", wrong)):
        with pytest.raises(InputError, match=r"^the name of a file is needed, .*; got 3$"):
            call(3)
    with pytest.raises(InputError, match=r"^start: .* a run begins at the time of its particles$"):
        Simulation(plummer(3), dt=0.1, start=2.0)


def test_the_second_argument_of_simulate_may_be_the_output(tmp_path):
    keys = {"engine": "cpu", "softening": 0.25, "dt": 0.01, "steps": 1}
    with simulate(bodies(), str(tmp_path / "out.h5"), **keys) as run:
        assert run.path == str(tmp_path / "out.h5") and len(run) == 2
    with pytest.raises(InputError, match="10 Myr: a recording is an HDF5 file"):
        simulate(bodies(), "10 Myr", **keys)
    with pytest.raises(InputError, match=r"until: must be a time, got 'a\.h5'"):
        simulate(bodies(), "a.h5", output="b.h5", **keys)


CALLS = [
    ("run", -1, "^run: steps: must be zero or more, got -1$"),
    ("run", 1.5, "^run: steps: must be a whole number, got 1.5$"),
    ("run", 2**60, "at most 2.53"),
    ("run", 10**400, "at most 2.53"),
    ("step", 2**60, "at most 2.53"),
    ("step", -1, "^step: must be zero or more, got -1$"),
    ("step", 1.5, "^step: must be a whole number, got 1.5$"),
    ("step", "a", "^step: must be a number, got 'a'$"),
    ("step", float("nan"), "must be a whole number, got nan"),
    ("step", np.array([1, 2]), "must be a number"),
    ("integrate", None, "until when"),
    ("integrate", "1 yr", "^integrate: until: must be a number, got '1 yr'$"),
    ("integrate", float("inf"), "must be a finite number"),
    ("integrate", [1.0], "must be a number, got a list"),
    ("integrate", -0.01, r"-0.01 is not a whole number of steps of -0.0078125; write -0.0078125"),
    ("integrate", 0.01, r"0.01 is not a whole number of steps of 0.0078125; write 0.0078125"),
    ("at", "a", "^at: must be a number, got 'a'$"),
    ("at", 10**400, "at most 1.8e308"),
    ("at", 2**60, "more than 2.53"),
    ("at", [0.1], "must be a number, got a list"),
    ("at", -1, "before t = 0"),
]


@pytest.mark.parametrize("method,value,line", CALLS)
def test_a_wrong_number_of_steps_or_time_is_refused_and_changes_nothing(method, value, line):
    simulation = Simulation(bodies(), **KEYS)
    with pytest.raises(InputError, match=line):
        getattr(simulation, method)(value)
    assert simulation.steps_made == 0
    simulation.step(np.float64(2))
    simulation.run(np.array(1), callback=lambda now: None, every=np.int64(1), interval=None)
    assert simulation.steps_made == 3


def test_times_of_a_simulation_with_units_may_have_units():
    units = {"length": "au", "mass": "Msun", "time": "day"}
    simulation = Simulation(bodies(), units=units, **KEYS | {"dt": "0.5 day"})
    simulation.integrate("240 h")
    assert simulation.time == 10.0 and simulation.at("12 day").time == 12.0
    with pytest.raises(InputError, match=r"until: .*'3 kg'"):
        simulation.integrate("3 kg")


@pytest.mark.parametrize("scheme", ["hermite6_block", "ias15", "leapfrog_adaptive"])
def test_a_time_some_roundings_from_now_is_reached(scheme, tmp_path):
    """Its default frames are less than a rounding apart."""
    simulation = Simulation(bodies(), tmp_path / "a.h5", **KEYS | {"integrator": scheme, "precision": "float64"})
    simulation.integrate(0.005)
    simulation.integrate(0.005 + 1e-17)
    assert simulation.time == 0.005 + 1e-17 > 0.005


@pytest.mark.parametrize("interval", ["a", [1], 0, float("nan")])
def test_a_wrong_interval_or_function_is_refused(interval):
    simulation = Simulation(bodies(), **KEYS)
    with pytest.raises(InputError, match=r"^run: interval: must be"):
        simulation.run(1, callback=print, interval=interval)
    with pytest.raises(InputError, match=r"^run: progress must be a function, got 3$"):
        simulation.run(1, progress=3)
    with pytest.raises(InputError, match=r"notify: must be a function, got 3$"):
        Simulation(bodies(), notify=3, **KEYS)


@pytest.mark.parametrize("path", [3, True, "", b"run.h5"])
def test_what_is_no_name_of_a_file_is_refused(path):
    for use in (lambda: Simulation(bodies(), output=path, **KEYS), lambda: Trajectory(path)):
        with pytest.raises(InputError, match="name of a file is needed"):
            use()


@pytest.mark.parametrize(
    "values",
    [
        {"mass": "a"}, {"mass": [1, "a"]}, {"mass": [1j, 1]}, {"position": [[0, 0, 0], [1]]}, {"id": ["a", "b"]},
        {"id": [0.5, 1]}, {"id": np.array([2**63, 1], np.uint64)},
        {"species": [float("nan"), 0]}, {"time": "a"}, {"time": float("nan")}, {"step": 1.5}, {"step": -1},
        {"step": 10**400},
    ],
)  # fmt: skip
def test_particles_that_are_no_numbers_are_refused(values):
    given = {"mass": [1, 1], "position": np.eye(2, 3), "velocity": np.zeros((2, 3))}
    with pytest.raises(InputError, match=f"{next(iter(values))}"):
        Simulation(Particles(**given | values), **KEYS)


def test_a_time_of_a_recording_is_a_number_between_its_frames(tmp_path):
    Simulation(bodies(), tmp_path / "run.h5", **KEYS).run(2)
    with Trajectory(tmp_path / "run.h5") as run:
        for wrong in ("a", None, [0.0], 1j, 10**400, float("nan"), -1):
            with pytest.raises(InputError, match="at: "):
                run.at(wrong)
        with pytest.raises(InputError, match="frame: must be a whole number"):
            run.particles(0.5)


def test_the_help_of_a_generator_shows_what_must_be_given_and_the_units_of_angles():
    assert "`bodies` (list: group of keys; required)" in planets.__doc__
    assert (
        "`a` (length; optional)" in planets.__doc__
        and "`Omega`" in planets.__doc__
        and "(degrees; default 0)" in planets.__doc__
    )
    for name in GENERATORS:
        assert "Undefined" not in function(name).__doc__


def test_one_of_the_particles_has_the_names_of_its_numbers_and_counts_when_it_is_set():
    run = Simulation(planets(bodies=[{"m": 1, "name": "sun"}, {"m": 1e-3, "a": 1, "name": "b"}]), integrator="ias15")
    planet = run.particles["b"]
    assert (planet.m, planet.name, planet.id, run.particles[-1].id) == (1e-3, "b", 1, 1)
    assert [planet.x, planet.vy] == [run.particles.position[1, 0], run.particles.velocity[1, 1]]
    assert [each.name for each in run.particles] == ["sun", "b"] and run.particles[:1].mass == [1.0]
    planet.m, planet.vz = 2e-3, 0.1
    run.step()
    assert run.particles[1].m == 2e-3 and abs(run.particles[1].vz - 0.1) < 1e-3
    for name, value, line in (("position", [1, 2], "must be 3 numbers"), ("x", [1, 2], "must be a number")):
        with pytest.raises(InputError, match=f"particles: {name}: {line}, got a list"):
            setattr(run.particles[1], name, value)
    with pytest.raises(InputError, match="can't be set: these particles are of an earlier moment"):
        planet.x = 3.0
    for name in ("id", "name"):
        with pytest.raises(InputError, match=f"particles: {name}: can't be set: it is fixed at the beginning"):
            setattr(run.particles[0], name, 5)
    with pytest.raises(AttributeError, match="this body has no 'r'"):
        run.particles[0].r = 1.0
    with pytest.raises(IndexError, match=r"no body 2; particles\[…\] counts from 0 to 1"):
        run.particles[2]
    with pytest.raises(InputError, match=r"particles.* takes a row, a name, a slice"):
        run.particles[True]
    again = copy.deepcopy(run.particles[1])
    assert repr(pickle.loads(pickle.dumps(again))) == repr(run.particles[1])
    assert np.array([run.particles, run.particles], dtype=object).shape == (2,)


@pytest.mark.parametrize(
    ("expression", "line"),
    [
        ("run.particles.m", "it is particles.mass"),
        ("run.particles.vy", r"it is particles.velocity\[:, 1\]"),
        ("run.particles.postion", "did you mean 'position'"),
        ("run.particles[0].a", r"elements of orbits are simulation.orbits\(\)"),
        ("run.megno", r"observables\['megno'\], or \['system_megno'\] of an ensemble$"),
        ("run.begn", "has no attribute 'begn'$"),
        ("run.resume", r"it is nbody.resume\(path\)"),
        ("run.run(until=1)", r"say integrate\(until=…\) to go to a time"),
        ("run.integrate(steps=1)", r"say run\(steps=…\) for a number of steps"),
        ("nbody.plumer", "did you mean 'plummer'"),
    ],
)
def test_a_name_of_another_program_is_answered_with_the_one_here(expression, line):
    run = Simulation(bodies(), **KEYS)
    with pytest.raises((AttributeError, InputError), match=line):
        eval(expression, {"run": run, "nbody": nbody})


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ("Scenario.load('plummer').override(dt=0)", "^dt: must not be 0$"),
        ("Scenario.load('plummer').override(['gravity.G=x'])", "^gravity.G: must be a number"),
        ("nbody.map('planets', y='bodies.1.a=1..2:3')", "^y: is the second axis; give x too$"),
        (
            "Simulation(bodies(), precision='float32', accuracy=1e-8, engine='cpu-tree', dt=1)",
            "choose precision float64$",
        ),
        ("nbody.Trajectory('a --dt.h5')", "^a --dt.h5: there is no such file"),
        ("nbody.Trajectory('a --b c.h5')", "^a --b c.h5: there is no such file"),
    ],
)
def test_lines_name_arguments_where_no_command_is_typed(monkeypatch, call, line):
    monkeypatch.setattr(errors, "command_line", False)
    with pytest.raises(errors.NBodyError, match=line):
        eval(call)


def test_warnings_and_lines_for_notify_name_arguments_too(monkeypatch):
    monkeypatch.setattr(errors, "command_line", False)
    said, far = [], Particles([1, 1e9], [[1e5, 0, 0], [1e5, 1, 0]], np.zeros((2, 3)))
    Simulation(far, dt=1e-3, softening=0.01, precision="float32", notify=said.append)
    with pytest.warns(UserWarning, match="take a smaller dt, a larger softening"):
        Simulation(Particles([1, 1], [[0, 0, 0], [1, 0, 0]], np.zeros((2, 3))), dt=0.5, softening=1e-3).run(9)
    assert said[-1].endswith("more than float32 sums can keep; take precision auto")
    assert errors.worded("check it with 'nbody info --verify'") == "check it with 'nbody info --verify'"  # to be typed
    assert errors.worded("can't be: --overwrite, see 'a --dt'") == "can't be: overwrite, see 'a --dt'"
    typed = [name for name, option in OPTIONS.items() if option.help or option.takes == "texts"]
    typed += [each.name for each in fields(Look) if type(each.default) is not bool]
    assert [errors.worded(f"--{name.replace('_', '-')}") for name in typed] == typed


def test_a_run_that_fails_says_what_is_in_the_file(tmp_path):
    falling = Particles([1, 1], [[0, 0, 0], [1, 0, 0]], np.zeros((2, 3)))
    keys = {"dt": 0.5, "softening": "none", "engine": "cpu", "on_energy_error": {"limit": 0.1, "action": "stop"}}
    with pytest.raises(RunFailed, match=r"try a smaller --dt; 2 frames until then: .*run.h5$"):
        Simulation(falling, tmp_path / "run.h5", **keys).run(9)
    with pytest.raises(RunFailed, match=r"try a smaller --dt$"):
        Simulation(falling, **keys).run(9)
    with Trajectory(tmp_path / "run.h5") as run:
        assert len(run) == 2


@pytest.mark.parametrize(
    ("mass", "shape", "line"),
    [
        (2, (1, 3), "particles: position has 1 rows but mass has 2; every array needs one row"),
        (4, (3, 4), r"position has 3 rows but mass has 4; transpose it, position\.T"),
        ((4, 1), (4, 3), r"mass must be \(N,\), .* got \(4, 1\), \(4, 3\)"),
        (4, (4, 4), r"must both be \(N, 2\) or both \(N, 3\)"),
    ],
)
def test_particles_of_shapes_that_do_not_fit_are_refused_at_once(mass, shape, line):
    with pytest.raises(InputError, match=line):
        nbody.Particles(np.ones(mass), np.ones(shape), np.ones(shape))
