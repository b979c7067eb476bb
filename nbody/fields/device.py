"""External fields on the GPU: a kernel with one thread per body, launched after the engine's kernels."""

from functools import cache
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.fields.compiled import summed
from nbody.fields.field import Term
from nbody.state.device import DeviceState
from nbody.state.graph_time import time_of

THREADS = 128


@cache
def build(terms: tuple[Term, ...], some: bool = False) -> Any:
    """The kernel ``add(body, acceleration, *moment, parameters, n, accelerations, potential, rows)`` for a sum of fields on
    systems of n bodies, with the arguments of :class:`nbody.state.graph_time.GraphTime`; if ``some``, for the bodies
    ``rows`` (T,) only.

    body and acceleration are (N, 4) as in :mod:`nbody.state.device`. All arithmetic is float64 and follows IEEE 754 (no
    fast-math); each number of the state is rounded once. No scheme on a GPU takes forces that depend on velocities.
    """

    @compute.exact_function
    def device_body(bodies, i):
        body, first = bodies
        i += first
        x, y, z, m = body[i, 0], body[i, 1], body[i, 2], body[i, 3]
        return np.float64(x), np.float64(y), np.float64(z), 0.0, 0.0, 0.0, np.float64(m)

    total = summed(terms, compute.exact_function, device_body)

    @compute.kernel("gpu")
    def add(body, acceleration, clock, made, origin, dt, drifts, parameters, n, accelerations, potential, rows):
        i = cuda.grid(1)
        if i >= rows.shape[0]:
            return
        if some:
            i = rows[i]
        time = time_of(clock, made, origin, dt, drifts)
        first = i // n * n
        ax, ay, az, phi = total(i - first, (body, first), n, time, parameters)
        if accelerations > 0:
            acceleration[i, 0] = np.float64(acceleration[i, 0]) + ax
            acceleration[i, 1] = np.float64(acceleration[i, 1]) + ay
            if accelerations == 3:
                acceleration[i, 2] = np.float64(acceleration[i, 2]) + az
        if potential:
            acceleration[i, 3] = np.float64(acceleration[i, 3]) + 2.0 * phi

    return add


def add_fields(
    terms: tuple[Term, ...],
    state: DeviceState,
    parameters: Any,
    systems: int,
    accelerations: bool,
    potential: bool,
    targets: Any,
) -> None:
    """Add the fields at the time ``state.clock.now``; see :meth:`nbody.fields.added.AddedFields.add`."""
    some = targets is not None
    rows = targets if some else state.body  # without targets only its length is read
    if isinstance(targets, np.ndarray):
        rows = cuda.to_device(targets.astype(np.int32))
    blocks, components = -(-rows.shape[0] // THREADS), np.int32(state.dimensions if accelerations else 0)
    n = np.int64(state.count // systems)
    build(terms, some)[blocks, THREADS, state.stream](
        state.body, state.acceleration, *state.clock.graph_time(), parameters, n, components, np.int32(potential), rows
    )
