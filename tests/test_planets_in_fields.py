"""Planets in external fields, moved by maps: the order of the scheme, and a field at the time and velocity of the kick."""

import math

import numpy as np
import pytest
from conftest import moved

import nbody
from nbody.fields import J2, Migration

PLANETS = nbody.planets(bodies=[{"m": 1.0}, {"m": 5e-4, "a": 2.0, "e": 0.03, "inc": 3}, {"m": 1e-3, "a": 1.0, "e": 0.05}])
"""The outer one first, so that the map sorts them."""


@nbody.force
def tide(x, y, z, t, rate=0.0):
    f = 1 + 0.3 * math.sin(rate * t)
    return -0.02 * x * f, -0.02 * y * f, -0.05 * z * f, (0.01 * (x * x + y * y) + 0.025 * z * z) * f


@nbody.force
def turning(x, y, z, vx, vy, vz, t):
    """A drag, a force across the velocity, and one that changes with time."""
    return -0.02 * vx + 0.05 * vy + 0.02 * math.sin(1.3 * t), -0.02 * vy - 0.05 * vx, -0.01 * z


FIELDS = {
    "position": [nbody.force(tide, rate=1.3)],
    "velocity": [turning],
    "oblate star": [J2(j2=1e-2, radius=0.2)],
    "1PN": [{"field": "post_newtonian", "c": 40.0}, nbody.force(tide, rate=1.3)],
}


@pytest.mark.parametrize(
    ("scheme", "field"),
    [*(("wisdom_holman", f) for f in FIELDS if f != "1PN"), *(("hybrid", f) for f in FIELDS)],
)
def test_a_map_keeps_its_order_in_a_field_that_changes_with_time_or_velocity(scheme, field):
    """ias15 is exact to rounding here; positions change by 0.1 and more."""
    force = FIELDS[field]
    exact, *found = (
        moved(PLANETS, force, 10.0, each, dt=dt).particles.position
        for each, dt in (("ias15", 0.1), (scheme, 0.1), (scheme, 0.05))
    )
    errors = [np.abs(position - exact).max() for position in found]
    assert errors[0] < 1e-3 and math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("scheme", ["wisdom_holman", "hybrid"])
def test_maps_damp_orbits_within_the_given_times(scheme):
    """a and e fall as exp(-t/τ), up to terms of 1/(n τ) within a period; the map's own error is (h/τ)²."""
    tau, bodies = 200.0, nbody.planets(bodies=[{"m": 1.0}, {"m": 1e-9, "a": 1.0, "e": 0.01}])
    for key, name, begin in (("tau_a", "a", 1.0), ("tau_e", "e", 0.01)):
        orbits = moved(bodies, [Migration(**{key: tau})], 2 * tau, scheme, dt=0.1).orbits()
        assert getattr(orbits, name)[0] / begin == pytest.approx(math.exp(-2), rel=5e-3)


@pytest.mark.parametrize("scheme", ["wisdom_holman", "hybrid"])
def test_the_energy_in_a_static_potential_is_kept_to_the_order_of_the_map(scheme):
    static = [nbody.force(tide, rate=0.0)]
    errors = [abs(moved(PLANETS, static, 10.0, scheme, dt=dt).energies.error) for dt in (0.1, 0.05)]
    assert errors[0] < 2e-6 and math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize("scheme", ["wisdom_holman", "hybrid"])
def test_frames_and_calls_change_no_bit_of_a_map_in_a_field(scheme):
    whole, divided = (moved(PLANETS, FIELDS["position"], 0.0, scheme, dt=0.1) for _ in range(2))
    whole.step(50)
    for _ in range(5):
        divided.step(10)
        divided.at(divided.time - 0.03)
    assert np.array_equal(whole.particles.position, divided.particles.position)


def test_maps_that_take_turns_are_each_moved_by_its_own_force():
    """A map is compiled once, and calls the functions of its forces at an address of the run."""
    forces = [FIELDS[name] for name in ("position", "velocity", "position")]
    runs = [moved(PLANETS, force, 0.0, "wisdom_holman", dt=0.1) for force in forces]
    for _ in range(2):
        for run in runs:
            run.step(10)
    ends = [run.particles.position for run in runs]
    assert np.array_equal(ends[0], ends[2]) and np.abs(ends[0] - ends[1]).max() > 0.01
    for force, end in zip(forces[:2], ends, strict=False):
        np.testing.assert_allclose(end, moved(PLANETS, force, 2.0).particles.position, atol=1e-3)


def test_tangent_vectors_are_the_derivatives_of_a_map_in_fields():
    """Differences of order 4 over 1e-3 on both sides: 1e-12 each of what the field adds, and 1e-9 of the check's own."""
    forces = [turning, J2(j2=0.01, radius=0.3)]

    def run(by=0.0, j=0):
        z = np.stack([PLANETS.position, PLANETS.velocity])
        z.flat[j] += by
        return moved(nbody.Particles(PLANETS.mass, *z), forces, 0.0, "wisdom_holman", dt=0.1)

    def ended(by, j):
        made = run(by, j)
        made.integrate(3.0)
        return np.concatenate([made.particles.position.ravel(), made.particles.velocity.ravel()])

    matrix = run().transition_matrix(3.0)
    for j in (3, 13):
        near, far = (ended(k * 1e-3, j) - ended(-k * 1e-3, j) for k in (1, 2))
        np.testing.assert_allclose(matrix[:, j], (8 * near - far) / 12e-3, atol=1e-8 * np.abs(matrix[:, j]).max())
