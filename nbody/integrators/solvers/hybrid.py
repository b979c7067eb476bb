"""A map of a star's planets whose members may meet, each other or the star: a Gauss–Radau scheme makes their steps then
(Lu, Hernandez & Rein 2024: TRACE), and the star's drift is a part of the orbit of one that passes it.

The coordinates are democratic heliocentric: positions Q relative to the star, velocities V relative to the centre of mass
(Duncan, Levison & Lee 1998). The Hamiltonian is split into

    Kepler        Σ m_i V_i²/2 - G m₀ m_i/Q_i        each planet about the star (:mod:`.kepler`)
    jump          (Σ m_i V_i)²/(2 m₀)                shifts all planets together
    interaction   -Σ G m_i m_j/Q_ij                  kicks planets by each other

A step is half a kick, half a jump, Kepler's motion, half a jump, and half a kick. External fields and relativity kick all
bodies before and after it, for half a step each, as they are at the middle of that kick: the order is 2, and the step must
resolve them. The attraction of planets that are near
each other in a step belongs to its Kepler part (:mod:`.encounters`). Whether they are is asked at both ends of a step: if
some come near only at its end, the step is made again from its beginning, so that a step backwards would decide the same.
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.errors import RunFailed
from nbody.fields.compiled import adding_fields
from nbody.fields.field import POSITIONS, POST_NEWTONIAN, VELOCITIES, Term
from nbody.fields.post_newtonian import STRICT, add_forces
from nbody.forces.direct.cpu_few import adding_pairs
from nbody.forces.engine import Engine
from nbody.forces.layers.fields import fields_of
from nbody.forces.problem import Problem, Refusal
from nbody.integrators.adaptive import nearest_pair
from nbody.integrators.collisions.span import Encounter, Span, Watcher
from nbody.integrators.facts import SchemeFacts, WorkingBytes
from nbody.integrators.few_bodies import components, few_in_no_fields, map_coordinates, per_c2, require_star
from nbody.integrators.integrator import Integrator, Motion
from nbody.integrators.solvers.encounters import falls, kick, move_all, no_contacts
from nbody.integrators.solvers.near import StarBodies, gather, look, no_company, no_survey, survey
from nbody.integrators.solvers.systems.arrays import copy
from nbody.scenario.values import Group, Positive
from nbody.state import Column
from nbody.state.notes import note

FEWEST = 4 if compute.SIMULATED else 128
"""Bodies on a GPU: with 128 a step takes 0.2 ms on an H200, and on the CPU of its machine."""


def _memory(engine: type[Engine], particles: int, precision: str) -> WorkingBytes:
    return WorkingBytes((7 * 32 + 8 * 4 + 2 * 8) * particles if engine.can.device == "gpu" else 0)


class Hybrid(Integrator):
    """Planets that may come close to each other and to the star, body 0. Bodies without mass feel the others, and change no
    bit of their motion."""

    class Options(Group):
        """The options of the scheme.

        Attributes:
            hill: planets are near each other within this many Hill radii.
            epsilon: the accuracy of the steps in encounters, as of ``ias15``.
        """

        hill: Positive = 3.0
        epsilon: Annotated[Positive, Field(le=1.0)] = 1e-9

    _options: Options

    facts = SchemeFacts(
        order=2, source="Lu, Hernandez & Rein 2024", own_forces=True, star=True, memory=_memory,
        precisions={"cpu": ("float64",), "gpu": ("float64",)}, fields=(POSITIONS, VELOCITIES, POST_NEWTONIAN),
        columns=(Column("map_position", 3), Column("map_velocity", 3), Column("next_step", 0)),
        notes=few_in_no_fields,  # which kick from Python
    )  # fmt: skip

    _device: Any = None
    """The :class:`.hybrid_gpu.DeviceHybrid` of the state."""

    @classmethod
    def supports(cls, engine: type[Engine] | Engine, problem: Problem) -> str:
        if problem.of_scheme.collisions == "bounce":
            reason = "this scheme lets bodies pass through each other before they bounce"
            return Refusal(reason, "collisions.rule", "ias15, whose steps end at contacts, or write 'merge'")
        if engine.can.device == "gpu":
            if problem.of_scheme.fields:
                return Refusal("on a GPU this scheme knows no external fields", "engine", "choose engine cpu")
            if 1 < problem.particles < FEWEST:
                reason = f"on a GPU this scheme moves {FEWEST} bodies or more; fewer are faster on a CPU"
                return Refusal(reason, "engine", "choose engine cpu")
        return super().supports(engine, problem)

    def start(self, motion: Motion) -> None:
        state = motion.state
        x, v, m = state.values("position", "velocity", "mass")
        require_star(m)
        coordinates = np.zeros((2, 3, state.count))
        _begin(components(x), components(v), *coordinates, motion.engine.gravity.G * m)
        values = *(rows.T for rows in coordinates), np.full(state.count, abs(self.dt))  # a step back is negative
        for column, rows in zip(self.facts.columns, values, strict=True):
            state.add(column, values=rows)

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        # ``until`` is ignored, since the run's schedule counts steps.
        make = self._make_on_gpu if motion.engine.can.device == "gpu" else self._make
        make(motion, steps, np.zeros(motion.state.count))

    def _make(self, motion: Motion, steps: int, radius: np.ndarray) -> Span | None:
        """Make steps, until bodies of these radii may touch in one; return that step."""
        state, left = motion.host, steps
        x, v, x0, v0 = components(state.position), components(state.velocity), *np.zeros((2, 3, state.count))
        size, eta = self._limits(state.mass)
        bodies = StarBodies(motion.engine.gravity.G * state.mass, size, radius, 0.5 * abs(self.dt))
        guess, kicked = state.column("next_step"), fields_of(motion.engine) is not None
        good, touched = True, False
        while left and good and not touched:
            if kicked:
                self._kick(motion, x, v)
            done, good, touched, company, contacts = self._call(
                motion, _advance, x, v, x0, v0, bodies, self.dt, guess, eta, 1 if kicked else left, state.clock.notes
            )
            state.clock.count_steps(done, self.dt)
            if kicked:
                self._kick(motion, x, v)
            left -= done
        state.position[...], state.velocity[...] = x.T[:, : state.dimensions], v.T[:, : state.dimensions]
        state.invalidate()
        self._require(good, motion)
        if not touched:
            return None
        begin, D = state.clock.time - self.dt, state.dimensions
        met = Encounter(company.pairs[: company.counts[0]], company.hurried, *contacts)
        return Span(x0.T[:, :D], v0.T[:, :D], x.T[:, :D], v.T[:, :D], begin, state.clock.time, True, met)

    def _limits(self, mass: np.ndarray) -> tuple[np.ndarray, float]:
        """The critical distances, in units of those from the star, and the accuracy of encounters."""
        size = self._options.hill * np.cbrt(mass / (3 * mass[0]))
        return size, (5040 * self._options.epsilon) ** (1 / 7)

    def _require(self, good: bool, motion: Motion) -> None:
        if not good:
            raise RunFailed(
                f"step {motion.state.clock.step}: the time steps of an encounter become too short{nearest_pair(motion)}; "
                "for bodies that collide take scheme 'ias15' with a softening"
            )

    def _make_on_gpu(self, motion: Motion, steps: int, radius: np.ndarray) -> Span | None:
        from nbody.integrators.solvers.hybrid_gpu import DeviceHybrid

        if self._device is None or self._device.state is not motion.state:
            self._device = DeviceHybrid(motion, *self._limits(motion.state.values("mass")[0]))
        done, good, span = self._device.make(self.dt, steps, radius)
        clock = motion.state.clock
        clock.count_steps(done, self.dt)
        self._require(good, motion)
        return span and span._replace(begin=clock.time - self.dt, end=clock.time)

    def _advance_to_contact(self, motion: Motion, steps: int, until: float, watcher: Watcher) -> Span | None:
        clock = motion.state.clock
        make = self._make_on_gpu if motion.engine.can.device == "gpu" else self._make
        last = clock.step + steps
        while clock.step < last:
            span = make(motion, last - clock.step, watcher.radii)
            if span is not None and watcher.touching(span):
                return span
        return None

    def _kick(self, motion: Motion, x: np.ndarray, v: np.ndarray) -> None:
        """Let external fields kick the map's velocities, and the bodies' velocities ``v``, for half a step."""
        fields, state = fields_of(motion.engine), motion.host
        assert fields is not None
        law = motion.engine.gravity.G, per_c2(motion)
        with map_coordinates(state) as (_, V):
            _kicking(fields.terms)(x, v, V, 0.5 * self.dt, state.mass, state.clock.time, fields.parameters, *law)

    def _call(self, motion: Motion, kernel: Callable, x: np.ndarray, v: np.ndarray, *more: Any) -> Any:
        """Call a kernel with the map's coordinates."""
        with map_coordinates(motion.host) as (Q, V):
            return kernel(x, v, Q, V, *more)


@cache
def _kicking(terms: tuple[Term, ...]) -> Callable:
    """The kernel ``kick(x, v, V, h, m, time, parameters, G, per_c2)``: external fields or relativity at the positions x,
    (3, N), kick the map's velocities V and the bodies' v for a time h: as they are at its middle."""
    add_fields, moving = adding_fields(terms), any(term.moving for term in terms)
    add_pairs = adding_pairs("none", 3)

    @compute.kernel("cpu")
    def kick_by_fields(x, v, V, h, m, time, parameters, G, per_c2):
        a, newton, middle, total = np.zeros(x.shape), np.zeros(x.shape), v.copy(), m.sum()
        stages = 2 if moving or per_c2 > 0.0 else 1
        if per_c2 > 0.0:
            add_pairs(x.T, m, G, 0.0, newton)
        for stage in range(stages):  # number by number: array operations take 2 s to compile
            for c in range(3):
                for i in range(m.size):
                    a[c, i] = newton[c, i]
            add_fields(x.T, middle.T, m, time, parameters, a.T)
            if per_c2 > 0.0:
                add_forces(x, middle, m, G, per_c2, a)
            for c in range(3):
                for i in range(m.size):
                    a[c, i] -= newton[c, i]
                    if stage + 1 < stages:
                        middle[c, i] += 0.5 * h * a[c, i]
        for c in range(3):
            common = 0.0  # the acceleration of the centre of mass
            for i in range(m.size):
                common += m[i] / total * a[c, i]
                v[c, i] += h * a[c, i]
            V[c, 0] += h * common
            for i in range(1, m.size):
                V[c, i] += h * (a[c, i] - common)

    return kick_by_fields  # type: ignore[no-any-return]


@compute.kernel("cpu")
def _begin(x, v, Q, V, m):
    """The map's coordinates Q, V from positions x and velocities v, (3, N) each; m: G times the masses."""
    for c in range(3):
        total, weighted, flow = 0.0, 0.0, 0.0
        for i in range(m.size):
            total, weighted, flow = total + m[i], weighted + m[i] * x[c, i], flow + m[i] * v[c, i]
        for i in range(1, m.size):
            Q[c, i], V[c, i] = x[c, i] - x[c, 0], v[c, i] - flow / total
        Q[c, 0], V[c, 0] = weighted / total, flow / total


@inner(fastmath=STRICT)
def inertial(Q, V, m, total, x, v):
    """The positions and velocities of the map's coordinates."""
    for c in range(3):
        star, flow = Q[c, 0], 0.0
        for i in range(1, m.size):
            star -= m[i] / total * Q[c, i]
            flow -= m[i] / m[0] * V[c, i]
        x[c, 0], v[c, 0] = star, V[c, 0] + flow
        for i in range(1, m.size):
            x[c, i], v[c, i] = star + Q[c, i], V[c, 0] + V[c, i]


note_step = inner(note)


@compute.kernel("cpu")
def _advance(x, v, Q, V, x0, v0, bodies, h, guess, eta, steps, notes):
    """Make ``steps`` steps of Q, V, or those up to the first one in which two bodies with radii may touch. x0, v0
    become the positions and velocities at the beginning of the last step, x, v those at its end; ``notes`` get those after
    each step.

    Returns the number of steps; and of the last one, False if an encounter could not be computed, True if two bodies may
    touch, its :class:`.Company`, and its :class:`.Contacts`."""
    m, n, watched = bodies.m, bodies.m.size, bodies.radius.max() > 0.0
    a, alone, done, good, touched = np.empty((3, n)), no_company(n), 0, True, False
    now, after = survey(Q, V, bodies, no_survey(n)), no_survey(n)
    met, total = look(Q, V, bodies, now), m.sum()
    begin_Q, begin_V, company, no_others = Q.copy(), V.copy(), alone, no_contacts(n)
    contacts = no_others
    while done < steps and good and not touched:
        copy(Q, begin_Q)
        copy(V, begin_V)
        company, more = alone, False
        if met:
            company, _ = gather(m, now, no_company(n))
        while True:
            kick(Q, V, m, 0.5 * h, now, company, a)
            for c in range(3):
                Q[c, 0] += h * V[c, 0]
            good, contacts = move_all(Q, V, bodies, h, company, guess, eta, no_others)
            after = survey(Q, V, bodies, after)
            kick(Q, V, m, 0.5 * h, after, company, a)
            at_end = look(Q, V, bodies, after)
            if at_end and not met:
                company = no_company(n)
            met, more = at_end, False
            if at_end:
                company, more = gather(m, after, company)
            if not (more and good):
                break
            copy(begin_Q, Q)
            copy(begin_V, V)
        now, after = after, now
        touched = watched and (len(contacts.times) > 0 or falls(begin_Q, begin_V, Q, V, m, h, bodies.radius))
        done += 1
        if notes.times.size > 0:
            inertial(Q, V, m, total, x, v)
            note_step(notes, done - 1, 0.0, x.T, v.T)
    inertial(begin_Q, begin_V, m, total, x0, v0)
    inertial(Q, V, m, total, x, v)
    return done, good, touched, company, contacts
