"""Ensembles: thousands of small systems in one run, each with the bits that it has alone."""

import numpy as np
import pytest

import nbody
from nbody.errors import RunFailed
from nbody.initial.ensemble import member
from nbody.run.resume import resume
from nbody.scenario import Scenario

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


@pytest.mark.parametrize("scheme", ["wisdom_holman", "ias15"])
def test_each_system_has_the_bits_that_it_has_alone(scheme, tmp_path):
    scenario = Scenario.from_dict(pairs_of_planets(scheme))
    with recorded(pairs_of_planets(scheme), tmp_path / "all.h5") as run:
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
        for beat in cut.beats():
            if beat.state.step > 10:
                break
        cut.record(None)
        again = resume(tmp_path / "cut.h5")
        again.run()
    finally:
        numba.set_num_threads(before)
    assert again.step == whole.step
    for name in ("position", "velocity"):
        np.testing.assert_array_equal(getattr(again.particles, name), getattr(whole.particles, name))
    for name, values in whole.integrator.arrays().items():
        np.testing.assert_array_equal(again.integrator.arrays()[name], values, err_msg=name)
