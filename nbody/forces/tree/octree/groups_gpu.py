"""The last step of the build: the children of each cell, the groups and regions, and the order in which groups are walked.

A device has the groups and regions of its part of the targets. The walk counts the interactions of each group. They are
the costs that groups in the same places are expected to have in the next evaluation, which walks the groups with the
largest costs first: a group that begins last and takes the longest would leave all other warps without work. The costs, and
the order of groups in an octave, may differ between two runs of the same program; no result depends on the order of the
groups.
"""

from functools import cache
from typing import Any, NamedTuple

from nbody import compute
from nbody.compute import cuda
from nbody.forces.tree.octree.cells_gpu import (
    GROUPS,
    OCTAVE,
    OCTAVES,
    REGION_TICKET,
    REGIONS,
    TICKET,
    digits_of,
)
from nbody.forces.tree.octree.order_gpu import LEVELS

RUN = 32
"""Bodies, neighbours in Morton order, that share an entry of the costs."""


class TargetRuns(NamedTuple):
    """The part of a device in the forces on all targets: every ``parts``-th run of ``chunk`` targets in Morton order, from
    run ``number`` on. Runs are at least as long as groups and regions."""

    number: int
    parts: int
    chunk: int


ALL = TargetRuns(0, 1, 1 << 30)


@compute.device_function
def _counted(first, count, number, parts, chunk):
    """A run of targets, as it stands in a list: its number of targets; less than 0 if another device begins with the first
    one and counts its interactions; 0 if no target is in its part."""
    if first // chunk % parts == number:
        return count
    return -count if (first + count - 1) // chunk % parts == number else 0


@compute.device_function
def _octave(costs, first, count):
    """The octave of the cost that is expected of a group; 0 has the largest costs."""
    cost = costs[(first + count // 2) // RUN] * count
    return min(max(compute.leading_zeros(cost) - 32, 0), OCTAVES - 1)


@compute.device_function
def _add_group(counts, groups, costs, first, count, region_first, number, parts, chunk):
    counted = _counted(first, count, number, parts, chunk)
    if counted != 0:
        place = cuda.atomic.add(counts, GROUPS, 1)
        if place < groups.shape[0]:
            rank = cuda.atomic.add(counts, OCTAVE + _octave(costs, first, count), 1)
            compute.set_row(groups, place, first, counted, region_first, rank)


@compute.device_function
def _add_region(counts, regions, region_at, first, count, number, parts, chunk):
    counted = _counted(first, count, number, parts, chunk)
    if counted != 0:
        place = cuda.atomic.add(counts, REGIONS, 1)
        region_at[first] = -1
        if place < regions.shape[0]:
            regions[place, 0], regions[place, 1] = first, counted
            region_at[first] = place


@cache
def link_kernel(dimensions: int) -> Any:
    """``link(keys, counts, nodes, groups, costs, group, regions, region_at, region, number, parts, chunk)``: the number of
    bodies and of children of each cell. The groups, of at most ``group`` bodies: the largest cells, or runs of a leaf. The
    regions, of at most ``region`` bodies: the largest cells. Both only as far as they have bodies of a :class:`TargetRuns`,
    the last three arguments. (They are numbered in any order; no result depends on it.)"""
    _, prefix, first_sharing = digits_of(dimensions)

    @compute.device_function
    def end_of(keys, first, level):
        """The end of the bodies that share ``level`` digits with body ``first``."""
        n, wanted, step = keys.shape[0], prefix(keys[first], level), 1
        while first + step < n and prefix(keys[first + step], level) == wanted:
            step *= 2
        inside, end = first + step // 2, min(first + step, n)  # 'inside' belongs to the cell, 'end' does not
        while end - inside > 1:
            middle = (inside + end) >> 1
            if prefix(keys[middle], level) == wanted:
                inside = middle
            else:
                end = middle
        return end

    @compute.device_function
    def region_around(keys, first, level, most):
        """The first body of the largest cell with at most ``most`` bodies around the cell of a level that begins with body
        ``first`` and is not larger itself."""
        n, found = keys.shape[0], first
        for above in range(level - 1, -1, -1):
            wanted = prefix(keys[first], above)
            if first >= most and prefix(keys[first - most], above) == wanted:
                break
            begin = first_sharing(keys, first, above, max(first - most, 0) - 1)
            if begin + most < n and prefix(keys[begin + most], above) == wanted:
                break
            found = begin
        return found

    @compute.kernel("gpu")
    def link(
        keys, counts, nodes, groups, costs, group, regions, region_at, region, number, parts, chunk,
    ):  # fmt: skip
        for node in range(cuda.grid(1), counts[LEVELS + 1], cuda.gridsize(1)):
            level = 0
            while counts[level + 1] <= node:
                level += 1
            first, child = nodes[node, 0], nodes[node, 2]
            end = end_of(keys, first, level)
            children, count = 0, end - first
            if child > 0:
                while child + children < counts[level + 2] and nodes[child + children, 0] < end:
                    children += 1
            nodes[node, 1], nodes[node, 3] = count, children
            if level == 0 and count <= region:
                _add_region(counts, regions, region_at, first, count, number, parts, chunk)
            if level == 0 and count <= group:
                _add_group(counts, groups, costs, first, count, first, number, parts, chunk)
            elif count > group:
                around = region_around(keys, first, level, region) if count <= region else -1
                if children == 0:
                    for start in range(first, end, group):
                        size = min(group, end - start)
                        _add_group(counts, groups, costs, start, size, around, number, parts, chunk)
                for c in range(child, child + children):
                    start = nodes[c, 0]
                    size = (nodes[c + 1, 0] if c + 1 < child + children else end) - start
                    if count > region and size <= region:
                        _add_region(counts, regions, region_at, start, size, number, parts, chunk)
                    if size <= group:
                        inside = around if count <= region else start
                        _add_group(counts, groups, costs, start, size, inside, number, parts, chunk)

    return link


@compute.kernel("gpu")
def arrange(counts, groups, costs, sequence):
    """The sequence in which the groups are walked: from the octave of the largest costs to that of the smallest."""
    for group in range(cuda.grid(1), min(counts[GROUPS], groups.shape[0]), cuda.gridsize(1)):
        first, count, _, place = compute.row(groups, group)
        for heavier in range(_octave(costs, first, abs(count))):
            place += counts[OCTAVE + heavier]
        sequence[place] = group


@compute.kernel("gpu")
def restart(counts, work, last_work):
    """Let the regions and groups be walked again."""
    if cuda.threadIdx.x == 0:
        counts[TICKET], counts[REGION_TICKET] = 0, 0
        last_work[0], work[0] = work[0], 0
