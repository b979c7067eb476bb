"""The example of PLUGINS.md, installed: its engine and its generator are used by name, listed, and examined."""

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from conftest import child

import nbody
from nbody import doctor
from nbody.cli import main
from nbody.errors import InputError
from nbody.fields import FIELDS, chosen_fields
from nbody.fields.added import AddedFields
from nbody.fields.field import VelocityField
from nbody.forces import ENGINES
from nbody.forces.problem import Problem
from nbody.forces.reference import direct_jerk
from nbody.initial import GENERATORS
from nbody.integrators import OF_SYSTEMS
from nbody.law import LAWS, Gravity, Law
from nbody.law.cutoff import CUTOFF
from nbody.law.plummer import PLUMMER
from nbody.registry import Entry

PAGE = (Path(__file__).resolve().parents[1] / "nbody" / "PLUGINS.md").read_text()


def install(folder, entry_points, name="mybodies"):
    """What pip writes: the package's names, version and entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for group, points in entry_points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))


@pytest.fixture
def example(tmp_path, monkeypatch):
    code, project = (re.search(rf"```{kind}\n(.*?)```", PAGE, re.S).group(1) for kind in ("python", "toml"))
    (tmp_path / "mybodies.py").write_text(code)
    points = tomllib.loads(project)["project"]["entry-points"]
    points["nbody.engines"] |= {"cpu": "mybodies:Pairwise", "absent": "mybodies:Absent"}
    install(tmp_path, points)
    monkeypatch.syspath_prepend(str(tmp_path))
    for registry in (ENGINES, GENERATORS, OF_SYSTEMS):
        monkeypatch.delitem(vars(registry), "plugins", raising=False)
    yield
    sys.modules.pop("mybodies", None)
    for registry in (ENGINES, GENERATORS, OF_SYSTEMS):
        vars(registry).pop("plugins", None)


def test_an_engine_and_a_generator_of_another_package_make_a_run(example):
    bodies = nbody.cube(8, seed=2, side=2.0, dimensions=3)
    ends = []
    for engine in ("pairwise", "reference"):
        simulation = nbody.Simulation(bodies, dt=0.01, softening=0.5, engine=engine, precision="float64")
        ends.append((simulation.run(steps=3), simulation.particles))
    assert ends[0][0].engine == "pairwise"
    np.testing.assert_allclose(ends[0][1].position, ends[1][1].position, rtol=1e-14)
    scenario = {"initial": {"generator": "cube", "particles": 8, "seed": 2, "side": 2.0}, "integrator": {"steps": 0}}
    np.testing.assert_array_equal(
        nbody.initial.make_particles(nbody.Scenario.from_dict(scenario)).position, bodies.position
    )


def test_a_scheme_for_ensembles_moves_each_system_as_the_scheme_of_its_name_moves_one(example, tmp_path):
    scenario = {
        "initial": {"generator": "plummer", "particles": 5, "seed": 3}, "gravity": {"softening": "plummer", "length": 0.1},
        "integrator": {"scheme": "leapfrog", "dt": 0.01, "steps": 20}, "engine": "cpu", "precision": "float64",
    }  # fmt: skip
    ensemble = nbody.Simulation(nbody.Scenario.from_dict(scenario | {"ensemble": {"systems": 3}}), tmp_path / "all.h5")
    assert ensemble.run().steps == 20
    alone = nbody.Simulation(nbody.initial.ensemble.member(ensemble.scenario, 1))
    alone.run()
    np.testing.assert_allclose(ensemble.particles.position[5:10], alone.particles.position, rtol=1e-12)
    with nbody.Trajectory(tmp_path / "all.h5") as run:
        assert list(run.systems["steps"]) == [20, 20, 20]


def test_they_are_listed_and_examined_and_take_no_name_of_nbody(example, capsys):
    assert main(["list", "engines"]) == 0
    assert re.search("^  pairwise +from the package mybodies 1.0$", capsys.readouterr().out, re.M)
    assert ENGINES["cpu"].package == "" and "pairwise" not in list(ENGINES)
    found = {finding.topic: finding for finding in doctor.computing.plug_ins()}
    assert set(found) == {"plug-in pairwise", "plug-in absent", "plug-in cube", "plug-in leapfrog"}
    assert found["plug-in cube"].state == doctor.GOOD and "mybodies 1.0" in found["plug-in cube"].text
    assert found["plug-in absent"].state == doctor.MISSING and "can't be imported" in found["plug-in absent"].text
    with pytest.raises(InputError, match=r"mybodies:Absent of the package mybodies 1.0 can't be imported \(.*Absent"):
        nbody.Simulation(nbody.plummer(8), dt=0.01, engine="absent")
    with pytest.raises(InputError, match=r"unknown engine 'pairwize' \(did you mean 'pairwise'\?\)"):
        nbody.Simulation(nbody.plummer(8), dt=0.01, engine="pairwize")


def test_no_package_is_searched_while_only_names_of_nbody_are_used():
    code = "import nbody; from nbody.forces import ENGINES; nbody.plummer(8); "
    code += "ENGINES.load('cpu'), ENGINES.listing(), list(ENGINES); print('plugins' in vars(ENGINES))"
    assert child("-c", code).stdout == "False\n"


LAW_OF_A_PACKAGE = Law("blurred", PLUMMER.build, needs_length=True)
LAW_WITH_SUPPORT = Law("hard", CUTOFF.build, support=1.0)


@pytest.fixture
def laws_of_a_package(monkeypatch):
    found = {"blurred": "LAW_OF_A_PACKAGE", "hard": "LAW_WITH_SUPPORT"}
    found = {name: Entry(f"{__name__}:{law}", "", package="mylaws 1.0") for name, law in found.items()}
    monkeypatch.setitem(vars(LAWS), "plugins", found)


def test_a_tree_refuses_a_law_that_does_not_say_where_it_becomes_newtons(laws_of_a_package):
    for name in ("cpu-tree", "gpu-tree", "barnes-hut"):
        refused = ENGINES.load(name).supports(Problem(Gravity(1.0, 3, "blurred", 0.1), "float32"))
        assert "softening 'blurred'" in refused
    for name in ("cpu-tree", "gpu-tree"):
        assert not ENGINES.load(name).supports(Problem(Gravity(1.0, 3, "hard", 0.1), "float32"))
    with pytest.raises(InputError, match="engine 'cpu-tree': it has no expansions of softening 'blurred'; choose"):
        nbody.accelerations(np.eye(3), np.ones(3), softening="blurred", length=0.1, engine="cpu-tree")


def test_the_referee_computes_a_law_that_it_has_no_formula_of(laws_of_a_package):
    rng = np.random.default_rng(1)
    position, velocity, mass = rng.normal(size=(9, 3)), rng.normal(size=(9, 3)), rng.uniform(1, 2, 9)
    own, same = Gravity(1.0, 3, "blurred", 0.3), Gravity(1.0, 3, "plummer", 0.3)
    found = nbody.accelerations(position, mass, softening="blurred", length=0.3, engine="reference", potential=True)
    known = nbody.accelerations(position, mass, softening="plummer", length=0.3, engine="reference", potential=True)
    jerks = [direct_jerk(position, velocity, mass, law, np.arange(9)) for law in (own, same)]
    for ours, right in (*zip(found, known, strict=True), jerks):
        np.testing.assert_allclose(ours, right, rtol=1e-13)


class Drag(VelocityField):
    def strength(self):
        return 1.0

    def add(self, state, G, accelerations, energy):
        pass


def test_a_force_on_velocities_that_no_scheme_would_compute_is_refused(monkeypatch):
    monkeypatch.setitem(vars(FIELDS), "plugins", {"drag": Entry(f"{__name__}:Drag", "", package="myfields 1.0")})
    scenario = nbody.Scenario.from_dict(
        {"initial": {"generator": "plummer"}, "fields": [{"field": "drag"}], "integrator": {"steps": 0}}
    )
    with pytest.raises(InputError, match="'drag' of another package is no subclass"):
        chosen_fields(scenario)
    with pytest.raises(InputError, match="two forces depend on the velocities"):
        AddedFields([Drag(), Drag()], 1.0)
