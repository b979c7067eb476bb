"""The referee is right: against a sum written with loops in long double, and against known answers."""

import itertools

import numpy as np
import pytest
from conftest import random_bodies

from nbody.errors import InputError
from nbody.forces.api import accelerations
from nbody.law import Gravity

LAWS = [("plummer", 0.1), ("cutoff", 0.5), ("none", 0.0)]


def long_double_sum(position, mass, gravity):
    """Every pair in a double loop, in long double (64 mantissa bits on x86): the law as the textbook writes it."""
    x, m = position.astype(np.longdouble), mass.astype(np.longdouble)
    a, phi = np.zeros_like(x), np.zeros_like(m)
    for i, j in itertools.permutations(range(len(m)), 2):
        d = x[j] - x[i]
        r = np.sqrt((d * d).sum())
        if gravity.softening == "plummer":
            soft = np.sqrt(r * r + np.longdouble(gravity.length) ** 2)
            a[i] += gravity.G * m[j] * d / soft**3
            phi[i] -= gravity.G * m[j] / soft
        else:
            r_min = gravity.length if gravity.softening == "cutoff" else 0.0
            if r > r_min:
                a[i] += gravity.G * m[j] * d / r**3
            phi[i] -= gravity.G * m[j] / max(r, r_min)
    return a, phi


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("softening,length", LAWS)
def test_the_referee_agrees_with_long_double_to_float64_rounding(softening, length, dimensions):
    bodies = random_bodies(65, dimensions)
    gravity = Gravity(G=2.5, dimensions=dimensions, softening=softening, length=length)
    expected, expected_phi = long_double_sum(bodies.position, bodies.mass, gravity)
    a, phi = accelerations(
        bodies.position, bodies.mass, G=2.5, softening=softening, length=length, engine="reference", potential=True
    )
    # 64 terms, each with some 5 roundings of 1.1e-16, summed pairwise; the scale is the sum of the terms' sizes.
    assert np.abs(a - expected).max() < 64 * 1.1e-16 * np.abs(expected).max()
    assert np.abs(phi - expected_phi).max() < 64 * 1.1e-16 * np.abs(expected_phi).max()


def test_two_bodies_at_distance_two_have_a_quarter_of_the_force():
    a = accelerations([[0.0, 0, 0], [2.0, 0, 0]], [1.0, 3.0], engine="reference")
    assert a.tolist() == [[0.75, 0, 0], [-0.25, 0, 0]]


def test_a_pair_at_the_cutoff_distance_exerts_no_force_and_one_beyond_does():
    for distance, expected in ((0.5, 0.0), (0.5000001, 1 / 0.5000001**2)):
        a = accelerations([[0.0, 0], [distance, 0]], [1, 1], softening="cutoff", length=0.5, engine="reference")
        assert a[0, 0] == pytest.approx(expected, rel=1e-12)


def test_blocks_do_not_show(monkeypatch):
    """N = 300 in blocks of 7 rows, the last one ragged, gives the bits of one block."""
    bodies = random_bodies(300)
    whole = accelerations(bodies.position, bodies.mass, engine="reference", softening="plummer", length=0.01)
    monkeypatch.setattr("nbody.forces.reference.BLOCK_PAIRS", 7 * 300)
    parts = accelerations(bodies.position, bodies.mass, engine="reference", softening="plummer", length=0.01)
    assert np.array_equal(whole, parts)


def test_one_body_alone_has_no_acceleration():
    for softening, length in LAWS:
        a, phi = accelerations([[1.0, 2, 3]], [5.0], softening=softening, length=length, engine="reference", potential=True)
        assert a.tolist() == [[0, 0, 0]]
        assert phi.tolist() == [0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"engine": None}, "unknown engine 'None'"),
        ({"precision": "half"}, "accelerations: unknown precision 'half'"),
        ({"position": [1.0, 2.0]}, r"position must be \(N, 2\) or \(N, 3\), mass \(N,\); got \(2,\), \(2,\)"),
        ({"position": [[1j, 0], [0, 1]]}, "numbers, are needed .not complex128"),
        ({"mass": ["1", "2"]}, "numbers, are needed .not <U1"),
        ({"mass": None}, "mass: is missing"),
        ({"mass": 1.0}, r"got \(2, 2\), \(\)"),
    ],
)
def test_invalid_arrays_are_refused_in_the_librarys_words(given, says):
    with pytest.raises(InputError, match=says):
        accelerations(**{"position": [[0.0, 0], [1.0, 0]], "mass": [1.0, 2.0]} | given)


def gadgets(r: float, h: float) -> tuple[float, float]:
    """Force/r and minus the potential of a unit mass, as GADGET's published code has them (Springel 2005, forcetree.c)."""
    u = r / h
    if u >= 1:
        return 1 / r**3, 1 / r
    if u < 0.5:
        force = 10.666666666667 + u * u * (32.0 * u - 38.4)
        return force / h**3, -(-2.8 + u * u * (5.333333333333 + u * u * (6.4 * u - 9.6))) / h
    force = 21.333333333333 - 48.0 * u + 38.4 * u * u - 10.666666666667 * u * u * u - 0.066666666667 / (u * u * u)
    inner = 10.666666666667 + u * (-16.0 + u * (9.6 - 2.133333333333 * u))
    return force / h**3, -(-3.2 + 0.066666666667 / u + u * u * inner) / h


@pytest.mark.parametrize("r", [1e-6, 0.1, 0.699, 0.7, 1.0, 1.399, 1.4, 2.0])
def test_the_spline_is_gadgets(r):
    """The constants of its code have 13 digits."""
    position, mass = [[0.0, 0, 0], [r, 0, 0]], [0.0, 1.0]
    a, phi = accelerations(position, mass, softening="spline", length=0.5, engine="reference", potential=True)
    force, u = gadgets(r, 1.4)
    assert a[0].tolist() == [pytest.approx(r * force, rel=1e-10), 0, 0]
    assert -phi[0] == pytest.approx(u, rel=1e-11)
