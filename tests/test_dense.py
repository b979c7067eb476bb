"""Dense output: the bodies of a run at any time, with the error of a step, and without changing the run."""

import numpy as np
import pytest
from test_divisions import LOADED, moving, planets

import nbody
from nbody.errors import InputError

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
            run.run(steps=round((later.time - run.time) / run.integrator.dt))
    for array, other in zip(looked.checkpoint_arrays().values(), alone.checkpoint_arrays().values(), strict=True):
        np.testing.assert_array_equal(array, other)
    if LOADED[name].facts.lengths != "individual":
        np.testing.assert_array_equal(later.position, looked.particles.position)
        assert later.step == looked.steps_made


@pytest.mark.parametrize("name", ["ias15", "leapfrog_adaptive"])
def test_within_the_last_step_an_adaptive_scheme_shows_what_a_frame_there_shows(name):
    run, other = simulated(name), simulated(name)
    run.step(5)
    begin = run.time
    run.step()
    for time in np.linspace(begin, run.time, 5)[1:-1]:
        other.integrate(float(time))
        np.testing.assert_array_equal(run.at(time).position, other.particles.position)
    with pytest.raises(InputError, match="where the last step begins"):
        run.at(0.5 * begin)


def test_a_time_before_the_last_step_is_one_line():
    run = simulated("leapfrog", 0.01)
    with pytest.raises(InputError, match=r"at: -0\.001 is before t = 0, where the last step begins"):
        run.at(-0.001)
    run.step(3)
    with pytest.raises(InputError, match=r"at: 0\.01 is before t = 0\.02"):
        run.at(0.01)
    with pytest.raises(InputError, match="finite"):
        run.at(float("nan"))
