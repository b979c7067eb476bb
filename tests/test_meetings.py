"""Bodies that meet without softening: their energy is infinite, every engine says so, and the run stops with their names."""

from itertools import product

import numpy as np
import pytest

from nbody import Scenario, Simulation
from nbody.compute import SIMULATED
from nbody.errors import RunFailed
from nbody.forces.api import accelerations
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run.guards import check_finite
from nbody.state import Frame

SOFT = Gravity(softening="plummer", length=0.1)
HOST = ["reference", "cpu", "matrix:numpy"]
SIMULATED_ENGINES = ["gpu-global", "gpu-tiled", "gpu-kahan", "gpu-symmetric", "gpu-split", "matrix"]
ENGINES_HERE = ["gpu-tiled", "gpu-symmetric", "matrix"] if SIMULATED else HOST
PRECISIONS = ["float32", "float64"]
MEETING = list(zip(PRECISIONS * 3, SIMULATED_ENGINES, strict=True)) if SIMULATED else list(product(PRECISIONS, HOST))
"""In the simulator every engine and both precisions, and not every combination."""

pytestmark = pytest.mark.simulated if SIMULATED else pytest.mark.filterwarnings("error::RuntimeWarning")


def run_of(particles, engine, precision="float64", softening="none", **integrator):
    """A run of so few bodies that they hardly feel each other."""
    length = {} if softening == "none" else {"length": 0.1}
    values = {
        "initial": {"generator": "plummer", "particles": particles.count},
        "gravity": {"softening": softening, "G": 1e-20} | length,
        "integrator": {"dt": 1.0, "steps": 2} | integrator,
        "engine": engine,
        "precision": precision,
    }
    return Simulation(Scenario.from_dict(values), particles=particles)


def about_to_meet():
    """Bodies 1 and 2 are in the same place after one step of 1."""
    x = np.array([[8.0, 0, 0], [-1, 1, 0], [1, 1, 0], [0, 9, 0]])
    v = np.array([[0.0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 0, 0]])
    return Particles(np.ones(4), x, v)


@pytest.mark.parametrize("precision,engine", MEETING)
def test_a_run_in_which_two_bodies_meet_stops_and_names_them(engine, precision):
    if engine == "reference" and precision == "float32":
        pytest.skip("the referee is float64")
    with pytest.raises(RunFailed, match=r"step 1: particles 1 and 2 .* are in the same place, and there is no softening"):
        run_of(about_to_meet(), engine, precision, steps=1).run()


@pytest.mark.parametrize("engine", ENGINES_HERE)
def test_with_softening_they_pass_through_each_other(engine):
    run = run_of(about_to_meet(), engine, softening="plummer")
    assert run.run().step == 2


@pytest.mark.skipif(SIMULATED, reason="host engines")
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("count", [3, 300])
def test_the_potential_of_bodies_in_the_same_place_is_minus_infinity(precision, count):
    """As the referee has it."""
    rng = np.random.default_rng(1)
    position, mass = rng.normal(size=(count, 3)).round(3), rng.uniform(1e-6, 1, count)
    position[2], mass[1] = position[0], 0.0
    if count > 3:
        position[8], position[9] = -0.0, 0.0
    a, phi = accelerations(position, mass, engine="cpu", precision=precision, potential=True)
    _, true = accelerations(position, mass, engine="reference", potential=True)
    finite = np.isfinite(true)
    assert (np.isfinite(phi) == finite).all() and (phi[~finite] == -np.inf).all() and not finite[0]
    assert phi[finite] == pytest.approx(true[finite], rel=1e-5) and np.isfinite(a).all()


@pytest.mark.skipif(SIMULATED, reason="host engines")
@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize("options", [{"eta": 0.01, "dt": None}, {"eta": 0.01, "dt": 0.125}, {"dt": 0.125}])
def test_hermite_stops_where_two_bodies_collide_and_names_them(engine, options):
    """Two bodies fall on each other from rest: the adaptive step shrinks until the time no longer changes, a fixed step
    makes them miss each other by an error of the energy, which stops the run."""
    x = np.array([[5.0, 0, 0], [-0.5, 0, 0], [0.5, 0, 0]])
    particles = Particles(np.array([1e-9, 1.0, 1.0]), x, np.zeros((3, 3)))
    values = {
        "initial": {"generator": "plummer", "particles": 3},
        "integrator": {"scheme": "hermite4", "end": 1.0} | {k: v for k, v in options.items() if v},
        "record": {"dt": 0.125},
        "engine": engine,
        "precision": "float64",
        "on_energy_error": {"limit": 1e-3, "action": "stop"},
    }
    with pytest.raises(RunFailed) as failed:
        Simulation(Scenario.from_dict(values), particles=particles).run()
    line = str(failed.value)
    assert "\n" not in line
    assert "particles 1 and 2" in line if "eta" in options else "relative energy error" in line


@pytest.mark.skipif(SIMULATED, reason="host engines")
@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_hermite_stops_where_two_bodies_are_in_the_same_place(engine):
    with pytest.raises(RunFailed, match=r"step 1: particles 1 and 2 .* are in the same place"):
        run_of(about_to_meet(), engine, scheme="hermite4", steps=1).run()


CAUSES = {
    "first frame": (0, SOFT, np.nan, "a mass, a distance or G is too large"),
    "softened": (3, SOFT, np.nan, "likely a time step too large"),
    "unsoftened": (3, Gravity(), np.nan, "likely a close encounter without softening, or a time step"),
}


@pytest.mark.parametrize("step,gravity,value,cause", CAUSES.values(), ids=CAUSES)
def test_what_is_no_longer_finite_is_blamed_on_what_can_be_its_cause(step, gravity, value, cause):
    position = np.arange(9.0).reshape(3, 3)
    velocity = position.copy()
    velocity[1] = value
    frame = Frame(step, 0.0, position, velocity, sums=np.full(8, value))
    with pytest.raises(RunFailed, match=f"step {step}: the velocity of particle 1 is no longer .*{cause}"):
        check_finite(frame, gravity)
    sums = np.array([np.inf, *[0.0] * 7])
    with pytest.raises(RunFailed, match="the kinetic energy is no longer"):
        check_finite(Frame(step, 0.0, position, position, sums=sums), gravity)
