"""The hybrid on a GPU: the same motion as on the CPU, in the simulator at small N and on a card."""

import numpy as np
import pytest
from compiled_forces import for_h200
from motions import checkpoint, moving, prepared, restore

import nbody
from nbody.forces import ENGINES
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import unsupported
from nbody.law import Gravity
from nbody.particles import Particles

DT = 0.1


def crowd(touching=0.0):
    """A star, and planets of which two are near each other, two come near each other in the next step, two stay near
    the star (on a CPU, tides act within the step on one that is there alone), and one has no mass and is near the first."""
    radius = np.array([1.0, 1.02, 1.5, 1.5, 2.0, 0.15, 0.2, 1.0])
    angle = np.array([0.0, 0.002, 1.0, 1.135, 3.0, 5.0, 2.0, 0.02])
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0 * angle], axis=1)
    v = np.stack([-np.sin(angle), np.cos(angle), 0.01 * radius], axis=1) / np.sqrt(radius)[:, None]
    v[3] *= 0.8
    m = np.array([1.0, 1e-5, 1e-5, 1e-4, 1e-4, 1e-3, 1e-5, 1e-5, 0.0])
    x, v = np.concatenate([np.zeros((1, 3)), x]), np.concatenate([np.zeros((1, 3)), v])
    return Particles(m, x - m @ x / m.sum(), v - m @ v / m.sum(), radius=np.full(9, touching) if touching else None)


def energy(run):
    return run.kinetic_energy + run.potential_energy


def bodies_of(motion):
    return motion.state.values("position", "velocity")


@pytest.mark.simulated
def test_the_simulator_makes_the_steps_of_the_cpu_and_goes_back():
    """Encounters, a pair that meets only at the end of a step, and a passage of the star. The forces on the card are summed
    in another order, and the bits are those of any division into calls, of a restored run too."""
    scheme, cpu = moving("hybrid", crowd(), DT)
    at_once, motion = moving("hybrid", crowd(), DT, engine="gpu-tiled")
    scheme.advance(cpu, 4)
    at_once.advance(motion, 4)
    for got, expected in zip(bodies_of(motion), bodies_of(cpu), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-13)
    cut, other = moving("hybrid", crowd(), DT, engine="gpu-tiled")
    cut.advance(other, 3)
    cut, other = restore(*prepared("hybrid", crowd(), DT, engine="gpu-tiled"), checkpoint(cut, other))
    cut.advance(other, 1)
    for got, expected in zip(bodies_of(other), bodies_of(motion), strict=True):
        np.testing.assert_array_equal(got, expected)
    moved, velocity = bodies_of(motion)
    back, motion = moving("hybrid", Particles(crowd().mass, moved, -velocity), DT, engine="gpu-tiled")
    back.advance(motion, 4)
    np.testing.assert_allclose(bodies_of(motion)[0], crowd().position, atol=1e-11)


@pytest.mark.simulated
def test_bodies_that_touch_on_a_gpu_merge_as_on_the_cpu():
    found = []
    for engine in ("cpu", "gpu-tiled"):
        run = nbody.Simulation(
            crowd(0.012), integrator="hybrid", dt=DT, collisions="merge", engine=engine, precision="float64",
            softening="none",
        )  # fmt: skip
        run.step(2)
        found.append(run.particles)
    assert found[0].count == found[1].count < 9
    np.testing.assert_allclose(found[1].position, found[0].position, atol=1e-12)


def near_its_star(engine, speed, **values):
    """A planet that falls towards its star from 0.5, alone, and two far ones."""
    x = [[0, 0, 0], [0.5, 0, 0], [0, 5, 0], [-9, 0, 0]]
    v = [[0, 0, 0], [0, speed, 0], [-0.4, 0, 0], [0, -0.3, 0]]
    keys = {"integrator": "hybrid", "dt": 0.25, "engine": engine, "precision": "float64", "softening": "none"}
    return nbody.Simulation(Particles([1, 1e-6, 1e-6, 1e-6], x, v, radius=[0.02] * 4), **keys, **values)


@pytest.mark.simulated
def test_a_body_that_falls_on_its_star_alone_merges_with_it():
    times = []
    for engine in ("cpu", "gpu-tiled"):
        run = near_its_star(engine, speed=1e-3, collisions="merge")
        while run.particles.count == 4 and run.time < 2:
            run.step()
        times.append(run.time)
    assert times[0] == times[1] < 0.75  # it falls in π/8


@pytest.mark.simulated
def test_a_body_that_passes_its_star_alone_moves_as_on_the_cpu():
    """There tides act on it in parts of a step, too: of 1e-6 r/d³, or 1e-10 in that time."""
    ends = []
    for engine in ("cpu", "gpu-tiled"):
        run = near_its_star(engine, speed=0.6)
        run.step(2)
        ends.append(run.particles.position)
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-9)


def test_the_hybrid_says_what_it_cannot_do_on_a_gpu():
    asked = unsupported(INTEGRATORS.load("hybrid"), ENGINES.load("gpu-symmetric"), Gravity(), "float64", particles=3)
    assert "fewer are faster on a CPU" in asked
    assert not unsupported(
        INTEGRATORS.load("hybrid"), ENGINES.load("gpu-symmetric"), Gravity(), "float64", particles=1000
    )


def test_the_kernels_of_the_hybrid_keep_their_numbers_in_registers():
    from numba.cuda import types

    from nbody.integrators.solvers.hybrid_kernels import kernels

    one, rows, kept = (types.Array(types.float64, axes, "C", aligned=True) for axes in (1, 2, 3))
    real, pairs = (types.Array(each, 2, "C", aligned=True) for each in (types.float32, types.int32))
    f, n = types.float64, types.int64
    signatures = {
        "keep": (rows, rows, rows, kept, rows, rows, f), "kick": (rows, rows, rows, f, rows),
        "drift": (rows, rows, f, f, f, rows), "search": (real, pairs),
        "look": (pairs, rows, rows, one, one, f, f, pairs), "gather": (rows, n, rows, rows, rows, one),
    }  # fmt: skip
    for name, signature in signatures.items():
        code, found = for_h200(getattr(kernels(), name), signature)
        assert found.local == 0 and found.registers <= 96, name
        if name == "search":  # the loop over pairs is in float32, and each body is two loads
            assert "ld.shared.v4.f32" in code and ".f64" not in code


@pytest.mark.gpu
def test_a_disc_of_planetesimals_keeps_its_energy_on_a_card():
    """A thousand bodies for an orbit: the error is that of the CPU."""
    errors = []
    for engine in ("cpu", "gpu-symmetric"):
        run = nbody.Simulation(
            nbody.planetesimals(1001, mass=1e-5, inner=0.8, outer=1.2, seed=3, dimensions=3), integrator="hybrid", dt=0.1,
            engine=engine, precision="float64", softening="none",
        )  # fmt: skip
        first = energy(run)
        run.step(60)
        errors.append(abs(energy(run) / first - 1))
    assert errors[1] < 2 * errors[0] + 1e-13
