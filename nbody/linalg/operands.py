"""From a user's NumPy matrices to a rung's launch: check them, copy them to the device if needed, return the result."""

from collections.abc import Callable
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.linalg.rung import ProductShape, Rung

ALIGNMENT = 16
"""Device arrays must start at a multiple of this number of bytes, since the kernels move 128 bits at a time."""

ELSEWHERE = "out must be where a and b are: all NumPy arrays, or all on the device"


def multiply_on_host(load: Callable[[str, Any], Rung], name: str, a: Any, b: Any, out: Any) -> Any:
    """C = A·B of NumPy arrays, which are copied to the device and back, and of all arrays in Numba's simulator; arguments,
    result and errors as in :func:`nbody.linalg.matmul`. ``load(name, dtype)`` returns the rung."""
    if _on_device(a) != _on_device(b):
        raise InputError("one matrix is on the device and the other is not; copy one of them first")
    if not _on_device(a):
        a, b = np.asarray(a), np.asarray(b)
    elif out is not None and not _on_device(out):
        raise InputError(ELSEWHERE)
    shape, dtype = check_operands(a, b)
    rung = load(name, dtype)
    rung.check(shape, dtype)
    if rung.on == "cpu":
        return _multiply_on_cpu(rung, shape, dtype, a, b, out)
    from nbody import compute

    compute.require(f"the rung '{rung.title}'")
    target = out
    if target is None:
        target = (
            compute.cuda.device_array((shape.m, shape.n), dtype)
            if _on_device(a)
            else np.empty((shape.m, shape.n), dtype)
        )
    _check_out(target, shape, dtype, on_device=_on_device(a))
    if _on_device(a):
        if out is a or out is b:
            raise InputError("out shares memory with a or b; give another array")
        rung.launch(shape, dtype)(a, b, target)
        return target
    needed = (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n) * dtype.itemsize
    with compute.out_of_memory(f"a product of {shape.m}x{shape.k} by {shape.k}x{shape.n}", needed):
        result = compute.cuda.device_array((shape.m, shape.n), dtype)
        launch = rung.launch(shape, dtype)
        left, right = (compute.cuda.to_device(np.ascontiguousarray(factor, dtype)) for factor in (a, b))
        launch(left, right, result)
        target[...] = result.copy_to_host()
    return target


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


def _multiply_on_cpu(rung: Rung, shape: ProductShape, dtype: np.dtype, a: Any, b: Any, out: Any) -> np.ndarray:
    if _on_device(a):
        raise InputError(f"the rung '{rung.title}' runs on the CPU; give it NumPy arrays")
    target = np.empty((shape.m, shape.n), dtype) if out is None else out
    _check_out(target, shape, dtype, on_device=False)
    apart = not (np.may_share_memory(target, a) or np.may_share_memory(target, b))
    result = target if apart else np.empty_like(target)  # a row of C would overwrite what the next row reads
    rung.launch(shape, dtype)(a.astype(dtype, copy=False), b.astype(dtype, copy=False), result)
    if not apart:
        target[...] = result
    return target


def _check_out(out: Any, shape: ProductShape, dtype: np.dtype, on_device: bool) -> None:
    if _on_device(out) != on_device or not (on_device or isinstance(out, np.ndarray)):
        raise InputError(ELSEWHERE)
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise InputError("out is read-only; give an array that can be written")
    if tuple(out.shape) != (shape.m, shape.n) or out.dtype != dtype:
        raise InputError(f"out is {out.dtype} {tuple(out.shape)}; the product is {dtype} {(shape.m, shape.n)}")


def _on_device(array: Any) -> bool:
    # the second name is for the arrays of Numba's simulator
    return hasattr(array, "__cuda_array_interface__") or hasattr(array, "__cuda_ndarray__")
