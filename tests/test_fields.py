"""External fields: galpy's potentials, added once to every engine's forces and whole to the energy."""

import math

import numpy as np
import pytest
from conftest import random_bodies, said

from nbody.errors import InputError
from nbody.fields import FIELDS, added_fields, chosen_fields
from nbody.fields.added import AddedFields
from nbody.fields.field import BodyField, Field
from nbody.fields.given import given_fields
from nbody.forces import ENGINES
from nbody.forces.layers import layered
from nbody.forces.layers.fields import fields_of
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario
from nbody.state import Outputs

G = 1.3
PARAMETERS = {
    "point_mass": {"mass": 2.0},
    "plummer": {"mass": 2.0, "b": 0.7},
    "hernquist": {"mass": 2.0, "a": 0.7},
    "nfw": {"mass": 2.0, "a": 0.7},
    "logarithmic_halo": {"v": 1.1, "core": 0.4, "q": 0.8},
    "miyamoto_nagai": {"mass": 2.0, "a": 0.7, "b": 0.2},
    "rotating_bar": {"mass": 2.0, "a": 1.1, "b": 0.1, "c": 0.2, "angle": 25.0, "omega": 0.6},
    "milky_way": {
        "nucleus_mass": 0.2, "nucleus_a": 0.1, "bulge_mass": 0.5, "bulge_a": 0.3, "disk_mass": 2.0, "disk_a": 1.0,
        "disk_b": 0.1, "halo_mass": 9.0, "halo_a": 4.0,
    },
}  # fmt: skip

KINDS = {name: FIELDS.load(name) for name in FIELDS if name != "function"}
EXTERNAL = [name for name, kind in KINDS.items() if issubclass(kind, Field) and not issubclass(kind, BodyField)]
"""For relativity see test_relativity.py, for forces of bodies test_forces_of_bodies.py, for functions test_own_forces.py."""

TEXT = """\
initial: {generator: plummer, particles: 64, seed: 3}
gravity: {softening: plummer, length: 0.05}
fields: [{field: rotating_bar, mass: 2, a: 1.1, c: 0.2, omega: 0.6}, {field: nfw, mass: 3, a: 0.7, centre: [1, 0, 0]}]
integrator: {dt: 0.0078125, steps: 20}
engine: cpu
precision: float64
record: {every: 5}
"""


def fields(*names: str) -> AddedFields:
    return AddedFields([FIELDS.load(name)(**PARAMETERS[name]) for name in names], G)


def galpys(name: str, at: dict):
    """The same potential in galpy."""
    potential = pytest.importorskip("galpy.potential")

    def make(kind, mass, **rest):
        return getattr(potential, f"{kind}Potential")(amp=mass, **rest)

    if name == "milky_way":
        nucleus = make("Hernquist", 2 * G * at["nucleus_mass"], a=at["nucleus_a"])
        bulge = make("Hernquist", 2 * G * at["bulge_mass"], a=at["bulge_a"])
        disk = make("MiyamotoNagai", G * at["disk_mass"], a=at["disk_a"], b=at["disk_b"])
        return nucleus + bulge + disk + make("NFW", G * at["halo_mass"], a=at["halo_a"])
    if name == "logarithmic_halo":
        return make("LogarithmicHalo", at["v"] ** 2, core=at["core"], q=at["q"])
    if name == "rotating_bar":
        turned = {"pa": math.radians(at["angle"]), "omegab": at["omega"]}
        return make("SoftenedNeedleBar", G * at["mass"], a=at["a"], b=at["b"], c=at["c"], **turned)
    kinds = {"point_mass": "Kepler", "plummer": "Plummer", "hernquist": "Hernquist", "nfw": "NFW"}
    kind = kinds.get(name, "MiyamotoNagai")
    rest = {key: value for key, value in at.items() if key != "mass"}
    return make(kind, G * at["mass"] * (2 if kind == "Hernquist" else 1), **rest)


@pytest.mark.parametrize("name", EXTERNAL)
def test_a_field_is_galpys(name):
    """To 1e-12; some ten roundings of each, and a cancellation in galpy's own formula of the bar and of NFW."""
    theirs, t = galpys(name, PARAMETERS[name]), 0.9
    from galpy.potential import evaluatephitorques, evaluatePotentials, evaluateRforces, evaluatezforces

    rng = np.random.default_rng(1)
    position = rng.normal(size=(20, 3))
    a, phi = fields(name).at(position, t)
    for (x, y, z), (ax, ay, az), value in zip(position, a, phi, strict=True):
        R, angle = math.hypot(x, y), math.atan2(y, x)
        point = (theirs, R, z)
        radial = evaluateRforces(*point, phi=angle, t=t)
        sideways = evaluatephitorques(*point, phi=angle, t=t) / R
        expected = [
            (radial * x - sideways * y) / R,
            (radial * y + sideways * x) / R,
            evaluatezforces(*point, phi=angle, t=t),
        ]
        assert [ax, ay, az] == pytest.approx(expected, rel=1e-12, abs=1e-12 * np.linalg.norm(expected))
        assert value == pytest.approx(evaluatePotentials(*point, phi=angle, t=t), rel=1e-12)
    if name != "milky_way":  # which is a sum there
        [found] = given_fields(theirs, G)
        assert found.field == name
        assert found.options == pytest.approx({key: PARAMETERS[name][key] for key in found.options}, rel=1e-14)


@pytest.mark.parametrize("name", EXTERNAL)
def test_a_fields_force_is_minus_the_gradient_of_its_potential(name):
    """By a central difference of order 2 with h = 1e-5: h² φ''' is 1e-10, the rounding of φ/h 1e-11. In the centre a
    regular field has no NaN."""
    field, h = fields(name), 1e-5
    position = np.random.default_rng(2).normal(size=(8, 3))
    a, _ = field.at(position, 0.4)
    for k in range(3):
        step = h * np.eye(3)[k]
        slope = (field.at(position + step, 0.4)[1] - field.at(position - step, 0.4)[1]) / (2 * h)
        assert a[:, k] == pytest.approx(-slope, abs=2e-7)
    if name != "point_mass":
        centre, deep = field.at(np.array([[0.0, 0, 0], [0, 0, 1e-9]]))
        assert np.isfinite(centre).all() and deep[0] == pytest.approx(deep[1], rel=1e-7)
        assert not centre[0].any()


def test_the_milky_way_turns_at_230_km_per_s():
    begin, end = TEXT.split("[{field")[0], TEXT.split("[1, 0, 0]}]")[1]
    text = f"units: {{length: kpc, mass: Msun, velocity: km/s}}\n{begin}{{field: milky_way}}{end}"
    field = added_fields(Scenario.from_text(text))
    acceleration, _ = field.at(np.array([[8.0, 0, 0]]))
    assert math.sqrt(-8 * acceleration[0, 0]) == pytest.approx(231, abs=1)


@pytest.mark.parametrize("engine", ["reference", "cpu", "matrix:numpy"])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_an_engine_adds_fields_once_in_whatever_order_results_are_asked_for(engine, dimensions):
    """Forces of the pairs plus those of the fields; W = ½ Σ m φ + Σ m Φ."""
    bodies, law = random_bodies(50, dimensions), Gravity(G, dimensions, "plummer", 0.1)
    bodies.time = 0.7
    made = ENGINES.load(engine)(law, "float64")
    alone = made.load(bodies)
    made.evaluate(alone, Outputs.POTENTIAL)
    pairs, phi = alone.values("acceleration", "potential")
    made = layered(made, fields("rotating_bar", "nfw"))
    a, external = fields_of(made).at(bodies.position, 0.7)
    energy = 0.5 * bodies.mass @ phi + bodies.mass @ external
    for order in ((Outputs.POTENTIAL,), (Outputs.ACCELERATION, Outputs.ENERGY), (Outputs.ENERGY, Outputs.ACCELERATION)):
        state = made.load(bodies)
        for outputs in order:
            made.evaluate(state, outputs)
        assert state.values("acceleration")[0] == pytest.approx(pairs + a, rel=1e-15, abs=1e-15)
        assert state.frames.snapshot().sums[1] == pytest.approx(energy, rel=1e-13)


def test_a_thousand_fields_of_two_kinds_are_their_sum_and_compile_as_two():
    many = fields(*500 * ["point_mass", "nfw"])
    x = np.random.default_rng(1).normal(size=(5, 3))
    for found, one in zip(many.at(x), fields("point_mass", "nfw").at(x), strict=True):
        assert found == pytest.approx(500 * one, rel=1e-12)


def test_some_bodies_get_the_fields_too():
    bodies, pairs = random_bodies(30), ENGINES.load("cpu")(Gravity(G, 3, "plummer", 0.1), "float64")
    made = layered(pairs, fields("plummer"))
    whole, some = made.load(bodies), made.load(bodies)
    made.evaluate(whole, Outputs.POTENTIAL)
    made.evaluate(some, Outputs.POTENTIAL, np.array([3, 7]))
    for k in (0, 1):
        assert some.values("acceleration", "potential")[k][[3, 7]] == pytest.approx(
            whole.values("acceleration", "potential")[k][[3, 7]], rel=1e-12
        )


def test_hermites_jerk_is_the_change_of_the_acceleration_along_the_motion():
    """Against a central difference of order 2 over dt = 1e-4: dt²/6 of the third derivative, some 1e-7."""
    bodies, dt = random_bodies(20), 1e-4
    field = fields("rotating_bar", "nfw", "plummer")
    state = ENGINES.load("reference")(Gravity(0.0)).load(bodies)
    jerk = field.jerk(state.position, state.velocity, np.zeros((20, 3)), bodies.mass, 0.3)
    after, _ = field.at(bodies.position + dt * bodies.velocity, 0.3 + dt)
    before, _ = field.at(bodies.position - dt * bodies.velocity, 0.3 - dt)
    size = np.linalg.norm(jerk, axis=1).mean()
    assert jerk == pytest.approx((after - before) / (2 * dt), abs=1e-6 * size)


def orbit(scheme: str, dt: float, steps: int = 0) -> Simulation:
    """A massless body and one of mass 1e-9 in the field of a bar and a halo, from the x axis at speed 1."""
    text = f"""\
initial: {{generator: plummer, particles: 2}}
gravity: {{G: 1}}
fields: [{{field: rotating_bar, mass: 1, a: 0.8, c: 0.3, omega: 0.5}}, {{field: logarithmic_halo, v: 1, core: 0.5}}]
integrator: {{scheme: {scheme}, dt: {dt}, steps: {steps or round(2 / dt)}}}
engine: reference
precision: float64
"""
    bodies = Particles([0.0, 1e-9], [[2.0, 0, 0], [0, 3, 0.5]], [[0, 1.0, 0.2], [-1, 0, 0]])
    return Simulation(Scenario.from_text(text), particles=bodies)


def jacobis(run: Simulation) -> np.ndarray:
    """E - omega L_z per unit mass, of each body."""
    x, v = run.state.position, run.state.velocity
    _, phi = fields_of(run.setup.engine).at(x, run.state.clock.time)
    return 0.5 * (v * v).sum(axis=1) + phi - 0.5 * (x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0])


@pytest.mark.parametrize(("scheme", "order"), [("leapfrog", 2), ("yoshida4", 4), ("hermite4", 4)])
def test_jacobis_integral_is_kept_to_the_order_of_the_scheme(scheme, order):
    """E - omega L_z is constant in a bar that turns: only if each force is taken at the time of its positions."""
    errors = []
    for dt in (0.05, 0.025):
        run = orbit(scheme, dt)
        first = jacobis(run)
        run.run()
        errors.append(np.abs(jacobis(run) - first).max())
    assert errors[0] < 1e-3 and math.log2(errors[0] / errors[1]) > order - 0.6


def test_the_bits_do_not_depend_on_how_steps_are_grouped():
    whole, single = orbit("yoshida4", 0.05, 8), orbit("yoshida4", 0.05, 8)
    whole.stepper.integrator.advance(whole.stepper.motion, 8)
    for _ in range(8):
        single.stepper.integrator.advance(single.stepper.motion, 1)
    framed = orbit("yoshida4", 0.05, 8)
    framed.stepper.integrator.frames(framed.stepper.motion, 4, 2)
    assert np.array_equal(whole.state.position, single.state.position)
    assert np.array_equal(whole.state.position, framed.state.position)


def test_the_resolved_scenario_has_every_parameter_and_the_same_fields():
    scenario = Scenario.from_text(TEXT)
    simulation = Simulation(scenario)
    resolved = simulation.setup.plan.resolved()
    assert resolved["fields"][0] == {
        "field": "rotating_bar", "centre": (0.0, 0.0, 0.0), "mass": 2.0, "a": 1.1, "b": 0.0, "c": 0.2, "angle": 0.0,
        "omega": 0.6,
    }  # fmt: skip
    assert chosen_fields(Scenario.from_dict(resolved)) == chosen_fields(scenario)


def test_an_option_reaches_a_value_of_one_field():
    changed = Scenario.from_text(TEXT).override(["fields.1.mass=7"])
    assert [field.mass for field in chosen_fields(changed)] == [2, 7]
    assert [field.mass for field in chosen_fields(Scenario.from_text(TEXT))] == [2, 3]
    with pytest.raises(InputError, match=r"^--set fields.2.mass: the list has 2 items, counted from 0; there is no '2'"):
        Scenario.from_text(TEXT).override(["fields.2.mass=7"])
    with pytest.raises(InputError, match=r"^--set fields.1.mass: must be greater than 0"):
        chosen_fields(Scenario.from_text(TEXT).override(["fields.1.mass=-7"]))


WRONG = [
    ("{field: nfw, mass: 3, a: 0.7, centre: [1, 0, 0]}", "{field: nwf}", "3: fields.1.field: unknown field 'nwf' (did you"),
    ("mass: 3", "mas: 3", "3: fields.1.mas: unknown key (did you mean 'mass'?)"),
    ("mass: 3", "mass: -3", "3: fields.1.mass: must be greater than 0, got -3"),
    ("mass: 3, ", "", "3: fields.1.mass: is missing"),
    ("mass: 3", "mass: 3 Msun", "3: fields.1.mass: '3 Msun' has a unit, and the scenario has no units"),
    ("[1, 0, 0]", "[1, 0]", "3: fields.1.centre"),
    ("{field: nfw, mass: 3, a: 0.7, centre: [1, 0, 0]}", "{field: milky_way}", "3: fields.1.nucleus_mass: '1.71e9 Msun' ha"),
    ("{field: nfw, mass: 3, a: 0.7, centre: [1, 0, 0]}", "5", "3: fields.1: must be a group of keys"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line"), WRONG)
def test_invalid_fields_are_refused(old, new, line):
    assert old in TEXT
    assert said(lambda: Simulation(Scenario.from_text(TEXT.replace(old, new), "bad.yaml"))).startswith(f"bad.yaml:{line}")


def test_a_force_by_velocity_is_added_to_the_targets_alone():
    bodies = random_bodies(5)
    state = ENGINES.load("reference")(Gravity(0.0)).load(bodies)
    law = AddedFields([FIELDS.load("post_newtonian")(c=10.0)], G)
    law.add(state, Outputs.POTENTIAL)
    everywhere = state.acceleration.copy(), state.potential.copy()
    state.acceleration[...] = state.potential[...] = 0
    law.add(state, Outputs.POTENTIAL, targets=np.array([1, 3]))
    for got, whole in zip((state.acceleration, state.potential), everywhere, strict=True):
        assert np.array_equal(got[[1, 3]], whole[[1, 3]])
        assert whole.any()
        assert not got[[0, 2, 4]].any()
