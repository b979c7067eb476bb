"""Few bodies with known motion, planets from their elements, and the Solar System against JPL's ephemeris."""

import math

import numpy as np
import pytest
from samples import largest_gap
from scipy.integrate import solve_ivp

from nbody.errors import InputError
from nbody.initial import make_particles
from nbody.initial.orbit import on_orbit, true_anomaly
from nbody.initial.solar import DE405_EPOCH, GAUSS2
from nbody.particles import Particles
from nbody.scenario import Scenario


def made(initial: dict, G: float = 1.0, dimensions: int = 3) -> Particles:
    values = {"initial": initial, "gravity": {"G": G, "dimensions": dimensions}, "integrator": {"dt": 1, "steps": 1}}
    return make_particles(Scenario.from_dict(values))


def moved(bodies: Particles, time: float, G: float = 1.0, error: float = 1e-12) -> np.ndarray:
    """Positions after ``time``, by a Runge-Kutta method of order 8 that is not nbody's."""
    n, mass = bodies.position.size, bodies.mass

    def rates(t, y):
        x = y[:n].reshape(bodies.position.shape)
        d = x[None] - x[:, None]
        r2 = (d**2).sum(axis=2)
        np.fill_diagonal(r2, 1)
        return np.concatenate([y[n:], G * (mass[None, :, None] * d / r2[..., None] ** 1.5).sum(axis=1).ravel()])

    begin = np.concatenate([bodies.position.ravel(), bodies.velocity.ravel()])
    return (
        solve_ivp(rates, (0, time), begin, "DOP853", rtol=error, atol=error / 100).y[:n, -1].reshape(bodies.position.shape)
    )


def energy(bodies: Particles, G: float = 1.0) -> float:
    d = np.linalg.norm(bodies.position[:, None] - bodies.position[None], axis=2)
    i, j = np.triu_indices(bodies.count, 1)
    potential = -G * (bodies.mass[i] * bodies.mass[j] / d[i, j]).sum()
    return 0.5 * (bodies.mass[:, None] * bodies.velocity**2).sum() + potential


# --- Closed orbits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [2, 3])
def test_keplers_ellipse_closes_and_has_its_energy(dimensions):
    own = {"eccentricity": 0.7, "semi_major_axis": 2.0, "masses": [3, 0.5]}
    bodies = made({"generator": "kepler", **own}, G=2.0, dimensions=dimensions)
    assert energy(bodies, 2.0) == pytest.approx(-2 * 1.5 / (2 * 2.0), rel=1e-12)
    period = 2 * math.pi * math.sqrt(2.0**3 / (2 * 3.5))
    np.testing.assert_allclose(moved(bodies, period, 2.0), bodies.position, atol=1e-8)
    np.testing.assert_allclose(bodies.mass @ bodies.velocity, 0, atol=1e-15)


def test_the_figure_eight_closes_to_its_digits():
    bodies = made({"generator": "figure_eight"}, dimensions=2)
    assert energy(bodies) == pytest.approx(-1.2871419918, abs=1e-9)
    np.testing.assert_allclose(moved(bodies, 6.32591398), bodies.position, atol=1e-7)
    np.testing.assert_allclose(moved(bodies, 6.32591398 / 3), bodies.position[[2, 0, 1]], atol=1e-7)
    fast = made({"generator": "figure_eight"}, G=4.0)
    np.testing.assert_allclose(moved(fast, 6.32591398 / 2, 4.0), fast.position, atol=1e-7)


def test_burraus_bodies_are_where_szebehely_and_peters_found_them():
    bodies = made({"generator": "pythagorean"}, dimensions=2)
    assert energy(bodies) == pytest.approx(-769 / 60, rel=1e-12)
    np.testing.assert_allclose(moved(bodies, 10.0)[0], [0.77848041, 0.14139229], atol=1e-6)


@pytest.mark.parametrize("e", [0.0, 0.4])
def test_lagranges_triangle_stays_equilateral_and_closes(e):
    bodies = made({"generator": "lagrange_triangle", "masses": [1, 2, 3], "side": 2, "eccentricity": e})
    period = 2 * math.pi * math.sqrt(8 / 6)
    sides = lambda x: [np.linalg.norm(x[i] - x[j]) for i, j in ((0, 1), (1, 2), (2, 0))]  # noqa: E731
    assert sides(bodies.position) == pytest.approx([2 * (1 - e)] * 3)
    assert sides(moved(bodies, period / 2)) == pytest.approx([2 * (1 + e)] * 3, rel=1e-6)
    np.testing.assert_allclose(moved(bodies, period), bodies.position, atol=1e-4)  # unstable: it does not stay so for long


# --- Elements --------------------------------------------------------------------------------------------------------


def elements(x, v, mu):
    """a, e, i, node, argument and true anomaly of a state, by the textbook."""
    h = np.cross(x, v)
    r = np.linalg.norm(x)
    ecc = np.cross(v, h) / mu - x / r
    e, node = np.linalg.norm(ecc), np.array([-h[1], h[0], 0])

    def angle(a, b, up):
        size = np.linalg.norm(a) * np.linalg.norm(b)
        return math.copysign(math.acos(np.clip(a @ b / size, -1, 1)), up) if size else 0.0

    return (
        1 / (2 / r - v @ v / mu), e, math.acos(h[2] / np.linalg.norm(h)), math.atan2(node[1], node[0]),
        angle(node, ecc, ecc[2]), angle(ecc, x, x @ v),
    )  # fmt: skip


def test_elements_are_found_again_in_the_state():
    rng = np.random.default_rng(2)
    for _ in range(20):
        a, e, i = rng.uniform(0.5, 3), rng.uniform(0.01, 0.95), rng.uniform(0.05, 3.0)
        node, argument, f = rng.uniform(-3.1, 3.1, 3)
        x, v = on_orbit(1.7, a * (1 - e), e, f, i, node, argument)
        np.testing.assert_allclose(elements(x, v, 1.7), (a, e, i, node, argument, f), atol=1e-6)


def test_keplers_equation_is_solved_for_every_eccentricity():
    mean, e = np.meshgrid(np.linspace(-3.14, 3.14, 201), [0, 0.1, 0.5, 0.9, 0.99, 0.999999])
    f = true_anomaly(mean, e)
    E = 2 * np.arctan2(np.sqrt(1 - e) * np.sin(f / 2), np.sqrt(1 + e) * np.cos(f / 2))
    np.testing.assert_allclose(E - e * np.sin(E), mean, atol=1e-12)
    x, v = on_orbit(1.0, 2.0, 1.0, -2.0)  # a parabola has the energy 0
    assert 0.5 * v @ v - 1 / np.linalg.norm(x) == pytest.approx(0, abs=1e-15)


SUN_EARTH_MOON = [
    {"m": 1, "name": "sun"},
    {"m": 3e-6, "a": 1, "e": 0.0167, "omega": 103, "M": 40, "name": "earth"},
    {"m": 3.7e-8, "a": 0.00257, "e": 0.05, "inc": 5, "around": "earth", "name": "moon"},
    {"m": 1e-3, "a": 5.2, "e": 0.048, "inc": 1.3, "Omega": 100, "f": 20},
]


def test_planets_have_the_elements_that_were_written():
    bodies = made({"generator": "planets", "bodies": SUN_EARTH_MOON})
    assert bodies.species_names == ("sun", "earth", "moon", "") and bodies.species.tolist() == [0, 1, 2, 3]
    sun, earth, moon, jupiter = range(4)
    x, v, m = bodies.position, bodies.velocity, bodies.mass
    np.testing.assert_allclose(m @ v, 0, atol=1e-18)
    assert elements(x[earth] - x[sun], v[earth] - v[sun], m[:2].sum())[:2] == pytest.approx((1, 0.0167))
    found = elements(x[moon] - x[earth], v[moon] - v[earth], m[1:3].sum())
    assert found[:3] == pytest.approx((0.00257, 0.05, math.radians(5)))
    centre, flow = (m[:3] @ each[:3] / m[:3].sum() for each in (x, v))  # Jacobi's coordinates
    found = elements(x[jupiter] - centre, v[jupiter] - flow, m.sum())
    assert found[:4] == pytest.approx((5.2, 0.048, math.radians(1.3), math.radians(100)))
    assert found[5] == pytest.approx(math.radians(20))


# --- The Solar System ------------------------------------------------------------------------------------------------


def test_the_earth_is_where_jpl_has_it_29_years_later():
    """JPL Horizons, barycentric, equatorial, JD 2450994.5 (1998 June 30). Newton's point masses leave out relativity,
    3GM/(c²a) = 3e-8 of the mean motion or 5e-6 rad in 29 years, and the moons and asteroids."""
    there = np.array([1.341417658351261e-01, -9.218299109822607e-01, -3.994344352497306e-01])
    bodies = made({"generator": "solar_system", "frame": "equatorial"}, G=GAUSS2)
    now = moved(bodies, 2450994.5 - DE405_EPOCH, GAUSS2, 1e-9)
    assert np.abs(now[bodies.species_names.index("Earth")] - there).max() < 3e-5


def test_the_ecliptic_holds_the_earths_orbit_and_years_may_be_the_unit():
    days = made({"generator": "solar_system"}, G=GAUSS2)
    years = made({"generator": "solar_system"}, G=GAUSS2 * 365.25**2)
    np.testing.assert_allclose(years.velocity, 365.25 * days.velocity, rtol=1e-12)
    earth, sun = days.species_names.index("Earth"), 0
    normal = np.cross(days.position[earth] - days.position[sun], days.velocity[earth] - days.velocity[sun])
    assert normal[2] / np.linalg.norm(normal) == pytest.approx(1, abs=1e-7)
    assert np.linalg.norm(days.position[earth] - days.position[4]) == pytest.approx(0.00241, rel=0.01)  # the Moon
    assert days.mass[3] == pytest.approx(3.0035e-6, rel=1e-4)


def test_the_outer_solar_system_is_that_of_the_book():
    bodies = made({"generator": "outer_solar_system"}, G=2.95912208286e-4)
    assert bodies.mass[1] == 0.000954786104043
    np.testing.assert_allclose(bodies.position[1] - bodies.position[0], [-3.5023653, -3.8169847, -1.5507963], rtol=1e-12)
    found = elements(bodies.position[1] - bodies.position[0], bodies.velocity[1] - bodies.velocity[0], 2.962e-4)
    assert found[0] == pytest.approx(5.2, rel=0.01) and found[1] == pytest.approx(0.048, rel=0.1)


# --- Discs of small bodies, boxes, collapse --------------------------------------------------------------------------


@pytest.mark.parametrize("slope", [-2.0, -1.0, 0.0])
def test_planetesimals_have_their_elements(slope):
    own = {"slope": slope, "eccentricity": 0.05, "inclination": 2.0, "mass": 0.0}
    bodies = made({"generator": "planetesimals", "particles": 5001, **own})
    assert bodies.species_names == ("centre", "disc") and bodies.mass[0] == 1 and not bodies.mass[1:].any()
    x, v = (each[1:] - each[0] for each in (bodies.position, bodies.velocity))
    found = np.array([elements(*each, 1.0)[:3] for each in zip(x, v, strict=True)])
    p = slope + 2
    mass = lambda a: np.log(a / 0.5) / np.log(3) if p == 0 else (a**p - 0.5**p) / (1.5**p - 0.5**p)  # noqa: E731
    assert largest_gap(found[:, 0], mass) < 1.95
    assert largest_gap(found[:, 1], lambda e: 1 - np.exp(-((e / 0.05) ** 2))) < 1.95
    assert largest_gap(found[:, 2], lambda i: 1 - np.exp(-((i / math.radians(2)) ** 2))) < 1.95


def test_a_ring_is_flat_and_has_moons():
    initial = {"generator": "ring", "particles": 500, "bodies": [{"m": 1e-6, "a": 1.9}]}
    bodies = made(initial)
    radius = np.linalg.norm(bodies.position - bodies.position[0], axis=1)[2:]
    assert bodies.species_names == ("centre", "bodies", "disc") and np.bincount(bodies.species).tolist() == [1, 1, 498]
    assert 1.23 < radius.min() < radius.max() < 2.28
    assert np.abs(bodies.position[:, 2]).max() < 1e-3
    assert made(initial, dimensions=2).dimensions == 2


def test_boxes_and_clouds_are_uniform_and_normal():
    box = made({"generator": "uniform", "particles": 10_000, "side": 3, "dispersion": 0.2})
    for k in range(3):
        assert largest_gap(box.position[:, k], lambda x: x / 3 + 0.5) < 1.95
    cloud = made({"generator": "gaussian", "particles": 10_000, "sigma": 2, "dispersion": 0.1}, dimensions=2)
    normal = lambda x: 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))  # noqa: E731
    for each in (cloud.position / 2, cloud.velocity / 0.1, box.velocity / 0.2):
        assert largest_gap(each[:, 1], normal) < 1.95


def test_the_cold_sphere_is_uniform_and_as_cold_as_asked():
    still = made({"generator": "cold_collapse", "particles": 5000})
    assert largest_gap(np.linalg.norm(still.position, axis=1), lambda r: np.minimum(r / 2.4, 1) ** 3) < 1.95
    assert not still.velocity.any()
    warm = made({"generator": "cold_collapse", "particles": 300, "virial_ratio": 0.2}, G=3.0)
    kinetic = 0.5 * (warm.mass[:, None] * warm.velocity**2).sum()
    assert kinetic / (kinetic - energy(warm, 3.0)) == pytest.approx(0.2, rel=1e-12)


# --- Mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("initial", "says"),
    [
        ({"generator": "kepler", "eccentricity": 1.0}, "initial.eccentricity: must be less than 1, got 1.0"),
        ({"generator": "kepler", "masses": [1, -1]}, "initial.masses.1: must be at least 0, got -1"),
        ({"generator": "kepler", "particles": 3}, "this generator makes 2 bodies, not 3; leave 'particles' out"),
        ({"bodies": [{"m": 1}, {"m": 1, "a": 1, "e": 1.2}]}, "bodies.1.a: 1 does not fit e = 1.2: an ellipse"),
        ({"bodies": [{"m": 1}, {"m": 1, "P": 1, "e": 1}]}, "bodies.1.P: only an ellipse"),
        ({"bodies": [{"m": 1}, {"m": 1, "q": 1, "a": 2}]}, "bodies.1.q: cannot be combined"),
        ({"bodies": [{"m": 1}, {"m": 1, "a": 1, "l": 2, "T": 3}]}, "bodies.1.T: cannot be combined"),
        ({"bodies": [{"m": 1}, {"m": 1, "q": 1, "e": 2, "f": 121}]}, "bodies.1.f: must be near"),
        ({"bodies": [{"m": 1}, {"m": -1, "a": 1}]}, "bodies.1.m: must be at least 0, got -1"),
        ({"bodies": [{"m": 1}, {"m": 1}]}, "bodies.1.a: is missing; a body on an orbit"),
        ({"bodies": [{"m": 1, "a": 1}]}, "bodies.0.a: the first body is the centre"),
        ({"bodies": [{"m": 0}]}, "every mass is zero"),
        (
            {"bodies": [{"m": 1, "name": "sun"}, {"m": 1, "a": 1, "around": "son"}]},
            "bodies.1.around: there is no body 'son' before this one",
        ),
        ({"bodies": [{"m": 1, "name": "x"}, {"m": 1, "a": 1, "name": "x"}]}, "two bodies with one name, 'x'"),
        ({"bodies": [{"m": 1}, {"m": 1, "a": 1, "f": 1, "M": 2}]}, "M: cannot be combined with 'f'; remove"),
        ({"bodies": [{"m": 1}, {"mass": 1, "a": 1}]}, "bodies.1.mass: unknown key"),
        ({}, "initial.bodies: is missing"),
        ({"generator": "ring", "particles": 5, "inner": 3}, "outer: must be greater than inner"),
        (
            {"generator": "planetesimals", "particles": 5, "bodies": [{"m": 1, "a": 1}, {"m": 1}]},
            "initial.bodies.1.a: is missing; a body on an orbit",
        ),
    ],
)
def test_invalid_parameters_are_refused(initial, says):
    with pytest.raises(InputError, match=says):
        made({"generator": "planets"} | initial)
