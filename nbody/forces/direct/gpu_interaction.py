"""The device functions of the kernel of ``gpu-symmetric``: the forces of the pairs of rows and columns.

A thread holds several rows in registers: bodies i with the sums of their forces. The column is the body j that is in the
thread's lane now, with its sums. An iteration computes the pairs of all rows with the column (:func:`interaction`), and
passes the column on to the next lane (:func:`passing_on`). The kernel that calls these functions is in
:mod:`nbody.forces.direct.gpu_pairs`.

    row k     row[:, k] = x y z m and, in mixed precision, the low parts of x y z (the rest after rounding to
              float32); if each body has a softening length, ε² in place of the first low part;
              sums_i[:, k] = the sums of the forces and of minus the potential
    column    x y z m p q r, with the same meaning;  sums_j = bx by bz bphi, its sums
"""

from collections.abc import Callable

import numpy as np

from nbody import compute
from nbody.forces.direct.gpu_lengths import lengths
from nbody.forces.gpu_engine import Shape
from nbody.law import LAWS, pair_law, pair_roots
from nbody.state import Outputs


def counts_alone(shape: Shape, masses: str) -> bool:
    """True if a pair's term of the energy is 1/distance alone: the common mass is multiplied at the end."""
    return shape.outputs == Outputs.ENERGY and masses == "equal" and shape.real is np.float32


def loading(shape: Shape, masses: str) -> Callable:
    """The function that loads body i: x, y, z, m, and the low parts of x, y, z in mixed precision, or ε². Beyond the last
    body it returns a massless body at a very large distance."""
    real, per_species, of_body = shape.real, shape.per_species, lengths(shape.per_species).of_body
    # 1/distance³ is zero there. In float32 1/distance is zero too, since the square overflows; in float64 it must not
    # overflow, because the root of infinity would be a NaN.
    nowhere = real(1e25) if real is np.float32 else real(1e153)

    @compute.device_function
    def load(body, length2, i):
        if i < body.shape[0]:
            x, y, z, m = real(body[i, 0]), real(body[i, 1]), real(body[i, 2]), real(body[i, 3])
            m = real(1) if masses == "equal" else m
            if per_species:
                return x, y, z, m, of_body(length2, i), real(0), real(0)
            return x, y, z, m, real(body[i, 0] - x), real(body[i, 1] - y), real(body[i, 2] - z)
        return nowhere, real(0), real(0), real(0), real(0), real(0), real(0)

    return load


def differing(mixed: bool) -> Callable:
    """The function of the difference of two coordinates."""

    @compute.device_function
    def difference(a, a_low, b, b_low):
        if mixed:
            return compute.add(compute.subtract(a_low, b_low), compute.subtract(a, b))
        return a - b

    return difference


def weighing_forces(masses: str) -> Callable:
    """:func:`weighing` of a law that is not cubic: from f instead of u."""

    @compute.device_function
    def weigh(f, mi, mj):
        if masses == "equal":
            return f, f
        if masses == "product":
            f = compute.multiply(compute.multiply(f, mj), mi)
            return f, f
        return compute.multiply(f, mj), compute.multiply(f, mi)

    return weigh


def weighing(masses: str) -> Callable:
    """The function that computes the weights of a pair, 1/distance³ times the masses, for i and for j from u = 1/distance.
    Explicit multiplications keep the bits independent of the potential (fast-math would share its product u m).
    ``masses``: see :func:`nbody.forces.direct.gpu_pairs.masses_of`."""

    @compute.device_function
    def weigh(u, mi, mj):
        if masses == "equal":
            f = compute.multiply(u, compute.multiply(u, u))
            return f, f
        if masses == "product":
            f = compute.multiply(compute.multiply(compute.multiply(u, u), compute.multiply(u, mj)), mi)
            return f, f
        f = compute.multiply(u, compute.multiply(u, u))
        return compute.multiply(f, mj), compute.multiply(f, mi)

    return weigh


def binding(shape: Shape, masses: str) -> Callable:
    """The function of the term that a body of mass mj, the column, adds to minus the potential of the row. For the energy
    each pair has one term, which is added to the row; often it is a number that exists already: 1/distance, or a product of
    ``weigh``."""
    counted = counts_alone(shape, masses)
    with_massless, potential_factor = masses == "separate", shape.potential_factor
    weighed = shape.outputs == Outputs.ENERGY and masses == "product" and shape.softening == "plummer"

    @compute.device_function
    def bind(u, mj):
        if counted:
            return u
        u = potential_factor(u, mj) if with_massless else u
        return compute.multiply(u, mj) if weighed else u * mj

    return bind


def interaction(shape: Shape, bodies: int, masses: str, with_itself: bool) -> Callable:
    """The function of one iteration: it adds the forces of the pairs of the thread's rows and its column to both, and
    returns the column's new sums. Row ``itself`` is the same body as the column.

    Only ``with_itself`` the potential of a body by itself is left out. Both are one body only in the first iteration of a
    diagonal chunk, and the test costs four instructions per pair, so there are two such functions, and the first
    iteration is outside the loop: a loop with both functions has twice the code, and a step of the lecture's disc with
    potentials took 247 µs instead of 179 (20480 bodies, one H200).
    """
    flat, potential, of_each = shape.flat, shape.potential, shape.outputs == Outputs.POTENTIAL
    of_two = lengths(shape.per_species).of_two
    difference, bind = differing(shape.mixed), binding(shape, masses)
    # A cubic law's first result is 1/distance here, zero within a cutoff: the cube is taken together with the masses.
    cubic = LAWS.load(shape.softening).cubic
    weigh = weighing(masses) if cubic else weighing_forces(masses)
    law = (pair_roots if cubic else pair_law)(shape.softening, shape.dimensions, compute.rsqrt, compute.device_function)

    @compute.device_function
    def interact(row, sums_i, column, sums_j, length2, itself):
        xj, yj, zj, mj, pj, qj, rj = column
        bx, by, bz, bphi = sums_j
        for k in range(bodies):
            dx, dy = difference(xj, pj, row[0, k], row[4, k]), difference(yj, qj, row[1, k], row[5, k])
            dz = difference(zj, rj, row[2, k], row[6, k])
            root, u = law(dx, dy, dz, of_two(length2, row[4, k], pj))
            fi, fj = weigh(root, row[3, k], mj)
            bx = compute.multiply_add(-fj, dx, bx)
            sums_i[0, k] = compute.multiply_add(fi, dx, sums_i[0, k])
            by = compute.multiply_add(-fj, dy, by)
            sums_i[1, k] = compute.multiply_add(fi, dy, sums_i[1, k])
            if not flat:
                sums_i[2, k] = compute.multiply_add(fi, dz, sums_i[2, k])
                bz = compute.multiply_add(-fj, dz, bz)
            if potential and not (with_itself and k == itself):
                sums_i[3, k] -= bind(u, mj)
                if of_each:
                    bphi -= bind(u, row[3, k])
        return bx, by, bz, bphi

    return interact


def passing_on(shape: Shape, masses: str) -> Callable:
    """The function that returns the column and its sums of another lane (a shuffle)."""
    flat, mixed, of_each = shape.flat, shape.mixed, shape.outputs == Outputs.POTENTIAL
    per_species = shape.per_species
    with_mass = masses != "equal" or (shape.potential and not counts_alone(shape, masses))

    @compute.device_function
    def pass_on(column, sums_j, lane):
        x, y, z, m, p, q, r = column
        bx, by, bz, bphi = sums_j
        x, bx = compute.shuffle(x, lane), compute.shuffle(bx, lane)
        y, by = compute.shuffle(y, lane), compute.shuffle(by, lane)
        if not flat:
            z, bz = compute.shuffle(z, lane), compute.shuffle(bz, lane)
        if mixed:
            p, q, r = compute.shuffle(p, lane), compute.shuffle(q, lane), compute.shuffle(r, lane)
        if per_species:
            p = compute.shuffle(p, lane)
        if with_mass:
            m = compute.shuffle(m, lane)
        if of_each:
            bphi = compute.shuffle(bphi, lane)
        return (x, y, z, m, p, q, r), (bx, by, bz, bphi)

    return pass_on
