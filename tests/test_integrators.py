"""The schemes have the order they claim, and the first run of the lecture comes out as the lecture has it."""

import pickle

import numpy as np
import pytest
from conftest import random_bodies
from motions import energy

from nbody.errors import InputError, RunFailed
from nbody.forces import ENGINES
from nbody.forces.reference import ReferenceEngine, direct_sum
from nbody.integrators import INTEGRATORS
from nbody.integrators.adaptive import nearest_pair
from nbody.integrators.integrator import FixedStep, Motion
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario
from nbody.state import Outputs

ECCENTRICITY = 0.5


def kepler_orbit(e=ECCENTRICITY):
    """Two bodies of mass ½, semi-major axis 1, period 2π, at pericentre."""
    separation = 1 - e
    speed = np.sqrt((1 + e) / (1 - e))
    return Particles(
        mass=[0.5, 0.5],
        position=[[separation / 2, 0, 0], [-separation / 2, 0, 0]],
        velocity=[[0, speed / 2, 0], [0, -speed / 2, 0]],
    )


def moving(scheme, engine=None, particles=None):
    """A motion that is ready for its first step."""
    engine = engine or ReferenceEngine(Gravity(), "float64")
    motion = Motion(engine, engine.load(particles or kepler_orbit()))
    scheme.prepare(motion)
    scheme.start(motion)
    return motion


def error_after(name: str, steps: int, periods: float = 1.0, e: float = ECCENTRICITY) -> float:
    """Distance of the relative vector from the true one after a time, in units of the semi-major axis."""
    scheme = INTEGRATORS.load(name)(2 * np.pi * periods / steps)
    motion = moving(scheme, particles=kepler_orbit(e))
    state = motion.state
    scheme.advance(motion, steps)
    assert state.clock.step == steps and state.clock.time == pytest.approx(2 * np.pi * periods)
    anomaly = 2 * np.pi * periods  # of Kepler's equation E - e sin E = M, by Newton's method
    eccentric = anomaly
    for _ in range(50):
        eccentric -= (eccentric - e * np.sin(eccentric) - anomaly) / (1 - e * np.cos(eccentric))
    truth = [np.cos(eccentric) - e, np.sqrt(1 - e**2) * np.sin(eccentric), 0]
    return float(np.linalg.norm(state.position[0] - state.position[1] - truth))


ON_THE_ENGINE = [
    name for name in INTEGRATORS if not (INTEGRATORS.load(name).facts.own_forces or INTEGRATORS.load(name).facts.softened)
]
"""The schemes whose forces come from the engine, without softening; for the others see test_few_bodies.py and
test_leapfrog_block.py."""


@pytest.mark.parametrize("name", [name for name in ON_THE_ENGINE if not INTEGRATORS.load(name).facts.adaptive])
@pytest.mark.parametrize("periods", [1.0, 0.37])
def test_halving_the_step_shrinks_the_error_by_two_to_the_order(name, periods):
    """Also at 0.37 periods: some first-order schemes look second order after whole ones."""
    order = INTEGRATORS.load(name).facts.order
    coarse = {1: 4096, 2: 512, 4: 256, 6: 256}[order]
    ratio = error_after(name, coarse, periods) / error_after(name, 2 * coarse, periods)
    assert np.log2(ratio) == pytest.approx(order, abs=0.15)


@pytest.mark.campaign
@pytest.mark.parametrize("name", [name for name in ON_THE_ENGINE if not INTEGRATORS.load(name).facts.adaptive])
def test_the_order_is_the_same_on_a_very_eccentric_orbit(name):
    """e = 0.9, where the step must resolve a pericentre thirty times shorter than the period."""
    order = INTEGRATORS.load(name).facts.order
    coarse = {1: 2**18, 2: 2**14, 4: 2**12, 6: 2**12}[order]
    ratio = error_after(name, coarse, 0.63, 0.9) / error_after(name, 2 * coarse, 0.63, 0.9)
    assert np.log2(ratio) == pytest.approx(order, abs=0.3)


@pytest.mark.parametrize(
    "name,steps,known",
    [
        ("taylor", 1024, 0.678),
        ("taylor", 2048, 0.358),
        ("leapfrog", 1024, 0.00169),
        ("leapfrog", 2048, 0.000422),
        ("leapfrog_dkd", 1024, 0.000458),
    ],
)
def test_the_error_after_one_period_is_the_known_one(name, steps, known):
    """Kepler, e = 0.5: the error constant tells kick-drift-kick (0.00169) from drift-kick-drift (0.000458)."""
    assert error_after(name, steps) == pytest.approx(known, rel=0.005)


def test_leapfrog_is_time_reversible():
    scheme = INTEGRATORS.load("leapfrog")(0.01)
    motion = moving(scheme)
    state = motion.state
    start = state.position.copy()
    scheme.advance(motion, 200)
    state.velocity *= -1
    scheme.advance(motion, 200)
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
    taylor = INTEGRATORS.load("taylor")(0.001)
    bodies = Particles(mass, position, velocity)
    motion = moving(taylor, ReferenceEngine(Gravity(10.0, 2, "cutoff", 0.01), "float64"), bodies)
    state = motion.state
    for _ in range(9):
        position, velocity = lecture_step(position, velocity, mass, 10.0, 0.01, 0.001)
        taylor.advance(motion, 1)
    assert np.abs(state.position - position).max() < 1e-13
    assert np.abs(state.velocity - velocity).max() < 1e-11  # accelerations reach 1e3


@pytest.mark.parametrize("name", ON_THE_ENGINE)
def test_asking_for_the_potential_does_not_change_the_orbit(name):
    """A recorded frame needs the potential; recording must not change a single bit of the run."""
    ends = []
    for every in (100, 3):
        scheme = INTEGRATORS.load(name)(0.01)
        motion = moving(scheme)
        for k in range(20):
            scheme.advance(motion, 1)
            if k % every == 0:
                motion.evaluate(Outputs.ENERGY)
        ends.append(motion.state)
    plain, measured = ends
    assert np.array_equal(plain.position, measured.position)
    assert np.array_equal(plain.velocity, measured.velocity)


FIXED = [name for name in ON_THE_ENGINE if issubclass(INTEGRATORS.load(name), FixedStep)]


@pytest.mark.parametrize("name", FIXED)
def test_a_frame_of_a_step_has_the_bits_and_the_energy_of_its_end(name):
    scheme, again = INTEGRATORS.load(name)(0.01), INTEGRATORS.load(name)(0.01)
    motion, other = moving(scheme), moving(again)
    frames = scheme.frames(motion, 4, every=3)
    for frame in frames:
        again.advance(other, 3)
        other.evaluate(Outputs.ENERGY)
        expected = other.state.frames.snapshot()
        assert np.array_equal(frame.position, expected.position) and np.array_equal(frame.sums, expected.sums)
    assert motion.state.clock.step == other.state.clock.step == 12 and motion.state.clock.time == other.state.clock.time


@pytest.mark.parametrize("name", ON_THE_ENGINE)
def test_a_scheme_makes_as_many_force_evaluations_as_it_says(name, monkeypatch):
    calls = []
    compute = ReferenceEngine._compute
    monkeypatch.setattr(ReferenceEngine, "_compute", lambda self, *a: calls.append(1) or compute(self, *a))
    scheme = INTEGRATORS.load(name)(0.01)
    motion = moving(scheme)
    scheme.advance(motion, 1)
    calls.clear()
    scheme.advance(motion, 10)
    assert len(calls) == 10 * scheme.facts.evaluations


def test_a_float32_taylor_step_rounds_a_position_once():
    """x + (v dt + a dt²/2): with two additions a position has a second rounding error, up to half a unit in the last place,
    in each step. Bodies that move by less than a thousandth of their distance from the origin show it."""
    rng = np.random.default_rng(5)
    bodies = Particles(np.ones(400), 1 + rng.random((400, 3)), rng.standard_normal((400, 3)))
    engine = ENGINES.load("cpu")(Gravity(1e-3, 3, "plummer", 0.1), "float32")
    taylor = INTEGRATORS.load("taylor")(2.0**-10)
    motion = moving(taylor, engine, bodies)
    state, x, v = motion.state, bodies.position.astype(np.float32), bodies.velocity.astype(np.float32)
    taylor.advance(motion, 1)
    a = state.acceleration.astype(np.float64)
    exact = x.astype(np.float64) + v.astype(np.float64) * 2.0**-10 + a * 2.0**-21
    # One rounding: half a unit in the last place of x, and the far smaller one of what is added.
    assert np.abs(state.position - exact).max() <= 0.501 * np.spacing(np.float32(1.99))


# --- Leapfrog with adaptive steps ------------------------------------------------------------------------------------------


def varying(eta, bodies=None, largest=None, engine=None):
    """The scheme, and a motion that is ready for its first step."""
    kind = INTEGRATORS.load("leapfrog_adaptive")
    scheme = kind(largest, kind.Options(eta=eta))
    return scheme, moving(scheme, engine, bodies or kepler_orbit(0.9))


def test_adaptive_leapfrog_is_time_reversible():
    scheme, motion = varying(0.1)
    start = motion.state.position.copy()
    scheme.advance(motion, 150)
    motion.state.velocity *= -1
    now, before = scheme._rates
    now[0] = before[0]  # the step that comes next is the one that was last
    scheme.advance(motion, 150)
    # Some 300 steps of rounding 1e-16, amplified by the shear of the orbit and its pericentre's speed
    assert np.abs(motion.state.position - start).max() < 1e-11


def test_the_error_of_adaptive_leapfrog_falls_with_the_square_of_eta():
    """After half an orbit; the rule for the steps is of the order of the scheme."""
    errors = []
    for eta in (0.08, 0.04, 0.02):
        scheme, motion = varying(eta)
        scheme.advance(motion, 10**6, np.pi)
        assert motion.state.clock.time == np.pi
        errors.append(np.linalg.norm(motion.state.position[0] - motion.state.position[1] - [-1.9, 0, 0]))
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([2, 2], abs=0.2)


def test_reversible_steps_keep_the_energy_of_an_eccentric_orbit_and_others_do_not():
    """e = 0.9, 600 orbits. The error varies along an orbit, and returns; with h = 1/ρ(x) it drifts."""

    def errors(orbits, reversible=True):
        scheme, motion = varying(0.3)
        start, found = energy(motion), []
        for time in np.arange(0.0, 2 * np.pi * orbits, 7.3):  # at all phases
            while motion.state.clock.time < time:
                if not reversible:
                    scheme._rates[0, 0] = scheme._rates[0, 1] / 0.3
                scheme.advance(motion, 10**6 if reversible else 1, time)
            found.append(energy(motion) / start - 1)
        return np.array(found)

    reversible = errors(600)
    assert abs(reversible[-200:].mean() - reversible[:200].mean()) < 0.02 * abs(reversible).max()
    assert abs(errors(10, False)[-1]) > 3 * abs(reversible).max()


def test_bodies_without_forces_drift_and_impossible_steps_are_refused():
    alone = Particles([1.0], [[0.0, 0, 0]], [[1.0, 2, 3]])
    scheme, motion = varying(0.02, alone, largest=0.25)
    scheme.advance(motion, 10**6, 1.0)
    np.testing.assert_allclose(motion.state.position, [[1, 2, 3]])
    scheme, motion = varying(0.02, alone)
    with pytest.raises(RunFailed, match=r"step of inf at time 0 can't be made; give .*the largest step"):
        scheme.advance(motion, 1)


def test_only_a_body_at_a_finite_distance_is_named_as_the_nearest():
    _, motion = varying(0.02, Particles(np.ones(3), np.eye(3), np.zeros((3, 3))), largest=0.25)
    motion.state.position[2] = np.nan
    assert nearest_pair(motion, 0) == ": particles 0 and 1 (counted from 0) are 1.41421 apart"
    motion.state.position[1] = np.inf
    assert nearest_pair(motion, 0) == nearest_pair(motion, 2) == ""


def test_with_external_fields_adaptive_leapfrog_needs_its_largest_step():
    text = (
        "initial: {generator: plummer, particles: 8}\ngravity: {softening: plummer, length: 0.1}\nprecision: float64\n"
        "engine: reference\nfields: [{field: point_mass, mass: 1.0}]\nintegrator: {scheme: leapfrog_adaptive, end: 0.1}\n"
    )
    with pytest.raises(InputError, match=r"not from external fields; .* or give the largest step, 'dt'"):
        Simulation(Scenario.from_text(text, "field.yaml"))
    Simulation(Scenario.from_text(text.replace("end:", "dt: 0.01, end:"), "field.yaml")).run()


# --- Hermite ---------------------------------------------------------------------------------------------------------------


def adaptive(eta, largest=None):
    """Hermite's scheme with Aarseth's steps."""
    kind = INTEGRATORS.load("hermite4")
    return kind(largest, kind.Options(eta=eta))


def test_hermite_steps_follow_the_orbit_and_reach_a_time_exactly():
    """At e = 0.9 the pericentre passage needs steps some (1.9/0.1)^1.5 = 80 times shorter than the apocentre's."""
    scheme = adaptive(0.01)
    motion = moving(scheme, particles=kepler_orbit(0.9))
    start, steps = energy(motion), []
    while motion.state.clock.time < 6.0:
        before = motion.state.clock.time
        scheme.advance(motion, 1, 6.0)
        steps.append(motion.state.clock.time - before)
    assert motion.state.clock.time == 6.0
    assert 20 < max(steps) / min(steps[1:-2]) < 300
    assert abs(energy(motion) / start - 1) < 1e-4


def test_the_error_of_hermite_steps_falls_with_eta_squared():
    """A step is proportional to √η, and the scheme's order is 4."""
    errors = []
    for eta in (0.02, 0.005, 0.00125):
        scheme = adaptive(eta)
        motion = moving(scheme)
        start = energy(motion)
        scheme.advance(motion, 10**6, 3.0)  # half an orbit: the error is one-sided
        errors.append(abs(energy(motion) / start - 1))
    slopes = np.log(np.array(errors[:-1]) / errors[1:]) / np.log(4)
    assert slopes == pytest.approx([2, 2], abs=0.35)


JERKS = [Gravity(), Gravity(2.0, 3, "plummer", 0.3), Gravity(1.0, 2, "cutoff", 0.5), Gravity(1.0, 3, "spline", 0.4)]


@pytest.mark.parametrize(
    "name,law,precision",  # a kernel takes 3 to 9 s to compile
    [("cpu", JERKS[1], "float32"), ("cpu", JERKS[3], "float64"), *(("reference", law, "float64") for law in JERKS)],
)
def test_the_jerk_is_the_derivative_of_the_acceleration(name, law, precision):
    """Against a central difference of float64 accelerations along straight lines: its error is 1e-9 here."""
    bodies, h = random_bodies(70, law.dimensions), 1e-5
    engine = ENGINES.load(name)(law, precision)
    state = engine.load(bodies)
    INTEGRATORS.load("hermite4")(1.0).prepare(Motion(engine, state))
    engine.evaluate(state, Outputs.JERK | Outputs.ENERGY)
    after, before = (direct_sum(bodies.position + s * bodies.velocity, bodies.mass, law)[0] for s in (h, -h))
    expected = (after - before) / (2 * h)
    size = np.abs(expected).max()
    assert np.abs(state.jerk - expected).max() < (2e-5 if precision == "float32" else 1e-6) * size
    # And some rows are the rows of all.
    whole, some = state.arrays(), np.array([3, 50, 69])
    for name in ("acceleration", "jerk", "potential"):
        getattr(state, name)[some] = np.nan
    engine.evaluate(state, Outputs.JERK | Outputs.POTENTIAL, targets=some)
    assert np.array_equal(state.acceleration, whole["acceleration"]) and np.array_equal(state.jerk, whole["jerk"])
    np.testing.assert_allclose(state.potential, whole["potential"], rtol=1e-5 if precision == "float32" else 1e-13)


def test_a_scheme_that_needs_the_jerk_refuses_an_engine_without_it():
    with pytest.raises(InputError, match="does not compute the jerk"):
        moving(INTEGRATORS.load("hermite4")(0.1), ENGINES.load("matrix")(Gravity(), "float64"))


@pytest.mark.parametrize("name", INTEGRATORS)
def test_a_scheme_can_be_sent_to_other_ranks(name):
    """As a part of the plan of rank 0."""
    sent = pickle.loads(pickle.dumps(INTEGRATORS.load(name)(0.01)))
    assert sent.dt == 0.01 and sent.facts.order == INTEGRATORS.load(name).facts.order
