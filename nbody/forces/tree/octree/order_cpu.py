"""The order of the bodies on the CPU: the box around them, Morton keys, a stable radix sort, and the bodies in that order.

A key interleaves the bits of a body's coordinates in the root cell: 3 × 21 bits, in 2-D 2 × 31. The sort goes by the highest
digits; bodies that have all of these in common are few, and are sorted by the other bits one run at a time.
"""

from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner, kernel
from nbody.compute.in_kernels.cpu_threads import for_each
from nbody.compute.in_kernels.morton import key_for

SAMPLE = 4096
"""Bodies from which the size of the bulk is taken."""

OUTSKIRTS = 1024.0
"""The root cell is at most this much larger than the cell that holds 90 % of the sample; bodies beyond are in its border
cells. So one body far away does not take the resolution of the keys from all others."""

PAD = 64
"""Massless bodies after the last one, so that vector loops may read beyond it."""

DIGIT = 11
"""Bits per pass of the sort: 2048 counters fit the first-level cache."""

PASSES = 3
"""The sort's passes: their 33 bits tell cells of 1/2048 of the root apart."""

CHUNKS = 32
"""Parts of the bodies that threads work on: fixed, so that nothing depends on the number of threads."""

FEW = 1 << 14
"""Fewer bodies than this are one chunk of the sort: threads would cost more than they gain."""


class Box(NamedTuple):
    """The root cell: its lowest corner (3,) and its side."""

    low: np.ndarray
    side: float


class Order(NamedTuple):
    """Bodies along the curve: the sorted ``keys`` (N,) uint64, and ``order`` (N,) uint32, the bodies along the curve."""

    keys: np.ndarray
    order: np.ndarray


def root_box(position: np.ndarray) -> tuple[Box, float]:
    """The root cell of bodies at ``position`` (N, D), a cube around them, without outliers; and the size of their bulk."""
    extremes = np.zeros((2, CHUNKS, 3), position.dtype)
    find_extremes(position, extremes)
    dimensions = position.shape[1]
    low, high = (each[:dimensions].astype(np.float64) for each in (extremes[0].min(0), extremes[1].max(0)))
    sample = position[:: max(1, len(position) // SAMPLE)].T.astype(np.float64, order="C")
    centre = _quantile(sample, 0.5)
    bulk = float(_quantile(np.abs(sample - centre[:, None]).max(0), 0.9))
    if bulk > 0:
        low, high = np.maximum(low, centre - OUTSKIRTS * bulk), np.minimum(high, centre + OUTSKIRTS * bulk)
    side = float((high - low).max())
    if not side > 0:
        side = max(1e-30, 1e-6 * float(np.abs(centre).max()))
    corner = np.zeros(3)
    corner[:dimensions] = low - 0.0005 * side
    return Box(corner, 1.001 * side), bulk or side


def _quantile(values: np.ndarray, fraction: float) -> np.ndarray:
    """The number in each row, or in a row, that is greater than this fraction of the others."""
    index = int(fraction * values.shape[-1])
    found: np.ndarray = np.partition(values, index)[..., index]
    return found


def sorted_bodies(position: np.ndarray, box: Box) -> Order:
    """The bodies at ``position`` (N, D) along the curve."""
    count = len(position)
    keys, order = np.empty(count, np.uint64), np.empty(count, np.uint32)
    chunks = CHUNKS if count >= FEW else 1
    spare = np.empty_like(keys), np.empty_like(order), np.empty((chunks + 1, 1 << DIGIT), np.int64)
    sort(position, box.low, box.side, keys, order, *spare)
    return Order(*spare[:2])


@inner
def _range_of(chunk, chunks, count):
    """The first body of a chunk, and the first one after it."""
    size = -(-count // chunks)
    return min(chunk * size, count), min((chunk + 1) * size, count)


@inner(fastmath={"nnan", "nsz"})
def _extremes_of(c, position, extremes):
    """Those of a chunk. (Three components by name are vectors; a loop over them is not, and takes twice as long.)"""
    count, last = len(position), position.shape[1] - 1
    begin, end = _range_of(c, extremes.shape[1], count)
    first = min(begin, count - 1)
    x0, y0, z0 = position[first, 0], position[first, 1], position[first, last]
    x1, y1, z1 = x0, y0, z0
    for i in range(first, end):
        x, y, z = position[i, 0], position[i, 1], position[i, last]
        x0, x1 = (x if x < x0 else x0), (x if x > x1 else x1)
        y0, y1 = (y if y < y0 else y0), (y if y > y1 else y1)
        z0, z1 = (z if z < z0 else z0), (z if z > z1 else z1)
    extremes[0, c, 0], extremes[0, c, 1], extremes[0, c, 2] = x0, y0, z0
    extremes[1, c, 0], extremes[1, c, 1], extremes[1, c, 2] = x1, y1, z1


@kernel
def find_extremes(position, extremes):
    """Fill ``extremes`` (2, CHUNKS, 3): the smallest and the largest of each coordinate."""
    for_each(_extremes_of, extremes.shape[1], 2, (position, extremes))


@inner
def _cell(x, low, scale, most):
    """The number of a coordinate's cell, 0 to ``most``; NaN is in cell 0."""
    cell = (np.float64(x) - low) * scale
    if not cell > 0.0:
        return np.uint64(0)
    return np.uint64(min(cell, most))


_key2, _key3 = key_for(2, inner), key_for(3, inner)


@inner
def _keys_of(c, position, low, side, keys, order):
    """Keys from float64 coordinates, and the order 0, 1, 2, …"""
    flat = position.shape[1] == 2
    most = float((1 << 31) - 1) if flat else float((1 << 21) - 1)
    scale, (begin, end) = (most + 1.0) / side, _range_of(c, CHUNKS, len(keys))
    for i in range(begin, end):
        order[i] = i
        x, y = _cell(position[i, 0], low[0], scale, most), _cell(position[i, 1], low[1], scale, most)
        if flat:
            keys[i] = _key2(x, y, x)
        else:
            keys[i] = _key3(x, y, _cell(position[i, 2], low[2], scale, most))


@kernel
def sort(position, low, side, keys, order, to_keys, to_order, counts):
    """Write the sorted keys of bodies in the cube at ``low``, and the body of each, into ``to_keys`` and ``to_order``.
    ``keys``, ``order`` and ``counts`` (chunks + 1, 2^DIGIT) are scratch memory."""
    chunks, bits = len(counts) - 1, 63 if position.shape[1] == 3 else 62
    for_each(_keys_of, CHUNKS, 2, (position, low, side, keys, order))
    for k in range(PASSES):
        shift = np.uint64(bits - DIGIT * (PASSES - k))
        for_each(_count, chunks, 2, (keys, shift, counts[:chunks]))
        _offsets(counts[:chunks], counts[chunks])
        for_each(_move, chunks, 2, (keys, order, to_keys, to_order, shift, counts[:chunks]))
        keys, order, to_keys, to_order = to_keys, to_order, keys, order
    # Three passes end in the second pair of arrays, which is 'keys' and 'order' now.
    for_each(_sort_runs, chunks, 2, (keys, order, to_keys, to_order, np.uint64(bits - DIGIT * PASSES), chunks))


@inner
def _count(c, keys, shift, counts):
    """The bodies of a chunk with each digit."""
    mask, (begin, end) = np.uint64((1 << DIGIT) - 1), _range_of(c, len(counts), len(keys))
    for digit in range(1 << DIGIT):
        counts[c, digit] = 0
    for i in range(begin, end):
        counts[c, (keys[i] >> shift) & mask] += 1


@inner
def _offsets(counts, first):
    """Turn the counts into the first place of each chunk's bodies with each digit. ``first`` is scratch memory for the
    bodies of each digit in the chunks before. (Row by row: vectors.)"""
    first[:] = 0
    for c in range(len(counts)):
        for digit in range(1 << DIGIT):
            number = counts[c, digit]
            counts[c, digit] = first[digit]
            first[digit] += number
    total = 0
    for digit in range(1 << DIGIT):
        number = first[digit]
        first[digit] = total
        total += number
    for c in range(len(counts)):
        for digit in range(1 << DIGIT):
            counts[c, digit] += first[digit]


@inner
def _move(c, keys, order, to_keys, to_order, shift, counts):
    """Move the bodies of a chunk to their places."""
    mask, (begin, end), places = np.uint64((1 << DIGIT) - 1), _range_of(c, len(counts), len(keys)), counts[c]
    for i in range(begin, end):
        digit = (keys[i] >> shift) & mask
        place = places[digit]
        places[digit] = place + 1
        to_keys[place] = keys[i]
        to_order[place] = order[i]


@inner
def _sort_runs(c, keys, order, spare_keys, spare, shift, chunks):
    """Sort each run of bodies that begins in a chunk, whose keys have the same bits from ``shift`` on, by the lower bits."""
    count = len(keys)
    i, end = _range_of(c, chunks, count)
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


@inner
def _insertion_sort(keys, order, first, last):
    for i in range(first + 1, last):
        key, body = keys[i], order[i]
        j = i
        while j > first and keys[j - 1] > key:
            keys[j], order[j] = keys[j - 1], order[j - 1]
            j -= 1
        keys[j], order[j] = key, body


@inner
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


@inner
def _cut(x):
    most = type(x)(2.0**60)
    return most if x > most else -most if x < -most else x


@inner
def _gather(c, position, mass, order, unit, mass_unit, bodies):
    """Coordinates beyond 2^60 units are cut there, so that squares do not overflow float32. (A loop over the components
    takes three times as long.)"""
    flat, (begin, end) = position.shape[1] == 2, _range_of(c, CHUNKS, len(order))
    for i in range(begin, end):
        body = order[i]
        bodies[0, i] = _cut(position[body, 0] * unit)
        bodies[1, i] = _cut(position[body, 1] * unit)
        if not flat:
            bodies[2, i] = _cut(position[body, 2] * unit)
        bodies[3, i] = mass[body] * mass_unit


@kernel
def gather(position, mass, order, unit, mass_unit, bodies):
    """Fill ``bodies`` (4, N + PAD): x, y, z and m in an order, in the kernel's units; the last ones stay massless."""
    for_each(_gather, CHUNKS, 2, (position, mass, order, unit, mass_unit, bodies))
