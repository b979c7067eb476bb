"""k19 and k20: the tensor cores, in TF32, and with the 3xTF32 split, which restores float32 accuracy.

A warp multiplies 16x8 by 8x8 numbers in one instruction. The factors are TF32, float32 with 10 explicit bits of mantissa:
the relative error of k19 is 2^-11 per factor. k20 writes x = big + small, where big is a TF32 number; the tensor cores
truncate small to TF32, an error of at most 2^-23 of x. The product is small·big + big·small + big·big; the omitted term
small·small is 2^-22 of the product. An infinite entry gives NaN, since inf - inf is NaN.

Ootomo & Yokota 2022, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
theoretical peak performance", Int. J. High Perform. Comput. Appl. 36.

H200, n = 4096: 98.0 TFLOP/s in TF32, 69.1 in 3xTF32 with a mean error of 1.9e-7 (k17 in the same run: 48.9 and
6.7e-7).
"""

from functools import cache
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import bounded, cuda
from nbody.linalg.intrinsics import commit_copies, copies_waiter, vector_length
from nbody.linalg.partial_sums import incomplete
from nbody.linalg.rung import ProductLaunch, ProductShape, Rung, tile_reads
from nbody.linalg.staging import slab_copier
from nbody.linalg.tensor_tile import TensorTiling, slab_multiplier, tile_writer

PLAIN_TILING = TensorTiling(block=(64, 64), warp=(64, 32), depth=32, stages=2, resident=4)
SPLIT_TILING = TensorTiling(block=(128, 128), warp=(64, 64), depth=16, stages=2, resident=2)
"""The fastest of a dozen tilings on an H200 at n = 4096. A larger warp tile splits fewer numbers per product."""


@cache
def kernel(tiling: TensorTiling, split: bool, a_vectors: bool, b_vectors: bool, guarded: bool) -> Any:
    """The kernel. ``a_vectors``, ``b_vectors``: the rows of A, of B have a multiple of 4 numbers; ``guarded``: some tile or
    slab is incomplete."""
    real, length = np.float32, vector_length(np.float32)
    (height, width), (warp_height, warp_width), depth, stages, resident = tiling
    (a_pitch, b_pitch), threads = tiling.pitches, tiling.threads
    across, (a_held, b_held, c_held, p_held) = width // warp_width, tiling.held
    copy_a = slab_copier(height, depth, threads, (a_pitch, 1), length if a_vectors else 1, guarded)
    copy_b = slab_copier(depth, width, threads, (b_pitch, 1), length if b_vectors else 1, guarded)
    a_size, b_size = height * a_pitch, depth * b_pitch
    a_numbers, b_numbers = stages * a_size, stages * b_size
    multiply, store = slab_multiplier(tiling, split), tile_writer(real, tiling.tiles)
    wait_for_slab = copies_waiter(stages - 2)

    @compute.kernel("gpu", **bounded(threads, resident))
    def tensor_cores(a, b, c):
        a_slabs = cuda.shared.array(a_numbers, real)
        b_slabs = cuda.shared.array(b_numbers, real)
        a_big, a_small = cuda.local.array(a_held, real), cuda.local.array(a_held, real)
        b_big, b_small = cuda.local.array(b_held, real), cuda.local.array(b_held, real)
        product = cuda.local.array(p_held, real)
        sums = cuda.local.array(c_held, real)
        t = cuda.threadIdx.x
        warp, g, q = t // 32, t % 32 // 4, t % 4
        u, v = warp // across * warp_height, warp % across * warp_width
        top, edge = cuda.blockIdx.y * height, cuda.blockIdx.x * width
        for r in range(c_held):
            sums[r] = real(0)
        from_a, from_b = (u + g) * a_pitch + 2 * q, 2 * q * b_pitch + v + 2 * g
        slabs = np.int32(-(-a.shape[1] // depth))
        for s in range(stages - 1):
            if s < slabs:
                copy_a(a_slabs, s * a_size, a, top, s * depth, t)
                copy_b(b_slabs, s * b_size, b, s * depth, edge, t)
            commit_copies()
        now, ahead = np.int32(0), np.int32(stages - 1)
        for slab in range(slabs):
            wait_for_slab()
            cuda.syncthreads()
            coming = np.int32(slab + (stages - 1))
            if coming < slabs:
                copy_a(a_slabs, np.int32(ahead * a_size), a, top, np.int32(coming * depth), t)
                copy_b(b_slabs, np.int32(ahead * b_size), b, np.int32(coming * depth), edge, t)
            commit_copies()
            at_a, at_b = np.int32(now * a_size + from_a), np.int32(now * b_size + from_b)
            multiply(sums, a_big, a_small, b_big, b_small, product, a_slabs, at_a, b_slabs, at_b)
            now = np.int32(now + 1) if now < stages - 1 else np.int32(0)
            ahead = np.int32(ahead + 1) if ahead < stages - 1 else np.int32(0)
        store(sums, c, 0, c.shape[0], np.int32(top + u + 2 * q), np.int32(edge + v + 2 * g))

    return tensor_cores


def tiled_launch(shape: ProductShape, tiling: TensorTiling, split: bool) -> ProductLaunch:
    """The launch for a given tiling."""
    height, width = tiling.block
    guarded = incomplete(shape, tiling.block, tiling.depth)
    program = kernel(tiling, split, shape.k % 4 == 0, shape.n % 4 == 0, guarded)
    return ProductLaunch(program, (-(-shape.n // width), -(-shape.m // height)), (tiling.threads,))


def _rung(title: str, tiling: TensorTiling, split: bool, **more: Any) -> Rung:
    return Rung(
        title=title,
        launch=lambda shape, dtype: tiled_launch(shape, tiling, split),
        reads=tile_reads(tiling.block, tiling.warp, words=2),  # the 32 lanes read a warp's tile together
        dtypes=("float32",),
        claims=frozenset({"tensor cores", "asynchronous copies", "vector loads"}),
        **more,
    )


PLAIN = _rung(
    "tensor cores, TF32",
    PLAIN_TILING,
    split=False,
    idea="A warp multiplies 16x8 by 8x8 numbers in one instruction, with factors rounded to 11 bits.",
    limit="the latency of an instruction: a warp loads, rounds and multiplies in turn, and few warps fit.",
    improves="k17",
    roundoff=2.0**-11,
)
SPLIT = _rung(
    "tensor cores, 3xTF32",
    SPLIT_TILING,
    split=True,
    idea="Each factor is the sum of two TF32 numbers: three tensor products restore float32 accuracy.",
    limit="splitting factors and adding products: more than two instructions per tensor-core instruction.",
    improves="k19",
)
