"""The motion of bodies that meet during a step of :mod:`.hybrid`, on a GPU: one warp per group, by the text of
:mod:`.radau`; see :mod:`.encounters` for what it computes.

The groups of a step, and their members, are two lists of integers (:mod:`.groups`). Groups move at the same time, from the
bodies at the beginning of the Kepler part, which are kept in ``begin``, (2, N, 4): Q after half a jump, and V.
"""

import math
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import SIMULATED, cuda
from nbody.compute.in_kernels.reduction import add_row, block_reduction, keep_largest, keep_least
from nbody.integrators.adaptive import END, NEXT
from nbody.integrators.collisions.contact import beyond
from nbody.integrators.solvers.encounters import PARTS, TIDE
from nbody.integrators.solvers.pair_forces import FIXED, FREE, TEST_BODY, Attraction
from nbody.integrators.solvers.radau import ROWS, RadauStep, StepLimits, StepMemory, stepper_by
from nbody.integrators.solvers.radau_polynomial import StepThreads
from nbody.integrators.solvers.systems.gpu_lanes import kepler_on_gpu

LANES, MOST = (2, 2) if SIMULATED else (32, 32)
"""Threads of a group, which are a block, and the most members of one that moves in shared memory."""

NUMBERS = 3 * (MOST + 1)
"""Of those members and the star."""

START, COUNT, OWNER, MOVES_WITH_STAR = range(4)
"""The columns of a group. Groups without an owner are those of bodies with mass."""

NOTED, ENDS, FAILED = range(1, 4)
"""The columns of row 0 of groups after their number: what moving them has found, the numbers of steps in which bodies may
touch, of rows for their ends, and of groups whose steps become too short."""

NO_OWNER, COMET = -1, 2
"""The owner of groups that have none, and what a comet has in the column MOVES_WITH_STAR: no other body with mass does."""

STAR_THREADS = 2 if SIMULATED else 128
"""Threads of a body that is near the star."""

BEGIN, B, E, LOST, SCRATCH, MASSES, CLOCK, BEFORE, WORK = accumulate((2, 3, 7, 7, 2, ROWS, 1, 1, 2))
"""The rows of a group's memory after x and v, of 3 (K + 1) numbers each, and their number."""


class EncounterKernels(NamedTuple):
    """The kernels; ``lists`` are the groups, and the members with their kinds (:func:`.pair_forces.encounter`).

    Attributes:
        apart: V -= h a, where a is the acceleration by the other members of a group; by all bodies, of a comet.
        correct: correct the jump of bodies that move with the star. They have jumped as all others, by the momentum of all
            bodies; they ought to jump by the momentum of the others that move with the star.
        move: move groups of two to :data:`MOST` members for a time h: with ``with_star`` 0 those about the star at rest (the
            velocities of the bodies that move with the star become 0), with 1 those that move with it. Arguments:
            ``begin``; ``moving``, that is ``body``, ``velocity`` and ``next_step``; ``star``, its mass and G times it;
            ``sums``, the momenta of all bodies before the motion, and of those about the star at rest after it; and
            ``watching``, the radii, True if contacts are looked for, and an :class:`Outcome`.
        move_large: the same for groups of more members, in memory of the device.
        pass_star: move bodies that are alone near the star; comets in the tides of the planets.
    """

    apart: Any
    correct: Any
    move: Any
    move_large: Any
    pass_star: Any


class Outcome(NamedTuple):
    """The steps in which bodies may touch.

    Attributes:
        steps: (S, 2) the group, and its first row.
        times: (S, 2) the beginning and the end, in units of the step.
        ends: (R, 12) position and velocity of a member at the beginning, and at the end.
    """

    steps: Any
    times: Any
    ends: Any


def _over_lanes(combine: Any) -> Any:
    """The function ``(value, memory)``: what ``combine`` makes of the values of all threads."""
    reduce = block_reduction(LANES, combine)

    @compute.exact_function
    def combined(value, memory):
        compute.sync_threads()
        memory.shared[compute.lane()] = value
        reduce(memory.shared, compute.lane())
        return memory.shared[0]

    return combined


@compute.exact_function
def _flat(rows):
    return rows


@compute.exact_function
def _shaped(row, rows):
    return row


@compute.exact_function
def _accelerate(x, v, law, time, a):
    """:func:`.pair_forces.encounter`: the star 0, and planets."""
    m, kinds = law.m, law.more
    bodies = m.size
    for i in range(compute.lane(), bodies, LANES):
        ax, ay, az = 0.0, 0.0, 0.0
        for j in range(bodies if i > 0 or kinds[0] == FREE else 0):
            alike = kinds[i] == kinds[j] or kinds[i] == TEST_BODY or kinds[j] == TEST_BODY
            if j != i and (i == 0 or j == 0 or alike) and m[j] > 0.0:
                dx, dy, dz = x[j] - x[i], x[bodies + j] - x[bodies + i], x[2 * bodies + j] - x[2 * bodies + i]
                u = compute.rsqrt(dx * dx + dy * dy + dz * dz)
                f = m[j] * (u * u * u)
                ax, ay, az = ax + f * dx, ay + f * dy, az + f * dz
        a[i], a[bodies + i], a[2 * bodies + i] = ax, ay, az


@compute.exact_function
def _add_momentum(g, lists, body, velocity, momentum):
    """The momentum with that of the bodies with mass of a group."""
    groups, members = lists
    px, py, pz = momentum
    for k in range(groups[g, START], groups[g, START] + groups[g, COUNT]):
        i = members[k, 0]
        m = body[i, 3]
        px, py, pz = px + m * velocity[i, 0], py + m * velocity[i, 1], pz + m * velocity[i, 2]
    return px, py, pz


@compute.exact_function
def _with_star(lists, body, velocity):
    """The momentum of the bodies that move with the star."""
    groups, total = lists[0], (0.0, 0.0, 0.0)
    for g in range(1, groups[0, 0] + 1):
        if groups[g, MOVES_WITH_STAR] and groups[g, OWNER] == NO_OWNER:
            total = _add_momentum(g, lists, body, velocity, total)
    return total


@compute.exact_function
def _sum_of(sums, c):
    """Column c of the sums over all blocks, in their order."""
    total = 0.0
    for b in range(sums.shape[0]):
        total += sums[b, c]
    return total


@compute.exact_function
def _between(rows, i, j):
    """The separation of body i from body j of 3 N numbers."""
    n = rows.size // 3
    return rows[i] - rows[j], rows[n + i] - rows[n + j], rows[2 * n + i] - rows[2 * n + j]


@compute.exact_function
def _ahead(x, v, h):
    return x[0] + h * v[0], x[1] + h * v[1], x[2] + h * v[2]


_beyond = compute.exact_function(beyond)


@compute.exact_function
def _may_touch(before, x, v, h, first, members, radius):
    """True if the hulls of the paths of two members in a step of length h are not apart, for the pairs of this thread."""
    found = False
    for i in range(1 + compute.lane(), x.size // 3, LANES):
        for j in range(1, i):
            both = radius[members[first + i - 1, 0]] + radius[members[first + j - 1, 0]]
            begin, end = _between(before[0], i, j), _between(x, i, j)
            p = _ahead(begin, _between(before[1], i, j), h / 3.0)
            q = _ahead(end, _between(v, i, j), -h / 3.0)
            found = found or (both > 0.0 and not _beyond(begin, p, q, end, both))
    return found


@compute.exact_function
def _note(g, groups, time, until, before, x, v, outcome):
    """Note a step of group g."""
    steps, times, ends = outcome
    bodies = x.size // 3
    if compute.lane() == 0:
        s, row = cuda.atomic.add(groups, (0, NOTED), 1), cuda.atomic.add(groups, (0, ENDS), bodies - 1)
        if s < steps.shape[0] and row + bodies - 1 <= ends.shape[0]:
            steps[s, 0], steps[s, 1], times[s, 0], times[s, 1] = g, row, time, until
            for k in range(1, bodies):
                for c in range(3):
                    at = c * bodies + k
                    ends[row + k - 1, c], ends[row + k - 1, 3 + c] = before[0, at], before[1, at]
                    ends[row + k - 1, 6 + c], ends[row + k - 1, 9 + c] = x[at], v[at]
    compute.sync_threads()  # the others go on to overwrite these


@cache
def kernels() -> EncounterKernels:
    """All of them."""
    function, largest = compute.exact_function, _over_lanes(keep_largest)
    threads = StepThreads(
        function, function, LANES, compute.lane, compute.sync_threads, largest, _over_lanes(keep_least), _flat, _shaped
    )
    step_together = function(stepper_by(threads, _accelerate, "encounter"))
    kepler_step, add_all = kepler_on_gpu().step, block_reduction(STAR_THREADS, add_row)

    @compute.exact_function
    def on_its_path(j, s, h, begin, body, velocity):
        """The position of a planet at a fraction of the step, on the cubic through its ends."""
        begins, ends = (1.0 + 2.0 * s) * (1.0 - s) ** 2, s * s * (3.0 - 2.0 * s)
        leaves, arrives = h * s * (1.0 - s) ** 2, h * s * s * (s - 1.0)
        return (
            begins * begin[0, j, 0] + leaves * begin[1, j, 0] + ends * body[j, 0] + arrives * velocity[j, 0],
            begins * begin[0, j, 1] + leaves * begin[1, j, 1] + ends * body[j, 1] + arrives * velocity[j, 1],
            begins * begin[0, j, 2] + leaves * begin[1, j, 2] + ends * body[j, 2] + arrives * velocity[j, 2],
        )

    @compute.exact_function
    def begin_at(g, lists, begin, body, work, law, drift, forward):
        """Fill in the star and the members of a group: x, v, and the masses and kinds of ``law``."""
        (groups, members), x, v, bodies = lists, work[0], work[1], law.m.size
        for k in range(1 + compute.lane(), bodies, LANES):
            i = members[groups[g, START] + k - 1, 0]
            law.m[k], law.more[k] = law.G * body[i, 3], members[groups[g, START] + k - 1, 1]
            for c in range(3):
                x[c * bodies + k], v[c * bodies + k] = begin[0, i, c], forward * begin[1, i, c]
        compute.sync_threads()
        if compute.lane() == 0:
            law.more[0] = FREE if groups[g, MOVES_WITH_STAR] else FIXED
            for c in range(3):
                own = 0.0
                if groups[g, MOVES_WITH_STAR]:
                    own = -forward * drift[c]
                    for k in range(1, bodies):
                        own -= law.m[k] / law.m[0] * v[c * bodies + k]
                x[c * bodies], v[c * bodies] = 0.0, own
        compute.sync_threads()

    @compute.exact_function
    def together(g, lists, h, eta, work, law, guess, watching, shared):
        """Move the members of group g for a time h > 0. Returns the next guess."""
        members, first, (radius, watched, outcome) = lists[1], lists[0][g, START], watching
        x, v, begin, before = work[0], work[1], work[BEGIN:B], work[BEFORE:WORK]
        clock, scratch = work[CLOCK], StepMemory(work[SCRATCH:MASSES], shared)
        for i in range(compute.lane(), x.size, LANES):
            begin[0, i], begin[1, i] = x[i], v[i]
            for k in range(B, SCRATCH):
                work[k, i] = 0.0
        if compute.lane() == 0:
            clock[0], clock[1], clock[2], clock[3] = 0.0, 0.0, 0.0, min(guess, h)
        compute.sync_threads()
        step = RadauStep(begin, clock, work[B:E], work[E:LOST], work[LOST], work[LOST + 1], before)
        time, good, most = 0.0, True, 1 if watched else 1 << 62
        while time < h and good:
            for i in range(compute.lane(), x.size, LANES):
                before[0, i], before[1, i] = x[i], v[i]
            begun = time
            _, good = step_together(x, v, law, step, StepLimits(h, h, most, h, eta), scratch)
            compute.sync_threads()
            time = clock[END]
            found = watched and _may_touch(before, x, v, time - begun, first, members, radius)
            if watched and largest(1.0 if found else 0.0, scratch) > 0.0:
                _note(g, lists[0], begun / h, time / h, before, x, v, outcome)
        if not good and compute.lane() == 0:
            cuda.atomic.add(lists[0], (0, FAILED), 1)
        return clock[NEXT]

    @compute.exact_function
    def move_group(g, lists, h, eta, begin, moving, star, drift, memory, watching, scratch):
        """Move a group in this memory."""
        (groups, members), (body, velocity, next_step), (mass, mu) = lists, moving, star
        first, count, owner, forward = groups[g, START], groups[g, COUNT], groups[g, OWNER], 1.0 if h > 0.0 else -1.0
        masses = memory[MASSES]
        law = Attraction(masses[: count + 1], mu / mass, 0.0, masses[count + 1 : 2 * (count + 1)])
        law.m[0] = mu
        begin_at(g, lists, begin, body, memory, law, drift, forward)
        lead = members[first, 0] if owner == NO_OWNER else owner
        guess = together(g, lists, abs(h), eta, memory, law, next_step[lead], watching, scratch)
        compute.sync_threads()
        next_step[lead] = guess
        x, v = memory[0], memory[1]
        for k in range(compute.lane(), count, LANES):
            i = members[first + k, 0]
            if owner == NO_OWNER or i == owner:
                for c in range(3):
                    at = c * (count + 1)
                    body[i, c], velocity[i, c] = x[at + k + 1] - x[at], forward * v[at + k + 1]
        compute.sync_threads()

    @compute.exact_function
    def drift_of_star(lists, body, begin, sums, mass):
        """The velocity that the star loses to the bodies that do not move with it."""
        own, half = _with_star(lists, body, begin[1]), 0.5 / mass
        return (
            half * (_sum_of(sums[0], 3) - own[0] + _sum_of(sums[1], 3)),
            half * (_sum_of(sums[0], 4) - own[1] + _sum_of(sums[1], 4)),
            half * (_sum_of(sums[0], 5) - own[2] + _sum_of(sums[1], 5)),
        )

    @compute.kernel("gpu")
    def move(lists, with_star, h, eta, begin, moving, star, sums, watching):
        shared = cuda.shared.array(LANES, np.float64)
        memory = cuda.shared.array((WORK, NUMBERS), np.float64)
        (groups, members), (body, velocity, _) = lists, moving
        for g in range(1 + cuda.blockIdx.x, groups[0, 0] + 1, cuda.gridDim.x):
            first, count, owner = groups[g, START], groups[g, COUNT], groups[g, OWNER]
            if (groups[g, MOVES_WITH_STAR] > 0) != with_star:
                for k in range(compute.lane(), count if owner == NO_OWNER and not with_star else 0, LANES):
                    for c in range(3):  # the others' momentum is to be summed
                        velocity[members[first + k, 0], c] = 0.0
            elif 1 < count <= MOST:
                drift = (0.0, 0.0, 0.0)
                if with_star:
                    drift = drift_of_star(lists, body, begin, sums, star[0])
                own = memory[:, : 3 * (count + 1)]
                move_group(g, lists, h, eta, begin, moving, star, drift, own, watching, shared)

    @compute.kernel("gpu")
    def move_large(lists, with_star, h, eta, begin, moving, star, sums, watching, memory):
        shared, groups = cuda.shared.array(LANES, np.float64), lists[0]
        for g in range(1 + cuda.blockIdx.x, groups[0, 0] + 1, cuda.gridDim.x):
            if (groups[g, MOVES_WITH_STAR] > 0) == with_star and groups[g, COUNT] > MOST:
                drift = (0.0, 0.0, 0.0)
                if with_star:
                    drift = drift_of_star(lists, moving[0], begin, sums, star[0])
                column = 3 * (groups[g, START] + g - 1)
                own = memory[:, column : column + 3 * (groups[g, COUNT] + 1)]
                move_group(g, lists, h, eta, begin, moving, star, drift, own, watching, shared)

    @compute.exact_function
    def in_tides(i, h, begin, body, velocity, star, sums, shared):
        """:func:`.encounters.pass_star_in_tides`: position and velocity of comet i."""
        (mass, mu), own, parts, t = star, 1.0 + body[i, 3] / star[0], 1, cuda.threadIdx.x
        x, y, z = begin[0, i, 0], begin[0, i, 1], begin[0, i, 2]
        u, v, w = begin[1, i, 0], begin[1, i, 1], begin[1, i, 2]
        u += _sum_of(sums[0], 3) / mass  # of all: its own share, too
        v += _sum_of(sums[0], 4) / mass
        w += _sum_of(sums[0], 5) / mass
        shared[t, 0], shared[t, 1], shared[t, 2] = 0.0, 0.0, 0.0
        for j in range(1 + t, body.shape[0], STAR_THREADS):
            r2 = body[j, 0] * body[j, 0] + body[j, 1] * body[j, 1] + body[j, 2] * body[j, 2]
            if j != i and mu / mass * body[j, 3] * h * h > TIDE * r2 * math.sqrt(r2):
                shared[t, 0] = 1.0
        add_all(shared, t)
        if shared[0, 0] > 0.0:
            parts = PARTS
        for k in range(parts + 1):
            s, part = k / parts, h / parts
            compute.sync_threads()
            shared[t, 0], shared[t, 1], shared[t, 2] = 0.0, 0.0, 0.0
            for j in range(1 + t, body.shape[0], STAR_THREADS):
                if j != i and body[j, 3] > 0.0:
                    px, py, pz = on_its_path(j, s, h, begin, body, velocity)
                    dx, dy, dz = px - x, py - y, pz - z
                    a, b = compute.rsqrt(dx * dx + dy * dy + dz * dz), compute.rsqrt(px * px + py * py + pz * pz)
                    strength = mu / mass * body[j, 3] * (part if 0 < k < parts else 0.5 * part)
                    f, g = strength * (a * a * a), strength * (b * b * b)
                    shared[t, 0] += f * dx - g * px
                    shared[t, 1] += f * dy - g * py
                    shared[t, 2] += f * dz - g * pz
            add_all(shared, t)
            u, v, w = u + shared[0, 0], v + shared[0, 1], w + shared[0, 2]
            if k < parts:
                x, y, z, u, v, w, _ = kepler_step(x, y, z, u, v, w, mu * own, part)
        return (
            x, y, z, (u - _sum_of(sums[1], 3) / mass) / own, (v - _sum_of(sums[1], 4) / mass) / own,
            (w - _sum_of(sums[1], 5) / mass) / own,
        )  # fmt: skip

    @compute.kernel("gpu")
    def pass_star(lists, h, begin, body, velocity, star, sums):
        shared = cuda.shared.array((STAR_THREADS, 3), np.float64)
        (groups, members), (mass, mu), t = lists, star, cuda.threadIdx.x
        for g in range(1 + cuda.blockIdx.x, groups[0, 0] + 1, cuda.gridDim.x):
            i = members[groups[g, START], 0]
            if groups[g, COUNT] == 1:
                if groups[g, MOVES_WITH_STAR] == COMET:
                    x, y, z, u, v, w = in_tides(i, h, begin, body, velocity, star, sums, shared)
                else:
                    f, (dx, dy, dz) = 1.0 + body[i, 3] / mass, drift_of_star(lists, body, begin, sums, mass)
                    x, y, z, u, v, w, _ = kepler_step(
                        begin[0, i, 0], begin[0, i, 1], begin[0, i, 2], begin[1, i, 0] * f + dx,
                        begin[1, i, 1] * f + dy, begin[1, i, 2] * f + dz, mu * f, h,
                    )  # fmt: skip
                    u, v, w = (u - dx) / f, (v - dy) / f, (w - dz) / f
                compute.sync_threads()
                if t == 0:
                    body[i, 0], body[i, 1], body[i, 2] = x, y, z
                    velocity[i, 0], velocity[i, 1], velocity[i, 2] = u, v, w

    @compute.kernel("gpu")
    def apart(lists, h, G, body, velocity, acceleration):
        groups, members = lists
        for g in range(1 + cuda.blockIdx.x, groups[0, 0] + 1, cuda.gridDim.x):
            first, last, owner = groups[g, START], groups[g, START] + groups[g, COUNT], groups[g, OWNER]
            for k in range(first + compute.lane(), last, LANES):
                i, ax, ay, az = members[k, 0], 0.0, 0.0, 0.0
                if groups[g, MOVES_WITH_STAR] == COMET:
                    ax, ay, az = acceleration[i, 0], acceleration[i, 1], acceleration[i, 2]
                for other in range(first, last if owner == NO_OWNER or i == owner else first):
                    j = members[other, 0]
                    if j != i:
                        dx, dy, dz = body[j, 0] - body[i, 0], body[j, 1] - body[i, 1], body[j, 2] - body[i, 2]
                        u = compute.rsqrt(dx * dx + dy * dy + dz * dz)
                        f = G * body[j, 3] * (u * u * u)
                        ax, ay, az = ax + f * dx, ay + f * dy, az + f * dz
                velocity[i, 0], velocity[i, 1], velocity[i, 2] = (
                    velocity[i, 0] - h * ax, velocity[i, 1] - h * ay, velocity[i, 2] - h * az
                )  # fmt: skip

    @compute.kernel("gpu")
    def correct(lists, h, star, sums, mass, position, velocity):
        """The bodies of ``position`` have been shifted for a time h by the momentum in ``sums``; ``mass``: (N, 4)."""
        groups, members = lists
        for g in range(1 + cuda.blockIdx.x, groups[0, 0] + 1, cuda.gridDim.x):
            if groups[g, MOVES_WITH_STAR]:
                all_of_them = _with_star(lists, mass, velocity)
                own = _add_momentum(g, lists, mass, velocity, (0.0, 0.0, 0.0))
                for k in range(compute.lane(), groups[g, COUNT], LANES):
                    i = members[groups[g, START] + k, 0]
                    if groups[g, OWNER] == NO_OWNER or i == groups[g, OWNER]:
                        for c in range(3):
                            position[i, c] += h / star * (all_of_them[c] - own[c] - _sum_of(sums, 3 + c))

    return EncounterKernels(apart, correct, move, move_large, pass_star)
