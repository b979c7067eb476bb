"""Leapfrog with block steps: it is leapfrog where all steps are equal, and saves forces where they are not."""

import numpy as np
import pytest
from motions import energy

import nbody
from nbody.cli.summary import summary_text
from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run.plan import plan
from nbody.scenario import Scenario

LENGTH = 0.02
GRAVITY = Gravity(softening="plummer", length=LENGTH)
BODIES = nbody.plummer(300, seed=2)


def moved(scheme, dt, steps, eta=None, bodies=BODIES, precision="float64"):
    """The motion after some steps, and the scheme."""
    kind = INTEGRATORS.load(scheme)
    integrator = kind(dt, kind.Options(eta=eta) if eta else None)
    engine = ENGINES.load("cpu")(GRAVITY, precision)
    motion = Motion(engine, engine.load(bodies))
    integrator.prepare(motion)
    integrator.start(motion)
    integrator.advance(motion, steps)
    return motion, integrator


def test_a_body_makes_the_longest_step_below_the_one_that_its_acceleration_suggests():
    """A pair at a distance of 2 with |a| = 1/4 each, and a heavy third body far away: √(2·0.5·0.02/|a|) is 0.28 for the
    pair, so 0.25 = 1/4 with dt = 1."""
    pair = Particles([1.0, 1.0], [[0.0, 0, 0], [2.0, 0, 0]], np.zeros((2, 3)))
    motion, scheme = moved("leapfrog_block", 1.0, 1, eta=0.5, bodies=pair)
    assert scheme.report(motion).pairs_per_step == 4 * 2**2


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_if_all_bodies_choose_dt_it_is_leapfrog_bit_for_bit(precision):
    block, scheme = moved("leapfrog_block", 1 / 256, 8, eta=10.0, precision=precision)
    plain, _ = moved("leapfrog", 1 / 256, 8, precision=precision)
    assert scheme.report(block).pairs_per_step == BODIES.count**2
    assert block.state.position.tobytes() == plain.state.position.tobytes()
    assert block.state.velocity.tobytes() == plain.state.velocity.tobytes()


def test_it_needs_fewer_forces_than_leapfrog_at_the_same_error():
    """A dense core in a wide halo: with steps for the core, leapfrog computes the halo's forces as often."""
    core, halo = nbody.plummer(100, seed=1), nbody.plummer(300, seed=4)
    bodies = Particles(
        np.concatenate([core.mass, halo.mass]),
        np.concatenate([core.position / 16, halo.position * 16]),
        np.concatenate([core.velocity * 4, halo.velocity / 4]),
    )
    start, _ = moved("leapfrog", 1 / 1024, 0, bodies=bodies)
    errors, forces = {}, {}
    for name, steps, eta in [("leapfrog", 1024, None), ("leapfrog_block", 8, 0.001)]:
        motion, scheme = moved(name, 1 / steps, steps, eta, bodies)
        errors[name] = abs(energy(motion) / energy(start) - 1)
        forces[name] = steps * scheme.report(motion).pairs_per_step
    assert errors["leapfrog_block"] < errors["leapfrog"] < 1e-3
    assert forces["leapfrog_block"] < 0.6 * forces["leapfrog"]


def test_halving_the_steps_of_all_bodies_shrinks_the_error_by_four():
    """η/4 and dt/2 halve every step. The reference is leapfrog with steps 16 times shorter than the shortest."""
    truth, _ = moved("leapfrog", 2.0**-12, 512)
    errors = []
    for k in (3, 5):
        motion, scheme = moved("leapfrog_block", 2.0**-k, 2 ** (k - 3), eta=0.02 / 4 ** (k - 3))
        assert scheme.report(motion).pairs_per_step > 5 * BODIES.count**2
        errors.append(np.linalg.norm(motion.state.position - truth.state.position))
    assert np.log2(errors[0] / errors[1]) / 2 == pytest.approx(2, abs=0.15)


def test_the_summary_counts_the_steps_of_single_bodies():
    """A pair that makes steps of dt/4, see above: four each in the first step of dt."""
    pair = Particles([1.0, 1.0], [[0.0, 0, 0], [2.0, 0, 0]], np.zeros((2, 3)))
    integrator = {"scheme": "leapfrog_block", "eta": 0.5}
    run = nbody.Simulation(pair, dt=1.0, softening="plummer:0.02", integrator=integrator, engine="cpu")
    first, later = run.run(1), run.run(3)
    assert (first.steps, first.blocks, first.body_steps) == (1, None, 8)
    counted = run.stepper.integrator.report(run.stepper.motion).body_steps
    assert later.body_steps == counted - 8 >= 24
    assert "  8 steps of single bodies" in summary_text(first)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ["gravity.softening=none", "gravity.length=0"],
            "gravity.softening.* from a softening length; choose scheme .*write 'softening: plummer",
        ),
        (["engine=matrix"], "choose --engine cpu"),
        (["integrator.eta=0"], "integrator.eta"),
    ],
)
def test_unsupported_combinations_are_refused(changes, message):
    scenario = Scenario.load("plummer").override(["integrator.scheme=leapfrog_block", *changes])
    with pytest.raises(InputError, match=message):
        plan(scenario)
