"""The interface of an integrator, and the base class of schemes with a fixed time step."""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nbody.diagnostics.observables import OF_TANGENTS
from nbody.errors import InputError
from nbody.fields.field import MUTUAL, POSITIONS, POST_NEWTONIAN, VELOCITIES, Field, VelocityField
from nbody.forces.engine import Engine
from nbody.forces.problem import Problem, Refusal, SchemeProblem
from nbody.integrators.collisions.span import Span, Watcher
from nbody.integrators.facts import SchemeFacts, SchemeReport
from nbody.integrators.tangents import Tangents, tangent_vectors
from nbody.law import LAWS, Gravity
from nbody.scenario.values import Group
from nbody.state import Frame, Outputs, State
from nbody.state.host import HostState

UNSOFTENED = "write 'softening: none'"


class Motion(NamedTuple):
    """A state, and the engine that computes the forces on it."""

    engine: Engine
    state: State

    @property
    def host(self) -> HostState:
        """The state, for schemes that work in host memory."""
        assert isinstance(self.state, HostState)
        return self.state

    def evaluate(self, outputs: Outputs = Outputs.ACCELERATION) -> None:
        """Compute ``outputs`` for the present positions, unless they are current."""
        self.engine.evaluate(self.state, outputs)


class Integrator(ABC):
    """A scheme with its options. Numbers that it needs from step to step are columns of the state, and :meth:`arrays`.

    Args:
        dt: the time step in the scenario's unit of time; the largest time step if the scheme is adaptive, infinity if None.
        options: an instance of ``Options``.
        tangents: vectors that are moved with the bodies, from the beginning of a run on; by default none.

    Raises:
        InputError: ``dt`` is missing, and the scheme is not adaptive.
    """

    class Options(Group):
        """The scheme's own keys in a scenario's ``integrator``: none."""

    facts: SchemeFacts

    def __init__(self, dt: float | None, options: Group | None = None, tangents: Tangents | None = None) -> None:
        self._options = options or self.Options()
        if dt is None and not self.facts.adaptive:
            raise InputError("is missing; this scheme makes steps of one length, as in 'dt: 0.001', or Simulation(dt=0.001)")
        self.dt: float = math.inf if dt is None else dt
        self._tangents = tangents or Tangents()
        if tangents:
            self.facts = self._with_columns_of(tangents)

    def _with_columns_of(self, tangents: Tangents) -> SchemeFacts:
        """The facts of the scheme that moves these, too."""
        return self.facts._replace(columns=(*self.facts.columns, *tangents.columns))

    def _vectors(self, motion: Motion) -> np.ndarray:
        """The tangent vectors at this moment, (M, 2, 3, n), a copy."""
        with tangent_vectors(motion.host, self._tangents.count) as found:
            return found[0].copy()  # type: ignore[no-any-return]

    @classmethod
    def supports(cls, engine: type[Engine] | Engine, problem: Problem) -> str:
        """Why the scheme cannot run with an engine that supports a problem, in one clause; empty if it can. The clause calls
        it "this scheme"; a :class:`~nbody.forces.problem.Refusal` says how to mend it."""
        facts, law, device = cls.facts, problem.gravity, engine.can.device
        if facts.precisions and device not in facts.precisions:
            return f"this scheme {'computes its own forces,' if facts.own_forces else 'works'} on the CPU"
        if problem.precision not in (offered := facts.precisions.get(device, (problem.precision,))):
            able = " or ".join(offered)
            reason = f"this scheme computes in {able} on the {device.upper()}"
            return Refusal(reason, "precision", f"choose precision {able}")
        if problem.systems:
            return "this scheme moves one system, not an ensemble"
        if reason := cls._misses(problem.of_scheme.fields, law) or cls._one_way(problem.of_scheme):
            return reason
        if problem.of_scheme.tangents and facts.tangents is None:
            reason = f"this scheme has no variational equations, which {' and '.join(OF_TANGENTS)} need"
            return Refusal(reason, "record.observables", "remove them")
        if problem.of_scheme.tangents and any(
            field.kind not in (facts.tangents or ()) for field in problem.of_scheme.fields
        ):
            reason = "the variational equations of this scheme know no external fields"
            return Refusal(reason, "record.observables", f"remove {' and '.join(OF_TANGENTS)}")
        if facts.softened and not LAWS.load(law.softening).needs_length:
            able = " or ".join(name for name in LAWS if LAWS.load(name).needs_length)
            reason = "the steps of this scheme follow from a softening length"
            return Refusal(reason, "gravity.softening", f"write 'softening: {able}'")
        if facts.star and law.softening != "none":
            return Refusal("orbits about the star are not softened", "gravity.softening", UNSOFTENED)
        if not facts.own_forces:
            return ""
        if law.per_species:
            reason = "this scheme computes the forces itself, with one softening length for all bodies"
            return Refusal(reason, "gravity.length", "give one length")
        if problem.ranks > 1:
            return "this scheme computes its own forces in one process, and does not divide them over ranks"
        return ""

    @classmethod
    def _one_way(cls, asked: SchemeProblem) -> str:
        """Why a run cannot go back in time; empty if it can, or goes forward. A table of moves makes steps of a negative
        length. For other schemes the velocities are turned round, which gives the same orbits if the forces depend on
        positions alone, or on even powers of velocities."""
        if not asked.backward:
            return ""
        if asked.collisions:
            return Refusal("collisions are looked for in runs that go forward in time", "collisions", "remove 'collisions'")
        one_way = [each for each in asked.fields if each.kind == VELOCITIES or getattr(each, "time_dependent", False)]
        if one_way and not cls.facts.moves:
            reason = f"this scheme goes back in time without {one_way[0].title}, which depends on the time or on velocities"
            return Refusal(reason, "fields", "remove 'fields'" if len(asked.fields) == 1 else "remove one of them")
        return ""

    @classmethod
    def _misses(cls, fields: Sequence[Field | VelocityField], law: Gravity) -> str:
        """Why the scheme cannot compute external fields; empty if it can."""
        relativity = [field.kind for field in fields if field.kind in (POST_NEWTONIAN, MUTUAL)]
        if relativity and POST_NEWTONIAN in cls.facts.fields:
            if relativity[0] not in cls.facts.fields:
                return Refusal("this scheme knows the 1PN term of the heaviest body alone", "fields", "remove 'by: all'")
            if len(fields) > 1 and relativity[0] == MUTUAL:
                reason = "post_newtonian of all bodies cannot be combined with other fields"
                return Refusal(reason, "fields", "remove one of them, or 'by: all'")
            if law.softening != "none":
                return Refusal("post_newtonian is not softened", "gravity.softening", UNSOFTENED)
        known = (*cls.facts.fields, *(() if cls.facts.own_forces else (POSITIONS,)))
        for field in fields:
            if field.kind in known:
                continue
            if POSITIONS not in known and isinstance(field, Field):
                reason = "this scheme computes the forces itself, and knows no external fields"
            else:
                title = field.title if isinstance(field, Field) else "post_newtonian"
                reason = f"{title} depends on the velocities, and this scheme kicks bodies at given positions"
            return Refusal(reason, "fields", "remove 'fields'" if len(fields) == 1 else "remove one of them")
        return ""

    def prepare(self, motion: Motion, contacts: bool = False) -> None:
        """Add the scheme's columns to the state; ``contacts``: the run looks for collisions. Raises InputError if the engine
        does not offer what the scheme needs."""
        engine = motion.engine
        if reason := unsupported(type(self), engine, engine.gravity, engine.precision):
            raise InputError(f"scheme: {reason}")
        motion.state.add(*self.facts.columns)

    def start(self, motion: Motion) -> None:  # noqa: B027  (nothing to do for most)
        """Called before the first step of a run, not when a run is resumed; and before a single step of another length:
        ``dt`` is it then, and no run goes on from there."""

    def advance(self, motion: Motion, steps: int, until: float = math.inf, watcher: Watcher | None = None) -> Span | None:
        """Make at most ``steps`` steps. The state becomes the bodies at the end of the last one, or at the time ``until`` if
        that is earlier: if ``until`` lies within the last step that an adaptive scheme has made, within that step; if it is
        earlier still, at the earliest time that the scheme can show.

        When the bodies are shown does not change the steps: a step that goes beyond ``until`` is counted when it begins, and
        not cut.

        With a watcher stop after a step in which two bodies touch, and return that step; None if there was none. (The bodies
        are then copied to the host after each step.) A step that goes beyond ``until`` is looked at by the call that makes
        the rest of it. If bodies merge, all of them are at its end.
        """
        steps += self._return(motion, until)
        if watcher is not None:
            return self._advance_to_contact(motion, steps, until, watcher)
        self._advance(motion, steps, until)
        return None

    def _return(self, motion: Motion, until: float) -> int:
        """If the bodies are within a step, or ``until`` lies within the last one, bring them back to its beginning and count
        it no longer. Returns the number of steps to make again."""
        return 0

    def show_noted(
        self, motion: Motion, steps: np.ndarray, times: np.ndarray, ends: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The bodies at (n,) times within (n,) of the steps that were noted last: positions and velocities, (n, N, D) each.
        ``ends``: the times, positions and velocities at the ends of these steps. None if each needs a single step."""
        return None

    @abstractmethod
    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        """Make steps from the end of one, as :meth:`advance` does without a watcher."""

    def _advance_to_contact(self, motion: Motion, steps: int, until: float, watcher: Watcher) -> Span | None:
        state = motion.state
        x, v = state.values("position", "velocity")
        while steps > 0 and state.clock.time < until:
            made, begin, (x0, v0) = state.clock.step, state.clock.time, (x, v)
            self._advance(motion, 1, until)
            if state.clock.moment.within:
                return None
            x, v = state.values("position", "velocity")
            span = Span(x0, v0, x, v, begin, state.clock.time, self.facts.star)
            if watcher.touching(span):
                return span
            steps -= state.clock.step - made
        return None

    def report(self, motion: Motion) -> SchemeReport:
        """What the run shows and records of the steps so far."""
        evaluations = self.facts.evaluations
        pairs, bodies = evaluations * motion.engine.work(motion.state), float(evaluations * motion.state.count)
        vectors = self._vectors(motion) if self._tangents.given is not None else None
        return SchemeReport(pairs, bodies, observed=self._tangents.observed(), vectors=vectors)

    def arrays(self) -> dict[str, np.ndarray]:
        """Numbers that the scheme needs from step to step besides its columns, without a copy: a checkpoint copies them
        (:meth:`nbody.run.stepper.Stepper.arrays`)."""
        return self._tangents.arrays()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore the numbers that :meth:`arrays` returned."""
        self._tangents.restore(arrays)


def unsupported(
    scheme: type[Integrator], engine: type[Engine] | Engine, gravity: Gravity, precision: str, **more: Any
) -> str:
    """Why a scheme and an engine cannot be combined for what is asked, in one clause; empty if they can. ``more``: values of
    the :class:`~nbody.forces.problem.Problem`."""
    asked = scheme.facts.problem(gravity, precision)._replace(**more)
    return scheme.supports(engine, asked) or engine.supports(asked)


class FixedStep(Integrator):
    """A scheme whose steps have one length. If it makes the same moves in every step, a device may record steps and replay
    them."""

    @abstractmethod
    def _make(self, motion: Motion, steps: int, every: int = 1, packings: Sequence[Any] = ()) -> None:
        """Make steps, each followed by the move ``end``. With ``packings`` every ``every``-th is that to a frame: then
        ``state.frames.outputs`` are current, and the next packing, unless it is None, is the value of a move ``pack``."""

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        # ``until`` is ignored, since the run's schedule counts steps.
        clock = motion.state.clock
        clock.begin_steps(self.dt)
        motion.state.moves.repeats.make(lambda count: self._make(motion, count), steps, key=self._key(0))
        clock.count_steps(steps, self.dt)

    def frames(self, motion: Motion, count: int = 1, every: int = 1) -> list[Frame]:
        """Make ``count`` frames, at most :func:`~nbody.state.frames_per_block`, each ``every`` steps after the last one."""
        clock = motion.state.clock

        def make(packings: Sequence[Any]) -> None:
            self._make(motion, every * len(packings), every, packings)

        clock.begin_steps(self.dt)
        found = motion.state.frames.snapshots(make, count, key=self._key(every))
        clock.count_steps(count * every, self.dt)
        return found

    def _key(self, every: int) -> Hashable:
        """What names steps that make the same moves; None if no two do."""
        return (type(self), self.dt, every)
