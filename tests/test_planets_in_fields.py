"""Planets in external fields, moved by maps: the order of the scheme, and a field at the time of the kick."""

import math

import numpy as np
import pytest

import nbody
from nbody.errors import InputError

PLANETS = nbody.planets(
    bodies=[{"m": 1.0}, {"m": 5e-4, "a": 2.0, "e": 0.03, "inc": 3}, {"m": 1e-3, "a": 1.0, "e": 0.05}]
)
"""The outer one first, so that the map sorts them."""


@nbody.force
def tide(x, y, z, t, rate=0.0):
    f = 1 + 0.3 * math.sin(rate * t)
    return -0.02 * x * f, -0.02 * y * f, -0.05 * z * f, (0.01 * (x * x + y * y) + 0.025 * z * z) * f


def moved(scheme, field, end=10.0, bodies=PLANETS, **integrator):
    simulation = nbody.Simulation(
        bodies, integrator={"scheme": scheme, **integrator}, engine="cpu", precision="float64", fields=[field]
    )
    simulation.integrate(end)
    return simulation


@pytest.mark.parametrize("scheme", ["wisdom_holman", "hybrid"])
def test_a_map_keeps_its_order_in_a_field_that_changes_with_time(scheme):
    """ias15 is exact to rounding here."""
    field = nbody.force(tide, rate=1.3)
    exact = moved("ias15", field).particles
    errors = [np.abs(moved(scheme, field, dt=dt).particles.position - exact.position).max() for dt in (0.1, 0.05)]
    assert errors[0] < 1e-4 and math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("scheme", ["wisdom_holman", "hybrid"])
def test_the_energy_in_a_static_potential_is_kept_to_the_order_of_the_map(scheme):
    errors = [abs(moved(scheme, nbody.force(tide, rate=0.0), dt=dt).energies.error) for dt in (0.1, 0.05)]
    assert errors[0] < 2e-6 and math.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize("scheme", ["wisdom_holman", "hybrid"])
def test_frames_and_calls_change_no_bit_of_a_map_in_a_field(scheme):
    field = nbody.force(tide, rate=1.3)
    whole, divided = (moved(scheme, field, end=0.0, dt=0.1) for _ in range(2))
    whole.step(50)
    for _ in range(5):
        divided.step(10)
        divided.at(divided.time - 0.03)
    assert np.array_equal(whole.particles.position, divided.particles.position)


def test_a_map_refuses_a_force_that_depends_on_the_velocity():
    with pytest.raises(
        InputError, match="depends on the velocities, and scheme 'hybrid' kicks bodies at given positions"
    ):
        moved("hybrid", nbody.force(lambda vx, vy, vz: (-vx, -vy, -vz)), dt=0.1)
