"""A symplectic map whose planets may meet: a Gauss–Radau scheme makes the steps of encounters (Chambers 1999; Rein et al.
2019).

The coordinates are democratic heliocentric: positions Q relative to the star, velocities V relative to the centre of mass
(Duncan, Levison & Lee 1998). The Hamiltonian is split into

    Kepler        Σ m_i V_i²/2 - G m₀ m_i/Q_i        each planet about the star (:mod:`.kepler`)
    jump          (Σ m_i V_i)²/(2 m₀)                shifts all planets together
    interaction   Σ K(Q_ij) times the attraction     kicks planets by each other

The changeover function K is 1 beyond a critical distance and falls smoothly to 0 below a tenth of it. The fraction 1 - K of
the attraction belongs to the Kepler part: planets that come within their critical distance during a step are moved together
by :mod:`.radau`, the others by Kepler's solution. A step is half a jump, Kepler's motion, half a jump, and a kick. The
positions and velocities of frames are computed from the map's own coordinates, which are half a kick ahead, and never fed
back.
"""

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.errors import RunFailed
from nbody.fields.post_newtonian import STRICT
from nbody.forces.direct.cpu_few import summing
from nbody.integrators.adaptive import END, NEXT, nearest_pair
from nbody.integrators.collisions.contact import any_contact, doubled
from nbody.integrators.collisions.span import Encounter, Span, Watcher
from nbody.integrators.facts import FLOAT64_ON_CPU, SchemeFacts
from nbody.integrators.few_bodies import components, map_coordinates, require_star
from nbody.integrators.integrator import Integrator, Motion
from nbody.integrators.solvers.kepler import kepler_step
from nbody.integrators.solvers.pair_forces import Attraction, changeover, separation
from nbody.integrators.solvers.radau import RadauStep, StepLimits, stepper_for
from nbody.integrators.solvers.systems.arrays import copy
from nbody.scenario.values import Group, Positive
from nbody.state import Column

SPEEDS = 0.4
"""The critical distance is at least this many times the way of a planet in one step, so that no step jumps over it."""

MARGIN = 1.1
"""Planets that come within this many critical distances, as interpolated, are moved by the Gauss-Radau scheme."""

encounter_steps = inner(stepper_for("encounter"), calls=True)


class Hybrid(Integrator):
    """Planets that may come close to each other, but not to the star. Body 0 must be the star."""

    class Options(Group):
        """The options of the scheme.

        Attributes:
            hill: the critical distance in Hill radii, from the orbits at the start.
            epsilon: the accuracy of the steps in encounters, as of ``ias15``.
        """

        hill: Positive = 4.0
        epsilon: Annotated[Positive, Field(le=1.0)] = 1e-9

    _options: Options

    facts = SchemeFacts(
        order=2, source="Chambers 1999; Rein et al. 2019", own_forces=True, star=True, precisions=FLOAT64_ON_CPU,
        columns=(Column("map_position", 3), Column("map_velocity", 3), Column("critical", 0)),
    )  # fmt: skip

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        super().__init__(dt, options)
        self._next = np.array([abs(self.dt)])  # a step back is negative (Stepper.at)
        self._watcher: Watcher | None = None

    def start(self, motion: Motion) -> None:
        require_star(motion)
        state = motion.host
        x, v = components(state.position), components(state.velocity)
        hill: float = self._options.hill
        state.column("critical")[...] = critical_distances(x, v, motion.engine.gravity.G * state.mass, self.dt, hill)
        self._call(motion, _begin, x, v)

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        # ``until`` is ignored, since the run's schedule counts steps.
        state = motion.host
        x, v = np.zeros((2, 3, state.count))
        eta = (5040 * self._options.epsilon) ** (1 / 7)
        radius = np.zeros(state.count) if self._watcher is None else self._watcher.radii
        done, good, (met, times, ends) = self._call(motion, _advance, x, v, self._next, eta, steps, radius)
        self._encounter = Encounter(met[1:], times, ends[..., 1:]) if len(met) else None  # without the star
        state.clock.count_steps(done, self.dt)
        state.position[...], state.velocity[...] = x.T[:, : state.dimensions], v.T[:, : state.dimensions]
        state.invalidate()
        if not good:
            raise RunFailed(
                f"step {state.clock.step}: the time steps of an encounter become too short{nearest_pair(motion)}; "
                "for bodies that collide take scheme 'ias15' with a softening"
            )

    def _advance_to_contact(self, motion: Motion, steps: int, until: float, watcher: Watcher) -> Span | None:
        self._watcher = watcher
        try:
            return super()._advance_to_contact(motion, steps, until, watcher)
        finally:
            self._watcher = None

    def _call(self, motion: Motion, kernel: Callable, x: np.ndarray, v: np.ndarray, *more: Any) -> Any:
        """Call a kernel with the map's coordinates."""
        state = motion.host
        mass = motion.engine.gravity.G * state.mass
        with map_coordinates(state) as (Q, V):
            return kernel(x, v, Q, V, mass, self.dt, state.column("critical"), *more)

    def arrays(self) -> dict[str, np.ndarray]:
        """The length of the first step of the next encounter."""
        return {"next_step": self._next}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._next = arrays["next_step"].copy()


def critical_distances(x: np.ndarray, v: np.ndarray, m: np.ndarray, h: float, hill: float) -> np.ndarray:
    """The critical distance of each body, (N,): ``hill`` Hill radii a (m/3m₀)^(1/3), or more if it moves fast; that of the
    star is 0. ``m``: G times the masses; ``h``: the time step."""
    r, v2 = np.linalg.norm(x - x[:, :1], axis=0), ((v - v[:, :1]) ** 2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.abs(1 / (2 / r - v2 / m[0]))
        speed = np.sqrt(np.maximum(v2, m[0] / a))
        a = np.where(np.isfinite(a), a, r)
    found = np.maximum(hill * a * (m / (3 * m[0])) ** (1 / 3), SPEEDS * abs(h) * speed)
    found[0] = 0.0
    return found


@inner(fastmath=STRICT)
def interaction(i, j, dx, dy, dz, critical):
    """The fraction K of the attraction of two planets."""
    r2 = dx * dx + dy * dy + dz * dz
    r = np.sqrt(r2)
    f = 1.0 / (r2 * r)
    limit = max(critical[i], critical[j])
    if r < limit:
        f *= changeover(r, limit)
    return f


add_interactions = summing(interaction, separation, 2, 1)


@inner(fastmath=STRICT)
def kick(Q, V, m, h, critical, a):
    """Kick the planets by the fraction K of their attraction."""
    a[:] = 0.0
    add_interactions(Q, m, 1.0, critical, a)
    for c in range(3):
        for i in range(1, m.size):
            V[c, i] += h * a[c, i]


@inner(fastmath=STRICT)
def jump(Q, V, m, h):
    """Shift all planets: the star moves against them."""
    for c in range(3):
        total = 0.0
        for i in range(1, m.size):
            total += m[i] * V[c, i]
        for i in range(1, m.size):
            Q[c, i] += h * total / m[0]


@inner(fastmath=STRICT)
def meet(i, j, Q, V, end_Q, end_V, h, limit):
    """True if planets i and j come closer than ``limit`` within a step, by a cubic that has their squared distance and its
    rate of change at both ends."""
    first, last, first_rate, last_rate, speed2 = 0.0, 0.0, 0.0, 0.0, 0.0
    last_speed2 = 0.0
    for c in range(3):
        d, e = Q[c, j] - Q[c, i], end_Q[c, j] - end_Q[c, i]
        u, w = V[c, j] - V[c, i], end_V[c, j] - end_V[c, i]
        first, last = first + d * d, last + e * e
        first_rate, last_rate = first_rate + 2.0 * h * d * u, last_rate + 2.0 * h * e * w
        speed2, last_speed2 = speed2 + u * u, last_speed2 + w * w
    limit2 = limit * limit
    if min(first, last) > 4.0 * max(limit2, 1.5 * h * h * max(speed2, last_speed2)):
        return False  # farther away than they can go
    if min(first, last) < limit2:
        return True
    # r²(t) = first + first_rate t + p t² + q t³ for t in [0, 1]; its extremes are where 3 q t² + 2 p t + first_rate = 0
    p = 3.0 * (last - first) - 2.0 * first_rate - last_rate
    q = first_rate + last_rate - 2.0 * (last - first)
    root = np.sqrt(max(0.0, p * p - 3.0 * q * first_rate))
    sum_ = -(p + np.copysign(root, p))
    for t in (sum_ / (3.0 * q), first_rate / sum_):
        if 0.0 < t < 1.0 and first + t * (first_rate + t * (p + t * q)) < limit2:
            return True
    return False


@inner(calls=True)
def move(Q, V, m, h, critical, guess, eta, radius, no_encounter):
    """The Kepler part: all planets on their orbits about the star, those that meet with their attraction. Returns False if
    the steps of an encounter become too short, and the fields of an :class:`.Encounter`, the star included
    (``no_encounter`` if no planets meet)."""
    n = m.size
    start_Q, start_V = Q.copy(), V.copy()
    for i in range(1, n):
        kepler_step(i, Q, V, m[0], h)
    met, bodies = np.zeros(n, np.bool_), 1
    for i in range(2, n):
        for j in range(1, i):
            limit = MARGIN * max(critical[i], critical[j])
            if not (met[i] and met[j]) and meet(i, j, start_Q, start_V, Q, V, h, limit):
                met[i] = met[j] = True
    for i in range(1, n):
        bodies += met[i]
    if bodies == 1:
        return True, no_encounter
    x, v = np.zeros((3, bodies)), np.zeros((3, bodies))
    mass, near, at = np.empty(bodies), np.zeros(bodies), np.zeros(bodies, np.int64)
    size = np.zeros(bodies)
    mass[0] = m[0]
    k = 0
    for i in range(1, n):
        if met[i]:
            k += 1
            at[k], mass[k], near[k], size[k] = i, m[i], critical[i], radius[i]
            for c in range(3):
                x[c, k], v[c, k] = start_Q[c, i], start_V[c, i]
    forward = np.sign(h)  # a step back is one of the reversed velocities
    v *= forward
    good, times, ends = encounter(x, v, mass, abs(h), near, guess, eta, size)
    v *= forward
    for k in range(1, bodies):
        for c in range(3):
            Q[c, at[k]], V[c, at[k]] = x[c, k], v[c, k]
    return good, (at, times, ends)


@inner(calls=True)
def encounter(x, v, m, h, near, guess, eta, radius):
    """Move planets that meet, about the star at rest in the origin, for a time h. Returns False if the steps become too
    short, and the steps in which two planets touch: see :class:`.Encounter`."""
    times, ends, count = np.empty((1, 2)), np.empty((1, 4, *x.shape)), 0
    before_x, before_v = x.copy(), v.copy()
    begin, clock = np.empty((3, *x.shape)), np.zeros(4)
    copy(x, begin[0])
    copy(v, begin[1])
    clock[NEXT] = min(guess[0], h)
    zeros = np.zeros((7, x.size)), np.zeros((7, x.size)), np.zeros(x.shape), np.zeros(x.shape)
    step, law = RadauStep(begin, clock, *zeros), Attraction(m, 1.0, 0.0, near)
    steps = 1 if radius.max() > 0.0 else 2**62
    radius[0] = -np.inf  # contacts with the star are looked for on orbits
    time, good = 0.0, True
    while time < h and good:
        copy(x, before_x)
        copy(v, before_v)
        begun = time
        _, good = encounter_steps(x, v, law, step, StepLimits(h, h, steps, h, eta))
        time, guess[0] = clock[END], clock[NEXT]
        if any_contact(before_x, before_v, x, v, time - begun, radius):
            if count == len(times):
                times, ends = doubled(times), doubled(ends)
            times[count, 0], times[count, 1] = begun / h, time / h
            for k, end in enumerate((before_x, before_v, x, v)):
                copy(end, ends[count, k])
            count += 1
    return good, times[:count], ends[:count]


@compute.kernel("cpu")
def _begin(x, v, Q, V, m, h, critical):
    """The map's coordinates Q, V from positions x and velocities v, (3, N) each; m: G times the masses."""
    for c in range(3):
        total, weighted, flow = 0.0, 0.0, 0.0
        for i in range(m.size):
            total, weighted, flow = total + m[i], weighted + m[i] * x[c, i], flow + m[i] * v[c, i]
        for i in range(1, m.size):
            Q[c, i], V[c, i] = x[c, i] - x[c, 0], v[c, i] - flow / total
        Q[c, 0], V[c, 0] = weighted / total, flow / total
    kick(Q, V, m, 0.5 * h, critical, np.empty((3, m.size)))


@compute.kernel("cpu")
def _advance(x, v, Q, V, m, h, critical, guess, eta, steps, radius):
    """Make ``steps`` steps of Q, V; x, v become the positions and velocities at their end.

    Returns the number of steps; of the last one, False if an encounter could not be computed, and what :func:`move`
    returns of the encounter."""
    a, done, good, total = np.empty((3, m.size)), 0, True, 0.0
    no_encounter = np.empty(0, np.int64), np.empty((0, 2)), np.empty((0, 4, 3, 0))
    met = no_encounter
    for i in range(m.size):
        total += m[i]
    while done < steps and good:
        jump(Q, V, m, 0.5 * h)
        for c in range(3):
            Q[c, 0] += h * V[c, 0]
        good, met = move(Q, V, m, h, critical, guess, eta, radius, no_encounter)
        jump(Q, V, m, 0.5 * h)
        kick(Q, V, m, h, critical, a)
        done += 1
    end_V = V.copy()
    kick(Q, end_V, m, -0.5 * h, critical, a)
    for c in range(3):
        star, flow = Q[c, 0], 0.0
        for i in range(1, m.size):
            star -= m[i] / total * Q[c, i]
            flow -= m[i] / m[0] * end_V[c, i]
        x[c, 0], v[c, 0] = star, end_V[c, 0] + flow
        for i in range(1, m.size):
            x[c, i], v[c, i] = star + Q[c, i], end_V[c, 0] + end_V[c, i]
    return done, good, met
