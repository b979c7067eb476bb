"""Ensembles: thousands of small systems in one run, each with the bits that it has alone."""

import copy
import os
import signal
import time

import numpy as np
import pytest
from conftest import until
from stepping import after_steps, interrupt_at, interrupted

import nbody
from nbody.errors import InputError, RunFailed
from nbody.forces.reference import ReferenceEngine
from nbody.initial import make_particles
from nbody.initial.ensemble import member
from nbody.integrators.solvers.systems import chunks
from nbody.law import Gravity
from nbody.run.resume import resume
from nbody.scenario import Scenario
from nbody.scenario.ensemble import Ensemble
from nbody.state import Outputs
from nbody.trajectory import TrajectoryWriter, first_difference, read_checkpoint
from nbody.trajectory.reading.tables import observable_table

G = 4 * np.pi**2


def pairs_of_planets(scheme="wisdom_holman", systems=12, **keys):
    """Two planets of ten Earth masses about a star, at twelve separations; with the other keys of a scenario."""
    times = {"dt": 0.05, "end": 20.0} if scheme == "wisdom_holman" else {"end": 2.0}
    return {
        "name": "pairs",
        "initial": {
            "generator": "planets", "seed": 5,
            "bodies": [{"m": 1.0}, {"m": 3e-5, "a": 1.1}, {"m": 3e-5, "a": 1.0, "M": 90}],
        },
        "gravity": {"G": G},
        "ensemble": {
            "systems": systems,
            "vary": {"initial.bodies.1.a": {"linear": [1.06, 1.3, 6]}, "initial.bodies.2.e": {"rayleigh": 0.02}},
        },
        "integrator": {"scheme": scheme, **times},
        "engine": "cpu", "precision": "float64", "record": {"dt": times["end"] / 4},
    } | keys  # fmt: skip


def recorded(scenario, path, **more):
    nbody.Simulation(Scenario.from_dict(scenario), path, overwrite=True, **more).run()
    return nbody.Trajectory(path)


def test_an_ensemble_of_one_system_is_recorded(tmp_path):
    one = pairs_of_planets(ensemble={"vary": {"initial.bodies.1.a": [1.2]}})
    with recorded(one, tmp_path / "one.h5") as run:
        assert run.observable("system_energy").shape == (5, 1) and list(run.systems["status"]) == ["done"]
        np.testing.assert_array_equal(run.system(0).position, run.position)


FORCES = {
    "wisdom_holman": [{"field": "migration", "tau_a": 900, "on": 1}, {"field": "j2", "j2": 1e-3, "radius": 0.1}],
    "ias15": [{"field": "post_newtonian", "c": 63241.077}],
}


@pytest.mark.parametrize("scheme", ["wisdom_holman", "ias15"])
def test_each_system_has_the_bits_that_it_has_alone_in_fields_too(scheme, tmp_path):
    values = pairs_of_planets(scheme, fields=FORCES[scheme])
    scenario = Scenario.from_dict(values)
    with recorded(values, tmp_path / "all.h5") as run:
        energies = run.observable("system_energy")
        np.testing.assert_allclose(energies.sum(axis=1), run.observable("total_energy"), rtol=1e-13)
        assert len(run) == 5 and run.complete and run.count == 36
        for number in (2, 7, 11):
            one, simulation = run.system(number), nbody.Simulation(member(scenario, number), tmp_path / "one.h5", True)
            if run.systems["status"][number] != "done":
                with pytest.raises(RunFailed, match=f"step {run.systems['steps'][number]}:"):
                    simulation.run()
                np.testing.assert_array_equal(one.position[-1], simulation.particles.position)
                continue
            simulation.run()
            with nbody.Trajectory(tmp_path / "one.h5") as alone:
                np.testing.assert_array_equal(one.time, alone.time)
                np.testing.assert_array_equal(one.position, alone.position[:])
                np.testing.assert_array_equal(one.velocity, alone.velocity[:])
                np.testing.assert_allclose(energies[:, number], alone.observable("total_energy"), rtol=1e-12)
                assert run.systems["steps"][number] == alone.step[-1]
        assert (run.systems["status"] == "done").sum() >= 6


@pytest.mark.parametrize("scheme", ["wisdom_holman", "ias15"])
def test_the_bits_do_not_depend_on_threads_or_on_where_a_run_is_cut(scheme, tmp_path):
    import numba

    whole = nbody.Simulation(Scenario.from_dict(pairs_of_planets(scheme)))
    whole.run()
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        cut = nbody.Simulation(Scenario.from_dict(pairs_of_planets(scheme)), tmp_path / "cut.h5")
        for event in cut.progress_events():
            if event.state.clock.step > 10:
                break
        cut.record(None)
        again = resume(tmp_path / "cut.h5")
        again.run()
    finally:
        numba.set_num_threads(before)
    assert again.steps_made == whole.steps_made
    for name in ("position", "velocity"):
        np.testing.assert_array_equal(getattr(again.particles, name), getattr(whole.particles, name))
    for name, values in whole.stepper.integrator.arrays().items():
        np.testing.assert_array_equal(again.stepper.integrator.arrays()[name], values, err_msg=name)


@pytest.mark.parametrize("scheme", ["wisdom_holman", "ias15"])
def test_a_resumed_ensemble_has_the_bits_of_a_whole_run(scheme, tmp_path, monkeypatch):
    """Also if the disk is so slow that steps are made while a checkpoint is written."""
    scenario = pairs_of_planets(scheme)
    recorded(scenario, tmp_path / "whole.h5").close()
    cut, write = nbody.Simulation(Scenario.from_dict(scenario), tmp_path / "cut.h5"), TrajectoryWriter.checkpoint
    written, asked = [], []

    def slowly(*given):
        time.sleep(0.02)
        write(*given)
        written.append(given)

    def look(made):
        if cut.time > 0.6 * scenario["integrator"]["end"]:
            raise RunFailed("the machine stopped")
        assert until(lambda: len(written) >= len(asked))
        cut.recording.checkpoint()
        asked.append(made)

    monkeypatch.setattr(TrajectoryWriter, "checkpoint", slowly)

    after_steps(cut, look, at_most=15)
    with pytest.raises(RunFailed, match="the machine stopped"):
        cut.run()
    again = resume(tmp_path / "cut.h5")
    assert 0 < again.steps_made < cut.steps_made
    again.run()
    assert first_difference(tmp_path / "whole.h5", tmp_path / "cut.h5") is None


def test_forces_act_within_systems_only():
    scenario = Scenario.from_dict(pairs_of_planets())
    made = nbody.Simulation(scenario)
    made.setup.engine.evaluate(made.state, Outputs.POTENTIAL)
    for number in range(12):
        engine = ReferenceEngine(Gravity(G=G), "float64")
        alone = engine.load(make_particles(member(scenario, number)))
        engine.evaluate(alone, Outputs.POTENTIAL)
        rows = slice(3 * number, 3 * number + 3)
        np.testing.assert_allclose(made.state.acceleration[rows], alone.acceleration, rtol=1e-14)
        np.testing.assert_allclose(made.state.potential[rows], alone.potential, rtol=1e-14)


def test_the_energy_of_all_is_the_sum_and_each_system_has_its_own(tmp_path):
    with recorded(pairs_of_planets("ias15"), tmp_path / "run.h5") as run:
        energy = run.observable("system_energy")
        np.testing.assert_allclose(energy.sum(axis=1), run.observable("total_energy"), rtol=1e-13)
        assert np.abs(run.systems["energy_error"]).max() < 1e-14
        assert (run.systems["steps"] > 0).all() and (run.systems["time"] == 2.0).all()
        assert "system_energy" not in observable_table(run.widths, run.observable)


def test_plots_of_an_ensemble_have_a_colour_per_system_and_take_one(tmp_path):
    """Each system has its own energy, and orbits about its own star."""
    observed = {"dt": 5.0, "observables": ["megno"]}
    with recorded(pairs_of_planets(record=observed), tmp_path / "run.h5") as run:
        said = []
        energy, a, megno = nbody.plot(run, "energy", "a", "megno", notify=said.append).axes
        assert said == [f"{run.path}: 8 of its 12 systems, evenly spread"]
        error = run.observable("system_energy")[:, 11] / run.observable("system_energy")[0, 11] - 1
        np.testing.assert_allclose(energy.lines[7].get_ydata(), np.abs(error), atol=1e-15)
        np.testing.assert_allclose([line.get_ydata()[0] for line in a.lines[-2:]], [1.3, 1.0], rtol=1e-9)
        assert megno.lines[8].get_ydata()[-1] == run.systems["megno"][11]
        one = nbody.plot(run.system(11), "a", "orbits").axes
        assert [line.get_ydata()[0] for line in one[0].lines] == [line.get_ydata()[0] for line in a.lines[-2:]]
        assert len(one[1].lines[2].get_xdata()) > 5  # arcs about the star
        with pytest.raises(InputError, match="virial ratio; it has that of all systems together; plot energy, orbits"):
            nbody.plot(run, "virial")


# --- Systems that end -----------------------------------------------------------------------------------------------


def test_no_planets_meet_beyond_gladmans_limit(tmp_path):
    """Two planets on circular orbits farther apart than 2√3 Hill radii never meet (Gladman 1993): 1.0965 here. At 0.6 times
    that distance their orbits cross within some tens of synodic periods of 20 years."""
    scenario = pairs_of_planets(systems=48)
    scenario["ensemble"]["vary"] = {
        "initial.bodies.1.a": [1.058, 1.10], "initial.bodies.1.M": {"uniform": [0, 360]},
    }  # fmt: skip
    scenario["integrator"]["end"] = 500.0
    scenario["record"] = {"dt": 500.0}
    with recorded(scenario, tmp_path / "run.h5") as run:
        table = run.systems
        near = table["initial.bodies.1.a"] == 1.058
        assert (table["status"][~near] == "done").all()
        assert (table["status"][near] == "close encounter").mean() > 0.5
        ended = np.flatnonzero(table["status"] != "done")[0]
        assert table["steps"][ended] == round(table["time"][ended] / 0.05) < 10_000
        assert 1e-3 < table["closest_approach"][ended] < 0.05  # Hill radius 0.027


def falling(**keys):
    """Two pairs of equal masses: one falls together, the other is on a circle of period 2π/√2."""
    x = np.array([[0.5, 0, 0], [-0.5, 0, 0]])
    v = np.array([[0, np.sqrt(0.5), 0], [0, -np.sqrt(0.5), 0]])
    bodies = nbody.Particles(np.ones(4), np.vstack((x, x)), np.vstack((0 * v, v)))
    return nbody.Simulation(
        bodies, integrator="ias15", end=4.0, ensemble={"systems": 2}, precision="float64", record={"dt": 1.0}, **keys
    )


def test_bodies_that_collide_end_their_system_and_no_other(tmp_path):
    lines = []
    falling(output=tmp_path / "run.h5", notify=lines.append).run()
    assert any("1 done, 1 collision" in line for line in lines)
    with nbody.Trajectory(tmp_path / "run.h5") as run:
        assert list(run.systems["status"]) == ["collision", "done"]
        np.testing.assert_allclose(run.systems["time"], [np.pi / 4, 4.0], rtol=1e-3)  # the time of free fall
        assert run.systems["closest_approach"][0] < 1e-6
        angle = 4 * np.sqrt(2)
        np.testing.assert_allclose(run.system(1).position[-1, 0, :2], [np.cos(angle) / 2, np.sin(angle) / 2], atol=1e-13)
        assert read_checkpoint(tmp_path / "run.h5").meta["time"] == 4.0


def test_numbers_that_are_not_finite_end_their_system_and_no_other():
    made = nbody.Simulation(Scenario.from_dict(pairs_of_planets()))
    made.run(steps=10)
    made.state.map_position[3 * 11 + 1] = 0.0  # a planet in its star
    made.run(steps=10)
    now = made.stepper.integrator.arrays()
    assert now["status"][11] == 3 and now["steps"][11] == 10 and not now["status"][8:11].any()
    assert all(np.isfinite(array).all() for array in made.state.arrays().values())


# --- What may vary --------------------------------------------------------------------------------------------------


def test_ranges_and_lists_form_a_grid_and_random_values_follow_from_the_seed():
    vary = {"initial.bodies.1.a": [1, 2], "initial.bodies.1.e": {"rayleigh": 0.1}, "initial.bodies[2].M": "3..5"}
    values = Ensemble(systems=12, vary=vary).values(7)
    assert values["initial.bodies.1.a"] == [1] * 6 + [2] * 6
    assert values["initial.bodies[2].M"] == [3, 3, 4, 4, 5, 5] * 2
    assert Ensemble(vary={"initial.seed": "1..9"}).count == 9
    ranges = {"initial.bodies.1.a": "0.9..1.1:5", "initial.bodies.1.m": "1e-6..1e-3:4:log"}
    near, heavy = Ensemble(vary=ranges).axes.values()
    np.testing.assert_allclose(near, [0.9, 0.95, 1, 1.05, 1.1])
    np.testing.assert_allclose(heavy, [1e-6, 1e-5, 1e-4, 1e-3])
    assert Ensemble(systems=3).values(5) == {"initial.seed": [5, 6, 7]}
    more = Ensemble(systems=24, vary=vary)
    assert (
        more.values(7)["initial.bodies.1.e"][:12]
        == values["initial.bodies.1.e"]
        != more.values(8)["initial.bodies.1.e"][:12]
    )


def test_random_values_have_their_distributions():
    draws = {
        "initial.a": {"uniform": [2, 4]}, "initial.b": {"log_uniform": [1, 100]}, "initial.c": {"normal": [1, 2]},
        "initial.d": {"rayleigh": 3},
    }  # fmt: skip
    found = Ensemble(systems=10_000, vary=draws).values(1)
    means = [3, 99 / np.log(100), 1, 3 * np.sqrt(np.pi / 2)]
    for values, mean in zip(found.values(), means, strict=True):
        assert abs(np.mean(values) - mean) < 5 * np.std(values) / 100


@pytest.mark.parametrize(
    "changed,message",
    [
        ({"ensemble": {}}, "systems: is missing"),
        ({"ensemble": {"systems": 7, "vary": {"initial.seed": "1..3"}}}, "3 combinations"),
        ({"ensemble": {"systems": 4, "vary": {"bodies.1.a": [1, 2]}}}, "as in 'initial.bodies.1.a"),
        ({"ensemble": {"systems": 4, "vary": {"initial.particles": [1, 2]}}}, "'particles' can't vary"),
        ({"ensemble": {"vary": {"initial.bodies[1].e": [0, 0.1], "initial.bodies.1.e": [0.2]}}}, "is the same value"),
        ({"ensemble": {"systems": 4, "vary": {"initial.seed": 3}}}, "must be a range"),
        ({"ensemble": {"vary": {"initial.bodies.1.a": "0.9..1.1"}}}, "lacks the number of values, as in 0.9..1.1:50"),
        ({"ensemble": {"vary": {"initial.bodies.1.a": "0..1:5:log"}}}, "two positive ends"),
        ({"ensemble": {"vary": {"initial.bodies.1.a": "1..2:5:lin"}}}, "or with ':log' after it, got 'lin'"),
        ({"ensemble": {"vary": {"initial.seed": "1..2:0"}}}, "how many values there are, 1 to 1048576, got '0'"),
        ({"ensemble": {"systems": 4, "vary": {"initial.seed": {"gauss": [1, 2]}}}}, "unknown distribution 'gauss'"),
        ({"ensemble": {"systems": 4, "vary": {"initial.seed": {"uniform": [2]}}}}, "takes 2 numbers"),
        ({"ensemble": {"systems": 4, "vary": {"initial.seed": {"uniform": [2, 1]}}}}, "smaller number first"),
        ({"ensemble": {"vary": {"initial.bodies.1.a": [1.1, -1]}}}, "system 1: initial.bodies.1.a = -1: -1 does"),
        ({"ensemble": {"systems": 4, "vary": {"initial.bodies.7.a": [1, 2]}}}, "there is no '7'"),
        ({"ensemble": {"systems": 4, "vary": {"initial.bodies.1.k": [1, 2]}}}, "unknown key"),
        ({"ensemble": {"systems": 1 << 21}}, "at most 1048576"),
        ({"integrator": {"scheme": "leapfrog", "dt": 0.1, "end": 1.0}}, "choose scheme ias15 or wisdom_holman"),
        ({"integrator": {"scheme": "ias15", "steps": 10}, "record": {}}, "write 'end: TIME' instead of 'steps'"),
        ({"engine": "matrix"}, "computes the forces of one system, not of an ensemble"),
        ({"engine": "tree"}, "computes the forces of one system, not of an ensemble; choose --engine reference or cpu"),
        ({"engine": "cp"}, "did you mean 'cpu'"),
        ({"engine": {"name": "cpu", "theta": 1}}, "unknown key"),
        ({"record": {"observables": ["escapers"]}}, "remove escapers"),
        (
            {
                "fields": {"field": "point_mass", "mass": 1},
                "engine": "gpu",
                "record": {"observables": ["megno"], "dt": 5},
            },
            "on a GPU the variational equations know no external fields; choose .*engine cpu",
        ),
        ({"precision": "float32"}, "choose precision float64"),
        ({"gravity": {"softening": "plummer", "length": 0.1}}, "not softened; choose scheme ias15, or"),
        ({"initial": {"generator": "plummer", "particles": 65}, "ensemble": {"systems": 2}}, "2 to 64 bodies"),
    ],
)
def test_invalid_ensembles_are_refused(changed, message):
    with pytest.raises(InputError, match=message):
        nbody.Simulation(Scenario.from_dict(pairs_of_planets() | changed))


def test_arrays_make_an_ensemble_if_their_number_fits():
    bodies = nbody.Particles(np.ones(5), np.eye(5, 3), np.zeros((5, 3)))
    with pytest.raises(InputError, match="5 bodies can't be 2 systems"):
        nbody.Simulation(bodies, integrator="ias15", end=1.0, ensemble={"systems": 2}, precision="float64")


def test_a_run_that_is_no_ensemble_has_no_systems(tmp_path):
    nbody.Simulation("kepler", tmp_path / "run.h5").run(steps=2)
    with nbody.Trajectory(tmp_path / "run.h5") as run, pytest.raises(InputError, match="holds no ensemble"):
        _ = run.systems


@pytest.mark.parametrize("number,message", [(1.5, "whole number, got 1.5"), ("1", "a number"), (2, "no system 2; it has 2")])
def test_a_system_has_a_whole_number(number, message, tmp_path):
    with recorded(pairs_of_planets(systems=2) | {"ensemble": {"systems": 2}}, tmp_path / "run.h5") as run:
        assert copy.copy(run.system(1.0)).number == 1
        with pytest.raises(AttributeError, match="no attribute 'at'"):  # a run has it, for all systems together
            run.system(1).at(0.0)
        with pytest.raises(InputError, match=message):
            run.system(number)


@pytest.mark.parametrize("change", [{"vary": {"initial.seed": {"gauss": 1}}}, {"vary": 5}, {"x": 1}])
def test_a_forged_ensemble_is_refused(change, tmp_path):
    with recorded(pairs_of_planets(systems=2) | {"ensemble": {"systems": 2}}, tmp_path / "run.h5") as run:
        run.resolved["ensemble"] |= change
        with pytest.raises(InputError, match="is damaged, or was not written by nbody"):
            _ = run.systems


def test_the_radii_of_the_bodies_belong_to_every_system():
    """Systems without radii get zeros where others have some."""
    scenario = pairs_of_planets() | {"ensemble": {"vary": {"initial.bodies.1.radius": [0, 0.25]}}}
    assert make_particles(Scenario.from_dict(scenario)).radius.tolist() == [0, 0, 0, 0, 0.25, 0]
    assert not len(make_particles(Scenario.from_dict(pairs_of_planets())).radius)


def test_an_empty_vary_means_the_seeds_as_none_does():
    plummer = {"initial": {"generator": "plummer", "particles": 3, "seed": 5}}
    none, empty = (
        make_particles(Scenario.from_dict(pairs_of_planets() | plummer | {"ensemble": {"systems": 2} | vary}))
        for vary in ({}, {"vary": {}})
    )
    np.testing.assert_array_equal(none.position, empty.position)
    assert (none.position[:3] != none.position[3:]).all()


@pytest.mark.parametrize("at", [0, 10])
def test_the_systems_of_an_interrupted_run_are_not_done_and_say_what_they_have_reached(at, tmp_path, capsys):
    from nbody.cli import main

    says = []
    cut = nbody.Simulation(Scenario.from_dict(pairs_of_planets()), tmp_path / "cut.h5", notify=says.append)
    if at:
        interrupt_at(cut, at, at_most=1)
    else:  # before the first step, where kernels are compiled
        cut.stepper.integrator.advance = lambda *given: os.kill(os.getpid(), signal.SIGINT)
    assert interrupted(cut.run).step == at
    with nbody.Trajectory(tmp_path / "cut.h5") as run:
        going = run.systems["status"] == "unfinished"
        assert (run.systems["status"] != "done").all() and going.sum() >= 6
        assert (run.systems["steps"][going] == at).all() and (run.systems["time"][going] == at * 0.05).all()
    assert main(["info", str(tmp_path / "cut.h5")]) == 0
    page = capsys.readouterr().out
    assert f"{going.sum()} unfinished" in page and f"in all, to t = {at * 0.05:g}" in page and " done" not in page
    assert not any("done" in line for line in says)


def test_info_counts_the_systems_by_their_ends(tmp_path, capsys):
    from nbody.cli import main

    recorded(pairs_of_planets(), tmp_path / "run.h5").close()
    assert main(["info", str(tmp_path / "run.h5")]) == 0
    page = capsys.readouterr().out
    assert "12 of 3 bodies" in page and "done" in page and "closest approach" in page
    assert main(["info", str(tmp_path / "run.h5"), "--verify", "--json"]) == 0
    assert '"systems": 12' in capsys.readouterr().out


def test_an_error_in_one_chunk_waits_for_the_others(monkeypatch):
    """When it is raised, no thread writes to the arrays any more."""
    monkeypatch.setattr(chunks, "get_num_threads", lambda: 2)
    moved = np.zeros(32)

    def kernel(first, last):
        if first == 0 < last:
            raise FloatingPointError
        time.sleep(0.005)
        moved[first:last] = 1

    with pytest.raises(FloatingPointError):
        chunks.divided(kernel, 32)
    assert moved[2:].all()
