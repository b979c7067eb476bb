"""The schemes have the order they claim, and the first run of the lecture comes out as the lecture has it."""

import numpy as np
import pytest

from nbody.forces.reference import ReferenceEngine
from nbody.integrators import INTEGRATORS
from nbody.integrators.scheme import advance
from nbody.law import Gravity
from nbody.particles import Particles

ECCENTRICITY = 0.5


def kepler_orbit():
    """Two bodies of mass ½, semi-major axis 1, period 2π, at pericentre."""
    separation = 1 - ECCENTRICITY
    speed = np.sqrt((1 + ECCENTRICITY) / (1 - ECCENTRICITY))
    return Particles(
        mass=[0.5, 0.5],
        position=[[separation / 2, 0, 0], [-separation / 2, 0, 0]],
        velocity=[[0, speed / 2, 0], [0, -speed / 2, 0]],
    )


def error_after(name: str, steps: int, periods: float = 1.0) -> float:
    """Distance of the relative vector from the true one after a time, in units of the semi-major axis."""
    engine = ReferenceEngine(Gravity(), "float64")
    scheme = INTEGRATORS.load(name)
    state = engine.load(kepler_orbit())
    for _ in range(steps):
        advance(scheme, engine, state, 2 * np.pi * periods / steps)
    anomaly = 2 * np.pi * periods  # of Kepler's equation E - e sin E = M, by Newton's method
    eccentric = anomaly
    for _ in range(50):
        eccentric -= (eccentric - ECCENTRICITY * np.sin(eccentric) - anomaly) / (1 - ECCENTRICITY * np.cos(eccentric))
    truth = [np.cos(eccentric) - ECCENTRICITY, np.sqrt(1 - ECCENTRICITY**2) * np.sin(eccentric), 0]
    return float(np.linalg.norm(state.position[0] - state.position[1] - truth))


@pytest.mark.parametrize("name", INTEGRATORS)
@pytest.mark.parametrize("periods", [1.0, 0.37])
def test_halving_the_step_shrinks_the_error_by_two_to_the_order(name, periods):
    """Also at 0.37 periods: some first-order schemes look second order after whole ones."""
    order = INTEGRATORS.load(name).order
    coarse = 4096 if order == 1 else 512
    ratio = error_after(name, coarse, periods) / error_after(name, 2 * coarse, periods)
    assert np.log2(ratio) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize(
    "name,steps,known",
    [("taylor", 1024, 0.678), ("taylor", 2048, 0.358), ("leapfrog", 1024, 0.00169), ("leapfrog", 2048, 0.000422)],
)
def test_the_error_after_one_period_is_the_known_one(name, steps, known):
    """Kepler, e = 0.5: the error constant tells kick-drift-kick (0.00169) from drift-kick-drift (0.000458)."""
    assert error_after(name, steps) == pytest.approx(known, rel=0.005)


def test_leapfrog_is_time_reversible():
    engine, scheme = ReferenceEngine(Gravity(), "float64"), INTEGRATORS.load("leapfrog")
    state = engine.load(kepler_orbit())
    start = state.position.copy()
    for _ in range(200):
        advance(scheme, engine, state, 0.01)
    state.velocity *= -1
    for _ in range(200):
        advance(scheme, engine, state, 0.01)
    # 400 steps of rounding 1e-16, amplified by the orbit's shear
    assert np.abs(state.position - start).max() < 1e-12


def lecture_step(position, velocity, mass, G, cutoff, dt):
    """An independent transcription of one step of the lecture, with its loops."""
    acceleration = np.zeros_like(position)
    for i in range(len(mass)):
        for j in range(len(mass)):
            d = position[j] - position[i]
            r = np.sqrt(d @ d)
            if r > cutoff:
                acceleration[i] += G * mass[j] / r**3 * d
    return position + velocity * dt + 0.5 * acceleration * dt**2, velocity + acceleration * dt


def test_taylor_is_the_lecture_to_the_letter():
    rng = np.random.default_rng(3)
    position, velocity = rng.uniform(-3, 3, (2, 40, 2))
    mass = np.ones(40)
    engine = ReferenceEngine(Gravity(10.0, 2, "cutoff", 0.01), "float64")
    state = engine.load(Particles(mass, position, velocity))
    for _ in range(9):
        position, velocity = lecture_step(position, velocity, mass, 10.0, 0.01, 0.001)
        advance(INTEGRATORS.load("taylor"), engine, state, 0.001)
    assert np.abs(state.position - position).max() < 1e-13
    assert np.abs(state.velocity - velocity).max() < 1e-11  # accelerations reach 1e3


@pytest.mark.parametrize("name", INTEGRATORS)
def test_asking_for_the_potential_does_not_change_the_orbit(name):
    """A recorded frame needs the potential; recording must not change a single bit of the run."""
    engine, scheme = ReferenceEngine(Gravity(), "float64"), INTEGRATORS.load(name)
    plain, measured = engine.load(kepler_orbit()), engine.load(kepler_orbit())
    for k in range(20):
        advance(scheme, engine, plain, 0.01)
        advance(scheme, engine, measured, 0.01, energy=k % 3 == 0)
    assert np.array_equal(plain.position, measured.position)
    assert np.array_equal(plain.velocity, measured.velocity)


@pytest.mark.parametrize("name", INTEGRATORS)
def test_a_scheme_that_ends_on_a_force_needs_one_evaluation_a_step(name, monkeypatch):
    calls = []
    compute = ReferenceEngine._compute
    monkeypatch.setattr(ReferenceEngine, "_compute", lambda self, *a: calls.append(1) or compute(self, *a))
    engine, scheme = ReferenceEngine(Gravity(), "float64"), INTEGRATORS.load(name)
    state = engine.load(kepler_orbit())
    for _ in range(10):
        advance(scheme, engine, state, 0.01)
    assert len(calls) == (11 if scheme.forces_at_end else 10)
