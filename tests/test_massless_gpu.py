"""Bodies without mass on a GPU: in Numba's simulator and on a card."""

import numpy as np
import pytest
from conftest import random_bodies

from nbody.forces import ENGINES
from nbody.forces.direct import gpu_symmetric
from nbody.forces.direct.gpu_triangle import PairTiling
from nbody.forces.layers import layered
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run.simulation import Simulation
from nbody.state import Outputs

ENGINES_THAT_DIVIDE = [name for name in ENGINES if name.startswith("gpu") and ENGINES.load(name).can.massless]
EPS = {"float32": 2.0**-24, "mixed": 2.0**-24, "float64": 2.0**-53}


def bodies_of(count: int, massive: int, dimensions: int = 3, species: bool = False) -> Particles:
    """Bodies of which ``massive`` have mass, in no order."""
    bodies = random_bodies(count, dimensions)
    bodies.mass[np.random.default_rng(1).permutation(count)[massive:]] = 0.0
    if species:
        bodies.species, bodies.species_names = np.arange(count) % 2, ("stars", "dust")
    return bodies


def check(engine, precision, bodies, length=0.05):
    """Accelerations, potentials and the energy are the referee's; and the work is M · N."""
    law, massive = Gravity(1.3, bodies.dimensions, "plummer", length), int(np.count_nonzero(bodies.mass))
    made, right = layered(ENGINES.load(engine)(law, precision)), ENGINES.load("reference")(law, "float64")
    state, expected = made.load(bodies), right.load(bodies)
    right.evaluate(expected, Outputs.POTENTIAL)
    made.evaluate(state, Outputs.ACCELERATION)
    first, _ = state.values("acceleration", "potential")
    made.evaluate(state, Outputs.ENERGY)
    energy = state.frames.snapshot().wait().sums[1]
    state.invalidate()
    made.evaluate(state, Outputs.POTENTIAL)
    a, phi = state.values("acceleration", "potential")
    allowed = 20 * EPS[precision] * np.sqrt(bodies.count + 64)
    assert np.array_equal(first, a)
    assert np.abs(a - expected.acceleration).max() < allowed * np.abs(expected.acceleration).max()
    assert np.abs(phi - expected.potential).max() < allowed * np.abs(expected.potential).max()
    assert energy == pytest.approx(0.5 * bodies.mass @ expected.potential, rel=allowed)
    assert made.work(state, current=Outputs.NOTHING) == massive * bodies.count
    state.progress.watch, state.progress.requested = lambda computed: None, 0
    state.invalidate()
    made.evaluate(state)
    assert state.progress.requested == massive * bodies.count


@pytest.mark.simulated
@pytest.mark.parametrize("engine", ["gpu-tiled", "gpu-split", "gpu-symmetric"])
def test_the_simulator_computes_what_the_referee_does(monkeypatch, engine):
    monkeypatch.setattr(gpu_symmetric, "tiling_for", lambda *of: PairTiling(1, 1))
    check(engine, "float64", bodies_of(45, 33))


@pytest.mark.simulated
@pytest.mark.parametrize("accelerations", [True, False])
def test_simulated_rows_return_what_is_new(accelerations):
    bodies = bodies_of(70, 3)
    state = layered(ENGINES.load("gpu-tiled")(Gravity(), "float64")).load(bodies)
    state.acceleration.copy_to_device(np.full((70, 4), 7.0))
    state.workspace.state.acceleration.copy_to_device(np.ones((70, 4)))
    state.workspace.scatter(state, Outputs.POTENTIAL, None, accelerations)
    found = state.acceleration.copy_to_host()
    assert (found[:, :3] == (1 if accelerations else 7)).all()
    assert (found[:, 3] == 1).all()


@pytest.mark.simulated
def test_a_simulated_tile_has_softening_per_species_too():
    check("gpu-tiled", "float64", bodies_of(30, 9, species=True), {"stars": 0.05, "dust": 0.3})


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ENGINES_THAT_DIVIDE)
@pytest.mark.parametrize("precision", ["float32", "mixed", "float64"])
@pytest.mark.parametrize("count,massive,dimensions", [(4097, 1, 3), (4097, 700, 2), (4097, 3000, 3)])
def test_the_device_computes_what_the_referee_does(engine, precision, count, massive, dimensions):
    if precision not in ENGINES.load(engine).can.precisions:
        pytest.skip(f"{engine} has no {precision}")
    check(engine, precision, bodies_of(count, massive, dimensions))


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_device_has_softening_per_species_too(precision):
    check("gpu-tiled", precision, bodies_of(3000, 500, species=True), {"stars": 0.05, "dust": 0.3})


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["gpu-split", "gpu-symmetric", "gpu-tiled"])
def test_a_run_with_graphs_is_the_cpus(engine):
    bodies, ends = bodies_of(2000, 300), []
    for name in (engine, "cpu"):
        run = Simulation(bodies, dt=0.001, softening=0.1, engine=name, precision="float64", every=10)
        run.run(steps=100)
        ends.append(run.particles.position)
    assert np.abs(ends[0] - ends[1]).max() < 1e-10
