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
from nbody.fields.field import Term
from nbody.forces.layers.fields import fields_of
from nbody.integrators.few_bodies import per_c2
from nbody.integrators.solvers import jacobi
from nbody.integrators.solvers.systems.cpu_map import coordinates
from nbody.integrators.solvers.systems.gpu_lanes import FAR, Lane, Shared, lane_functions
from nbody.integrators.solvers.systems.scheme import DONE, NOT_FINITE, MapsAsked
from nbody.integrators.tangents import COLUMNS

THREADS = 8 if SIMULATED else 128
RESIDENT, RESIDENT_VARIED = 4, 2
"""Threads per block, and how many blocks fit on a multiprocessor at a time: at most 128 registers per thread, with tangent
vectors 255."""


class MapKernels(NamedTuple):
    """The compiled kernels for systems of a number of bodies."""

    move: Any
    present: Any


def lanes_for(planets: int) -> int:
    """The lanes of a system: a power of two, at most a warp."""
    return 1 << (planets - 1).bit_length()


@compute.exact_function
def _read_row(x, v, i):
    return x[i, 0], x[i, 1], x[i, 2], v[i, 0], v[i, 1], v[i, 2]


@compute.exact_function
def _write_row(x, v, i, row):
    x[i, 0], x[i, 1], x[i, 2], v[i, 0], v[i, 1], v[i, 2] = row


@compute.exact_function
def move_centre(X, V, end_X, end_V, moves, here, count):
    """Move the centre of mass of a system, move by move: the bits are those of any division into launches."""
    for c in range(3):
        middle, v = X[here, c], V[here, c]
        for q in range(count):
            middle += moves[q % moves.shape[0], 1] * v
        end_X[here, c], end_V[here, c] = middle, v


@cache
def kernels_for(
    bodies: int, threads: int = THREADS, resident: int = RESIDENT, varied: bool = False,
    terms: tuple[Term, ...] = (), relativity: bool = False,
) -> MapKernels:  # fmt: skip
    """The kernels; ``resident``: the number of blocks that must fit on a multiprocessor at a time (0: no limit of
    registers); ``varied``: with a tangent vector of each system; ``terms``: of external fields;
    ``relativity``: with the 1PN term of the star."""
    planets, lanes = bodies - 1, lanes_for(bodies - 1)
    groups, row_length = threads // lanes, lanes + 1  # rows of one number more: fewer bank conflicts
    numbers, of_bodies = groups * row_length, groups * bodies if terms else 1
    bound = {} if SIMULATED or not resident else {"launch_bounds": (threads, resident)}
    in_fields, midpoint = bool(terms), any(term.moving for term in terms)
    from_map, velocity_of_momentum = map(compute.exact_function, (jacobi.from_map, jacobi.velocity_of_momentum))
    shift, kick, kick_by_fields, drift, add_growth = lane_functions(lanes, bodies, varied, terms, relativity)

    @compute.exact_function
    def lane_of(t, block, mass, order, critical, per_c2):
        """The lane of thread t of a block."""
        g, k = t // lanes, t % lanes
        s, base, first = block * groups + g, g * row_length, g * bodies
        star, own, before, place, star_place = 1.0, 0.0, 1.0, first, first
        if s < mass.shape[0]:
            star = before = mass[s, 0]
            for j in range(1, bodies):
                if j <= k:
                    before += mass[s, j]
            place, star_place = first + order[s, min(k + 1, planets)], first + order[s, 0]
        planet = s < mass.shape[0] and k < planets
        if planet:
            own = mass[s, k + 1]
        inner = before + own
        of_star, of_inner = star if k > 0 else 0.0, inner if k > 0 else 0.0
        return Lane(
            s, k, planet, g, base, base + k, own, before, star, inner, own / inner, 1.0 / before, of_star, of_inner,
            critical * star, per_c2, first, place, star_place,
        )  # fmt: skip

    @compute.kernel("gpu", **bound)
    def move(X, V, ends, mass, moves, repeat, is_step, critical, systems, tangents, fields):
        """Make all moves ``repeat`` times, from Jacobi coordinates X and velocities V, (S n, 3), to those of ``ends``, which
        may be the same. A row of ``moves`` is the length of a kick and of the drift after it; ``mass``, (S, n), is times G;
        ``systems`` are what ends each, its steps and its least distance, (S,). ``is_step`` 1: these are steps, which end
        where planets meet; 0: move all systems."""
        (end_X, end_V), (dX, dV, numbers_of), (status, made, closest) = ends, tangents, systems
        order, parameters, G, origin, dt, per_c2 = fields
        rows = cuda.shared.array((7, of_bodies), np.float64)
        weighted = cuda.shared.array((3, numbers), np.float64)
        positions = cuda.shared.array((4, numbers), np.float64)
        forces = cuda.shared.array((3, numbers), np.float64)
        weight = cuda.shared.array(numbers, np.float64)
        shifts = cuda.shared.array((3, numbers if varied else 1), np.float64)
        scales = cuda.shared.array(groups, np.float64)
        flag = cuda.shared.array(groups, np.int64)
        shared = Shared(weighted, positions, weight, forces, shifts, rows, scales, flag)
        lane = lane_of(cuda.threadIdx.x, cuda.blockIdx.x, mass, order, critical, per_c2)
        s, k, g, row, planet, given = lane.s, lane.k, lane.g, lane.row, lane.planet, (parameters, G)
        inside, star, here = s < mass.shape[0], s * bodies, s * bodies + k + 1
        change = centre = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        at, time, begun = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0), 0.0, 0
        if planet:
            at = _read_row(X, V, here)
        if varied and planet:
            change = _read_row(dX, dV, here)
        if in_fields and inside:
            centre = _read_row(X, V, star)
            begun, time = made[s], origin + (made[s] + 0.5) * dt
        alive = inside and (is_step == 0 or status[s] == DONE)
        if k == 0:
            flag[g] = DONE
        weight[row] = lane.own
        r2 = at[0] * at[0] + at[1] * at[1] + at[2] * at[2]
        distance, least, count = r2 * compute.rsqrt(r2), FAR * FAR, 0
        compute.sync_warp()
        for _ in range(repeat):
            for q in range(moves.shape[0]):
                h = moves[q, 0]
                if in_fields and is_step == 1:
                    time = origin + (begun + count + 0.5) * dt
                new, ahead, middle = at, change, centre
                if h != 0.0:
                    if midpoint:
                        new, middle = kick_by_fields(new, middle, lane, 0.5 * h, time, given, shared)
                    if relativity:
                        new, ahead = shift(new, ahead, h * per_c2)
                    new, ahead, least = kick(new, ahead, (distance, least), lane, h, alive, is_step, shared)
                    if relativity:
                        new, ahead = shift(new, ahead, h * per_c2)
                    if in_fields:
                        part = 0.5 * h if midpoint else h
                        new, middle = kick_by_fields(new, middle, lane, part, time, given, shared)
                h = moves[q, 1]
                new, ahead, r = drift(new, ahead, h, lane)
                if alive and planet:
                    if 0.0 * (new[0] + new[1] + new[2] + new[3] + new[4] + new[5]) == 0.0:
                        at, distance = new, r
                    else:  # it stays where it was, and so does its system from now on
                        flag[g] = NOT_FINITE
                compute.sync_warp()
                counts = alive and flag[g] != NOT_FINITE
                if counts:
                    count += 1
                    x, y, z, vx, vy, vz = middle
                    centre = x + h * vx, y + h * vy, z + h * vz, vx, vy, vz
                time += h
                if varied:
                    ahead = add_growth(ahead, lane, h, numbers_of, counts and is_step == 1, shared)
                if varied and counts:
                    change = ahead
                if flag[g] != DONE:
                    alive = False
        if planet:
            _write_row(end_X, end_V, here, at)
            if varied and is_step == 1:
                _write_row(dX, dV, here, change)
        weighted[0, row] = least if planet else FAR * FAR
        compute.sync_warp()
        if k == 0 and inside:
            if in_fields:
                _write_row(end_X, end_V, star, centre)
            else:
                move_centre(X, V, end_X, end_V, moves, star, count)
            if is_step == 1 and count + flag[g] > 0:
                for j in range(lanes):
                    least = min(least, weighted[0, lane.base + j])
                made[s] += count
                closest[s] = min(closest[s], math.sqrt(least))
                status[s] = flag[g]

    @compute.kernel("gpu")
    def present(X, V, mass, order, per_c2, body, velocity):
        """Positions and velocities, in the layout of a :class:`~nbody.state.device.DeviceState`, of Jacobi coordinates;
        with relativity V are momenta per mass. X and V are overwritten."""
        s = cuda.grid(1)
        if s < mass.shape[0]:
            first, m, inner = s * bodies, mass[s], mass[s, 0]
            x, v = X[first : first + bodies].T, V[first : first + bodies].T
            for i in range(1, bodies if relativity else 1):
                inner += m[i]
                r2, p2 = x[0, i] ** 2 + x[1, i] ** 2 + x[2, i] ** 2, v[0, i] ** 2 + v[1, i] ** 2 + v[2, i] ** 2
                factor = velocity_of_momentum(math.sqrt(r2), p2, inner, per_c2)
                for c in range(3):
                    v[c, i] *= factor
            from_map(x, m, False, False, x)
            from_map(v, m, False, True, v)
            for i in range(bodies):
                to = first + order[s, i]
                for c in range(3):
                    body[to, c], velocity[to, c] = x[c, i], v[c, i]

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
        fields, self._per_c2 = fields_of(asked.motion.engine), per_c2(asked.motion)
        terms: tuple[Term, ...] = fields.terms if fields is not None else ()
        parameters = fields.parameters if fields is not None and terms else np.zeros((1, 1))
        of_fields = asked.motion.engine.gravity.G, state.clock.origin, asked.dt, self._per_c2
        self._fields = self._order, cuda.to_device(parameters), *map(np.float64, of_fields)
        resident = RESIDENT_VARIED if tangents.count or terms else RESIDENT
        kind = bool(tangents.count), terms, self._per_c2 > 0
        self._kernels = kernels_for(mass.shape[1], self._threads, resident, *kind)
        moves, hill = asked.chosen.moves(asked.dt, asked.motion), asked.chosen.encounter
        self._critical = 24.0 / hill**3 if hill else math.inf  # of (m + m')/m_star (d + d')³/r³
        self._step, self._to_present = map(cuda.to_device, (moves.step, merged(moves.present)))
        self._ends = tuple(cuda.device_array(state.map_position.shape, np.float64) for _ in range(2))

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
            *self._columns(), ends, self._mass, moves, repeat, is_step, self._critical, tuple(numbers), tangents,
            self._fields,
        )  # fmt: skip


def merged(moves: np.ndarray) -> np.ndarray:
    """Moves of a map without kicks over no time, but the first one: drifts that follow each other are one."""
    found = [moves[0].copy()]
    for move in moves[1:]:
        if move[0]:
            found.append(move.copy())
        else:
            found[-1][1] += move[1]
    return np.array(found)
