"""Kernels of block steps on a GPU: the prediction of all bodies to the next time or to that of a frame."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.integrators.blocks.formulas import predictor
from nbody.integrators.blocks.gpu_layout import (
    BLOCKS_DONE,
    BUDGET,
    END,
    EXCEEDED,
    FAILED,
    FAR,
    SMALLEST,
    THREADS,
    TICK,
    UNIT,
    exact,
    in_ticks,
    real_of,
)  # fmt: skip
from nbody.integrators.blocks.memory import rows_per_body
from nbody.integrators.blocks.pairs import PARKED


class Prediction(NamedTuple):
    """The compiled kernels for one order and precision."""

    begin: Any
    predict: Any
    present: Any


@compute.kernel("gpu")
def begin(last, step, wanted, clock, scale):
    """Begin a stretch: all bodies are at time 0, and get steps of whole ticks."""
    i = cuda.grid(1)
    if i < last.size and step[i] < PARKED:
        last[i] = 0
        step[i] = in_ticks(wanted[i], scale[TICK], clock[UNIT])
        if step[i] < clock[SMALLEST]:
            cuda.atomic.max(clock, FAILED, i)
        cuda.atomic.min(clock, 0, step[i])


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
    real = real_of(mixed)
    predict_one = predictor(order, exact)
    rows_each = rows_per_body(mixed)

    @compute.kernel("gpu")
    def predict(rows, mass, p, last, step, listed, clock, scale, slot):
        """Predict all bodies to the next time, unless the run is to pause; list those whose steps end there."""
        ends = cuda.shared.array(THREADS, np.int64)
        j, t = cuda.grid(1), cuda.threadIdx.x
        now = clock[slot]
        if now > clock[END] or clock[BLOCKS_DONE] >= clock[BUDGET] or clock[FAILED] >= 0 or clock[EXCEEDED]:
            return
        ends[t] = FAR
        if j < mass.size:
            end = last[j] + step[j]
            if shared or end == now:
                if shared:
                    step[j] = now - last[j]
                listed[cuda.atomic.add(clock, 3 + slot, 1)] = j
            else:
                ends[t] = end
            h = (now - last[j]) * scale[TICK] if step[j] < PARKED else 0.0
            for k in range(3):
                x, v, a = predict_one(
                    rows[k, j], rows[3 + k, j], rows[6 + k, j], rows[9 + k, j], rows[12 + k, j], rows[15 + k, j], h
                )
                high, row = real(x), j * rows_each
                p[row, k] = high
                if mixed:
                    p[row + 1, k] = real(x - high)
                p[row + rows_each - 2, k] = real(v)
                p[row + rows_each - 1, k] = real(a)
            p[j * rows_each, 3] = real(mass[j])
        half = THREADS // 2
        while half:
            cuda.syncthreads()
            if t < half:
                ends[t] = min(ends[t], ends[t + half])
            half //= 2
        if t == 0 and ends[0] < FAR:
            cuda.atomic.min(clock, (slot + 1) % 3, ends[0])

    @compute.kernel("gpu")
    def present(rows, body, velocity, last, now, tick):
        """All bodies at one time, in the layout of a :class:`~nbody.state.device.DeviceState`."""
        j = cuda.grid(1)
        if j < last.size:
            h = (now - last[j]) * tick
            for k in range(3):
                x, v, _ = predict_one(
                    rows[k, j], rows[3 + k, j], rows[6 + k, j], rows[9 + k, j], rows[12 + k, j], rows[15 + k, j], h
                )
                body[j, k], velocity[j, k] = x, v

    return Prediction(begin, predict, present)
