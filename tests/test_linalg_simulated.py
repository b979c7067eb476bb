"""Every rung's indices and arithmetic in Numba's simulator, at small ragged sizes."""

import threading

import numpy as np
import pytest
from conftest import sample

from nbody.bench.matmul.products import error_report
from nbody.compute import cuda
from nbody.linalg import ELEMENTWISE, LADDER, matmul
from nbody.linalg.intrinsics import AMPERE, wait_for_team
from nbody.linalg.rung import ProductShape

GPU_RUNGS = [name for name in LADDER if LADDER.load(name).on == "gpu"]
RUNGS = [(name, LADDER.load(name).dtypes[0]) for name in GPU_RUNGS]
OTHERS = [(name, dtype) for name in GPU_RUNGS for dtype in LADDER.load(name).dtypes[1:]]
"""A rung with its first dtype; with the others, by the same text, in a campaign."""

VECTORS = [[rung for rung in some if "vector loads" in LADDER.load(rung[0]).claims] for some in (RUNGS, OTHERS)]
RAGGED = {"k01": (13, 11, 9), "k03": (17, 19, 37), "k18": (3, 6, 37), "k20": (35, 5, 17)}
"""(m, n, k) where the usual one is too large for the rung or slow to simulate."""


def random_factors(shape, dtype):
    rng = np.random.default_rng(3)
    return rng.random((shape.m, shape.k)).astype(dtype), rng.random((shape.k, shape.n)).astype(dtype)


def assert_same_bits_and_right(shape, dtype, *launches):
    a, b = random_factors(shape, dtype)
    results = []
    for launch in launches:
        c = cuda.to_device(np.full((shape.m, shape.n), np.nan, dtype))
        launch(cuda.to_device(a), cuda.to_device(b), c)
        results.append(c.copy_to_host())
    np.testing.assert_array_equal(*results)
    report = error_report(results[0], a.astype(np.float64) @ b.astype(np.float64))
    assert report.maximum <= (shape.k + 4) * np.finfo(dtype).eps


@pytest.mark.simulated
@pytest.mark.parametrize(("name", "dtype"), sample(RUNGS + OTHERS, len(RUNGS)))
def test_a_rung_multiplies_ragged_matrices(name, dtype):
    shape = ProductShape(*RAGGED.get(name, (35, 5, 34)))
    a, b = random_factors(shape, dtype)
    report = error_report(matmul(a, b, rung=name), a.astype(np.float64) @ b.astype(np.float64))
    assert report.maximum <= LADDER.load(name).tolerance(shape.k, dtype)


@pytest.mark.simulated
@pytest.mark.parametrize(("name", "dtype"), sample(VECTORS[0] + VECTORS[1], len(VECTORS[0])))
def test_a_rung_with_vector_loads_multiplies_aligned_matrices(name, dtype):
    shape = ProductShape(7, 4 if name == "k18" else 12, 20)
    a, b = random_factors(shape, dtype)
    report = error_report(matmul(a, b, rung=name), a.astype(np.float64) @ b.astype(np.float64))
    assert report.maximum <= LADDER.load(name).tolerance(shape.k, dtype)


@pytest.mark.simulated
@pytest.mark.parametrize(("dtype", "shape"), [("float32", ProductShape(19, 36, 44)), ("float64", ProductShape(17, 33, 21))])
@pytest.mark.parametrize(("teams", "splits"), [(1, 3), (3, 1), (2, 2)])
def test_the_champions_partial_sums_add_up_and_repeat_bit_for_bit(dtype, shape, teams, splits):
    from nbody.linalg.k17_champion import ProductTiling, tiled_launch

    tiling = ProductTiling((16, 32), (16, 32), (4, 4), depth=8, stages=3, resident=1, teams=teams)
    launch = tiled_launch(shape, np.dtype(dtype), tiling, splits)
    assert_same_bits_and_right(shape, dtype, launch, launch)


@pytest.mark.simulated
@pytest.mark.parametrize(("instruction", "load", "shape", "splits"), [
    (8, 8, ProductShape(35, 5, 34), 1), (4, 8, ProductShape(5, 38, 19), 1), (AMPERE, 8, ProductShape(33, 6, 18), 1),
    (16, 16, ProductShape(32, 5, 70), 1), (8, 8, ProductShape(33, 5, 100), 3),
])  # fmt: skip
def test_the_float64_tensor_cores_multiply_with_each_instruction(instruction, load, shape, splits):
    """A warp of the simulator multiplies as NVIDIA documents the layout of the elements among its lanes."""
    from nbody.linalg.double_tile import DoubleTiling
    from nbody.linalg.k21_float64_tensor_cores import tiled_launch

    tiling = DoubleTiling((32, 32), (16, 32), depth=2 * load, load=load, instruction=instruction)
    launch = tiled_launch(shape, tiling, splits)
    assert_same_bits_and_right(shape, "float64", launch, launch)


@pytest.mark.simulated
def test_kahans_sum_of_the_lectures_matrices_is_exact_in_float32():
    i, k = np.array([0, 1, 2047]), np.arange(2048)
    a = (2 * k[None, :] + i[:, None]).astype("float32")  # rows of the lecture's a[i,j] = 2j + i
    b = (i[None, :] - k[:, None]).astype("float32")  # columns of its b[i,j] = j - i
    exact = a.astype(np.int64) @ b.astype(np.int64)
    np.testing.assert_array_equal(matmul(a, b, rung="k16").astype(np.int64), exact)


@pytest.mark.simulated
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_an_elementwise_kernel_covers_every_element(name):
    kernel = ELEMENTWISE.load(name)
    a, b = random_factors(ProductShape(13, 29, 29), "float32")
    b = a[::-1].copy()
    c = cuda.to_device(np.full_like(a, np.nan))
    kernel.launch(ProductShape(13, 29, 29), np.dtype("float32"))(cuda.to_device(a), cuda.to_device(b), c)
    np.testing.assert_array_equal(c.copy_to_host(), kernel.reference(a, b))


@pytest.mark.simulated
def test_a_simulated_kernel_reports_where_it_fails_and_a_deadlock_ends():
    @cuda.jit
    def fail(array):
        cuda.syncthreads()
        if cuda.threadIdx.x == 2:
            array[cuda.threadIdx.x] = 1
        cuda.syncthreads()

    @cuda.jit
    def wait(array):
        if cuda.threadIdx.x == 2:
            wait_for_team(1, 32)
        cuda.syncthreads()
        array[cuda.threadIdx.x] = 1

    array, before = cuda.to_device(np.zeros(2)), threading.active_count()
    with pytest.raises(IndexError) as failed:
        fail[1, 64](array)
    assert failed.value.__notes__ == ["in the CUDA thread [2, 0, 0] of block [0, 0, 0]"]
    with pytest.raises(RuntimeError, match="threads wait for others at the barriers"):
        wait[1, 64](array)
    assert threading.active_count() == before
