"""The example of PLUGINS.md, installed: its engine and its generator are used by name, listed, and examined."""

import re
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from conftest import program as in_a_process

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
from nbody.integrators import INTEGRATORS, OF_SYSTEMS
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


PYTHON, PACKAGE = (re.findall(r"```python\n(.*?)```", part, re.S) for part in PAGE.split("## A package"))
"""The examples that a program executes, and those that make the module of a package."""

REGISTRIES = (ENGINES, GENERATORS, OF_SYSTEMS, INTEGRATORS, FIELDS, LAWS)


def use(folder, monkeypatch, code, points, name="mybodies"):
    (folder / f"{name}.py").write_text(code)
    install(folder, points, name)
    monkeypatch.syspath_prepend(str(folder))
    for registry in REGISTRIES:
        monkeypatch.delitem(vars(registry), "plugins", raising=False)


def forget(name="mybodies"):
    sys.modules.pop(name, None)
    for registry in REGISTRIES:
        vars(registry).pop("plugins", None)


@pytest.fixture
def example(tmp_path, monkeypatch):
    points = tomllib.loads(re.search(r"```toml\n(.*?)```", PAGE, re.S).group(1))["project"]["entry-points"]
    points["nbody.engines"] |= {"cpu": "mybodies:Pairwise", "absent": "mybodies:Absent"}
    use(tmp_path, monkeypatch, "\n".join(PACKAGE), points)
    yield
    forget()


@pytest.fixture(scope="module")
def program():
    """The names of the page's program, after it was executed."""
    names = {}
    for k, code in enumerate(PYTHON):
        exec(compile(code, f"PLUGINS.md, example {k + 1}", "exec"), names)
    return names


def test_the_pages_forces_move_bodies(program):
    assert abs(program["simulation"].summary.energy_error) < 1e-4
    assert program["falling"].time == 20 and program["perturbed"].steps_made == 100
    assert program["perturbed"].scenario.fields[1].options["name"] == "cloud"


def test_a_satellite_falls_by_dynamical_friction_in_the_time_of_binney_and_tremaine(program):
    """r² falls linearly, and reaches zero after 1.17 r² v_c/(G m ln Λ) (eq. 8.13), if an orbit takes far less: here 3 % of
    that. The halo alone keeps the energy to rounding."""
    halo, friction, m = program["halo"], program["friction"], 0.003
    satellite = nbody.Particles([m], [[1.0, 0, 0]], [[0, 1.0, 0]])
    decay = 1.168 / (m * 3.0)
    simulation = nbody.Simulation(satellite, integrator="ias15", fields=[halo, friction])
    for part in (0.25, 0.5, 0.75):
        simulation.integrate(part * decay)
        r = np.linalg.norm(simulation.particles.position)
        assert r**2 == pytest.approx(1 - part, abs=0.01)
    assert np.isnan(simulation.summary.energy_error)
    alone = nbody.Simulation(satellite, integrator="ias15", fields=[halo, nbody.force(friction, coulomb=0.0)])
    alone.integrate(decay)
    energies = alone.energies  # of the halo and the motion: without friction they are conserved
    assert energies.latest == pytest.approx(energies.initial, rel=1e-13)


def test_a_cloud_follows_its_table(program):
    """Its acceleration on a body 0.3 beside it is that of a Plummer sphere, at a moment between two rows."""
    falling, cloud = program["falling"], program["cloud"]
    run = nbody.Simulation(falling.setup.bodies, integrator="ias15", fields=[program["halo"], program["friction"]])
    run.integrate(7.33)
    [centre] = run.particles.position
    x, y, z = centre
    found = cloud(x + 0.3, y, z, 7.33)
    u = 1 / np.hypot(0.3, 0.05)
    assert found == pytest.approx([-0.01 * u**3 * 0.3, 0, 0, -0.01 * u], abs=1e-5)


def test_a_field_of_another_package_is_one_of_nbodys(example):
    bodies = nbody.plummer(8, seed=1)
    run = nbody.Simulation(
        bodies, dt=0.01, softening=0.1, precision="float64", fields=[{"field": "isochrone", "mass": 2, "b": 0.5}]
    )
    run.run(steps=20)
    assert abs(run.summary.energy_error) < 1e-4
    with pytest.raises(InputError, match=r"fields\.0\.mas: unknown key"):
        nbody.Simulation(bodies, dt=0.01, fields=[{"field": "isochrone", "mas": 2, "b": 0.5}])


def test_schemes_of_another_package_have_the_order_that_they_claim(example):
    """Of the energy error in an ellipse; and the solver moves a force by velocity at its order."""
    bodies = nbody.planets(bodies=[{"m": 1}, {"m": 0.1, "a": 1, "e": 0.3}])
    drag = nbody.force(lambda vx, vy, vz, t: (-0.1 * vx, -0.1 * vy, 0.05 * t - 0.1 * vz))
    exact = nbody.Simulation(bodies, dt=0.0025, integrator="runge_kutta4", engine="cpu", precision="float64", fields=drag)
    exact.integrate(1.0)
    for scheme, order in (("ruth3", 3), ("runge_kutta4", 4)):
        errors = []
        for dt in (0.02, 0.01):
            fields = None if scheme == "ruth3" else drag
            run = nbody.Simulation(bodies, dt=dt, integrator=scheme, engine="cpu", precision="float64", fields=fields)
            run.integrate(1.0)
            errors.append(
                abs(run.summary.energy_error)
                if scheme == "ruth3"
                else np.abs(run.particles.position - exact.particles.position).max()
            )
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.5)
    with pytest.raises(InputError, match="depends on the velocities, and scheme 'ruth3' kicks bodies at given positions"):
        nbody.Simulation(bodies, dt=0.01, integrator="ruth3", fields=drag)


def test_a_law_of_another_package_conserves_energy_on_every_kind_of_engine(example):
    bodies = nbody.plummer(40, seed=1)
    for engine, scheme in (("cpu", "leapfrog"), ("reference", "hermite4"), ("cpu", "ias15")):
        run = nbody.Simulation(
            bodies, dt=0.002, softening=("homogeneous", 0.3), engine=engine, integrator=scheme, precision="float64"
        )
        run.run(steps=10)
        assert abs(run.summary.energy_error) < 1e-5


GUESSED = """
from nbody.integrators import INTEGRATORS
from nbody.integrators.facts import Move
from nbody.integrators.integrator import Integrator
from nbody.integrators.schemes.table import FORCE, MoveTable, table


class Guess(Integrator):
    facts = INTEGRATORS.load("yoshida4").facts

    def _advance(self, motion, steps, until):
        state = motion.host
        for _ in range(steps):
            motion.evaluate()
            state.position += self.dt * state.velocity
            state.velocity += 0.9 * self.dt * state.acceleration
            state.invalidate()
        state.clock.count_steps(steps, self.dt)
"""


def test_a_guessed_scheme_does_not_run(tmp_path, monkeypatch):
    """It claims the facts of another one; or it is a table whose kicks do not add up to a step."""
    table = "Table = type('Table', (MoveTable,), {'facts': table((FORCE, Move('kick', 0.9), Move('drift')), 1, 'me')})"
    for k, (code, line) in enumerate(
        (
            (
                GUESSED,
                "'guess' of the package guesses0 1.0 is of order .* for two bodies on an ellipse, and it claims order 4",
            ),
            (
                GUESSED + table + "\nGuess = Table",
                "these moves have order 0.2 for an oscillator, and order 1 is claimed",
            ),
        )
    ):
        name = f"guesses{k}"
        use(tmp_path / ".." / tmp_path.name, monkeypatch, code, {"nbody.integrators": {"guess": f"{name}:Guess"}}, name)
        with pytest.raises(InputError, match=line):
            nbody.Simulation(nbody.plummer(8), dt=0.01, softening=0.1, integrator="guess")
        forget(name)
        for path in (tmp_path / f"{name}-1.0.dist-info").iterdir():
            path.unlink()


def test_an_engine_and_a_generator_of_another_package_make_a_run(example):
    bodies = nbody.cube(8, seed=2, side=2.0, dimensions=3)
    ends = []
    for engine in ("pairwise", "reference"):
        simulation = nbody.Simulation(bodies, dt=0.01, softening=0.5, engine=engine, precision="float64")
        ends.append((simulation.run(steps=3), simulation.particles))
    assert ends[0][0].engine == "pairwise"
    np.testing.assert_allclose(ends[0][1].position, ends[1][1].position, rtol=1e-14)
    scenario = {"initial": {"generator": "cube", "particles": 8, "seed": 2, "side": 2.0}, "integrator": {"steps": 0}}
    np.testing.assert_array_equal(nbody.initial.make_particles(nbody.Scenario.from_dict(scenario)).position, bodies.position)


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
    assert {"plug-in pairwise", "plug-in absent", "plug-in cube", "plug-in leapfrog", "plug-in ruth3"} <= set(found)
    assert found["plug-in cube"].state == doctor.GOOD and "mybodies 1.0" in found["plug-in cube"].text
    assert found["plug-in absent"].state == doctor.MISSING and "can't be imported" in found["plug-in absent"].text
    with pytest.raises(InputError, match=r"mybodies:Absent of the package mybodies 1.0 can't be imported \(.*Absent"):
        nbody.Simulation(nbody.plummer(8), dt=0.01, engine="absent")
    with pytest.raises(InputError, match=r"unknown engine 'pairwize' \(did you mean 'pairwise'\?\)"):
        nbody.Simulation(nbody.plummer(8), dt=0.01, engine="pairwize")


def test_no_package_is_searched_while_only_names_of_nbody_are_used():
    assert in_a_process("questions", "after_names_of_nbody").stdout == "False\n"


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
