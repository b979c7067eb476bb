"""Individual block steps: the orders, the motion of a cluster, frames at one time, the same bits however a run is cut."""

from dataclasses import replace

import numpy as np
import pytest
from motions import energy, moving
from test_few_bodies import orbit

import nbody
from nbody.errors import RunFailed
from nbody.forces.problem import Problem
from nbody.initial.plummer import PlummerSphere
from nbody.integrators import INTEGRATORS
from nbody.integrators.solvers.blocks.formulas import pair_weights
from nbody.law import Gravity, pair_law, pair_slopes
from nbody.particles import Particles

SOFTENED = Gravity(softening="plummer", length=1e-3)
FLAT = Gravity(softening="plummer", length=1e-3, dimensions=2)
BOTH = ("hermite4_block", "hermite6_block")


def cluster(count=64):
    return PlummerSphere().generate(count, SOFTENED, np.random.default_rng(5))


@pytest.mark.parametrize("name,eta,ratio,law", [("hermite4_block", 0.01, 4, SOFTENED), ("hermite6_block", 0.4, 2, FLAT)])
def test_halving_the_steps_shrinks_the_error_by_two_to_the_order(name, eta, ratio, law):
    """Steps go as √η in order 4 and as η in order 6; divided by 4 and by 2 every block step is exactly halved. Measured: the
    energy after ten orbits of e = 0.5, in which the errors add up; in space, and in the plane."""
    errors, pair = [], orbit(0.5)
    rows = [np.pad(each, ((0, 0), (0, law.dimensions - 2))) for each in (pair.position, pair.velocity)]
    for each in (eta, eta / ratio):
        scheme, motion = moving(name, Particles(pair.mass, *rows), gravity=law, eta=each)
        first = energy(motion)
        scheme.advance(motion, 10**6, 20 * np.pi)
        errors.append(abs(energy(motion) / first - 1))
    order = INTEGRATORS.load(name).facts.order
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order + 1, abs=1.2)  # energy gains a power on closed orbits
    assert errors[0] < 1e-4


@pytest.mark.parametrize("name", BOTH)
def test_a_cluster_moves_as_the_fifteenth_order_says(name):
    """64 bodies for half a unit of time, against ias15, with the steps of the literature."""
    truth, exact = moving("ias15", cluster(), gravity=SOFTENED)
    truth.advance(exact, 10**6, 0.5)
    scheme, motion = moving(name, cluster(), dt=0.125, gravity=SOFTENED)
    first = energy(motion)
    scheme.advance(motion, 10**6, 0.5)
    assert motion.state.clock.time == 0.5
    assert abs(energy(motion) / first - 1) < 1e-6
    distance = np.linalg.norm(motion.state.position - exact.state.position, axis=1)
    assert np.median(distance) < 1e-7 and distance.max() < 1e-4
    assert scheme.report(motion).body_steps < 0.3 * motion.state.clock.step * 64  # most bodies rest in most blocks


def test_between_frames_all_bodies_are_predicted_to_one_time():
    """A mean step is 0.01; in it the prediction of order 6 is good to 1e-6 of the way."""
    scheme, motion = moving("hermite6_block", cluster(), dt=0.125, gravity=SOFTENED)
    scheme.advance(motion, 17, 0.25)
    truth, exact = moving("ias15", cluster(), gravity=SOFTENED)
    truth.advance(exact, 10**6, motion.state.clock.time)
    assert np.median(np.linalg.norm(motion.state.position - exact.state.position, axis=1)) < 1e-6


@pytest.mark.parametrize("name,eta", [("hermite4_block", 0.01), ("hermite6_block", 0.25)])
def test_times_within_a_block_have_the_energy_error_of_the_scheme(name, eta):
    """All bodies make a step to such a time; one lies within 1e-9 of another, and one is the next number."""
    scheme, motion = moving(name, cluster(), dt=0.125, gravity=SOFTENED, eta=eta)
    first = energy(motion)
    scheme.advance(motion, 7)
    for end in (motion.state.clock.time + 0.001, 0.05, 0.05 + 1e-9, np.nextafter(0.05 + 1e-9, 1), 0.06):
        scheme.advance(motion, 10**6, end)
        assert motion.state.clock.time == end
        assert abs(energy(motion) / first - 1) < 1e-8
    truth, exact = moving("ias15", cluster(), gravity=SOFTENED)
    truth.advance(exact, 10**6, 0.06)
    assert np.linalg.norm(motion.state.position - exact.state.position, axis=1).max() < 1e-6


@pytest.mark.parametrize("engine", ["cpu", pytest.param("gpu-tiled", marks=pytest.mark.simulated)])
def test_an_interrupt_within_a_block_keeps_the_bodies(engine, monkeypatch):
    """Bodies are shown within a block after a step to that time, which is undone also if it is interrupted."""
    bodies = cluster(64 if engine == "cpu" else 4)
    scheme, motion = moving("hermite6_block", bodies, 0.125, SOFTENED, engine)
    whole, at_once = moving("hermite6_block", bodies, 0.125, SOFTENED, engine)
    for each, there in ((scheme, motion), (whole, at_once)):
        each.advance(there, 3)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(scheme._blocks, "present", interrupt)
        scheme.advance(motion, 10**6, time := motion.state.clock.time + 1e-9)
    whole.advance(at_once, 10**6, time)
    for each, there in ((scheme, motion), (whole, at_once)):
        each.advance(there, 2)
    (x, v), (expected, velocity) = (there.state.values("position", "velocity") for there in (motion, at_once))
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(v, velocity)


def interrupt(*arguments):
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", BOTH)
def test_the_bodies_before_the_last_block_has_ended(name):
    """A step back has the error of a step forward; before the shortest step nothing is shown."""
    scheme, motion = moving(name, cluster(), dt=0.125, gravity=SOFTENED)
    scheme.advance(motion, 60)
    end, before = motion.state.clock.time, motion.state.arrays() | scheme.arrays()
    scheme.advance(motion, 10**6, 0.0)
    earliest = motion.state.clock.time
    assert end - 0.125 < earliest < end
    scheme.advance(motion, 10**6, time := 0.5 * (earliest + end))
    other, there = moving(name, cluster(), dt=0.125, gravity=SOFTENED)
    other.advance(there, 10**6, time)
    assert motion.state.clock.time == time and other.arrays()["begun"]
    np.testing.assert_allclose(motion.state.position, there.state.position, atol=1e-9)
    scheme.advance(motion, 0)
    for name, values in (motion.state.arrays() | scheme.arrays()).items():
        np.testing.assert_array_equal(values, before[name], err_msg=name)


@pytest.mark.parametrize("softening", ["plummer", "spline"])
@pytest.mark.parametrize("r", [0.1, 0.6, 1.1, 2.0])  # with ε = 0.5 a spline ends at 1.4, and changes its formula at 0.7
def test_jerk_and_snap_of_a_pair_are_derivatives_of_its_acceleration(softening, r):
    """Against central differences along x(t) = d + v t + a t²/2; their error is about 1e-6."""
    made = softening, 3, lambda x: 1 / np.sqrt(x), lambda function: function
    law = pair_law(*made)
    weights = pair_weights(6, law, made[3], pair_slopes(*made))
    d, v, a = np.array([0.6, 0.0, 0.8]) * r, np.array([0.3, -0.2, 0.5]), np.array([-0.1, 0.4, 0.2])
    length2, h = np.float64(0.25), 3e-4

    def acceleration(t):
        x = d + t * v + t * t * a / 2
        return 2.0 * law(*x, length2)[0] * x

    w, p, q, snap = weights(*d, *v, *a, 2.0, length2)
    before, now, after = (acceleration(t) for t in (-h, 0.0, h))
    size = np.abs(now).max()
    np.testing.assert_allclose(w * d, now, rtol=1e-12)
    np.testing.assert_allclose(w * v - p * d, (after - before) / (2 * h), atol=1e-5 * size)
    np.testing.assert_allclose(w * a - q * v + snap * d, (after - 2 * now + before) / h**2, atol=2e-5 * size)


def test_bodies_with_jerk_and_snap_move_through_each_others_splines():
    """Two bodies on a flat orbit through both splines; against a scheme that needs forces alone."""
    ends = {}
    for scheme, engine, dt in (("yoshida6", "reference", 0.002), ("hermite6_block", "cpu", 0.01)):
        x, v = [[0.5, 0.0, 0.0], [-0.75, 0.0, 0.0]], [[0.0, 0.2, 0.0], [0.0, -0.3, 0.0]]
        bodies = Particles(np.array([0.6, 0.4]), np.array(x), np.array(v))
        run = nbody.Simulation(
            bodies, integrator=scheme, softening=("spline", 0.3), precision="float64", engine=engine, dt=dt
        )
        run.integrate(until=3.0)
        ends[scheme] = run.particles.position
        assert abs(run.energies.error) < 1e-5
    np.testing.assert_allclose(ends["hermite6_block"], ends["yoshida6"], atol=2e-5)


def test_a_step_below_the_smallest_one_stops_and_names_the_pair():
    near = Particles([1.0, 1, 1], [[0.0, 0], [1e-13, 0], [1, 1]], np.zeros((3, 2)))
    scheme, motion = moving("hermite6_block", near, dt=0.125, gravity=replace(FLAT, length=1e-14))
    with pytest.raises(RunFailed, match=r"needs a step below the smallest .*particles 0 and 1 .*softening"):
        scheme.advance(motion, 10**6, 1.0)


@pytest.mark.parametrize("name", BOTH)
def test_with_shared_steps_every_block_has_all_bodies_and_momentum_is_exact(name):
    """Pairs are computed at one time then, so forces add up to zero, to rounding; with individual steps they do not."""
    momenta = []
    for shared in (True, False):
        scheme, motion = moving(name, cluster(), dt=0.125, gravity=SOFTENED, shared=shared)
        first = energy(motion)
        scheme.advance(motion, 10**6, 0.25)
        assert abs(energy(motion) / first - 1) < 1e-6
        assert (scheme.report(motion).body_steps == 64 * motion.state.clock.step) is shared
        momenta.append(np.abs(motion.state.mass @ motion.state.velocity).max())
    assert momenta[0] < 1e-14 < 1e-10 < momenta[1]


@pytest.mark.parametrize("name", BOTH)
def test_a_body_on_which_the_forces_cancel_at_first_begins_with_the_step_of_the_others(name):
    """The middle one of the figure eight: the time scale of its acceleration is zero then."""
    run = nbody.Simulation(nbody.figure_eight(dimensions=3), integrator=name, engine="cpu", precision="float64")
    run.integrate(1.0)
    assert abs(run.energies.error) < 1e-6


def test_a_body_without_a_force_keeps_the_largest_step():
    lonely = Particles([1.0, 0.0], [[0.0, 0, 1], [5, 5, 1]], [[1.0, 0, 0], [0, 2, 0]])
    scheme, motion = moving("hermite4_block", lonely, dt=0.25, gravity=replace(SOFTENED, G=0.0))
    scheme.advance(motion, 10**6, 1.0)
    np.testing.assert_allclose(motion.state.position, [[1, 0, 1], [5, 7, 1]], rtol=1e-15)
    assert motion.state.clock.step == 4


@pytest.mark.parametrize("name", BOTH)
def test_without_dt_the_largest_step_follows_from_the_bodies(name):
    """It is a power of two, and grows with a cluster that is larger."""
    lengths = []
    for factor in (1.0, 64.0):
        bodies = cluster()
        bodies = replace(bodies, position=factor * bodies.position, velocity=bodies.velocity / np.sqrt(factor))
        scheme, motion = moving(name, bodies, gravity=replace(SOFTENED, length=factor * 1e-3))
        scheme.advance(motion, 10)
        lengths.append(scheme._end - scheme._begin)
    assert lengths[1] == 512 * lengths[0] and np.log2(lengths[0]) % 1 == 0


def test_the_summary_of_a_run_counts_blocks_steps_of_bodies_and_pairs(tmp_path):
    """All bodies act on those of a block: N interactions per step of a body."""
    from nbody.run.simulation import Simulation
    from nbody.scenario import Scenario

    (tmp_path / "cluster.yaml").write_text(
        "initial: {generator: plummer, particles: 64}\ngravity: {softening: plummer, length: 0.001}\nprecision: float64\n"
        "engine: reference\nintegrator: {scheme: hermite6_block, end: 0.25}\nrecord: {dt: 0.125}\n"
    )
    simulation = Simulation(Scenario.load(tmp_path / "cluster.yaml"))
    found, stepper = simulation.run(), simulation.stepper
    assert found.blocks == found.steps > 20 and found.frames == 2  # no file: the first and the last
    assert found.body_steps == stepper.integrator.report(stepper.motion).body_steps < 0.5 * 64 * found.blocks
    assert found.interactions_per_s * found.steps == pytest.approx(found.steps_per_s * 64 * found.body_steps)


def test_the_plan_counts_the_working_arrays_of_blocks():
    """Prediction (9), sums (9), list, masses and limits of pairs, beside the columns: 18 derivatives, times and steps."""
    from nbody.run.plan import plan
    from nbody.scenario import Scenario

    base = {"initial": {"generator": "plummer", "particles": 1000}, "precision": "float64", "engine": "cpu"}
    schemes = ({"scheme": "leapfrog", "dt": 0.125, "steps": 1}, {"scheme": "hermite6_block", "end": 1.0})
    needed = [plan(Scenario.from_dict(base | {"integrator": each})).memory["memory"] for each in schemes]
    assert needed[1] - needed[0] >= 1000 * 8 * (9 + 9 + 1 + 2 + 18 + 3)


def test_the_first_of_several_gpus_has_room_for_the_sums_that_they_exchange():
    """Twice, in turn, twelve numbers per body and part; beside what the engine needs."""
    from nbody.forces import ENGINES
    from nbody.integrators.solvers.blocks.memory import PARTS_FROM
    from nbody.run.plan import plan
    from nbody.scenario import Scenario

    count, kind = PARTS_FROM[False], ENGINES.load("gpu-symmetric")
    asked = Problem(Gravity(), "float64", count)
    exchanged = kind.memory(asked._replace(gpus=2)).own - kind.memory(asked).own
    integrator = {"scheme": "hermite4_block", "end": 1.0}
    base = {"initial": {"generator": "uniform", "particles": count}, "precision": "float64", "integrator": integrator}
    planned = plan(Scenario.from_dict(base | {"engine": "cpu"}), measure=False)
    needed = [
        replace(planned, engine_kind=kind, engine_options=kind.Options(**gpus)).memory["GPU memory"]
        for gpus in ({}, {"gpus": 2})
    ]
    assert needed[1] - needed[0] == 2 * 12 * 8 * 8 * count + exchanged
