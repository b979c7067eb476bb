"""Gravity as a matrix product: the ``matrix`` engine, on a GPU by a kernel of the matrix course, else by NumPy's BLAS.

The force matrix W (N, N) has the weights of all pairs, W_ij = m_j f(r_ij) with the f of :mod:`nbody.law` and
W_ii = 0. The sum a_i = G Σ_j W_ij (x_j - x_i) is split into two sums, and one product with four columns, the factor
F = [x y z 1], gives both:

    a_i = G (Σ_j W_ij x_j  -  x_i Σ_j W_ij)          columns 0 to 2 of W·F, and x_i times its column 3
    φ_i = -G Σ_j U_ij,   U_ij = m_j u(r_ij)          column 3 of U·F

W is computed from the differences x_j - x_i, never from |x_i|² + |x_j|² - 2 x_i·x_j, which loses all digits of a close
pair. Splitting the sum costs digits too: its rounding errors are about ε |x_i| Σ_j W_ij (ε is the dtype's roundoff), even if
the difference of the two sums is small. So F has positions relative to the centre of mass c, which keeps |x_i - c| below
the extent of the bodies; without it no digit would be left far from the origin. (A heavy body is near that centre, so its
force on the others stays accurate.) Close pairs cost digits all the same. Relative errors of the force with NumPy's BLAS,
N = 20480, 1024 sampled bodies, against float64 sums:

    ======================================  ===============  ===============
    median, largest                             float32          float64
    ======================================  ===============  ===============
    3-D cluster, Plummer softening 0.01     8.6e-7   1.2e-4  1.6e-15 1.8e-13
    the lecture's 2-D disc, cutoff at 0.01  2.0e-5   1.5e-2  3.7e-14 9.0e-12
    ======================================  ===============  ===============

The ``cpu`` engine has 1.1e-7 and 4.6e-6 for the cluster in float32. With the cluster moved by 1000 in x, y and z (N = 4096)
the median is 7e-7, and 1e-3 without centring. :mod:`nbody.forces.matrix.condition` predicts these errors.

W has N² numbers, and is computed and multiplied in blocks of rows that fit a budget of memory. Each number is written once
and read once for four multiply-adds: a GPU is limited by its memory here, not by its arithmetic. The next idea is not to
store W at all: the engine ``gpu-tiled`` computes the same sum with W in registers.

The second half of the name selects the rung that multiplies: ``matrix:k07`` shows what two results per thread gain for
gravity. On an H200, N = 20480, float32, an evaluation takes 47.4 ms with k02, 22.2 with k07 and 2.10 with k18 in blocks of
64 MB, and 1.30 with k18 in the blocks of 512 MB that are used now (``gpu-tiled``: 0.5). k18 is made for four columns; the
tiles of the other rungs are mostly empty. Rungs that add one number after the other lose digits as well: a median error of
1.2e-5, against 6.1e-7 with k18.
"""

from functools import cache
from typing import Any

from nbody.forces.engine import Engine
from nbody.forces.problem import Abilities
from nbody.linalg import LADDER
from nbody.linalg.rung import Rung
from nbody.registry import imported

SKINNY, BLAS = "k18", "numpy"
"""The default rungs, with a GPU and without."""

OF_DEVICE = {"cpu": "nbody.forces.matrix.cpu:CpuMatrixEngine", "gpu": "nbody.forces.matrix.gpu:GpuMatrixEngine"}


def default_rung() -> tuple[str, str]:
    """The rung that ``matrix`` alone stands for on this machine, and the reason in one clause."""
    from nbody import compute

    reason = compute.why_unavailable()
    return (BLAS, f"no GPU: {reason}") if reason else (SKINNY, compute.facts().name)


@cache
def matrix_engine(name: str = "") -> type[Engine]:
    """The engine that multiplies with the rung ``name`` of :data:`~nbody.linalg.LADDER`, on the rung's device; without a
    name, with the rung of :func:`default_rung`."""
    name = name or default_rung()[0]
    rung: Rung = LADDER.load(name)
    of_device: Any = imported(OF_DEVICE[rung.on])

    class MatrixEngine(of_device):
        __doc__ = of_device.__doc__
        can = Abilities(rung.dtypes, rung.on, potential="separate")
        _name, _rung = f"matrix:{name}", rung

    return MatrixEngine
