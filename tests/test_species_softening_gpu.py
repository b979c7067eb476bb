"""Softening per species on a GPU: in Numba's simulator and on a card."""

import numpy as np
import pytest
from test_species_softening import EPS, bodies_of, evaluated, law_of, scenario

from nbody.forces.direct import gpu_symmetric
from nbody.forces.direct.gpu_triangle import PairTiling
from nbody.run.simulation import Simulation
from nbody.state import Outputs


def check(softening, precision, dimensions, count, engine="gpu-tiled", massless=0.2):
    """An engine against the referee."""
    bodies, law = bodies_of(count, dimensions, massless), law_of(softening, dimensions)
    _, right = evaluated("reference", law, bodies)
    a, phi = evaluated(engine, law, bodies, precision)[1].values("acceleration", "potential")
    allowed = 20 * EPS[precision] * np.sqrt(count + 64)
    assert np.abs(a - right.acceleration).max() <= allowed * np.abs(right.acceleration).max()
    assert (np.abs(phi - right.potential) <= allowed * np.abs(right.potential)).all()


def check_run(steps, **options):
    """A run of two species, some steps of which are one graph on a card, is that of the referee."""
    ends = []
    for engine in ("gpu-tiled", "reference"):
        run = Simulation(scenario(engine=engine, steps=steps, **options))
        assert abs(run.run().energy_error) < 1e-4
        ends.append(run.particles.position)
    assert np.abs(ends[0] - ends[1]).max() < 1e-11


@pytest.mark.simulated
@pytest.mark.parametrize(
    "softening,precision,dimensions,count",
    [("plummer", "float32", 3, 35), ("spline", "float64", 2, 20)],  # a full tile and a ragged one; one that is ragged
)
def test_the_simulator_computes_what_the_referee_does(softening, precision, dimensions, count):
    check(softening, precision, dimensions, count)


@pytest.mark.simulated
@pytest.mark.parametrize("massless", [0.0, 0.5])
def test_each_pair_once_has_the_larger_length_too(monkeypatch, massless):
    monkeypatch.setattr(gpu_symmetric, "tiling_for", lambda *of: PairTiling(1, 1))
    check("spline", "float64", 3, 40, "gpu-symmetric", massless)


@pytest.mark.simulated
def test_a_simulated_run_is_the_referees():
    check_run(2)


@pytest.mark.gpu
@pytest.mark.parametrize("softening", ["plummer", "spline"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("count", [1, 255, 1000, 4097])
@pytest.mark.parametrize("engine", ["gpu-tiled", "gpu-symmetric"])
def test_the_device_agrees_with_the_referee(softening, precision, dimensions, count, engine):
    check(softening, precision, dimensions, count, engine)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("massless", [0.0, 0.5])
def test_each_pair_once_in_large_tiles(precision, massless):
    check("plummer", precision, 3, 40000, "gpu-symmetric", massless)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("engine", ["gpu-tiled", "gpu-symmetric"])
def test_the_potential_changes_no_bit_of_the_forces(precision, engine):
    bodies, law = bodies_of(5000), law_of("plummer")
    both, _ = evaluated(engine, law, bodies, precision)[1].values("acceleration", "potential")
    alone, _ = evaluated(engine, law, bodies, precision, Outputs.ACCELERATION)[1].values("acceleration", "potential")
    assert alone.tobytes() == both.tobytes()


@pytest.mark.gpu
def test_a_run_on_the_device_is_the_referees():
    pytest.importorskip("astropy")  # the scenario has units
    check_run(40)
