"""The map of ensembles on a GPU is that of the CPU: on a card, and in Numba's simulator at small N."""

import numpy as np
import pytest
from test_ensemble import G, pairs_of_planets

import nbody
from nbody.errors import InputError
from nbody.fields import FIELDS
from nbody.run.resume import resume
from nbody.scenario import Scenario


def nine(systems, steps, engine):
    """The Sun and eight planets at random places of their orbits, steps of six days."""
    elements = [(1.66e-7, 0.39, 0.2), (2.4e-6, 0.72, 0), (3e-6, 1, 0), (3e-7, 1.5, 0.1), (1e-3, 5.2, 0), (3e-4, 9.5, 0)]
    elements += [(4.4e-5, 19, 0), (5.2e-5, 30, 0)]
    return {
        "initial": {"generator": "planets", "bodies": [{"m": 1}, *({"m": m, "a": a, "e": e} for m, a, e in elements)]},
        "gravity": {"G": G},
        "ensemble": {"systems": systems, "vary": {f"initial.bodies.{k}.M": {"uniform": [0, 360]} for k in range(1, 9)}},
        "integrator": {"scheme": "wisdom_holman", "dt": 6 / 365.25, "steps": steps, "corrector": 3},
        "record": {"every": max(1, steps // 2)}, "engine": engine, "precision": "float64",
    }  # fmt: skip


def check_against_the_cpu(scenario, path):
    """Positions agree to the growth of rounding errors (each step 1e-16 of a turn, added up twice: k^1.5), ends and the
    numbers of steps exactly."""
    runs = []
    for engine in ("cpu", "gpu"):
        made = nbody.Simulation(Scenario.from_dict(scenario | {"engine": engine}), path / f"{engine}.h5")
        made.run()
        runs.append(made)
    one, two = runs
    size = np.abs(one.particles.position).max()
    error = np.abs(one.particles.position - two.particles.position).max() / size
    assert error < 2e-14 * max(1, one.steps_made / 30) ** 1.5, error
    ends = [run.stepper.integrator.arrays() for run in runs]
    for name in ("steps", "status", "clock"):
        np.testing.assert_array_equal(ends[0][name], ends[1][name], err_msg=name)
    np.testing.assert_allclose(ends[1]["closest"], ends[0]["closest"], rtol=1e-8)
    with nbody.Trajectory(path / "cpu.h5") as cpu, nbody.Trajectory(path / "gpu.h5") as card:
        energy = cpu.observable("system_energy")
        np.testing.assert_allclose(card.observable("system_energy"), energy, rtol=1e-13)
        np.testing.assert_allclose(card.observable("total_energy"), cpu.observable("total_energy"), rtol=1e-13)
    return runs


def check_a_resumed_run(scenario, path):
    """A run on the GPU that is cut and resumed has the bits of one that is not."""
    whole = nbody.Simulation(Scenario.from_dict(scenario))
    whole.run()
    nbody.Simulation(Scenario.from_dict(scenario), path).run(steps=whole.steps_made // 2 + 1)
    again = resume(path, steps=whole.steps_made)
    again.run()
    np.testing.assert_array_equal(again.particles.position, whole.particles.position)
    for name, values in whole.stepper.integrator.arrays().items():
        np.testing.assert_array_equal(again.stepper.integrator.arrays()[name], values)


def meeting(systems, steps):
    """Planets whose orbits touch, so that some meet within a few steps."""
    scenario = pairs_of_planets(systems=systems)
    scenario["initial"]["bodies"] = [{"m": 1.0}, {"m": 1e-3, "a": 1.0}, {"m": 1e-3, "a": 1.05}]
    scenario["ensemble"]["vary"] = {"initial.bodies.2.M": {"linear": [0, 90, systems]}}
    scenario["integrator"] = {"scheme": "wisdom_holman", "dt": 0.05, "steps": steps, "corrector": 3}
    return scenario | {"record": {"every": steps}}


@pytest.mark.simulated
def test_the_simulated_map_of_nine_bodies_is_the_cpus(tmp_path):
    check_against_the_cpu(nine(2, 1, "gpu"), tmp_path)


FORCES = {
    "1PN": [{"field": "post_newtonian", "c": 100.0}],
    "of position and velocity": [
        {"field": "migration", "tau_a": 9.0, "on": 1}, {"field": "j2", "j2": 0.01, "radius": 0.3},
        {"field": "point_mass", "mass": 0.1, "centre": [9, 0, 0]},
    ],
}  # fmt: skip


@pytest.mark.simulated
@pytest.mark.parametrize("fields", FORCES)
def test_simulated_systems_in_fields_are_the_cpus(fields, tmp_path):
    scenario = meeting(2, 3) | {"fields": FORCES[fields]}
    (check_megno if fields == "1PN" else check_against_the_cpu)(scenario, tmp_path)


@pytest.mark.simulated
def test_simulated_systems_whose_planets_meet_end_as_on_the_cpu(tmp_path):
    _, made = check_against_the_cpu(meeting(3, 6), tmp_path)
    ends = made.stepper.integrator.arrays()
    assert 0 < np.count_nonzero(ends["status"]) < 3 and ends["status"].max() == 1 and ends["steps"].min() < 6


def check_megno(scenario, path):
    """The tangent vectors agree as the bodies do, to the growth of rounding errors; MEGNO adds up their lengths."""
    scenario["record"] = {"every": 2, "observables": ["megno", "lyapunov"]}
    one, two = check_against_the_cpu(scenario, path)
    error = 1e-13 * max(1, one.steps_made / 30) ** 1.5
    found = [run.stepper.integrator._tangents.observed("system_") for run in (one, two)]
    for name, values in found[0].items():
        np.testing.assert_allclose(found[1][name], values, rtol=1e-8, atol=error)
    bodies = one.state.count // len(values)
    rows = [run.state.arrays()["tangent_position"].reshape(-1, bodies, 3)[:, 1:] for run in (one, two)]
    np.testing.assert_allclose(rows[1], rows[0], atol=100 * error * np.abs(rows[0]).max())


@pytest.mark.simulated
def test_simulated_systems_have_the_megno_of_the_cpu(tmp_path):
    check_megno(meeting(2, 3), tmp_path)


@pytest.mark.gpu
def test_systems_have_the_megno_of_the_cpu(tmp_path):
    check_megno(nine(40, 200, "gpu"), tmp_path / "nine")
    check_megno(meeting(64, 12), tmp_path / "meeting")
    check_a_resumed_run(nine(40, 100, "gpu") | {"record": {"every": 10, "observables": ["megno"]}}, tmp_path / "run.h5")


@pytest.mark.simulated
def test_a_simulated_run_is_resumed_with_the_same_bits(tmp_path):
    check_a_resumed_run(meeting(3, 4) | {"engine": "gpu"}, tmp_path / "run.h5")


@pytest.mark.simulated
def test_what_a_gpu_refuses():
    with pytest.raises(InputError, match=r"adaptive steps on the CPU; choose .*engine cpu"):
        nbody.Simulation(Scenario.from_dict(pairs_of_planets("ias15") | {"engine": "gpu"}))
    many = nine(2, 2, "gpu")
    many["initial"]["bodies"] = [{"m": 1}, *({"m": 1e-9, "a": 1 + k} for k in range(33))]
    with pytest.raises(InputError, match=r"at most 33 bodies, not 34; choose engine cpu"):
        nbody.Simulation(Scenario.from_dict(many))


@pytest.mark.gpu
def test_the_map_of_nine_bodies_is_the_cpus(tmp_path):
    check_against_the_cpu(nine(40, 600, "gpu"), tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("bodies", [2, 3, 5, 6, 17, 33])
def test_the_map_is_the_cpus_for_any_number_of_planets(bodies, tmp_path):
    scenario = nine(7, 100, "gpu")
    scenario["initial"]["bodies"] = [{"m": 1}, *({"m": 1e-6, "a": 1.2**k, "e": 0.02} for k in range(bodies - 1))]
    scenario["ensemble"]["vary"] = {f"initial.bodies.{k}.M": {"uniform": [0, 360]} for k in range(1, bodies)}
    check_against_the_cpu(scenario, tmp_path)


@pytest.mark.gpu
def test_systems_whose_planets_meet_end_as_on_the_cpu(tmp_path):
    _, made = check_against_the_cpu(meeting(64, 12), tmp_path)
    assert 0 < np.count_nonzero(made.stepper.integrator.arrays()["status"]) < 64


@pytest.mark.gpu
def test_a_run_is_resumed_with_the_same_bits(tmp_path):
    check_a_resumed_run(nine(40, 500, "gpu"), tmp_path / "run.h5")


def test_the_map_needs_no_local_memory_for_arrays():
    """All coordinates are in registers; what is left in local memory are spills, which the assembler makes."""
    from numba import types

    from nbody.compute.compiling.compiled import ptx
    from nbody.integrators.solvers.systems.gpu_map import kernels_for

    rows, orders = (types.Array(t, 2, "C") for t in (types.float64, types.int64))
    whole, real = (types.Array(t, 1, "C") for t in (types.int64, types.float64))
    systems, fields = types.Tuple((whole, whole, real)), types.Tuple((orders, rows, *[types.float64] * 4))
    more = rows, rows, types.int64, types.int64, types.float64, systems, types.UniTuple(rows, 3), fields
    in_fields = {"terms": (FIELDS.load("migration")(tau_a=9.0, on=1).term(),), "relativity": True}
    for bodies, kind in ((9, {"varied": False}), (9, {"varied": True}), (3, in_fields)):
        kernel = kernels_for(bodies, **kind).move
        assert ".local" not in ptx(kernel, (rows, rows, types.UniTuple(rows, 2), *more)), kind
