"""The numbers of the criterion by which cells are opened, from what a user says and from the law."""

import math
from typing import Any

import numpy as np

from nbody.forces.compute_units import NEAREST, ComputeUnits
from nbody.forces.tree.walk import DISTANT, FLAT, Rules
from nbody.law import LAWS, Gravity

FIRST_THETA = 0.6
"""The geometric criterion of a first evaluation, when |a| is not known."""

CANCELLED = 0.01
"""Accelerations less than this times G M/R², with the mass and radius of all bodies, need not be more accurate."""


def rules_for(gravity: Gravity, units: ComputeUnits, theta: float | None, error: float, root: np.ndarray) -> Rules:
    """The criterion in the kernel's units and type.

    Args:
        theta: of a geometric criterion, if a user names it.
        error: the relative error; infinite for a geometric criterion.
        root: the record of the sources' root cell.
    """
    real: Any = root.dtype.type
    law = LAWS.load(gravity.softening)
    nearest = math.ldexp(1.0, NEAREST[root.dtype.name])
    eps = max(nearest, float(gravity.shortest) * units.position if law.has_length else 0.0)
    support = {"plummer": 0.0, "spline": 2.8 * eps}.get(law.name, eps)
    r, mass = map(float, np.abs(root[3:5]))
    geometric = error == math.inf
    return Rules(
        real(eps) ** 2,
        real(support),
        real((theta or FIRST_THETA) if geometric else DISTANT),
        real(min(DISTANT, (theta or FIRST_THETA)) if geometric else DISTANT),
        real(1.0 if geometric else FLAT),
        real(error),
        real(CANCELLED * mass / r**2 if r > 0 else 0.0),
    )
