"""A stable radix sort of keys and the numbers of their bodies, with the highest digits only; the rest by runs."""

import numpy as np
from numba import njit, prange

from nbody import compute

DIGIT = 11
"""Bits per pass of the sort: 2048 counters fit the first-level cache."""

PASSES = 3
"""The sort's passes. The 33 highest bits tell cells of 1/2048 of the root apart; bodies with the same are few, and are
sorted by their other bits one run at a time."""

CHUNKS = 32
"""Parts of the bodies that threads count and move: fixed, so that the work does not depend on the number of threads."""

FEW = 1 << 14
"""Fewer bodies than this are one chunk: threads would cost more than they gain."""


def sort(keys: np.ndarray, order: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """The keys of ``bits`` bits in order, and ``order`` in the same one. Both arrays are overwritten."""
    spare_keys, spare = np.empty_like(keys), np.empty_like(order)
    counts = np.empty((CHUNKS if len(keys) >= FEW else 1, 1 << DIGIT), np.int64)
    for each in range(PASSES):
        radix_pass(keys, order, spare_keys, spare, np.uint64(bits - DIGIT * (PASSES - each)), counts)
        keys, order, spare_keys, spare = spare_keys, spare, keys, order
    sort_runs(keys, order, spare_keys, spare, np.uint64(bits - DIGIT * PASSES), len(counts))
    return keys, order


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


radix_pass = compute.kernel("cpu", parallel=True)(_radix_pass)


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


sort_runs = compute.kernel("cpu", parallel=True)(_sort_runs)
