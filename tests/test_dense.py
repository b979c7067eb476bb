"""Dense output: the bodies of a run at any time, with the error of a step, and without changing the run."""

import numpy as np
import pytest
from test_divisions import LOADED, moving, planets

import nbody
from nbody.errors import InputError
from nbody.trajectory import Trajectory

FIXED = [name for name, kind in LOADED.items() if not kind.facts.adaptive and kind.facts.lengths != "individual"]


def simulated(name, dt=None):
    return nbody.Simulation(planets(), integrator=name, dt=dt, engine="cpu", precision="float64")


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("name", FIXED)
def test_a_time_within_a_step_has_the_error_of_a_step(name, back):
    """It is of order p + 1 in the length of the step for a scheme of order p, until rounding limits it."""
    exact, errors = simulated("ias15"), []
    for dt in (0.02, 0.01):
        run = simulated(name, dt)
        if back:
            run.step()
        found = run.at(0.4 * dt)
        assert found.time == 0.4 * dt and run.steps_made == back
        errors.append(np.abs(found.position - exact.at(0.4 * dt).position).max())
    assert errors[1] < 1e-14 or errors[0] / errors[1] > 2 ** (LOADED[name].facts.order + 0.7)


@pytest.mark.parametrize("name", LOADED)
def test_looking_at_a_time_changes_nothing(name):
    """Later times too; the bits are those that the run has when it gets there."""
    looked, alone = (moving(planets(), name, "cpu") for _ in range(2))
    for run in (looked, alone):
        run.run(steps=3)
    later = [looked.at(looked.time + k * 0.01) for k in (0, 7, 100)][1]
    for run in (looked, alone):
        if LOADED[name].facts.adaptive:
            run.integrate(later.time)
        else:
            run.run(steps=round((later.time - run.time) / run.stepper.integrator.dt))
    for array, other in zip(looked.stepper.arrays().values(), alone.stepper.arrays().values(), strict=True):
        np.testing.assert_array_equal(array, other)
    if LOADED[name].facts.lengths != "individual":
        np.testing.assert_array_equal(later.position, looked.particles.position)
        assert later.step == looked.steps_made


@pytest.mark.parametrize("name", ["ias15", "leapfrog_adaptive", {"scheme": "hermite4", "eta": 0.02}], ids=str)
def test_within_the_last_step_an_adaptive_scheme_shows_what_a_frame_there_shows(name):
    run, other = simulated(name), simulated(name)
    run.step(5)
    begin = run.time
    run.step()
    for time in np.linspace(begin, run.time, 5)[1:-1]:
        other.integrate(float(time))
        np.testing.assert_array_equal(run.at(time).position, other.particles.position)
    with pytest.raises(InputError, match="the earliest time"):
        run.at(0.5 * begin)


def test_a_time_before_the_last_step_is_refused():
    run = simulated("leapfrog", 0.01)
    with pytest.raises(InputError, match=r"at: -0\.001 is before t = 0, the earliest time"):
        run.at(-0.001)
    run.step(3)
    with pytest.raises(InputError, match=r"at: 0\.01 is before t = 0\.02"):
        run.at(0.01)
    with pytest.raises(InputError, match="finite"):
        run.at(float("nan"))


def test_between_frames_the_error_of_the_cubic_is_as_estimated_and_of_order_four(tmp_path):
    """On orbits of periods from 2π on, with frames some 1/60 of a period apart and half of that; away from the frames, where
    it vanishes. The estimate is right to first order in that distance."""
    exact, errors = simulated("ias15"), []
    for interval in (0.1, 0.05):
        recorded = nbody.Simulation(
            planets(), tmp_path / f"{interval}.h5", integrator="ias15", engine="cpu", precision="float64",
            end=2.0, record={"dt": interval},
        )  # fmt: skip
        recorded.run()
        with Trajectory(tmp_path / f"{interval}.h5") as run:
            found, estimate = run.at(1.0 + 0.4 * interval), run.error_at(1.0 + 0.4 * interval)
            true = exact.at(found.time)
            error = np.linalg.norm(found.position - true.position, axis=1)
            np.testing.assert_allclose(estimate[1:], error[1:], rtol=4 * interval)
            assert np.abs(found.velocity - true.velocity).max() < 0.4 * interval**3
            np.testing.assert_array_equal(run.at(run.time[7]).position, run.position[7])
            assert not run.error_at(run.time[-1]).any()
            errors.append(error.max())
    assert errors[0] / errors[1] > 2**3.7


def test_a_time_outside_a_recording_is_refused(tmp_path):
    recorded = nbody.Simulation(planets(), tmp_path / "run.h5", integrator="ias15", engine="cpu", precision="float64")
    recorded.integrate(0.1)
    with Trajectory(tmp_path / "run.h5") as run:
        for time in (-0.1, 0.11, float("nan")):
            with pytest.raises(InputError, match=r"at: the recording has frames from t = 0 to 0\.1, got"):
                run.at(time)


def test_the_hybrid_shows_a_time_within_its_last_step_during_an_encounter():
    bodies = nbody.planets(bodies=[{"m": 1}, {"m": 1e-3, "a": 1.0}, {"m": 1e-3, "a": 1.02}], dimensions=3)
    simulation = nbody.Simulation(bodies, dt=0.05, integrator="hybrid", precision="float64")
    simulation.step(3)
    before = simulation.particles.position
    found = simulation.at(simulation.time - 0.02)
    assert 0 < np.abs(found.position - before)[1:].max() < 0.05
