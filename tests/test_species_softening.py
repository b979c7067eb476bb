"""A softening length per species: the ε of a pair is the larger one, and force, potential and jerk belong together."""

import shutil

import numpy as np
import pytest
from conftest import random_bodies, said
from samples import made

import nbody
from nbody import Scenario, Simulation, Trajectory, compute
from nbody.errors import InputError
from nbody.exchange.export import export
from nbody.forces import ENGINES
from nbody.forces.choose import choose
from nbody.forces.problem import Problem
from nbody.forces.reference import direct_sum
from nbody.initial import make_particles
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run.resume import rerun, resume
from nbody.state import Column, Outputs
from nbody.trajectory import first_difference
from nbody.viewer.display.body import facts
from nbody.viewer.picture.quantities import potential
from nbody.viewer.sources.frames import ShownMoment
from nbody.viewer.sources.recording import RecordedSource

LENGTHS = {"stars": 0.05, "halo": 0.6, "hole": 0.2}
EPS = {"float32": 2.0**-24, "float64": 2.0**-53}


def bodies_of(count, dimensions=3, massless=0.0, seed=7):
    """Bodies of three species in one place, some of them without mass."""
    found, rng = random_bodies(count, dimensions, seed), np.random.default_rng(seed)
    mass = found.mass * (rng.uniform(size=count) >= massless)
    species = rng.integers(0, 3, count)
    return Particles(mass, found.position, found.velocity, species=species, species_names=tuple(LENGTHS))


def law_of(softening, dimensions=3):
    return Gravity(1.3, dimensions, softening, LENGTHS)


def evaluated(engine, gravity, bodies, precision="float64", outputs=Outputs.POTENTIAL):
    """The engine and a state with what is wanted, with a column for the jerk."""
    machine = ENGINES.load(engine)(gravity, precision)
    state = machine.load(bodies)
    state.add(Column("jerk", "D"))
    machine.evaluate(state, outputs)
    return machine, state


@pytest.mark.parametrize("softening", ["plummer", "spline"])
def test_each_pair_has_the_larger_length(softening):
    bodies = bodies_of(9)
    _, state = evaluated("reference", law_of(softening), bodies)
    a, phi = np.zeros((9, 3)), np.zeros(9)
    each = np.array(list(LENGTHS.values()))[bodies.species]
    for i in range(9):
        for j in set(range(9)) - {i}:
            pair = Gravity(1.3, 3, softening, max(each[i], each[j]))
            one, u = direct_sum(bodies.position[[i, j]], bodies.mass[[i, j]], pair)
            a[i], phi[i] = a[i] + one[0], phi[i] + u[0]
    assert np.abs(state.acceleration - a).max() < 1e-14 * np.abs(a).max()
    assert np.abs(state.potential / phi - 1).max() < 1e-14


@pytest.mark.parametrize(
    "softening,precision,massless,dimensions",
    [
        ("plummer", "float32", 0.5, 3), ("plummer", "float32", 0.0, 2), ("plummer", "float64", 0.0, 3),
        ("plummer", "float64", 0.5, 2), ("spline", "float64", 0.5, 3), ("spline", "float64", 0.0, 2),
    ],
)  # fmt: skip
def test_cpu_computes_what_the_referee_does(softening, precision, massless, dimensions):
    """The errors of a sum of N terms of a dozen roundings each; 300 rows are left to one core, 1500 are divided."""
    for count in (3, 300, 1500):
        bodies, law = bodies_of(count, dimensions, massless), law_of(softening, dimensions)
        _, right = evaluated("reference", law, bodies)
        _, found = evaluated("cpu", law, bodies, precision)
        allowed = 20 * EPS[precision] * np.sqrt(count)
        assert np.abs(found.acceleration - right.acceleration).max() < allowed * np.abs(right.acceleration).max()
        assert np.abs(found.potential / right.potential - 1).max() < allowed


def test_a_subset_and_the_potential_change_no_bit():
    bodies, law = bodies_of(300, massless=0.3), law_of("plummer")
    _, alone = evaluated("cpu", law, bodies, outputs=Outputs.ACCELERATION)
    machine, both = evaluated("cpu", law, bodies)
    assert alone.acceleration.tobytes() == both.acceleration.tobytes()
    some, targets = machine.load(bodies), np.array([7, 150, 3])
    machine.evaluate(some, Outputs.ACCELERATION, targets)
    assert some.acceleration[targets].tobytes() == both.acceleration[targets].tobytes()


def test_equal_lengths_are_one_length():
    bodies = bodies_of(300)
    _, several = evaluated("cpu", Gravity(softening="plummer", length=dict.fromkeys(LENGTHS, 0.1)), bodies)
    _, one = evaluated("cpu", Gravity(softening="plummer", length=0.1), bodies)
    assert np.abs(several.acceleration - one.acceleration).max() < 1e-13 * np.abs(one.acceleration).max()


@pytest.mark.parametrize("softening", ["plummer", "spline"])
def test_the_force_is_the_gradient_of_the_energy(softening):
    """-dW/dx = m a by central differences: h² W''' is 1e-9 with h = 1e-5, and rounding 1e-16/h = 1e-11."""
    bodies, law, h = bodies_of(12), law_of(softening), 1e-5
    squares = law.squares(bodies.species, bodies.species_names)

    def sums(position):
        return direct_sum(position, bodies.mass, law, None, squares)

    a, _ = sums(bodies.position)
    for i, k in ((0, 0), (5, 1), (11, 2)):
        shift = np.zeros_like(bodies.position)
        shift[i, k] = h
        after, before = (0.5 * bodies.mass @ sums(bodies.position + s * shift)[1] for s in (1, -1))
        assert bodies.mass[i] * a[i, k] == pytest.approx((before - after) / (2 * h), rel=1e-6, abs=1e-9)
    momentum = np.abs(bodies.mass @ a)
    assert momentum.max() < 1e-15 * len(a)  # action is reaction, whatever the species


@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_the_jerk_is_the_derivative_of_the_acceleration(engine):
    bodies, law, h = bodies_of(50), law_of("plummer"), 1e-5
    _, state = evaluated(engine, law, bodies, outputs=Outputs.JERK | Outputs.ACCELERATION)
    squares = law.squares(bodies.species, bodies.species_names)
    after, before = (direct_sum(bodies.position + s * bodies.velocity, bodies.mass, law, None, squares)[0] for s in (h, -h))
    assert np.abs(state.jerk - (after - before) / (2 * h)).max() < 1e-7 * np.abs(state.jerk).max()


TEXT = """
units: {length: kpc, mass: 1e10 Msun, velocity: km/s}
initial:
  combine:
    - {generator: plummer, particles: 40, seed: 1, species: stars}
    - {generator: plummer, particles: 60, seed: 2, species: halo, offset: [1, 0, 0]}
gravity:
  softening: plummer
  length: {stars: 50 pc, halo: 0.2}
integrator: {scheme: leapfrog, dt: 0.00002, steps: 40}
engine: cpu
precision: float64
record: {every: 8}
"""


def scenario(text=TEXT, **options):
    return Scenario.from_text(text, "two.yaml").override(**options)


@pytest.mark.parametrize("scheme,order", [("leapfrog", 2), ("hermite4", 4)])
def test_a_run_of_two_species_keeps_its_energy(scheme, order):
    """The error falls with dt to the power of the order: what is left is the scheme's, not the forces'."""
    errors = [
        abs(Simulation(scenario(integrator=scheme, dt=dt, steps=steps)).run().energy_error_largest)
        for dt, steps in ((2e-5, 40), (1e-5, 80))
    ]
    assert errors[0] < 1e-4
    assert errors[1] < errors[0] / 2 ** (order - 0.5) or errors[1] < 1e-13


def test_the_lengths_are_stored_and_a_resumed_run_has_the_same_bits(tmp_path):
    whole, part = tmp_path / "whole.h5", tmp_path / "part.h5"
    Simulation(scenario(), whole).run()
    Simulation(scenario(steps=16), part).run()
    resume(part, steps=40, notify=lambda line: None).run()
    assert first_difference(whole, part) is None
    with Trajectory(part) as run:
        assert run.resolved["gravity"]["length"] == {"stars": 0.05, "halo": 0.2}  # 50 pc in kpc
        assert scenario().resolved()["gravity"] == run.resolved["gravity"]
        final = run.particles(-1)
        energy = run.observable("potential_energy")[-1]
        law = scenario().gravity
        _, phi = direct_sum(final.position, final.mass, law, None, law.squares(final.species, final.species_names))
        assert energy == pytest.approx(0.5 * final.mass @ phi, rel=1e-12)
        source = RecordedSource(run)
        frame = source.past(source.frames - 1)
        assert facts(source, ShownMoment(frame), 3).potential == pytest.approx(phi[3], rel=1e-5)
        assert potential(source, frame)[3] == pytest.approx(-phi[3], rel=1e-5)
        eps = export(run, tmp_path / "two.tipsy")[0].read_bytes()
        halo = np.frombuffer(eps[32:], np.dtype((">f4", 9)))[:, 7]
        assert halo == pytest.approx(np.where(final.species == 0, 0.05, 0.2))


def test_a_galaxy_in_combine_has_another_length_for_its_halo():
    galaxy = {"generator": "exponential_disk", "particles": 60, "seed": 1, "halo": {"mass": 5.0, "radius": 3.0}}
    values = {
        "initial": {"combine": [galaxy, {"generator": "plummer", "particles": 20, "species": "dwarf", "offset": [9, 0, 0]}]},
        "gravity": {"softening": "spline", "length": {"disc": 0.1, "halo": 0.3, "dwarf": 0.05}},
        "integrator": {"dt": 0.01, "steps": 2}, "engine": "cpu", "precision": "float64",
    }  # fmt: skip
    run = Simulation(Scenario.from_dict(values))
    assert abs(run.run().energy_error) < 1e-6
    names = run.particles.species_names
    lengths = np.sqrt(run.state.softening2)
    assert {name: set(lengths[run.particles.species == k]) for k, name in enumerate(names)} == {
        "disc": {np.sqrt(0.1**2)}, "halo": {np.sqrt(0.3**2)}, "dwarf": {np.sqrt(0.05**2)}
    }  # fmt: skip


def test_python_takes_a_mapping_for_a_softening():
    bodies = bodies_of(20)
    run = nbody.Simulation(bodies, dt=0.01, softening=LENGTHS, engine="reference", precision="float64")
    assert run.scenario.gravity == Gravity(1.0, 3, "plummer", LENGTHS)
    run = nbody.Simulation(bodies, dt=0.01, softening=("spline", LENGTHS), engine="reference", precision="float64")
    assert run.scenario.gravity == Gravity(1.0, 3, "spline", LENGTHS)


@pytest.mark.parametrize("law", ["plummer", "spline"])
def test_python_takes_a_length_for_each_body(law, tmp_path):
    bodies, kinds = bodies_of(20), bodies_of(20).species_names
    lengths = np.geomspace(0.05, 0.4, 20)[::-1].copy()
    lengths[:3] = 0.1
    values = {"dt": 0.01, "engine": "cpu", "precision": "float64"}
    path = tmp_path / "run.h5"
    run = nbody.Simulation(bodies, path, softening=(law, lengths), **values)
    assert np.array_equal(run.state.softening2, lengths**2)
    run.run(1)
    found, expected = run.state.values("acceleration")[0], run.particles
    np.testing.assert_allclose(
        found, nbody.accelerations(expected, softening=law, length=lengths, engine="reference"), rtol=1e-12
    )
    new = run.add(mass=0.1, position=[1, 0, 0], velocity=[0, 0, 0], species=run.particles.species_names[0])
    run.run(3)
    assert run.particles.id[-1] == new and run.state.softening2[-1] in lengths**2
    again = resume(shutil.copy(path, tmp_path / "again.h5"), notify=lambda line: None)
    again.run(2)
    run.run(2)
    assert (again.particles.position == run.particles.position).all()
    assert {name.rsplit(" length", 1)[0] for name in run.particles.species_names} <= {*kinds}
    same = nbody.Simulation(bodies, softening=law, length=lengths.tolist(), **values)
    assert same.scenario.gravity == run.scenario.gravity


EACH = """
initial: {generator: plummer, particles: 6, seed: 1}
gravity: {softening: spline, length: [50 pc, 0.2, 50 pc, 0.4, 0.2, 0.2]}
units: {length: kpc, mass: 1e10 Msun, velocity: km/s}
integrator: {scheme: leapfrog, dt: 0.00002, steps: 4}
engine: reference
precision: float64
"""


def test_a_scenario_lists_a_length_for_each_body(tmp_path):
    """With the bits of the Python program that gives the same ones; through a file, a resumed run, a repeated one."""
    lengths = np.array([0.05, 0.2, 0.05, 0.4, 0.2, 0.2])
    chosen = Scenario.from_text(EACH, "each.yaml")
    assert Scenario.from_text(chosen.to_yaml()).gravity == chosen.gravity
    whole, part, again = (tmp_path / f"{name}.h5" for name in ("whole", "part", "again"))
    run = Simulation(chosen, whole)
    assert np.array_equal(run.state.softening2, lengths**2)
    run.run()
    bodies, G = make_particles(chosen), chosen.gravity.G
    same = nbody.Simulation(
        bodies, G=G, softening=("spline", lengths), dt=2e-5, steps=4, engine="reference", precision="float64"
    )
    same.run()
    assert (same.particles.position == run.particles.position).all()
    assert same.particles.species_names == run.particles.species_names == ("length 0", "length 1", "length 2")
    Simulation(chosen.override(steps=2), part).run()
    resume(part, steps=4, notify=lambda line: None).run()
    rerun(whole, again, notify=lambda line: None).run()
    assert first_difference(whole, part) is None and first_difference(whole, again) is None
    by_option = Scenario.from_text(EACH).override([f"gravity.length={lengths.tolist()}"])
    by_keyword = Scenario.from_text(EACH).with_keywords({"softening": ("spline", lengths)})
    assert by_option.gravity == by_keyword.gravity == chosen.gravity
    changed = Simulation(chosen)
    changed.remove([0, 3])
    new = changed.add(mass=1.0, position=[9, 0, 0], velocity=[0, 0, 0], species="length 0")
    changed.step()
    assert changed.particles.id.tolist() == [1, 2, 4, 5, new]
    assert np.array_equal(changed.state.softening2, lengths[[1, 2, 4, 5, 0]] ** 2)


def test_names_of_bodies_stay_when_each_has_a_length():
    pair = {"generator": "planets", "bodies": [{"name": "Sun", "m": 1}, {"name": "Earth", "m": 3e-6, "a": 1}]}
    values = {"initial": {"combine": [pair, {"generator": "plummer", "particles": 3, "offset": [9, 0, 0]}]},
              "gravity": {"softening": "plummer", "length": [0.1, 0.02, 0.1, 0.02, 0.3]}, "engine": "reference",
              "precision": "float64", "integrator": {"dt": 0.01, "steps": 1}}  # fmt: skip
    run = Simulation(Scenario.from_dict(values))
    expected = {"Sun": 0.1, "Earth": 0.02, "plummer length 0": 0.02, "plummer length 1": 0.1, "plummer length 2": 0.3}
    assert dict(run.scenario.gravity.length) == expected
    assert np.array_equal(run.state.softening2, np.array([0.1, 0.02, 0.1, 0.02, 0.3]) ** 2)


@pytest.mark.parametrize(
    "old,new,line",
    [
        (", 0.2, 0.2]", "]", "each.yaml:3: gravity.length: must be a number, or one for each of 6 bodies; got a list of 4"),
        (", 0.4", ", 0", "each.yaml:3: gravity.length.3: must be greater than 0, got 0"),
        (", 0.4", ", wide", "each.yaml:3: gravity.length.3: must be a number, got 'wide'"),
        (", 0.4", ", 1e-120", "each.yaml:3: gravity.length.3: 1e-120 is too small"),
        ("[50 pc, 0.2, 50 pc, 0.4, 0.2, 0.2]", "[]", "each.yaml:3: gravity.length: must be a length, a length of each"),
        ("spline", "cutoff", "each.yaml:3: gravity.length: must be one number for softening 'cutoff'"),
        ("spline", "none", "each.yaml:3: gravity.length: has no meaning with softening 'none'"),
        ("leapfrog", "ias15", "each.yaml:3: gravity.length: scheme 'ias15' computes the forces itself"),
        ("leapfrog, dt: 0.00002, steps: 4}", "ias15, end: 1e-3}\nensemble: {systems: 2}", "each.yaml:3: gravity.length"),
        ("plummer", "exponential_disk, equilibrium: softened", "needs one softening length, or one per component"),
    ],
)  # fmt: skip
def test_invalid_lists_of_lengths_are_refused(old, new, line):
    assert EACH.count(old) == 1
    assert line in said(lambda: Simulation(Scenario.from_text(EACH.replace(old, new), "each.yaml")))


def test_lengths_of_bodies_are_bounded_and_refused_where_species_are():
    bodies = bodies_of(1200)
    with pytest.raises(InputError, match="up to 1000 softening lengths, and there are 1200 different ones; round them"):
        nbody.Simulation(bodies, dt=0.01, softening=np.linspace(0.1, 0.2, 1200))
    for lengths in ([0.1, 0.2], [[0.1], [0.2, 0.3]]):
        with pytest.raises(InputError, match="softening: must be a number, or one for each of 1200 bodies"):
            nbody.Simulation(bodies, dt=0.01, softening=lengths)
    for law in (["a", "b", "c"], ["spline"]):
        with pytest.raises(InputError, match="softening: must be a law and its lengths"):
            nbody.Simulation(bodies, dt=0.01, softening=law)
    for law in ({"plummer": 0.1}, ("spline", 0.1)):
        with pytest.raises(InputError, match="length: the softening has one too"):
            nbody.Simulation(bodies, dt=0.01, softening=law, length=np.repeat([0.1, 0.2], 600))
    with pytest.raises(InputError, match="'ias15' computes the forces itself, with one softening length"):
        nbody.Simulation(bodies, integrator={"scheme": "ias15", "end": 1}, softening=np.repeat([0.1, 0.2], 600))


@pytest.mark.parametrize(
    "old,new,line",
    [
        ("stars: 50", "star: 50", "two.yaml:9: gravity.length: the bodies have no species 'star' (did you mean 'stars'?)"),
        (", halo: 0.2", "", "two.yaml:9: gravity.length: the species 'halo' has no length; add it to those of 'stars'"),
        ("0.2", "-0.2", "two.yaml:9: gravity.length.halo: must be greater than 0, got -0.2"),
        ("0.2", "0.2 Msun", "two.yaml:9: gravity.length.halo: '0.2 Msun' is not a length; write one as in '5 pc'"),
        ("0.2", "wide", "two.yaml:9: gravity.length.halo: must be a number, got 'wide'"),
        ("0.2", "1e-200", "gravity.length.halo: 1e-200 is too small"),
        ("{stars: 50 pc, halo: 0.2}", "{}", "gravity.length: must be a length, a length of each species"),
        ("softening: plummer", "softening: cutoff", "gravity.length: must be one number for softening 'cutoff'"),
        ("leapfrog", "ias15", "gravity.length: scheme 'ias15' computes the forces itself, with one softening length"),
        ("leapfrog", "hermite4_block", "scheme 'hermite4_block' computes the forces itself, with one softening length"),
        ("engine: cpu", "engine: gpu-split", "it has one softening length for all bodies; choose --engine reference or cpu"),
        ("engine: cpu", "engine: matrix", "it has one softening length for all bodies"),
        ("float64", "mixed", "it computes in float32 or float64, not in mixed; choose --precision float32 or float64"),
    ],
)  # fmt: skip
def test_invalid_softening_lengths_are_refused(old, new, line):
    assert TEXT.count(old) == 1
    assert line in said(lambda: Simulation(scenario(TEXT.replace(old, new))))


def test_bodies_without_species_have_one_length():
    with pytest.raises(InputError, match="the bodies have no species, and there are lengths for 'stars'; give one length"):
        Simulation(made("plummer", 10), dt=0.1, softening={"stars": 0.1}, engine="cpu", precision="float64")
    assert "one softening length" in ENGINES.load("gpu-split").supports(Problem(law_of("plummer"), "float32"))


def test_rebound_and_its_one_length(tmp_path):
    pytest.importorskip("rebound")
    Simulation(scenario(steps=1), tmp_path / "run.h5").run()
    with Trajectory(tmp_path / "run.h5") as run, pytest.raises(InputError, match="REBOUND has one softening length"):
        export(run, tmp_path / "run.bin")


def test_auto_chooses_among_the_engines_that_have_it(monkeypatch):
    monkeypatch.setattr(compute, "why_unavailable", lambda: "none here")
    several = law_of("plummer")

    def auto(particles, **asked):
        return choose("auto", Problem(several, "float32", particles, **asked)).name

    assert auto(1000) == "cpu"
    monkeypatch.setattr(compute, "why_unavailable", lambda: "")
    monkeypatch.setattr(
        compute, "facts", lambda: compute.DeviceProperties("a card", (9, 0), 132, 2e9, 8 << 30, 7 << 30, "1")
    )
    assert auto(1000) == auto(20480) == "gpu-symmetric"
    assert auto(1000, outputs=Outputs.JERK) == "cpu"
