"""Observables of a run on a GPU: in Numba's simulator and on a card."""

import numpy as np
import pytest
from conftest import random_bodies

import nbody
from nbody.diagnostics import escapers, local_density
from nbody.diagnostics.observables import OBSERVABLES as EVERY
from nbody.diagnostics.observables import OF_TANGENTS, columns_of, measured
from nbody.particles import Particles

OBSERVABLES = [name for name in EVERY if name not in OF_TANGENTS]
ROUNDING = {np.float32: 4e-6, np.float64: 1e-13}
"""ρ ~ d⁻³ of a distance whose coordinates have some three roundings."""


def density_on_device(bodies: Particles, real: type) -> np.ndarray:
    from nbody.compute import cuda
    from nbody.diagnostics.gpu_density import DeviceDensity

    position, body = np.zeros((bodies.count, 3), real), np.zeros((bodies.count, 4), real)
    position[:, : bodies.dimensions], body[:, 3] = bodies.position, bodies.mass
    found = cuda.to_device(np.zeros(bodies.count))
    DeviceDensity(bodies, np.dtype(real)).launch(cuda.to_device(position), cuda.to_device(body), found, cuda.stream())
    cuda.synchronize()
    return found.copy_to_host()


def exact(bodies: Particles, real: type, scale: float = 1.0) -> Particles:
    """The bodies as the device sees them."""
    mass, position = bodies.mass.astype(real), (bodies.position * scale).astype(real)
    return Particles(mass, position, bodies.velocity)


def check_density(bodies: Particles, real: type) -> None:
    assert np.abs(density_on_device(bodies, real) / local_density(bodies) - 1).max() < ROUNDING[real]


def check_run(precision: str, count: int, steps: int, **keys) -> None:
    """The recorded observables are those that the host computes from the frames."""
    names, seen = list(OBSERVABLES), []
    bodies = random_bodies(count)
    bodies.velocity *= 3.0  # some escape
    run = nbody.Simulation(
        bodies, dt=0.01, softening=0.05, engine="gpu-tiled", precision=precision, every=1, observables=names, **keys
    )
    assert set(run.state.frames.extras) == columns_of(names, count) == {"potential", "density"}
    frames = run.recording.measured
    frames.observables, measure = (
        lambda frame: seen.append((measure(frame), frame.position.copy())) or seen[-1][0],
        frames.observables,
    )
    run.run(steps=steps)
    assert len(seen) == steps + 1
    real = np.float64 if precision == "float64" else np.float32
    for found, position in seen[:: max(1, steps // 3)]:
        now = Particles(bodies.mass, position, bodies.velocity)
        expected = measured(["density_centre", "core_radius", "lagrangian_radii"], now)
        for name, value in expected.items():
            assert found[name] == pytest.approx(value, rel=10 * ROUNDING[real], abs=10 * ROUNDING[real])
    final = run.particles
    _, phi = nbody.accelerations(
        final.position, final.mass, softening="plummer", length=0.05, engine="reference", potential=True
    )
    assert 0 < seen[-1][0]["escapers"] == escapers(final, potential=phi) < count


@pytest.mark.simulated
@pytest.mark.parametrize("count,dimensions,real", [(7, 3, np.float64), (300, 2, np.float32)])
def test_the_simulator_finds_the_neighbours(count, dimensions, real):
    check_density(exact(random_bodies(count, dimensions), real), real)


@pytest.mark.simulated
def test_a_simulated_run_records_what_its_frames_give():
    check_run("float64", 40, 1)


@pytest.mark.gpu
@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("count", [7, 128, 1000, 20480, 200_001])
def test_the_device_finds_the_neighbours(count, dimensions, real):
    check_density(exact(random_bodies(count, dimensions), real), real)


@pytest.mark.gpu
def test_the_neighbours_do_not_depend_on_the_unit_of_length_nor_on_the_place():
    """A cluster with bodies far out; in metres, whose squares overflow float32; a second one that is far away."""
    sphere = nbody.plummer(30000, seed=4)
    check_density(exact(sphere, np.float32), np.float32)
    check_density(exact(sphere, np.float32, 2.0**60), np.float32)
    both = np.vstack([sphere.position[:15000], sphere.position[15000:] + np.array([1000.0, 0, 0])])
    check_density(Particles(sphere.mass, both, sphere.velocity), np.float64)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_order_of_the_tiles_changes_no_bit(precision):
    """The keys' scale and centre are those of the start, and determine the order."""
    from nbody.compute import cuda
    from nbody.diagnostics.gpu_density import DeviceDensity

    real = np.dtype(precision).type
    bodies, found = exact(random_bodies(5000), real), []
    for start in (bodies, exact(random_bodies(5000, seed=3), real, 8.0)):
        position, body = bodies.position.astype(real), np.zeros((5000, 4), real)
        body[:, 3] = bodies.mass
        density = cuda.to_device(np.zeros(5000))
        DeviceDensity(start, np.dtype(real)).launch(cuda.to_device(position), cuda.to_device(body), density, cuda.stream())
        cuda.synchronize()
        found.append(density.copy_to_host())
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_run_on_the_device_records_what_its_frames_give(precision):
    """Its steps and columns are replayed as graphs."""
    check_run(precision, 3000, 40)


@pytest.mark.gpu
def test_a_run_with_observables_has_the_same_bits_twice_and_after_a_resume(tmp_path):
    from nbody.run.resume import resume
    from nbody.trajectory import first_difference

    keys = {"dt": 0.01, "softening": 0.05, "engine": "gpu-symmetric", "observables": ["all"], "every": 1}
    for name in ("one", "two"):
        nbody.Simulation(random_bodies(3000), tmp_path / f"{name}.h5", **keys).run(steps=64)
    nbody.Simulation(random_bodies(3000), tmp_path / "part.h5", **keys).run(steps=21)
    resume(tmp_path / "part.h5", steps=64, notify=lambda line: None).run()
    assert first_difference(tmp_path / "one.h5", tmp_path / "two.h5") is None
    assert first_difference(tmp_path / "one.h5", tmp_path / "part.h5") is None
