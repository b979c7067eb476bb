"""Tasks of the N-body course: write an engine's kernel, and have its results and its reads per pair checked."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nbody.errors import InputError

NAMES = ("gpu-tiled", "gpu-unrolled", "gpu-split")
FUNCTION = "launch"

START = '''"""{title}

The kernel below has one thread per body and reads all bodies from global memory. Change it, and say
    nbody course check {name} {file}
until every line of the answer begins with "ok". It runs without a GPU; print() works in it.
"""

from math import sqrt

from numba import cuda
from numpy import float32


@cuda.jit
def kernel(body, acceleration, length2):
    """``body`` (N, 4): x, y, z and the mass; ``acceleration`` (N, 4), of which three are written; ``length2``: ε²."""
    i = cuda.grid(1)
    if i < body.shape[0]:
        x, y, z = body[i, 0], body[i, 1], body[i, 2]
        ax = ay = az = float32(0)
        for j in range(body.shape[0]):
            dx, dy, dz, m = body[j, 0] - x, body[j, 1] - y, body[j, 2] - z, body[j, 3]
            r2 = dx * dx + dy * dy + dz * dz + length2
            w = m / (r2 * sqrt(r2))
            ax, ay, az = ax + w * dx, ay + w * dy, az + w * dz
        acceleration[i, 0], acceleration[i, 1], acceleration[i, 2] = ax, ay, az


def launch(count):
    """The kernel, its blocks and its threads per block, for ``count`` bodies."""
    return kernel, -(-count // 32), 32
'''

TOLERANCE = 1e-5
"""Of the accelerations of 128 bodies in float32: rounding of a hundred terms is a tenth of that."""


def check(launch: Callable, name: str) -> Iterator[tuple[bool, str]]:
    """What is right and what is not. The reads of the engine's own kernel are the limit, and those of a thread's own bodies
    come on top."""
    from nbody.compute.simulator.traced import trace
    from nbody.lessons.pairs import COUNT, traced_engine

    for count in (COUNT, COUNT - 28):
        rng = np.random.default_rng(1)
        body, acceleration = rng.random((count, 4), np.float32), np.full((count, 4), np.nan, np.float32)
        try:
            kernel, blocks, threads = launch(count)
        except (TypeError, ValueError):
            raise InputError("launch() returns no kernel, number of blocks and threads per block") from None
        found = trace(kernel, blocks, threads, body=body, acceleration=acceleration, length2=np.float32(0.01))
        d = body[None, :, :3].astype(float) - body[:, None, :3]
        right = (d * (body[:, 3] / ((d * d).sum(axis=2) + 0.01) ** 1.5)[:, :, None]).sum(axis=1)
        error = np.linalg.norm(acceleration[:, :3] - right, axis=1) / np.linalg.norm(right, axis=1)
        largest = float(np.nan_to_num(error, nan=np.inf).max())
        yield largest < TOLERANCE, f"accelerations of {count} bodies: largest relative error {largest:.1e}"
        if count == COUNT:
            reads, allowed = _reads(found), _reads(traced_engine(name))
            for kind, own, most in zip(("global", "shared"), reads, allowed, strict=True):
                most = most + (1 / COUNT if kind == "global" else 0)
                yield own <= most, f"bodies read from {kind} memory per pair: {own:.3g}, the engine has {most:.3g}"


def _reads(found: Any) -> tuple[float, float]:
    """Bodies, four numbers each, that a kernel reads from global and from shared memory, per pair."""
    from nbody.lessons.pairs import COUNT

    read = [e.array for threads in found.values() for thread in threads for e in thread if not e.write]
    per_pair = 1 / (4 * COUNT**2)
    return read.count("body") * per_pair, sum(each.startswith("shared") for each in read) * per_pair
