"""Hard pairs on Kepler's orbit in block steps: what they cost, when they part, energies, and the same bits."""

from dataclasses import replace

import numpy as np
import pytest
from motions import checkpoint, energy, moving, prepared, restore

from nbody.initial.plummer import PlummerSphere
from nbody.integrators.solvers.blocks.bodies import PARKED
from nbody.integrators.solvers.blocks.pairs import Orbits, extremes
from nbody.law import Gravity
from nbody.particles import Particles

NEWTON = Gravity()
BOTH = ("hermite4_block", "hermite6_block")


def with_pair(particles, k, axis, eccentricity=0.3):
    """Body k becomes the first one of a pair at apocentre with a last body of the same mass; both keep its momentum."""
    r = axis * (1 + eccentricity)
    v = np.sqrt(2 * particles.mass[k] * (2 / r - 1 / axis))
    dx, dv = np.array([r / 2, 0, 0]), np.array([0, v / 2, 0])
    x, u, m = particles.position.copy(), particles.velocity.copy(), particles.mass
    x, u = np.vstack([x, x[k] - dx]), np.vstack([u, u[k] - dv])
    x[k], u[k] = x[k] + dx, u[k] + dv
    return Particles(np.append(m, m[k]), x, u)


def cluster(count=48, axis=None):
    bodies = PlummerSphere().generate(count, NEWTON, np.random.default_rng(5))
    return bodies if axis is None else with_pair(bodies, int(np.argmin((bodies.position**2).sum(axis=1))), axis)


def passing(start=0.25, speed=1.0, axis=1e-3):
    """A pair at rest in the origin, a body that comes by at 40 semi-major axes, and 14 far ones that hardly matter."""
    rng = np.random.default_rng(3)
    far = rng.standard_normal((14, 3))
    far *= 3 / np.linalg.norm(far, axis=1)[:, None]
    x = np.vstack([[[0.0, 0, 0], [-start, 40 * axis, 0]], far])
    v = np.vstack([[[0.0, 0, 0], [speed, 0, 0]], np.zeros((14, 3))])
    return with_pair(Particles(np.append([1e-2, 1e-2], np.full(14, 1e-3)), x, v), 0, axis)


def orbit_of(motion, i, j):
    """Semi-major axis and the angular momentum of a pair."""
    s = motion.state
    x, v = s.position[i] - s.position[j], s.velocity[i] - s.velocity[j]
    return 1 / (2 / np.linalg.norm(x) - (v @ v) / (s.mass[i] + s.mass[j])), np.cross(x, v)


def middle_of(motion):
    """The centre of mass of the pair of :func:`passing`."""
    return motion.state.position[[0, 16]].mean(axis=0)


@pytest.mark.parametrize("name", BOTH)
def test_a_hard_pair_costs_hardly_any_blocks(name):
    """A pair of 600 kT: without Kepler's solution it needs hundreds of times as many blocks as the cluster without it.
    Neither orbit nor energy change by more than the threshold, relative to the pair."""
    scheme, motion = moving(name, cluster(), dt=0.125, gravity=NEWTON)
    scheme.advance(motion, 10**6, 0.5)
    without = motion.state.clock.step
    axis = 3 / (600 * 48)
    scheme, motion = moving(name, cluster(axis=axis), dt=0.125, gravity=NEWTON)
    i = int(np.argmin((cluster().position ** 2).sum(axis=1)))
    first, orbit = energy(motion), orbit_of(motion, i, 48)
    scheme.advance(motion, 10**6, 0.5)
    assert motion.state.clock.step <= 2 * without
    assert list(scheme.arrays()["pairs"]) == [1, 0]  # formed and dissolved
    assert abs(energy(motion) / first - 1) < 1e-7
    got = orbit_of(motion, i, 48)
    np.testing.assert_allclose(got[0], orbit[0], rtol=1e-10)
    np.testing.assert_allclose(got[1], orbit[1], rtol=1e-10, atol=1e-14)


def test_a_pair_is_dissolved_when_a_body_comes_near_and_forms_again_after_it():
    """Passing at forty semi-major axes, where γ = (1.3/40)³ = 3e-5, against order 15. While the pair is apart, for 1900
    orbits, the scheme's error per orbit adds up, as it does with ``pairs: 0`` in all 3200."""
    truth, exact = moving("ias15", passing(), gravity=NEWTON)
    truth.advance(exact, 10**7, 0.5)
    errors = []
    for threshold in (0.0, 1e-6):
        scheme, motion = moving("hermite6_block", passing(), dt=0.125, gravity=NEWTON, eta=0.25, pairs=threshold)
        first = energy(motion)
        scheme.advance(motion, 10**7, 0.5)
        errors.append(abs(energy(motion) / first - 1))
    assert list(scheme.arrays()["pairs"]) == [2, 1]
    assert errors[1] < 0.7 * errors[0] < 1e-4
    np.testing.assert_allclose(middle_of(motion), middle_of(exact), atol=1e-5)
    np.testing.assert_allclose(motion.state.position[1:16], exact.state.position[1:16], atol=1e-5)
    np.testing.assert_allclose(orbit_of(motion, 0, 16)[0], orbit_of(exact, 0, 16)[0], rtol=1e-4)


@pytest.mark.parametrize("steps", [1, 40, 3000, 4000])
def test_a_run_with_pairs_may_be_cut_anywhere(steps):
    """Before, while and after the pair is apart: the columns hold it all."""
    whole, at_once = moving("hermite6_block", passing(), dt=0.125, gravity=NEWTON)
    whole.advance(at_once, 10**7, 0.4)
    scheme, motion = moving("hermite6_block", passing(), dt=0.125, gravity=NEWTON)
    scheme.advance(motion, steps, 0.4)
    assert 0 < motion.state.clock.time < 0.4
    other = prepared("hermite6_block", passing(), dt=0.125, gravity=NEWTON)
    scheme, motion = restore(*other, checkpoint(scheme, motion))
    scheme.advance(motion, 10**7, 0.4)
    assert motion.state.clock.step == at_once.state.clock.step
    assert scheme.report(motion).body_steps == whole.report(at_once).body_steps
    np.testing.assert_array_equal(motion.state.position, at_once.state.position)
    np.testing.assert_array_equal(scheme.arrays()["pairs"], whole.arrays()["pairs"])


@pytest.mark.parametrize(
    "gravity,options",
    [(NEWTON, {"pairs": 0.0}), (NEWTON, {"shared": True}), (replace(NEWTON, softening="plummer", length=1e-5), {})],
)
def test_no_pair_forms_if_it_may_not_or_if_its_orbit_is_softened(gravity, options):
    """1.5 (ε/r)² is 3e-4 at the pericentre."""
    scheme, motion = moving("hermite6_block", passing(), dt=0.125, gravity=gravity, **options)
    scheme.advance(motion, 1100, 0.5)
    assert scheme.arrays()["pairs"][0] == 0


def test_an_earlier_end_than_planned_gives_both_bodies_back():
    scheme, motion = moving("hermite6_block", cluster(axis=1e-4), dt=0.125, gravity=NEWTON)
    first = energy(motion)
    scheme.advance(motion, 7)
    scheme.advance(motion, 10**6, 0.03)
    assert motion.state.clock.time == 0.03 and abs(energy(motion) / first - 1) < 1e-7
    scheme.advance(motion, 10**6, 0.1)
    assert abs(energy(motion) / first - 1) < 1e-7


def test_a_closed_orbit_has_a_pericentre_and_an_apocentre():
    x, v = np.array([1.5, 0, 0]), np.array([0.0, np.sqrt(2 / 1.5 - 1), 0])
    assert extremes(x, v, 1.0) == pytest.approx((0.5, 1.5))
    assert extremes(x, 2 * v, 1.0) == (np.inf, np.inf) == extremes(x, v, 0.0)


def test_the_orbit_of_a_formed_pair_is_in_the_columns_of_the_parked_body():
    rows, last, step = np.zeros((18, 3)), np.zeros(3, np.int64), np.array([1, 1, PARKED])
    rows[9:16, 2] = 1, 0, 0, 0, 1, 0, 1
    orbits = Orbits.of(rows, last, step, np.array([5.0, 0.75, 0.25]), 1.0)
    assert (orbits.first, orbits.second, orbits.mu, orbits.fraction) == ([1], [2], [1.0], [0.25])
    x, v = orbits.at(100, 2 * np.pi / 400)
    np.testing.assert_allclose(x[:, 0], [0, 1, 0], atol=1e-15)
    np.testing.assert_allclose(v[:, 0], [-1, 0, 0], atol=1e-15)


def test_info_counts_the_pairs(tmp_path):
    from nbody.cli.info import _recording
    from nbody.cli.info_page import lines
    from nbody.run.simulation import Simulation

    file = tmp_path / "run.h5"
    simulation = Simulation(
        cluster(20, axis=1e-5), file, integrator={"scheme": "hermite6_block"}, engine="reference", precision="float64",
        gravity={"softening": "none"}, end=0.125,
    )  # fmt: skip
    simulation.run()
    found = _recording(file, False)
    assert found["pairs"] == {"joined": 1, "parted": 0, "present": 1}
    assert "pairs         1 by Kepler's solution (1 formed, 0 dissolved)" in "\n".join(lines(found))
