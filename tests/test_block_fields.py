"""External fields in block steps: both schemes keep their orders, on either processor, with and without a hard pair."""

import math
from copy import deepcopy
from typing import ClassVar

import numpy as np
import pytest
from motions import checkpoint, energy, moving, prepared, restore
from test_blocks_gpu import bodies_of, cluster
from test_pairs import cluster as with_a_pair

import nbody
from nbody.errors import InputError
from nbody.fields.field import Field
from nbody.fields.potentials import NFW, Plummer, PointMass
from nbody.law import Gravity
from nbody.particles import Particles

SOFTENED = Gravity(softening="plummer", length=0.1)
BOTH = [("hermite4_block", 0.01, 4), ("hermite6_block", 0.4, 2)]
STATIC = [
    Plummer(mass=3.0, b=1.5),
    NFW(mass=1.0, a=2.0, centre=(1.0, 0.0, 0.0)),
    PointMass(mass=1.0, centre=(9.0, 0, 0)),
]


class Turning(Field):
    """A tide that changes, a drag, and a force across the velocity."""

    time_dependent: ClassVar[bool] = True
    takes: ClassVar[str] = "x, y, z, vx, vy, vz, t"

    def parameters(self, G: float) -> tuple[float, ...]:
        return ()

    def size(self) -> None:
        return None

    @staticmethod
    def evaluate(x, y, z, vx, vy, vz, t):
        f = 1 + 0.3 * math.sin(1.3 * t)
        return -f * x - 0.2 * vx + 0.5 * vy, -y - 0.2 * vy - 0.5 * vx, -z * f, 0.0


CHANGING = [Plummer(mass=3.0, b=1.5), Turning()]


def three():
    return Particles(
        mass=np.array([1.0, 0.5, 0.25]),
        position=np.array([[1.0, 0.2, 0.1], [-2.0, 0.1, 0.3], [0.3, 1.5, -0.7]]),
        velocity=np.array([[0.1, 1.0, 0.2], [0.2, -0.5, 0.1], [-1.0, 0.3, 0.4]]),
    )


def end_of(name, fields, end=2.0, **options):
    scheme, motion = moving(name, three(), gravity=SOFTENED, fields=fields, **options)
    first = energy(motion)
    scheme.advance(motion, 10**6, end)
    return motion, abs(energy(motion) / first - 1)


@pytest.mark.parametrize(("name", "eta", "ratio"), BOTH)
def test_a_scheme_of_block_steps_keeps_its_order_in_fields(name, eta, ratio):
    """Against ias15, which is exact to rounding here; steps go as √η in order 4 and as η in order 6. A snap of a force by
    velocity without the jerk of that force would show as order 3."""
    exact, _ = end_of("ias15", CHANGING)
    ends = [end_of(name, CHANGING, eta=eta / r)[0] for r in (1, ratio**2)]
    errors = [np.abs(motion.state.position - exact.state.position).max() for motion in ends]
    order = 4 if name == "hermite4_block" else 6
    assert errors[0] < 1e-4 and math.log2(errors[0] / errors[1]) / 2 == pytest.approx(order, abs=0.7)


def test_the_energy_in_static_fields_is_kept_to_the_order_of_the_scheme():
    """On orbits that do not close the error is of order 6 in η, or better."""
    coarse, fine = (end_of("hermite6_block", STATIC, eta=eta)[1] for eta in (0.4, 0.1))
    assert fine < 1e-10 and coarse / fine > 4**5.3


@pytest.mark.parametrize(("name", "eta", "ratio"), BOTH)
def test_a_run_in_fields_goes_on_from_a_checkpoint_with_the_same_bits(name, eta, ratio):
    scheme, motion = moving(name, three(), gravity=SOFTENED, fields=CHANGING, eta=eta)
    scheme.advance(motion, 20)
    saved = deepcopy(checkpoint(scheme, motion))
    scheme.advance(motion, 10**6, 5.0)
    again, there = restore(*prepared(name, three(), gravity=SOFTENED, fields=CHANGING, eta=eta), saved)
    for _ in range(3):
        again.advance(there, 3)
    again.advance(there, 10**6, 5.0)
    np.testing.assert_array_equal(there.state.position, motion.state.position)


def test_a_hard_pair_in_a_field_moves_on_keplers_orbit_until_the_tide_is_too_strong():
    """Across the pair of 1e-4 the tide of a point mass is 2 M 1e-12/(27 m) of the pair's force: for M = 1 less than the
    threshold of 1e-6, with m = 1/48, for 1e7 more, so that no pair forms."""
    formed = []
    for mass in (1.0, 1e7):
        far = PointMass(mass=mass, centre=(3.0, 0.0, 0.0))
        scheme, motion = moving("hermite6_block", with_a_pair(axis=1e-4), gravity=Gravity(), fields=[far])
        first = energy(motion)
        scheme.advance(motion, 100, 0.002)
        formed.append(scheme.arrays()["pairs"][0])
        if formed[-1]:
            assert abs(energy(motion) - first) < 1e-7 * abs(first)
    assert formed == [1, 0]


def test_a_cluster_in_a_galaxy_keeps_its_own_energy():
    """From YAML: 24 stars with -7 of their own energy and -1e6 in the galaxy's field, which is a hundred times their forces;
    the error is below 1e-3 of their own, 1e-8 of the whole."""
    text = """
initial:
  combine:
    - {generator: plummer, particles: 24, seed: 2, mass: 24, virial_radius: 40, offset: [8000, 0, 0], velocity: [0, 200, 5]}
gravity: {G: 1, softening: plummer, length: 0.5}
fields: [{field: logarithmic_halo, v: 200, core: 1000, q: 0.9}]
integrator: {scheme: hermite6_block, eta: 0.25, end: 4}
engine: cpu
precision: float64
record: {dt: 0.5}
"""
    run = nbody.Simulation(nbody.Scenario.from_text(text))
    run.run()
    assert abs(run.summary.energy_error) < 1e-8


def test_a_force_about_a_body_is_refused_by_block_steps():
    with pytest.raises(InputError, match="knows fields with a fixed centre, and J2 acts about a body"):
        nbody.Simulation(
            three(), integrator="hermite6_block", engine="cpu", precision="float64", softening=0.1,
            fields=[nbody.fields.J2(about=0, j2=1e-3, radius=0.01)],
        )  # fmt: skip


@pytest.mark.simulated
@pytest.mark.parametrize(
    ("name", "precision", "fields", "tolerance"),
    [("hermite6_block", "float64", STATIC, 1e-13), ("hermite4_block", "mixed", CHANGING, 1e-6)],
)
def test_the_simulator_makes_the_blocks_of_the_cpu_in_fields(name, precision, fields, tolerance):
    ends = []
    for engine in ("reference", "gpu-symmetric"):
        number = precision if engine == "gpu-symmetric" else "float64"
        scheme, motion = moving(name, cluster(4), 0.125, SOFTENED, engine, number, fields)
        scheme.advance(motion, 4, 0.05)
        ends.append((bodies_of(motion), scheme._single, motion.state.clock.time))
    (expected, *facts), (got, *same) = ends
    if precision == "float64":
        assert same == facts
    np.testing.assert_allclose(got[0], expected[0], atol=tolerance)
    np.testing.assert_allclose(got[1], expected[1], atol=10 * tolerance)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "precision", "tolerance"), [
    ("hermite6_block", "float64", 1e-9), ("hermite4_block", "float64", 1e-9), ("hermite4_block", "mixed", 1e-4),
])  # fmt: skip
@pytest.mark.parametrize("fields", [STATIC, CHANGING], ids=["static", "changing"])
def test_a_card_moves_a_cluster_in_fields_as_the_cpu_does(name, precision, tolerance, fields):
    ends = []
    for engine in ("cpu", "gpu-symmetric"):
        number = precision if engine == "gpu-symmetric" else "float64"
        scheme, motion = moving(name, cluster(64), 0.125, SOFTENED, engine, number, fields)
        scheme.advance(motion, 10**6, 0.25)
        ends.append(bodies_of(motion)[0])
    np.testing.assert_allclose(*ends, atol=tolerance)
