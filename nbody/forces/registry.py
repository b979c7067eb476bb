"""The list of all force engines, and the names that stand for one of them."""

from nbody.registry import Entry, Registry


def _engine(target: str, summary: str, *tags: str) -> Entry:
    return Entry(f"nbody.forces.{target}", summary, tags=tags)


ENGINES = Registry(
    "engine",
    {
        "reference": _engine("reference:ReferenceEngine", "NumPy float64, in blocks: the referee"),
        "cpu": _engine("direct.cpu:CpuEngine", "Numba on all cores, SIMD, each pair once"),
        "barnes-hut": _engine("tree.barnes_hut:BarnesHutEngine", "octree of monopoles: a lesson, and a referee", "tree"),
        "cpu-tree": _engine("tree.engine_cpu:CpuTreeEngine", "octree and multipoles, to a chosen accuracy", "tree"),
        "gpu-global": _engine("direct.gpu_global:GlobalMemoryEngine", "one thread per particle, global memory", "gpu"),
        "gpu-tiled": _engine("direct.gpu_tiled:TiledEngine", "the same with tiles in shared memory", "gpu"),
        "gpu-kahan": _engine("direct.gpu_kahan:KahanEngine", "tiles with Kahan's compensated sums", "gpu"),
        "gpu-unrolled": _engine("direct.gpu_unrolled:UnrolledEngine", "several bodies per thread", "gpu"),
        "gpu-split": _engine("direct.gpu_split:SplitEngine", "two bodies per warp, for small N", "gpu"),
        "gpu-symmetric": _engine("direct.gpu_symmetric:SymmetricEngine", "each pair once, for large N", "gpu"),
        "gpu-tree": _engine("tree.engine_gpu:TreeEngine", "octree and multipoles, to a chosen accuracy", "gpu", "tree"),
        "matrix": Entry(
            "nbody.forces.matrix.engine:matrix_engine",
            "the force matrix times a factor, by a rung of the matrix course: matrix:k07",
            variants="nbody.linalg:LADDER",
        ),
    },
    renamed={"gpu-scheduled": "gpu-symmetric"},
    meant={"cuda": "gpu", "nvidia": "gpu", "fastest": "auto", "numpy": "reference", "numba": "cpu", "host": "cpu"},
)
"""Every engine a user may name; :data:`STAND_FOR` has names that stand for one of them. Its tags, ``gpu`` and ``tree``, say
what its class does, whose import takes a quarter of a second."""

STAND_FOR = {
    "auto": "the fastest engine of this machine",
    "gpu": "the fastest engine of this machine's GPU",
    "tree": "gpu-tree, or cpu-tree where that can't be used",
}
"""Names that stand for an engine, and for which."""

TREES = ("gpu-tree", "cpu-tree")
"""The engines that ``tree`` stands for, the fastest first; ``barnes-hut`` is a lesson."""

AUTOMATIC = ("auto", "gpu")
"""Names that stand for the fastest engine of this machine, or of its GPU."""
