"""What the cells of a course's notebook call: show the file of a rung or an engine, and try it on a small problem."""

import inspect
from importlib import import_module
from typing import Any

import numpy as np

from nbody.errors import NBodyError
from nbody.forces.registry import ENGINES
from nbody.linalg import ELEMENTWISE, LADDER


def show(name: str) -> None:
    """Print the file of a rung or an engine."""
    registry = next(each for each in (LADDER, ELEMENTWISE, ENGINES) if name in each)
    print(inspect.getsource(import_module(registry[name].target.split(":")[0])))


def trial(name: str, n: int = 32) -> None:
    """Compute a product of n×n matrices by a rung, or the forces on n bodies by an engine, and print the largest relative
    error."""
    try:
        error = _product(name, n) if name in LADDER else _forces(name, n) if name in ENGINES else None
    except NBodyError as reason:
        print(f"{name} does not run here: {reason}")
    else:
        print(f"{name}, n = {n}: the largest relative error is {error:.1e}" if error is not None else "")


def _product(name: str, n: int) -> Any:
    from nbody.linalg import matmul

    columns = LADDER.load(name).columns or n
    dtype = LADDER.load(name).dtypes[0]
    rng = np.random.default_rng(1)
    a, b = rng.random((n, n)).astype(dtype), rng.random((n, columns)).astype(dtype)
    right = a.astype(np.float64) @ b
    return abs(matmul(a, b, rung=name) / right - 1).max()


def _forces(name: str, n: int) -> Any:
    from nbody.forces.api import accelerations
    from nbody.initial.functions import function

    bodies = function("plummer")(n, seed=1)
    right = accelerations(bodies, softening="plummer", length=0.1, engine="reference", precision="float64")
    found = accelerations(bodies, softening="plummer", length=0.1, engine=name)
    return (np.linalg.norm(found - right, axis=1) / np.linalg.norm(right, axis=1)).max()
