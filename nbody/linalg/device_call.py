"""A product of arrays on the device, in about ten microseconds of Python per call.

The first call with given shapes, dtypes and layouts checks them, compiles the kernel and caches the launch. Later calls
look it up, check the addresses and launch. Any array with ``__cuda_array_interface__`` is accepted.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from nbody import compute
from nbody.errors import InputError
from nbody.linalg.operands import ALIGNMENT, check_operands
from nbody.linalg.rung import ProductLaunch, ProductShape, Rung

LEGACY_STREAM = 1
"""The default stream's number in ``__cuda_array_interface__``. Kernels are launched on this stream."""
MOST_CALLS = 1024

_CALLS: dict[tuple, "DeviceCall"] = {}


def multiply_on_device(load: Callable[[str, Any], Rung], name: str, a: Any, b: Any, out: Any, views: tuple) -> Any:
    """C = A·B; arguments, result and errors as in :func:`nbody.linalg.matmul`. ``load(name, dtype)`` returns the rung;
    ``views``: the ``__cuda_array_interface__`` of a, b and out (None without ``out``)."""
    left, right, target = views
    where = type(a) if target is None else _layout(target)
    key = name, compute.current_device(), _layout(left), _layout(right), where
    call = _CALLS.get(key)
    if call is None:
        call = _prepared(load, name, a, views)
        if len(_CALLS) >= MOST_CALLS:
            _CALLS.clear()
        _CALLS[name, compute.current_device(), *key[2:]] = call  # the first call may have made the device current
    return call.run(left, right, target, out)


def _layout(view: dict) -> tuple:
    return view["shape"], view["typestr"], view.get("strides")


@dataclass(frozen=True)
class DeviceCall:
    """A product of matrices of given shapes, dtypes and layouts. ``launch`` takes the addresses of a, b and c, ``make``
    returns a new c and its address, ``sizes`` are the bytes of a, b and c."""

    launch: Callable[[int, int, int], None]
    make: Callable[[], tuple[Any, int]]
    sizes: tuple[int, int, int]
    what: str

    def run(self, left: dict, right: dict, target: dict | None, out: Any) -> Any:
        """Check the addresses, launch in the order of the arrays' own streams; returns c."""
        at_a, at_b = left["data"][0], right["data"][0]
        if target is None:
            out, at_c = self._made()
        else:
            at_c = target["data"][0]
            self._check_target(at_a, at_b, at_c, target)
        if (at_a | at_b | at_c) % ALIGNMENT:
            name = "a" if at_a % ALIGNMENT else "b" if at_b % ALIGNMENT else "out"
            raise InputError(
                f"{name} starts at an address that is no multiple of {ALIGNMENT}; copy it into a new array first"
            )
        others = {view["stream"] for view in (left, right, target) if view and view.get("stream")} - {LEGACY_STREAM}
        for stream in others:
            compute.cuda.external_stream(stream).synchronize()
        self.launch(at_a, at_b, at_c)
        if others:  # the caller's next work on its own stream waits for the product
            done = compute.cuda.event(timing=False)
            done.record(compute.cuda.legacy_default_stream())
            for stream in others:
                done.wait(compute.cuda.external_stream(stream))
        return out

    def _made(self) -> tuple[Any, int]:
        try:
            return self.make()
        except Exception:
            with compute.out_of_memory(self.what, sum(self.sizes)):
                return self.make()

    def _check_target(self, at_a: int, at_b: int, at_c: int, target: dict) -> None:
        of_a, of_b, of_c = self.sizes
        if (at_c < at_a + of_a and at_a < at_c + of_c) or (at_c < at_b + of_b and at_b < at_c + of_c):
            raise InputError("out shares memory with a or b; give another array")
        if target["data"][1]:
            raise InputError("out is read-only; give an array that can be written")


def _prepared(load: Callable[[str, Any], Rung], name: str, a: Any, views: tuple) -> DeviceCall:
    """All checks that depend on the matrices' shapes, dtypes and layouts only, and the compiled launch."""
    left, right, target = views
    shape, dtype = check_operands(_matrix(left), _matrix(right))
    rung = load(name, dtype)
    rung.check(shape, dtype)
    if rung.on == "cpu":
        raise InputError(f"the rung '{rung.title}' runs on the CPU; give it NumPy arrays")
    compute.require(f"the rung '{rung.title}'")
    if target is not None:
        found = _matrix(target)
        if tuple(found.shape) != (shape.m, shape.n) or found.dtype != dtype:
            raise InputError(f"out is {found.dtype} {tuple(found.shape)}; the product is {dtype} {(shape.m, shape.n)}")
    for label, view in (("a", left), ("b", right), ("out", target)):
        if view is not None:
            _check_layout(label, view)
    item = dtype.itemsize
    sizes = shape.m * shape.k * item, shape.k * shape.n * item, shape.m * shape.n * item
    what = f"a product of {shape.m}x{shape.k} by {shape.k}x{shape.n}"
    with compute.out_of_memory(what, sum(sizes)):
        launch = rung.launch(shape, dtype)
        assert isinstance(launch, ProductLaunch)
        return DeviceCall(launch.direct(shape, dtype), _maker(a, shape, dtype), sizes, what)


def _matrix(view: dict) -> SimpleNamespace:
    return SimpleNamespace(shape=view["shape"], dtype=np.dtype(view["typestr"]))


def _check_layout(name: str, view: dict) -> None:
    dtype, strides = np.dtype(view["typestr"]), view.get("strides")
    if not dtype.isnative:
        raise InputError(f"{name} is {dtype.str} on the device; copy it into a new {dtype.name} array first")
    row = view["shape"][1] * dtype.itemsize
    expected = zip(view["shape"], strides or (), (row, dtype.itemsize), strict=False)
    if any(length > 1 and stride != right for length, stride, right in expected):
        raise InputError(f"{name} is not row-major and contiguous on the device; copy it into a new array first")


def _maker(a: Any, shape: ProductShape, dtype: np.dtype) -> Callable[[], tuple[Any, int]]:
    """A function that returns a new array for C, of the library of ``a``, and its address."""
    library, size = sys.modules[type(a).__module__.partition(".")[0]], (shape.m, shape.n)
    if library.__name__ == "cupy":

        def make() -> tuple[Any, int]:
            made = library.empty(size, dtype)
            return made, made.data.ptr

    elif library.__name__ == "torch":
        kind, device = a.dtype, a.device

        def make() -> tuple[Any, int]:
            made = library.empty(size, dtype=kind, device=device)
            return made, made.data_ptr()

    else:

        def make() -> tuple[Any, int]:
            made = compute.cuda.device_array(size, dtype)
            return made, made.device_ctypes_pointer.value

    return make
