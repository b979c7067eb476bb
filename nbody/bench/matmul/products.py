"""The products that the ladder is measured on: random matrices, and what their product should be."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nbody import memory
from nbody.errors import DeviceError, InputError, NBodyError
from nbody.linalg.rung import ProductShape

CHECKED_ROWS = 32
"""Rows of a product that are compared with float64: enough to show a kernel's mistakes, and quick at any size."""


class ErrorReport(NamedTuple):
    """Largest and mean relative error of the entries of a product."""

    maximum: float
    mean: float


def error_report(product: np.ndarray, reference: np.ndarray) -> ErrorReport:
    """Relative error |c - ref| / |ref| of every entry of ``product`` against a float64 ``reference`` of the
    same shape; where the reference is zero, the absolute error. A NaN or an infinity in only one of them is an
    infinite error."""
    product, reference = np.asarray(product, np.float64), np.asarray(reference, np.float64)
    if product.shape != reference.shape or product.size == 0:
        raise ValueError(f"can't compare {product.shape} with {reference.shape}")
    scale = np.where(reference == 0, 1.0, np.abs(reference))
    same = (product == reference) | (np.isnan(product) & np.isnan(reference))
    with np.errstate(invalid="ignore"):
        errors = np.where(same, 0.0, np.abs(product - reference) / scale)
    errors = np.where(np.isnan(errors), np.inf, errors)
    return ErrorReport(float(errors.max()), float(errors.mean()))


class ProductProblem:
    """Random matrices of a shape, on the host and the device, and some rows of their float64 product."""

    def __init__(self, shape: ProductShape, precision: str) -> None:
        rng = np.random.default_rng(7)
        self.shape, self.dtype = shape, np.dtype(precision)
        self.a = rng.random((shape.m, shape.k), dtype=self.dtype.type)
        self.b = rng.random((shape.k, shape.n), dtype=self.dtype.type)
        self.rows = np.unique(np.linspace(0, shape.m - 1, CHECKED_ROWS).astype(int))
        self.reference = self.a[self.rows].astype(np.float64) @ self.b.astype(np.float64)

    @property
    def bytes(self) -> float:
        return sum(rows * columns for rows, columns in self.shape.matrices) * self.dtype.itemsize

    @cached_property
    def on_device(self) -> list[Any]:
        """A, B and the result's array on the GPU; copied when a kernel first asks for them."""
        from nbody.compute import cuda

        return [cuda.to_device(matrix) for matrix in (self.a, self.b, self.nothing())]

    def nothing(self) -> np.ndarray:
        """A result that no kernel has written yet."""
        return np.full((self.shape.m, self.shape.n), np.nan, self.dtype)

    def cleared(self) -> Any:
        """The result's array on the device, with nothing written yet."""
        self.on_device[2].copy_to_device(self.nothing())
        return self.on_device[2]

    def error(self, product: np.ndarray) -> ErrorReport:
        """The error of a product in the rows that are checked."""
        return error_report(product[self.rows], self.reference)


def check_fits(size: int, precision: str, on_gpu: bool) -> None:
    """Raise InputError if matrices of a size do not fit the computer's memory, DeviceError if not the GPU's."""
    from nbody import compute

    matrix = size**2 * np.dtype(precision).itemsize
    # The host also holds a second C, and the float64 copies of some rows and of B.
    host = 4 * matrix + 8 * size**2 + 16 * CHECKED_ROWS * size
    places: list[tuple[type[NBodyError], str, int, int]] = [(InputError, "memory", host, memory.memory_available())]
    if on_gpu:
        places.append((DeviceError, "GPU memory", 3 * matrix, compute.facts().memory_free))
    for kind, place, needed, free in places:
        if needed > free:
            raise kind(
                f"--sizes: products of {size}x{size} matrices in {precision} need {needed / 2**30:.3g} GiB of {place} "
                f"and {free / 2**30:.3g} GiB are free; choose a smaller size"
            )
