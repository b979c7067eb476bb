"""The GPU engines' indices and arithmetic in Numba's simulator, at small ragged sizes."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import random_bodies, sample
from pretended_team import Copies, run_ranks
from test_forces_gpu import BOUND, LENGTHS, relative_error
from test_forces_gpu_ladder import with_masses
from test_forces_matrix import excess

from nbody import compute
from nbody.forces import ENGINES
from nbody.forces.api import accelerations, potential
from nbody.forces.direct import gpu_symmetric, gpu_triangle
from nbody.forces.direct.gpu_pair_sums import node_bytes
from nbody.forces.direct.gpu_triangle import PairTiling
from nbody.forces.layers import layered
from nbody.forces.transports import ranks as ranks_layer
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.state import Outputs


def forces(engine, bodies, softening, precision):
    """Accelerations and potentials by an engine."""
    law = {"softening": softening, "length": LENGTHS[softening]}
    return accelerations(bodies.position, bodies.mass, engine=engine, precision=precision, potential=True, **law)


@pytest.mark.simulated
@pytest.mark.parametrize(
    "engine,softening,dimensions,precision,count",
    [
        ("gpu-tiled", "plummer", 3, "float32", 40),  # two tiles (of the simulator), the second ragged
        ("gpu-unrolled", "plummer", 3, "float32", 150),
        ("gpu-global", "plummer", 3, "float32", 65),
        ("gpu-kahan", "cutoff", 2, "float32", 65),
        ("gpu-tiled", "none", 3, "float64", 33),
        ("gpu-global", "plummer", 2, "float64", 1),
        ("gpu-unrolled", "plummer", 2, "float64", 1),
        ("gpu-kahan", "spline", 3, "float32", 33),
    ],
)
def test_the_simulator_agrees_with_the_referee(engine, softening, dimensions, precision, count):
    bodies = random_bodies(count, dimensions)
    got, got_phi = forces(engine, bodies, softening, precision)
    a, phi = forces("reference", bodies, softening, "float64")
    if count == 1:
        assert got.tolist() == [[0.0] * dimensions]
        assert got_phi.tolist() == [0.0]
    else:
        assert relative_error(got, a) < BOUND[precision]
        assert np.abs(got_phi - phi).max() < BOUND[precision] * np.abs(phi).mean()


@pytest.mark.simulated
@pytest.mark.parametrize(
    ("engine", "softening", "dimensions", "precision", "count"),
    [("matrix", "plummer", 3, "float32", 37), ("matrix:k07", "none", 2, "float64", 34)],
)
def test_a_simulated_matrix_product_agrees_with_the_referee(engine, softening, dimensions, precision, count):
    bodies, law = random_bodies(count, dimensions), Gravity(1.0, dimensions, softening, LENGTHS[softening])
    assert max(excess(engine, bodies, law, precision, *forces(engine, bodies, softening, precision))) <= 1


HERE, SIMULATED = ("reference", "cpu", "barnes-hut", "matrix:numpy", "cpu-tree"), pytest.mark.simulated
ON_A_GPU = ("gpu-tiled", "gpu-symmetric", "gpu-tree", "matrix:k07")


@pytest.mark.parametrize("engine", [*sample(HERE, 4), *(pytest.param(engine, marks=SIMULATED) for engine in ON_A_GPU)])
def test_sources_without_mass_add_nothing_to_a_potential(engine):
    """Nor in the place of another body or point: 0 · ∞ would be a NaN."""
    given = {"engine": engine, "precision": ENGINES.load(engine).can.precisions[0]}
    assert potential([[1.0, 0, 0]], [1.0], at=[[3.0, 0, 0]] * 2, **given) == pytest.approx(-0.5)
    phi = potential([[0.0, 0, 0], [0.0, 0, 0], [1.0, 0, 0]], [1.0, 0.0, 1.0], **given)
    assert phi[[0, 2]] == pytest.approx(-1)
    assert phi[1] == -np.inf


@pytest.mark.parametrize("engine", ["cpu", pytest.param("gpu-kahan", marks=SIMULATED)])
def test_a_body_without_mass_in_the_place_of_another_adds_nothing_to_the_energy(engine):
    """½ m φ with m = 0 and φ = -∞ would be a NaN, and end the run. Two masses of 1 at a distance of 1: W = -1."""
    bodies = Particles(np.array([1.0, 0, 1]), np.array([[0.0, 0, 0], [0, 0, 0], [1, 0, 0]]), np.zeros((3, 3)))
    made = ENGINES.load(engine)(Gravity(), ENGINES.load(engine).can.precisions[0])
    state = made.load(bodies)
    made.evaluate(state, Outputs.POTENTIAL)
    assert state.frames.snapshot().wait().sums[1] == pytest.approx(-1)


def with_energy(engine, bodies, precision):
    """Accelerations and the sum of the potential energy of an evaluation that is asked for no more."""
    made = ENGINES.load(engine)(Gravity(1.0, 3, "plummer", LENGTHS["plummer"]), precision)
    state = made.load(bodies)
    made.evaluate(state, Outputs.ENERGY)
    return state.values("acceleration")[0], state.frames.snapshot().wait().sums[1]


def use_tiling(monkeypatch, tiling):
    """Let gpu-symmetric take tiles that the simulator can work through."""
    if tiling:
        monkeypatch.setattr(gpu_symmetric, "tiling_for", lambda *of: tiling)


WITH_SHUFFLES = {
    "split": ("gpu-split", "float32", None, random_bodies(33)),
    # one tile, two chunks, one nearly empty
    "rows past the end": ("gpu-symmetric", "float32", None, random_bodies(33)),
    # columns behind the tile, many runs
    "three tiles": ("gpu-symmetric", "float32", PairTiling(1, 1), random_bodies(65)),
    # weighted at the end
    "equal masses": ("gpu-symmetric", "float32", PairTiling(1, 2), with_masses(np.full(65, 0.7))),
    "mixed": ("gpu-symmetric", "mixed", PairTiling(1, 2), random_bodies(65)),
}


@pytest.mark.simulated
@pytest.mark.parametrize("engine,precision,tiling,bodies", WITH_SHUFFLES.values(), ids=WITH_SHUFFLES)
def test_the_simulator_with_shuffles_agrees_with_the_referee(monkeypatch, engine, precision, tiling, bodies):
    use_tiling(monkeypatch, tiling)
    got, got_phi = forces(engine, bodies, "plummer", precision)
    same, energy = with_energy(engine, bodies, precision)
    a, phi = forces("reference", bodies, "plummer", "float64")
    assert np.abs(got - a).max() < 5e-6 * np.sqrt((a**2).sum(axis=1)).mean()
    assert np.abs(got_phi - phi).max() < 5e-6 * np.abs(phi).mean()
    assert energy == pytest.approx(0.5 * bodies.mass @ phi, rel=1e-6)
    assert np.array_equal(got, same)


@pytest.mark.simulated
@pytest.mark.parametrize("masses", ["equal", "product", "separate"])
def test_a_spline_is_no_power_of_the_distance_and_each_pair_once_has_it_too(monkeypatch, masses):
    use_tiling(monkeypatch, PairTiling(1, 2))
    kinds = {"equal": np.full(40, 0.7), "product": np.linspace(1, 2, 40), "separate": np.arange(40.0)}
    bodies = with_masses(kinds[masses])
    got, got_phi = forces("gpu-symmetric", bodies, "spline", "float64")
    a, phi = forces("reference", bodies, "spline", "float64")
    assert np.abs(got - a).max() < 1e-13 * np.abs(a).max()
    assert np.abs(got_phi - phi).max() < 1e-13 * np.abs(phi).max()


@pytest.mark.simulated
@pytest.mark.parametrize("precision", ["float32", "mixed", "float64"])
def test_one_body_alone_has_no_acceleration_from_padding(monkeypatch, precision):
    use_tiling(monkeypatch, PairTiling(1, 2))
    acceleration, potential = forces("gpu-symmetric", random_bodies(1), "plummer", precision)
    _, energy = with_energy("gpu-symmetric", random_bodies(1), precision)
    assert not acceleration.any() and not potential.any() and energy == 0


@pytest.fixture
def pretended(monkeypatch):
    """A function that computes forces on as many devices, or ranks with one each, as wanted: all of them the simulator's
    only one."""

    def computed(
        devices, bodies, precision, outputs, engine="gpu-symmetric", gravity=PRETENDED, budget=None, ranks=1, nccl=False
    ):
        monkeypatch.setattr(ranks_layer, "connected", Copies if nccl else lambda team: None)
        monkeypatch.setattr(compute, "devices_for", lambda *of: (0,) * devices)
        monkeypatch.setattr(compute, "resident_blocks", lambda *of: 20)
        monkeypatch.setattr(gpu_triangle, "SEGMENTS_FROM", 1)
        kind = ENGINES.load(engine)
        monkeypatch.setattr(kind, "can", kind.can._replace(divided_from=1))
        monkeypatch.setattr(ranks_layer, "DIVIDED_FROM_RANKS", dict.fromkeys(ranks_layer.DIVIDED_FROM_RANKS, 1))
        if budget:
            monkeypatch.setattr(gpu_triangle, "COLUMNS_BUDGET", budget)

        def of_rank(team):
            made = layered(kind(gravity, precision, team=team))
            state = made.load(bodies)
            made.evaluate(state, outputs)
            assert bool(getattr(state.partition.transport, "_pending", ())) == nccl
            state.progress.wait()
            assert not getattr(state.partition.transport, "_pending", ())
            return *state.values("acceleration", "potential"), state

        found = run_ranks(ranks, of_rank)
        assert len({one[0].tobytes() for one in found}) == 1
        return found[-1]

    return computed


PRETENDED = Gravity(1.0, 3, "plummer", LENGTHS["plummer"])


@pytest.mark.simulated
@pytest.mark.parametrize(
    "precision,outputs,nccl", [("float64", Outputs.ENERGY, False), ("float32", Outputs.POTENTIAL, True)]
)
def test_any_number_of_devices_and_launches_gives_the_same_bits(monkeypatch, pretended, precision, outputs, nccl):
    use_tiling(monkeypatch, PairTiling(1, 1))
    bodies, found = random_bodies(100), set()
    few = 5000 if precision == "float64" else 2500  # bytes
    for devices, budget in ((1, None), (3, few)):
        a, phi, state = pretended(devices, bodies, precision, outputs, budget=budget)
        found.add(a.tobytes() + (phi.tobytes() if outputs != Outputs.ACCELERATION else b""))
        assert len(state.workspace.parts) == devices and state.workspace.work.segments > 1
        assert (len(state.workspace.parts[0].launches) > 1) == (budget is not None)
        if devices > 1:
            assert state.workspace.rest.nodes.nbytes == node_bytes(state.workspace.work, devices)
    a, phi, state = pretended(1, bodies, precision, outputs, ranks=3, nccl=nccl)
    assert state.partition.transport.ranks == 3 and len(state.workspace.parts) == 1 and state.workspace.parts[0].launches
    rest, [part] = state.workspace.rest, state.workspace.parts
    assert 0.7 < (rest.nodes.nbytes + part.nodes.nbytes) / node_bytes(state.workspace.work, 3, ranks=True) <= 1
    found.add(a.tobytes() + (phi.tobytes() if outputs != Outputs.ACCELERATION else b""))
    assert len(found) == 1
    right, _ = forces("reference", bodies, "plummer", "float64")
    assert relative_error(a, right) < BOUND["float64" if precision == "float64" else "float32"]


@pytest.mark.simulated
def test_devices_divide_what_has_no_mass_and_lengths_per_species_too(monkeypatch, pretended):
    use_tiling(monkeypatch, PairTiling(1, 1))
    bodies = random_bodies(70)
    bodies.mass[20:40] = 0.0
    found = {pretended(devices, bodies, "float64", Outputs.POTENTIAL)[0].tobytes() for devices in (1, 2)}
    found |= {pretended(1, bodies, "float64", Outputs.POTENTIAL, ranks=2, nccl=nccl)[0].tobytes() for nccl in (False, True)}
    bodies.species[::2], names = 1, ("a", "b")
    bodies = replace(bodies, species_names=names)
    gravity = Gravity(1.0, 3, "plummer", {"a": 0.1, "b": 0.2})
    species = {pretended(devices, bodies, "float64", Outputs.ENERGY, gravity=gravity)[0].tobytes() for devices in (1, 2)}
    assert len(found) == len(species) == 1 and found != species


@pytest.mark.simulated
def test_devices_divide_rows(pretended):
    def bits(devices, ranks, nccl):
        bodies = random_bodies(100)
        return pretended(devices, bodies, "float32", Outputs.ACCELERATION, "gpu-tiled", ranks=ranks, nccl=nccl)[0].tobytes()

    found = {
        bits(devices, ranks, nccl) for devices, ranks, nccl in ((1, 1, False), (2, 1, False), (1, 2, False), (1, 2, True))
    }
    assert len(found) == 1
