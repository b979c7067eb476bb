"""The figures of the three courses, ``python -m nbody.lessons``, their tasks, notebooks and slides.

Most figures are made from what the kernels themselves read and write, recorded in Numba's simulator
(:mod:`nbody.compute.simulator.traced`), so that a figure follows its kernel; others from the tables of the courses.
"""

from pathlib import Path

from nbody.registry import Entry, Registry

FIGURES = Registry(
    "figure",
    {
        "who_reads_what": Entry("nbody.lessons.tiles:who_reads_what", "k00 to k03: what one block reads of A and B"),
        "banks": Entry("nbody.lessons.banks:banks", "k04, k05, k06: the banks and lines of one access of a warp"),
        "register_tiles": Entry("nbody.lessons.tiles:register_tiles", "k06 to k13: one thread's results and reads"),
        "reads": Entry("nbody.lessons.tiles:reads", "k04 to k17: reads per multiply-add, counted"),
        "vectors": Entry("nbody.lessons.banks:vectors", "k10, k14: 128-bit accesses and a padded, transposed slab"),
        "overlap": Entry("nbody.lessons.overlap:overlap", "k14, k15, k17: what a thread does, in order"),
        "champion": Entry("nbody.lessons.tiles:champion", "k17: the tiles of a block, its warps and a lane"),
        "skinny": Entry("nbody.lessons.overlap:skinny", "k18: who reads what of a block's rows"),
        "fragments": Entry("nbody.lessons.fragments:fragments", "k19, k20, k21: the lanes of one tensor instruction"),
        "rounding": Entry("nbody.lessons.rounding:rounding", "k16, gpu-kahan: how errors of sums grow"),
        "model": Entry("nbody.lessons.measured:model", "the ladder's cost model beside the measurement"),
        "pairs_computed": Entry("nbody.lessons.pairs:pairs_computed", "gpu-global to gpu-split: a thread's pairs"),
        "triangle": Entry("nbody.lessons.pairs:triangle", "gpu-symmetric: the blocks of the triangle of pairs"),
        "rotation": Entry("nbody.lessons.pairs:rotation", "gpu-symmetric: columns rotate through the lanes"),
        "morton": Entry("nbody.lessons.trees:morton", "barnes-hut, cpu-tree: the order of bodies, what acts on one"),
        "opening": Entry("nbody.lessons.trees:opening", "cpu-tree: errors and times, measured on this machine"),
        "force_matrix": Entry("nbody.lessons.pairs:force_matrix", "matrix: the force matrix times four columns"),
        "speed": Entry("nbody.lessons.measured:speed", "measured speeds of the force engines"),
    },
    renamed={"meetings": "pairs_computed"},
)
"""Every figure, in the order of the lessons. Each is a function without arguments that returns a Matplotlib figure."""

FOLDER = Path(__file__).with_name("pictures")


def draw(name: str) -> Path:
    """Draw a figure of :data:`FIGURES` and return the picture's path. Raises InputError: there is no such figure."""
    from matplotlib import rc_context

    from nbody.figures import RC
    from nbody.lessons.style import save

    figure = FIGURES.load(name)
    path = FOLDER / f"{name}.png"
    with rc_context(RC):
        save(figure(), path)
    return path
