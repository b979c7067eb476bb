"""The stepper: bodies, an engine and a scheme that moves them. It knows nothing of files, terminals or energies."""

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from nbody.diagnostics.observables import columns_of
from nbody.errors import InputError, RunFailed
from nbody.events.bodies import Bodies
from nbody.integrators.collisions.span import Span
from nbody.integrators.integrator import FixedStep, Motion
from nbody.particles import Particles
from nbody.run.choice import scheme_of
from nbody.run.schedule import FOREVER, require_countable, same_time, steps_within
from nbody.run.setup import Setup
from nbody.state import Frame, Moment, State, StateClock

if TYPE_CHECKING:
    from nbody.integrators.collisions.collisions import Collisions

OWN = "integrator."
"""The prefix of the scheme's arrays in a checkpoint."""

STEPS_PER_CALL = 10_000
"""The most steps of :meth:`Stepper.step` between two moments at which Ctrl-C is heard."""


class StepWatch(Protocol):
    """Looks at every step that a stepper makes."""

    def advance(self, steps: int, until: float) -> None:
        """Let the stepper :meth:`~Stepper.make` steps, one by one."""

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint keeps, without a copy."""

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore what :meth:`arrays` returned."""


class Stepper:
    """Moves the bodies of one run.

    Args:
        setup: what the run is.
        collisions: those of the stepper of which this one is a copy.

    Attributes:
        scheme: what makes the steps.
        motion: the engine and the state, which another one replaces when bodies merge.
        collisions: which bodies are left; None if the run does not look for collisions.
        events: the collisions that nobody has taken yet.
        watch: looks at every step; None if nothing does.
        begun: True once the scheme has prepared its first step, here or in an earlier process.
        within_a_step: True after an error, or a second Ctrl-C, has ended a step between two pieces of a force.
    """

    def __init__(self, setup: Setup, collisions: "Collisions | None" = None) -> None:
        self._setup, self.integrator = setup, setup.integrator
        self.begun = self.within_a_step = False
        self.events: list[np.ndarray] = []
        self._rows: np.ndarray | None = None  # those of an earlier beginning
        self.collisions = collisions
        if collisions is None and setup.scenario.collisions is not None:
            self.collisions = _collisions(setup)
        self.watch: StepWatch | None = None
        self._known: tuple[Motion | None, Particles] = None, setup.bodies
        self.motion = self._prepared(self._at_the_beginning, self._first_moment)

    @property
    def state(self) -> State:
        """What is moved."""
        return self.motion.state

    @property
    def clock(self) -> StateClock:
        """The step and the time of the state."""
        return self.motion.state.clock

    @property
    def moment(self) -> Moment:
        """Where the run is."""
        return self.motion.state.clock.moment

    @property
    def moved(self) -> bool:
        """True if steps were made."""
        return self.clock.step != self._setup.bodies.step

    @property
    def packs_frames(self) -> bool:
        """True if the step to a frame can be made together with it, and many frames in one call."""
        return self.collisions is None and self.watch is None and isinstance(self.integrator, FixedStep)

    def continue_as(self, setup: Setup) -> None:
        """Be from now on the stepper of a run that begins with the present bodies."""
        self._setup = setup
        if self.collisions is not None:
            frames, self.collisions = self.state.frames, _collisions(setup)
            self._rows, frames.slots = frames.rows, None

    # --- Steps ---

    def begin(self) -> None:
        """Prepare the first step, unless that is done."""
        if self.begun:
            return
        with np.errstate(all="ignore"):  # what is not finite is found in the first frame
            if self._setup.measures_forces:
                self.motion.evaluate()  # the file says how accurate they are; a run without a file has the same bits
            self.integrator.start(self.motion)
        self.begun = True

    def step(self, n: int) -> None:
        """Make ``n`` steps."""
        self.begin()
        for made in range(0, n, STEPS_PER_CALL):
            self.advance(min(STEPS_PER_CALL, n - made))

    def advance(self, steps: int, until: float = math.inf) -> int:
        """Make at most ``steps`` steps, to the time ``until`` at the latest; after one in which bodies touch, or the watch
        asks for it, no more. Returns their number."""
        begun = self.motion.state.clock.step
        (self.make if self.watch is None else self.watch.advance)(steps, until)
        return self.motion.state.clock.step - begun

    def make(self, steps: int, until: float = math.inf) -> bool:
        """The same without the watch. Returns True if bodies touch in the last step."""
        self.within_a_step = True
        with np.errstate(all="ignore"):  # numbers that go wrong stop the run at its next frame
            span = self.integrator.advance(self.motion, steps, until, self.collisions)
            if span is not None:
                self._resolve(span)
        self.within_a_step = False
        return span is not None

    def frames(self, count: int, every: int) -> list[Frame]:
        """Make ``count`` frames, each ``every`` steps after the one before, if the stepper :attr:`packs_frames`."""
        self.within_a_step = True
        with np.errstate(all="ignore"):
            found = cast(FixedStep, self.integrator).frames(self.motion, count, every)
        self.within_a_step = False
        return found

    def frame(self) -> Frame:
        """The bodies at this moment."""
        with np.errstate(all="ignore"):
            frame = _frame_of(self.motion)
        of_mergers = self.collisions.numbers() if self.collisions is not None else {}
        frame.observables = {**self.integrator.report(self.motion).observed, **of_mergers}
        return frame

    def first_frame(self) -> Frame:
        """The bodies at the beginning, from a state of their own."""
        with np.errstate(all="ignore"):
            return _frame_of(self._loaded(self._at_the_beginning, self._first_moment))

    # --- Bodies ---

    def particles(self) -> Particles:
        """The bodies at this moment, as copies on the host in float64. Before the first step they have the digits that were
        given, whatever the precision of the run."""
        bodies, (state, clock) = self._setup.bodies, (self.state, self.clock)
        position, velocity = self.vectors()
        if self.collisions is not None and self.moved:
            return self.collisions.particles(position, velocity, clock.time, clock.step)
        if not self.moved:
            pairs = (bodies.position, position), (bodies.velocity, velocity)
            position, velocity = (
                given.copy() if np.array_equal(given.astype(state.dtype).astype(np.float64), now) else now
                for given, now in pairs
            )
        now = copy(bodies)  # which were checked when they were made
        now.mass, now.radius = bodies.mass.copy(), bodies.radius.copy()
        now.id, now.species = bodies.id.copy(), bodies.species.copy()
        now.position, now.velocity, now.time, now.step = position, velocity, clock.time, clock.step
        return now

    def at(self, time: float) -> Particles:
        """The bodies at a time within the last step, or later, from a copy that makes the steps; see
        :meth:`nbody.run.simulation.Simulation.at`."""
        other = self.copy()
        with np.errstate(all="ignore"):
            earliest = other.reach(time)
        if not same_time(other.clock.time, time):
            raise InputError(
                f"at: {time:g} is before t = {earliest:g}, the earliest time that can be shown now; see Trajectory.at"
            )
        x, v = other.vectors()
        return replace(self.particles(), position=x, velocity=v, time=float(time), step=other.clock.step)

    def copy(self) -> "Stepper":
        """A stepper that goes on from here without this one. It shares the collisions, and must not look for any."""
        scheme = scheme_of(self._setup.scenario, self._setup.scenario.integrator.dt)
        other = Stepper(self._setup.with_integrator(scheme), self.collisions)
        if self.begun:
            other.go_back(self.arrays(), self.moment)
        else:
            with np.errstate(all="ignore"):
                scheme.start(other.motion)
        return other

    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities, (N, D) each, as copies on the host in float64."""
        x, v = self.state.values("position", "velocity")
        return x.astype(np.float64, copy=False), v.astype(np.float64, copy=False)

    def bodies(self) -> Bodies:
        """The bodies as events look at them."""
        if self._known[0] is not self.motion:
            self._known = self.motion, self.particles()
        return Bodies(self.clock.time, *self.vectors(), self._known[1], self._setup.scenario.gravity)

    def reach(self, time: float) -> float:
        """Move to a time, without looking for collisions. Returns the earliest time that could be reached."""
        scheme, motion, begun = self.integrator, self.motion, self.clock.time
        if scheme.facts.adaptive:
            scheme.advance(motion, FOREVER, time)
            return self.clock.time  # if that is later, the beginning of the last step
        first = begun - (scheme.dt if self.moved else 0.0)
        require_countable("at: ", time - begun, scheme.dt)
        if (whole := steps_within(time - begun, scheme.dt, time)) > 0:
            scheme.advance(motion, whole)
        if time >= first and not same_time(self.clock.time, time):
            self._part_of_a_step(time)
        return first

    def _part_of_a_step(self, time: float) -> None:
        """Make one step to ``time``, forward or back, by a scheme of fixed steps."""
        now = self.moment
        scheme = scheme_of(self._setup.scenario, time - now.time)
        self.clock.set(Moment(0, now.time, now.time))
        scheme.prepare(self.motion, self.collisions is not None)
        scheme.start(self.motion)
        scheme.advance(self.motion, 1)
        self.clock.set(Moment(now.step, self.clock.time, now.time))

    # --- Checkpoints ---

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a bit-exact resume needs, as copies: the state's columns, and the arrays of the scheme and of
        collisions."""
        own = {OWN + name: array for name, array in self.integrator.arrays().items()}
        own |= self.collisions.arrays() if self.collisions else {}
        own |= self.watch.arrays() if self.watch else {}
        return self.state.arrays() | {name: array.copy() for name, array in own.items()}

    def restore(self, arrays: Mapping[str, np.ndarray], moment: Moment, events: int = 0) -> None:
        """Go back to the ``moment`` at which :meth:`arrays` was called. ``events``: the number of collisions before it.
        Raises LookupError, TypeError, ValueError: these are not arrays of such a run."""
        if self.collisions is not None:
            _require_like(arrays, self.collisions.arrays())
            self.collisions.restore(arrays, events)
            self.motion = self._prepared(self._at_the_beginning, self._first_moment)
        _require_like(arrays, self.arrays())
        self.go_back(arrays, moment._replace(origin=self.clock.origin))
        if self.watch is not None:
            self.watch.restore(arrays)

    def go_back(self, arrays: Mapping[str, np.ndarray], moment: Moment) -> None:
        """The same for the bodies alone, if none have merged since."""
        self.state.restore(dict(arrays))
        self.integrator.restore({name.removeprefix(OWN): a for name, a in arrays.items() if name.startswith(OWN)})
        self.clock.set(moment)
        self.begun = True

    # --- States ---

    @property
    def _at_the_beginning(self) -> Particles:
        """The bodies that are left, where they were at the beginning."""
        return self._setup.bodies if self.collisions is None else self.collisions.starting()

    @property
    def _first_moment(self) -> Moment:
        bodies, scheme = self._setup.bodies, self.integrator
        before = 0.0 if scheme.facts.adaptive else bodies.step * scheme.dt  # so that its time is that of its step
        return Moment(bodies.step, bodies.time, bodies.time - before)

    def _loaded(self, bodies: Particles, moment: Moment) -> Motion:
        """Bodies that are brought to the engine, at a moment."""
        setup = self._setup
        motion = Motion(setup.engine, setup.engine.load(bodies))
        frames = motion.state.frames
        frames.slots = slots = self.collisions.present if self.collisions else None
        frames.rows = self._rows if slots is None else slots.rows if self._rows is None else slots.rows[self._rows]
        motion.state.clock.set(moment)
        columns = columns_of(setup.scenario.record.observables or ())
        frames.request(columns - {"potential"} if setup.scenario.fields else columns, bodies)  # it includes the fields'
        return motion

    def _prepared(self, bodies: Particles, moment: Moment) -> Motion:
        """The same, ready for the scheme."""
        motion = self._loaded(bodies, moment)
        self.integrator.prepare(motion, self.collisions is not None)
        return motion

    def _resolve(self, span: Span) -> None:
        """Act on a step in which bodies touch. If some have merged, the others go on in another state."""
        assert self.collisions is not None
        state, collisions = self.state, self.collisions
        if collisions.merges:
            x, v = state.values("position", "velocity")
            span = span._replace(x1=x, v1=v)
        events, left = collisions.resolve(span, state.clock.step, first=span.begin == self._setup.bodies.time)
        self.events.append(events)
        if left is None:
            return
        try:
            motion = self._prepared(left, self.moment)
            self.integrator.start(motion)
        except InputError as error:
            raise RunFailed(f"step {state.clock.step}: after a merger the scheme can't go on: {error}") from None
        motion.state.progress.take_over(state.progress)
        self.motion = motion


def _frame_of(motion: Motion) -> Frame:
    motion.evaluate(motion.state.frames.outputs)
    return motion.state.frames.snapshot()


def _collisions(setup: Setup) -> "Collisions":
    """The collisions of a run that begins."""
    from nbody.integrators.collisions.collisions import Collisions  # imports Numba

    scenario, bodies, fields = setup.scenario, setup.bodies, setup.plan.fields
    assert scenario.collisions is not None
    fields = fields if fields is not None and fields.functions else None
    return Collisions(bodies, bodies.radius, scenario.collisions.rule, scenario.gravity, fields)


def _require_like(arrays: Mapping[str, np.ndarray], own: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError if an array has not the dtype and shape of the one with its name in ``own``."""
    for name in arrays.keys() & own.keys():
        found, expected = arrays[name], own[name]
        if (found.dtype, found.shape) != (expected.dtype, expected.shape):
            stated, needed = (f"{each.dtype} {each.shape}" for each in (found, expected))
            raise ValueError(f"the checkpoint's {name} is {stated}, and the run has {needed}")
