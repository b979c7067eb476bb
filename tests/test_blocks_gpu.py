"""Block steps on a GPU: the same motion as on the CPU, in the simulator at small N and on a card."""

import numpy as np
import pytest
from conftest import random_bodies
from motions import checkpoint, energy, restore
from motions import moving as ready
from test_pairs import cluster as with_a_pair
from test_pairs import passing

from nbody import compute
from nbody.forces import ENGINES
from nbody.initial.plummer import PlummerSphere
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.integrators.solvers.blocks import gpu as gpu_blocks
from nbody.integrators.solvers.blocks import memory
from nbody.integrators.solvers.blocks.memory import working_bytes
from nbody.law import Gravity

SOFTENED = Gravity(softening="plummer", length=1e-3)
BOTH = ("hermite4_block", "hermite6_block")


def moving(name, particles, engine, precision="float64", gravity=SOFTENED, dt=0.125, **options):
    """A scheme and a motion that is ready for its first step."""
    return ready(name, particles, dt, gravity, engine, precision, **options)


def bodies_of(motion):
    """Positions and velocities on the host."""
    arrays = motion.state.arrays()
    if "body" in arrays:
        return arrays["body"][:, :3], arrays["velocity"][:, :3]
    return arrays["position"], arrays["velocity"]


def cluster(count):
    return PlummerSphere().generate(count, SOFTENED, np.random.default_rng(5))


@pytest.mark.simulated
@pytest.mark.parametrize(
    "name,count,law,shared",
    [
        ("hermite4_block", 5, SOFTENED, True),
        ("hermite4_block", 35, Gravity(), False),
        ("hermite6_block", 5, SOFTENED, False),
    ],
)
def test_the_simulator_makes_the_blocks_of_the_cpu(name, count, law, shared):
    """A few blocks of a ragged number of bodies; sums in another order differ by rounding."""
    ends = []
    for engine in ("reference", "gpu-tiled"):
        scheme, motion = moving(name, cluster(count), engine, gravity=law, shared=shared)
        scheme.advance(motion, 2, 0.05)
        scheme.advance(motion, 2 if count == 5 else 1, 0.05)
        ends.append((bodies_of(motion), scheme._single, motion.state.clock.time))
    (expected, *facts), (got, *same) = ends
    assert same == facts
    np.testing.assert_allclose(got[0], expected[0], atol=1e-14)
    np.testing.assert_allclose(got[1], expected[1], atol=1e-12)


@pytest.mark.simulated
def test_the_simulator_reaches_an_earlier_end_as_the_cpu_does():
    ends = []
    for engine in ("cpu", "gpu-tiled"):
        scheme, motion = moving("hermite6_block", cluster(4), engine)
        scheme.advance(motion, 2, 0.05)
        scheme.advance(motion, 10, motion.state.clock.time * 1.1)
        ends.append((*bodies_of(motion), motion.state.clock.time, motion.state.clock.step, scheme._single))
    (x, v, *facts), (gx, gv, *same) = ends
    assert facts == same
    np.testing.assert_allclose(gx, x, atol=1e-14)
    np.testing.assert_allclose(gv, v, atol=1e-12)


@pytest.mark.simulated
def test_a_restored_run_goes_on_with_the_same_bits():
    whole, at_once = moving("hermite6_block", cluster(4), "gpu-tiled")
    whole.advance(at_once, 5, 0.05)
    scheme, motion = moving("hermite6_block", cluster(4), "gpu-tiled")
    scheme.advance(motion, 3, 0.05)
    saved = checkpoint(scheme, motion)
    scheme, motion = restore(*moving("hermite6_block", cluster(4), "gpu-tiled"), saved)
    scheme.advance(motion, 2, 0.05)
    for a, b in zip(bodies_of(motion), bodies_of(at_once), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.simulated
@pytest.mark.parametrize("name", BOTH[1:])
def test_the_simulator_forms_and_dissolves_a_pair_as_the_cpu_does(name):
    """Two blocks with the pair formed, one in which another body comes too near, and one with both bodies back; the last two
    by a run that goes on from a checkpoint."""
    close, facts, ends = passing(start=0.0215, speed=10, axis=1e-4), [], []
    for engine in ("reference", "gpu-tiled"):
        scheme, motion = moving(name, close, engine, gravity=Gravity(), eta=4.0)
        scheme.advance(motion, 2, 0.005)
        first = bodies_of(motion)
        saved = checkpoint(scheme, motion)
        scheme, motion = restore(*moving(name, close, engine, gravity=Gravity(), eta=4.0), saved)
        scheme.advance(motion, 2, 0.005)
        facts.append((*scheme.arrays()["pairs"], scheme._single, motion.state.clock.time))
        ends.append((*first, *bodies_of(motion)))
    assert facts[0] == facts[1] and facts[0][:2] == (1, 1)
    device = scheme._blocks._workers.first
    arrays = device.p, device.partial, device.listed, device.bodies.mass, device.bodies.limit
    assert sum(array.nbytes for array in arrays) <= working_bytes("gpu", 17, "float64")
    for got, expected, tolerance in zip(ends[1], ends[0], (1e-14, 1e-11, 1e-14, 1e-11), strict=True):
        np.testing.assert_allclose(got, expected, atol=tolerance)


@pytest.fixture
def divided(monkeypatch):
    """Few bodies are divided as many are; so several devices make their blocks."""
    for module in memory, gpu_blocks:
        monkeypatch.setattr(module, "parts_for", lambda count, mixed: 8)


@pytest.mark.simulated
@pytest.mark.parametrize(
    "name,precision,bodies,gravity,eta,sizes",
    [
        ("hermite6_block", "float64", cluster(33), SOFTENED, 0.5, (1, 3)),
        ("hermite4_block", "mixed", cluster(33), SOFTENED, 0.01, (1, 3)),
        ("hermite6_block", "float64", passing(start=0.0215, speed=10, axis=1e-4), Gravity(), 4.0, (1, 2)),
    ],
    ids=["order 6", "mixed", "pair"],
)
def test_the_simulator_makes_the_same_bits_on_any_number_of_devices(name, precision, bodies, gravity, eta, sizes, divided):
    """Each number of devices starts alike; then it makes a block from the checkpoint of one device. (The pair has formed
    before, and is dissolved then.) Three devices have unequal parts."""
    firsts, seconds = [], []
    for size in sizes:
        kind = INTEGRATORS.load(name)
        dt = 0.125 if gravity is SOFTENED else 0.005
        scheme, engine = kind(dt, kind.Options(eta=eta)), ENGINES.load("gpu-symmetric")(gravity, precision)
        engine._devices = (0,) * size
        motion = Motion(engine, engine.load(bodies))
        scheme.prepare(motion)
        scheme.start(motion)
        scheme.advance(motion, 1 if gravity is SOFTENED else 2, 0.005)
        firsts.append(checkpoint(scheme, motion))
        restore(scheme, motion, firsts[0])
        scheme.advance(motion, 1, 0.005)
        seconds.append(checkpoint(scheme, motion))
        for worker in scheme._blocks._workers._all:
            exchanged = sum(array.nbytes for array in worker.gathered)
            assert bool(exchanged) == (size > 1) and exchanged <= memory.bytes_to_exchange(bodies.count, precision)
    for ends in (firsts, seconds):
        for end in ends[1:]:
            assert end[2] == ends[0][2]
            for got, expected in zip(end[:2], ends[0][:2], strict=True):
                for column in expected:
                    np.testing.assert_array_equal(got[column], expected[column])
    assert tuple(seconds[0][1]["pairs"]) == ((0, 0) if gravity is SOFTENED else (1, 1))


@pytest.mark.simulated
def test_the_simulator_says_that_one_of_two_devices_makes_the_steps():
    scheme, engine = INTEGRATORS.load("hermite4_block")(0.125), ENGINES.load("gpu-symmetric")(SOFTENED, "mixed")
    engine._devices = (0, 0)
    motion = Motion(engine, engine.load(random_bodies(memory.PARTS_FROM[False])))
    scheme.prepare(motion)
    assert scheme.report(motion).message.startswith("gpus: one of 2 GPUs made the steps; in mixed precision")


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name,precision,tolerance",
    [("hermite4_block", "float64", 1e-11), ("hermite6_block", "float64", 1e-11), ("hermite4_block", "mixed", 1e-6)],
)
@pytest.mark.parametrize("count", [2, 33, 1000])
def test_a_card_moves_a_cluster_as_the_cpu_does(name, precision, tolerance, count):
    """A tenth of a unit. Rounding grows with the encounters of this time, by less than 1e3."""
    ends = []
    for engine, digits in (("cpu", "float64"), ("gpu-symmetric", precision)):
        scheme, motion = moving(name, cluster(count), engine, digits)
        first = energy(motion)
        scheme.advance(motion, 10**6, 0.1)
        assert motion.state.clock.time == 0.1
        assert abs(energy(motion) / first - 1) < 1e-6
        ends.append(bodies_of(motion))
    for a, b in zip(*ends, strict=True):
        assert np.median(np.abs(a - b)) < tolerance


@pytest.mark.gpu
@pytest.mark.parametrize("name,precision", [("hermite6_block", "float64"), ("hermite4_block", "mixed")])
def test_a_card_gives_the_same_bits_however_a_run_is_cut(name, precision):
    ends = []
    for cuts in ([10**6], [1, 25, 100, 10**6]):
        scheme, motion = moving(name, cluster(3000), "gpu-symmetric", precision)
        for steps in cuts:
            scheme.advance(motion, steps, 0.0625)
        assert motion.state.clock.time == 0.0625
        ends.append((motion.state.clock.step, scheme._single, *bodies_of(motion)))
    (step, single, *a), (again, singles, *b) = ends
    assert (step, single) == (again, singles)
    for one, other in zip(a, b, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.gpu
def test_a_pair_that_is_too_close_stops_a_card_and_is_named():
    from nbody.errors import RunFailed

    near = random_bodies(40)
    near.position[7] = near.position[31] + 1e-14
    with pytest.raises(RunFailed, match=r"below the smallest .*particles 7 and 31"):
        scheme, motion = moving("hermite6_block", near, "gpu-tiled", gravity=Gravity(), pairs=0.0)
        scheme.advance(motion, 10**6, 1.0)


@pytest.mark.gpu
@pytest.mark.parametrize("name,precision", [("hermite6_block", "float64"), ("hermite4_block", "mixed")])
def test_a_card_moves_a_cluster_with_a_hard_pair_in_few_blocks(name, precision):
    """As in ``test_pairs.py``: without Kepler's solution the pair alone needs hundreds of times the blocks."""
    blocks = []
    for axis in (None, 1e-6):
        scheme, motion = moving(name, with_a_pair(1000, axis), "gpu-symmetric", precision, gravity=Gravity())
        first = energy(motion)
        scheme.advance(motion, 10**6, 0.25)
        assert abs(energy(motion) / first - 1) < 1e-6
        blocks.append(motion.state.clock.step)
    assert blocks[1] < 2 * blocks[0] and tuple(scheme.arrays()["pairs"]) == (1, 0)


@pytest.mark.gpu
def test_a_card_dissolves_a_pair_as_the_cpu_does():
    """A body passes at forty semi-major axes; blocks and times are the same, the rest differs by rounding in 2000 orbits."""
    ends = []
    for engine in ("cpu", "gpu-symmetric"):
        scheme, motion = moving("hermite6_block", passing(), engine, gravity=Gravity(), eta=0.25)
        scheme.advance(motion, 10**7, 0.5)
        ends.append((tuple(scheme.arrays()["pairs"]), bodies_of(motion)[0][1:16]))
    assert ends[0][0] == ends[1][0] == (2, 1)
    np.testing.assert_allclose(ends[1][1], ends[0][1], atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("name,precision", [("hermite6_block", "float64"), ("hermite4_block", "mixed")])
@pytest.mark.parametrize("devices", [(0, 0, 0), (0, 1)], ids=["one card thrice", "two cards"])
def test_several_cards_make_the_same_bits_as_one(name, precision, devices, divided):
    """With a hard pair, and however the run is cut."""
    if max(devices) >= compute.device_count():
        pytest.skip("needs two GPUs")
    ends = []
    for used, cuts in (((0,), [10**6]), (devices, [1, 25, 100, 10**6])):
        scheme, engine = INTEGRATORS.load(name)(0.125), ENGINES.load("gpu-symmetric")(Gravity(), precision)
        engine._devices = used
        motion = Motion(engine, engine.load(with_a_pair(3000, 1e-6)))
        scheme.prepare(motion)
        scheme.start(motion)
        for steps in cuts:
            scheme.advance(motion, steps, 0.0625)
        ends.append((motion.state.clock.step, scheme._single, *scheme.arrays()["pairs"], *bodies_of(motion)))
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)
    assert ends[0][2] == 1
