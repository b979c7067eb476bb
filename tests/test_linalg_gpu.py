"""Matrix products on the device."""

import numpy as np
import pytest

from nbody.bench.matmul.products import error_report
from nbody.errors import InputError
from nbody.linalg import CHAMPIONS, LADDER, matmul
from nbody.linalg.double_tile import DoubleTiling
from nbody.linalg.intrinsics import AMPERE
from nbody.linalg.k17_champion import TILINGS, tiled_launch
from nbody.linalg.k21_float64_tensor_cores import tiled_launch as float64_launch
from nbody.linalg.rung import ProductShape

pytestmark = pytest.mark.gpu

RUNGS = [(name, dtype) for name in LADDER for dtype in LADDER.load(name).dtypes if LADDER.load(name).on == "gpu"]
SHAPES = [(300, 260, 140), (257, 131, 67), (129, 4, 1030), (1, 1, 1), (5, 700, 33), (128, 256, 64), (65, 63, 5000)]
SMALL = [(32, 32, 100), (13, 29, 7)]


def random_factors(shape, dtype, seed=3):
    rng = np.random.default_rng(seed)
    m, n, k = shape
    return rng.random((m, k)).astype(dtype), rng.random((k, n)).astype(dtype)


def lecture(n=2048):
    """The lecture's a[i,j] = 2j + i and b[i,j] = j - i, and their exact product."""
    i = np.arange(n)
    a, b = 2 * i[None, :] + i[:, None], i[None, :] - i[:, None]
    return a, b, (a.astype(np.float64) @ b.astype(np.float64))  # integers below 2^53


@pytest.mark.parametrize(("name", "dtype"), RUNGS)
def test_a_rung_multiplies_whole_and_ragged_matrices(name, dtype):
    rung = LADDER.load(name)
    for shape in SMALL if rung.largest else SHAPES:
        a, b = random_factors(shape, dtype)
        report = error_report(matmul(a, b, rung=name), a.astype(np.float64) @ b.astype(np.float64))
        assert report.maximum <= rung.tolerance(shape[2], dtype), shape


@pytest.mark.parametrize("dtype", TILINGS)
def test_partial_sums_along_k_repeat_bit_for_bit(dtype):
    from nbody.compute import cuda

    for splits in (2, 5):
        for m, n, k in ((300, 260, 140), (129, 65, 1000)):
            a, b = random_factors((m, n, k), dtype)
            on_device = cuda.to_device(a), cuda.to_device(b), cuda.device_array((m, n), dtype)
            launch = tiled_launch(ProductShape(m, n, k), np.dtype(dtype), TILINGS[dtype][1][1], splits)
            results = []
            for _ in range(3):
                launch(*on_device)
                results.append(on_device[2].copy_to_host())
            assert error_report(results[0], a.astype(np.float64) @ b).maximum <= (k + 4) * np.finfo(dtype).eps
            assert all((result == results[0]).all() for result in results)


@pytest.mark.parametrize(("name", "dtype"), [("k16", "float32"), ("k17", "float64"), ("k21", "float64"), ("k02", "float64")])
def test_the_lectures_product_is_exact_in_double_and_with_kahans_sum(name, dtype):
    a, b, exact = lecture()
    np.testing.assert_array_equal(matmul(a.astype(dtype), b.astype(dtype), rung=name), exact)


@pytest.mark.parametrize(("tiling", "splits"), [
    (DoubleTiling((64, 64), (32, 32)), 1), (DoubleTiling((64, 64), (32, 32), instruction=4), 1),
    (DoubleTiling((64, 64), (32, 32), instruction=AMPERE), 1), (DoubleTiling((64, 64), (32, 32)), 3),
    (DoubleTiling((64, 64), (32, 32), depth=32, load=16, instruction=16), 1),
])  # fmt: skip
def test_every_float64_instruction_multiplies_and_repeats_bit_for_bit(tiling, splits):
    from nbody.compute import cuda

    for shape in ((300, 260, 140), (257, 131, 67), (128, 256, 64)):
        a, b = random_factors(shape, "float64")
        on_device, launch = (cuda.to_device(a), cuda.to_device(b)), float64_launch(ProductShape(*shape), tiling, splits)
        results = []
        for _ in range(2):
            c = cuda.to_device(np.full(shape[:2], np.nan))
            launch(*on_device, c)
            results.append(c.copy_to_host())
        np.testing.assert_array_equal(*results)
        assert error_report(results[0], a @ b).maximum <= (shape[2] + 4) * np.finfo(np.float64).eps, shape


def test_float32_sums_of_a_thousand_random_numbers_err_as_the_lecture_found():
    a, b = random_factors((1000, 1000, 1000), "float32")
    reference = a.astype(np.float64) @ b.astype(np.float64)
    naive, kahan = (error_report(matmul(a, b, rung=name), reference) for name in ("k02", "k16"))
    assert 1e-6 < naive.maximum < 4e-6 and 2e-7 < naive.mean < 5e-7
    assert kahan.maximum < 1.2e-7 and kahan.mean < 4.2e-8


def test_three_tensor_products_are_as_exact_as_float32():
    a, b = random_factors((512, 512, 4096), "float32")
    reference = a.astype(np.float64) @ b.astype(np.float64)
    split, plain = (error_report(matmul(a, b, rung=name), reference) for name in ("k20", "k17"))
    assert split.maximum <= plain.maximum and split.mean <= plain.mean


@pytest.mark.parametrize(("name", "dtype"), RUNGS)
def test_a_nan_reaches_its_row_and_no_other(name, dtype):
    a, b = random_factors((31, 29, 30), dtype)
    a[7, 3] = np.nan
    product = matmul(a, b, rung=name)
    assert np.isnan(product[7]).all() and np.isfinite(np.delete(product, 7, axis=0)).all()


def test_device_arrays_are_multiplied_in_place_and_checked():
    from nbody.compute import cuda

    a, b = random_factors((64, 64, 64), "float32")
    on_device = cuda.to_device(a)
    product = matmul(on_device, cuda.to_device(b))
    np.testing.assert_allclose(product.copy_to_host(), a @ b, rtol=1e-5)
    with pytest.raises(InputError, match="one matrix is on the device"):
        matmul(on_device, b)
    with pytest.raises(InputError, match="a is not row-major"):
        matmul(cuda.to_device(np.ones((64, 128), "float32"))[:, :64], cuda.to_device(b))
    with pytest.raises(InputError, match="a starts at an address"):
        matmul(cuda.to_device(np.ones(65 * 64, "float32"))[1 : 1 + 64 * 64].reshape(64, 64), cuda.to_device(b))
    with pytest.raises(InputError, match="out must be where"):
        matmul(on_device, cuda.to_device(b), out=np.empty((64, 64), "float32"))


def test_a_call_gives_the_same_bits_as_the_launch_it_has_prepared():
    from nbody.compute import cuda

    for dtype in ("float32", "float64"):
        factors = [cuda.to_device(factor) for factor in random_factors((200, 120, 90), dtype)]
        expected = cuda.device_array((200, 120), dtype)
        LADDER.load(CHAMPIONS[dtype]).launch(ProductShape(200, 120, 90), np.dtype(dtype))(*factors, expected)
        out = cuda.device_array((200, 120), dtype)
        for product in (matmul(*factors), matmul(*factors, out=out), matmul(*factors, out=out)):
            np.testing.assert_array_equal(product.copy_to_host(), expected.copy_to_host())
        with pytest.raises(InputError, match="out shares memory"):
            matmul(factors[0], cuda.to_device(np.eye(90, dtype=dtype)), out=factors[0])


def test_a_product_has_the_kind_of_its_factors():
    cupy = pytest.importorskip("cupy")
    a = cupy.arange(12.0).reshape(3, 4)
    product = matmul(a, a.T.copy())
    assert isinstance(product, cupy.ndarray) and bool((product == a @ a.T).all())
    with cupy.cuda.Stream(non_blocking=True):  # what it computes there is waited for
        b = cupy.ones((512, 512)) * 3
        assert float(matmul(b, b)[5, 7]) == 9 * 512
