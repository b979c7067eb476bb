"""Matrix products without a GPU: what is refused, what the CPU's rungs give, and how errors are counted."""

import numpy as np
import pytest
from conftest import said

from nbody.bench.matmul.products import error_report
from nbody.errors import DeviceError
from nbody.linalg import LADDER, k21_float64_tensor_cores, matmul
from nbody.linalg.explain import explain, occupancy
from nbody.linalg.rung import ProductShape
from nbody.linalg.simulated_warp import row_and_column

A = np.arange(12.0).reshape(3, 4)
B = np.arange(20.0).reshape(4, 5)


@pytest.mark.parametrize("rung", ["k00", "numpy"])
@pytest.mark.parametrize("dtype", ["float32", "float64", ">f8"])
def test_the_cpus_rungs_multiply(rung, dtype):
    product = matmul(A.astype(dtype), B.astype(dtype), rung=rung)
    assert product.dtype == np.dtype(dtype).newbyteorder("=") and product.dtype.isnative
    np.testing.assert_array_equal(product, A @ B)  # small integers are exact


def test_a_transposed_view_is_multiplied_as_it_reads():
    np.testing.assert_array_equal(matmul(B.T, A.T, rung="numpy"), (A @ B).T)


def test_the_result_is_written_to_out():
    out = np.full((3, 5), np.nan)
    assert matmul(A, B, out=out, rung="numpy") is out
    np.testing.assert_array_equal(out, A @ B)


@pytest.mark.parametrize("rung", ["k00", "numpy"])
def test_the_result_may_take_the_place_of_a_factor(rung):
    for place in (0, 1):
        factors = [B[:, :4].copy(), A.T[:, :1] + B[:, :4]]
        expected = factors[0] @ factors[1]
        matmul(*factors, out=factors[place], rung=rung)
        np.testing.assert_array_equal(factors[place], expected)


def test_nan_stays_nan_in_its_row_only():
    a = A.copy()
    a[1, 2] = np.nan
    product = matmul(a, B, rung="k00")
    assert np.isnan(product[1]).all() and np.isfinite(product[[0, 2]]).all()


SEALED = np.empty((3, 5))
SEALED.flags.writeable = False
REFUSED = [
    ((A, A), {}, "a has 4 columns and b has 3 rows"),
    ((A[0], B), {}, "a has shape (4,); a matrix has two dimensions"),
    ((A, B.astype("float32")), {}, "a is float64 and b is float32"),
    ((A.astype(int), B.astype(int)), {}, "a has dtype int64; convert it to float32 or float64"),
    ((A[:0], B), {}, "a is empty"),
    ((A[:, :0], B[:0]), {}, "a is empty"),
    ((A, B, A.copy()), {}, "out is float64 (3, 4); the product is float64 (3, 5)"),
    ((A, B, np.empty((3, 5), "float32")), {}, "out is float32"),
    ((A, B, np.empty((3, 5), ">f8")), {}, "out is >f8"),
    ((A, B, 1), {}, "out must be where a and b are"),
    ((A, B, SEALED), {"rung": "k00"}, "out is read-only"),
    ((np.ones((33, 4)), B), {"rung": "k01"}, "m and n up to 32, not 33 and 5: a block has"),
    ((A, B), {"rung": "k20"}, "multiplies float32, not float64"),
    ((A, B), {"rung": "k7"}, "unknown rung 'k7'"),
    ((A, B), {"rung": None}, "unknown rung 'None'"),
]


@pytest.mark.parametrize(("arrays", "more", "says"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_products_that_cannot_be_made_are_refused(arrays, more, says):
    assert says in said(matmul, *arrays, **{"rung": "numpy"} | more)


def test_without_a_gpu_the_gpus_rungs_are_refused():
    from nbody import compute

    if compute.available():
        pytest.skip("there is a GPU")
    with pytest.raises(DeviceError, match="needs an NVIDIA GPU"):
        matmul(A, B)


def test_errors_are_relative_and_a_nan_is_infinitely_wrong():
    reference = np.array([[1.0, 2.0], [0.0, 4.0]])
    assert error_report(reference, reference) == (0.0, 0.0)
    off_by_a_hundredth = np.array([[1.0, 2.02], [0.0, 4.0]])
    assert error_report(off_by_a_hundredth, reference) == pytest.approx((0.01, 0.0025))
    assert error_report(np.full((2, 2), np.nan), reference).maximum == np.inf


def test_every_rung_improves_one_that_comes_before_it():
    names = list(LADDER)
    for i, name in enumerate(names):
        improves = LADDER.load(name).improves
        assert improves in names[:i] or (not improves and name == "k00"), name


def test_an_explanation_has_the_idea_the_registers_and_the_occupancy():
    text = explain("k06")
    assert "k06: coalesced tiles (improves k05)" in text
    assert "1024 threads per block" in text and "2 blocks per multiprocessor, all of its threads" in text
    assert "8192 bytes of shared memory" in text  # its two tiles, without what the system keeps for itself
    assert "Compiled for " in text  # the card that is here, or an H200


def test_an_explanation_is_of_a_product_that_the_rung_makes(monkeypatch):
    assert "For n = 32, one result takes 64 reads from global memory: 64000 cycles" in explain("k01")
    assert "For 2048x2048 by 2048x4, one result takes 1024 reads" in explain("k18")
    assert LADDER.load("k18").example_shape == ProductShape(2048, 4, 2048)
    monkeypatch.setattr("nbody.compute.SIMULATED", True)
    assert "Kernels are simulated here" in explain("k06") and "can't be compiled" not in explain("k06")


def test_occupancy_is_bounded_by_the_scarcest_of_the_four():
    assert occupancy(256, 32, 0) == (8, 1.0, "registers")
    assert occupancy(128, 200, 1024).limit == "registers"
    assert occupancy(128, 16, 64 * 1024) == (3, 3 * 128 / 2048, "shared memory")
    assert occupancy(32, 16, 0).blocks == 32


@pytest.mark.parametrize("depth", [4, 8, 16])
def test_each_element_of_a_tensor_cores_product_lies_in_one_register_of_one_lane(depth):
    for matrix, registers, size in (("a", depth // 2, (16, depth)), ("b", depth // 4, (depth, 8)), ("c", 4, (16, 8))):
        places = [row_and_column(lane, n)[matrix] for lane in range(32) for n in range(registers)]
        assert sorted(places) == list(np.ndindex(*size))


@pytest.mark.parametrize(("_", "tiling"), k21_float64_tensor_cores.TILINGS)
def test_eight_lanes_that_read_fragments_touch_each_bank_once(_, tiling):
    """Shared memory serves 8 lanes' reads of 16 bytes at a time, if they lie in different groups of 4 of its 32 banks."""
    for first in range(0, 32, 8):
        lanes = [divmod(lane, 4) for lane in range(first, first + 8)]
        for of_a in (True, False):
            starts = [g * 8 + 2 * q if of_a else 2 * q * tiling.b_pitch + 2 * g for g, q in lanes]
            assert len({start // 2 % 8 for start in starts}) == 8
    assert tiling.plane % 2 == tiling.b_pitch % 2 == sum(tiling.sizes) % 2 == 0  # 128-bit copies


@pytest.mark.parametrize(("down", "across", "group"), [(1, 1, 8), (8, 5, 8), (19, 3, 8), (5, 7, 2)])
def test_the_blocks_of_a_product_take_every_tile_once(down, across, group):
    place = k21_float64_tensor_cores.placer(group)
    place = getattr(place, "py_func", place)
    tiles = [place(np.uint32(n), np.uint32(down), np.uint32(across)) for n in range(down * across)]
    assert sorted(tiles) == list(np.ndindex(down, across))
    assert {row for row, _ in tiles[: min(group, down) * across]} == set(range(min(group, down)))


def test_a_card_without_float64_tensor_cores_takes_k17(monkeypatch):
    monkeypatch.setattr(k21_float64_tensor_cores, "compute_capability", lambda: (7, 0))
    shape, float64 = ProductShape(512, 512, 512), np.dtype("float64")
    assert LADDER.load("k21").launch(shape, float64) == LADDER.load("k17").launch(shape, float64)
