"""Forces for arrays: at points that are no bodies, potentials, options of an engine, wrong arguments."""

import numpy as np
import pytest

import nbody
from nbody.errors import InputError

BODIES = nbody.plummer(300, seed=3)
POINTS = np.random.default_rng(1).normal(size=(50, 3))
GIVEN = {"softening": "plummer", "length": 0.1}


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_accelerations_at_points_are_sums_over_the_bodies(engine):
    d = BODIES.position - POINTS[:, None]
    u = (np.square(d).sum(axis=2) + 0.1**2) ** -0.5
    expected = (BODIES.mass[:, None] * u[..., None] ** 3 * d).sum(axis=1)
    a = nbody.accelerations(BODIES.position, BODIES.mass, at=POINTS, engine=engine, **GIVEN)
    assert a.shape == (50, 3)
    assert np.abs(a - expected).max() < 300 * 2**-52 * np.abs(expected).max()
    phi = nbody.potential(BODIES.position, BODIES.mass, at=POINTS, engine=engine, **GIVEN)
    assert phi == pytest.approx(-(BODIES.mass * u).sum(axis=1), rel=300 * 2**-52)


def test_a_body_acts_on_a_point_in_its_place_with_its_potential_and_no_force():
    a, phi = nbody.accelerations([[1.0, 2, 3]], [4.0], at=[[1.0, 2, 3]], engine="cpu", potential=True, **GIVEN)
    assert a.tolist() == [[0, 0, 0]]
    assert phi == pytest.approx([-4 / 0.1])


def test_the_potential_of_the_bodies_leaves_each_out_of_its_own():
    phi = nbody.potential([[0.0, 0, 0], [2.0, 0, 0]], [1.0, 3.0], engine="cpu")
    assert phi == pytest.approx([-1.5, -0.5])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"at": [[0.0, 1.0]]}, r"accelerations: at must be \(M, 3\), as position; got \(1, 2\)"),
        ({"at": np.zeros((0, 3))}, r"at must be \(M, 3\)"),
        ({"lenght": 0.1}, "unknown argument 'lenght' .*did you mean 'length'"),
        ({"at": [["x", "y", "z"]]}, "arrays of numbers"),
        ({"at": [[np.nan, 0, 0]]}, "point 0 of at .* is not finite"),
        ({"engine": "matrix:k02", "gpus": "all"}, "engine 'matrix:k02': it computes on one device; leave gpus out"),
        ({"gpus": "many"}, "gpus: must be a number of GPUs"),
    ],
)
def test_wrong_arguments_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        nbody.accelerations(BODIES.position, BODIES.mass, **{"engine": "cpu", **given})


def test_a_number_as_the_softening_is_plummers_length():
    found = nbody.accelerations(BODIES, softening=0.1, engine="cpu")
    assert np.array_equal(found, nbody.accelerations(BODIES, engine="cpu", **GIVEN))
    with pytest.raises(InputError, match=r"length: softening is 0\.1, which takes no length"):
        nbody.accelerations(BODIES, softening=0.1, length=0.2)


def test_the_potential_takes_no_argument_potential():
    with pytest.raises(InputError, match=r"potential is an argument of nbody\.accelerations"):
        nbody.potential(BODIES.position, BODIES.mass, potential=True)
