"""Derivatives of a run: the transition matrix, and derivatives with respect to elements and masses."""

import numpy as np
import pytest

import nbody
from nbody.errors import InputError
from nbody.run.resume import resume
from nbody.scenario import Scenario

G = 4 * np.pi**2
BODIES = [{"m": 1}, {"m": 1e-3, "a": 1, "e": 0.1}, {"m": 5e-4, "a": 1.7, "e": 0.05, "inc": 3, "M": 100}]
SCHEMES = {
    "ias15": {"end": 9},
    "leapfrog": {"dt": 0.01, "end": 9},
    "yoshida6": {"dt": 0.02, "end": 9},
    "wisdom_holman": {"dt": 0.05, "end": 9},
}
scheme_names = pytest.mark.parametrize("scheme", SCHEMES)


def planets(scheme="ias15", bodies=BODIES, **more):
    return Scenario.from_dict(
        {
            "initial": {"generator": "planets", "bodies": bodies}, "gravity": {"G": G}, "precision": "float64",
            "integrator": {"scheme": scheme, **SCHEMES[scheme]}, "record": {"dt": 9}, **more,
        }
    )  # fmt: skip


def flat(bodies):
    """Positions and velocities in one array."""
    return np.concatenate([bodies.position.ravel(), bodies.velocity.ravel()])


def central(function, value, e):
    """The derivative by differences of order 4."""
    near, far = (function(value + k * e) - function(value - k * e) for k in (1, 2))
    return (8 * near - far) / (12 * e)


@scheme_names
def test_the_matrix_is_the_derivative_of_the_orbits_and_symplectic(scheme):
    """Differences of order 4 with e = 1e-4: e⁴ and 1e-16/e, times growth. M is symplectic for the momenta m v: MᵀJM = J to
    rounding, 1e-16 of the products of the largest elements in it, over 18 coordinates and some tens of moves."""
    simulation, until = nbody.Simulation(planets(scheme)), 1.0
    matrix, start = simulation.transition_matrix(until), flat(simulation.particles)
    mass = simulation.particles.mass
    for j in (0, 3, 7, 12, 17):

        def ended(by, j=j):
            z = start.copy()
            z[j] += by
            run = nbody.Simulation(planets(scheme), particles=nbody.Particles(mass, *z.reshape(2, 3, 3)))
            run.integrate(until)
            return flat(run.particles)

        expected = central(ended, 0.0, 1e-4)
        assert np.abs(matrix[:, j] - expected).max() < 1e-6 * np.abs(expected).max()
    momenta = np.concatenate([np.ones(9), np.repeat(mass, 3)])
    canonical = momenta[:, None] * matrix / momenta
    J = np.kron([[0, 1], [-1, 0]], np.eye(9))
    products = np.abs(canonical).T @ np.abs(J) @ np.abs(canonical)
    assert (np.abs(canonical.T @ J @ canonical - J) <= 5e-12 * products).all()
    assert np.linalg.det(matrix) == pytest.approx(1, abs=1e-9)
    assert simulation.time == 0  # the run stays as it is


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "key,step", [("bodies.1.m", 1e-6), ("bodies.2.a", 1e-4), ("bodies.1.e", 1e-4), ("bodies.2.inc", 0.01)]
)
def test_derivatives_with_respect_to_elements_and_masses(scheme, key, step):
    """The same, over a time in which derivatives grow to some hundreds; a mass acts all the time."""
    scenario = planets(scheme)
    by = nbody.tangent(scenario, key)
    found = nbody.Simulation(scenario).derivative(1.0, by)

    def ended(value):
        run = nbody.Simulation(scenario.override([f"initial.{key}={value!r}"]))
        run.integrate(1.0)
        return flat(run.particles)

    number, name = key.split(".")[1:]
    expected = central(ended, float(BODIES[int(number)][name]), step)
    assert np.abs(flat(found) - expected).max() < 1e-6 * np.abs(expected).max()


def test_a_value_at_the_edge_of_its_range_has_a_derivative():
    """Differences on one side: the pericentre is at a (1 - e) with the velocity v (1 + e), to first order."""
    by = nbody.tangent(planets(bodies=[{"m": 1}, {"m": 0, "a": 1}]), "bodies.1.e")
    np.testing.assert_allclose(by.position[1], [-1, 0, 0], atol=1e-9)
    np.testing.assert_allclose(by.velocity[1], [0, 2 * np.pi, 0], atol=1e-8)
    with pytest.raises(InputError, match=r"tangent: bodies.1.x: is no number of the scenario"):
        nbody.tangent(planets(), "bodies.1.x")
    named = planets(bodies=[{"m": 1}, {"m": 0, "a": 1, "name": "b"}])
    assert np.array_equal(nbody.tangent(named, "bodies.b.e").velocity, by.velocity)
    with pytest.raises(InputError, match=r"derivative: give nbody.tangent\(…\) of the 2 bodies"):
        nbody.Simulation(named).derivative(1.0, "bodies.b.e")
    with pytest.raises(InputError, match="bodies that are given as arrays have none"):
        nbody.tangent(nbody.Simulation(nbody.kepler(), integrator="ias15", precision="float64").scenario, "bodies.1.a")


def test_the_tangent_of_an_orbit_is_its_velocity_and_others_grow_linearly():
    """z' = (v, a) is carried along: M z'(0) = z'(t). On a circle δa falls behind by 3/2 n t δa (1e-10: ias15's rounding)."""
    two = planets(bodies=[{"m": 1}, {"m": 1e-3, "a": 1, "e": 0.4}])
    simulation = nbody.Simulation(two)

    def tangent_of(run):
        now = run.particles
        return np.concatenate([now.velocity.ravel(), nbody.accelerations(now.position, now.mass, G=G).ravel()])

    begun, matrix = tangent_of(simulation), simulation.transition_matrix(7.3)
    simulation.integrate(7.3)
    np.testing.assert_allclose(matrix @ begun, tangent_of(simulation), rtol=0, atol=1e-9 * np.abs(begun).max())
    circle = nbody.Simulation(planets(bodies=[{"m": 1}, {"m": 0, "a": 1}]))
    moved = circle.derivative(5.0, nbody.tangent(circle.scenario, "bodies.1.a"))
    circle.integrate(5.0)
    along = circle.particles.velocity[1] / (2 * np.pi)
    assert moved.position[1] @ along == pytest.approx(-1.5 * 2 * np.pi * 5.0, rel=1e-9)


def test_back_in_time_and_in_two_dimensions():
    """M(-T) of the end is the inverse of M(T)."""
    for scheme, dimensions in (("ias15", 2), ("leapfrog", 3)):
        flat_bodies = [BODIES[0], BODIES[1], {"m": 5e-4, "a": 1.7}]
        simulation = nbody.Simulation(planets(scheme, flat_bodies, gravity={"G": G, "dimensions": dimensions}))
        there = simulation.transition_matrix(0.5)
        simulation.integrate(0.5)
        back = simulation.transition_matrix(0.0)
        assert there.shape == (6 * dimensions, 6 * dimensions)
        np.testing.assert_allclose(back @ there, np.eye(6 * dimensions), atol=1e-9)


def test_the_derivatives_are_those_of_rebound():
    """Its variational ias15: both are exact to 1e-10 over ten orbits."""
    rebound = pytest.importorskip("rebound")
    scenario = planets()
    simulation, theirs = nbody.Simulation(scenario), rebound.Simulation()
    theirs.G, theirs.integrator = G, "ias15"
    for m, x, v in zip(*(getattr(simulation.particles, name) for name in ("mass", "position", "velocity")), strict=True):
        theirs.add(m=m, x=x[0], y=x[1], z=x[2], vx=v[0], vy=v[1], vz=v[2])
    varied = theirs.add_variation()
    varied.particles[1].x = 1.0
    theirs.integrate(10.0)
    expected = np.array([[p.x, p.y, p.z, p.vx, p.vy, p.vz] for p in varied.particles])
    found = simulation.transition_matrix(10.0)[:, 3].reshape(2, 3, 3).transpose(1, 0, 2).reshape(3, 6)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("scheme", ["ias15", "leapfrog"])
def test_megno_is_two_on_regular_orbits_and_changes_no_bit_of_the_bodies(scheme, tmp_path):
    """MEGNO - 2 falls as 1/t. The growth is that of the steps, whatever the frames and calls are."""
    apart, more = [BODIES[0], BODIES[1], {"m": 5e-4, "a": 3.0}], {"observables": ["megno", "lyapunov"]}
    end = {"scheme": scheme, **SCHEMES[scheme], "end": 300}
    whole = nbody.Simulation(planets(scheme, apart, integrator=end, record={"dt": 300, **more}))
    whole.run()
    alone = nbody.Simulation(planets(scheme, apart, integrator=end, record={"dt": 300}))
    alone.run()
    np.testing.assert_array_equal(whole.particles.position, alone.particles.position)
    observed = whole.stepper.frame().observables
    assert abs(observed["megno"] - 2) < 0.1 and 0 < observed["lyapunov"] < 2 * np.log(2 * np.pi * 300) / 300
    parts = nbody.Simulation(planets(scheme, apart, integrator=end, record={"dt": 75, **more}), tmp_path / "run.h5")
    parts.run(steps=77)
    again = resume(tmp_path / "run.h5")
    again.integrate(300)
    for name, values in whole.stepper.arrays().items():
        np.testing.assert_array_equal(again.stepper.arrays()[name], values, err_msg=name)
    with nbody.Trajectory(tmp_path / "run.h5") as run:
        assert run.observables["megno"].iloc[-1] == observed["megno"]


def test_each_system_of_an_ensemble_by_ias15_has_the_megno_that_it_has_alone():
    more = {"ensemble": {"vary": {"initial.bodies.2.a": [1.4, 1.9]}}, "record": {"dt": 9, "observables": ["megno"]}}
    together = nbody.Simulation(planets(**more))
    together.run()
    found = together.stepper.frame().observables["system_megno"]
    for a, value in zip([1.4, 1.9], found, strict=True):
        bodies = [*BODIES[:2], {**BODIES[2], "a": a}]
        alone = nbody.Simulation(planets(bodies=bodies, record=more["record"]))
        alone.run()
        assert alone.stepper.frame().observables["megno"] == value


@pytest.mark.parametrize(
    "changed,message",
    [
        ({"fields": {"field": "plummer", "mass": 1, "b": 9}}, "know no external fields"),
        ({"integrator": {"scheme": "hybrid", "dt": 0.05, "end": 1}}, "has no variational equations"),
        ({"integrator": {"scheme": "leapfrog", "dt": 0.03, "end": 3}}, "is not a whole number of steps"),
        ({"ensemble": {"vary": {"initial.bodies.2.a": [1.4, 1.9]}}}, "this is an ensemble"),
    ],
)
def test_what_has_no_derivatives_says_so(changed, message):
    with pytest.raises(InputError, match=message):
        nbody.Simulation(planets(**changed)).transition_matrix(1.0)


def test_there_are_no_derivatives_with_respect_to_masses_in_fields():
    simulation = nbody.Simulation(planets("wisdom_holman", fields={"field": "plummer", "mass": 1, "b": 9}))
    with pytest.raises(InputError, match="there are none with respect to masses in external fields"):
        simulation.derivative(1.0, nbody.tangent(simulation.scenario, "bodies.1.m"))
