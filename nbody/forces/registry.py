"""The list of all force engines, and the names that stand for one of them."""

from nbody.registry import Entry, Registry

ENGINES = Registry(
    "engine",
    {
        "reference": Entry("nbody.forces.reference:ReferenceEngine", "NumPy float64, in blocks: the referee"),
        "cpu": Entry("nbody.forces.direct.cpu:CpuEngine", "Numba on all cores, SIMD, each pair once"),
        "cpu-tree": Entry("nbody.forces.tree.cpu_engine:CpuTreeEngine", "octree and multipoles, to a chosen accuracy"),
        "gpu-global": Entry(
            "nbody.forces.direct.gpu_global:GlobalMemoryEngine", "one thread per particle, global memory"
        ),
        "gpu-tiled": Entry("nbody.forces.direct.gpu_tiled:TiledEngine", "the same with tiles in shared memory"),
        "gpu-kahan": Entry("nbody.forces.direct.gpu_kahan:KahanEngine", "tiles with Kahan's compensated sums"),
        "gpu-unrolled": Entry("nbody.forces.direct.gpu_unrolled:UnrolledEngine", "several bodies per thread"),
        "gpu-split": Entry("nbody.forces.direct.gpu_split:SplitEngine", "two bodies per warp, for small N"),
        "gpu-symmetric": Entry("nbody.forces.direct.gpu_symmetric:SymmetricEngine", "each pair once, for large N"),
        "gpu-tree": Entry("nbody.forces.tree.gpu_engine:TreeEngine", "octree and multipoles, to a chosen accuracy"),
        "matrix": Entry(
            "nbody.forces.matrix.engine:matrix_engine",
            "the force matrix times a factor, by a rung of the matrix course: matrix:k07",
            variants="nbody.linalg:LADDER",
        ),
    },
    renamed={"gpu-scheduled": "gpu-symmetric"},
)
"""Every engine a user may name; :data:`STAND_FOR` has names that stand for one of them."""

MEANT = {"cuda": "gpu", "nvidia": "gpu", "fastest": "auto", "numpy": "reference", "numba": "cpu", "host": "cpu"}
"""What people call an engine, and its name."""

STAND_FOR = {
    "auto": "the fastest engine of this machine",
    "gpu": "the fastest engine of this machine's GPU",
    "tree": "gpu-tree, or cpu-tree where that can't be used",
}
"""Names that stand for an engine, and for which."""

TREES = ("gpu-tree", "cpu-tree")
"""The engines that ``tree`` stands for, the fastest first."""

AUTOMATIC = ("auto", "gpu")
"""Names that stand for the fastest engine of this machine, or of its GPU."""
