"""What Numba's simulator lacks, so that kernels that use it can be tested: a barrier for part of a block, and a
warp that multiplies as the tensor cores do.

The simulator runs each CUDA thread as a Python thread; those of a warp or of a team meet here.
"""

import threading
from typing import Any

import numpy as np


def _of_block(name: str, make: Any) -> Any:
    """The object ``name`` that the calling thread's block shares; made when first asked for."""
    thread: Any = threading.current_thread()  # a BlockThread of the simulator
    shared = thread._manager.__dict__
    return shared[name] if name in shared else shared.setdefault(name, make())


def wait_for_team(index, threads):
    """A barrier for ``threads`` threads of a block: see :mod:`nbody.linalg.intrinsics`."""
    _of_block(f"barrier {index}", lambda: threading.Barrier(threads)).wait()


class _Table:
    """Where the 32 threads of one warp lay their elements, and each takes its own of the product: they meet twice."""

    def __init__(self, depth: int) -> None:
        self.a = np.empty((16, depth))
        self.b = np.empty((depth, 8))
        self.barrier = threading.Barrier(32)


def row_and_column(lane: int, register: int) -> dict[str, tuple[int, int]]:
    """Where the element that a lane holds in its n-th register of A, B and C is in that matrix: NVIDIA's PTX manual, under
    ``mma.m16n8k4``, ``m16n8k8`` and ``m16n8k16`` for float64 (for TF32 the same)."""
    g, q = divmod(lane, 4)
    return {
        "a": (g + register % 2 * 8, q + register // 2 * 4),
        "b": (q + register * 4, g),
        "c": (g + register // 2 * 8, q * 2 + register % 2),
    }


def _mma(product, p, c_at, a, i, a_at, b, j, b_at):
    thread: Any = threading.current_thread()
    warp, lane = divmod(thread.thread_id, 32)
    depth = 4 * len(b_at)
    table = _of_block(f"table {depth} of warp {warp}", lambda: _Table(depth))
    for n, at in enumerate(a_at):
        table.a[row_and_column(lane, n)["a"]] = a[i + at]
    for n, at in enumerate(b_at):
        table.b[row_and_column(lane, n)["b"]] = b[j + at]
    table.barrier.wait()
    for n, at in enumerate(c_at):
        row, column = row_and_column(lane, n)["c"]
        product[p + at] += product.dtype.type(table.a[row] @ table.b[:, column])
    table.barrier.wait()


def mma_tf32(product, p, a, i, b, j):
    """``product[p:p + 4] += A·B`` for a warp: A (16, 8) from ``a[i:i + 4]``, B (8, 8) from ``b[j:j + 2]`` of its 32
    threads, in the layout of PTX's ``mma.sync.m16n8k8``."""
    _mma(product, p, range(4), a, i, range(4), b, j, range(2))


def mma_f64(depth, a_at, b_at, c_at):
    """A function ``mma(product, p, a, i, b, j)`` for a warp: C (16, 8) += A (16, K)·B (K, 8) in float64.

    K is ``depth``, 4, 8 or 16 (compute capability 9), or 4 where it is :data:`~nbody.linalg.intrinsics.AMPERE`. A thread's
    registers in PTX's ``mma.sync.m16n8k…`` (:func:`row_and_column`): A's are a[i + a_at[0]], a[i + a_at[1]], …, and
    likewise B's from b[j] and C's from product[p] on.
    """
    return lambda product, p, a, i, b, j: _mma(product, p, c_at, a, i, a_at, b, j, b_at)
