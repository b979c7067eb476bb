"""Orbital elements from positions and velocities: the inverse of the generator, REBOUND's numbers, every conic."""

import itertools
import math

import numpy as np
import pytest

import nbody
from nbody.diagnostics.orbits import elements, orbits, orbits_over_time
from nbody.errors import InputError
from nbody.initial.orbit import on_orbit
from nbody.initial.planets import Body

rebound = pytest.importorskip("rebound")

ANGLES = ("inc", "Omega", "omega", "pomega", "f", "M", "theta", "l")


def apart(first, second):
    """The angle between two directions, in degrees."""
    return abs((first - second + 180) % 360 - 180)


@pytest.mark.parametrize("e", [0.2, 0.9, 1.5, 4.0])
@pytest.mark.parametrize("inc", [0.4, 2.9])
def test_elements_are_those_of_rebound(e, inc):
    """To 1e-13, and times the condition number 1/|1 - e| what follows from the energy. (Of nearly flat or circular orbits
    other tests are the judges: at i = 1e-6 REBOUND's arc cosine loses the ninth digit.)"""
    rng = np.random.default_rng(int(10 * e))
    for _ in range(20):
        sim = rebound.Simulation()
        sim.add(m=1.0)
        f = rng.uniform(-1, 1) * (math.pi if e < 1 else 0.9 * math.acos(-1 / e))
        Omega, omega = rng.uniform(0, 2 * math.pi, 2)
        sim.add(m=0.1, a=rng.uniform(0.5, 2) / (1 - e), e=e, inc=inc, Omega=Omega, omega=omega, f=f)
        particles = nbody.Particles(
            [each.m for each in sim.particles],
            [each.xyz for each in sim.particles],
            [each.vxyz for each in sim.particles],
        )
        found, theirs = orbits(particles, about=0), sim.particles[1].orbit(primary=sim.particles[0])
        bound = 1e-13 * max(1, 1 / abs(1 - e))
        assert found.e == pytest.approx(theirs.e, abs=1e-13)
        assert found.a == pytest.approx(theirs.a, rel=bound)
        for name in ANGLES:
            most = math.degrees(bound if name in ("M", "l") else 1e-13)
            assert apart(getattr(found, name), math.degrees(getattr(theirs, name))) < most, name
        assert found.n == pytest.approx(abs(math.degrees(theirs.n)), rel=bound)
        assert apart(found.n * found.T, math.degrees(abs(theirs.n) * theirs.T)) < math.degrees(bound)


@pytest.mark.parametrize("e", [1e-3, 0.5, 0.999, 2.0])
@pytest.mark.parametrize("inc", [1e-7, 1.0, math.pi - 1e-7])
def test_elements_are_exact_to_rounding_where_they_are_well_conditioned(e, inc):
    """Against 64 bits of mantissa (long double), from the same positions and velocities: the pericentre distance, the
    inclination and the longitude to some roundings, e and f as vector to some roundings of 1."""
    x, v = (np.array(each) for each in on_orbit(1.3, 0.7, e, 1.1, inc, 2.0, 4.0))
    found = elements(x[None], v[None], 1.3)
    exact_x, exact_v = x.astype(np.longdouble), v.astype(np.longdouble)
    h = np.cross(exact_x, exact_v)
    r, mu = np.sqrt((exact_x**2).sum()), np.longdouble(1.3)
    vector = np.cross(exact_v, h) / mu - exact_x / r
    size = np.sqrt((vector**2).sum())
    eps = np.finfo(float).eps
    assert abs(found.e[0] - size) < 8 * eps * max(e, 1)
    assert abs(found.q[0] - (h**2).sum() / mu / (1 + size)) < 8 * eps
    assert abs(np.radians(found.inc[0]) - np.arctan2(np.hypot(h[0], h[1]), h[2])) < 8 * eps * inc
    assert abs(e * np.cos(np.radians(found.f[0])) - (vector * exact_x).sum() / r) < 8 * eps * max(e, 1)


def test_the_elements_that_made_planets_come_back():
    bodies = [{"m": 1}, {"m": 1e-3, "a": 1, "e": 0.1, "inc": 3, "Omega": 50, "omega": 70, "M": 200}]
    bodies += [{"m": 2e-3, "a": 2.2, "e": 0.3, "inc": 20, "Omega": 150, "omega": 10, "M": 80}]
    found = orbits(nbody.planets(bodies=bodies))
    assert found.id.tolist() == [1, 2]
    for name in ("a", "e", "inc", "Omega", "omega", "M"):
        assert getattr(found, name) == pytest.approx([body[name] for body in bodies[1:]], rel=1e-13, abs=1e-13)


SIZES, PERICENTRES, PLACES = ("a", "P", "q"), ("omega", "pomega"), ("f", "M", "E", "l", "T")


@pytest.mark.parametrize("e", [0.0, 0.3, 0.95, 1.0, 1.4, 5.0])
@pytest.mark.parametrize("inc", [0.5, 2.7])
def test_any_sufficient_set_of_elements_makes_the_body(e, inc):
    mu, f = 1.7, -1.2
    x, v = on_orbit(mu, 0.8, e, f, inc, 2.0, 4.0)
    found = elements(x[None], v[None], mu)
    sizes, places = ("q" if e == 1 else SIZES[::2], "fMET") if e >= 1 else (SIZES, PLACES)  # l is an angle up to 360
    for size, pericentre, place in itertools.product(sizes, PERICENTRES, places):
        keys = ("e", "inc", "Omega", size, pericentre, place)
        again = Body(m=1, **{key: float(getattr(found, key)[0]) for key in keys}).relative(mu)
        np.testing.assert_allclose(again, (x, v), rtol=1e-13, atol=1e-13, err_msg=str(keys))


@pytest.mark.parametrize("e", [0.2, 0.9, 1.5, 4.0])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("inc", [20.0, 160.0])
def test_bodies_from_elements_are_those_of_rebound(e, place, inc):
    sim, angle = rebound.Simulation(), {"Omega": 200.0, "pomega": 130.0, "inc": inc}
    where = {place: 50.0 if place != "T" else -0.7}
    sim.add(m=1.0)
    size = {"P": 3.0} if e < 1 else {"a": -0.7}
    turned = {key: math.radians(value) for key, value in (angle | where).items()}
    sim.add(m=0.1, e=e, **size, **turned | ({"T": -0.7} if place == "T" else {}))
    made = nbody.planets(bodies=[{"m": 1}, {"m": 0.1, "e": e, **size, **angle, **where}])
    first, second = sim.particles
    x, v = (np.subtract(getattr(second, name), getattr(first, name)) for name in ("xyz", "vxyz"))
    for ours, theirs in ((made.position, x), (made.velocity, v)):
        assert np.linalg.norm(ours[1] - ours[0] - theirs) < 1e-14 * np.linalg.norm(theirs)


def test_a_run_and_its_recording_have_orbits(tmp_path):
    bodies = [{"m": 1, "radius": 0.01}, {"m": 1e-3, "a": 1, "e": 0.1}, {"m": 1e-3, "a": 2, "e": 0.3, "inc": 20}]
    bodies.append({"m": 1e-9, "a": 3, "e": 0.999, "M": 359.0})  # which falls onto the star
    keys = {"end": 4.0, "G": 2.0, "precision": "float64", "engine": "cpu", "record": {"dt": 1.0}, "collisions": "merge"}
    particles = nbody.planets(bodies=bodies, G=2.0)
    sim = nbody.Simulation(particles, integrator="ias15", output=tmp_path / "run.h5", **keys)
    sim.integrate(4.0)
    with nbody.Trajectory(tmp_path / "run.h5") as run:
        found = run.orbits()
        assert found.a.shape == found.P.shape == (5, 3) and found.id.tolist() == [1, 2, 3]
        for k, now in enumerate(run):
            np.testing.assert_array_equal(found.e[k, : now.count - 1], orbits(now, 2.0).e)
        np.testing.assert_array_equal(sim.orbits().inc, found.inc[-1, :2])
        assert np.isnan(found.a[-1, 2]) and not np.isnan(found.a[0, 2])
        assert run.orbits(about=0, bodies=[2, 1]).id.tolist() == [2, 1]
        with pytest.raises(InputError, match="no focus 'sun'"):
            run.orbits("sun")


@pytest.mark.parametrize("e", [0.0, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 3.0])
def test_the_time_since_the_pericentre_is_right_on_every_conic(e):
    """Against the integral of r\u00b2/h over the true anomaly, by Gauss and Legendre."""
    f, mu, q = 1.1, 2.0, 0.7
    nodes, weights = np.polynomial.legendre.leggauss(40)
    p = q * (1 + e)
    r = p / (1 + e * np.cos(f * (nodes + 1) / 2))
    expected = (weights * r * r).sum() * f / 2 / math.sqrt(mu * p)
    x, v = on_orbit(mu, q, e, f, 0.3)
    found = elements(x[None], v[None], mu)
    assert found.since == pytest.approx(expected, rel=1e-14)
    assert found.q == pytest.approx(q, rel=1e-14)
    assert found.e == pytest.approx(e, abs=1e-15)
    assert np.isinf(found.P) == (e >= 1)


def test_a_flat_and_a_backward_orbit_have_their_longitudes():
    bodies = [
        {"m": 1},
        {"m": 0, "a": 1, "e": 0.2, "omega": 30, "f": 60},
        {"m": 0, "a": 3, "e": 0.2, "inc": 180, "f": 60},
    ]
    found = orbits(nbody.planets(bodies=bodies), about=0)
    assert apart(found.pomega, [30, 0]).max() < 1e-11
    assert apart(found.theta, [90, -60]).max() < 1e-11


def test_the_centre_of_mass_of_all_is_a_focus():
    two = nbody.planets(bodies=[{"m": 3}, {"m": 1, "a": 4, "e": 0.5}])
    found = orbits(two, about="centre", bodies=[0, 1])
    size = np.sqrt((two.position**2).sum(1) / (two.position[1] - two.position[0]).dot(two.position[1] - two.position[0]))
    assert size == pytest.approx([0.25, 0.75])
    assert (found.q > 0).all() and found.id.tolist() == [0, 1]


def test_a_period_is_that_of_astropy_units():
    units = pytest.importorskip("astropy.units")
    constants = pytest.importorskip("astropy.constants")
    mu = constants.GM_sun.to_value(units.au**3 / units.yr**2)
    x, v = on_orbit(mu, 5.2 * 0.95, 0.05, 1.0)
    expected = 2 * math.pi * np.sqrt((5.2 * units.au) ** 3 / constants.GM_sun).to_value(units.yr)
    assert pytest.approx(expected, rel=1e-13) == elements(x[None], v[None], mu).P


@pytest.mark.parametrize(
    "about,bodies,message",
    [
        ("sun", None, "there is no focus 'sun'"),
        (7, None, "there is no body with the id 7"),
        (0, [0], "body 0 is the focus"),
        (1, [2], "body 2 has no mass about it"),
    ],
)
def test_an_invalid_focus_or_body_is_refused(about, bodies, message):
    massless = nbody.planets(bodies=[{"m": 1}, {"m": 0, "a": 1}, {"m": 0, "a": 2}])
    with pytest.raises(InputError, match=message):
        orbits(massless, about=about, bodies=bodies)


def test_elements_are_unknown_while_a_body_or_its_focus_is_gone():
    star = nbody.planets(bodies=[{"m": 1.0}, {"m": 0, "a": 1.0}, {"m": 1e-3, "a": 2.0}, {"m": 0, "a": 3.0}])
    without_star, without_first = star.rows(np.array([1, 2, 3])), star.rows(np.array([0, 2, 3]))
    found = orbits_over_time([star, without_first, without_star], 1.0)
    assert np.isnan(found.a).tolist() == [[False] * 3, [True, False, False], [True, True, False]]
    found = orbits_over_time([star, without_star, star], 1.0, about=int(star.id[0]))
    np.testing.assert_array_equal(found.a[0], found.a[2])
    assert np.isnan(found.a[1]).all()


def test_an_angle_is_below_360_degrees_even_after_rounding():
    """The argument of this pericentre is -1e-14 degrees, whose remainder modulo 360 rounds to 360."""
    found = orbits(nbody.planets(bodies=[{"m": 1}, {"m": 1e-3, "a": 1.7, "e": 0.1, "f": 100}]))
    assert 0 <= found.omega[0] < 360 and apart(found.omega[0], 0) < 1e-12


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("direction", [(1, 0, 0), (0.6, 0, -0.8), (0, 0, 1)])
@pytest.mark.parametrize("speed", [0.3, -0.3, 0.0, 3.0, -3.0, 2.0])
@pytest.mark.parametrize("aside", [0.0, 1e-8])
def test_an_orbit_on_a_line_has_the_size_of_its_energy(direction, speed, aside):
    """1/a = 2/r - v²/μ; the time since the pericentre is that of Kepler's equation with e = 1, q = 0."""
    v = speed * np.array(direction) + (0, aside, 0)
    found = orbits(nbody.Particles([1, 1.0], [[0, 0, 0], direction], [[0, 0, 0], v]), about=0)
    alpha = 2 - speed**2 / 2
    assert found.e[0] == 1 and found.q[0] < 1e-15 and apart(found.f[0], 180) < 1e-6
    if alpha > 0:
        E = math.atan2(speed * math.sqrt(alpha / 2), 1 - alpha) % (2 * math.pi)
        n, M = math.sqrt(2 * alpha**3), E - math.sin(E)
        assert (found.a[0], found.P[0]) == pytest.approx((1 / alpha, 2 * math.pi / n), rel=1e-14)
        assert (found.E[0], found.M[0]) == pytest.approx((math.degrees(E), math.degrees(M)), rel=1e-13)
    elif alpha < 0:
        F = math.asinh(speed * math.sqrt(-alpha / 2))
        assert found.a[0] == pytest.approx(1 / alpha, rel=1e-14) and found.P[0] == math.inf
        assert found.since[0] == pytest.approx((math.sinh(F) - F) / math.sqrt(-2 * alpha**3), rel=1e-13)
    else:
        assert found.a[0] == math.inf and found.since[0] == pytest.approx(math.sqrt(2) ** 3 / 6 / math.sqrt(2), rel=1e-13)


def test_a_body_at_the_place_of_its_focus_has_no_orbit():
    with pytest.raises(InputError, match="body 1 is at the place of its focus"):
        orbits(nbody.Particles([1, 1.0], np.zeros((2, 3)), [[0, 0, 0], [1, 0, 0]]))


def test_elements_of_one_body_and_by_name():
    planets = nbody.planets(bodies=[{"m": 1}, {"m": 1e-3, "a": 1}, {"m": 1e-3, "a": 2, "e": 0.1}])
    found = nbody.orbits(planets)
    assert found[1].e == found["e"][1] == found[[1]].e[0] and len(found[:1]) == 1 and f"{found[1].a:.3f}" == "2.000"
    assert [*repr(found).split()[:3], len(repr(found).splitlines())] == ["id", "a", "e", 3]
    named = nbody.orbits(
        nbody.planets(bodies=[{"m": 1, "name": "sun"}, {"m": 0, "a": 1, "e": 0.1, "omega": -1e-9, "name": "b"}])
    )
    assert repr(named[:1]).split()[7:] == ["b", "1", "0.1", "0", "0", "0", "0"] and round(named.omega[0]) == 360
    history = orbits_over_time([planets, planets], 1.0)
    assert history[1].T.shape == (2,) and history[:1].T.shape == (2, 1) and "1 body at 2 times" in repr(history[1])
    with pytest.raises(KeyError, match="did you mean 'a'"):
        found["A"]
    with pytest.raises(IndexError):
        found[2]
