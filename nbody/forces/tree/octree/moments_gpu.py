"""The upward pass on the GPU: centre of mass, radius, multipole moments and their norms, of leaves and then of cells.

Arrays with a row of four numbers or several rows per cell, so that a load is 128 bits:

    place    (C, 4)         centre of mass and radius: x y z r   (of massless cells: the mean of the bodies)
    norms    (C · rows, 4)  M, then P_2/(M r²), P_3/(M r³) … for the acceptance test, float32
    moments  (C · rows, 4)  M_n of :mod:`nbody.forces.tree.expansions.formulas`, float32

The radius is the largest distance of a body of a leaf, and for other cells the largest of child centre + child radius.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.tree.expansions.operators import Basis, Operators, operators
from nbody.forces.tree.expansions.text import function_of
from nbody.forces.tree.octree.cells_gpu import ALL_LEVELS


def rows_of(numbers: int) -> int:
    """The rows of four that hold ``numbers``."""
    return -(-numbers // 4)


class Rows(NamedTuple):
    """Functions for expansions of a fixed length, which a kernel holds as tuples of scalars."""

    load: Callable
    """load(array, i): those of cell i."""
    store: Callable
    """store(array, i, values)"""
    add: Callable
    """add(a, b)"""
    zeros: Callable
    """zeros()"""
    rows: int
    """Rows of four per cell."""


@cache
def tuples(count: int) -> Rows:
    """:class:`Rows` for expansions of ``count`` float32 numbers."""
    rows = rows_of(count)
    names = [f"v{k}" for k in range(4 * rows)]
    load = ["def load(array, i):", f"    at = i * {rows}"]
    store = ["def store(array, i, values):", f"    at = i * {rows}"]
    for row in range(rows):
        load.append(f"    {', '.join(names[4 * row : 4 * row + 4])} = row(array, at + {row})")
    load.append(f"    return ({', '.join(names[:count])},)")
    padded = [f"values[{k}]" if k < count else "zero" for k in range(4 * rows)]
    store += [f"    set_row(array, at + {row}, {', '.join(padded[4 * row : 4 * row + 4])})" for row in range(rows)]
    add = ["def add(a, b):", f"    return ({', '.join(f'a[{k}] + b[{k}]' for k in range(count))},)"]
    zeros = ["def zeros():", f"    return ({'zero, ' * count})"]

    def made(name: str, text: list[str]) -> Callable:
        return compute.device_function(function_of(name, text, zero=np.float32(0), row=compute.row, set_row=compute.set_row))

    return Rows(made("load", load), made("store", store), made("add", add), made("zeros", zeros), rows)


@cache
def device_operators(basis: Basis) -> Operators:
    """The operators of a basis as device functions in float32."""
    return operators(basis, np.float32, compute.rsqrt, compute.device_function)


@cache
def scaled_norms(basis: Basis) -> Callable:
    """``scaled_norms(moments, r)``: M, then P_n/(M r^n) for n = 2 to p, at least half of the one before. (P_n² itself would
    be too small for float32. The odd moments of two equal bodies are zero, but not those of the next degree, which an
    estimate from P_p alone would miss.)"""
    powers = ["1.0", *(f"s{n}" for n in range(1, basis.order + 1))]
    lines = ["def of(moments, r):", "    mass = moments[0]", "    if not (mass > zero and r > zero):"]
    lines += [f"        return (mass, {'zero, ' * (basis.order - 1)})", "    s0, s1 = one / mass, one / r"]
    lines += [f"    s{n} = s{n - 1} * s1" for n in range(2, basis.order + 1)]
    scaled = [f"moments[{k}] * s0" + (f" * {powers[sum(n)]}" if any(n) else "") for k, n in enumerate(basis.moments)]
    lines += [f"    squares = norms(({', '.join(scaled)},))"]
    lines += [f"    p{k} = sqrt(max(squares[{k - 2}], zero))" for k in range(2, basis.order + 1)]
    lines += [f"    p{k} = max(p{k}, half * p{k - 1})" for k in range(3, basis.order + 1)]
    lines += [f"    return (mass, {''.join(f'p{k}, ' for k in range(2, basis.order + 1))})"]
    norms = device_operators(basis).norms
    constants = {"zero": np.float32(0), "half": np.float32(0.5), "one": np.float32(1)}
    return compute.device_function(function_of("of", lines, norms=norms, sqrt=math.sqrt, **constants))


@cache
def upward_kernels(basis: Basis, wide: type) -> tuple[Any, Any]:
    """``leaves(sorted, counts, nodes, place, norms, moments)``: all leaves, from their bodies; ``upward(level, counts,
    nodes, place, norms, moments)``: the other cells of a level, from their children, which an earlier launch has computed.
    One thread per cell; coordinates are of the type ``wide``."""
    ops = device_operators(basis._replace(potential=False))
    kept, normed = tuples(len(basis.moments)), tuples(basis.order)
    norms_of, f0 = scaled_norms(basis._replace(potential=False)), np.float32(0)

    @compute.device_function
    def of_bodies(body, first, last, place, node):
        """The moments and the radius of the bodies of a leaf; its centre and radius are written."""
        x0, y0, z0, _ = compute.row(body, first)
        mass, sx, sy, sz, mx, my, mz = f0, f0, f0, f0, f0, f0, f0
        for i in range(first, last):
            x, y, z, m = compute.row(body, i)
            dx, dy, dz, w = np.float32(x - x0), np.float32(y - y0), np.float32(z - z0), np.float32(m)
            mass += w
            sx, sy, sz = sx + dx, sy + dy, sz + dz
            mx, my, mz = mx + w * dx, my + w * dy, mz + w * dz
        if mass > f0:
            inverse = np.float32(1) / mass
            sx, sy, sz = mx * inverse, my * inverse, mz * inverse
        else:
            inverse = np.float32(1) / np.float32(last - first)
            sx, sy, sz = sx * inverse, sy * inverse, sz * inverse
        cx, cy, cz = x0 + wide(sx), y0 + wide(sy), z0 + wide(sz)
        total, r2 = kept.zeros(), f0
        for i in range(first, last):
            x, y, z, m = compute.row(body, i)
            dx, dy, dz = np.float32(x - cx), np.float32(y - cy), np.float32(z - cz)
            r2 = max(r2, dx * dx + dy * dy + dz * dz)
            total = kept.add(total, ops.p2m(dx, dy, dz, np.float32(m)))
        radius = np.float32(math.sqrt(r2))
        compute.set_row(place, node, cx, cy, cz, wide(radius))
        return total, radius

    @compute.device_function
    def of_children(child, children, place, moments, node):
        """The moments and the radius of a cell from those of its children; its centre and radius are written."""
        x0, y0, z0, _ = compute.row(place, child)
        mass, sx, sy, sz = f0, f0, f0, f0
        for c in range(child, child + children):
            x, y, z, _ = compute.row(place, c)
            w = moments[c * kept.rows, 0]
            mass += w
            sx, sy, sz = (
                sx + w * np.float32(x - x0), sy + w * np.float32(y - y0), sz + w * np.float32(z - z0)
            )  # fmt: skip
        inverse = np.float32(1) / mass if mass > f0 else f0
        cx, cy, cz = x0 + wide(sx * inverse), y0 + wide(sy * inverse), z0 + wide(sz * inverse)
        total, radius = kept.zeros(), f0
        for c in range(child, child + children):
            x, y, z, r = compute.row(place, c)
            dx, dy, dz = np.float32(x - cx), np.float32(y - cy), np.float32(z - cz)
            radius = max(radius, math.sqrt(dx * dx + dy * dy + dz * dz) + np.float32(r))
            total = kept.add(total, ops.m2m(dx, dy, dz, kept.load(moments, c)))
        compute.set_row(place, node, cx, cy, cz, wide(radius))
        return total, radius

    @compute.device_function
    def write(total, radius, node, norms, moments):
        kept.store(moments, node, total)
        normed.store(norms, node, norms_of(total, radius))

    @compute.kernel("gpu", **compute.FAST)
    def leaves(body, counts, nodes, place, norms, moments):
        for node in range(cuda.grid(1), counts[ALL_LEVELS], cuda.gridsize(1)):
            first, count, _, children = compute.row(nodes, node)
            if children == 0:
                total, radius = of_bodies(body, first, first + count, place, node)
                write(total, radius, node, norms, moments)

    @compute.kernel("gpu", **compute.FAST)
    def upward(level, counts, nodes, place, norms, moments):
        for node in range(counts[level] + cuda.grid(1), counts[level + 1], cuda.gridsize(1)):
            _, _, child, children = compute.row(nodes, node)
            if children > 0:
                total, radius = of_children(child, children, place, moments, node)
                write(total, radius, node, norms, moments)

    return leaves, upward
