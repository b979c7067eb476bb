"""What Numba's simulator lacks, so that kernels that use it can be tested: a barrier for part of a block, and a
warp that multiplies as the tensor cores do.

The simulator runs each CUDA thread as a Python thread; those of a warp or of a team meet here.
"""

from typing import Any

import numpy as np

from nbody.gpu.turns import current_thread


def _of_block(name: str, make: Any) -> Any:
    """The object ``name`` that the calling thread's block shares; made when first asked for."""
    thread: Any = current_thread()  # a BlockThread of the simulator
    return thread._manager.__dict__.setdefault(name, make())


def wait_for_team(index, threads):
    """A barrier for ``threads`` threads of a block: see :mod:`nbody.linalg.intrinsics`."""
    thread: Any = current_thread()
    thread.wait(f"team {index}", threads)


class _Table:
    """Where the 32 threads of one warp lay their elements, and each takes its own of the product: they meet twice."""

    def __init__(self) -> None:
        self.a = np.empty((16, 8))
        self.b = np.empty((8, 8))


def mma_tf32(product, p, a, i, b, j):
    """``product[p:p + 4] += A·B``: see :mod:`nbody.linalg.intrinsics`, and the layout of fragments in NVIDIA's PTX
    manual under ``mma.m16n8k8``."""
    thread: Any = current_thread()
    warp, lane = divmod(thread.thread_id, 32)
    table = _of_block(f"table of warp {warp}", _Table)
    g, q = divmod(lane, 4)
    for w in range(4):
        table.a[g + w % 2 * 8, q + w // 2 * 4] = a[i + w]
    for w in range(2):
        table.b[q + w * 4, g] = b[j + w]
    thread.wait(table, 32)
    for w in range(4):
        product[p + w] += np.float32(table.a[g + w // 2 * 8] @ table.b[:, q * 2 + w % 2])
    thread.wait(table, 32)
