"""Runs that go back in time: by a negative step, an end before the beginning, or a call of ``integrate``."""

import numpy as np
import pytest
from conftest import random_bodies

from nbody import Scenario, Simulation, Trajectory
from nbody.errors import InputError
from nbody.integrators import INTEGRATORS
from nbody.particles import Particles
from nbody.run.resume import rerun, resume

EXACT = {"engine": "cpu", "precision": "float64"}
PLANETS = Particles([1.0, 1e-3, 1e-4], [[0.0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0.0, 0, 0], [0, 1, 0], [0, 0.7, 0]])


def planets(scheme, bodies=PLANETS, output=None, **more):
    """A run of a star and two planets by a scheme."""
    softening = "none" if INTEGRATORS.load(scheme).facts.star else 0.01
    keys = {"softening": softening, "integrator": {"scheme": scheme}, "dt": 0.01} | EXACT | more
    return Simulation(bodies, output, **keys)


@pytest.mark.parametrize("scheme", INTEGRATORS)
def test_back_in_time_a_run_returns_to_where_it_began(scheme):
    """The way back has the error of the way there, of order p: ten times that of a leapfrog of 2π/628 per step. The moves
    of symmetric tables are undone one by one, to rounding: 1e-16 per step and coordinate, and some of it grows."""
    run = planets(scheme)
    run.integrate(0.5)
    there = run.particles
    run.integrate(0.0)
    back = run.particles
    symmetric = scheme in ("leapfrog", "leapfrog_dkd", "yoshida4", "forest_ruth", "yoshida6")
    tolerance = 1e-13 if symmetric else 1e-10 if scheme == "ias15" else 1e-2 if scheme == "taylor" else 1e-4
    assert run.time == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(back.position, PLANETS.position, rtol=0, atol=tolerance)
    np.testing.assert_allclose(back.velocity, PLANETS.velocity, rtol=0, atol=tolerance)
    assert np.abs(there.position - PLANETS.position).max() > 0.1


@pytest.mark.parametrize("scheme", INTEGRATORS)
def test_a_run_back_in_time_is_the_run_forward_with_velocities_turned_round(scheme):
    mirrored = Particles(PLANETS.mass, PLANETS.position, -PLANETS.velocity)
    back, forward = planets(scheme, dt=-0.01), planets(scheme, bodies=mirrored)
    back.integrate(-0.1)
    forward.integrate(0.1)
    assert back.time == -forward.time and back.steps_made == forward.steps_made
    np.testing.assert_allclose(back.particles.position, forward.particles.position, rtol=0, atol=1e-15)
    np.testing.assert_allclose(back.particles.velocity, -forward.particles.velocity, rtol=0, atol=1e-15)
    assert back.energies.error == pytest.approx(forward.energies.error, abs=1e-14)
    between = -0.105
    earlier, later = back.at(between), forward.at(-between)
    np.testing.assert_allclose(earlier.position, later.position, rtol=0, atol=1e-15)
    np.testing.assert_allclose(earlier.velocity, -later.velocity, rtol=0, atol=1e-15)


@pytest.mark.parametrize("scheme", ["leapfrog", "hermite4", "ias15", "wisdom_holman"])
def test_a_recording_back_in_time_is_read_resumed_and_repeated(scheme, tmp_path):
    path, whole = tmp_path / "run.h5", tmp_path / "whole.h5"
    star = INTEGRATORS.load(scheme).facts.star
    text = f"""
    initial: {{generator: planets, bodies: [{{m: 1}}, {{m: 1e-3, a: 1, e: 0.1}}]}}
    gravity: {{softening: {"none" if star else "plummer, length: 0.01"}}}
    integrator: {{scheme: {scheme}, dt: 0.0625, end: END}}
    record: {{dt: 0.25}}
    engine: cpu
    precision: float64"""
    notes = []
    Simulation(Scenario.from_text(text.replace("END", "-1")), path, notify=notes.append).run()
    assert any("before the time of the bodies" in line for line in notes)
    summary = resume(path, end=-2.0, notify=notes.append).run()
    Simulation(Scenario.from_text(text.replace("0.0625", "-0.0625").replace("END", "-2")), whole).run()
    assert summary.time == -2.0 and not summary.interrupted
    with Trajectory(path) as run, Trajectory(whole) as other:
        assert list(run.time) == list(other.time) == [-0.25 * k for k in range(9)]
        np.testing.assert_array_equal(run.position[:], other.position[:])
        for t in (-0.5, -0.6):
            np.testing.assert_allclose(run.at(t).position, other.at(t).position)
        k = run.at(-0.75)
        np.testing.assert_array_equal(k.position, run.position[3])
    rerun(path, tmp_path / "again.h5", notify=notes.append).run()
    with Trajectory(path) as run, Trajectory(tmp_path / "again.h5") as other:
        np.testing.assert_array_equal(run.position[:], other.position[:])


def test_both_ways_are_in_one_file_and_a_resumed_run_goes_on_the_way_back(tmp_path):
    path = tmp_path / "run.h5"
    run = planets("leapfrog", output=path, every=5)
    run.integrate(0.2)
    run.integrate(0.1)
    with Trajectory(path) as found:
        assert np.allclose(found.time[:], [0, 0.05, 0.1, 0.15, 0.2, 0.15, 0.1]) and (np.diff(found.step[:]) == 5).all()
        np.testing.assert_allclose(found.position[2], found.position[6], rtol=0, atol=1e-14)
    run.run(steps=10)
    resume(path, steps=50, notify=lambda line: None).run()
    with Trajectory(path) as found:
        assert found.time[-1] == pytest.approx(-0.1) and len(found) == 11
        np.testing.assert_allclose(found.position[8], PLANETS.position, rtol=0, atol=1e-14)
    with pytest.raises(InputError, match="back and forth in time"):
        rerun(path, tmp_path / "again.h5", notify=lambda line: None)


def test_an_adaptive_scheme_records_the_way_back_in_another_file(tmp_path):
    run = planets("ias15", output=tmp_path / "run.h5", dt=None)
    run.integrate(0.2)
    with pytest.raises(InputError, match="record\\(\\) the way back"):
        run.integrate(0.1)
    run.record(tmp_path / "back.h5")
    run.integrate(0.1)
    with Trajectory(tmp_path / "back.h5") as found:
        assert found.time[0] == 0.2 and found.time[-1] == 0.1 and (np.diff(found.time[:]) < 0).all()


def test_callbacks_come_in_the_order_of_the_run():
    for scheme in ("leapfrog", "ias15"):
        seen = []
        planets(scheme, dt=-0.01).integrate(-0.1, callback=lambda now, seen=seen: seen.append(now.time), interval=0.05)
        assert np.allclose(seen, [-0.05, -0.1])


@pytest.mark.parametrize("scheme", ["ias15", "wisdom_holman"])
def test_the_systems_of_an_ensemble_go_back_to_where_they_began(scheme, tmp_path):
    planets = [{"m": 1.0}, {"m": 1e-3, "a": 1.0, "e": 0.1}, {"m": 1e-3, "a": 2.0}]
    scenario = {
        "initial": {"generator": "planets", "bodies": planets}, "integrator": {"scheme": scheme, "dt": 0.05, "end": -0.5},
        "ensemble": {"systems": 2, "vary": {"initial.bodies.1.M": [0.0, 90.0]}}, "record": {"dt": 0.25}, **EXACT,
    }  # fmt: skip
    run = Simulation(Scenario.from_dict(scenario), tmp_path / "run.h5")
    run.run()
    with Trajectory(tmp_path / "run.h5") as found:
        np.testing.assert_allclose(found.observable("system_time")[:, 1], [0, -0.25, -0.5])
    run.record(None)
    run.integrate(0.0)
    np.testing.assert_allclose(run.particles.position, run.setup.bodies.position, rtol=0, atol=1e-12)


def test_a_copy_of_a_run_that_has_turned_goes_on_the_way_back():
    run = planets("ias15")
    run.integrate(0.3)
    run.integrate(0.2)
    other = run.copy()
    run.integrate(0.1)
    other.integrate(0.1)
    np.testing.assert_array_equal(run.particles.position, other.particles.position)


@pytest.mark.parametrize(
    "keys,line",
    [
        ({"dt": 0}, "^dt: must not be 0"),
        ({"dt": -0.01, "end": 1.0}, "goes back in time from 0, and the end, 1, is later"),
        ({"dt": -0.01, "collisions": "merge"}, "forward in time; remove 'collisions'"),
        (
            {"dt": 0.3, "end": 1.0, "record": {"dt": 0.5}},
            "neither the end, 1, nor .* 0.5, .* steps of 0.3; write 0.25$",
        ),
        ({"dt": 0.3, "end": 1.0}, "end: 1 is not a whole number of steps of 0.3; write 0.9, or integrator.dt: 0.25$"),
    ],
)
def test_times_that_do_not_fit_are_refused(keys, line):
    bodies = random_bodies(4)
    bodies.radius = np.full(4, 1e-6)
    with pytest.raises(InputError, match=line):
        Simulation(bodies, softening=0.1, **EXACT | keys)


def test_info_plots_and_pictures_show_a_run_back_in_time(tmp_path, capsys):
    from nbody.cli import main
    from nbody.viewer.movie.film import moments
    from nbody.viewer.sources.recording import RecordedSource

    path = tmp_path / "run.h5"
    run = ["run", "kepler", "--integrator", "leapfrog", "--dt", "-0.01", "--steps", "100", "--every", "10", "--quiet"]
    assert main([*run, "-o", str(path)]) == 0
    assert main(["info", str(path)]) == 0 and "0 to -1 (steps 0 to 100)" in capsys.readouterr().out
    assert main(["plot", str(path), "energy", "orbits", "-o", str(tmp_path / "run.png")]) == 0
    with Trajectory(path) as recording:
        source = RecordedSource(recording)
        half = source.moment(4.5)
        assert half.fraction == pytest.approx(0.5) and source.caption(4.5).time == pytest.approx(-0.45)
        np.testing.assert_allclose(moments(recording.time[:], 0, 10, 10.0, seconds=1.1), np.arange(11), atol=1e-9)
        source.close()
