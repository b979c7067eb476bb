"""Bodies in the order of a space-filling curve: Morton keys, a stable radix sort, and the bodies gathered in that order.

A key interleaves the bits of a body's coordinates in the root cell: 3 × 21 bits, in 2-D 2 × 31. Bodies of a cell of any
level have a common prefix, so a cell is a range of the sorted bodies (Morton 1966; Warren & Salmon 1993).
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from nbody import compute
from nbody.forces.direct.cpu_tiles import aligned_zeros
from nbody.forces.tree.box import Box
from nbody.forces.tree.sort import sort

PAD = 64
"""Massless bodies after the last one, so that vector loops may read beyond it."""


class Order(NamedTuple):
    """Bodies along the curve: the sorted ``keys`` (N,) uint64, and ``order`` (N,) uint32, the body at each place."""

    keys: np.ndarray
    order: np.ndarray


def key_bits(dimensions: int) -> int:
    """The number of bits of a key: 63, or 62 in 2-D."""
    return 63 if dimensions == 3 else 62


def sorted_bodies(position: np.ndarray, box: Box) -> Order:
    """The bodies at ``position`` (N, D) along the curve."""
    count, dimensions = position.shape
    keys, order = np.empty(count, np.uint64), np.empty(count, np.uint32)
    make_keys(position, box.low, box.side, keys, order)
    return Order(*sort(keys, order, key_bits(dimensions)))


@njit(error_model="numpy")
def _spread3(v):
    """The 21 bits of v, two zeros after each."""
    v = (v | (v << np.uint64(32))) & np.uint64(0x1F00000000FFFF)
    v = (v | (v << np.uint64(16))) & np.uint64(0x1F0000FF0000FF)
    v = (v | (v << np.uint64(8))) & np.uint64(0x100F00F00F00F00F)
    v = (v | (v << np.uint64(4))) & np.uint64(0x10C30C30C30C30C3)
    return (v | (v << np.uint64(2))) & np.uint64(0x1249249249249249)


@njit(error_model="numpy")
def _spread2(v):
    """The 31 bits of v, a zero after each."""
    v = (v | (v << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    v = (v | (v << np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    v = (v | (v << np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    v = (v | (v << np.uint64(2))) & np.uint64(0x3333333333333333)
    return (v | (v << np.uint64(1))) & np.uint64(0x5555555555555555)


@njit(error_model="numpy")
def _cell(x, low, scale, most):
    """The number of a coordinate's cell, 0 to ``most``; NaN is in cell 0."""
    cell = (np.float64(x) - low) * scale
    if not cell > 0.0:
        return np.uint64(0)
    return np.uint64(min(cell, most))


def _make_keys(position, low, side, keys, order):
    """Keys from float64 coordinates, and the order 0, 1, 2, …"""
    flat = position.shape[1] == 2
    most = float((1 << 31) - 1) if flat else float((1 << 21) - 1)
    scale = (most + 1.0) / side
    for i in prange(len(keys)):
        order[i] = i
        x, y = _cell(position[i, 0], low[0], scale, most), _cell(position[i, 1], low[1], scale, most)
        if flat:
            keys[i] = _spread2(x) << np.uint64(1) | _spread2(y)
        else:
            z = _cell(position[i, 2], low[2], scale, most)
            keys[i] = _spread3(x) << np.uint64(2) | _spread3(y) << np.uint64(1) | _spread3(z)


make_keys = compute.kernel("cpu", parallel=True)(_make_keys)


def gathered(position: np.ndarray, mass: np.ndarray, order: np.ndarray, unit: float, mass_unit: float) -> np.ndarray:
    """The bodies in an order: (4, N + PAD), x, y, z and m in the kernel's units; massless ones at the end."""
    bodies = aligned_zeros((4, len(order) + PAD), position.dtype)
    gather(position, mass, order, position.dtype.type(unit), mass.dtype.type(mass_unit), bodies)
    return bodies


def _gather(position, mass, order, unit, mass_unit, bodies):
    """Coordinates beyond 2^60 units are cut there, so that squares do not overflow float32. (A loop over the components
    takes three times as long.)"""
    flat = position.shape[1] == 2
    for i in prange(len(order)):
        body = order[i]
        bodies[0, i] = _cut(position[body, 0] * unit)
        bodies[1, i] = _cut(position[body, 1] * unit)
        if not flat:
            bodies[2, i] = _cut(position[body, 2] * unit)
        bodies[3, i] = mass[body] * mass_unit


@njit(error_model="numpy")
def _cut(x):
    most = type(x)(2.0**60)
    return most if x > most else -most if x < -most else x


gather = compute.kernel("cpu", parallel=True)(_gather)


def picked(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """``values[order]`` by all threads."""
    found = np.empty_like(values)
    pick(values, order, found)
    return found


def _pick(values, order, found):
    for i in prange(len(order)):
        found[i] = values[order[i]]


pick = compute.kernel("cpu", parallel=True)(_pick)
