"""Errors of a product against the float64 product."""

from typing import NamedTuple

import numpy as np


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
