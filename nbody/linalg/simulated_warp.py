"""Functions that Numba's simulator lacks: a barrier for part of a block, and the products of the tensor cores.

The simulator runs each CUDA thread as a Python thread; the threads of a warp or of a team wait for each other here.
"""

from typing import Any

import numpy as np

from nbody.compute.simulator.threads import current_thread


def _of_block(name: str, make: Any) -> Any:
    """The object ``name`` that the calling thread's block shares; made at its first use."""
    thread: Any = current_thread()
    shared = thread._manager.__dict__
    return shared[name] if name in shared else shared.setdefault(name, make())


def wait_for_team(index, threads):
    """A barrier for ``threads`` threads of a block: see :mod:`nbody.linalg.intrinsics`."""
    thread: Any = current_thread()
    thread.wait(f"team {index}", threads)


class _Table:
    """The matrices A and B of one warp: its 32 threads write their elements, wait, and compute their parts of C."""

    def __init__(self, depth: int) -> None:
        self.a = np.empty((16, depth))
        self.b = np.empty((depth, 8))


def row_and_column(lane: int, register: int) -> dict[str, tuple[int, int]]:
    """The row and column of the element that a lane holds in its n-th register of A, B and C: NVIDIA's PTX manual,
    ``mma.m16n8k4``, ``m16n8k8`` and ``m16n8k16`` for float64 (the same for TF32)."""
    g, q = divmod(lane, 4)
    return {
        "a": (g + register % 2 * 8, q + register // 2 * 4),
        "b": (q + register * 4, g),
        "c": (g + register // 2 * 8, q * 2 + register % 2),
    }


def _mma(c, a, b):
    """C += A·B; each matrix is an array, the index of this thread's first element, and the offsets of all its elements."""
    thread: Any = current_thread()
    warp, lane = divmod(thread.thread_id, 32)
    depth = 4 * len(b[2])
    table = _of_block(f"table {depth} of warp {warp}", lambda: _Table(depth))
    for name, matrix, (factor, first, offsets) in (("a", table.a, a), ("b", table.b, b)):
        for n, offset in enumerate(offsets):
            matrix[row_and_column(lane, n)[name]] = factor[first + offset]
    thread.wait(table, 32)
    product, first, offsets = c
    for n, offset in enumerate(offsets):
        row, column = row_and_column(lane, n)["c"]
        product[first + offset] += product.dtype.type(table.a[row] @ table.b[:, column])
    thread.wait(table, 32)


def mma_tf32(product, p, a, i, b, j):
    """``product[p:p + 4] += A·B`` for a warp: A (16, 8) from ``a[i:i + 4]``, B (8, 8) from ``b[j:j + 2]`` of its 32
    threads, in the layout of PTX's ``mma.sync.m16n8k8``."""
    _mma((product, p, range(4)), (a, i, range(4)), (b, j, range(2)))


def mma_f64(depth, a_at, b_at, c_at):
    """A function ``mma(product, p, a, i, b, j)`` for a warp: C (16, 8) += A (16, K)·B (K, 8) in float64.

    K is ``depth``, 4, 8 or 16 (compute capability 9), or 4 for :data:`~nbody.linalg.intrinsics.AMPERE`. A thread's
    registers in PTX's ``mma.sync.m16n8k…`` (:func:`row_and_column`): A's are a[i + a_at[0]], a[i + a_at[1]], …, and
    likewise B's from b[j] and C's from product[p] on.
    """
    return lambda product, p, a, i, b, j: _mma((product, p, c_at), (a, i, a_at), (b, j, b_at))
