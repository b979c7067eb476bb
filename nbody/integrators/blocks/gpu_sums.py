"""Kernels of block steps on a GPU: the sums over all pairs of a listed body with any body."""

from functools import cache
from typing import Any

import numpy as np

from nbody import gpu
from nbody.gpu import cuda
from nbody.integrators.blocks.formulas import pair_weights
from nbody.integrators.blocks.gpu_layout import (
    BLOCKS_DONE,
    FAR,
    LENGTH2,
    REACHED,
    SINGLE,
    STRENGTH,
    TILE,
    WARPS,
    real_of,
)  # fmt: skip
from nbody.integrators.blocks.memory import rows_per_body
from nbody.law import LAWS, pair_law, pair_slopes


@gpu.device_function
def total(partial, n, shares, lane):
    """The nine sums of the listed body n, sum k in lane k: lanes k, k + 9 and k + 18 add a third of the shares each."""
    found = 0.0
    if lane < 27:
        share = lane // 9
        while share < shares:
            found += partial[(n * 9 + lane % 9) * shares + share]
            share += 3
    k = lane % 9
    return gpu.shuffle(found, k) + (gpu.shuffle(found, k + 9) + gpu.shuffle(found, k + 18))


@gpu.kernel
def store(rows, partial, listed, scale, force_blocks):
    """Keep the sums of all bodies as their acceleration, jerk and snap."""
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    number, tiles = rows.shape[1], (rows.shape[1] + TILE - 1) // TILE
    shares = max(1, min(tiles, force_blocks // max(1, (number + 31) // 32)))
    first = cuda.blockIdx.x * WARPS
    while first < number:
        n = min(first + warp, number - 1)
        value = scale[STRENGTH] * total(partial, n, shares, lane)
        if lane < 9 and first + warp < number:
            rows[6 + lane, listed[n]] = value
        first += cuda.gridDim.x * WARPS


@cache
def force_kernel(law_name: str, order: int, mixed: bool, first: bool) -> Any:
    """The kernel for one law, order and precision; ``first``: with the snap in both orders."""
    real = real_of(mixed)
    law, slopes = (make(law_name, 3, gpu.rsqrt, gpu.device_function) for make in (pair_law, pair_slopes))
    softened = LAWS.load(law_name).needs_length  # so a body exerts no force on itself
    snap = first or order == 6
    weights = pair_weights(6 if first else order, law, gpu.device_function, slopes)
    zero, one = real(0), real(1)
    split = 3 if mixed else 0
    numbers = rows_per_body(mixed)
    rows = 5 if mixed else 3  # of four numbers per body, for 128-bit loads; the fifth keeps stores apart in the banks
    height, share_of_tile = TILE * rows, TILE // WARPS

    @gpu.kernel(**gpu.FAST)
    def force(p, partial, listed, clock, scale, slot):
        """The sums of each share of all bodies: partial[(n * 9 + k) * shares + share] for the listed body n."""
        tile = cuda.shared.array((height, 4), real, alignment=16)
        rest = cuda.shared.array((WARPS, 9, 32), real)
        t, block = np.int32(cuda.threadIdx.x), cuda.blockIdx.x
        warp, lane = t // np.int32(32), t % np.int32(32)
        number, count = clock[3 + slot], p.shape[1]
        if block == 0 and t == 0:
            now, following = clock[slot], (slot + 1) % 3
            if number == 0:  # nothing was predicted: the time stays
                clock[following] = now
            else:
                clock[REACHED] = now
                clock[BLOCKS_DONE] += 1
                clock[SINGLE] += number
            clock[(slot + 2) % 3] = FAR
            clock[3 + (slot + 2) % 3] = 0
        groups, tiles = (number + 31) // 32, (count + TILE - 1) // TILE
        shares = max(1, min(tiles, cuda.gridDim.x // max(1, groups)))
        each = (tiles + shares - 1) // shares
        length2 = real(scale[LENGTH2])
        work = block
        while work < groups * shares:
            group, share = work // shares, work % shares
            n = group * 32 + lane
            i = listed[n] if n < number else -1
            own = i if i >= 0 else 0
            xi, yi, zi = p[0, own], p[1, own], p[2, own]
            if mixed:
                xl, yl, zl = p[3, own], p[4, own], p[5, own]
            vxi, vyi, vzi = p[split + 3, own], p[split + 4, own], p[split + 5, own]
            axi, ayi, azi = p[split + 6, own], p[split + 7, own], p[split + 8, own]
            ax, ay, az, jx, jy, jz, sx, sy, sz = zero, zero, zero, zero, zero, zero, zero, zero, zero
            for number_of_tile in range(share * each, min(tiles, (share + 1) * each)):
                base = number_of_tile * TILE
                if t < TILE:
                    j = base + t
                    for k in range(numbers - 1):
                        place = k if k < 3 else k + 1
                        tile[t * rows + place // 4, place % 4] = p[k, j] if j < count else zero
                    tile[t * rows, 3] = p[numbers - 1, j] if j < count else zero
                cuda.syncthreads()
                itself, beyond = np.int32(i - base), np.int32(min(count - base, TILE))
                q = np.int32(warp * np.int32(share_of_tile))
                end = np.int32(q + np.int32(share_of_tile))
                while q < end:
                    row = np.int32(q * np.int32(rows))
                    xj, yj, zj, m = gpu.row(tile, row)
                    if mixed:
                        xlj, ylj, zlj, vxj = gpu.row(tile, np.int32(row + 1))
                        vyj, vzj, axj, ayj = gpu.row(tile, np.int32(row + 2))
                        azj, _, _, _ = gpu.row(tile, np.int32(row + 3))
                    else:
                        vxj, vyj, vzj, axj = gpu.row(tile, np.int32(row + 1))
                        ayj, azj, _, _ = gpu.row(tile, np.int32(row + 2))
                    dx, dy, dz = xj - xi, yj - yi, zj - zi
                    if mixed:
                        dx, dy, dz = dx + (xlj - xl), dy + (ylj - yl), dz + (zlj - zl)
                    vx, vy, vz = vxj - vxi, vyj - vyi, vzj - vzi
                    dax, day, daz = axj - axi, ayj - ayi, azj - azi
                    if not softened and (q == itself or q >= beyond):  # itself: far away, and without mass
                        dx, m = one, zero
                    w, pw, qw, rw = weights(dx, dy, dz, vx, vy, vz, dax, day, daz, m, length2)
                    ax += w * dx
                    ay += w * dy
                    az += w * dz
                    jx += w * vx - pw * dx
                    jy += w * vy - pw * dy
                    jz += w * vz - pw * dz
                    if snap:
                        sx += w * dax - qw * vx + rw * dx
                        sy += w * day - qw * vy + rw * dy
                        sz += w * daz - qw * vz + rw * dz
                    q = np.int32(q + 1)  # 64-bit integers would take twice the instructions
                cuda.syncthreads()
            rest[warp, 0, lane], rest[warp, 1, lane], rest[warp, 2, lane] = ax, ay, az
            rest[warp, 3, lane], rest[warp, 4, lane], rest[warp, 5, lane] = jx, jy, jz
            rest[warp, 6, lane], rest[warp, 7, lane], rest[warp, 8, lane] = sx, sy, sz
            cuda.syncthreads()
            for k in range(warp, 9, WARPS):
                total = 0.0
                for w in range(WARPS):
                    total += rest[w, k, lane]
                if n < number:
                    partial[(n * 9 + k) * shares + share] = total
            cuda.syncthreads()
            work += cuda.gridDim.x

    return force
