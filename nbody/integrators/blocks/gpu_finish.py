"""The kernel of block steps on a GPU that corrects the listed bodies and chooses their next steps."""

import math
from functools import cache
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import SIMULATED, cuda
from nbody.integrators.blocks.formulas import APPROACH, FOREVER, corrector, step_length
from nbody.integrators.blocks.gpu_layout import (
    ETA,
    EXCEEDED,
    FAILED,
    SMALLEST,
    STRENGTH,
    TICK,
    UNIT,
    WARPS,
    chunks_of,
    exact,
    in_ticks,
    tiling,
)  # fmt: skip
from nbody.integrators.blocks.gpu_totals import totals
from nbody.integrators.blocks.memory import rows_per_body


@compute.device_function
def sum_of_three(value):
    """The sum of the values of the lanes 0, 1 and 2."""
    return compute.shuffle(value, 0) + (compute.shuffle(value, 1) + compute.shuffle(value, 2))


@exact
def largest(value, lane):
    """The largest of the values of a warp's lanes."""
    for bit in (1, 2, 4, 8, 16):
        value = max(value, compute.shuffle(value, lane ^ bit))
    return value


@cache
def finish_kernel(order: int, mixed: bool, parts: int) -> Any:
    """The kernel for one order, precision and number of parts."""
    correct_one, length = corrector(order, exact), step_length(order, math.sqrt, exact)
    rows_each, tile, group = rows_per_body(mixed), tiling(mixed).tile, tiling(mixed).group
    of_all, double = totals(parts).of_all, np.float64

    @exact
    def perturbation(i, p, mass, lane):
        """As :func:`.cpu_kernels.perturbation`, by a warp."""
        strongest, quickest, heavy = 0.0, 0.0, mass[i]
        for j in range(lane, mass.size, 32):
            if j != i:
                r2 = v2 = 0.0
                for k in range(3):
                    xj, vj = p[j * rows_each, k], p[j * rows_each + rows_each - 2, k]
                    xi, vi = p[i * rows_each, k], p[i * rows_each + rows_each - 2, k]
                    d, v = double(xj) - double(xi), double(vj) - double(vi)
                    r2, v2 = r2 + d * d, v2 + v * v
                per_r2 = 1.0 / r2
                strongest = max(strongest, max(heavy, 2.0 * mass[j]) * per_r2 * math.sqrt(per_r2))
                quickest = max(quickest, v2 * per_r2)
        return largest(strongest, lane), largest(quickest, lane)

    @compute.kernel("gpu")
    def finish(rows, last, step, wanted, mass, limit, p, sums, listed, clock, scale, slot, partition):
        """Correct the listed bodies, a component per lane, and choose their next steps."""
        found = cuda.local.array(parts, double)
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
        number = clock[3 + slot]
        chunks = chunks_of(number, last.size, partition.parts, partition.capacity, tile, group)
        now, tick, G = clock[slot], scale[TICK], scale[STRENGTH]
        k = lane % 3
        first = cuda.blockIdx.x * WARPS
        while first < number:
            n = min(first + warp, number - 1)
            i = listed[n]
            strongest = quickest = 0.0
            # A pair's centre of mass. (In the simulator all threads of a block must shuffle.)
            if SIMULATED or (first + warp < number and limit[i] > 0.0):
                strongest, quickest = perturbation(i, p, mass, lane)
            value = G * of_all(sums, n, i, partition, chunks, lane, found)
            a1, j1, s1 = compute.shuffle(value, k), compute.shuffle(value, 3 + k), compute.shuffle(value, 6 + k)
            x, v, snap1, crackle, fourth, fifth = correct_one(
                rows[k, i], rows[3 + k, i], rows[6 + k, i], rows[9 + k, i], rows[12 + k, i], a1, j1, s1, step[i] * tick
            )
            a, j, s = sum_of_three(a1 * a1), sum_of_three(j1 * j1), sum_of_three(snap1 * snap1)
            c, d, e = sum_of_three(crackle * crackle), sum_of_three(fourth * fourth), sum_of_three(fifth * fifth)
            if first + warp < number and lane < 3:
                rows[k, i], rows[3 + k, i], rows[6 + k, i] = x, v, a1
                rows[9 + k, i], rows[12 + k, i], rows[15 + k, i] = j1, snap1, crackle
            if first + warp < number and lane == 0:
                required = FOREVER if a + j + s == 0.0 else min(length(a, j, s, c, d, e, scale[ETA]), FOREVER)
                if limit[i] > 0.0:
                    required = min(required, APPROACH / math.sqrt(quickest))
                    if strongest > limit[i]:
                        limit[i] = -limit[i]
                        clock[EXCEEDED] = 1
                most = min(2 * step[i], clock[UNIT])
                while now & (most - 1):
                    most >>= 1
                wanted[i], last[i] = required, now
                step[i] = in_ticks(required, tick, most)
                if step[i] < clock[SMALLEST]:
                    cuda.atomic.max(clock, FAILED, i)
                cuda.atomic.min(clock, (slot + 1) % 3, now + step[i])
            first += cuda.gridDim.x * WARPS

    return finish
