"""The rungs of the course, in its order, and those that :func:`~nbody.linalg.matmul` uses."""

from nbody.registry import Entry, Registry

LADDER = Registry(
    "rung",
    {
        "k00": Entry("nbody.linalg.k00_cpu:LOOP", "three loops on one CPU core"),
        "numpy": Entry("nbody.linalg.k00_cpu:NUMPY", "NumPy's BLAS on the CPU; in float64 the referee"),
        "k01": Entry("nbody.linalg.k01_one_block:RUNG", "one block, one thread per element: up to 32x32"),
        "k02": Entry("nbody.linalg.k02_many_blocks:RUNG", "many blocks, global memory"),
        "k03": Entry("nbody.linalg.k03_flat:RUNG", "a one-dimensional launch: row = id // n, column = id % n"),
        "k04": Entry("nbody.linalg.k04_bank_conflicts:RUNG", "shared-memory tiles, every column in one bank"),
        "k05": Entry("nbody.linalg.k05_padded_tile:RUNG", "the same, tiles padded by one word per row"),
        "k06": Entry("nbody.linalg.k06_coalesced:RUNG", "the same, coalesced indices, no padding"),
        "k07": Entry("nbody.linalg.k07_results_per_thread:TWO", "two results per thread"),
        "k08": Entry("nbody.linalg.k07_results_per_thread:FOUR", "four results per thread"),
        "k09": Entry("nbody.linalg.k09_sliding_window:RUNG", "a window slides along k; more work by strides"),
        "k10": Entry("nbody.linalg.k10_vector_loads:RUNG", "128-bit loads"),
        "k11": Entry("nbody.linalg.k11_outer_products:TWO", "register tile by outer products, 2x2"),
        "k12": Entry("nbody.linalg.k11_outer_products:FOUR", "register tile by outer products, 4x4"),
        "k13": Entry("nbody.linalg.k11_outer_products:EIGHT", "register tile by outer products, 8x8"),
        "k14": Entry("nbody.linalg.k14_transposed:RUNG", "A transposed on its way into shared memory"),
        "k15": Entry("nbody.linalg.k15_double_buffer:RUNG", "double-buffered tiles, 128x128x8"),
        "k16": Entry("nbody.linalg.k16_kahan:RUNG", "Kahan's compensated sum on the naive kernel"),
        "k17": Entry("nbody.linalg.k17_champion:RUNG", "the champion: cp.async stages, warp tiles, split k"),
        "k18": Entry("nbody.linalg.k18_skinny:RUNG", "the skinny product (rows x k)·(k x 4)"),
        "k19": Entry("nbody.linalg.k19_tensor_cores:PLAIN", "tensor cores, TF32 factors"),
        "k20": Entry("nbody.linalg.k19_tensor_cores:SPLIT", "tensor cores, 3xTF32: float32 accuracy"),
        "k21": Entry("nbody.linalg.k21_float64_tensor_cores:RUNG", "tensor cores in float64: the champion there"),
    },
)
"""Every way to multiply two matrices here, in the order of the lesson."""

ELEMENTWISE = Registry(
    "element-wise kernel",
    {
        "sum": Entry("nbody.linalg.elementwise:SUM", "C = A + B, element by element: nothing to re-use"),
        "map": Entry("nbody.linalg.elementwise:MAP", "C = f(A), element by element: nothing to re-use"),
    },
)
"""Kernels that gain nothing from tiles, as a contrast to the ladder."""

CHAMPIONS = {"float32": "k17", "float64": "k21"}
"""The rung of :func:`matmul` for each dtype. On cards without float64 tensor cores k21 launches k17."""
