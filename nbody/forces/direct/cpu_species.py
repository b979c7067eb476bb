"""Sums over all bodies if species have softening lengths: the row kernel once for each length of the acting bodies.

The ε of a pair is the larger one of its bodies. The bodies j of one length act on all bodies i of smaller or equal lengths
with that ε, and on those of each larger length with the ε of these. So :mod:`nbody.forces.direct.cpu_rows` computes
everything, with one ε per call: L lengths take L (L + 1)/2 calls per evaluation, and the loop over j needs no ε per body.
"""

from collections.abc import Callable

import numpy as np

from nbody.forces.direct.cpu_rows import SUMS
from nbody.forces.direct.cpu_tiles import PIECE


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
