"""The GPU's kernels: compiled form as PTX, and for real on a device; in the simulator: test_forces_simulated.py."""

import numpy as np
import pytest
from combinations import every_pair
from compiled_forces import compiled
from conftest import random_bodies

from nbody.forces import ENGINES
from nbody.forces.api import accelerations
from nbody.law import LAWS
from nbody.state import Outputs

GPU_ENGINES = [name for name in ENGINES if name.startswith("gpu") and name != "gpu-tree"]  # it is in test_tree_gpu.py
ONE_BODY_A_THREAD = ("gpu-global", "gpu-tiled", "gpu-kahan")
LENGTHS = {"plummer": 0.05, "spline": 0.2, "cutoff": 0.5, "none": 0.0}

# A float32 sum of N terms of random sign: each term has some 5 roundings of 6e-8, the sum about √N more.
BOUND = {"float32": 5e-6, "float64": 1e-13}


def relative_error(a, expected):
    """Largest error of a row, relative to the typical row."""
    return np.abs(a - expected).max() / np.sqrt((expected**2).sum(axis=-1)).mean()


@pytest.mark.parametrize(
    "engine,softening,dimensions,outputs",
    every_pair(ONE_BODY_A_THREAD, LAWS, (2, 3), (Outputs.ACCELERATION, Outputs.POTENTIAL)),
)
def test_a_float32_kernel_has_no_float64_and_no_local_memory(engine, softening, dimensions, outputs):
    """One stray literal makes a kernel thirty times slower without a word; spills make it slower too."""
    code, resources = compiled(engine, dimensions, outputs, softening)
    assert ".f64 \t" not in code and ".f64\t" not in code
    assert "rsqrt.approx.ftz.f32" in code
    assert "div." not in code and "sqrt.rn" not in code
    assert resources.local == 0
    # 40 registers × 256 threads: six blocks a multiprocessor, 48 warps; a recorded frame may do with 32 warps
    assert resources.registers <= (64 if outputs == Outputs.POTENTIAL else 40)


def supported(engine, softening, dimensions, precision, *rest):
    """Whether an engine has a precision."""
    return precision in ENGINES.load(engine).can.precisions


@pytest.mark.gpu
@pytest.mark.parametrize(
    "engine,softening,dimensions,precision,count,masses",
    every_pair(
        GPU_ENGINES, LAWS, (2, 3), ("float32", "mixed", "float64"), (1, 2, 255, 1000, 4097), ("unequal", "equal"),
        where=supported,
    ),
)  # fmt: skip
def test_the_device_agrees_with_the_referee_each_time(engine, softening, dimensions, precision, count, masses):
    """A frame's step asks for the potential, the steps between do not: which are recorded must not change the run."""
    bodies = random_bodies(count, dimensions)
    mass = bodies.mass if masses == "unequal" else np.full(count, 1 / count)
    law = {"softening": softening, "length": LENGTHS[softening]}
    device = law | {"engine": engine, "precision": precision}
    a, phi = accelerations(bodies.position, mass, engine="reference", potential=True, **law)
    got, got_phi = accelerations(bodies.position, mass, potential=True, **device)
    for _ in range(2):
        assert np.array_equal(got, accelerations(bodies.position, mass, **device))
    if count == 1:
        assert not got.any() and not got_phi.any()
        return
    # Without softening the closest pair's force is as inexact as its float32 distance: judge the median there. (Two
    # bodies within the cutoff feel nothing.)
    error = np.linalg.norm(got - a, axis=1) / np.maximum(np.linalg.norm(a, axis=1), 1e-300)
    bound = BOUND["float64" if precision == "float64" else "float32"]
    assert np.median(error) < bound
    assert np.median(np.abs(got_phi - phi) / np.abs(phi)) < bound


@pytest.mark.gpu
@pytest.mark.parametrize(
    "engine,precision",
    every_pair(
        GPU_ENGINES, ("float32", "mixed", "float64"), where=lambda engine, precision: supported(engine, 0, 0, precision)
    ),
)
def test_many_bodies_have_the_same_bits_twice_and_with_the_potential_asked_for(engine, precision):
    bodies = random_bodies(5000)
    law = {"softening": "plummer", "length": 0.05, "engine": engine, "precision": precision}
    first = accelerations(bodies.position, bodies.mass, **law)
    assert np.array_equal(first, accelerations(bodies.position, bodies.mass, **law))
    assert np.array_equal(first, accelerations(bodies.position, bodies.mass, potential=True, **law)[0])


def typical_error(a, expected):
    """Median error of a row, relative to the row."""
    return np.median(np.linalg.norm(a - expected, axis=1) / np.linalg.norm(expected, axis=1))


@pytest.mark.gpu
@pytest.mark.parametrize("dimensions", [2, 3])
def test_mixed_precision_sees_positions_that_float32_does_not(dimensions):
    """A small cluster far from the origin: float32 has 2⁻²⁴ · 1000 = 6e-5 for places 0.03 apart; the split positions have
    another 24 bits, and what is left is the rounding of a pair, 2e-7, averaged over the pairs."""
    bodies = random_bodies(3000, dimensions)
    position = 1000.0 + 0.1 * bodies.position
    law = {"softening": "plummer", "length": 0.003, "potential": True}
    a, phi = accelerations(position, bodies.mass, engine="reference", **law)
    single, _ = accelerations(position, bodies.mass, engine="gpu-symmetric", precision="float32", **law)
    mixed, mixed_phi = accelerations(position, bodies.mass, engine="gpu-symmetric", precision="mixed", **law)
    assert mixed.dtype == np.float64
    assert typical_error(mixed, a) < 2e-7 < 1e-4 < typical_error(single, a)
    assert np.abs(mixed_phi / phi - 1).max() < 1e-6  # where one close pair is most of it: some five roundings of 6e-8


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["gpu-tiled", "gpu-kahan", "gpu-symmetric"])
def test_sums_of_many_terms_keep_their_digits(engine):
    """Two clusters far apart: 25000 terms of one sign, where a sum rounded term by term is wrong by a median of 5e-6 or
    more. Sums by tiles, compensated sums and sums of runs are not."""
    bodies = random_bodies(50_000)
    position = (bodies.position + np.array([0.0, 0.0, 30.0]) * (np.arange(50_000) % 2)[:, None]).astype(np.float32)
    law = {"softening": "plummer", "length": 0.1}
    few = np.r_[0:20, 49_980:50_000]
    a = accelerations(position, bodies.mass, engine="reference", **law)[few]
    got = accelerations(position, bodies.mass, engine=engine, precision="float32", **law)[few]
    assert typical_error(got, a) < 2e-6
