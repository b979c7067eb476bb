"""The force matrix: through BLAS here, in the simulator and as PTX anywhere, and for real on a device."""

import dataclasses

import numpy as np
import pytest
from combinations import every_pair
from conftest import random_bodies, sample
from recordings import plummer_text

from nbody import Scenario, Simulation, compute
from nbody.bench.forces.problems import ForceProblem, Judge
from nbody.errors import DeviceError, InputError
from nbody.forces import ENGINES, resources
from nbody.forces import problem as asked
from nbody.forces.api import accelerations
from nbody.forces.choose import choose
from nbody.forces.engine import rounding_bound
from nbody.forces.matrix import cpu as matrix_cpu
from nbody.forces.reference import direct_sum
from nbody.law import LAWS, Gravity
from nbody.linalg import LADDER
from nbody.run.resume import rerun
from nbody.state import Outputs
from nbody.trajectory import first_difference

LENGTHS = {"plummer": 0.05, "spline": 0.2, "cutoff": 0.5, "none": 0.0}
UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}
RUNGS = [name for name in LADDER if LADDER.load(name).on == "gpu"]


def judged(engine, count, dimensions, softening, precision):
    """The largest error of an engine's forces, and that of its potential, as multiples of what rounding explains: for a
    force, per particle, 4 κ u √N with the κ of the split sum and 32 u √N at least; for a potential, a sum of one sign,
    8 u √N."""
    bodies, law = random_bodies(count, dimensions), Gravity(1.0, dimensions, softening, LENGTHS[softening])
    got, got_phi = accelerations(
        bodies.position, bodies.mass, softening=softening, length=law.length, engine=engine, precision=precision,
        potential=True,
    )  # fmt: skip
    return excess(engine, bodies, law, precision, got, got_phi)


def excess(engine, bodies, law, precision, got, got_phi):
    problem = ForceProblem(bodies, law)
    judge = Judge(problem)
    # No sum here is long enough for rounding errors of one sign to add up: an eighth of the benchmark's bound will do.
    least = rounding_bound(precision, bodies.count)
    bound = np.maximum(least, ENGINES.load(engine)(law, precision).error(bodies, judge.rows).bound / 8)
    _, phi = direct_sum(bodies.position, bodies.mass, law)
    most = 8 * max(UNIT[precision], LADDER.load(engine.partition(":")[2] or "k18").roundoff) * np.sqrt(bodies.count)
    return judge.error(got, bound).excess, np.abs(got_phi - phi).max() / (most * max(np.abs(phi).max(), 1e-300))


# --- Names ----------------------------------------------------------------------------------------------------------


def test_any_rung_may_be_named_and_the_engine_is_the_same_class_each_time():
    assert ENGINES.load("matrix:numpy") is ENGINES.load("matrix:numpy")
    assert ENGINES.load("matrix:k00").can.device == "cpu" and ENGINES.load("matrix:k07").can.device == "gpu"
    assert ENGINES.load("matrix:k20").can.precisions == ("float32",)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("matrix:k7", "unknown rung 'k7' (did you mean 'k"),
        ("matrix:", "unknown rung ''; one of: k00, numpy"),
        ("cpu:k07", "unknown engine 'cpu:k07'"),
        ("matrx", "unknown engine 'matrx' (did you mean 'matrix'?)"),
    ],
)
def test_an_unknown_engine_is_refused_with_the_nearest_name(name, says, refused):
    assert says in refused("run", "scenarios/disk.yaml", "--engine", name, "-q")


def test_matrix_alone_says_what_multiplies_and_auto_never_takes_it():
    name, why = choose("matrix", asked.Problem(Gravity(), "float32", 100))[:2]
    assert name == ("matrix:k18" if compute.available() else "matrix:numpy") and why
    for count in (10, 10_000, 10_000_000):
        assert not choose("auto", asked.Problem(Gravity(), "float32", count)).name.startswith("matrix")


def test_without_a_gpu_a_rung_of_the_gpu_says_so():
    if compute.available():
        pytest.skip("there is a GPU")
    with pytest.raises(DeviceError, match="engine 'matrix:k07' needs an NVIDIA GPU"):
        accelerations([[0, 0, 0], [1, 0, 0]], [1, 1], engine="matrix:k07")


# --- On the CPU -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("softening,dimensions,precision", every_pair(LAWS, (2, 3), ("float32", "float64")))
def test_blas_agrees_with_the_referee(softening, dimensions, precision):
    for count in (2, 255, 1001):
        assert max(judged("matrix:numpy", count, dimensions, softening, precision)) <= 1


def test_three_loops_agree_with_the_referee():
    assert max(judged("matrix:k00", 130, 3, "plummer", "float32")) <= 1


def test_one_body_alone_has_no_acceleration():
    a, phi = accelerations([[3.0, 4.0]], [2.0], engine="matrix:numpy", potential=True)
    assert a.tolist() == [[0.0, 0.0]] and phi.tolist() == [0.0]


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_blocks_of_rows_join_without_a_seam(monkeypatch, rows):
    bodies = random_bodies(300)
    law = {"softening": "plummer", "length": 0.05, "engine": "matrix:k00", "potential": True}
    whole = accelerations(bodies.position, bodies.mass, **law)
    monkeypatch.setattr(matrix_cpu, "BUDGET", rows * 300 * 8)
    blocks = accelerations(bodies.position, bodies.mass, **law)
    assert all(np.array_equal(a, b) for a, b in zip(whole, blocks, strict=True))  # a row's three loops are its own


def test_far_from_the_origin_the_centre_of_mass_keeps_the_split_sum_from_cancelling():
    bodies = random_bodies(500)
    position = (bodies.position + 1000).astype(np.float32).astype(float)  # as float32 has them
    law = {"softening": "plummer", "length": 0.05}
    right = accelerations(position, bodies.mass, engine="reference", **law)
    got = accelerations(position, bodies.mass, engine="matrix:numpy", precision="float32", **law)
    error = np.linalg.norm(got - right, axis=1) / np.linalg.norm(right, axis=1)
    assert np.median(error) < 2e-6  # 1e-3 without the centre


def test_bodies_without_mass_are_accelerated_and_exert_no_force():
    bodies = random_bodies(64)
    bodies.mass[::3] = 0.0
    law = Gravity(1.0, 3, "plummer", 0.05)
    got = accelerations(bodies.position, bodies.mass, softening="plummer", length=0.05, engine="matrix:numpy")
    np.testing.assert_allclose(got, direct_sum(bodies.position, bodies.mass, law)[0], rtol=1e-11)


def test_masses_beneath_float32_make_no_nan():
    """A run refuses them (tests/test_guards.py); the engine by itself divides by no zero."""
    bodies = random_bodies(64)
    engine = ENGINES.load("matrix:numpy")(Gravity(), "float32")
    state = engine.load(dataclasses.replace(bodies, mass=bodies.mass * 1e-60))
    engine.evaluate(state)
    assert not state.values("acceleration")[0].any()


def test_the_potential_changes_no_bit_of_the_forces():
    bodies = random_bodies(500)
    law = {"softening": "plummer", "length": 0.05, "engine": "matrix:numpy", "precision": "float32"}
    alone = accelerations(bodies.position, bodies.mass, **law)
    both, _ = accelerations(bodies.position, bodies.mass, potential=True, **law)
    assert np.array_equal(alone, both)


def test_when_not_even_one_block_fits_the_line_has_the_numbers(monkeypatch):
    monkeypatch.setattr(resources, "free", lambda place: 10 << 20)
    bodies = random_bodies(4000)
    with pytest.raises(InputError, match=r"4000 particles need 0\.0\d+ GiB of memory and 0\.0\d+ GiB are free"):
        accelerations(bodies.position, bodies.mass, engine="matrix:numpy")


SCENARIO = plummer_text(128, 12, engine="matrix", precision="float32", record="{every: 5}")


def simulate(path, **options):
    Simulation(Scenario.from_text(SCENARIO, "test.yaml").override(**options), path).run()
    return path


SHAPES = [*((law, Outputs.POTENTIAL) for law in LAWS), *((law, Outputs.ACCELERATION) for law in LAWS)]


@pytest.mark.parametrize(("softening", "potential"), sample(SHAPES, len(LAWS) + 1))
def test_a_float32_kernel_has_no_float64_and_no_local_memory(softening, potential):
    pytest.importorskip("cuda.core")
    from numba import types

    from nbody.forces.gpu_engine import Shape
    from nbody.forces.matrix import gpu as matrix_gpu

    shape, rows, real = Shape(softening, 3, np.dtype(np.float32), potential), types.float32[:, ::1], types.float32
    kernels = [
        (matrix_gpu.build_write_factor(np.float32), (rows, rows)),
        (matrix_gpu.build_write_block(shape), (rows, rows, types.int64, real)),
        (matrix_gpu.build_combine(shape), (rows, rows, rows, real)),
    ]
    for kernel, signature in kernels:
        code = compute.ptx(kernel, signature)
        assert ".f64" not in code and ".local" not in code
    code = compute.ptx(*kernels[1])
    assert "rsqrt.approx.ftz.f32" in code and "sqrt.rn" not in code
    assert "ld.global.v4.f32" in code  # a body comes in one load
    assert compute.resources(code).registers <= 64  # four blocks of 256 threads and more a multiprocessor


@pytest.mark.gpu
@pytest.mark.parametrize(
    "softening,dimensions,precision,count", every_pair(LAWS, (2, 3), ("float32", "float64"), (2, 255, 1000, 4097))
)
def test_the_device_agrees_with_the_referee(softening, dimensions, precision, count):
    assert max(judged("matrix", count, dimensions, softening, precision)) <= 1


@pytest.mark.gpu
@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("count", [33, 1001])
def test_every_rung_multiplies_for_gravity_in_blocks_too(rung, count, monkeypatch):
    for precision in LADDER.load(rung).dtypes:
        assert max(judged(f"matrix:{rung}", count, 3, "plummer", precision)) <= 1
    monkeypatch.setattr("nbody.forces.matrix.gpu.BUDGET", 100 * count * 4)
    precision = LADDER.load(rung).dtypes[0]
    assert max(judged(f"matrix:{rung}", count, 3, "plummer", precision)) <= 1


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["matrix", "matrix:k07"])
def test_the_device_gives_the_same_bits_twice_and_with_the_potential_asked_for(engine):
    bodies = random_bodies(5000)
    law = {"softening": "plummer", "length": 0.01, "engine": engine, "precision": "float32"}
    first = accelerations(bodies.position, bodies.mass, **law)
    assert np.array_equal(first, accelerations(bodies.position, bodies.mass, **law))
    assert np.array_equal(first, accelerations(bodies.position, bodies.mass, potential=True, **law)[0])


@pytest.mark.gpu
def test_a_run_on_the_device_is_made_again_with_the_same_bits_and_keeps_its_energy(tmp_path):
    options = {"particles": 3000, "steps": 64, "every": 20}  # long enough that steps are replayed as a graph
    whole = simulate(tmp_path / "whole.h5", **options)
    rerun(whole, tmp_path / "again.h5", notify=lambda line: None).run()
    assert first_difference(whole, tmp_path / "again.h5") is None
    scenario = Scenario.from_text(SCENARIO, "test.yaml").override(**options)
    assert abs(Simulation(scenario, tmp_path / "energy.h5").run().energy_error) < 1e-4
