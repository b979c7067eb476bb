"""Kernels of block steps on a GPU: the prediction of all bodies to the next time or to that of a frame, and the correction
of the listed bodies, which chooses their next steps."""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import SIMULATED, cuda
from nbody.compute.in_kernels.reduction import block_reduction, keep_least, largest_over_lanes
from nbody.fields.field import Term
from nbody.integrators.solvers.blocks import gpu_layout as layout
from nbody.integrators.solvers.blocks.bodies import PARKED
from nbody.integrators.solvers.blocks.fields import shortened
from nbody.integrators.solvers.blocks.formulas import APPROACH, A, C, J, S, V, X, corrector, predictor, step_length
from nbody.integrators.solvers.blocks.gpu_fields import lane_sums
from nbody.integrators.solvers.blocks.gpu_layout import THREADS  # the shape of a shared array must be a name
from nbody.integrators.solvers.blocks.gpu_sums import totals
from nbody.integrators.solvers.blocks.memory import rows_per_body


class Prediction(NamedTuple):
    """The compiled kernels for one order and precision."""

    begin: Any
    predict: Any
    present: Any


@compute.kernel("gpu")
def begin(last, step, required, clock, scale):
    """Begin a stretch: all bodies are at time 0, and get steps of whole ticks."""
    i = cuda.grid(1)
    if i < last.size and step[i] < PARKED:
        last[i] = 0
        step[i] = layout.in_ticks(required[i], scale[layout.TICK], clock[layout.UNIT])
        if step[i] < clock[layout.SMALLEST]:
            cuda.atomic.max(clock, layout.FAILED, i)
        cuda.atomic.min(clock, layout.NEXT, step[i])


@compute.kernel("gpu")
def resolve(body, velocity, first, second, relative, fraction):
    """Replace the centres of mass of pairs by both bodies; ``relative`` (6, n): separations and velocities."""
    n = cuda.grid(1)
    if n < first.size:
        i, j = first[n], second[n]
        for k in range(3):
            x, v = body[i, k], velocity[i, k]
            body[i, k], body[j, k] = x + fraction[n] * relative[k, n], x - (1.0 - fraction[n]) * relative[k, n]
            velocity[i, k] = v + fraction[n] * relative[3 + k, n]
            velocity[j, k] = v - (1.0 - fraction[n]) * relative[3 + k, n]


@cache
def prediction_kernels(order: int, mixed: bool, shared: bool) -> Prediction:
    """The kernels; ``shared``: all bodies make the shortest step."""
    real = layout.real_of(mixed)
    predict_one = predictor(order, compute.exact_function)
    rows_each, earliest = rows_per_body(mixed), block_reduction(THREADS, keep_least)

    @compute.kernel("gpu")
    def predict(rows, mass, p, last, step, listed, clock, scale, slot):
        """Predict all bodies to the next time, unless the run is to pause; list those whose steps end there."""
        ends = cuda.shared.array(THREADS, np.int64)
        j, t = cuda.grid(1), cuda.threadIdx.x
        now = clock[slot]
        if (
            now > clock[layout.END]
            or clock[layout.BLOCKS_DONE] >= clock[layout.BUDGET]
            or clock[layout.FAILED] >= 0
            or clock[layout.EXCEEDED]
        ):
            return
        ends[t] = layout.FAR
        if j < mass.size:
            end = last[j] + step[j]
            if shared or end == now:
                if shared:
                    step[j] = now - last[j]
                listed[cuda.atomic.add(clock, layout.LISTED + slot, 1)] = j
            else:
                ends[t] = end
            h = (now - last[j]) * scale[layout.TICK] if step[j] < PARKED else 0.0
            for k in range(3):
                x, v, a = predict_one(
                    rows[X + k, j], rows[V + k, j], rows[A + k, j], rows[J + k, j], rows[S + k, j], rows[C + k, j], h
                )
                high, row = real(x), j * rows_each
                p[row, k] = high
                if mixed:
                    p[row + 1, k] = real(x - high)
                p[row + rows_each - 2, k] = real(v)
                p[row + rows_each - 1, k] = real(a)
            p[j * rows_each, 3] = real(mass[j])
        earliest(ends, t)
        if t == 0 and ends[0] < layout.FAR:
            cuda.atomic.min(clock, (slot + 1) % 3, ends[0])

    @compute.kernel("gpu")
    def present(rows, body, velocity, last, now, tick):
        """All bodies at one time, in the layout of a :class:`~nbody.state.device.DeviceState`."""
        j = cuda.grid(1)
        if j < last.size:
            h = (now - last[j]) * tick
            for k in range(3):
                x, v, _ = predict_one(
                    rows[X + k, j], rows[V + k, j], rows[A + k, j], rows[J + k, j], rows[S + k, j], rows[C + k, j], h
                )
                body[j, k], velocity[j, k] = x, v

    return Prediction(begin, predict, present)


@compute.device_function
def sum_of_three(value):
    """The sum of the values of the lanes 0, 1 and 2."""
    return compute.shuffle(value, 0) + (compute.shuffle(value, 1) + compute.shuffle(value, 2))


@cache
def finish_kernel(order: int, mixed: bool, parts: int, terms: tuple[Term, ...] = (), dimensions: int = 3) -> Any:
    """The kernel for one order, precision and number of parts, and for the ``terms`` of external fields."""
    in_fields, add_fields = bool(terms), lane_sums(terms, dimensions, order, mixed)
    shorter = shortened(order, compute.exact_function)
    correct_one, length = (
        corrector(order, compute.exact_function),
        step_length(order, math.sqrt, compute.exact_function),
    )
    rows_each, tile, group = rows_per_body(mixed), layout.tiling(mixed).tile, layout.tiling(mixed).group
    of_all, double = totals(parts).of_all, np.float64

    @compute.exact_function
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
                strong, quick = layout.perturbs(r2, v2, heavy, mass[j])
                strongest, quickest = max(strongest, strong), max(quickest, quick)
        return largest_over_lanes(strongest), largest_over_lanes(quickest)

    @compute.kernel("gpu")
    def finish(bodies, p, sums, listed, clock, scale, slot, partition, parameters):
        """Correct the listed ones of the :class:`.BlockBodies`, a component per lane, and choose their next steps."""
        rows, last, step, required, mass, limit = bodies
        found = cuda.local.array(parts, double)
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
        number = clock[layout.LISTED + slot]
        chunks = layout.chunks_of(number, last.size, partition.parts, partition.capacity, tile, group)
        now, tick, G = clock[slot], scale[layout.TICK], scale[layout.STRENGTH]
        k = lane % 3
        first = cuda.blockIdx.x * layout.WARPS
        while first < number:
            n = min(first + warp, number - 1)
            i = listed[n]
            strongest = quickest = 0.0
            # A pair's centre of mass. (In the simulator all threads of a block must shuffle.)
            if SIMULATED or (first + warp < number and limit[i] > 0.0):
                strongest, quickest = perturbation(i, p, mass, lane)
            value = G * of_all(sums, n, i, partition, chunks, lane, found)
            pairs = 0.0
            if in_fields:
                own = compute.shuffle(value, k)
                pairs = sum_of_three(own * own)
                end = step[i] * tick, scale[layout.BEGIN] + now * tick
                value = add_fields(i, value, rows, p, mass[i], end, parameters, lane)
            a1, j1, s1 = compute.shuffle(value, k), compute.shuffle(value, 3 + k), compute.shuffle(value, 6 + k)
            x, v, snap1, crackle, fourth, fifth = correct_one(
                rows[X + k, i],
                rows[V + k, i],
                rows[A + k, i],
                rows[J + k, i],
                rows[S + k, i],
                a1,
                j1,
                s1,
                step[i] * tick,
            )
            a, j, s = sum_of_three(a1 * a1), sum_of_three(j1 * j1), sum_of_three(snap1 * snap1)
            c, d, e = sum_of_three(crackle * crackle), sum_of_three(fourth * fourth), sum_of_three(fifth * fifth)
            if first + warp < number and lane < 3:
                rows[X + k, i], rows[V + k, i], rows[A + k, i] = x, v, a1
                rows[J + k, i], rows[S + k, i], rows[C + k, i] = j1, snap1, crackle
            if first + warp < number and lane == 0:
                chosen = length(a, j, s, c, d, e, scale[layout.ETA])
                if in_fields:
                    chosen *= shorter(pairs, a)
                if limit[i] > 0.0:
                    chosen = min(chosen, APPROACH / math.sqrt(quickest))
                    if strongest > limit[i]:
                        limit[i] = -limit[i]
                        clock[layout.EXCEEDED] = 1
                required[i], last[i] = chosen, now
                step[i] = layout.following_step(chosen, step[i], now, tick, clock[layout.UNIT])
                if step[i] < clock[layout.SMALLEST]:
                    cuda.atomic.max(clock, layout.FAILED, i)
                cuda.atomic.min(clock, (slot + 1) % 3, now + step[i])
            first += cuda.gridDim.x * layout.WARPS

    return finish
