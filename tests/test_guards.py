"""Warnings and errors before a run: numbers that its precision can't represent."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from combinations import every_pair

import nbody
from nbody.cli import main
from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.forces.api import accelerations
from nbody.forces.matrix.cpu import CpuMatrixEngine
from nbody.forces.range import check_range
from nbody.integrators import INTEGRATORS
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run import guards
from nbody.run.precision import automatic_precisions
from nbody.scenario import Scenario

SOFT = Gravity(1.0, 3, "plummer", 0.01)
BARE = Gravity(1.0, 3, "none", 0.0)


def doubts(gravity, precision, particles, engine=CpuMatrixEngine, scheme="leapfrog", dt=0.01):
    """Those of a run by an engine that keeps the scenario's units, or by another."""
    values = {"initial": {"file": "x"}, "integrator": {"dt": dt, "steps": 1}, "precision": precision}
    scenario = Scenario.from_dict(values).model_copy(update={"gravity": gravity})
    return guards.doubts(scenario, engine, INTEGRATORS.load(scheme)(dt), particles)


def bodies(position, mass=(1.0, 1.0)):
    """Two bodies at rest."""
    return Particles(np.array(mass), np.array(position, float), np.zeros((2, 3)))


@pytest.mark.parametrize("precision,warned", [("float32", True), ("mixed", False), ("float64", False)])
def test_a_softening_length_that_positions_can_not_resolve(precision, warned):
    """float32 has 2⁻²³ · 2¹⁶ = 8e-3 between neighbours at 1e5: no finer than the softening length."""
    said = doubts(SOFT, precision, bodies([[1e5, 0, 0], [1e5 + 1, 0, 0]]))
    assert bool(said) == warned
    assert not warned or "positions are 7.8e-03 apart" in said[0]


SUN_AND_PLANETS = np.array([0.0, 0.06, 0.11, 0.15, 0.23, 0.78, 1.4, 2.9, 4.5]) * 1e12
"""Distances in metres."""


@pytest.mark.parametrize("precision,warned", [("float32", True), ("mixed", True), ("float64", False)])
def test_distances_whose_cube_a_pair_can_not_hold(precision, warned):
    """1/(4.5e12)³ = 1.1e-38 is below the smallest normal float32, in which mixed precision computes a pair too. The
    ``cpu`` engine has its own unit of length, and nothing to warn of."""
    x = np.zeros((9, 3))
    x[:, 0] = SUN_AND_PLANETS
    planets = Particles(np.array([2e30, *[1e25] * 8]), x, np.zeros((9, 3)))
    newton = Gravity(6.67e-11, 3, "plummer", 1e9)
    said = doubts(newton, precision, planets, dt=86400.0)
    assert any(f"in {precision} this engine takes 1/distance³" in line for line in said) == warned
    assert not any("1/distance³" in line for line in doubts(newton, precision, planets, ENGINES.load("cpu"), dt=86400.0))


@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_a_typical_distance_whose_cube_a_pair_can_not_hold_is_refused(precision):
    """Else no body would feel any other, and energy would be conserved."""
    far = bodies([[0, 0, 0], [1e13, 0, 0]])
    with pytest.raises(InputError, match=r"the inverse cube of a typical distance, 1/r³, 1\.0e-39, is beyond float32"):
        doubts(Gravity(1.0, 3, "plummer", 1e9), precision, far)
    assert not doubts(Gravity(1.0, 3, "plummer", 1e9), "float64", far)


@pytest.mark.parametrize("precision,warned", [("float32", True), ("mixed", False), ("float64", False)])
def test_masses_of_which_sums_lose_the_lighter(precision, warned):
    said = doubts(SOFT, precision, bodies([[0, 0, 0], [1, 0, 0]], mass=(1.0, 1e-9)))
    assert any("masses differ by a factor of 1.0e+09" in line for line in said) == warned


@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_a_number_beyond_the_range_is_refused(precision):
    with pytest.raises(InputError, match=r"largest position, 1\.0e\+39, is beyond float32"):
        doubts(SOFT, precision, bodies([[0, 0, 0], [1e39, 0, 0]]))
    assert not doubts(SOFT, "float64", bodies([[0, 0, 0], [1e39, 0, 0]]))


def test_two_places_that_only_float64_tells_apart():
    """1 and 1 + 1e-9 are one float32."""
    close = bodies([[1, 0, 0], [1 + 1e-9, 0, 0]])
    with pytest.raises(InputError, match=r"particles 0 and 1 .* are in the same place"):
        doubts(BARE, "float32", close)
    assert not doubts(BARE, "mixed", close) and not doubts(BARE, "float64", close)


KPC, SUN, GYR = 3.0857e19, 1.989e30, 3.156e16
G_SI = 6.674e-11


def system(length, mass, time, count=2):
    """``count`` bodies on a circle with the total mass ``mass``, which they go round in about 6 ``time``."""
    angle = 2 * np.pi * np.arange(count) / count
    x = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    v = np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
    return Particles(np.full(count, mass / count), length * x, length / time * v)


UNITS = {
    "N-body units": (1.0, system(1.0, 1.0, 1.0)),
    "kpc, solar masses and Gyr": (4.4985e-6, system(8.0, 1e11, 0.03)),
    "pc, solar masses and Myr": (4.4985e-3, system(1.0, 1e4, 0.15)),
    "the solar system in metres": (G_SI, system(1.5e11, 2e30, 5e6)),
    "au, solar masses and years": (39.478, system(1.0, 1.0, 0.16)),
}


@pytest.mark.parametrize(
    "engine,precision,units",
    every_pair([name for name in ENGINES if not ENGINES.mark(name)], ("float32", "mixed", "float64"), UNITS),
)
def test_units_that_people_use_are_in_range(engine, precision, units):
    G, particles = UNITS[units]
    time = np.abs(particles.position).max() / np.abs(particles.velocity).max()
    check_range(ENGINES.load(engine), Gravity(G), precision, particles, dt=0.001 * time, power=3)


OUT_OF_RANGE = {
    "kpc, kilograms and seconds": (2.27e-69, system(1.0, 1e37, 1e16), "G, 2.3e-69, is beyond float32"),
    "light masses": (1.0, system(1.0, 2e-46, 1e22), "the largest mass, 1.0e-46, is beyond float32"),
    "heavy masses": (1.0, system(1.0, 2e39, 1e-3), r"the largest mass, 1.0e\+39, is beyond float32"),
    "short lengths": (1.0, system(2e-23, 4e-46, 1.0), "the largest mass, 2.0e-46, is beyond float32"),
    "short and slow": (1.0, system(1e-20, 1.0, 1e20), "the largest velocity, 1.0e-40, is beyond float32"),
    "weak": (1e-30, system(1e10, 1.0, 1.0), "a typical acceleration, G m/r², 1.2e-51, is beyond float32"),
}


@pytest.mark.parametrize("engine", ["cpu", "matrix", "gpu-tiled", "gpu-symmetric"])
@pytest.mark.parametrize("G,particles,line", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
def test_numbers_out_of_range_are_refused(engine, G, particles, line):
    """They became zero, or infinite: no force, no energy error, and exit code 0."""
    kind = ENGINES.load(engine)
    if kind.can.own_units and line.startswith("G,"):  # in its own units G is no number by itself
        check_range(kind, Gravity(G), "float32", particles)
        return
    with pytest.raises(InputError, match=line) as error:
        check_range(kind, Gravity(G), "float32", particles)
    assert "--precision float64" in str(error.value)
    check_range(kind, Gravity(G), "float64", particles)


@pytest.mark.parametrize("engine", ["cpu", "matrix:numpy"])
def test_accelerations_refuse_numbers_out_of_range(engine):
    with pytest.raises(InputError, match=r"accelerations: the largest mass, 1.0e\+39, is beyond float32"):
        accelerations(np.eye(3), [1e39] * 3, engine=engine, precision="float32")


def test_a_body_must_not_act_on_itself_with_an_infinity():
    """m/ε³ = 1e42, times the distance 0, is a NaN in float32."""
    with pytest.raises(InputError, match="m/ε³"):
        check_range(CpuMatrixEngine, Gravity(1.0, 3, "plummer", 1e-12), "float32", system(1.0, 2e6, 1.0))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_time_step_beyond_any_sense_is_refused(precision):
    with pytest.raises(InputError, match=r"integrator.dt: in a step of 1e.30 the bodies move 1e.30, beside which"):
        doubts(SOFT, precision, system(1.0, 1.0, 1.0), ENGINES.load("cpu"), dt=1e30)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mass", [(1e300, 1e-300), (1e308, 1e308)])
def test_extreme_numbers_are_refused_without_a_warning_of_numpy(mass):
    heavy = bodies([[-1.7e308, 0, 0], [1.7e308, 0, 0]], mass)
    for engine, precision in (("cpu", "float32"), ("reference", "float64"), ("matrix:numpy", "float64")):
        with pytest.raises(InputError, match="is beyond float"):
            doubts(SOFT, precision, heavy, ENGINES.load(engine))


def cluster(offset=0.0):
    """2000 stars of a cluster of radius 1, ``offset`` from the origin."""
    made = nbody.plummer(2000, seed=1)
    return replace(made, position=made.position + np.array([offset, 0, 0]))


@pytest.mark.parametrize("precision,warned", [("float32", True), ("mixed", False), ("float64", False)])
def test_a_cluster_so_far_from_the_origin_that_float32_moves_its_stars(precision, warned):
    """At 8000 pc float32 numbers are 4.9e-4 pc, 100 au, apart; where the same cluster is at the origin nothing is lost."""
    said = doubts(BARE, precision, cluster(8000.0))
    assert bool(said) == warned
    assert not warned or "positions are 4.9e-04 apart, and the bodies only 0.77 from their centre" in said[0]
    assert not doubts(BARE, precision, cluster())


def test_one_species_far_from_the_origin_is_named():
    """The median of all bodies would not show a satellite of few bodies."""
    host, satellite = cluster(), cluster(8000.0).rows(np.arange(200))
    both = (np.concatenate([getattr(each, name) for each in (host, satellite)]) for name in ("mass", "position", "velocity"))
    names = {"species": np.repeat([0, 1], [2000, 200]), "species_names": ("host", "satellite")}
    (said,) = doubts(BARE, "float32", Particles(*both, **names))
    assert "and the species 'satellite' only" in said and said.endswith(
        "move the origin to the bodies, or take --precision auto"
    )


FAR = bodies([[1e5, 0, 0], [1.1e5, 0, 0]])


@pytest.mark.parametrize(
    "particles,values,precision,why",
    [
        (cluster(), {}, "float32", "positions, masses and lengths keep their digits in it"),
        (cluster(8000.0), {}, "float64", "in float32 positions are 4.9e-04 apart"),
        (bodies([[0, 0, 0], [1, 0, 0]], mass=(1.0, 1e-9)), {}, "float64", "the masses differ by a factor of 1.0e+09"),
        (
            bodies([[1e5, 0, 0], [1.1e5, 0, 0]]),
            {"softening": "plummer:0.1"},
            "float64",
            "the softening length is only 0.1",
        ),
        (
            bodies([[1e5, 0, 0], [1.1e5, 0, 0]]),
            {"collisions": {"rule": "stop", "radius": 0.1}},
            "float64",
            "a radius is only",
        ),
        (bodies([[0, 0, 0], [1e39, 0, 0]]), {}, "float64", "the largest position, 1.0e+39, is beyond float32"),
        (cluster(), {"integrator": "ias15"}, "float64", "scheme 'ias15' computes in it"),
        (cluster(), {"gravity": {"G": 1e39}}, "float64", "1e+39 is too large for precision mixed"),
    ],
)
def test_an_automatic_precision_is_the_lowest_that_keeps_the_digits(particles, values, precision, why):
    """On a machine without a GPU no engine has mixed precision."""
    said = []
    sim = nbody.Simulation(particles, **{"dt": 1e-9, "engine": "cpu"} | values, precision="auto", notify=said.append)
    assert sim.scenario.precision == precision
    assert any(line.startswith(f"precision: {precision} (") and why in line for line in said)
    assert not any(line.startswith("warning: in float32") for line in said)


def test_automatic_is_mixed_before_float64_where_an_engine_has_it():
    scenario = Scenario.from_dict({"initial": {"file": "x"}, "integrator": {"dt": 0.01, "steps": 1}, "precision": "auto"})
    scheme = INTEGRATORS.load("leapfrog")(0.01)
    assert automatic_precisions(scenario, scheme, cluster(8000.0))[0] == ("mixed", "float64")
    far = system(4.5e12, 2e30, 5e6)  # metres: float32 pairs have no 1/r³, mixed ones neither
    assert automatic_precisions(scenario, scheme, far)[0] == ("float64",)


def test_the_file_says_which_precision_was_taken_and_a_resumed_run_keeps_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(
        "initial: {generator: planets, bodies: [{m: 1}, {m: 1e-9, a: 1}]}\ngravity: {dimensions: 3}\n"
        "integrator: {scheme: leapfrog, dt: 0.01, steps: 2}\nprecision: auto\nengine: cpu\n"
    )
    assert main(["run", "a.yaml", "--output", "a.h5"]) == 0
    assert "precision: float64 (the masses differ" in capsys.readouterr().err
    assert main(["resume", "a.h5", "--steps", "4"]) == 0
    with nbody.Trajectory("a.h5") as run:
        assert run.resolved["precision"] == "float64" and run.dtype == np.float64 and run.step[-1] == 4
    assert main(["run", "a.yaml", "--output", "b.h5", "--precision", "float32", "-q"]) == 0
    assert main(["run", "a.yaml", "--output", "c.h5", "--precision", "auto", "--set", "initial.bodies.1.m=1e-3", "-q"]) == 0
    with nbody.Trajectory("b.h5") as named, nbody.Trajectory("c.h5") as automatic:
        assert named.dtype == automatic.dtype == np.float32


def test_automatic_ensembles_compute_in_float64():
    values = {
        "initial": {"generator": "planets", "bodies": [{"m": 1}, {"m": 1e-3, "a": 1}]}, "gravity": {"dimensions": 3},
        "ensemble": {"systems": 2, "vary": {"initial.bodies.1.a": [1, 2]}}, "integrator": {"scheme": "ias15", "end": 0.1},
        "record": {"dt": 0.1}, "precision": "auto", "engine": "cpu",
    }  # fmt: skip
    assert nbody.Simulation(Scenario.from_dict(values)).scenario.precision == "float64"
