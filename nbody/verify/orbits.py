"""Cases of few bodies."""

import math
from collections.abc import Iterator

import numpy as np

from nbody.initial.solar import DE405_EPOCH, GAUSS2
from nbody.verify.check import Check, Group, simulated

FLAT = {"dimensions": 2}


def few_bodies(engine: str, end: float, steps: int) -> Group:
    """ias15 on the CPU. Other engines cannot run it: they compute the forces of ``steps`` steps of yoshida4."""
    if engine == "cpu":
        return {"scheme": "ias15", "end": end}
    return {"scheme": "yoshida4", "dt": end / steps, "steps": steps}


def kepler(engine: str) -> Iterator[Check]:
    """e = 0.5, one period. ias15 is limited by rounding, 2000 steps of yoshida4 by their order."""
    initial = {"generator": "kepler", "eccentricity": 0.5}
    run = simulated(engine, initial, FLAT, few_bodies(engine, 2 * math.pi, 2000))
    back, exact = np.abs(run.end.position - run.start.position).max(), engine == "cpu"
    source, tolerance = "Kepler's third law: P = 2π", 1e-13 if exact else 1e-7
    yield Check("distance from the start after one period", 0.0, float(back), tolerance, source)
    yield Check("energy -m1 m2/2a", -0.125, run.energies.latest, 1e-15 if exact else 1e-9, "the vis-viva equation")


def order(engine: str) -> Iterator[Check]:
    """The slope of the error of Kepler's orbit at half the step; higher orders in dt bend it by a few per cent."""
    for scheme, expected, steps in (("leapfrog", 2, 800), ("yoshida4", 4, 400)):
        errors = []
        for n in (steps, 2 * steps):
            initial = {"generator": "kepler", "eccentricity": 0.3}
            run = simulated(engine, initial, FLAT, {"scheme": scheme, "dt": 2 * math.pi / n, "steps": n})
            errors.append(np.abs(run.end.position - run.start.position).max())
        yield Check(f"order of {scheme}", expected, float(np.log2(errors[0] / errors[1])), 0.1, "Yoshida 1990")


def figure_eight(engine: str) -> Iterator[Check]:
    """The published digits close to 3e-8. The scheme's error is smaller, so that the energy has all published digits."""
    initial, source = {"generator": "figure_eight"}, "Chenciner & Montgomery 2000 (Simó)"
    run = simulated(engine, initial, FLAT, few_bodies(engine, 6.32591398, 4000))
    back = np.abs(run.end.position - run.start.position).max()
    yield Check("distance from the start after one period", 0.0, float(back), 1e-7, source)
    tolerance = 1e-10 if engine == "cpu" else 1e-9
    yield Check("energy", -1.2871419918, run.energies.latest, tolerance, source)


def pythagorean(engine: str) -> Iterator[Check]:
    """The published digits, which only ias15 has: no other scheme can follow the encounters."""
    initial, source = {"generator": "pythagorean"}, "Szebehely & Peters 1967"
    run = simulated(engine, initial, FLAT, {"scheme": "ias15", "end": 10})
    x = run.end.position[0]
    yield Check("x of the body of mass 3 at t = 10", 0.77848041, float(x[0]), 1e-7, source)
    yield Check("y", 0.14139229, float(x[1]), 1e-7, source)
    yield Check("energy", -769 / 60, run.energies.latest, 1e-11, "Burrau 1913")


def lagrange_triangle(engine: str) -> Iterator[Check]:
    """Half a turn of e = 0.3: the sides have grown from 1 − e to 1 + e and are equal."""
    initial = {"generator": "lagrange_triangle", "masses": [1, 0.01, 0.001], "eccentricity": 0.3}
    period = 2 * math.pi / math.sqrt(1.011)
    run = simulated(engine, initial, FLAT, few_bodies(engine, period / 2, 1000))
    x, tolerance = run.end.position, 1e-12 if engine == "cpu" else 1e-6
    for i, j in ((0, 1), (1, 2), (2, 0)):
        yield Check(f"side {i}-{j}", 1.3, float(np.linalg.norm(x[i] - x[j])), tolerance, "Lagrange 1772")


def outer_solar_system(engine: str) -> Iterator[Check]:
    """Each planet's energy with the Sun gives its period, which the other planets change by a few per thousand."""
    gravity, initial = {"G": 2.95912208286e-4}, {"generator": "outer_solar_system"}
    run = simulated(engine, initial, gravity, few_bodies(engine, 100_000, 5000))
    error, tolerance = run.energies.latest / run.energies.initial - 1, 1e-13 if engine == "cpu" else 1e-8
    yield Check("relative energy error after 274 years", 0.0, error, tolerance, "Hairer, Lubich & Wanner, I.2.4")
    x, v, m = run.start.position, run.start.velocity, run.start.mass
    for k, (name, years) in enumerate((("Jupiter", 11.86), ("Saturn", 29.46)), 1):
        mu = gravity["G"] * (m[0] + m[k])
        distance, speed = x[k] - x[0], v[k] - v[0]
        axis = 1 / (2 / np.linalg.norm(distance) - speed @ speed / mu)
        period = 2 * math.pi * math.sqrt(axis**3 / mu) / 365.25
        yield Check(f"period of {name} in years", years, float(period), 0.01 * years, "NASA planetary fact sheet")


def solar_system(engine: str) -> Iterator[Check]:
    """Newton's point masses leave out general relativity: 3GM/(c²a) of the mean motion, 5e-6 rad in 29 years."""
    initial = {"generator": "solar_system", "frame": "equatorial"}
    days = 2450994.5 - DE405_EPOCH
    run = simulated(engine, initial, {"G": GAUSS2}, few_bodies(engine, days, round(days / 0.5)))
    earth = run.end.position[run.start.species_names.index("Earth")]
    expected = (1.341417658351261e-01, -9.218299109822607e-01, -3.994344352497306e-01)
    for axis, there, here in zip("xyz", expected, earth, strict=True):
        yield Check(f"{axis} of the Earth on 1998 June 30, au", there, float(here), 5e-5, "JPL Horizons, barycentric, ICRF")


def mercury(engine: str) -> Iterator[Check]:
    """The Sun and Mercury for a century, by ias15 (few schemes know relativity). At the end, near the
    pericentre, the osculating ellipse is 1e-4" from its mean."""
    a, e, arcsec = 0.38709893, 0.20563069, math.radians(1 / 3600)
    initial = {"generator": "kepler", "eccentricity": e, "semi_major_axis": a, "masses": [1, 1 / 6023600]}
    period = 2 * math.pi * math.sqrt(a**3 / (GAUSS2 * (1 + 1 / 6023600)))
    turns = round(36525 / period)
    light = [{"field": "post_newtonian", "c": 173.14463268466926}]
    run = simulated(engine, initial, {"G": GAUSS2}, {"scheme": "ias15", "end": turns * period}, light)
    x, v = (rows[1] - rows[0] for rows in (run.end.position, run.end.velocity))
    axis = (v @ v / GAUSS2 - 1 / np.linalg.norm(x)) * x - (x @ v) / GAUSS2 * v
    angle = math.atan2(axis[1], axis[0]) / arcsec * 36525 / (turns * period)
    yield Check("seconds of arc per century", 42.98, float(angle), 0.005, "Einstein 1915; 6πGM/(c² a (1 - e²))")
    yield Check("relative energy error", 0.0, run.energies.error, 1e-12, "the 1PN Lagrangian has no time")
