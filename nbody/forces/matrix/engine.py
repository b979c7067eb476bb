"""Gravity as a matrix product: the ``matrix`` engine, on a GPU through the ladder of kernels, else through NumPy's BLAS.

The force matrix W (N, N) has the weights of all pairs, W_ij = m_j f(r_ij) with the f of :mod:`nbody.law` and
W_ii = 0. A matrix with vectors in it would be three; instead the difference in a_i = G Σ_j W_ij (x_j - x_i) is taken
apart, and one product with four columns, the factor F = [x y z 1], gives both sums:

    a_i = G (Σ_j W_ij x_j  -  x_i Σ_j W_ij)          columns 0 to 2 of W·F, and x_i times its column 3
    φ_i = -G Σ_j U_ij,   U_ij = m_j u(r_ij)          column 3 of U·F

W itself is made from differences x_j - x_i, never from |x_i|² + |x_j|² - 2 x_i·x_j, which loses all digits of a close
pair. Taking the sum apart costs digits too: its rounding errors are ε |x_i| Σ_j W_ij, ε the dtype's roundoff, whatever
becomes of the difference. So F holds positions relative to the centre of mass, which keeps |x_i| as small as the
bodies' extent; far from the origin the uncentred fold has no digit left. (A heavy body stands nearly at that centre,
so that what the others feel of it is not lost.) Close pairs still cost digits, the more the closer: relative errors of
the force by NumPy's BLAS, N = 20480, of the 1024 bodies that the benchmark judges by, against float64 sums,

    ======================================  ===============  ===============
    median and largest                          float32          float64
    ======================================  ===============  ===============
    3-D cluster, Plummer softening 0.01     8.6e-7   1.2e-4  1.6e-15 1.8e-13
    the lecture's 2-D disc, cutoff at 0.01  2.0e-5   1.5e-2  3.7e-14 9.0e-12
    ======================================  ===============  ===============

where the ``cpu`` engine has 1.1e-7 and 4.6e-6 on the first in float32. With the cluster moved by 1000 in x, y and z
(N = 4096) the median is 7e-7, and 1e-3 without the centre. :mod:`nbody.forces.matrix.fold` predicts these.

W has N² numbers, and is made and multiplied in blocks of rows, within a budget of memory. Each number is written once
and read once for four multiply-adds: a GPU's memory, not its arithmetic, sets the pace. The next idea is never to
store W, and that is the engine ``gpu-tiled``, the same sum with W in registers.

Which rung multiplies is the name's second half: ``matrix:k07`` shows what two results per thread do for gravity. On an
H200, N = 20480, float32 and blocks of 64 MB, an evaluation takes 47.4 ms with k02, 22.2 with k07 and 2.10 with k18,
which is made for four columns: the others' tiles are mostly empty. (1.30 ms with the blocks of 512 MB that are used
now; ``gpu-tiled`` takes 0.5.) The rungs that add one number after the other lose digits as well, 1.2e-5 in the median
where k18 has 6.1e-7.
"""

from functools import cache

from nbody.forces.engine import Engine
from nbody.linalg import LADDER
from nbody.linalg.rung import Rung

SKINNY, BLAS = "k18", "numpy"
"""The rungs that multiply when none is named, on a GPU and without one."""


def default_rung() -> tuple[str, str]:
    """The rung that ``matrix`` alone stands for on this machine, and why, in one clause."""
    from nbody import gpu

    reason = gpu.why_unavailable()
    return (BLAS, f"no GPU: {reason}") if reason else (SKINNY, gpu.facts().name)


@cache
def matrix_engine(name: str = "") -> type[Engine]:
    """The engine whose products are made by the rung ``name`` of :data:`~nbody.linalg.LADDER`, where the rung works:
    on the GPU or on the CPU. Without a name, by :func:`default_rung`."""
    name = name or default_rung()[0]
    chosen: Rung = LADDER.load(name)
    kind: type[Engine] = (_on_cpu if chosen.on == "cpu" else _on_gpu)()
    told = {"__doc__": kind.__doc__, "name": f"matrix:{name}", "rung": chosen, "precisions": chosen.dtypes}
    return type(kind.__name__, (kind,), told)


def _on_cpu() -> type[Engine]:
    from nbody.forces.matrix.cpu import CpuMatrixEngine

    return CpuMatrixEngine


def _on_gpu() -> type[Engine]:
    from nbody.forces.matrix.gpu import GpuMatrixEngine

    return GpuMatrixEngine
