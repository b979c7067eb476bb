"""Initial conditions have the distribution they claim, and the same bits for the same seed.

Tolerances are those of sampling: a quantity estimated from N bodies scatters with a standard deviation σ that the test
derives, and 5σ is allowed. The seeds are fixed, so a test that passes keeps passing.
"""

import hashlib
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import random_bodies
from samples import FREE, N, largest_gap, made

from nbody.errors import InputError
from nbody.initial import make_particles
from nbody.particles import Particles
from nbody.scenario import Scenario
from nbody.trajectory import Frame, RunHeader, TrajectoryWriter

SCALE = 3 * math.pi / 16  # Plummer's scale length in virial radii


# --- Every generator -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generator", FREE)
def test_the_seed_decides_every_bit(generator):
    for name in ("mass", "position", "velocity", "id"):
        first, again = (getattr(made(generator, 100, seed=5), name) for _ in range(2))
        assert first.tobytes() == again.tobytes()
    assert not np.array_equal(made(generator, 100, seed=5).position, made(generator, 100, seed=6).position)


@pytest.mark.parametrize(("generator", "digest"), [("lecture", "a6ab0ef315098a24"), ("plummer", "f9681bb9462e260e")])
def test_the_bits_are_the_same_on_every_machine(generator, digest):
    """Recorded once; only arithmetic that IEEE 754 fixes to the last bit goes into them."""
    bodies = made(generator, 1000, **({"rescale": False} if generator == "plummer" else {}))
    assert hashlib.sha256(bodies.position.tobytes() + bodies.velocity.tobytes()).hexdigest()[:16] == digest


@pytest.mark.parametrize("generator", FREE)
@pytest.mark.parametrize("particles", [1, 2, 3])
def test_a_few_bodies_are_bodies_too(generator, particles):
    bodies = made(generator, particles)
    assert bodies.count == particles and bodies.step == 0 and bodies.time == 0
    bodies.check()


# --- lecture ------------------------------------------------------------------------------------------------------------


def test_the_discs_bodies_spin_with_the_square_of_the_distance():
    disc = made("lecture", dimensions=2)
    x, y = disc.position.T
    speed = np.hypot(*disc.velocity.T)
    np.testing.assert_allclose(speed, 10 * (x**2 + y**2), rtol=1e-12)
    # The velocity is at right angles to the direction φ, and φ has the signs of x and y.
    sine, cosine = -disc.velocity[:, 0] / speed, disc.velocity[:, 1] / speed
    np.testing.assert_array_equal(np.sign(cosine), np.sign(x))
    np.testing.assert_array_equal(np.sign(sine), np.sign(y))
    assert (disc.mass == 1).all()


def test_the_discs_angles_and_distances_are_uniform_and_independent():
    disc = made("lecture", dimensions=2)
    x, y = disc.position.T
    speed = np.hypot(*disc.velocity.T)
    sine, cosine = -disc.velocity[:, 0] / speed, disc.velocity[:, 1] / speed
    angle = np.arctan2(sine, cosine)
    u1, u2 = x / cosine / 3.2767, y / sine / 3.2767
    assert largest_gap(angle, lambda a: (a + math.pi) / (2 * math.pi)) < 1.95
    for u in (u1, u2):
        assert largest_gap(u, lambda each: np.clip(each, 0, 1)) < 1.95
    correlations = np.corrcoef([angle, u1, u2])[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 5 / math.sqrt(N)


def test_a_disc_in_space_lies_in_the_plane_of_the_one_in_the_plane():
    flat, thick = made("lecture", 50, dimensions=2), made("lecture", 50, dimensions=3)
    np.testing.assert_array_equal(thick.position[:, :2], flat.position)
    assert not thick.position[:, 2].any() and not thick.velocity[:, 2].any()


def test_the_discs_own_parameters_scale_it():
    plain, scaled = made("lecture", 50), made("lecture", 50, radius=2 * 3.2767, spin=5)
    np.testing.assert_allclose(scaled.position, 2 * plain.position, rtol=1e-15)
    np.testing.assert_allclose(scaled.velocity, 2 * plain.velocity, rtol=1e-14)


# --- plummer ---------------------------------------------------------------------------------------------------------


@cache
def sphere_of_stars():
    """A Plummer sphere, which tests only read."""
    return made("plummer")


def test_the_spheres_directions_are_isotropic():
    sphere = sphere_of_stars()
    for vectors in (sphere.position, sphere.velocity):
        unit = vectors / np.linalg.norm(vectors, axis=1)[:, None]
        for component in unit.T:  # each is uniform in [−1, 1] on a sphere (Archimedes)
            assert largest_gap(component, lambda each: (each + 1) / 2) < 1.95
    radial = (sphere.position * sphere.velocity).sum(axis=1)
    radial /= np.linalg.norm(sphere.position, axis=1) * np.linalg.norm(sphere.velocity, axis=1)
    assert largest_gap(radial, lambda each: (each + 1) / 2) < 1.95


def test_the_spheres_speeds_follow_plummers_distribution_function():
    """q = v over the escape speed has the density q²(1−q²)^(7/2)·512/7π whatever the radius."""
    sphere = sphere_of_stars()
    r2 = (sphere.position**2).sum(axis=1) / SCALE**2
    q = np.linalg.norm(sphere.velocity, axis=1) * math.sqrt(SCALE) / math.sqrt(2) * (1 + r2) ** 0.25
    grid = np.linspace(0, 1, 20_001)
    density = grid**2 * (1 - grid**2) ** 3.5 * 512 / (7 * math.pi)
    integral = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))])
    assert integral[-1] == pytest.approx(1, abs=1e-6)
    assert largest_gap(q, lambda each: np.interp(each, grid, integral)) < 1.95


def test_the_sphere_is_centred_and_at_rest():
    sphere = sphere_of_stars()
    np.testing.assert_allclose(sphere.mass @ sphere.position, 0, atol=1e-15)
    np.testing.assert_allclose(sphere.mass @ sphere.velocity, 0, atol=1e-15)
    assert sphere.mass.sum() == pytest.approx(1, abs=1e-12)


# --- A user's own bodies ---------------------------------------------------------------------------------------------


def from_file(path: Path, dimensions: int = 3, **initial) -> Particles:
    """Read by a scenario that lies beside the file and names it without a folder."""
    values = {
        "initial": {"file": path.name, **initial},
        "gravity": {"dimensions": dimensions},
        "integrator": {"dt": 1, "steps": 1},
    }
    scenario = path.with_name("run.yaml")
    scenario.write_text(Scenario.from_dict(values).to_yaml())
    return make_particles(Scenario.load(scenario))


@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", ">f4", "<f2", "<i4", ">i2", "u1", "g"])
def test_arrays_of_every_real_kind_are_read(tmp_path, kind):
    mass, position, velocity = np.arange(1, 5), np.arange(12).reshape(4, 3), np.arange(12, 24).reshape(4, 3)
    arrays = {"mass": mass.astype(kind), "position": position.astype(kind), "velocity": velocity.astype(kind)}
    np.savez(tmp_path / "bodies.npz", **arrays)
    bodies = from_file(tmp_path / "bodies.npz")
    np.testing.assert_array_equal(bodies.mass, mass)
    np.testing.assert_array_equal(bodies.position, position)
    np.testing.assert_array_equal(bodies.velocity, velocity)
    assert bodies.position.dtype == np.float64 and bodies.id.tolist() == [0, 1, 2, 3]


def test_compressed_and_column_ordered_arrays_and_ids_are_read(tmp_path):
    position = np.asfortranarray(np.random.default_rng(1).random((10, 3)))
    path = tmp_path / "bodies.npz"
    np.savez_compressed(path, mass=np.ones(10), position=position, velocity=-position, id=np.arange(30, 20, -1))
    bodies = from_file(path)
    np.testing.assert_array_equal(bodies.position, position)
    assert bodies.id[0] == 30


def test_a_table_is_read_whatever_the_order_of_its_columns(tmp_path):
    path = tmp_path / "bodies.csv"
    path.write_bytes(b'\xef\xbb\xbfvx, X,y,z,vy,vz,Mass,id\r\n1,2,3,4,5,6,7,42\r\n\r\n 1e1,-2,.3,4.,5,6,"7",41\r\n')
    bodies = from_file(path)
    np.testing.assert_array_equal(bodies.position, [[2, 3, 4], [-2, 0.3, 4]])
    np.testing.assert_array_equal(bodies.velocity, [[1, 5, 6], [10, 5, 6]])
    assert bodies.mass.tolist() == [7, 7] and bodies.id.tolist() == [42, 41]


def test_bodies_in_a_plane_go_into_space_and_back(tmp_path):
    path = tmp_path / "bodies.csv"
    path.write_text("m,x,y,vx,vy\n1,2,3,4,5\n")
    assert from_file(path, 2).position.tolist() == [[2, 3]]
    assert from_file(path, 3).position.tolist() == [[2, 3, 0]]
    path.write_text("m,x,y,z,vx,vy,vz\n1,2,3,0,4,5,0\n")
    assert from_file(path, 2).velocity.tolist() == [[4, 5]]


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_frame_of_an_earlier_run_begins_a_new_one(tmp_path, dimensions):
    bodies, path = random_bodies(20, dimensions), tmp_path / "earlier.h5"
    bodies.id += 100
    with TrajectoryWriter(path, bodies, RunHeader(frames=3)) as writer:
        for k in range(3):
            writer.append(Frame(k, 0.5 * k, (bodies.position + k).astype("f4"), bodies.velocity.astype("f4")))
    for frame in (0, 1, 2):
        begun = from_file(path, dimensions, frame=frame)
        np.testing.assert_array_equal(begun.position, (bodies.position + frame).astype("f4"))
        np.testing.assert_array_equal(begun.velocity, bodies.velocity.astype("f4"))
        assert (begun.step, begun.time, begun.id[0]) == (0, 0.0, 100)
    assert from_file(path, dimensions).position[0, 0] == begun.position[0, 0]
    with pytest.raises(InputError, match=r"run.yaml:2: initial.file: .*earlier.h5: has no frame 3; it holds 3"):
        from_file(path, dimensions, frame=3)
