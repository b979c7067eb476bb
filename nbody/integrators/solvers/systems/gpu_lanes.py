"""The moves of Wisdom and Holman's map of one planet by a lane of a warp on a GPU, in float64, for :mod:`.gpu_map`.

The planet's Jacobi coordinates and velocities are six numbers in registers, and so is its tangent vector, the ``change``.
All lanes of a system make each move together: they exchange positions and forces through shared memory.
"""

from collections import namedtuple
from collections.abc import Callable
from functools import cache
from typing import Any

from nbody import compute
from nbody.fields.compiled import summed
from nbody.fields.field import Term
from nbody.integrators.solvers.kepler import KeplerFunctions, kepler_functions
from nbody.integrators.solvers.megno import growing
from nbody.integrators.solvers.systems.scheme import ENCOUNTER

SMALL, CONVERGED = 0.5, 3e-8
"""How far Stumpff's series is used, and the change of the root at which Newton's iteration ends
(:func:`nbody.integrators.solvers.kepler.kepler_functions`): as large as the accuracy allows, for speed."""

FAR = 1e30
"""The position of lanes without a planet: far from all planets."""

Lane = namedtuple(
    "Lane",
    "s k planet g base row own before star inner fraction per_before of_star of_inner limit per_c2 first place star_place",
)
"""What a lane knows of its planet, in registers: the system, and which of its planets; ``planet`` is False if it has only k
or fewer; the system's number in the block, and the columns of its first lane and of this one in shared memory; G times the
masses of the planet, of all bodies before it, and of the star; own + before, own/inner, 1/before; the masses of the star and
of ``inner``, or 0 for planet 1, of which all of the star's force is Kepler motion; the limit of (m + m') (d + d')³/r³ of two
planets with distances d from the star; 1/c² of relativity; and the columns of the system's first body, the planet and the
star in the rows for fields."""

Shared = namedtuple("Shared", "weighted positions weight forces shifts rows scales flag")
"""Arrays in shared memory. A column per lane: coordinates times masses; positions, and distances from the star; masses;
forces; positions of tangent vectors. A column per body: position, velocity and mass, for fields. A number per system: the
factor of tangent vectors, and what ends it."""


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


@compute.exact_function
def slope(m, x, y, z, dx, dy, dz):
    """The derivative of m d/|d|³ along a change of d."""
    u = compute.rsqrt(x * x + y * y + z * z)
    f, along = m * (u * u * u), 3.0 * (x * dx + y * dy + z * dz) * (u * u)
    return f * (dx - along * x), f * (dy - along * y), f * (dz - along * z)


def lane_functions(lanes: int, bodies: int, varied: bool, terms: tuple[Term, ...], relativity: bool) -> tuple[Any, ...]:
    """The device functions of the moves; the arguments after ``lanes`` are those of :func:`.gpu_map.kernels_for`."""
    kepler, grow = kepler_on_gpu(), growing(compute.exact_function)
    solve, moved, tangent = kepler.solve, kepler.moved, kepler.tangent

    @compute.exact_function
    def inertial(x, y, z, lane, weighted):
        """A planet's coordinates, and the star's, relative to the centre of mass of all, from those of Jacobi. Lanes may
        read ``weighted`` until the next barrier."""
        base, row, fraction = lane.base, lane.row, lane.fraction
        weighted[0, row], weighted[1, row], weighted[2, row] = fraction * x, fraction * y, fraction * z
        compute.sync_warp()
        cx, cy, cz, px, py, pz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(lanes - 1, -1, -1):
            cx, cy, cz = cx - weighted[0, base + j], cy - weighted[1, base + j], cz - weighted[2, base + j]
            if j == lane.k:  # the centre of mass of the bodies before this planet
                px, py, pz = x + cx, y + cy, z + cz
        return px, py, pz, cx, cy, cz

    @compute.exact_function
    def shift(at, change, rate):
        """Positions after relativity's term -v⁴/(2c²) for a time ``rate`` c²."""
        x, y, z, vx, vy, vz = at
        v2 = vx * vx + vy * vy + vz * vz
        if varied:
            dx, dy, dz, dvx, dvy, dvz = change
            along = 2.0 * (vx * dvx + vy * dvy + vz * dvz)
            dx, dy = dx - rate * (v2 * dvx + along * vx), dy - rate * (v2 * dvy + along * vy)
            change = dx, dy, dz - rate * (v2 * dvz + along * vz), dvx, dvy, dvz
        rate *= v2
        return (x - rate * vx, y - rate * vy, z - rate * vz, vx, vy, vz), change

    @compute.exact_function
    def attracted(site, lane, distance, shared):
        """The acceleration of a planet by the star and the others, the square of the least distance, and True if two
        planets are too close."""
        (px, py, pz, cx, cy, cz), positions = site, shared.positions
        dx, dy, dz = cx - px, cy - py, cz - pz
        nearest = dx * dx + dy * dy + dz * dz
        u = compute.rsqrt(nearest)
        f = lane.of_star * (u * u * u)
        ax, ay, az, met = f * dx, f * dy, f * dz, False
        for n in range(1, lanes):
            j = lane.base + ((lane.k + n) & (lanes - 1))
            dx, dy, dz = positions[0, j] - px, positions[1, j] - py, positions[2, j] - pz
            r2 = dx * dx + dy * dy + dz * dz
            nearest = min(nearest, r2)
            u = compute.rsqrt(r2)
            f = u * u * u
            other, both = shared.weight[j], distance + positions[3, j]
            near = (lane.own + other) * f * (both * both * both)
            met = met or near > lane.limit
            f *= other
            ax, ay, az = ax + f * dx, ay + f * dy, az + f * dz
        return ax, ay, az, nearest, met

    @compute.exact_function
    def kick(at, change, near, lane, h, alive, is_step, shared):
        """After a kick by all forces but those of the Kepler motion, with the square of the least distance in an ``alive``
        system so far; ``near``: the distance from the star, and that square. An encounter ends the system."""
        (x, y, z, vx, vy, vz), (distance, least), base, row, own = at, near, lane.base, lane.row, lane.own
        positions, forces = shared.positions, shared.forces
        px, py, pz, cx, cy, cz = inertial(x, y, z, lane, shared.weighted)
        if not lane.planet:
            px = FAR * (lane.k + 1)
        positions[0, row], positions[1, row], positions[2, row], positions[3, row] = px, py, pz, distance
        compute.sync_warp()
        site = px, py, pz, cx, cy, cz
        ax, ay, az, nearest, met = attracted(site, lane, distance, shared)
        if alive:  # not where a system stays after its end
            least = min(least, nearest)
        forces[0, row], forces[1, row], forces[2, row] = own * ax, own * ay, own * az
        if met and lane.planet and alive and is_step == 1:
            shared.flag[lane.g] = ENCOUNTER
        compute.sync_warp()
        cx, cy, cz = 0.0, 0.0, 0.0
        for j in range(lanes - 1, -1, -1):
            if j >= lane.k:
                cx, cy, cz = cx + forces[0, base + j], cy + forces[1, base + j], cz + forces[2, base + j]
        u = compute.rsqrt(x * x + y * y + z * z)
        f = lane.of_inner * (u * u * u)
        vx += h * (ax + cx * lane.per_before + f * x)
        vy += h * (ay + cy * lane.per_before + f * y)
        vz += h * (az + cz * lane.per_before + f * z)
        if varied:
            change = kick_tangent(change, at, site, lane, h, shared)
        if relativity:
            rate = 2.0 * h * lane.per_c2 * (lane.inner * u * u) ** 2
            if varied:
                dx, dy, dz, dvx, dvy, dvz = change
                f = 4.0 * (x * dx + y * dy + z * dz) * (u * u)
                change = dx, dy, dz, dvx - rate * (dx - f * x), dvy - rate * (dy - f * y), dvz - rate * (dz - f * z)
            vx, vy, vz = vx - rate * x, vy - rate * y, vz - rate * z
        return (x, y, z, vx, vy, vz), change, least

    @compute.exact_function
    def kick_tangent(change, at, site, lane, h, shared):
        """The tangent vector after a kick: the derivative of :func:`kick`."""
        (dx, dy, dz, dvx, dvy, dvz), (px, py, pz, cx, cy, cz) = change, site
        base, row, own, per_before = lane.base, lane.row, lane.own, lane.per_before
        positions, shifts, forces = shared.positions, shared.shifts, shared.forces
        qx, qy, qz, sx, sy, sz = inertial(dx, dy, dz, lane, shared.weighted)
        if not lane.planet:
            qx, qy, qz = 0.0, 0.0, 0.0
        shifts[0, row], shifts[1, row], shifts[2, row] = qx, qy, qz
        compute.sync_warp()
        ax, ay, az = slope(lane.of_star, cx - px, cy - py, cz - pz, sx - qx, sy - qy, sz - qz)
        for n in range(1, lanes):
            j = base + ((lane.k + n) & (lanes - 1))
            bx, by, bz = slope(
                shared.weight[j], positions[0, j] - px, positions[1, j] - py, positions[2, j] - pz,
                shifts[0, j] - qx, shifts[1, j] - qy, shifts[2, j] - qz,
            )  # fmt: skip
            ax, ay, az = ax + bx, ay + by, az + bz
        forces[0, row], forces[1, row], forces[2, row] = own * ax, own * ay, own * az
        compute.sync_warp()
        for j in range(lanes - 1, lane.k - 1, -1):
            ax, ay = ax + per_before * forces[0, base + j], ay + per_before * forces[1, base + j]
            az += per_before * forces[2, base + j]
        bx, by, bz = slope(lane.of_inner, at[0], at[1], at[2], dx, dy, dz)
        return dx, dy, dz, dvx + h * (ax + bx), dvy + h * (ay + by), dvz + h * (az + bz)

    @compute.exact_function
    def drift(at, change, h, lane):
        """After Kepler motion; and the distance from the star."""
        (x, y, z, vx, vy, vz), inner = at, lane.inner
        rate, stretched = 3.0 * h * lane.per_c2, h
        if relativity:
            stretched += rate * (0.5 * (vx * vx + vy * vy + vz * vz) - inner * compute.rsqrt(x * x + y * y + z * z))
        solution = solve(x, y, z, vx, vy, vz, inner, stretched)
        if varied:
            change = tangent(at, change, inner, stretched, rate, solution)
        x, y, z, vx, vy, vz, r = moved(x, y, z, vx, vy, vz, inner, solution)
        return (x, y, z, vx, vy, vz), change, r

    @compute.exact_function
    def add_growth(change, lane, h, numbers, counts, shared):
        """The change, scaled if it is long, after a step that perhaps ``counts`` in the ``numbers``, (S, 5)."""
        (dx, dy, dz, dvx, dvy, dvz), sizes, scales = change, shared.forces, shared.scales
        sizes[0, lane.row] = dx * dx + dy * dy + dz * dz + dvx * dvx + dvy * dvy + dvz * dvz if lane.planet else 0.0
        compute.sync_warp()
        if lane.k == 0:
            size2 = 0.0
            for j in range(lanes):
                size2 += sizes[0, lane.base + j]
            scales[lane.g] = grow(size2, h, numbers[lane.s]) if counts else 1.0
        compute.sync_warp()
        scale = scales[lane.g]
        return dx * scale, dy * scale, dz * scale, dvx * scale, dvy * scale, dvz * scale

    kick_by_fields = fields_kick(lanes, bodies, terms, inertial)
    return shift, kick, kick_by_fields, drift, add_growth


@compute.exact_function
def _read_body(bodies, i):
    rows, first = bodies
    i += first
    return rows[0, i], rows[1, i], rows[2, i], rows[3, i], rows[4, i], rows[5, i], rows[6, i]


@compute.exact_function
def _write_body(rows, i, x, y, z, vx, vy, vz, m):
    rows[0, i], rows[1, i], rows[2, i], rows[3, i], rows[4, i], rows[5, i], rows[6, i] = x, y, z, vx, vy, vz, m


def fields_kick(lanes: int, bodies: int, terms: tuple[Term, ...], inertial: Callable) -> Any:
    """The device function ``kick_by_fields``."""
    by_fields, midpoint = summed(terms, compute.exact_function, _read_body), any(term.moving for term in terms)

    @compute.exact_function
    def kick_by_fields(at, centre, lane, h, time, given, shared):
        """The planet and the centre of mass after a kick by fields; ``given``: their parameters and G."""
        (x, y, z, vx, vy, vz), (X, Y, Z, VX, VY, VZ), (parameters, G) = at, centre, given
        base, row, own, star, first = lane.base, lane.row, lane.own, lane.star, lane.first
        weighted, forces, rows = shared.weighted, shared.forces, shared.rows
        px, py, pz, cx, cy, cz = inertial(x, y, z, lane, weighted)
        compute.sync_warp()
        bx, by, bz, ux, uy, uz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for stage in range(2 if midpoint else 1):
            half = 0.5 * h * stage
            qx, qy, qz, sx, sy, sz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if midpoint:
                qx, qy, qz, sx, sy, sz = inertial(vx + half * bx, vy + half * by, vz + half * bz, lane, weighted)
                compute.sync_warp()
            MX, MY, MZ = VX + half * ux, VY + half * uy, VZ + half * uz
            if lane.planet:
                _write_body(rows, lane.place, X + px, Y + py, Z + pz, MX + qx, MY + qy, MZ + qz, own / G)
            if lane.k == 0:
                _write_body(rows, lane.star_place, X + cx, Y + cy, Z + cz, MX + sx, MY + sy, MZ + sz, star / G)
            compute.sync_warp()
            ax, ay, az, fx, fy, fz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            if lane.planet:
                ax, ay, az, _ = by_fields(lane.place - first, (rows, first), bodies, time, parameters)
                fx, fy, fz, _ = by_fields(lane.star_place - first, (rows, first), bodies, time, parameters)
            forces[0, row], forces[1, row], forces[2, row], weighted[0, row] = own * ax, own * ay, own * az, own
            compute.sync_warp()
            wx, wy, wz, total = star * fx, star * fy, star * fz, star
            ux, uy, uz = wx, wy, wz
            for j in range(base, base + lanes):
                ux, uy, uz, total = ux + forces[0, j], uy + forces[1, j], uz + forces[2, j], total + weighted[0, j]
                if j < row:
                    wx, wy, wz = wx + forces[0, j], wy + forces[1, j], wz + forces[2, j]
            bx, by, bz = ax - wx / lane.before, ay - wy / lane.before, az - wz / lane.before
            ux, uy, uz = ux / total, uy / total, uz / total
            compute.sync_warp()
        return (x, y, z, vx + h * bx, vy + h * by, vz + h * bz), (X, Y, Z, VX + h * ux, VY + h * uy, VZ + h * uz)

    return kick_by_fields
