"""The steps of a table of moves in one compiled loop, for a few bodies: the moves of :mod:`nbody.state.moves`
and the sums of :mod:`nbody.forces.direct.cpu_few`, with their bits. The moves are linear in positions, velocities and
accelerations, so tangent vectors make the same ones by the derivatives of the accelerations."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from nbody import compute
from nbody.fields.compiled import adding_fields
from nbody.fields.field import Term
from nbody.forces.direct.cpu_few import adding_jerks, adding_pairs, part_of_loop
from nbody.forces.layers.fields import fields_of
from nbody.integrators.facts import SchemeFacts
from nbody.integrators.integrator import Motion
from nbody.integrators.solvers.megno import add_growth_of
from nbody.integrators.tangents import Tangents, tangent_vectors
from nbody.state.host import HostState
from nbody.state.moves import DRIFTS, KICK, NOTHING, MoveKind, moving, parts_of
from nbody.state.notes import note

FORCE = NOTHING
"""The part of a step in which forces are computed."""


@cache
def _steps_for(softening: str, dimensions: int, fields: tuple[Term, ...], varied: bool) -> Callable:
    """The kernel of a law and of the terms of ``fields``; ``varied``: with tangent vectors."""
    add_pairs, add_fields, in_fields = adding_pairs(softening, dimensions), adding_fields(fields), bool(fields)
    add_slopes = adding_jerks(softening, dimensions) if varied else add_pairs

    @part_of_loop
    def add_product(target, rate, factor):
        for i in range(len(target)):
            for d in range(dimensions):
                target[i, d] += rate[i, d] * factor

    make, note_step = part_of_loop(moving(add_product)), part_of_loop(note)

    @part_of_loop
    def vary(x, m, G, length2, sums, tangents):
        """The accelerations of tangent vectors at the positions x."""
        vectors, masses, work, _ = tangents
        for q in range(len(vectors)):
            add_slopes(x, vectors[q, 0], m, G, length2, sums)
            for i in range(m.size):
                for d in range(dimensions):
                    work[q, 0, i, d] = sums[3 + d, i]
            if q < len(masses):
                add_pairs(x, masses[q], G, length2, sums[:3])
                for i in range(m.size):
                    for d in range(dimensions):
                        work[q, 0, i, d] += sums[d, i]

    def make_steps(parts, moment, parameters, steps, current, bodies, m, sums, G, length2, tangents, notes):
        """Make ``steps`` steps.

        Args:
            parts: of a step, (K,) each: which they are, their factors, and the times over which they drift.
            moment: the time, the time of step 0, the number of this step, and the length of a step.
            parameters: of the fields.
            current: True if ``a`` belongs to ``x``.
            bodies: positions, velocities, accelerations and Taylor terms, (N, D) each, changed in place.
            sums: (3, N) scratch, (6, N) with tangent vectors. (What a kernel allocates or reshapes makes Numba import 20 ms
                of its own code.)
            tangents: the vectors (M, 2, N, 3), the changes of masses (K, N), scratch (M, 2, N, 3), and numbers (M, 5).
            notes: get the bodies after each step.

        Returns:
            The number of force evaluations.
        """
        kinds, factors, lengths = parts
        (x, v, a, c), (now, origin, first, h) = bodies, moment
        evaluations, varies = 0, False
        for step in range(steps):
            for k in range(kinds.size):
                if kinds[k] == FORCE:
                    if not current:
                        add_pairs(x, m, G, length2, sums)
                        for i in range(m.size):
                            for d in range(dimensions):
                                a[i, d] = sums[d, i]
                        if in_fields:
                            add_fields(x, v, m, now, parameters, a)
                        evaluations += 1
                    current = True
                    if varied and not varies:
                        vary(x, m, G, length2, sums, tangents)
                        varies = True
                else:
                    make(kinds[k], factors[k], x, v, a, c)
                    if varied:
                        vectors, work = tangents[0], tangents[2]
                        for q in range(len(vectors)):
                            make(kinds[k], factors[k], vectors[q, 0], vectors[q, 1], work[q, 0], work[q, 1])
                    if kinds[k] != KICK:
                        current = varies = False
                    now += lengths[k]
            now = origin + (first + step + 1) * h
            note_step(notes, step, now, x, v)
            if varied:
                for q in range(len(tangents[3])):  # (a transpose of four axes takes 3 s to compile)
                    add_growth_of(tangents[0][q, 0].T, tangents[0][q, 1].T, 0, abs(h), tangents[3][q])
        return evaluations

    return compute.kernel("cpu")(make_steps)


class FewSteps:
    """Makes steps of one state.

    Args:
        motion: an engine whose sums are those of :mod:`nbody.forces.direct.cpu_few`, with or without fields, and a state in
            host memory.
        facts: of the scheme, a table of moves.
        tangents: vectors that are moved with the bodies.
    """

    def __init__(self, motion: Motion, facts: SchemeFacts, tangents: Tangents) -> None:
        engine, state = motion
        assert isinstance(state, HostState)
        fields = fields_of(engine)
        terms, n, self._tangents = fields.terms if fields else (), state.count, tangents
        self._parameters = fields.parameters if fields else np.zeros((0, 0))
        self._kernel = _steps_for(engine.gravity.softening, state.dimensions, terms, tangents.count > 0)
        self._law = engine.gravity.G, engine.gravity.length2
        self._state, self._moves, self._leaves, self._pairs = state, facts.moves, facts.leaves, engine.work(state)
        self._dt = math.nan
        self._sums, self._work = np.empty((6 if tangents.count else 3, n)), np.empty((tangents.count, 2, n, 3))

    def _take(self, dt: float) -> None:
        """Let steps have a length."""
        parts = list[tuple[int, float, float]]()
        for kind, fraction in self._moves:
            made = [(FORCE, 0.0)] if kind == MoveKind.FORCE else parts_of(kind, fraction * dt, self._state.dtype)
            lengths = [0.0] * (len(made) - 1) + [fraction * dt if kind in DRIFTS else 0.0]
            parts += [(*part, length) for part, length in zip(made, lengths, strict=True)]
        kinds, factors, times = zip(*parts, strict=True)
        self._dt, self._parts = dt, (np.array(kinds), np.array(factors, self._state.dtype), np.array(times))

    def make(self, steps: int, dt: float) -> None:
        """Make ``steps`` steps of the length ``dt``."""
        if not steps:
            return
        if dt != self._dt:
            self._take(dt)
        state, clock = self._state, self._state.clock
        step, time, origin, _ = clock.moment
        tangents = self._tangents

        def call(vectors: np.ndarray) -> int:
            evaluations: int = self._kernel(
                self._parts, (time, origin, step, self._dt), self._parameters, steps, bool(clock.current),
                (state.position, state.velocity, state.acceleration, state.column("_taylor_term")), state.mass, self._sums,
                *self._law, (vectors, tangents.masses, self._work, tangents.numbers[0]), clock.notes,
            )  # fmt: skip
            return evaluations

        if not tangents.count:
            evaluations = call(self._work)
        else:
            with tangent_vectors(state, tangents.count) as found:
                vectors = np.ascontiguousarray(found[0].transpose(0, 1, 3, 2))
                evaluations = call(vectors)
                found[0] = vectors.transpose(0, 1, 3, 2)
        clock.count_steps(steps, self._dt)
        clock.current = self._leaves
        state.progress.report(evaluations * self._pairs)
