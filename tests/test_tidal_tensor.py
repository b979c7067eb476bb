"""The tidal tensor, softening lengths per body, and particles as the argument of sums over arrays."""

import numpy as np
import pytest

import nbody
from nbody.errors import InputError

RNG = np.random.default_rng(5)
X, M = RNG.standard_normal((40, 3)), RNG.uniform(0.5, 1.5, 40)
LAWS = (("none", 0.0), ("plummer", 0.3), ("spline", 0.4), ("cutoff", 0.2))


def by_differences(points, dimensions, **law):
    """∂a_k/∂x_l by central differences of 1e-5, whose error is about 1e-10 of the third derivative."""
    h = 1e-5
    steps = h * np.eye(dimensions)
    sums = [[nbody.accelerations(X[:, :dimensions], M, at=points + way * step, **law) for way in (1, -1)] for step in steps]
    return np.stack([(plus - minus) / (2 * h) for plus, minus in sums], axis=2)


@pytest.mark.parametrize("softening,length", LAWS)
@pytest.mark.parametrize("dimensions", [2, 3])
def test_the_tidal_tensor_is_the_gradient_of_the_acceleration(softening, length, dimensions):
    """Also within a spline, and within a cutoff, where no force acts."""
    points = np.concatenate([np.random.default_rng(7).standard_normal((5, dimensions)), X[:3, :dimensions] + 0.11])
    law = {"softening": softening, "length": length, "G": 2.0}
    tide = nbody.tidal_tensor(X[:, :dimensions], M, at=points, **law)
    expected = by_differences(points, dimensions, engine="reference", **law)
    assert tide.shape == (8, dimensions, dimensions)
    np.testing.assert_allclose(tide, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_array_equal(tide, np.swapaxes(tide, 1, 2))


def test_the_tide_of_a_point_mass_stretches_twice_as_much_as_it_squeezes():
    tide = nbody.tidal_tensor([[0.0, 0, 0]], [3.0], at=[[2.0, 0, 0]], G=2.0)
    np.testing.assert_allclose(tide[0], 2 * 3 / 8 * np.diag([2, -1, -1]), rtol=1e-15)


def test_a_body_feels_the_tide_of_all_others_and_none_of_its_own():
    others = np.delete(np.arange(40), 7)
    at_the_body = nbody.tidal_tensor(X, M)[7]
    np.testing.assert_allclose(nbody.tidal_tensor(X[others], M[others], at=X[7:8])[0], at_the_body, rtol=1e-12)
    np.testing.assert_allclose(nbody.tidal_tensor(X, M, at=X[7:8])[0], at_the_body, rtol=1e-12)
    assert np.abs(np.trace(nbody.tidal_tensor(X, M), axis1=1, axis2=2)).max() < 1e-10


@pytest.mark.parametrize("softening", ["plummer", "spline"])
@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_each_body_may_have_its_own_softening_length(softening, engine):
    """The force of a pair follows from the larger length of the two: pair by pair by :func:`accelerations` itself."""
    length = np.random.default_rng(8).uniform(0.1, 0.8, 40)
    a, phi = nbody.accelerations(X, M, softening=softening, length=length, engine=engine, potential=True)
    tide = nbody.tidal_tensor(X, M, softening=softening, length=length)
    for i in (0, 17):
        law = [{"softening": softening, "length": max(length[i], length[j])} for j in range(40)]
        pairs = [j for j in range(40) if j != i]
        single = [
            nbody.accelerations(X[[j]], M[[j]], at=X[[i]], engine="reference", potential=True, **law[j]) for j in pairs
        ]
        np.testing.assert_allclose(a[i], sum(each[0][0] for each in single), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(phi[i], sum(each[1][0] for each in single), rtol=1e-12)
        tides = [nbody.tidal_tensor(X[[j]], M[[j]], at=X[[i]], **law[j])[0] for j in pairs]
        np.testing.assert_allclose(tide[i], sum(tides), rtol=1e-12, atol=1e-12)
    at = nbody.accelerations(X, M, at=[[9.0, 0, 0]], softening=softening, length=length, engine=engine)
    assert np.linalg.norm(at - (far := nbody.accelerations(X, M, at=[[9.0, 0, 0]]))) < 2e-2 * np.linalg.norm(far)


def test_particles_are_taken_with_their_masses_and_species():
    names = {"species": np.repeat([0, 1], 20), "species_names": ("stars", "gas")}
    bodies = nbody.Particles(M, X, np.zeros_like(X), **names)
    np.testing.assert_array_equal(nbody.accelerations(bodies), nbody.accelerations(X, M))
    lengths = {"stars": 0.1, "gas": 0.4}
    of_species = nbody.potential(bodies, softening="plummer", length=lengths)
    of_bodies = nbody.potential(X, M, softening="plummer", length=np.repeat([0.1, 0.4], 20))
    np.testing.assert_array_equal(of_species, of_bodies)
    assert nbody.tidal_tensor(bodies, at=X[:2], softening="plummer", length=lengths).shape == (2, 3, 3)


@pytest.mark.parametrize(
    "arguments,values,message",
    [
        ((X,), {}, "mass: is missing; give one for each body"),
        ((nbody.Particles(M, X, X), M), {}, "mass: the particles have masses; leave it out"),
        (
            (X, M),
            {"softening": "plummer", "length": [0.1, 0.2]},
            "one number, or one for each body",
        ),
        (
            (X, M),
            {"softening": "plummer", "length": np.zeros(40)},
            "length: must be greater than 0 for softening 'plummer'",
        ),
        ((X, M), {"softening": "cutoff", "length": np.ones(40)}, "length: must be one number for softening 'cutoff'"),
        (
            (X, M),
            {"length": np.ones(40)},
            "length: softening is 'none', which takes no length; say softening='plummer'",
        ),
        ((X, M), {"softening": "plumer", "length": 0.1}, "unknown softening 'plumer'"),
        ((X, M), {"softening": "plummer", "length": np.full(40, np.nan)}, "must be a finite number"),
    ],
)
@pytest.mark.parametrize("function", [nbody.accelerations, nbody.tidal_tensor])
def test_invalid_bodies_and_lengths_are_refused(function, arguments, values, message):
    with pytest.raises(InputError, match=message) as refused:
        function(*arguments, **values)
    assert str(refused.value).startswith(function.__name__)
