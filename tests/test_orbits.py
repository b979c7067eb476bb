"""Orbital elements from positions and velocities: the inverse of the generator, REBOUND's numbers, every conic."""

import math

import numpy as np
import pytest

import nbody
from nbody.diagnostics.orbits import elements, orbits
from nbody.errors import InputError
from nbody.initial.orbit import on_orbit

rebound = pytest.importorskip("rebound")

ANGLES = ("inc", "Omega", "omega", "pomega", "f", "M", "theta", "l")


def apart(first, second):
    """The angle between two directions, in degrees."""
    return abs((first - second + 180) % 360 - 180)


@pytest.mark.parametrize("e", [0.2, 0.9, 1.5, 4.0])
@pytest.mark.parametrize("inc", [0.4, 2.9])
def test_elements_are_those_of_rebound(e, inc):
    """Both lose some tens of roundings where anomalies and inclinations depend steeply on the velocity."""
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
        bound = 2e-13 * max(1, 1 / abs(1 - e))
        assert found.e == pytest.approx(theirs.e, abs=bound)
        assert found.a == pytest.approx(theirs.a, rel=bound)
        for name in ANGLES:
            assert apart(getattr(found, name), math.degrees(getattr(theirs, name))) < math.degrees(5 * bound), name
        assert found.n == pytest.approx(abs(math.degrees(theirs.n)), rel=2 * bound)
        assert apart(found.n * found.T, math.degrees(abs(theirs.n) * theirs.T)) < math.degrees(5 * bound)


def test_the_elements_that_made_planets_come_back():
    bodies = [{"m": 1}, {"m": 1e-3, "a": 1, "e": 0.1, "inc": 3, "Omega": 50, "omega": 70, "M": 200}]
    bodies += [{"m": 2e-3, "a": 2.2, "e": 0.3, "inc": 20, "Omega": 150, "omega": 10, "M": 80}]
    found = orbits(nbody.planets(bodies=bodies, dimensions=3))
    assert found.id.tolist() == [1, 2]
    for name in ("a", "e", "inc", "Omega", "omega", "M"):
        assert getattr(found, name) == pytest.approx([body[name] for body in bodies[1:]], rel=1e-13, abs=1e-13)


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
    found = orbits(nbody.planets(bodies=bodies, dimensions=3), about=0)
    assert apart(found.pomega, [30, 0]).max() < 1e-11
    assert apart(found.theta, [90, -60]).max() < 1e-11


def test_the_centre_of_mass_of_all_is_a_focus():
    two = nbody.planets(bodies=[{"m": 3}, {"m": 1, "a": 4, "e": 0.5}], dimensions=3)
    found = orbits(two, about="centre", bodies=[0, 1])
    size = np.sqrt(
        (two.position**2).sum(1) / (two.position[1] - two.position[0]).dot(two.position[1] - two.position[0])
    )
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
    massless = nbody.planets(bodies=[{"m": 1}, {"m": 0, "a": 1}, {"m": 0, "a": 2}], dimensions=3)
    with pytest.raises(InputError, match=message):
        orbits(massless, about=about, bodies=bodies)
