"""From the leaves to the root: centres, radii, boxes, and moments of all cells.

A cell has two descriptions. As a source: the centre of mass c, the radius r of its bodies with mass about c, its mass, the
norms P_2 … P_p and the moments M about c. As a target: the box of its bodies, the radius R about the centre of the box, and
the smallest |a| of its bodies.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from nbody.compute.compiling.cpu_inner import inner, kernel
from nbody.compute.in_kernels.cpu_lanes import padded
from nbody.compute.in_kernels.cpu_threads import for_each
from nbody.forces.direct.cpu_roots import FAST
from nbody.forces.direct.cpu_tiles import aligned_zeros
from nbody.forces.tree.expansions.formulas import Basis, m2m_text, norms_text, p2m_text
from nbody.forces.tree.expansions.text import Text, name
from nbody.forces.tree.octree.cells_cpu import Cells
from nbody.forces.tree.variant_cpu import Variant, compiled

BOX = 8
"""Numbers per target: the centre of the box, R, half the box's sides, the smallest |a|."""

FEW = 64
"""A level of fewer cells is described by one thread."""

FINE = 256
"""Cells with more bodies take their radii from their children's spheres (a bound); those with fewer from the bodies."""

ALONE = 0.4
"""The criterion's error for some bodies or points, in units of that for all: it takes the smallest |a| of the targets in a
cell, which of many bodies is well below the typical one."""


class Fields(NamedTuple):
    """What is known of each of K cells.

    Attributes:
        records: (K, 4 + p or more): c, r, mass (negative for a leaf), P_2 … P_p: what the walk reads.
        moments: (K, width): c and M, in the order of ``Basis.moments``.
        boxes: (K, BOX).
    """

    records: np.ndarray
    moments: np.ndarray
    boxes: np.ndarray


def fields_of(variant: Variant, cells: Cells, bodies: np.ndarray, order: np.ndarray, scale: np.ndarray) -> Fields:
    """The fields of cells over sorted ``bodies`` (4, N + PAD). ``scale`` (N,): |a| of the bodies, before the sort."""
    count, dtype = len(cells.first), np.dtype(variant.real)
    width = 3 + len(variant.basis.moments)
    fields = Fields(
        aligned_zeros((count, padded(4 + variant.order, variant.real)), dtype),
        aligned_zeros((count, padded(width, variant.real)), dtype),
        aligned_zeros((count, BOX), dtype),
    )
    upward_for(variant.of_cells)(cells, bodies, order, scale, fields)
    return fields


@cache
def upward_for(variant: Variant) -> Callable:
    """The compiled function ``upward(cells, bodies, order, scale, fields)`` that fills the fields."""
    describe = _describe(variant)

    @kernel(fastmath=FAST)
    def upward(cells, bodies, order, scale, fields):
        levels = cells.levels
        for level in range(len(levels) - 2, -1, -1):
            begin, end = levels[level], levels[level + 1]
            for_each(describe, end - begin, FEW, (begin, cells, bodies, order, scale, fields))

    found: Callable = upward
    return found


def _describe(variant: Variant) -> Callable:
    """``describe(k, begin, …)``: fill the fields of cell k of a level, whose children are done."""
    add_bodies, add_child, norms = _add_bodies(variant), _add_child(variant), _norms(variant)
    real, highest = variant.real, variant.order
    zero, half, most, alone = real(0), real(0.5), real(np.finfo(variant.real).max), real(ALONE)

    @inner(fastmath=FAST)
    def centre_of(cell, cells, bodies, records, row):
        """Mass and centre of mass."""
        first, count = np.int64(cells.first[cell]), np.int64(cells.count[cell])
        mass, x, y, z = zero, zero, zero, zero
        x0, y0, z0 = bodies[0, first], bodies[1, first], bodies[2, first]
        if cells.children[cell] == 0:
            for j in range(first, first + count):
                m = bodies[3, j]
                mass += m
                x += m * (bodies[0, j] - x0)
                y += m * (bodies[1, j] - y0)
                z += m * (bodies[2, j] - z0)
        else:
            child = np.int64(cells.child[cell])
            for s in range(child, child + np.int64(cells.children[cell])):
                m = abs(records[s, 4])
                mass += m
                x += m * (records[s, 0] - x0)
                y += m * (records[s, 1] - y0)
                z += m * (records[s, 2] - z0)
        over = real(1) / mass if mass > zero else zero
        row[0], row[1], row[2] = x0 + x * over, y0 + y * over, z0 + z * over
        return mass

    @inner(fastmath=FAST)
    def box_of(cell, cells, bodies, order, scale, boxes):
        """The box of the bodies, and the smallest |a|. Bodies in one place have one error, as one alone has."""
        first, count = np.int64(cells.first[cell]), np.int64(cells.count[cell])
        box = boxes[cell]
        least = most
        for k in range(3):
            low, high = most, -most
            if cells.children[cell] == 0:
                for j in range(first, first + count):
                    x = bodies[k, j]
                    low, high = (x if x < low else low), (x if x > high else high)
            else:
                child = np.int64(cells.child[cell])
                for s in range(child, child + np.int64(cells.children[cell])):
                    x, h = boxes[s, k], boxes[s, 4 + k]
                    low, high = (x - h if x - h < low else low), (x + h if x + h > high else high)
            box[k], box[4 + k] = half * low + half * high, half * high - half * low
        if cells.children[cell] == 0:
            for j in range(first, first + count):
                size = scale[order[j]]
                least = size if size < least else least
            if count > 1 and max(box[4], box[5], box[6]) == zero:
                least *= alone
        else:
            child = np.int64(cells.child[cell])
            for s in range(child, child + np.int64(cells.children[cell])):
                least = boxes[s, 7] if boxes[s, 7] < least else least
        box[7] = least

    @inner(fastmath=FAST | {"nnan"})
    def radii(first, count, bodies, centre, box):
        """The largest squares of distances from the centre of mass (of bodies with mass) and from that of the box."""
        (cx, cy, cz), (bx, by, bz), source, target = centre, box, zero, zero
        for j in range(first, first + count):
            x, y, z = bodies[0, j], bodies[1, j], bodies[2, j]
            r2 = (x - cx) * (x - cx) + (y - cy) * (y - cy) + (z - cz) * (z - cz)
            r2 = r2 if bodies[3, j] > zero else zero
            R2 = (x - bx) * (x - bx) + (y - by) * (y - by) + (z - bz) * (z - bz)
            source, target = max(source, r2), max(target, R2)
        return source, target

    @inner(fastmath=FAST)
    def describe(k, begin, cells, bodies, order, scale, fields):
        cell = begin + k
        records, moments, boxes = fields.records, fields.moments, fields.boxes
        first, count = np.int64(cells.first[cell]), np.int64(cells.count[cell])
        row, record, box = moments[cell], records[cell], boxes[cell]
        mass = centre_of(cell, cells, bodies, records, row)
        box_of(cell, cells, bodies, order, scale, boxes)
        child, children = np.int64(cells.child[cell]), np.int64(cells.children[cell])
        for k in range(3, len(row)):
            row[k] = zero
        if children == 0:
            add_bodies(first, count, bodies, row)
        for s in range(child, child + children):
            if records[s, 4] != zero:
                add_child(moments[s], row)
        norms(row, record)
        r, R = zero, zero
        if children == 0 or count <= FINE:
            r2, R2 = radii(first, count, bodies, (row[0], row[1], row[2]), (box[0], box[1], box[2]))
            r, R = np.sqrt(r2), np.sqrt(R2)
        else:
            for s in range(child, child + children):
                x, y, z = records[s, 0] - row[0], records[s, 1] - row[1], records[s, 2] - row[2]
                if records[s, 4] != zero:
                    r = max(r, np.sqrt(x * x + y * y + z * z) + records[s, 3])
                x, y, z = boxes[s, 0] - box[0], boxes[s, 1] - box[1], boxes[s, 2] - box[2]
                R = max(R, np.sqrt(x * x + y * y + z * z) + boxes[s, 3])
            R = min(R, np.sqrt(box[4] * box[4] + box[5] * box[5] + box[6] * box[6]))
        # The odd moments of two equal bodies are zero, but not those of the next degree, which an estimate from P_p alone
        # would miss.
        before = zero
        for k in range(2, highest + 1):
            before = max(np.sqrt(max(record[3 + k], zero)), half * r * before)
            record[3 + k] = before
        record[0], record[1], record[2], record[3] = row[0], row[1], row[2], r
        record[4] = -mass if children == 0 else mass
        box[3] = R

    return describe


def _add_bodies(variant: Variant) -> Callable:
    """``add(first, count, bodies, row)``: add the moments of bodies about the centre in a row to the row."""
    text, names = Text(), [name("M", n) for n in variant.basis.moments]
    p2m_text(text, variant.basis)
    made = text.lines
    text.lines = [
        "def add(first, count, bodies, row):",
        "    cx, cy, cz = row[0], row[1], row[2]",
        *(f"    t{each} = zero" for each in names),
        "    for j in range(first, first + count):",
        "        dx, dy, dz, m = bodies[0, j] - cx, bodies[1, j] - cy, bodies[2, j] - cz, bodies[3, j]",
        *("        " + line for line in made),
        *(f"        t{each} += {each}" for each in names),
        *(f"    row[{3 + place}] += t{each}" for place, each in enumerate(names)),
    ]
    return compiled(text, variant, "add")


def _of_moments(variant: Variant, write: Callable[[Text, Basis], None], begin: list[str], end: list[str]) -> Callable:
    """``function(cell, result)``: what ``write`` makes of the moments of a row ``cell``, after the lines ``begin`` and
    before the lines ``end``."""
    text = Text()
    write(text, variant.basis)
    moments = [f"{name('M', n)} = cell[{3 + place}]" for place, n in enumerate(variant.basis.moments)]
    text.lines = ["def function(cell, result):", *("    " + line for line in (*begin, *moments, *text.lines, *end))]
    return compiled(text, variant, "function")


def _add_child(variant: Variant) -> Callable:
    """``add(child, row)``: add a child's moments to its parent's row."""
    d = "dx, dy, dz = cell[0] - result[0], cell[1] - result[1], cell[2] - result[2]"
    moved = [f"result[{3 + place}] += {name('N', n)}" for place, n in enumerate(variant.basis.moments)]
    return _of_moments(variant, m2m_text, [d], moved)


def _norms(variant: Variant) -> Callable:
    """``norms(row, record)``: the squares of P_2 … P_p, from a cell's moments to its record."""
    norms = [f"result[{3 + degree}] = P{degree}" for degree in range(2, variant.order + 1)]
    return _of_moments(variant, norms_text, [], norms)
