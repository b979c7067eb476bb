"""Kernels of block steps on a GPU: the sums over all pairs of a listed body with any body, by chunks, and the addition of
the chunks, in an order that does not depend on the devices that computed them."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.compute.in_kernels.unroll import unrolled
from nbody.integrators.solvers.blocks import gpu_layout as layout
from nbody.integrators.solvers.blocks.formulas import A, pair_weights
from nbody.integrators.solvers.blocks.memory import NODE, rows_per_body
from nbody.law import LAWS, pair_law, pair_slopes


def _pair_sums(law_name: str, order: int, mixed: bool) -> Any:
    """``interact(s, begin, tile, own, itself, beyond, sums, length2)``: add the terms of body ``begin + s`` of a tile to
    the ``sums`` (bodies, 9) of a lane's bodies ``own``; body ``itself`` exerts no force on them, nor do those from
    ``beyond`` on."""
    real, rows, bodies = layout.real_of(mixed), rows_per_body(mixed), layout.tiling(mixed).bodies
    law, slopes = (make(law_name, 3, compute.rsqrt, compute.device_function) for make in (pair_law, pair_slopes))
    softened = LAWS.load(law_name).needs_length  # so a body exerts no force on itself
    snap = order == 6
    weights = pair_weights(order, law, compute.device_function, slopes, real)
    zero, one, fma = real(0), real(1), compute.multiply_add

    @compute.device_function
    def interact(s, begin, tile, own, itself, beyond, sums, length2):
        q = np.int32(begin + s)
        row = np.int32(q * rows)
        xj, yj, zj, mj = compute.row(tile, row)
        if mixed:
            xlj, ylj, zlj, _ = compute.row(tile, np.int32(row + 1))
        vxj, vyj, vzj, _ = compute.row(tile, np.int32(row + rows - 2))
        axj, ayj, azj, _ = compute.row(tile, np.int32(row + rows - 1))
        for b in range(bodies):
            m, dx, dy, dz = mj, xj - own[b, 0], yj - own[b, 1], zj - own[b, 2]
            if mixed:
                dx, dy, dz = dx + (xlj - own[b, 9]), dy + (ylj - own[b, 10]), dz + (zlj - own[b, 11])
            vx, vy, vz = vxj - own[b, 3], vyj - own[b, 4], vzj - own[b, 5]
            ax, ay, az = axj - own[b, 6], ayj - own[b, 7], azj - own[b, 8]
            if not softened and (q == itself[b] or q >= beyond):  # itself: far away, and without mass
                dx, m = one, zero
            w, pw, qw, rw = weights(dx, dy, dz, vx, vy, vz, ax, ay, az, m, length2)
            sums[b, 0] = fma(w, dx, sums[b, 0])
            sums[b, 1] = fma(w, dy, sums[b, 1])
            sums[b, 2] = fma(w, dz, sums[b, 2])
            sums[b, 3] = fma(-pw, dx, fma(w, vx, sums[b, 3]))
            sums[b, 4] = fma(-pw, dy, fma(w, vy, sums[b, 4]))
            sums[b, 5] = fma(-pw, dz, fma(w, vz, sums[b, 5]))
            if snap:
                sums[b, 6] = fma(rw, dx, fma(-qw, vx, fma(w, ax, sums[b, 6])))
                sums[b, 7] = fma(rw, dy, fma(-qw, vy, fma(w, ay, sums[b, 7])))
                sums[b, 8] = fma(rw, dz, fma(-qw, vz, fma(w, az, sums[b, 8])))

    return interact


@cache
def force_kernel(law_name: str, order: int, mixed: bool, first: bool) -> Any:
    """The kernel for one law, order and precision; ``first``: with the snap in both orders."""
    real, rows = layout.real_of(mixed), rows_per_body(mixed)
    warps, per_warp, bodies, unroll = layout.tiling(mixed)
    tile_size, group_size = layout.tiling(mixed).tile, layout.tiling(mixed).group
    height = tile_size * rows
    interact = unrolled(_pair_sums(law_name, 6 if first else order, mixed), unroll)
    zero = real(0)

    @compute.device_function
    def tick(clock, slot):
        """Take the next time as reached, and clear the slots for those after it."""
        number, now, following = clock[layout.LISTED + slot], clock[slot], (slot + 1) % 3
        if number == 0:  # nothing was predicted: the time stays
            clock[following] = now
        else:
            clock[layout.REACHED] = now
            clock[layout.BLOCKS_DONE] += 1
            clock[layout.SINGLE] += number
        clock[(slot + 2) % 3] = layout.FAR
        clock[layout.LISTED + (slot + 2) % 3] = 0

    @compute.device_function
    def fetch(p, j, count, held):
        """Read body j from the prediction; without mass beyond the last one."""
        row = min(j, count - 1) * rows
        for r in range(rows):
            held[r, 0], held[r, 1], held[r, 2], held[r, 3] = compute.row(p, row + r)
        if j >= count:
            held[0, 3] = zero

    @compute.device_function
    def begin(p, listed, number, n, own, sums, b):
        """Read the listed body n as body b of the lane. Returns its index, or -1."""
        i = listed[n] if n < number else -1
        row = max(i, 0) * rows
        for k in range(3):
            own[b, k], own[b, 3 + k], own[b, 6 + k] = p[row, k], p[row + rows - 2, k], p[row + rows - 1, k]
            own[b, 9 + k] = p[row + 1, k]
        for k in range(9):
            sums[b, k] = zero
        return i

    @compute.kernel("gpu", **compute.FAST)
    def force(p, partial, listed, clock, scale, slot, partition):
        """The sums over each chunk of this device: partial[(n * 9 + k) * here + chunk] for the listed body n,
        if ``here`` of them are this device's."""
        tile = cuda.shared.array((height, 4), real, alignment=16)
        rest = cuda.shared.array((warps, 9, 32), real)
        own, sums = cuda.local.array((bodies, 12), real), cuda.local.array((bodies, 9), real)  # these become registers
        listed_i, itself = cuda.local.array(bodies, np.int64), cuda.local.array(bodies, np.int32)
        held = cuda.local.array((rows, 4), real)
        t = np.int32(cuda.threadIdx.x)
        warp, lane = t // np.int32(32), t % np.int32(32)
        number, count = clock[layout.LISTED + slot], listed.shape[0]
        if cuda.blockIdx.x == 0 and t == 0:
            tick(clock, slot)
        chunks = layout.chunks_of(number, count, partition.parts, partition.capacity, tile_size, group_size)
        groups, tiles = (number + group_size - 1) // group_size, (count + tile_size - 1) // tile_size
        here, first_chunk, all_chunks = partition.own * chunks, partition.first * chunks, partition.parts * chunks
        length2, first_of_warp = real(scale[layout.LENGTH2]), np.int32(warp * per_warp)
        j_local = np.int32(first_of_warp + min(lane, np.int32(per_warp - 1)))
        work = cuda.blockIdx.x
        while work < groups * here:
            group, chunk = work // here, work % here
            for b in range(bodies):
                listed_i[b] = begin(p, listed, number, group * group_size + 32 * b + lane, own, sums, b)
            q = tiles * (first_chunk + chunk) // all_chunks
            end = tiles * (first_chunk + chunk + 1) // all_chunks
            fetch(p, q * tile_size + j_local, count, held)
            while q < end:
                base = q * tile_size
                if lane < per_warp:
                    for r in range(rows):
                        for k in range(4):
                            tile[j_local * rows + r, k] = held[r, k]
                compute.sync_warp()
                q += 1
                if q < end:  # the next body arrives during the sums over this tile
                    fetch(p, q * tile_size + j_local, count, held)
                for b in range(bodies):
                    itself[b] = np.int32(listed_i[b] - base)
                beyond = np.int32(min(count - base, tile_size))
                for s in range(0, per_warp, unroll):
                    interact(np.int32(first_of_warp + s), tile, own, itself, beyond, sums, length2)
                compute.sync_warp()
            for b in range(bodies):
                for k in range(9):
                    rest[warp, k, lane] = sums[b, k]
                cuda.syncthreads()
                n = group * group_size + 32 * b + lane
                for k in range(warp, 9, warps):
                    found = 0.0
                    for w in range(warps):
                        found += rest[w, k, lane]
                    if n < number:
                        partial[(n * 9 + k) * here + chunk] = found
                cuda.syncthreads()
            work += cuda.gridDim.x

    return force


class Totals(NamedTuple):
    """The device functions that add the partial sums of one body, for a number of parts."""

    of_parts: Any
    of_all: Any


def _mergers(parts: int, step: int) -> Any:
    """``merge(found, first, end)``: add the parts from ``first`` to ``end`` pairwise, as far as they are siblings in one
    binary tree of all ``parts``; a sum replaces its first part. ``step``: parts per node already. (Each step is a function
    with constants, so that ``found`` stays in registers.)"""
    if step == parts:
        return compute.exact_function(lambda found, first, end: None)
    above = _mergers(parts, 2 * step)

    @compute.exact_function
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

    @compute.exact_function
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
            found[p] = compute.shuffle(found[p], k) + (compute.shuffle(found[p], k + 9) + compute.shuffle(found[p], k + 18))
        merge(found, first, end)

    @compute.exact_function
    def of_all(sums, n, i, partition, chunks, lane, found):
        """The sum over all bodies on the listed body n, which is body i. ``sums``: the partial sums, or, if this device has
        only some of the parts, what :func:`gather_kernel` stored; ``found``: capacity for a number per part."""
        if partition.own == parts:
            of_parts(sums, n, partition, chunks, lane, found)
        else:
            index = i * partition.nodes * NODE + lane % 9
            for p in range(parts):
                if partition.kept >> p & 1:
                    found[p] = sums[index]
                    index += NODE
                else:
                    found[p] = 0.0
            merge(found, 0, parts)  # zeros beside sums that are complete
        return found[0]

    return Totals(of_parts, of_all)


@cache
def gather_kernel(mixed: bool, parts: int) -> Any:
    """The kernel that adds the chunks of a device's parts, and stores the sums of each listed body on all devices: sum k of
    body i over the node with the number m in gathered[(i * nodes + m) * NODE + k]."""
    tile, group, of_parts = layout.tiling(mixed).tile, layout.tiling(mixed).group, totals(parts).of_parts

    @compute.kernel("gpu")
    def gather(partial, gathered, listed, clock, slot, partition):
        found = cuda.local.array(parts, np.float64)
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
        number = clock[layout.LISTED + slot]
        chunks = layout.chunks_of(number, listed.size, partition.parts, partition.capacity, tile, group)
        first = cuda.blockIdx.x * layout.WARPS
        while first < number:
            n = min(first + warp, number - 1)
            of_parts(partial, n, partition, chunks, lane, found)
            if lane < NODE and first + warp < number:
                index = listed[n] * partition.nodes * NODE + lane
                for p in range(parts):
                    if partition.kept >> p & 1:
                        if partition.first <= p < partition.first + partition.own:
                            for there in gathered:
                                there[index] = found[p]
                        index += NODE
            first += cuda.gridDim.x * layout.WARPS

    return gather


@cache
def store_kernel(mixed: bool, parts: int) -> Any:
    """The kernel that keeps the sums of all bodies as their acceleration, jerk and snap."""
    tile, group, of_all = layout.tiling(mixed).tile, layout.tiling(mixed).group, totals(parts).of_all

    @compute.kernel("gpu")
    def store(rows, sums, listed, scale, partition):
        found = cuda.local.array(parts, np.float64)
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
        number = rows.shape[1]
        chunks = layout.chunks_of(number, number, partition.parts, partition.capacity, tile, group)
        first = cuda.blockIdx.x * layout.WARPS
        while first < number:
            n = min(first + warp, number - 1)
            i = listed[n]
            value = scale[layout.STRENGTH] * of_all(sums, n, i, partition, chunks, lane, found)
            if lane < 9 and first + warp < number:
                rows[A + lane, i] = value
            first += cuda.gridDim.x * layout.WARPS

    return store
