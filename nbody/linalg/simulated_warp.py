"""A warp of Numba's simulator that multiplies as the tensor cores do, so that the fragments' layout can be
tested without them.

The simulator runs each CUDA thread as a Python thread; the 32 of a warp meet here, lay their elements on the
table, and each takes its own of the product.
"""

import threading
from typing import Any

import numpy as np


class _Table:
    """Where the 32 threads of one warp meet, twice for a product."""

    def __init__(self) -> None:
        self.a = np.empty((16, 8))
        self.b = np.empty((8, 8))
        self.barrier = threading.Barrier(32)


def mma_tf32(product, a, i, b, j, stride):
    """``product[0:4] += A·B``: see :mod:`nbody.linalg.intrinsics`, and the layout of fragments in NVIDIA's PTX
    manual under ``mma.m16n8k8``."""
    thread: Any = threading.current_thread()  # a BlockThread of the simulator
    warp, lane = divmod(thread.thread_id, 32)
    table = thread._manager.__dict__.setdefault(f"table of warp {warp}", _Table())
    g, q = divmod(lane, 4)
    for w in range(4):
        table.a[g + w % 2 * 8, q + w // 2 * 4] = a[i + w]
    for w in range(2):
        table.b[q + w * 4, g] = b[j + w * stride]
    table.barrier.wait()
    for w in range(4):
        product[w] += np.float32(table.a[g + w // 2 * 8] @ table.b[:, q * 2 + w % 2])
    table.barrier.wait()
