"""Forces row by row: of all bodies j on each target i. For the jerk, and for the forces on a subset of the bodies.

    a_i = G Σ_j m_j f d,    jerk_i = G Σ_j m_j f (v - 3 (d·v) u² d),    φ_i = -G Σ_{j≠i} m_j u

with d = x_j - x_i, v = v_j - v_i, and f = u³ and u of :mod:`nbody.law` (Makino & Aarseth 1992); for a law that is not cubic,
-3 f u² is (1/r) df/dr. The sum over j is one loop over separate arrays of components, which the compiler vectorizes; rows
are divided among the cores. Unlike :mod:`nbody.forces.direct.cpu_pairs` this computes each pair twice, and needs no sums
over threads.

If species have softening lengths, ε of a pair is the larger one of its bodies. The bodies j of one length act on all bodies
i of smaller or equal lengths with that ε, and on those of each larger length with the ε of these: L lengths take L (L + 1)/2
calls of the kernel, whose loop over j needs no ε per body.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numba import prange

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.forces.direct.cpu_roots import FAST, REAL, compile_for_vectors, roots
from nbody.forces.direct.cpu_tiles import PIECE
from nbody.law import pair_law, pair_slopes
from nbody.state import Outputs

ALONE = 1 << 19
"""Fewer pairs than this are left to one core: it takes 0.1 ms, and waking the others costs as much on a busy machine."""

SUMS = 7
"""Columns of the result: acceleration (3), jerk (3), potential."""


@cache
def rows_for(law: str, outputs: Outputs, precision: str) -> Callable:
    """The compiled function ``rows(targets, x, v, m, length2, sums)``.

    Args of the function:
        targets: (T,) int64, the bodies i.
        x, v: (3, N) positions and velocities; v is read only for the jerk.
        m: (N,) masses.
        length2: the softening length squared, not 0.
        sums: (T, 7), the result without the factor G; acceleration and jerk without
            :func:`~nbody.forces.direct.cpu_pairs.missing_factor`.
    """
    sum_row = _row(law, outputs, REAL[precision])

    @compute.kernel("cpu", parallel=True, fastmath=FAST)
    def rows(targets, x, v, m, length2, sums):
        if len(targets) * len(m) < ALONE:
            for t in range(len(targets)):
                sum_row(targets[t], x, v, m, length2, sums[t])
            return
        for t in prange(len(targets)):
            sum_row(targets[t], x, v, m, length2, sums[t])

    return rows


def _row(law_name: str, outputs: Outputs, real: type) -> Callable:
    jerk, potential = Outputs.JERK in outputs, Outputs.ENERGY in outputs
    rsqrt, inverse_cube, _ = roots(real)
    inline = inner(fastmath=FAST, forceinline=True)
    law = pair_law(law_name, 3, rsqrt, inline, inverse_cube)
    slopes = pair_slopes(law_name, 3, rsqrt, inline, inverse_cube)
    cubic, slopes = slopes is None, slopes or law  # an unused function must be one, too
    zero, three = real(0), real(3)

    @inner(fastmath=FAST)
    def row(i, x, v, m, length2, sums):
        compile_for_vectors()
        xi, yi, zi = x[0, i], x[1, i], x[2, i]
        vxi, vyi, vzi = v[0, i], v[1, i], v[2, i]
        ax, ay, az, jx, jy, jz, phi = zero, zero, zero, zero, zero, zero, zero
        for j in range(m.size):
            dx, dy, dz = x[0, j] - xi, x[1, j] - yi, x[2, j] - zi
            f, u = law(dx, dy, dz, length2)
            weight = f * m[j]
            ax += weight * dx
            ay += weight * dy
            az += weight * dz
            if jerk:
                vx, vy, vz = v[0, j] - vxi, v[1, j] - vyi, v[2, j] - vzi
                if cubic:
                    stretch = three * (dx * vx + dy * vy + dz * vz) * u * u
                    jx += weight * (vx - stretch * dx)
                    jy += weight * (vy - stretch * dy)
                    jz += weight * (vz - stretch * dz)
                else:
                    change = slopes(dx, dy, dz, length2)[0] * (dx * vx + dy * vy + dz * vz) * m[j]
                    jx += weight * vx + change * dx
                    jy += weight * vy + change * dy
                    jz += weight * vz + change * dz
            if potential:
                phi -= zero if i == j else u * m[j]
        sums[0], sums[1], sums[2] = ax, ay, az
        sums[3], sums[4], sums[5] = jx, jy, jz
        sums[6] = phi

    return row


def components(rows: np.ndarray, factor: float) -> np.ndarray:
    """(N, D) rows as (3, N) components times ``factor``; in 2-D the third component is zero."""
    found = np.zeros((3, len(rows)), rows.dtype)
    np.multiply(rows.T, rows.dtype.type(factor), out=found[: rows.shape[1]])
    return found


def sums_by_length(
    kernel: Callable, targets: np.ndarray, x: np.ndarray, v: np.ndarray, mass: np.ndarray,
    softening2: np.ndarray, report: Callable[[int], None],
) -> np.ndarray:  # fmt: skip
    """The sums (T, 7) over the first S bodies j for each target i, as ``kernel`` makes them; see
    :func:`~nbody.forces.direct.cpu_rows.rows_for`. The sums of a target do not depend on the other targets.

    Args:
        kernel: of :func:`~nbody.forces.direct.cpu_rows.rows_for`.
        targets: (T,) numbers of bodies.
        x, v, mass, softening2: (3, N), (3, N), (S,) and (N,), in the kernel's units and dtype; softening2 is ε².
        report: called with the interactions of each call of the kernel.
    """
    total = np.zeros((len(targets), SUMS), x.dtype)
    for length2 in np.unique(softening2[: len(mass)]):
        acts = np.zeros(len(softening2), bool)
        acts[: len(mass)] = softening2[: len(mass)] == length2
        order = np.concatenate((np.flatnonzero(acts), np.flatnonzero(~acts)))  # the kernel takes the first for sources
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        # (x[:, order] would have the numbers of a body side by side, which costs eight tenths of the speed.)
        ordered, m = [np.take(each, order, axis=1) for each in (x, v)], mass[acts[: len(mass)]]
        pair2 = np.maximum(softening2[targets], length2)
        for larger2 in np.unique(pair2):
            rows = np.flatnonzero(pair2 == larger2)
            step = max(1, PIECE // len(m))
            for first in range(0, len(rows), step):
                some = rows[first : first + step]
                sums = np.empty((len(some), SUMS), x.dtype)
                kernel(place[targets[some]], *ordered, m, larger2, sums)
                total[some] += sums
                report(len(some) * len(m))
    return total
