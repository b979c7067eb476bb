"""Wisdom and Holman's maps of the systems of an ensemble on a GPU, in float64: one lane of a warp per planet.

A system of n - 1 planets has the next power of two of lanes; its star has none. Each lane keeps the Jacobi coordinates of
its planet in registers for all steps of a launch, and solves Kepler's equation for it; lanes exchange positions and forces
through shared memory, three times per step. So 16384 systems of nine bodies are 4096 warps, 31 per multiprocessor of an
H200, of which 16 run at a time.

Float64 operations of a step per lane, for eight planets: Kepler's equation 250 to 350 (three or four evaluations of
Stumpff's functions), the forces of seven planets and the star 250, sums of coordinates and forces 50 to 100.

Sums run in other orders than on a CPU, roots are refined estimates, and products are fused where the compiler likes: so the
bits differ from the CPU's, in the last digits.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import SIMULATED, cuda
from nbody.errors import InputError
from nbody.fields.compiled import summed
from nbody.fields.field import Term
from nbody.integrators.few_bodies import per_c2
from nbody.integrators.solvers.kepler import KeplerFunctions, kepler_functions
from nbody.integrators.solvers.map_fields import map_fields, terms_of
from nbody.integrators.solvers.megno import growing
from nbody.integrators.solvers.systems.cpu_map import coordinates
from nbody.integrators.solvers.systems.scheme import DONE, ENCOUNTER, NOT_FINITE, MapsAsked
from nbody.integrators.tangents import COLUMNS

THREADS = 8 if SIMULATED else 128
RESIDENT, RESIDENT_VARIED = 4, 2
"""Threads per block, and how many blocks fit on a multiprocessor at a time: at most 128 registers per thread, with tangent
vectors 255."""

SMALL, CONVERGED = 0.5, 3e-8
"""How far Stumpff's series is used, and the change of the root at which Newton's iteration ends
(:func:`nbody.integrators.solvers.kepler.kepler_functions`): as large as the accuracy allows, for speed."""

FAR = 1e30
"""The position of lanes without a planet: far from all planets."""


class MapKernels(NamedTuple):
    """The compiled kernels for systems of a number of bodies."""

    move: Any
    present: Any


def lanes_for(planets: int) -> int:
    """The lanes of a system: a power of two, at most a warp."""
    return 1 << (planets - 1).bit_length()


@cache
def kepler_on_gpu() -> KeplerFunctions:
    """Kepler's step in float64."""

    @compute.exact_function
    def roots(x):
        u = compute.rsqrt(x)
        return x * u, u

    @compute.exact_function
    def inverse(x):
        u = compute.rsqrt(x)
        return u * u

    return kepler_functions(compute.exact_function, roots, inverse, SMALL, CONVERGED)


@cache
def kernels_for(
    bodies: int, threads: int = THREADS, resident: int = RESIDENT, varied: bool = False,
    terms: tuple[Term, ...] = (), relativity: bool = False,
) -> MapKernels:  # fmt: skip
    """The kernels; ``resident``: the number of blocks that must fit on a multiprocessor at a time (0: no limit of
    registers); ``varied``: with a tangent vector of each system; ``terms``: of external fields;
    ``relativity``: with the 1PN term of the star."""
    planets = bodies - 1
    lanes = lanes_for(planets)
    groups, row_length = threads // lanes, lanes + 1  # rows of one number more: fewer bank conflicts
    numbers = groups * row_length
    bound = {} if SIMULATED or not resident else {"launch_bounds": (threads, resident)}

    kepler = kepler_on_gpu()
    solve, moved, tangent, grow = kepler.solve, kepler.moved, kepler.tangent, growing(compute.exact_function)

    @compute.exact_function
    def sync():
        """Wait for the lanes of the warp. (The simulator has only the barrier of a block.)"""
        if SIMULATED:
            cuda.syncthreads()
        else:
            cuda.syncwarp()

    @compute.exact_function
    def read_body(bodies, i):
        rows, first = bodies
        i += first
        return rows[0, i], rows[1, i], rows[2, i], rows[3, i], rows[4, i], rows[5, i], rows[6, i]

    by_fields, in_fields = summed(terms, compute.exact_function, read_body), bool(terms)
    midpoint = any(term.moving for term in terms)

    @compute.exact_function
    def inertial(x, y, z, lane, weighted):
        """A planet's coordinates, and the star's, relative to the centre of mass of all, from those of Jacobi."""
        base, row, k, fraction = lane[:4]
        weighted[0, row], weighted[1, row], weighted[2, row] = fraction * x, fraction * y, fraction * z
        sync()
        cx, cy, cz, px, py, pz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(lanes - 1, -1, -1):
            cx -= weighted[0, base + j]
            cy -= weighted[1, base + j]
            cz -= weighted[2, base + j]
            if j == k:  # the centre of mass of the bodies before this planet
                px, py, pz = x + cx, y + cy, z + cz
        sync()
        return px, py, pz, cx, cy, cz

    @compute.exact_function
    def kick_by_fields(at, centre, lane, h, time, given, shared):
        """The velocities of a planet and of the centre of mass after a kick by the fields."""
        (x, y, z, vx, vy, vz), (X, Y, Z, VX, VY, VZ) = at, centre
        ranks, masses, (place, of_star, first, is_planet) = lane
        (base, row, k, _), (own, before, star) = ranks, masses
        (weighted, forces, rows), (parameters, G) = shared, given
        px, py, pz, cx, cy, cz = inertial(x, y, z, ranks, weighted)
        bx, by, bz, ux, uy, uz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for stage in range(2 if midpoint else 1):
            half = 0.5 * h * stage
            qx, qy, qz, sx, sy, sz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if midpoint:
                qx, qy, qz, sx, sy, sz = inertial(vx + half * bx, vy + half * by, vz + half * bz, ranks, weighted)
            MX, MY, MZ = VX + half * ux, VY + half * uy, VZ + half * uz
            if is_planet:
                rows[0, place], rows[1, place], rows[2, place] = X + px, Y + py, Z + pz
                rows[3, place], rows[4, place], rows[5, place], rows[6, place] = MX + qx, MY + qy, MZ + qz, own / G
            if k == 0:
                rows[0, of_star], rows[1, of_star], rows[2, of_star] = X + cx, Y + cy, Z + cz
                rows[3, of_star], rows[4, of_star], rows[5, of_star], rows[6, of_star] = (
                    MX + sx,
                    MY + sy,
                    MZ + sz,
                    star / G,
                )
            sync()
            ax, ay, az, fx, fy, fz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if is_planet:
                ax, ay, az, _ = by_fields(place - first, (rows, first), bodies, time, parameters)
                fx, fy, fz, _ = by_fields(of_star - first, (rows, first), bodies, time, parameters)
            forces[0, row], forces[1, row], forces[2, row], weighted[0, row] = own * ax, own * ay, own * az, own
            sync()
            wx, wy, wz, total = star * fx, star * fy, star * fz, star
            ux, uy, uz = wx, wy, wz
            for j in range(base, base + lanes):
                ux, uy, uz, total = ux + forces[0, j], uy + forces[1, j], uz + forces[2, j], total + weighted[0, j]
                if j < row:
                    wx, wy, wz = wx + forces[0, j], wy + forces[1, j], wz + forces[2, j]
            bx, by, bz, ux, uy, uz = (
                ax - wx / before,
                ay - wy / before,
                az - wz / before,
                ux / total,
                uy / total,
                uz / total,
            )
            sync()
        return vx + h * bx, vy + h * by, vz + h * bz, VX + h * ux, VY + h * uy, VZ + h * uz

    @compute.exact_function
    def shift_tangent(change, vx, vy, vz, rate):
        """The tangent vector after relativity's shift of positions."""
        dx, dy, dz, dvx, dvy, dvz = change
        v2, along = vx * vx + vy * vy + vz * vz, 2.0 * (vx * dvx + vy * dvy + vz * dvz)
        return (
            dx - rate * (v2 * dvx + along * vx), dy - rate * (v2 * dvy + along * vy), dz - rate * (v2 * dvz + along * vz),
            dvx, dvy, dvz,
        )  # fmt: skip

    @compute.exact_function
    def move_centre(X, V, end_X, end_V, moves, here, count):
        """Move the centre of mass of a system, move by move: the bits are those of any division into launches."""
        for c in range(3):
            middle, v = X[here, c], V[here, c]
            for q in range(count):
                middle += moves[q % moves.shape[0], 1] * v
            end_X[here, c], end_V[here, c] = middle, v

    @compute.exact_function
    def kick_tangent(change, at, lane, h, shared):
        """The tangent vector's velocity after a kick: the derivative of what the kernel does."""
        (dx, dy, dz, dvx, dvy, dvz), (x, y, z, px, py, pz, cx, cy, cz) = change, at
        base, row, k, planet, fraction, own, of_star, of_inner, per_before = lane
        weighted, positions, shifts, forces, weight = shared
        weighted[0, row], weighted[1, row], weighted[2, row] = fraction * dx, fraction * dy, fraction * dz
        sync()
        sx, sy, sz, qx, qy, qz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(lanes - 1, -1, -1):
            sx, sy, sz = sx - weighted[0, base + j], sy - weighted[1, base + j], sz - weighted[2, base + j]
            if j == k and planet:
                qx, qy, qz = dx + sx, dy + sy, dz + sz
        shifts[0, row], shifts[1, row], shifts[2, row] = qx, qy, qz
        sync()
        ax, ay, az = slope(of_star, cx - px, cy - py, cz - pz, sx - qx, sy - qy, sz - qz)
        for n in range(1, lanes):
            j = base + ((k + n) & (lanes - 1))
            bx, by, bz = slope(
                weight[j], positions[0, j] - px, positions[1, j] - py, positions[2, j] - pz,
                shifts[0, j] - qx, shifts[1, j] - qy, shifts[2, j] - qz,
            )  # fmt: skip
            ax, ay, az = ax + bx, ay + by, az + bz
        forces[0, row], forces[1, row], forces[2, row] = own * ax, own * ay, own * az
        sync()
        for j in range(lanes - 1, k - 1, -1):
            ax += per_before * forces[0, base + j]
            ay += per_before * forces[1, base + j]
            az += per_before * forces[2, base + j]
        bx, by, bz = slope(of_inner, x, y, z, dx, dy, dz)
        return dvx + h * (ax + bx), dvy + h * (ay + by), dvz + h * (az + bz)

    @compute.exact_function
    def slope(m, x, y, z, dx, dy, dz):
        """The derivative of m d/|d|³ along a change of d."""
        u = compute.rsqrt(x * x + y * y + z * z)
        f, along = m * (u * u * u), 3.0 * (x * dx + y * dy + z * dz) * (u * u)
        return f * (dx - along * x), f * (dy - along * y), f * (dz - along * z)

    @compute.exact_function
    def add_growth(change, lane, h, numbers, counts, shared):
        """Take in a step; returns the vector, scaled if it is long. ``numbers`` is (S, 5)."""
        dx, dy, dz, dvx, dvy, dvz = change
        base, row, k, planet, s = lane
        sizes, scales, g = shared
        sizes[0, row] = dx * dx + dy * dy + dz * dz + dvx * dvx + dvy * dvy + dvz * dvz if planet else 0.0
        sync()
        if k == 0:
            size2 = 0.0
            for j in range(lanes):
                size2 += sizes[0, base + j]
            scales[g] = 1.0
            if counts:
                scales[g] = grow(size2, h, numbers[s])
        sync()
        scale = scales[g]
        return dx * scale, dy * scale, dz * scale, dvx * scale, dvy * scale, dvz * scale

    @compute.kernel("gpu", **bound)
    def move(X, V, ends, mass, moves, repeat, is_step, critical, systems, tangents, fields):
        """Make all moves ``repeat`` times. See :class:`DeviceMaps` for the arrays; a row of ``moves`` is the length
        of a kick and of the drift after it. ``is_step`` 1: these are steps, which end where planets meet; 0: move all
        systems."""
        (end_X, end_V), (dX, dV, numbers_of), (status, made, closest) = ends, tangents, systems
        order, parameters, G, origin, dt, per_c2 = fields
        rows = cuda.shared.array((7, groups * bodies if in_fields else 1), np.float64)
        weighted = cuda.shared.array((3, numbers), np.float64)
        positions = cuda.shared.array((4, numbers), np.float64)
        forces = cuda.shared.array((3, numbers), np.float64)
        weight = cuda.shared.array(numbers, np.float64)
        shifts = cuda.shared.array((3, numbers if varied else 1), np.float64)
        scales = cuda.shared.array(groups, np.float64)
        flag = cuda.shared.array(groups, np.int64)
        t = cuda.threadIdx.x
        g, k = t // lanes, t % lanes
        s = cuda.blockIdx.x * groups + g
        base = g * row_length
        row, here = base + k, s * bodies + k + 1
        inside, planet = s < mass.shape[0], s < mass.shape[0] and k < planets
        x, y, z, vx, vy, vz, star, own, before = 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0
        if inside:
            star = before = mass[s, 0]
            for j in range(1, bodies):
                if j <= k:
                    before += mass[s, j]
        if planet:
            own = mass[s, k + 1]
            x, y, z = X[here, 0], X[here, 1], X[here, 2]
            vx, vy, vz = V[here, 0], V[here, 1], V[here, 2]
        change = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        if varied and planet:
            change = dX[here, 0], dX[here, 1], dX[here, 2], dV[here, 0], dV[here, 1], dV[here, 2]
        inner = before + own
        fraction, per_before = own / inner, 1.0 / before
        centre, time, begun, first = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 0.0, 0, g * bodies
        place, place_of_star = first, first
        if in_fields and inside:
            top = s * bodies
            centre = (
                X[top, 0], X[top, 1], X[top, 2], V[top, 0], V[top, 1], V[top, 2],
            )  # fmt: skip
            place, place_of_star = first + order[s, min(k + 1, planets)], first + order[s, 0]
            begun, time = made[s], origin + (made[s] + 0.5) * dt
        lane_of_fields = (base, row, k, fraction), (own, before, star), (place, place_of_star, first, planet)
        given, shared = (parameters, G), (weighted, forces, rows)
        of_star = star if k > 0 else 0.0  # all of its force on planet 1 is Kepler motion
        of_inner = inner if k > 0 else 0.0
        limit = critical * star
        alive = inside and (is_step == 0 or status[s] == DONE)
        if k == 0:
            flag[g] = 0
        weight[row] = own
        r2 = x * x + y * y + z * z
        distance = r2 * compute.rsqrt(r2)
        least, count = FAR * FAR, 0
        sync()
        for _ in range(repeat):
            for q in range(moves.shape[0]):
                h = moves[q, 0]
                if in_fields and is_step == 1:
                    time = origin + (begun + count + 0.5) * dt
                wx, wy, wz, ahead, kx, ky, kz, middle = vx, vy, vz, change, x, y, z, centre
                if h != 0.0:
                    if midpoint:
                        at = kick_by_fields(
                            (kx, ky, kz, wx, wy, wz), middle, lane_of_fields, 0.5 * h, time, given, shared
                        )
                        wx, wy, wz, middle = at[0], at[1], at[2], (middle[0], middle[1], middle[2], at[3], at[4], at[5])
                    if relativity:
                        if varied:
                            ahead = shift_tangent(ahead, wx, wy, wz, h * per_c2)
                        rate = h * per_c2 * (wx * wx + wy * wy + wz * wz)
                        kx, ky, kz = kx - rate * wx, ky - rate * wy, kz - rate * wz
                    weighted[0, row], weighted[1, row], weighted[2, row] = fraction * kx, fraction * ky, fraction * kz
                    sync()
                    cx, cy, cz, px, py, pz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
                    for j in range(lanes - 1, -1, -1):
                        cx -= weighted[0, base + j]
                        cy -= weighted[1, base + j]
                        cz -= weighted[2, base + j]
                        if j == k:  # the centre of mass of the bodies before this planet
                            px, py, pz = kx + cx, ky + cy, kz + cz
                    if not planet:
                        px = FAR * (k + 1)
                    positions[0, row], positions[1, row], positions[2, row], positions[3, row] = px, py, pz, distance
                    sync()
                    at = kx, ky, kz, px, py, pz, cx, cy, cz
                    dx, dy, dz = cx - px, cy - py, cz - pz
                    r2 = dx * dx + dy * dy + dz * dz
                    nearest = r2
                    u = compute.rsqrt(r2)
                    f = of_star * (u * u * u)
                    ax, ay, az = f * dx, f * dy, f * dz
                    met = False
                    for n in range(1, lanes):
                        j = base + ((k + n) & (lanes - 1))
                        dx, dy, dz = positions[0, j] - px, positions[1, j] - py, positions[2, j] - pz
                        r2 = dx * dx + dy * dy + dz * dz
                        nearest = min(nearest, r2)
                        u = compute.rsqrt(r2)
                        f = u * u * u
                        other, both = weight[j], distance + positions[3, j]
                        met = met or (own + other) * f * (both * both * both) > limit
                        f *= other
                        ax += f * dx
                        ay += f * dy
                        az += f * dz
                    if alive:  # not where a system stays after its end
                        least = min(least, nearest)
                    forces[0, row], forces[1, row], forces[2, row] = own * ax, own * ay, own * az
                    if met and planet and alive and is_step == 1:
                        flag[g] = ENCOUNTER
                    sync()
                    cx, cy, cz = 0.0, 0.0, 0.0
                    for j in range(lanes - 1, -1, -1):
                        if j >= k:
                            cx += forces[0, base + j]
                            cy += forces[1, base + j]
                            cz += forces[2, base + j]
                    u = compute.rsqrt(kx * kx + ky * ky + kz * kz)
                    f = of_inner * (u * u * u)
                    wx += h * (ax + cx * per_before + f * kx)
                    wy += h * (ay + cy * per_before + f * ky)
                    wz += h * (az + cz * per_before + f * kz)
                    if varied:
                        lane = base, row, k, planet, fraction, own, of_star, of_inner, per_before
                        kicked = kick_tangent(ahead, at, lane, h, (weighted, positions, shifts, forces, weight))
                        ahead = ahead[0], ahead[1], ahead[2], kicked[0], kicked[1], kicked[2]
                    if relativity:
                        rate = 2.0 * h * per_c2 * (inner * u * u) ** 2
                        if varied:
                            dx, dy, dz = ahead[0], ahead[1], ahead[2]
                            f = 4.0 * (kx * dx + ky * dy + kz * dz) * (u * u)
                            ahead = (
                                dx, dy, dz, ahead[3] - rate * (dx - f * kx), ahead[4] - rate * (dy - f * ky),
                                ahead[5] - rate * (dz - f * kz),
                            )  # fmt: skip
                        wx, wy, wz = wx - rate * kx, wy - rate * ky, wz - rate * kz
                        if varied:
                            ahead = shift_tangent(ahead, wx, wy, wz, h * per_c2)
                        rate = h * per_c2 * (wx * wx + wy * wy + wz * wz)
                        kx, ky, kz = kx - rate * wx, ky - rate * wy, kz - rate * wz
                    if in_fields:
                        part = 0.5 * h if midpoint else h
                        kicked = kick_by_fields(
                            (kx, ky, kz, wx, wy, wz), middle, lane_of_fields, part, time, given, shared
                        )
                        wx, wy, wz = kicked[0], kicked[1], kicked[2]
                        middle = middle[0], middle[1], middle[2], kicked[3], kicked[4], kicked[5]
                h = moves[q, 1]
                rate, stretched = 3.0 * h * per_c2, h
                if relativity:
                    stretched += rate * (
                        0.5 * (wx * wx + wy * wy + wz * wz) - inner * compute.rsqrt(kx * kx + ky * ky + kz * kz)
                    )
                solution = solve(kx, ky, kz, wx, wy, wz, inner, stretched)
                if varied:
                    ahead = tangent((kx, ky, kz, wx, wy, wz), ahead, inner, stretched, rate, solution)
                nx, ny, nz, wx, wy, wz, r = moved(kx, ky, kz, wx, wy, wz, inner, solution)
                if alive and planet:
                    if 0.0 * (nx + ny + nz + wx + wy + wz) == 0.0:
                        x, y, z, vx, vy, vz, distance = nx, ny, nz, wx, wy, wz, r
                    else:  # it stays where it was, and so does its system from now on
                        flag[g] = NOT_FINITE
                sync()
                counts = alive and flag[g] != NOT_FINITE
                if counts:
                    count += 1
                    mx, my, mz, vX, vY, vZ = middle
                    centre = mx + h * vX, my + h * vY, mz + h * vZ, vX, vY, vZ
                time += h
                if varied:
                    ahead = add_growth(
                        ahead, (base, row, k, planet, s), h, numbers_of, counts and is_step == 1, (forces, scales, g)
                    )
                if varied and counts:
                    change = ahead
                if flag[g] != DONE:
                    alive = False
        if planet:
            end_X[here, 0], end_X[here, 1], end_X[here, 2] = x, y, z
            end_V[here, 0], end_V[here, 1], end_V[here, 2] = vx, vy, vz
            if varied and is_step == 1:
                dX[here, 0], dX[here, 1], dX[here, 2] = change[0], change[1], change[2]
                dV[here, 0], dV[here, 1], dV[here, 2] = change[3], change[4], change[5]
        weighted[0, row] = least if planet else FAR * FAR
        sync()
        if k == 0 and inside:
            if in_fields:
                here = s * bodies
                end_X[here, 0], end_X[here, 1], end_X[here, 2] = centre[0], centre[1], centre[2]
                end_V[here, 0], end_V[here, 1], end_V[here, 2] = centre[3], centre[4], centre[5]
            else:
                move_centre(X, V, end_X, end_V, moves, s * bodies, count)
            if is_step == 1 and count + flag[g] > 0:
                for j in range(lanes):
                    least = min(least, weighted[0, base + j])
                made[s] += count
                closest[s] = min(closest[s], math.sqrt(least))
                if flag[g] != DONE:
                    status[s] = flag[g]

    @compute.kernel("gpu")
    def present(X, V, mass, order, per_c2, body, velocity):
        """Positions and velocities, in the layout of a :class:`~nbody.state.device.DeviceState`, of Jacobi coordinates;
        with relativity V are momenta per mass (:func:`.jacobi_map.to_velocities`)."""
        s = cuda.grid(1)
        if s < mass.shape[0]:
            inner = mass[s, 0]
            for i in range(1, bodies if relativity else 1):
                here, factor, r2, p2 = s * bodies + i, 1.0, 0.0, 0.0
                inner += mass[s, i]
                for c in range(3):
                    r2, p2 = r2 + X[here, c] ** 2, p2 + V[here, c] ** 2
                for _ in range(4):
                    factor = 1.0 / (1.0 + per_c2 * (0.5 * p2 * factor * factor + 3.0 * inner / math.sqrt(r2)))
                for c in range(3):
                    V[here, c] *= factor
            for c in range(3):
                total = 0.0
                for i in range(bodies):
                    total += mass[s, i]
                x, v = X[s * bodies, c], V[s * bodies, c]
                for i in range(bodies - 1, 0, -1):
                    here, to = s * bodies + i, s * bodies + order[s, i]
                    x -= mass[s, i] / total * X[here, c]
                    v -= mass[s, i] / total * V[here, c]
                    total -= mass[s, i]
                    body[to, c], velocity[to, c] = x + X[here, c], v + V[here, c]
                to = s * bodies + order[s, 0]
                body[to, c], velocity[to, c] = x, v

    return MapKernels(move, present)


class DeviceMaps:
    """:class:`.wisdom_holman.Maps` of systems whose state is on the GPU."""

    def __init__(self, asked: MapsAsked) -> None:
        if (asked.chosen.coordinates, asked.chosen.splitting) != ("jacobi", "wh"):
            raise InputError("integrator: on a GPU a map has coordinates jacobi and splitting wh; choose engine cpu")
        state: Any = asked.motion.state
        mass, tangents, self._asked, self._state = asked.mass, asked.tangents, asked, state
        self._tangents, self._systems = tangents, len(mass)
        lanes = lanes_for(mass.shape[1] - 1)
        self._threads = max(THREADS, lanes)
        self._groups = self._threads // lanes
        self._mass, self._order = cuda.to_device(mass), cuda.to_device(asked.order)
        fields, terms = map_fields(asked.motion, asked.order, mass), terms_of(asked.motion)
        self._per_c2, parameters = per_c2(asked.motion), np.zeros((1, 1)) if fields is None else fields.parameters
        of_fields = asked.motion.engine.gravity.G, state.clock.origin, asked.dt, self._per_c2
        self._fields = self._order, cuda.to_device(parameters), *map(np.float64, of_fields)
        resident = RESIDENT_VARIED if tangents.count or terms else RESIDENT
        self._kernels = kernels_for(
            mass.shape[1], self._threads, resident, bool(tangents.count), terms, self._per_c2 > 0
        )
        moves, hill = asked.chosen.moves(asked.dt, asked.motion), asked.chosen.encounter
        self._critical = 24.0 / hill**3 if hill else math.inf  # of (m + m')/m_star (d + d')³/r³
        self._step, self._to_present = map(cuda.to_device, (moves.step, merged(moves.present)))
        ends = (cuda.device_array(state.map_position.shape, np.float64) for _ in range(2))
        self._ends = next(ends), next(ends)

    def begin(self, x: np.ndarray, v: np.ndarray) -> None:
        own, state = self._tangents, self._state
        vectors = np.empty((len(x), own.count, 2, *x.shape[1:]))
        for column, found in zip(self._columns(), coordinates(x, v, self._asked, vectors), strict=True):
            column.copy_to_device(np.ascontiguousarray(found.transpose(0, 2, 1).reshape(-1, 3)))
        for c, name in enumerate(COLUMNS if own.count else ()):
            rows = vectors[:, 0, c].transpose(0, 2, 1).reshape(-1, 3)
            state.column(name).copy_to_device(np.ascontiguousarray(rows))

    def advance(self, steps: int, made: np.ndarray, status: np.ndarray, closest: np.ndarray) -> None:
        state = self._state
        numbers = [cuda.to_device(each) for each in (status, made, closest)]
        X, V = self._columns()
        tangents, own = (X, V, X), self._tangents
        if own.count:
            tangents = state.column(COLUMNS[0]), state.column(COLUMNS[1]), cuda.to_device(own.numbers[:, 0])
        self._move((X, V), self._step, steps, 1, numbers, tangents)
        self._move(self._ends, self._to_present, 1, 0, numbers, tangents)
        self._kernels.present[-(-self._systems // THREADS), THREADS, state.stream](
            *self._ends, self._mass, self._order, self._per_c2, state.body, state.velocity
        )
        state.stream.synchronize()
        for host, device in zip((status, made, closest), numbers, strict=True):
            device.copy_to_host(host)
        if own.count:
            own.numbers[:, 0] = tangents[2].copy_to_host()

    def _columns(self) -> tuple[Any, Any]:
        return self._state.map_position, self._state.map_velocity

    def _move(self, ends, moves, repeat: int, is_step: int, numbers, tangents) -> None:
        self._kernels.move[-(-self._systems // self._groups), self._threads, self._state.stream](
            *self._columns(),
            ends,
            self._mass,
            moves,
            repeat,
            is_step,
            self._critical,
            tuple(numbers),
            tangents,
            self._fields,
        )


def merged(moves: np.ndarray) -> np.ndarray:
    """Moves of a map without kicks over no time, but the first one: drifts that follow each other are one."""
    found = [moves[0].copy()]
    for move in moves[1:]:
        if move[0]:
            found.append(move.copy())
        else:
            found[-1][1] += move[1]
    return np.array(found)
