"""What a call of ``matmul`` on device arrays checks, caches and does, with stand-ins for the arrays and the launch."""

import numpy as np
import pytest
from conftest import said

from nbody import compute
from nbody.errors import DeviceError, InputError
from nbody.linalg import call, matmul, rung
from nbody.linalg.rung import ProductLaunch, Scratch


class OnDevice:
    """An array that says it is on the device."""

    def __init__(self, shape, dtype="float64", address=1 << 20, strides=None, stream=1, read_only=False):
        self.view = {
            "shape": shape, "typestr": np.dtype(dtype).str, "data": (address, read_only), "strides": strides,
            "stream": stream, "version": 3,
        }  # fmt: skip

    @property
    def __cuda_array_interface__(self):
        return self.view


@pytest.fixture
def launched(monkeypatch):
    """The addresses of each launch, and how often one was prepared."""
    addresses, prepared = [], []

    def direct(launch, shape, dtype):
        prepared.append((shape, dtype))
        return lambda *abc: addresses.append(abc)

    monkeypatch.setattr(ProductLaunch, "direct", direct)
    monkeypatch.setattr(compute, "require", lambda what: None)
    monkeypatch.setattr(compute, "current_device", lambda: 0)
    monkeypatch.setattr(call, "_CALLS", {})
    monkeypatch.setattr(call, "_maker", lambda a, shape, dtype: lambda: ("new", 1 << 30))
    return addresses, prepared


A, B, C = OnDevice((8, 6), address=4096), OnDevice((6, 10), address=8192), OnDevice((8, 10), address=16384)


def test_a_product_is_prepared_once_for_matrices_of_a_kind(launched):
    addresses, prepared = launched
    assert matmul(A, B) == "new" and matmul(A, OnDevice((6, 10), address=32)) == "new"
    assert matmul(A, B, out=C) is C and matmul(A, B, out=C) is C
    assert addresses == [(4096, 8192, 1 << 30), (4096, 32, 1 << 30), (4096, 8192, 16384), (4096, 8192, 16384)]
    assert len(prepared) == 2  # without out and with it
    matmul(OnDevice((8, 6), "float32"), OnDevice((6, 10), "float32"))
    matmul(A, B, rung="k02")
    assert len(prepared) == 4


@pytest.mark.parametrize(
    ("a", "b", "out", "says"),
    [
        (A, OnDevice((7, 10)), None, "a has 6 columns and b has 7 rows"),
        (A, OnDevice((6, 10), "float32"), None, "a is float64 and b is float32"),
        (OnDevice((8,)), B, None, "a has shape (8,); a matrix has two dimensions"),
        (OnDevice((0, 6)), B, None, "a is empty"),
        (OnDevice((8, 6), strides=(96, 16)), B, None, "a is not row-major and contiguous on the device"),
        (OnDevice((8, 6), ">f8"), OnDevice((6, 10), ">f8"), None, "copy it into a new float64 array first"),
        (OnDevice((8, 6), address=4104), B, None, "a starts at an address that is no multiple of 16"),
        (A, B, OnDevice((8, 10), address=16388), "out starts at an address that is no multiple of 16"),
        (A, B, OnDevice((8, 9)), "out is float64 (8, 9); the product is float64 (8, 10)"),
        (A, B, OnDevice((8, 10), "float32"), "out is float32"),
        (A, B, OnDevice((8, 10), address=4096), "out shares memory with a or b"),
        (A, B, OnDevice((8, 10), address=8192 + 464), "out shares memory with a or b"),
        (A, B, OnDevice((8, 10), address=1 << 16, read_only=True), "out is read-only"),
        (A, B, np.empty((8, 10)), "out must be where a and b are"),
        (A, np.ones((6, 10)), None, "one matrix is on the device and the other is not"),
    ],
)
def test_unsupported_calls_are_refused_each_time(launched, a, b, out, says):
    for _ in range(2):
        assert says in said(matmul, a, b, out=out)
    assert launched[0] == []


def test_strides_of_a_contiguous_matrix_are_as_good_as_none(launched):
    matmul(OnDevice((8, 6), strides=(48, 8)), OnDevice((6, 1), strides=(8, 77)))
    assert len(launched[0]) == 1


def test_a_rung_of_the_cpu_refuses_device_arrays(launched):
    with pytest.raises(InputError, match="runs on the CPU; give it NumPy arrays"):
        matmul(A, B, rung="numpy")


def test_other_streams_are_waited_for_and_wait_for_the_product(launched, monkeypatch):
    """The caller's own stream must not read the product before the default stream has made it."""
    order = []

    class Stream:
        def __init__(self, handle):
            self.handle = handle
            self.synchronize = lambda: order.append(f"waited for {handle}")

    class Event:
        record = staticmethod(lambda stream: order.append(f"recorded on {stream}"))
        wait = staticmethod(lambda stream: order.append(f"{stream.handle} waits"))

    for name, fake in {
        "external_stream": Stream, "event": lambda timing: Event, "legacy_default_stream": lambda: "the default",
    }.items():  # fmt: skip
        monkeypatch.setattr(compute.cuda, name, fake, raising=False)
    matmul(A, OnDevice((6, 10), stream=None), out=C)
    assert order == []
    matmul(A, OnDevice((6, 10), stream=123), out=C)
    assert order == ["waited for 123", "recorded on the default", "123 waits"]


def test_a_product_beyond_memory_is_refused(launched, monkeypatch):
    def make():
        raise RuntimeError("out of memory")

    monkeypatch.setattr(call, "_maker", lambda a, shape, dtype: make)
    monkeypatch.setattr(
        "nbody.compute.gpu.device.facts", lambda: compute.DeviceProperties("card", (9, 0), 1, 1e9, 2**31, 2**30, "none")
    )
    with pytest.raises(DeviceError, match=r"a product of 8x6 by 6x10 needs 0\.00 GiB of GPU memory and 1\.00 GiB are free"):
        matmul(A, B)


def test_each_device_has_scratch_memory_of_its_own(monkeypatch):
    class Kernel:
        def __getitem__(self, configuration):
            return lambda a, b, c, scratch: used.append(scratch)

    used, device = [], iter((0, 1, 0))
    monkeypatch.setattr(compute.cuda, "to_device", lambda array: array)
    monkeypatch.setattr(rung, "_device", lambda: next(device))
    launch = ProductLaunch(Kernel(), (1,), (1,), (Scratch(np.int32, (3, 1)),))
    for _ in range(3):
        launch(None, None, None)
    assert used[0] is used[2] is not used[1]
