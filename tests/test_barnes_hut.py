"""The tree to read: its error and its work follow the known laws, and it judges the fast trees."""

import numpy as np
import pytest
from conftest import sample
from test_tree import PLACES, SOFTENED, bodies, errors, evaluated, exact, sphere

import nbody
from nbody import Scenario, Simulation
from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.forces.choose import choose
from nbody.forces.problem import Problem
from nbody.forces.tree.barnes_hut import BarnesHutEngine, BarnesHutOptions
from nbody.law import Gravity
from nbody.state import Outputs


def plain(particles, theta, law=SOFTENED, targets=None):
    """Accelerations, potentials, and the interactions per body."""
    engine = BarnesHutEngine(law, "float64", BarnesHutOptions(theta=theta))
    state = engine.load(particles)
    counted = []
    state.progress.report = counted.append
    engine.evaluate(state, Outputs.POTENTIAL, targets)
    return *state.values("acceleration", "potential"), sum(counted) / particles.count


def relative(found, expected):
    return np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)


LAWS = SOFTENED, Gravity(1.0, 3, "cutoff", 0.02), Gravity(2.0, 3)
# Each place and each law; in a campaign all pairs of them.
PAIRS = [(place, LAWS[(k + turn) % 3]) for turn in range(3) for k, place in enumerate(PLACES)]


@pytest.mark.parametrize(("place", "law"), sample(PAIRS, len(PLACES)), ids=lambda each: getattr(each, "softening", each))
def test_a_small_angle_opens_every_cell_so_that_all_pairs_are_summed(place, law):
    particles = bodies(PLACES[place](np.random.default_rng(3)))
    for found, expected in zip(plain(particles, 1e-9, law), exact(law, particles, Outputs.POTENTIAL), strict=False):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_the_error_of_monopoles_falls_with_the_square_of_the_angle():
    """The first moment that is left out is the quadrupole, l²/d² of the force; and the median error at θ = 1 is about a per
    cent (Hernquist 1987)."""
    particles = bodies(sphere())
    expected = exact(SOFTENED, particles)[0]
    median = [np.median(relative(plain(particles, theta)[0], expected)) for theta in (1.0, 0.5, 0.25)]
    assert 3e-3 < median[0] < 3e-2
    assert median[0] > 3 * median[1] > 9 * median[2]


def test_the_work_per_body_grows_like_the_logarithm_of_their_number():
    """N log N in all (Barnes & Hut 1986): each doubling adds as many interactions as the one before."""
    few, twice, four, eight = (plain(bodies(sphere(n)), 0.7)[2] for n in (2000, 4000, 8000, 16000))
    assert 0.7 * (twice - few) < eight - four < 1.3 * (twice - few) and eight < 2 * few


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_at_one_angle_multipoles_have_smaller_errors_than_monopoles(place):
    """Of half the bodies and of 99 %: the fast tree's θ is (r + R)/d, with order 3."""
    particles = bodies(place(np.random.default_rng(3)))
    own = relative(plain(particles, 0.6)[0], exact(SOFTENED, particles)[0])
    fast = errors(SOFTENED, particles, theta=0.6)
    assert np.median(fast) < np.median(own) and np.quantile(fast, 0.99) < np.quantile(own, 0.99)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_the_fast_tree_is_as_near_to_the_referee_as_both_promise(place):
    particles = bodies(place(np.random.default_rng(3)))
    judge, phi, _ = plain(particles, 0.1)
    state = evaluated(SOFTENED, particles, outputs=Outputs.POTENTIAL, accuracy=1e-3)
    a, potential = state.values("acceleration", "potential")
    promised = 1e-3 + BarnesHutEngine(SOFTENED, "float64", BarnesHutOptions(theta=0.1)).error(particles).typical
    found = relative(a, judge)
    assert np.median(found) < promised and np.quantile(found, 0.99) < 10 * promised
    assert np.median(np.abs(potential / phi - 1)) < promised


def test_bodies_in_one_place_in_any_number_are_summed_one_by_one():
    particles = bodies(np.repeat(sphere(4, 5), 300, axis=0))
    a, phi, work = plain(particles, 0.5)
    expected, potential = exact(SOFTENED, particles, Outputs.POTENTIAL)
    np.testing.assert_allclose(a, expected, rtol=0.02)
    np.testing.assert_allclose(phi, potential, rtol=0.02)
    assert work >= 300
    alone = plain(bodies(np.ones((200, 3))), 0.5)
    assert not alone[0].any() and np.allclose(alone[1], -2.0 * 199 / 200 / 0.05)


def test_some_bodies_have_the_bits_of_all():
    particles, some = bodies(sphere()), np.arange(0, 3000, 7)
    np.testing.assert_array_equal(plain(particles, 0.5, targets=some)[0][some], plain(particles, 0.5)[0][some])


def test_a_run_in_a_plane_with_the_plain_tree_conserves_energy():
    text = {
        "initial": {"generator": "disk", "particles": 200},
        "gravity": {"softening": "plummer", "length": 0.1, "dimensions": 2},
        "engine": {"name": "barnes-hut", "theta": 0.3},
        "integrator": {"scheme": "leapfrog", "dt": 0.001, "steps": 20},
    }
    run = Simulation(Scenario.from_dict(text))
    run.run()
    assert abs(run.energies.error) < 1e-3


def test_it_is_used_only_where_a_user_names_it():
    law = Gravity(softening="plummer", length=0.1)
    for name in ("auto", "tree"):
        assert choose(name, Problem(law, "float64", 10**6, accuracy=1e-2), measure=False).name != "barnes-hut"
    a = nbody.accelerations(sphere(), np.full(3000, 1 / 3000), engine="barnes-hut", theta=0.3)
    assert relative(a, exact(Gravity(), bodies(sphere()))[0]).mean() < 0.01
    for engine, law in (("barnes-hut", "spline"), ("barnes-hut", "none")):
        refused = ENGINES.load(engine).supports(Problem(Gravity(softening=law, length=0.1 * (law != "none"))))
        assert bool(refused) == (law == "spline")
    with pytest.raises(InputError, match="theta"):
        nbody.accelerations(sphere(), np.full(3000, 1 / 3000), engine="barnes-hut", theta=2.0)
