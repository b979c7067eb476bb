"""Quantities of particles, compared with analytic results for known distributions; tolerances are sampling errors."""

import math

import numpy as np
import pytest

import nbody
from nbody.diagnostics import (
    centre_of_mass,
    core_radius,
    density_centre,
    half_mass_radius,
    lagrangian_radii,
    local_density,
    radial_profile,
    relative_energy_error,
    virial_ratio,
)
from nbody.diagnostics.observables import measured
from nbody.errors import InputError
from nbody.initial.plummer import SCALE_LENGTH, PlummerSphere
from nbody.law import Gravity
from nbody.particles import Particles

N = 8192
FRACTIONS = (0.1, 0.5, 0.9)


@pytest.fixture(scope="module")
def plummer() -> Particles:
    """A sphere that is cut so far out that the cut does not show."""
    return PlummerSphere(cut=1e5).generate(N, Gravity(), np.random.default_rng(3))


def plummer_density(r):
    return 3 / (4 * math.pi * SCALE_LENGTH**3) * (1 + (r / SCALE_LENGTH) ** 2) ** -2.5


def test_lagrangian_radii_of_a_plummer_sphere(plummer):
    """r = a (X^(-2/3) - 1)^(-1/2); the sample's X has a standard error of √(X (1-X)/N): four of these."""
    known = np.array([SCALE_LENGTH / math.sqrt(x ** (-2 / 3) - 1) for x in FRACTIONS])
    assert known == pytest.approx([0.308678, 0.768571, 2.183670], abs=1e-6)
    found = lagrangian_radii(plummer, FRACTIONS, np.zeros(3))
    error = [
        math.sqrt(x * (1 - x) / N) / (4 * math.pi * r**2 * plummer_density(r)) for x, r in zip(FRACTIONS, known, strict=True)
    ]
    assert np.all(np.abs(found - known) < 4 * np.array(error))
    assert half_mass_radius(plummer, np.zeros(3)) == found[1]


def test_lagrangian_radii_count_mass_and_not_bodies():
    bodies = Particles([3.0, 1, 1, 1], [[1.0, 0], [0, 2], [-3, 0], [0, -4]], np.zeros((4, 2)))
    assert lagrangian_radii(bodies, (0.0, 0.5, 0.51, 1.0), np.zeros(2)).tolist() == [1, 1, 2, 4]
    assert centre_of_mass(bodies).tolist() == [0, (2 - 4) / 6]


@pytest.mark.parametrize("dimensions", [2, 3])
def test_local_density_of_uniform_bodies_is_unbiased(dimensions):
    """The estimate from the k-th neighbour scatters by 1/√(k-2) or so per body; k neighbours share it. Bodies near the wall
    of the unit box, which see less, are left out."""
    x = np.random.default_rng(5).random((N, dimensions))
    bodies = Particles(np.full(N, 1 / N), x, np.zeros_like(x))
    inner = (np.abs(x - 0.5) < 0.35).all(axis=1)
    density = local_density(bodies)[inner]
    assert density.mean() == pytest.approx(1, abs=4 * density.std() * math.sqrt(6 / inner.sum()))


def test_density_centre_finds_the_cluster_and_core_radius_is_plummers(plummer):
    """A tenth of the bodies, spread far away to one side, move the centre of mass but not the density centre. The core
    radius ∫ r ρ²/∫ ρ² of Plummer's density is B(2, 3)/B(3/2, 7/2) a = 0.679 a. Errors: of N/3 bodies that carry the weight,
    each of which knows its density to 1/√k (four of these)."""
    cluster, far = np.array([5.0, -3, 1]), np.random.default_rng(1).normal(40, 10, (N // 10, 3))
    x = np.concatenate([plummer.position + cluster, far])
    bodies = Particles(np.full(len(x), 1 / N), x, np.zeros_like(x))
    error = 4 * 0.4 * math.sqrt((1 + 1 / 5) * 6 / (N / 3))
    assert np.linalg.norm(centre_of_mass(bodies) - cluster) > 1
    assert np.linalg.norm(density_centre(bodies) - cluster) < error
    assert core_radius(bodies) == pytest.approx(0.67906 * SCALE_LENGTH, abs=error)


def test_bodies_that_leave_do_not_move_the_radii_of_the_others(plummer):
    """A hundredth of the mass, 100 virial radii away, moves the centre of mass by one; the radius of 10 % about that is
    three times as large. About the density centre it changes by the missing 1 % of the mass, and by the error of the
    centre, 0.02."""
    away = np.arange(N) % 100 == 0
    bodies = Particles(plummer.mass, plummer.position + np.outer(away, [100.0, 0, 0]), plummer.velocity)
    before = lagrangian_radii(plummer, (0.1, 0.5), np.zeros(3))
    observed = measured(["lagrangian_radii", "half_mass_radius"], bodies)
    assert lagrangian_radii(bodies, (0.1, 0.5)) == pytest.approx(before, rel=0.05)
    assert observed["lagrangian_radii"][:2] == pytest.approx(before, rel=0.05)
    assert observed["half_mass_radius"] == observed["lagrangian_radii"][1]
    unknown = Particles(bodies.mass, np.where(away[:, None], np.nan, bodies.position), bodies.velocity)
    assert np.isnan(local_density(unknown)).all()


@pytest.mark.parametrize(
    "call,line",
    [
        (lambda p: local_density(p, 1), "neighbours: must be at least 2, got 1"),
        (lambda p: lagrangian_radii(p, (0.5, 1.5)), "fractions: must be numbers from 0 to 1"),
        (lambda p: radial_profile(p, bins=0), "bins: must be at least 1, got 0"),
    ],
)
def test_arguments_without_a_meaning_are_refused(plummer, call, line):
    with pytest.raises(InputError, match=line):
        call(plummer)


def test_few_bodies_have_no_density_but_a_centre():
    two = Particles([1.0, 3], [[0.0, 0, 0], [4, 0, 0]], np.zeros((2, 3)))
    assert np.isnan(local_density(two)).all() and math.isnan(core_radius(two))
    assert density_centre(two).tolist() == [3, 0, 0]
    assert len(radial_profile(two).radius) == 0
    heap = Particles(np.ones(9), np.repeat([[0.0, 0], [5, 0]], [8, 1], axis=0), np.zeros((9, 2)))
    assert density_centre(heap).tolist() == [0, 0]  # k bodies at one place are infinitely dense
    assert core_radius(heap) == 0
    massless = Particles(np.zeros(4), np.eye(4)[:, :3], np.zeros((4, 3)))
    assert centre_of_mass(massless).tolist() == density_centre(massless).tolist() == [0.25] * 3
    far = Particles(np.ones(9), np.diag([1e300] + [1.0] * 8)[:, :3], np.zeros((9, 3)))
    assert local_density(far)[0] == 0


def test_the_profile_of_a_plummer_sphere_is_within_its_errors(plummer):
    """ρ(r), and σ² = 1/(6 a √(1 + r²/a²)) in one dimension, isotropic and without rotation (Dejonghe 1987): χ² per bin
    near 1, with its own standard error √(2/B), four times."""
    found = radial_profile(plummer, 16, np.zeros(3))
    bulk = found.count > 30  # errors of fewer are not normal, and a bin's mean density is not that of its middle
    r = found.radius[bulk]
    mass = (1 + (SCALE_LENGTH / np.stack([found.inner, found.outer])[:, bulk]) ** 2) ** -1.5
    volume = 4 / 3 * math.pi * (found.outer**3 - found.inner**3)[bulk]
    sigma = np.sqrt(1 / (6 * SCALE_LENGTH * np.sqrt(1 + (r / SCALE_LENGTH) ** 2)))
    limit = 1 + 4 * math.sqrt(2 / bulk.sum())
    for value, error, known in (
        (found.density, found.density_error, (mass[1] - mass[0]) / volume),
        (found.dispersion, found.dispersion_error, sigma),
        (found.radial_dispersion, found.dispersion_error * math.sqrt(3), sigma),
        (found.tangential_dispersion, found.dispersion_error * math.sqrt(1.5), sigma),
        (found.rotation, found.rotation_error, 0.0),
    ):
        assert 0 < np.mean(((value[bulk] - known) / error[bulk]) ** 2) < limit
    assert not found.cylindrical and found.count.min() >= 2 and N - 16 < found.count.sum() <= N - 3


@pytest.mark.parametrize("tilt", [None, 0.0, 1.0])
def test_the_profile_of_a_rotating_disc(tilt):
    """A uniform disc of mass 1 and radius 2 that rotates like a rigid body, ω = 3, in a plane (None) or in space."""
    rng = np.random.default_rng(2)
    r, phi = 2 * np.sqrt(rng.random(4000)), rng.uniform(0, 2 * math.pi, 4000)
    x = np.stack([r * np.cos(phi), r * np.sin(phi)], axis=1)
    v = 3 * np.stack([-x[:, 1], x[:, 0]], axis=1)
    if tilt is not None:
        turn = np.array([[1, 0], [0, math.cos(tilt)], [0, math.sin(tilt)]]).T
        x, v = x @ turn, v @ turn
    found = radial_profile(Particles(np.full(4000, 1 / 4000), x, v), 12, cylindrical=True)
    bulk = found.count > 30
    assert np.mean(((found.density - 1 / (4 * math.pi)) / found.density_error)[bulk] ** 2) < 1 + 4 * math.sqrt(2 / 12)
    # the mean of a bin is between ω times its limits, and the spread at most half of their difference
    assert np.all(found.rotation > 3 * found.inner * 0.98) and np.all(found.rotation < 3 * found.outer * 1.02)
    assert np.all(found.dispersion < 3 * (found.outer - found.inner))


def test_ratios_without_a_denominator():
    assert virial_ratio(1.0, -2.0) == 0.5 and virial_ratio(1.0, 0.0) == math.inf
    assert relative_energy_error(-1.1, -1.0) == pytest.approx(-0.1) and relative_energy_error(0.5, 0.0) == 0.5


@pytest.mark.parametrize("along,rows,columns", [("x", 1, 2), ("y", 0, 2), ("z", 0, 1)])
def test_a_column_density_is_the_mass_of_each_column(along, rows, columns):
    p = nbody.plummer(500, seed=2)
    density, x, y = nbody.column_density(p, 8, (-1, 1, -2, 2), along)
    assert density.shape == (8, 8) and x.tolist() == np.linspace(-1, 1, 9).tolist() and y[-1] == 2
    for i, j in ((0, 0), (3, 4), (7, 2)):
        u, v = p.position[:, rows], p.position[:, columns]
        within = (x[i] <= u) & (u < x[i + 1]) & (y[j] <= v) & (v < y[j + 1])
        assert density[i, j] == pytest.approx(p.mass[within].sum() / (0.25 * 0.5))
    whole, x, y = nbody.column_density(p)
    assert whole.sum() * (x[1] - x[0]) * (y[1] - y[0]) == pytest.approx(p.mass.sum(), rel=0.05)  # but a few far bodies


@pytest.mark.parametrize(
    "values,message",
    [
        ({"along": "r"}, "along: must be x, y or z"),
        ({"cells": 0}, "cells: must be a whole number, 1 or more, got 0"),
        ({"extent": (1, -1, 0, 1)}, "extent: must be left < right and bottom < top"),
        ({"extent": 3}, "extent: must be left < right"),
    ],
)
def test_invalid_columns_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        nbody.column_density(nbody.plummer(10), **values)
