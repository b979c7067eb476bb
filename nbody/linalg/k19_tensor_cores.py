"""k19 and k20: the tensor cores, in TF32, and with the 3xTF32 split that gives float32 accuracy back.

A warp multiplies 16x8 with 8x8 numbers in one instruction. Its factors are TF32: float32 with 10 explicit bits
of mantissa, so k19 errs by 2^-11 a factor. k20 writes x = big + small, both TF32, and takes small·big +
big·small + big·big: what is dropped, small·small, is 2^-22 of the product. An infinite entry comes out as NaN
there, since inf - inf is one.

Ootomo & Yokota 2022, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32
theoretical peak performance", Int. J. High Perform. Comput. Appl. 36.

H200, n = 4096: 70 TFLOP/s in TF32, 63.4 in 3xTF32 with a mean error of 2.4e-7 (k17: 47.6 and 6.7e-7).
"""

from functools import cache
from typing import Any

import numpy as np

from nbody.gpu import bounded, cuda
from nbody.linalg.intrinsics import commit_copies, copies_waiter, vector_length
from nbody.linalg.rung import Launch, Rung, Shape, tile_reads
from nbody.linalg.staging import slab_copier
from nbody.linalg.tensor_tile import TensorTiling, held, slab_multiplier, tile_writer

TILING = TensorTiling(block=(128, 64), warp=(64, 32), depth=16, stages=2, resident=2)


@cache
def kernel(tiling: TensorTiling, split: bool, a_vectors: bool, b_vectors: bool, guarded: bool) -> Any:
    """The kernel. ``a_vectors``, ``b_vectors``: rows of A, of B are multiples of 4; ``guarded``: a tile or slab
    is ragged."""
    real, length = np.float32, vector_length(np.float32)
    (height, width), (warp_height, warp_width), depth, stages, resident = tiling
    (a_pitch, b_pitch), threads, (_, along) = tiling.pitches, tiling.threads, tiling.tiles
    across, (a_held, b_held, c_held) = width // warp_width, held(tiling)
    copy_a = slab_copier(height, depth, threads, (a_pitch, 1), length if a_vectors else 1, guarded)
    copy_b = slab_copier(depth, width, threads, (b_pitch, 1), length if b_vectors else 1, guarded)
    a_size, b_size = height * a_pitch, depth * b_pitch
    a_numbers, b_numbers = stages * a_size, stages * b_size
    multiply, store, wait_for_slab = slab_multiplier(tiling, split), tile_writer(tiling), copies_waiter(stages - 2)

    @cuda.jit(**bounded(threads, resident))
    def tensor_cores(a, b, c):
        a_slabs = cuda.shared.array(a_numbers, real)
        b_slabs = cuda.shared.array(b_numbers, real)
        a_raw, a_big, a_small = (
            cuda.local.array(a_held, real),
            cuda.local.array(a_held, real),
            cuda.local.array(a_held, real),
        )
        b_raw, b_big, b_small = (
            cuda.local.array(b_held, real),
            cuda.local.array(b_held, real),
            cuda.local.array(b_held, real),
        )
        product = cuda.local.array(4, real)
        sums = cuda.local.array(c_held, real)
        t = cuda.threadIdx.x
        warp, g, q = t // 32, t % 32 // 4, t % 4
        u, v = warp // across * warp_height + g, warp % across * warp_width
        top, edge = cuda.blockIdx.y * height, cuda.blockIdx.x * width
        for r in range(c_held):
            sums[r] = real(0)
        slabs = -(-a.shape[1] // depth)
        for s in range(stages - 1):
            if s < slabs:
                copy_a(a_slabs, s * a_size, a, top, s * depth, t)
                copy_b(b_slabs, s * b_size, b, s * depth, edge, t)
            commit_copies()
        now, ahead = 0, stages - 1
        for slab in range(slabs):
            wait_for_slab()
            cuda.syncthreads()
            if slab + stages - 1 < slabs:
                copy_a(a_slabs, ahead * a_size, a, top, (slab + stages - 1) * depth, t)
                copy_b(b_slabs, ahead * b_size, b, (slab + stages - 1) * depth, edge, t)
            commit_copies()
            at_a = now * a_size + u * a_pitch + 2 * q
            at_b = now * b_size + 2 * q * b_pitch + v + g * along
            multiply(sums, a_raw, a_big, a_small, b_raw, b_big, b_small, product, a_slabs, at_a, b_slabs, at_b)
            now = now + 1 if now + 1 < stages else 0
            ahead = ahead + 1 if ahead + 1 < stages else 0
        store(sums, c, top + u, edge + v + 2 * q * along)

    return tensor_cores


def tiled_launch(shape: Shape, tiling: TensorTiling, split: bool) -> Launch:
    """The launch for a given tiling."""
    height, width = tiling.block
    ragged = shape.m % height > 0 or shape.n % width > 0 or shape.k % tiling.depth > 0
    program = kernel(tiling, split, shape.k % 4 == 0, shape.n % 4 == 0, ragged)
    return Launch(program, (-(-shape.n // width), -(-shape.m // height)), (tiling.threads,))


def _rung(title: str, split: bool, **more: Any) -> Rung:
    return Rung(
        title=title,
        launch=lambda shape, dtype: tiled_launch(shape, TILING, split),
        reads=tile_reads(TILING.block, (TILING.warp[0] // 8, TILING.warp[1] // 4)),
        dtypes=("float32",),
        claims=frozenset({"tensor cores", "asynchronous copies", "vector loads"}),
        **more,
    )


PLAIN = _rung(
    "tensor cores, TF32",
    split=False,
    idea="A warp multiplies 16x8 by 8x8 numbers in one instruction, with factors rounded to 11 bits.",
    limit="an instruction's latency: a warp loads, rounds and multiplies in turn, and few warps fit.",
    improves="k17",
    roundoff=2.0**-11,
)
SPLIT = _rung(
    "tensor cores, 3xTF32",
    split=True,
    idea="Each factor is the sum of two TF32 numbers: three tensor products give float32 accuracy back.",
    limit="the tensor cores are busy half of the time; splitting the factors takes the other instructions' slots.",
    improves="k19",
)
