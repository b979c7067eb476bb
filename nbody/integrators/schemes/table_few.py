"""The steps of a table of moves in one compiled loop, for a few bodies: the moves of :class:`~nbody.state.host.HostMoves`
and the sums of :mod:`nbody.forces.direct.cpu_few`, with their bits."""

from collections.abc import Callable
from functools import cache

import numpy as np

from nbody import compute
from nbody.fields.compiled import adding_fields
from nbody.fields.field import Term
from nbody.forces.direct.cpu_few import adding_pairs
from nbody.forces.layers.fields import fields_of
from nbody.integrators.facts import SchemeFacts
from nbody.integrators.integrator import Motion
from nbody.state.host import HostState

FORCE, KICK, DRIFT, DRIFT_TAYLOR = range(4)
KINDS = {"force": FORCE, "kick": KICK, "drift": DRIFT, "drift_taylor": DRIFT_TAYLOR}


@cache
def _steps_for(softening: str, dimensions: int, single: bool, fields: tuple[Term, ...]) -> Callable:
    """The kernel of a law and of the terms of ``fields``; ``single``: the state is float32."""
    add_pairs, add_fields, in_fields = adding_pairs(softening, dimensions), adding_fields(fields), bool(fields)

    def make_steps(moves, moment, parameters, steps, current, x, v, a, m, sums, G, length2):
        """Make ``steps`` steps.

        Args:
            moves: of a step: (K,) kinds; (K, 2) dt and dt²/2, in the state's dtype; (K,) dt.
            moment: the time, the time of step 0, the number of this step, and the length of a step.
            parameters: of the fields.
            current: True if ``a`` belongs to ``x``.
            x, v, a: (N, D), changed in place.
            sums: (3, N) scratch. (What a kernel allocates or reshapes makes Numba import 20 ms of its own code.)

        Returns:
            The number of force evaluations.
        """
        kinds, factors, lengths = moves
        now, origin, first, h = moment
        evaluations = 0
        for step in range(steps):
            for k in range(kinds.size):
                kind, dt = kinds[k], factors[k, 0]
                if kind == FORCE:
                    if not current:
                        add_pairs(x, m, G, length2, sums)
                        for i in range(m.size):
                            for d in range(dimensions):
                                a[i, d] = sums[d, i]
                        if in_fields:
                            add_fields(x, v, m, now, parameters, a)
                        evaluations += 1
                    current = True
                elif kind == KICK:
                    for i in range(m.size):
                        for d in range(dimensions):
                            v[i, d] += a[i, d] * dt
                else:
                    for i in range(m.size):
                        for d in range(dimensions):
                            if kind == DRIFT:
                                x[i, d] += v[i, d] * dt
                            elif single:
                                x[i, d] += v[i, d] * dt + a[i, d] * factors[k, 1]
                            else:
                                x[i, d] = (x[i, d] + v[i, d] * dt) + a[i, d] * factors[k, 1]
                    current = False
                    now += lengths[k]
            now = origin + (first + step + 1) * h
        return evaluations

    return compute.kernel("cpu")(make_steps)


class FewSteps:
    """Makes steps of one state.

    Args:
        motion: an engine whose sums are those of :mod:`nbody.forces.direct.cpu_few`, with or without fields, and a state in
            host memory.
        facts: of the scheme, a table of moves.
        dt: the time step.
    """

    def __init__(self, motion: Motion, facts: SchemeFacts, dt: float) -> None:
        engine, state = motion
        assert isinstance(state, HostState)
        steps = [fraction * dt for _, fraction in facts.moves]
        factors = np.array([(step, 0.5 * step * step) for step in steps], state.dtype)
        fields = fields_of(engine)
        terms = fields.terms if fields else ()
        self._parameters = fields.parameters if fields else np.zeros((0, 0))
        self._kernel = _steps_for(engine.gravity.softening, state.dimensions, state.dtype == np.float32, terms)
        self._moves = np.array([KINDS[kind] for kind, _ in facts.moves]), factors, np.array(steps)
        self._law = engine.gravity.G, engine.gravity.length2
        self._state, self._dt, self._leaves, self._pairs = state, dt, facts.leaves, engine.work(state)
        self._sums = np.empty((3, state.count))

    def make(self, steps: int) -> None:
        """Make ``steps`` steps."""
        if not steps:
            return
        state, clock = self._state, self._state.clock
        step, time, origin, _ = clock.moment
        evaluations = self._kernel(
            self._moves, (time, origin, step, self._dt), self._parameters, steps, bool(clock.current),
            state.position, state.velocity, state.acceleration, state.mass, self._sums, *self._law,
        )  # fmt: skip
        clock.count_steps(steps, self._dt)
        clock.current = self._leaves
        state.progress.report(evaluations * self._pairs)
