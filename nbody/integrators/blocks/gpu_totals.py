"""Kernels of block steps on a GPU: the chunks of the sums over all bodies are added, in an order that does not depend on the
devices that computed them."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.integrators.blocks.gpu_layout import STRENGTH, WARPS, chunks_of, exact, tiling
from nbody.integrators.blocks.memory import NODE


class Totals(NamedTuple):
    """The device functions that add the partial sums of one body, for a number of parts."""

    of_parts: Any
    of_all: Any


def _mergers(parts: int, step: int) -> Any:
    """``merge(found, first, end)``: add the parts from ``first`` to ``end`` pairwise, as far as they are siblings in one
    binary tree of all ``parts``; a sum replaces its first part. ``step``: parts per node already. (Each step is a function
    with constants, so that ``found`` stays in registers.)"""
    if step == parts:
        return exact(lambda found, first, end: None)
    above = _mergers(parts, 2 * step)

    @exact
    def merge(found, first, end):
        for p in range(0, parts, 2 * step):
            if first <= p and p + 2 * step <= end:
                found[p] += found[p + step]
        above(found, first, end)

    return merge


@cache
def totals(parts: int) -> Totals:
    """The functions; each warp computes the nine sums of one listed body, sum k in its lanes k, k + 9 and k + 18."""
    merge = _mergers(parts, 1)

    @exact
    def of_parts(partial, n, partition, chunks, lane, found):
        """Add the chunks of this device's parts, a third in each lane of a sum, and the parts as far as it has siblings."""
        first, end = partition.first, partition.first + partition.own
        for p in range(parts):
            found[p] = 0.0
        if lane < 27:
            start, chunk = (n * 9 + lane % 9) * partition.own * chunks, lane // 9
            while chunk < chunks:
                for p in range(parts):
                    if first <= p < end:
                        found[p] += partial[start + (p - first) * chunks + chunk]
                chunk += 3
        k = lane % 9
        for p in range(parts):
            found[p] = compute.shuffle(found[p], k) + (
                compute.shuffle(found[p], k + 9) + compute.shuffle(found[p], k + 18)
            )
        merge(found, first, end)

    @exact
    def of_all(sums, n, i, partition, chunks, lane, found):
        """The sum over all bodies on the listed body n, which is body i. ``sums``: the partial sums, or, if this device has
        only some of the parts, what :func:`gather_kernel` stored; ``found``: capacity for a number per part."""
        if partition.own == parts:
            of_parts(sums, n, partition, chunks, lane, found)
        else:
            place = i * partition.nodes * NODE + lane % 9
            for p in range(parts):
                if partition.kept >> p & 1:
                    found[p] = sums[place]
                    place += NODE
                else:
                    found[p] = 0.0
            merge(found, 0, parts)  # zeros beside sums that are complete
        return found[0]

    return Totals(of_parts, of_all)


@cache
def gather_kernel(mixed: bool, parts: int) -> Any:
    """The kernel that adds the chunks of a device's parts, and stores the sums of each listed body on all devices: sum k of
    body i over the node with the number m in gathered[(i * nodes + m) * NODE + k]."""
    tile, group, of_parts = tiling(mixed).tile, tiling(mixed).group, totals(parts).of_parts

    @compute.kernel("gpu")
    def gather(partial, gathered, listed, clock, slot, partition):
        found = cuda.local.array(parts, np.float64)
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
        number = clock[3 + slot]
        chunks = chunks_of(number, listed.size, partition.parts, partition.capacity, tile, group)
        first = cuda.blockIdx.x * WARPS
        while first < number:
            n = min(first + warp, number - 1)
            of_parts(partial, n, partition, chunks, lane, found)
            if lane < NODE and first + warp < number:
                place = listed[n] * partition.nodes * NODE + lane
                for p in range(parts):
                    if partition.kept >> p & 1:
                        if partition.first <= p < partition.first + partition.own:
                            for there in gathered:
                                there[place] = found[p]
                        place += NODE
            first += cuda.gridDim.x * WARPS

    return gather


@cache
def store_kernel(mixed: bool, parts: int) -> Any:
    """The kernel that keeps the sums of all bodies as their acceleration, jerk and snap."""
    tile, group, of_all = tiling(mixed).tile, tiling(mixed).group, totals(parts).of_all

    @compute.kernel("gpu")
    def store(rows, sums, listed, scale, partition):
        found = cuda.local.array(parts, np.float64)
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
        number = rows.shape[1]
        chunks = chunks_of(number, number, partition.parts, partition.capacity, tile, group)
        first = cuda.blockIdx.x * WARPS
        while first < number:
            n = min(first + warp, number - 1)
            i = listed[n]
            value = scale[STRENGTH] * of_all(sums, n, i, partition, chunks, lane, found)
            if lane < 9 and first + warp < number:
                rows[6 + lane, i] = value
            first += cuda.gridDim.x * WARPS

    return store
