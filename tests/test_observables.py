"""What a run records with each frame: chosen in the scenario, found in the file, told by info and on the progress line."""

import json
import math

import numpy as np
import pytest
from conftest import random_bodies

import nbody
from nbody import Scenario, Simulation, diagnostics
from nbody.cli import main
from nbody.cli.progress import facts
from nbody.cli.summary import summary_text
from nbody.diagnostics.observables import ALWAYS, OF_TANGENTS, measured
from nbody.diagnostics.observables import OBSERVABLES as EVERY
from nbody.errors import InputError
from nbody.particles import Particles
from nbody.run.resume import resume
from nbody.trajectory import first_difference

OBSERVABLES = [name for name in EVERY if name not in OF_TANGENTS]
KEYS = {"dt": 0.0078125, "softening": 0.25, "engine": "cpu", "precision": "float64", "every": 2}


@pytest.mark.parametrize("dimensions", [2, 3])
def test_the_chosen_observables_are_recorded_with_each_frame(tmp_path, dimensions):
    path = tmp_path / "run.h5"
    simulation = nbody.Simulation(random_bodies(24, dimensions), path, observables=["all"], **KEYS)
    simulation.run(steps=4)
    simulation.run(steps=4)
    with nbody.Trajectory(path) as run:
        assert list(run.widths) == [*ALWAYS, *OBSERVABLES] and run.verify() == []
        assert run.resolved["record"] == {"every": 2, "observables": list(OBSERVABLES)}
        for k, particles in enumerate(run):
            for name, value in measured(OBSERVABLES, particles).items():
                np.testing.assert_array_equal(run.observable(name)[k], value)
            radii = run.observable("lagrangian_radii")[k]
            assert radii[0] < radii[1] == run.observable("half_mass_radius")[k] < radii[2]
            np.testing.assert_array_equal(
                run.observable("centre_of_mass")[k, :dimensions], diagnostics.centre_of_mass(particles)
            )
        assert {"lagrangian_radii_0.5", "core_radius", "density_centre_z", "escapers"} <= set(run.observables)
    whole = tmp_path / "whole.h5"
    nbody.Simulation(random_bodies(24, dimensions), whole, observables=["all"], **KEYS).run(steps=8)
    assert first_difference(path, whole) is None
    resume(path, steps=10).run()
    with nbody.Trajectory(path) as run:
        assert np.isfinite(run.observable("core_radius")).all() and len(run) == 6


def test_bodies_that_leave_are_counted():
    """Two light bodies around a heavy one, at 0.99 and 1.01 of the escape speed."""
    escape = math.sqrt(2)
    bodies = Particles(
        [1.0, 1e-9, 1e-9],
        [[0.0, 0, 0], [1, 0, 0], [0, -1, 0]],
        [[0.0, 0, 0], [0, 0.99 * escape, 0], [1.01 * escape, 0, 0]],
    )
    assert diagnostics.escapers(bodies) == 1
    assert diagnostics.escapers(bodies, G=4.0) == 0 and diagnostics.escapers(bodies, G=0.25) == 2
    assert diagnostics.escapers(nbody.plummer(500, seed=1)) == 0


def test_escapers_are_counted_by_sums_over_pairs():
    """A cluster with a heavy star far out, which is no sphere around its centre of mass."""
    cluster = nbody.plummer(300, seed=3)
    mass, position = np.append(cluster.mass, 50.0), np.vstack([cluster.position, [40.0, 0, 0]])
    bodies = Particles(mass, position, np.vstack([2 * cluster.velocity, [0.0, 0, 0]]))
    _, potential = nbody.accelerations(bodies.position, bodies.mass, engine="cpu", potential=True)
    v = bodies.velocity - diagnostics.centre_velocity(bodies)
    expected = int(np.count_nonzero(0.5 * (v * v).sum(axis=1) + potential > 0))
    assert 0 < expected < 301 and diagnostics.escapers(bodies) == expected


@pytest.mark.parametrize(
    "written,line",
    [
        ("[half_mas_radius]", r"unknown observable 'half_mas_radius' \(did you mean 'half_mass_radius'\?\); one of: ce"),
        ("half_mass_radius", r"must be a list of names, as in \[half_mass_radius, escapers\]"),
    ],
)  # fmt: skip
def test_an_unknown_observable_is_refused_with_its_line(written, line):
    text = f"initial: {{generator: plummer, particles: 8}}\nintegrator: {{steps: 0}}\nrecord: {{observables: {written}}}\n"
    with pytest.raises(InputError, match=rf"^run.yaml:3: record.observables: .*{line}"):
        nbody.Scenario.from_text(text, "run.yaml")


def test_a_scenario_with_observables_reads_back_from_its_yaml():
    scenario = nbody.Simulation(random_bodies(24), observables=["escapers", "total_energy", "escapers"], **KEYS).scenario
    assert scenario.record.observables == ["escapers"]
    assert nbody.Scenario.from_text(scenario.to_yaml()).resolved() == scenario.resolved()


def test_observables_are_on_the_progress_line_and_in_info(tmp_path, capsys):
    seen, path = [], tmp_path / "run.h5"
    chosen = ["half_mass_radius", "lagrangian_radii", "escapers"]
    nbody.Simulation(random_bodies(24), path, observables=chosen, **KEYS).run(steps=4, progress=seen.append)
    assert "  r½ 1." in facts(seen[-1]) and "  escapers " in facts(seen[-1])
    assert main(["info", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["observables"]
    assert set(found) == {*ALWAYS, *chosen} and len(found["lagrangian_radii"]) == 2
    assert main(["info", str(path)]) == 0
    page = capsys.readouterr().out
    assert "\nhalf mass radius " in page and "\nlagrangian radii " in page and "\nkinetic energy" not in page


def test_the_summary_tells_the_largest_energy_error_beside_the_last(tmp_path):
    """An orbit with e = 0.9, whose error is large at the pericentre and small at its end."""
    bodies = Particles([1.0, 0.0], [[0.0, 0], [1.9, 0]], [[0.0, 0], [0, math.sqrt(0.1 / 1.9)]])
    period = 2 * math.pi
    keys = {"engine": "cpu", "precision": "float64", "every": 1, "dt": period / 300}
    light = Particles([1.0, 1e-3], bodies.position, bodies.velocity)
    light = nbody.Simulation(light, tmp_path / "run.h5", **keys).run(steps=300)
    assert abs(light.energy_error_largest) > 30 * abs(light.energy_error)
    assert f"relative error {light.energy_error:+.2e}, largest {light.energy_error_largest:+.2e}" in summary_text(light)
    assert light.as_dict()["energy_error_largest"] == light.energy_error_largest


def test_escapers_and_energies_say_what_they_make_of_external_fields(tmp_path):
    values = {
        "initial": {"generator": "plummer", "particles": 8},
        "fields": [{"field": "plummer", "mass": 100.0, "b": 1.0}],
        "integrator": {"dt": 0.01, "steps": 1},
        "record": {"observables": ["escapers"]},
        "engine": "cpu",
    }
    said = []
    path = tmp_path / "run.h5"
    Simulation(Scenario.from_dict(values), path, notify=said.append).run()
    assert any("escapers" in line and "external fields" in line for line in said)
    assert any(line.startswith("energies include the external fields: the orbit") for line in said)
    (axes,) = nbody.plot(path, "virial").axes
    assert len(axes.lines) == 1  # none at 1/2
