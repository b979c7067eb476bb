"""Bodies in the order of a space-filling curve: Morton keys, a stable radix sort, and the bodies gathered in that order.

A key interleaves the bits of a body's coordinates in the root cell: 3 × 21 bits, in 2-D 2 × 31. Bodies of a cell of any
level have a common prefix, so a cell is a range of the sorted bodies (Morton 1966; Warren & Salmon 1993).
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

from nbody.forces.direct.cpu_cache import disk_cached
from nbody.forces.direct.cpu_tiles import aligned_zeros

DIGIT = 11
"""Bits per pass of the sort: 2048 counters fit the first-level cache."""

PASSES = 3
"""The sort's passes. The 33 highest bits tell cells of 1/2048 of the root apart; bodies with the same are few, and are
sorted by their other bits one run at a time."""

CHUNKS = 32
"""Parts of the bodies that threads count and move: fixed, so that the work does not depend on the number of threads."""

FEW = 1 << 14
"""Fewer bodies than this are one chunk: threads would cost more than they gain."""

SAMPLE = 4096
"""Bodies from which the size of the bulk is taken."""

OUTSKIRTS = 1024.0
"""The root cell is at most this much larger than the cell that holds 90 % of the sample; bodies beyond are in its border
cells. So one body far away does not take the resolution of the keys from all others."""

PAD = 64
"""Massless bodies after the last one, so that vector loops may read beyond it."""


class Box(NamedTuple):
    """The root cell: its lowest corner (3,) and its side."""

    low: np.ndarray
    side: float


def root_box(position: np.ndarray) -> tuple[Box, float]:
    """The root cell of bodies at ``position`` (N, D), a cube around them, without outliers; and the size of their bulk."""
    low, high = (_along(position, each).astype(np.float64) for each in (np.minimum, np.maximum))
    sample = position[:: max(1, len(position) // SAMPLE)].astype(np.float64)
    centre = np.median(sample, axis=0)
    bulk = float(np.quantile(np.abs(sample - centre).max(1), 0.9))
    if bulk > 0:
        low, high = np.maximum(low, centre - OUTSKIRTS * bulk), np.minimum(high, centre + OUTSKIRTS * bulk)
    side = float((high - low).max())
    if not side > 0:
        side = max(1e-30, 1e-6 * float(np.abs(centre).max()))
    corner = np.zeros(3)
    corner[: len(low)] = low - 0.0005 * side
    return Box(corner, 1.001 * side), bulk or side


def _along(position: np.ndarray, extreme: np.ufunc) -> np.ndarray:
    """The smallest or largest of each coordinate. (Rows of 64 bodies are compared as vectors: twice as fast as columns.)"""
    count, dimensions = position.shape
    whole = count // 64 * 64
    rows = (
        extreme.reduce(position[:whole].reshape(-1, 64 * dimensions), 0).reshape(64, dimensions) if whole else position
    )
    found: np.ndarray = extreme.reduce(np.concatenate([rows, position[whole:]]), 0)
    return found


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
    keys, spare_keys = np.empty(count, np.uint64), np.empty(count, np.uint64)
    order, spare = np.empty(count, np.uint32), np.empty(count, np.uint32)
    make_keys(position, box.low, box.side, keys, order)
    counts = np.empty((CHUNKS if count >= FEW else 1, 1 << DIGIT), np.int64)
    top = key_bits(dimensions)
    for each in range(PASSES):
        shift = np.uint64(top - DIGIT * (PASSES - each))
        radix_pass(keys, order, spare_keys, spare, shift, counts)
        keys, order, spare_keys, spare = spare_keys, spare, keys, order
    sort_runs(keys, order, spare_keys, spare, np.uint64(top - DIGIT * PASSES), len(counts))
    return Order(keys, order)


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


make_keys = disk_cached(_make_keys, parallel=True)


def _radix_pass(keys, order, to_keys, to_order, shift, counts):
    """One stable pass: by the 11 bits of the keys from ``shift`` on."""
    chunks, mask = len(counts), np.uint64((1 << DIGIT) - 1)
    size = -(-len(keys) // chunks)
    for c in prange(chunks):
        for digit in range(1 << DIGIT):
            counts[c, digit] = 0
        for i in range(c * size, min((c + 1) * size, len(keys))):
            counts[c, (keys[i] >> shift) & mask] += 1
    first = np.zeros(1 << DIGIT, np.int64)  # bodies of each digit in the chunks before; row by row, as vectors
    for c in range(chunks):
        for digit in range(1 << DIGIT):
            number = counts[c, digit]
            counts[c, digit] = first[digit]
            first[digit] += number
    total = 0
    for digit in range(1 << DIGIT):
        number = first[digit]
        first[digit] = total
        total += number
    for c in prange(chunks):
        places = counts[c]
        for digit in range(1 << DIGIT):
            places[digit] += first[digit]
        for i in range(c * size, min((c + 1) * size, len(keys))):
            digit = (keys[i] >> shift) & mask
            place = places[digit]
            places[digit] = place + 1
            to_keys[place] = keys[i]
            to_order[place] = order[i]


radix_pass = disk_cached(_radix_pass, parallel=True)


@njit(error_model="numpy")
def _insertion_sort(keys, order, first, last):
    for i in range(first + 1, last):
        key, body = keys[i], order[i]
        j = i
        while j > first and keys[j - 1] > key:
            keys[j], order[j] = keys[j - 1], order[j - 1]
            j -= 1
        keys[j], order[j] = key, body


@njit(error_model="numpy")
def _merge_sort(keys, order, spare_keys, spare, first, last):
    """Stable, bottom up; for the rare long runs."""
    step = 32
    for start in range(first, last, step):
        _insertion_sort(keys, order, start, min(start + step, last))
    while step < last - first:
        for start in range(first, last, 2 * step):
            middle, end = min(start + step, last), min(start + 2 * step, last)
            i, j = start, middle
            for k in range(start, end):
                if i < middle and (j >= end or keys[i] <= keys[j]):
                    spare_keys[k], spare[k] = keys[i], order[i]
                    i += 1
                else:
                    spare_keys[k], spare[k] = keys[j], order[j]
                    j += 1
        for k in range(first, last):
            keys[k], order[k] = spare_keys[k], spare[k]
        step *= 2


def _sort_runs(keys, order, spare_keys, spare, shift, chunks):
    """Sort each run of bodies whose keys have the same bits from ``shift`` on by the lower bits."""
    count = len(keys)
    size = -(-count // chunks)
    for c in prange(chunks):
        i = c * size
        end = min((c + 1) * size, count)
        while 0 < i < end and keys[i] >> shift == keys[i - 1] >> shift:
            i += 1  # the run belongs to the chunk in which it begins
        while i < end:
            last = i + 1
            while last < count and keys[last] >> shift == keys[i] >> shift:
                last += 1
            if last - i > 64:
                _merge_sort(keys, order, spare_keys, spare, i, last)
            elif last - i > 1:
                _insertion_sort(keys, order, i, last)
            i = last


sort_runs = disk_cached(_sort_runs, parallel=True)


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


gather = disk_cached(_gather, parallel=True)


def picked(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """``values[order]`` by all threads."""
    found = np.empty_like(values)
    pick(values, order, found)
    return found


def _pick(values, order, found):
    for i in prange(len(order)):
        found[i] = values[order[i]]


pick = disk_cached(_pick, parallel=True)
