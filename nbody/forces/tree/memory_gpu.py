"""The memory of a tree on the GPU: how long its arrays are, and what shares memory because it is needed at different times.

    build   keys │ rows │ levels │ cells per block
    walk    moments ─►                   ◄─ lists

The cells are built before moments and lists are written. Moments begin at the first byte, and lists end at the last one,
with the list of region 0. The memory holds the lists of all regions and the moments of a third of the cells, which
are as many cells as there typically are. If there are more cells, fewer lists fit. If the lists of all regions do not fit,
all groups begin with the root (:mod:`.walk.regions_gpu`).
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from nbody.compute import cuda
from nbody.forces.tree import momentum_gpu as momentum
from nbody.forces.tree.expansions.operators import Basis
from nbody.forces.tree.octree import cells_gpu as build
from nbody.forces.tree.octree import order_gpu as keys
from nbody.forces.tree.octree.groups_gpu import RUN
from nbody.forces.tree.octree.moments_gpu import rows_of
from nbody.forces.tree.walk.regions_gpu import LIST
from nbody.forces.tree.walk.walk_gpu import GROUP

LIST_BYTES = 4 * LIST
"""Bytes of the list of a region: the rows of the shared memory."""

ALIGNMENT = 256
"""Arrays that are written at the same time begin at multiples of this."""

Form = tuple[tuple[int, ...], Any]
"""The shape and the dtype of an array."""


class Sizes(NamedTuple):
    """The lengths of the arrays, and the shared memory in rows of LIST_BYTES."""

    bodies: int
    cells: int
    groups: int
    regions: int
    parts: int
    rows: int


def cells_for(count: int, leaf: int) -> int:
    """The cells that fit: typically there are N/8 with leaves of 32, and three times as many fit. (With more
    the tree ends at a higher level, see :mod:`.octree.cells_gpu`.)"""
    return min(2 * count + 64, 12 * count // leaf + 4096)


def sizes(count: int, leaf: int, region: int, cell_bytes: int = 0) -> Sizes:
    """The sizes for ``count`` bodies. Regions of at most 1024 bodies: typically N/300. The largest parts of the shared
    memory that systems of 2^17 to 2^20 bodies took, order 4: 0.85 (uniform), 0.71 (a fractal), 0.67 (Hernquist's sphere).

    Args:
        region: the most bodies of a region.
        cell_bytes: those of the moments of a cell.
    """
    cells = cells_for(count, leaf)
    regions, parts = min(cells, 8 * count // region + 64), -(-count // build.MARK_THREADS)
    walk = max(cells * cell_bytes, regions * LIST_BYTES + cells // 3 * cell_bytes)
    rows = -(-max(walk, _end(forms_of_build(count, parts))) // LIST_BYTES)
    return Sizes(count, cells, cells + count // GROUP + 1, regions, parts, rows)


def forms_of_build(bodies: int, parts: int) -> list[Form]:
    """What the build of the cells needs: the keys and the rows of the bodies, two of each for the sort; the levels of the
    cells that begin with each body; and the cells per block of threads and level."""
    return [
        ((2, bodies), np.uint64), ((2, bodies), np.uint32), ((bodies, 2), np.uint8),
        ((build.ALL_LEVELS, parts), np.int32),
    ]  # fmt: skip


def forms_of_cells(n: Sizes, basis: Basis, wide: type) -> dict[str, Form]:
    """The arrays of :class:`~nbody.forces.tree.tree_gpu.DeviceCells`."""
    local_rows = rows_of(len(basis._replace(potential=True).locals))
    return {
        "_shared": ((n.rows * LIST_BYTES,), np.uint8),
        "_totals": ((build.ALL_LEVELS,), np.int32),
        "_index": ((n.bodies,), np.uint32),
        "_sorted": ((n.bodies, 4), wide),
        "counts": ((build.COUNTS,), np.int32),
        "nodes": ((n.cells, 4), np.int32),
        "groups": ((n.groups, 4), np.int32),
        "sequence": ((n.groups,), np.int32),
        "costs": ((-(-n.bodies // RUN),), np.int32),
        "regions": ((n.regions, 2), np.int32),
        "region_at": ((n.bodies,), np.int32),
        "centres": ((n.regions, 4), wide),
        "locals": ((n.regions * local_rows, 4), np.float32),
        "listed": ((n.regions,), np.int32),
        "work": ((1,), np.int64),
    }


def forms_of_tree(count: int, leaf: int, basis: Basis, wide: type) -> dict[str, Form]:
    """The arrays of :class:`~nbody.forces.tree.tree_gpu.DeviceTree`, without those of its cells."""
    cells = cells_for(count, leaf)
    return {
        "parts": ((min(keys.PARTS, -(-count // keys.THREADS)), 8), np.float64),
        "box": ((keys.BOX,), np.float64),
        "forces": ((momentum.blocks(count), 4), np.float64),
        "place": ((cells, 4), wide),
        "norms": ((cells * rows_of(basis.order), 4), np.float32),
    }


def moment_bytes(basis: Basis) -> int:
    """The bytes of the moments of a cell."""
    return 16 * rows_of(len(basis.moments))


def bytes_of(forms: Iterable[Form]) -> int:
    """The bytes of some arrays."""
    return sum(math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in forms)


def allocate(owner: Any, forms: dict[str, Form]) -> None:
    """Make device arrays, which become attributes of ``owner``."""
    for name, form in forms.items():
        setattr(owner, name, cuda.device_array(*form))


def views(memory: Any, forms: Iterable[Form]) -> list[Any]:
    """Arrays in ``memory`` (uint8, on the device), one after the other."""
    found, begin = [], 0
    for shape, dtype in forms:
        end = begin + bytes_of([(shape, dtype)])
        found.append(memory[begin:end].view(dtype).reshape(shape))
        begin = -(-end // ALIGNMENT) * ALIGNMENT
    return found


def _end(forms: Iterable[Form]) -> int:
    """The bytes that :func:`views` needs."""
    return sum(-(-bytes_of([form]) // ALIGNMENT) * ALIGNMENT for form in forms)
