"""A product as a user calls it: check the matrices, copy them to the device if needed, launch a rung, return the result.

Arrays with ``__cuda_array_interface__`` take about ten microseconds of Python per call: the first call with given shapes,
dtypes and layouts checks them, compiles the kernel and caches the launch; later calls look it up, check the addresses and
launch.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from nbody import compute
from nbody.errors import InputError
from nbody.linalg.ladder import CHAMPIONS, LADDER
from nbody.linalg.rung import ProductLaunch, ProductShape, Rung

ALIGNMENT = 16
"""Device arrays must start at a multiple of this number of bytes, since the kernels move 128 bits at a time."""
LEGACY_STREAM = 1
"""The default stream's number in ``__cuda_array_interface__``. Kernels are launched on this stream."""
MOST_CALLS = 1024

_CALLS: dict[tuple, "DeviceCall"] = {}


def matmul(a: Any, b: Any, out: Any = None, rung: str = "") -> Any:
    """C = A·B on the GPU, by the fastest rung for the dtype, or by the given ``rung``.

    With device arrays a call takes about ten microseconds of Python and returns before the product is done: it is queued on
    the default stream. Work on other streams that the arrays belong to is waited for first.

    Args:
        a: (m, k) matrix, float32 or float64, row-major: a NumPy array (copied to the device) or a device array of Numba,
            CuPy or PyTorch (used in place).
        b: (k, n) matrix of the same dtype and kind.
        out: (m, n) array for the result; on the device it must not share memory with a or b. None: a new array, which
            Numba allocates slowly.
        rung: a name of :data:`~nbody.linalg.ladder.LADDER`.

    Returns:
        ``out``, or a new array of the kind of ``a``.

    Raises:
        InputError: shapes, dtypes or layouts do not fit, a matrix is empty, ``out`` is read-only, or the rung does not
            support this product.
        DeviceError: there is no GPU, or too little memory on it.
    """
    try:
        target = None if out is None else out.__cuda_array_interface__
        left, right = a.__cuda_array_interface__, b.__cuda_array_interface__
    except AttributeError:
        return _multiply_on_host(rung, a, b, out)
    where = type(a) if target is None else _layout(target)
    key = rung, compute.current_device(), _layout(left), _layout(right), where
    call = _CALLS.get(key)
    if call is None:
        call = _prepared(rung, a, (left, right, target))
        if len(_CALLS) >= MOST_CALLS:
            _CALLS.clear()
        _CALLS[rung, compute.current_device(), *key[2:]] = call  # the first call may have made the device current
    return call.run(left, right, target, out)


def _layout(view: dict) -> tuple:
    return view["shape"], view["typestr"], view.get("strides")


# --- Checks -----------------------------------------------------------------------------------------------------------


def check_operands(a: Any, b: Any) -> tuple[ProductShape, np.dtype]:
    """The shape and dtype of a product. Raises InputError if the matrices cannot be multiplied."""
    for name, matrix in (("a", a), ("b", b)):
        if len(matrix.shape) != 2:
            raise InputError(f"{name} has shape {tuple(matrix.shape)}; a matrix has two dimensions")
        if np.dtype(matrix.dtype).name not in ("float32", "float64"):
            raise InputError(f"{name} has dtype {matrix.dtype}; convert it to float32 or float64")
        if 0 in matrix.shape:
            raise InputError(f"{name} is empty: its shape is {tuple(matrix.shape)}")
    if a.dtype != b.dtype:
        raise InputError(f"a is {a.dtype} and b is {b.dtype}; convert one to the other's dtype")
    if a.shape[1] != b.shape[0]:
        raise InputError(f"a has {a.shape[1]} columns and b has {b.shape[0]} rows; they must be as many")
    return ProductShape(int(a.shape[0]), int(b.shape[1]), int(a.shape[1])), np.dtype(a.dtype).newbyteorder("=")


def _checked_rung(name: str, a: Any, b: Any, on_device: bool) -> tuple[Rung, ProductShape, np.dtype]:
    """The rung for two matrices, the shape and the dtype of their product."""
    shape, dtype = check_operands(a, b)
    rung: Rung = LADDER.load(CHAMPIONS[dtype.name] if name == "" else name)
    rung.check(shape, dtype)
    if rung.on == "gpu":
        compute.require(f"the rung '{rung.title}'")
    elif on_device:
        raise InputError(f"the rung '{rung.title}' runs on the CPU; give it NumPy arrays")
    return rung, shape, dtype


def _check_out(out: Any, shape: ProductShape, dtype: np.dtype) -> None:
    if tuple(out.shape) != (shape.m, shape.n) or out.dtype != dtype:
        raise InputError(f"out is {out.dtype} {tuple(out.shape)}; the product is {dtype} {(shape.m, shape.n)}")


def _check_layout(name: str, view: dict) -> None:
    dtype, strides = np.dtype(view["typestr"]), view.get("strides")
    if not dtype.isnative:
        raise InputError(f"{name} is {dtype.str} on the device; copy it into a new {dtype.name} array first")
    row = view["shape"][1] * dtype.itemsize
    expected = zip(view["shape"], strides or (), (row, dtype.itemsize), strict=False)
    if any(length > 1 and stride != right for length, stride, right in expected):
        raise InputError(f"{name} is not row-major and contiguous on the device; copy it into a new array first")


def _on_device(array: Any) -> bool:
    # the second name is for the arrays of Numba's simulator
    return hasattr(array, "__cuda_array_interface__") or hasattr(array, "__cuda_ndarray__")


# --- Matrices on the device -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeviceCall:
    """A product of matrices of given shapes, dtypes and layouts. ``launch`` takes the addresses of a, b and c, ``make``
    returns a new c and its address, ``sizes`` are the bytes of a, b and c."""

    launch: Callable[[int, int, int], None]
    make: Callable[[], tuple[Any, int]]
    sizes: tuple[int, ...]
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


def _prepared(name: str, a: Any, views: tuple) -> DeviceCall:
    """All checks that depend on the matrices' shapes, dtypes and layouts only, and the compiled launch."""
    left, right, target = (view and SimpleNamespace(**view, dtype=np.dtype(view["typestr"])) for view in views)
    rung, shape, dtype = _checked_rung(name, left, right, on_device=True)
    if target is not None:
        _check_out(target, shape, dtype)
    for label, view in zip(("a", "b", "out"), views, strict=True):
        if view is not None:
            _check_layout(label, view)
    sizes = tuple(rows * columns * dtype.itemsize for rows, columns in shape.matrices)
    with compute.out_of_memory(what := f"a product of {shape}", sum(sizes)):
        launch = rung.launch(shape, dtype)
        assert isinstance(launch, ProductLaunch)
        return DeviceCall(launch.direct(shape, dtype), _maker(a, shape, dtype), sizes, what)


def _maker(a: Any, shape: ProductShape, dtype: np.dtype) -> Callable[[], tuple[Any, int]]:
    """A function that returns a new array for C, of the library of ``a``, and its address."""
    library, size = sys.modules[type(a).__module__.partition(".")[0]], (shape.m, shape.n)
    if library.__name__ == "cupy":
        new, address = lambda: library.empty(size, dtype), lambda made: made.data.ptr
    elif library.__name__ == "torch":
        kind, device = a.dtype, a.device
        new, address = lambda: library.empty(size, dtype=kind, device=device), lambda made: made.data_ptr()
    else:
        new, address = lambda: compute.cuda.device_array(size, dtype), lambda made: made.device_ctypes_pointer.value

    def make() -> tuple[Any, int]:
        made = new()
        return made, address(made)

    return make


# --- Matrices on the host, and all matrices in Numba's simulator ------------------------------------------------------


def _multiply_on_host(name: str, a: Any, b: Any, out: Any) -> Any:
    on_device = _on_device(a)
    if on_device != _on_device(b):
        raise InputError("one matrix is on the device and the other is not; copy one of them first")
    if not on_device:
        a, b = np.asarray(a), np.asarray(b)
    if out is not None and (_on_device(out) != on_device or not (on_device or isinstance(out, np.ndarray))):
        raise InputError("out must be where a and b are: all NumPy arrays, or all on the device")
    rung, shape, dtype = _checked_rung(name, a, b, on_device)
    if out is None:
        out = (compute.cuda.device_array if on_device else np.empty)((shape.m, shape.n), dtype)
    elif isinstance(out, np.ndarray) and not out.flags.writeable:
        raise InputError("out is read-only; give an array that can be written")
    _check_out(out, shape, dtype)
    if on_device:
        if out is a or out is b:
            raise InputError("out shares memory with a or b; give another array")
        rung.launch(shape, dtype)(a, b, out)
    elif rung.on == "cpu":
        apart = not (np.may_share_memory(out, a) or np.may_share_memory(out, b))
        result = out if apart else np.empty_like(out)  # a row of C would overwrite what the next row reads
        rung.launch(shape, dtype)(a.astype(dtype, copy=False), b.astype(dtype, copy=False), result)
        if not apart:
            out[...] = result
    else:
        needed = sum(rows * columns for rows, columns in shape.matrices) * dtype.itemsize
        with compute.out_of_memory(f"a product of {shape}", needed):
            result = compute.cuda.device_array((shape.m, shape.n), dtype)
            launch = rung.launch(shape, dtype)
            left, right = (compute.cuda.to_device(np.ascontiguousarray(factor, dtype)) for factor in (a, b))
            launch(left, right, result)
            out[...] = result.copy_to_host()
    return out
