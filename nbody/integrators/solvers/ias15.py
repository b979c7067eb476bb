"""A Gauss–Radau scheme of order 15 with adaptive steps, for few bodies: errors near rounding, in close encounters too.

The accelerations of a step are a polynomial of degree 7 that agrees with the forces at seven points (:mod:`.radau`). Sums
are compensated, so that the energy error grows like a random walk (Everhart 1985; Rein & Spiegel 2015). The next step is

    h = (5040 ε)^(1/7) max(τ₁, τ₂),    τ₁² = 2 a² / (j² + a s),    τ₂² = (a s + j²) / (j c + s²)

for the body with the shortest time scale, where a, j, s and c are the sizes of its acceleration and of the next three
derivatives, from the polynomial at the end of the step. τ₁ is the criterion of Pham, Rein & Spiegel (2024). It vanishes
where the acceleration of a body passes through zero; there τ₂ (Aarseth 1985) is longer. They agree on a circular orbit.

The steps do not depend on when the bodies are looked at: at a time within the last step they are shown by its polynomial, to
rounding. Tangent vectors are moved beside the bodies by the same scheme; the bodies alone choose the steps, and when their
iteration ends, so they keep their bits (Rein & Tamayo 2016).
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from nbody.fields.field import MUTUAL, POSITIONS, POST_NEWTONIAN, VELOCITIES, Term
from nbody.forces.layers.fields import fields_of
from nbody.integrators.adaptive import BEGIN, END, LENGTH, NEXT, UNKNOWN, AdaptiveStep, too_short
from nbody.integrators.collisions.span import Span, Watcher
from nbody.integrators.facts import FLOAT64_ON_CPU, SchemeFacts, no_notes
from nbody.integrators.few_bodies import components, few, per_c2, shortest_time
from nbody.integrators.integrator import Motion
from nbody.integrators.tangents import Tangents, tangent_vectors
from nbody.scenario.values import Group, Positive
from nbody.state import Column
from nbody.state.host import HostState

if TYPE_CHECKING:
    from nbody.integrators.solvers.pair_forces import Attraction
    from nbody.integrators.solvers.watched_steps import WatchedSteps


class IAS15(AdaptiveStep):
    """Planets, encounters and anything else with few bodies. ``dt``, if given, is the longest step."""

    class Options(Group):
        """The options of the scheme.

        Attributes:
            epsilon: the relative size of the last term of the polynomial; a step has h/τ = (5040 ε)^(1/7).
        """

        epsilon: Annotated[Positive, Field(le=1.0)] = 1e-9

    _options: Options

    facts = SchemeFacts(
        order=15, source="Rein & Spiegel 2015; Pham, Rein & Spiegel 2024", lengths="adaptive", adaptive=True,
        evaluations=14, own_forces=True, fields=(POSITIONS, VELOCITIES, POST_NEWTONIAN, MUTUAL), precisions=FLOAT64_ON_CPU,
        tangents=(), accuracies={"epsilon": (1e-5, 1e-7, 1e-9)}, notes=few,
        columns=(
            Column("polynomial", 21), Column("prediction", 21), Column("lost_position", 3), Column("lost_velocity", 3),
        ),
    )  # fmt: skip

    _watched: "WatchedSteps | None" = None
    _begin, _growth, _records = np.zeros((3, 3, 0)), np.zeros((1, 2, 0, 5)), np.zeros((0, 0))
    """Positions, velocities and accelerations at the beginning of the last step, and the numbers of tangent vectors; and the
    steps that were noted."""

    def _with_columns_of(self, tangents: Tangents) -> SchemeFacts:
        # With sums for them too; the loop then takes no notes.
        own, rows = IAS15.facts.columns, 1 + tangents.count
        columns = (each._replace(width=int(each.width) * rows) for each in own)
        return self.facts._replace(columns=(*columns, *tangents.columns), notes=no_notes)

    def prepare(self, motion: Motion, contacts: bool = False) -> None:
        super().prepare(motion, contacts)
        self._begin = np.zeros((3, 3 + 3 * self._tangents.count, motion.state.count))
        self._growth = np.zeros((1, 2, 0, 5))

    def start(self, motion: Motion) -> None:
        # A first step, which is repeated if it turns out too long.
        self._growth = first_growth(motion.host, self._tangents)
        scale = min(shortest_time(motion), float(field_times(motion)[0]))
        first = 0.01 * scale if math.isfinite(scale) else 1.0  # no force acts: any step is right
        self._clock[:] = 0.0, UNKNOWN, 0.0, min(self.dt, first)

    def _return(self, motion: Motion, until: float) -> int:
        return 0  # the kernel shows any time within the last step

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        from nbody.integrators.solvers.radau import RadauStep, StepLimits, steps_for

        state, n, clock = motion.host, motion.state.count, self._clock
        if clock[LENGTH] == UNKNOWN:
            self._begin[0], self._begin[1] = (each[0] for each in rows_of(state, self._tangents))
            clock[BEGIN], clock[LENGTH], clock[END] = state.clock.time, 0.0, state.clock.time
        x, v = np.empty((2, 3 + 3 * self._tangents.count, n))
        sums = sums_of(state, 1)
        eta = (5040 * self._options.epsilon) ** (1 / 7)
        forces, law = self._forces_on(motion)
        watched = self._watched
        if watched is None and len(state.clock.notes.times):
            watched = self._watching(motion, np.empty(0))
            self._records = watched.records
        kernels = steps_for if watched is None else watched.steps_for
        done, good = kernels(*forces)(
            x, v, law,
            RadauStep(self._begin, clock, sums[0][0], sums[1][0], sums[2][0], sums[3][0], self._growth[0]),
            StepLimits(float(until), math.inf, steps, self.dt, eta),
        )  # fmt: skip
        shown = math.inf if self._watched is not None and self._watched.span is not None else until
        self._count(motion, done, max(clock[BEGIN], min(clock[END], shown)))
        show(state, x[None], v[None], sums, self._tangents, self._growth)
        if not good:
            raise too_short(motion, clock[NEXT], "a softening")

    def _forces_on(self, motion: Motion) -> tuple[tuple[str, tuple[Term, ...], int], "Attraction"]:
        """The forces, as :func:`.steps_for` names them, and their numbers."""
        from nbody.integrators.solvers.pair_forces import Attraction

        state, gravity = motion.host, motion.engine.gravity
        kind, terms, more = forces_of(motion, state.count, self._tangents)
        return (kind, terms, state.dimensions), Attraction(state.mass, gravity.G, gravity.length2, more)

    def show_noted(
        self, motion: Motion, steps: np.ndarray, times: np.ndarray, ends: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        from nbody.integrators.solvers.radau import StepLimits, steps_for
        from nbody.integrators.solvers.watched_steps import recorded

        forces, law = self._forces_on(motion)
        show, found = steps_for(*forces), np.empty((2, len(times), 3, motion.state.count))
        for k, (step, time) in enumerate(zip(steps, times.tolist(), strict=True)):
            limits = StepLimits(time, math.inf, 0, self.dt, 1.0)
            show(found[0, k], found[1, k], law, recorded(self._records[step], motion.state.count), limits)
        x, v = found.transpose(0, 1, 3, 2)[..., : motion.state.dimensions]
        return x, v

    def _advance_to_contact(self, motion: Motion, steps: int, until: float, watcher: Watcher) -> Span | None:
        # In the compiled loop.
        self._watched = self._watching(motion, watcher.radii, watcher.ends_steps)
        try:
            self._advance(motion, steps, until)
            span = self._watched.span
            return span and span._replace(show=partial(self._shown, motion) if watcher.ends_steps else None)
        finally:
            self._watched = None

    @staticmethod
    def _watching(motion: Motion, radii: np.ndarray, ends: bool = False) -> "WatchedSteps":
        from nbody.integrators.solvers.watched_steps import WatchedSteps

        return WatchedSteps(radii, motion.state.clock.moment.within, ends, motion.state.clock.notes)

    def arrays(self) -> dict[str, np.ndarray]:
        """The clock, and the bodies at the beginning of the last step."""
        return super().arrays() | {"begin": self._begin} | grown(self._growth)

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        if "clock" in arrays:
            super().restore(arrays)
            self._begin, self._growth = arrays["begin"].copy(), restored_growth(arrays, self._tangents)
        else:  # nbody 0.2: the bodies are at the end of a step
            self._clock[:] = 0.0, UNKNOWN, 0.0, arrays["next_step"][0]


def field_times(motion: Motion, systems: int = 1) -> np.ndarray:
    """The shortest time scale of external fields on each system, √(|x|/|a|) or |v|/|a|; infinity without any, or where they
    vanish."""
    state, fields = motion.host, fields_of(motion.engine)
    if fields is None or not fields.terms:
        return np.full(systems, math.inf)
    x, v = (rows.astype(np.float64) for rows in (state.position, state.velocity))
    a, distance, speed = (np.linalg.norm(rows, axis=1) for rows in (fields.at(x, state.clock.time, v, state.mass)[0], x, v))
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.fmin(np.where(distance > 0, np.sqrt(distance / a), np.inf), np.where(speed > 0, speed / a, np.inf))
    return np.fmin.reduce(times.reshape(systems, -1), axis=1, initial=np.inf)  # type: ignore[no-any-return]


def sums_of(state: HostState, systems: int) -> list[np.ndarray]:
    """The columns of a state as the arrays ``b, e, lost_x, lost_v`` of a :class:`.RadauStep`, with a first axis for the
    systems."""
    n = state.count // systems
    found = [
        np.ascontiguousarray(rows.reshape(systems, n, -1, 7).transpose(0, 3, 2, 1)).reshape(systems, 7, -1)
        for rows in state.values("polynomial", "prediction", copy=False)
    ]
    for rows in state.values("lost_position", "lost_velocity", copy=False):
        found.append(np.ascontiguousarray(rows.reshape(systems, n, -1).transpose(0, 2, 1)))
    return found


def show(
    state: HostState, x: np.ndarray, v: np.ndarray, sums: list[np.ndarray], tangents: Tangents, growth: np.ndarray
) -> None:
    """Let the state be the bodies at positions and velocities, (S, 3 + 3M, n) each with the tangent vectors, with the sums
    of :func:`sums_of`."""
    (systems, rows, n), D = x.shape, state.dimensions
    state.position[...], state.velocity[...] = (each.transpose(0, 2, 1)[..., :D].reshape(-1, D) for each in (x, v))
    for name, own in zip(("polynomial", "prediction"), sums, strict=False):
        state.column(name)[...] = own.reshape(systems, 7, rows, n).transpose(0, 3, 2, 1).reshape(-1, 7 * rows)
    for name, own in zip(("lost_position", "lost_velocity"), sums[2:], strict=True):
        state.column(name)[...] = own.transpose(0, 2, 1).reshape(-1, rows)
    with tangent_vectors(state, tangents.count, systems) as vectors:
        for c, each in enumerate((x, v)):
            vectors[:, :, c] = each[:, 3:].reshape(systems, -1, 3, n)
    tangents.numbers[...] = growth[:, 1]
    state.invalidate()


# --- Tangent vectors, which are further rows of the arrays ---


def forces_of(motion: Motion, n: int, tangents: Tangents) -> tuple[str, tuple[Term, ...], np.ndarray]:
    """The kind of the forces on n bodies, the fields, and the further numbers: see :func:`.pair_forces.accelerations_of`."""
    from nbody.integrators.solvers.pair_forces import RELATIVITY, VARIED

    law, fields = motion.engine.gravity.softening, fields_of(motion.engine)
    if tangents.count:
        return law + VARIED, (), tangents.masses
    if fields is None:
        return law, (), np.empty(0)
    if fields.velocity_field is None:
        return law, fields.terms, fields.parameters
    more = np.full(1 + 4 * n, per_c2(motion))
    if fields.terms:
        more = np.vstack([fields.parameters, np.full(fields.parameters.shape[1], more[0])])
    return law + RELATIVITY[fields.velocity_field.kind], fields.terms, more


def first_growth(state: HostState, tangents: Tangents) -> np.ndarray:
    """Let tangent vectors begin; returns their numbers, (S, 2, M, 5): at the beginning of the last step, and now."""
    tangents.begin(state)
    return np.repeat(tangents.numbers[:, None], 2, axis=1)


def rows_of(state: HostState, tangents: Tangents, systems: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities, (S, 3 + 3M, n) each, with those of the tangent vectors."""
    with tangent_vectors(state, tangents.count, systems) as vectors:
        shape = systems, -1, state.count // systems
        of_bodies = (
            components(rows).reshape(3, systems, -1).transpose(1, 0, 2) for rows in (state.position, state.velocity)
        )
        x, v = (np.concatenate([rows, vectors[:, :, c].reshape(shape)], axis=1) for c, rows in enumerate(of_bodies))
    return x, v


def grown(growth: np.ndarray) -> dict[str, np.ndarray]:
    """What a checkpoint keeps of these numbers."""
    return {"begun_growth": growth} if growth.size else {}


def restored_growth(arrays: Mapping[str, np.ndarray], tangents: Tangents) -> np.ndarray:
    """The numbers that :func:`grown` returned."""
    return arrays["begun_growth"].copy() if tangents.numbers.size else np.zeros((len(tangents.numbers), 2, 0, 5))
