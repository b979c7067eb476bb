"""The stepper: bodies, an engine and a scheme that moves them. It knows nothing of files, terminals or energies."""

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from nbody.diagnostics.observables import OF_TANGENTS, columns_of
from nbody.errors import InputError, RunFailed
from nbody.events.bodies import Bodies
from nbody.forces.layers.fields import fields_of
from nbody.forces.problem import SchemeProblem
from nbody.integrators.collisions.span import Span
from nbody.integrators.integrator import FixedStep, Motion, unsupported
from nbody.particles import Particles
from nbody.run.changes import WritableParticles
from nbody.run.choice import tangents_of
from nbody.run.setup import Setup
from nbody.state import Frame, Moment, Slots, State, StateClock
from nbody.trajectory.structure.layout import ADDED, REMOVED
from nbody.trajectory.writing.checkpoint import require_like

if TYPE_CHECKING:
    from nbody.integrators.collisions.collisions import Collisions
    from nbody.integrators.roster import Roster
    from nbody.run.event_watch import EventWatch

OWN = "integrator."
"""The prefix of the scheme's arrays in a checkpoint."""

MOST_PAIRS = 2**24
"""The most pairs that are summed on the host for the energy of a change (0.3 s); with more the engine computes it."""


class Stepper:
    """Moves the bodies of one run.

    Args:
        setup: what the run is.
        original: the stepper of which this one is a copy.

    Attributes:
        setup: what the run is: another one when it turns round, or begins again.
        integrator: what makes the steps.
        motion: the engine and the state, which another one replaces when bodies merge or change.
        roster: which bodies are there; None if they are those of the beginning, and the run does not look for collisions.
        collisions: finds contacts; None if the run does not look for them.
        events: the collisions and changes that nobody has taken yet.
        watch: looks for events in every step; None if there are none to look for.
        cut: a copy within the last step, if bodies have bounced in it and a watch looks: where it would have gone on.
        begun: True once the scheme has prepared its first step, here or in an earlier process.
        writable: the present particles, into which the user may write.
        within_a_step: True after an error, or a second Ctrl-C, has ended a step between two pieces of a force.
    """

    def __init__(self, setup: Setup, original: "Stepper | None" = None) -> None:
        self.setup, self.integrator = setup, setup.integrator
        self.begun = self.within_a_step = False
        self.events: list[np.ndarray] = []
        self.writable = WritableParticles(self)
        self.watch: EventWatch | None = None
        self.cut: Stepper | None = None
        self._known: tuple[Motion | None, np.ndarray | None, np.ndarray | None, Particles]
        self._known = None, None, None, setup.bodies
        self.roster: Roster | None = None
        self.collisions: Collisions | None = None
        if original is not None:
            self.roster, self.collisions = original.roster, original.collisions
        else:
            self._look_for_collisions()
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
        return self.motion.state.clock.moment

    @property
    def moved(self) -> bool:
        return self.clock.step != self.setup.bodies.step

    @property
    def packs_frames(self) -> bool:
        """True if the step to a frame can be made together with it, and many frames in one call."""
        changes = self.collisions is not None or self.setup.scenario.escape is not None  # before the frame of a step
        observed = tangents_of(self.setup.scenario)  # by the scheme, after each frame
        return not (changes or observed or self.watch or self.turns) and isinstance(self.integrator, FixedStep)

    @property
    def turns(self) -> bool:
        """True if velocities are turned round during steps: see :meth:`nbody.state.StateMoves.turned`."""
        return self.setup.plan.backward and not self.integrator.facts.moves

    @property
    def sign(self) -> int:
        """-1 if the run goes back in time, else 1."""
        return -1 if self.setup.plan.backward else 1

    @property
    def dt(self) -> float:
        """The length of a step of a scheme with fixed ones, negative if the run goes back in time."""
        return -self.integrator.dt if self.turns else self.integrator.dt

    @property
    def ids(self) -> np.ndarray:
        """The ids that bodies have or had, before the beginning too."""
        return np.union1d(self.setup.used, self.setup.bodies.id) if self.roster is None else self.roster.ids

    def begin_again(self) -> None:
        """Be from now on the stepper of a run that begins with the present bodies."""
        self.events.clear()
        bodies = self.setup.bodies if self.roster is None else self.particles()
        self.setup = self.setup.beginning_with(bodies, self.ids)
        self.roster, self.state.frames.slots, before = None, None, self.collisions
        self._look_for_collisions()
        if self.collisions is not None and before is not None:
            self.collisions.restore(before.arrays())

    # --- Steps ---

    @property
    def turned_at(self) -> dict[str, float]:
        """The ``origin`` of time, for a checkpoint of a run that has changed its direction."""
        origin = self.clock.origin
        return {} if origin == self._first_moment.origin else {"origin": origin}

    def begin(self) -> None:
        """Prepare the first step, unless that is done."""
        if self.begun:
            return
        with np.errstate(all="ignore"):  # what is not finite is found in the first frame
            if self.setup.measures_forces:
                self.motion.evaluate()  # the file says how accurate they are; a run without a file has the same bits
            with self.motion.state.moves.turned(self.turns):
                self.integrator.start(self.motion)
        self.begun = True

    def require_whole(self) -> None:
        """Raise an InputError if a step was broken off, so that no others can be made."""
        if self.within_a_step:
            made = self.clock.step
            raise InputError(f"run: the state is between steps {made} and {made + 1}; make a new simulation")

    def turn(self, setup: Setup) -> None:
        """Go the other way in time from here: ``setup`` is the run with its direction reversed."""
        now, bodies = self.moment, self.particles()
        self.setup, self.integrator = setup, setup.integrator
        origin = now.time - (0.0 if self.integrator.facts.adaptive else now.step * self.dt)
        progress, self.motion = self.state.progress, self._prepared(bodies, Moment(now.step, now.time, origin))
        self.state.progress.take_over(progress)
        self.begun = False

    def advance(self, steps: int, until: float = math.inf) -> int:
        """Make at most ``steps`` steps, to the time ``until`` at the latest (-t in a run that goes back in time);
        after one in which bodies touch, or the watch asks for it, no more. Returns their number."""
        begun = self.motion.state.clock.step
        (self.make if self.watch is None else self.watch.advance)(steps, until)
        return self.motion.state.clock.step - begun

    def make(self, steps: int, until: float = math.inf) -> bool:
        """The same without the watch; 0 steps are the rest of one that is shown partway. Returns True if bodies touch in the
        last step."""
        self.within_a_step = True
        with np.errstate(all="ignore"):  # numbers that go wrong stop the run at its next frame
            with self.motion.state.moves.turned(self.turns):
                span = self.integrator.advance(self.motion, steps, until, self.collisions)
            touched = span is not None and self._resolve(span, until)
        self.within_a_step = False
        return touched

    def frames(self, count: int, every: int) -> list[Frame]:
        """Make ``count`` frames, each ``every`` steps after the one before, if the stepper :attr:`packs_frames`."""
        self.within_a_step = True
        with np.errstate(all="ignore"):
            found = cast(FixedStep, self.integrator).frames(self.motion, count, every)
        self.within_a_step = False
        for frame in found:
            frame.observables = self._booked
        return found

    def frame(self) -> Frame:
        """The bodies at this moment."""
        with np.errstate(all="ignore"):
            frame = _frame_of(self.motion)
        observed = dict(self.integrator.report(self.motion).observed)
        if self.turns and "system_time" in observed:
            observed["system_time"] = -observed["system_time"]
        frame.observables = {**observed, **self._booked}
        return frame

    @property
    def _booked(self) -> dict[str, float]:
        """The number of bodies, and what their changes have added to the energy."""
        if self.roster is None:
            return {}
        collide = self.collisions is not None and self.collisions.changes
        return self.roster.numbers(collide, self.roster.changed or self.setup.scenario.escape is not None)

    def first_frame(self) -> Frame:
        """The bodies at the beginning, from a state of their own."""
        with np.errstate(all="ignore"):
            frame = _frame_of(self._loaded(self.setup.bodies, self._first_moment, None))
        if (fields := fields_of(self.setup.engine)) and fields.about and self.roster is not None:
            fields.settle(self.roster.starting())  # loading has settled them for the bodies of the beginning
        return frame

    # --- Bodies ---

    def particles(self, vectors: tuple[np.ndarray, np.ndarray] | None = None) -> Particles:
        """The bodies at this moment, as copies on the host in float64. Before the first step they have the digits that were
        given, whatever the precision of the run. ``vectors``: what :meth:`vectors` returns, if it is known."""
        bodies, (state, clock) = self.setup.bodies, (self.state, self.clock)
        position, velocity = vectors or self.vectors()
        if self.roster is not None and (self.moved or self.roster.changed):
            return self.roster.particles(position, velocity, clock.time, clock.step)
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

    def copy(self) -> "Stepper":
        """A stepper that goes on from here without this one, and looks for no collisions."""
        other = Stepper(self.setup.with_new_integrator(), self)
        other.collisions = None
        if self.begun:
            other.go_back(self.arrays(), self.moment)
        else:
            other.begin()
        return other

    def vectors(self, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities, (N, D) each, of some rows or of all, as copies on the host in float64."""
        names = "position", "velocity"
        x, v = self.state.values(*names, rows=rows)
        return x.astype(np.float64, copy=False), v.astype(np.float64, copy=False)

    def bodies(self, ids: np.ndarray | None = None) -> Bodies:
        """The bodies as events look at them: those with these ids that are there, or all."""
        if self._known[0] is not self.motion or self._known[1] is not ids:
            now = self.particles()
            rows = None if ids is None else np.flatnonzero(np.isin(now.id, ids))
            self._known = self.motion, ids, rows, now if rows is None else now.rows(rows)
        *_, rows, known = self._known
        return Bodies(self.clock.time, *self.vectors(rows), known, self.setup.scenario.gravity)

    # --- Checkpoints ---

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a bit-exact resume needs, as copies: the state's columns, and the arrays of the scheme, of
        collisions and of the watch."""
        found = self.moving_arrays()
        for each in (self.roster, self.collisions, self.watch):
            found |= {name: array.copy() for name, array in each.arrays().items()} if each is not None else {}
        return found

    def moving_arrays(self) -> dict[str, np.ndarray]:
        """What :meth:`go_back` needs, as copies: the state's columns, and the arrays of the scheme."""
        own = self.integrator.arrays().items()
        return self.state.arrays() | {OWN + name: array.copy() for name, array in own}

    def restore(self, arrays: Mapping[str, np.ndarray], moment: Moment, events: int = 0) -> None:
        """Go back to the ``moment`` at which :meth:`arrays` was called. ``events``: the number of collisions before it.
        Raises LookupError, TypeError, ValueError: these are not arrays of such a run."""
        if self.roster is not None or "collisions.into" in arrays:
            self._known_bodies().restore(arrays, events)
            self.motion = self._prepared(self._at_the_beginning, self._first_moment)
        require_like(arrays, self.arrays())
        self.go_back(arrays, moment._replace(origin=self.clock.origin) if math.isnan(moment.origin) else moment)
        for each in (self.collisions, self.watch):
            if each is not None:
                each.restore(arrays)

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
        return self.setup.bodies if self.roster is None else self.roster.starting()

    @property
    def _first_moment(self) -> Moment:
        bodies, scheme = self.setup.bodies, self.integrator
        before = 0.0 if scheme.facts.adaptive else bodies.step * self.dt  # so that its time is that of its step
        return Moment(bodies.step, bodies.time, bodies.time - before)

    def _loaded(self, bodies: Particles, moment: Moment, slots: Slots | None) -> Motion:
        """Bodies that are brought to the engine, at a moment."""
        setup = self.setup
        motion = Motion(setup.engine, setup.engine.load(bodies))
        frames = motion.state.frames
        frames.slots, frames.bodies = slots, bodies
        motion.state.clock.set(moment)
        columns = columns_of(setup.scenario.record.observables or (), bodies.count)
        frames.request(columns - {"potential"} if setup.scenario.fields else columns, bodies)  # it includes the fields'
        return motion

    def _prepared(self, bodies: Particles, moment: Moment) -> Motion:
        """The same, ready for the scheme."""
        motion = self._loaded(bodies, moment, self.roster.present if self.roster else None)
        with motion.state.moves.turned(self.turns):
            self.integrator.prepare(motion, self.collisions is not None)
        return motion

    def _look_for_collisions(self) -> None:
        """Begin to look for them, if the scenario says so."""
        self.collisions = None
        if self.setup.scenario.escape is not None:
            self._known_bodies()
        if (keys := self.setup.scenario.collisions) is not None:
            from nbody.integrators.collisions.collisions import Collisions  # imports Numba
            from nbody.integrators.collisions.outcomes import Bouncing

            law, outcome = self.setup.scenario.gravity, self.setup.outcome
            if keys.rule == "function" and outcome is None:
                raise InputError(
                    f"{self.setup.scenario.where('collisions.rule')}'function' is a function in Python: give "
                    "on_collision=FUNCTION to nbody.Simulation, or to resume or rerun"
                )
            bouncing = Bouncing(1.0 if keys.restitution is None else keys.restitution, keys.minimum_speed)
            self.collisions = Collisions(self._known_bodies(), keys.rule, law, bouncing, outcome)

    def _known_bodies(self) -> "Roster":
        """Which bodies are there, from now on."""
        if self.roster is None:
            from nbody.integrators.roster import Roster

            fields = self.setup.plan.fields
            fields = fields if fields is not None and fields.terms else None
            self.roster = Roster(self.setup.bodies, self.setup.scenario.gravity, fields, self.setup.used)
        return self.roster

    def _resolve(self, span: Span, until: float) -> bool:
        """Act on a step in which bodies touch, and in which the time ``until`` may be. If some have merged or changed, they
        go on in another state. Returns False if nothing was done."""
        assert self.collisions is not None
        state, collisions = self.state, self.collisions
        if span.show is not None:
            events, left = collisions.end_step(span, until, state.clock.step)
            if left is None:
                self.integrator.advance(self.motion, 0, until)
            elif self.watch is not None and collisions.rule == "bounce":
                self.cut = self.copy()
        else:
            if collisions.changes:
                x, v = state.values("position", "velocity")
                span = span._replace(x1=x, v1=v)
            events, left = collisions.resolve(span, state.clock.step, first=span.begin == self.setup.bodies.time)
        self.events.append(events)
        if left is not None:
            self._go_on_with(left, "a collision")
        return bool(len(events))

    def _go_on_with(self, bodies: Particles, cause: str) -> None:
        """Replace the state by one of other bodies."""
        state, clock = self.state, self.clock
        try:
            motion = self._prepared(bodies, clock.moment._replace(within=False))
            if self.begun:
                with motion.state.moves.turned(self.turns):
                    self.integrator.start(motion)
        except InputError as error:
            raise RunFailed(f"step {clock.step}: after {cause} the scheme can't go on: {error}") from None
        motion.state.progress.take_over(state.progress)
        self.motion = motion
        if self.moved and not set(OF_TANGENTS).isdisjoint(self.integrator.report(motion).observed):
            self.setup.warn(f"warning: {' and '.join(OF_TANGENTS)} begin anew at step {clock.step}, because of {cause}")

    def apply(self, changes: np.ndarray, shown: bool = False, species_names: tuple[str, ...] = ()) -> None:
        """Add, remove and change bodies, by rows as :meth:`nbody.integrators.roster.Roster.apply` takes them. ``shown``: the
        frame of this step, if there is one, shows the bodies after it. ``species_names``: of all species, if there are new
        ones."""
        setup = self.setup
        if why := unsupported(
            type(self.integrator), setup.engine, setup.scenario.gravity, setup.scenario.precision,
            of_scheme=SchemeProblem(changes=True), systems=setup.scenario.ensemble.count if setup.scenario.ensemble else 0,
        ):  # fmt: skip
            raise InputError(f"the bodies of this run can't be changed: {why}")
        fields, gone = fields_of(setup.engine), changes["id_1"][np.isin(changes["kind"], REMOVED)]
        if lost := [about for about, _ in fields.about.values() if about in gone] if fields else []:
            raise InputError(f"body {lost[0]} can't be removed: a field acts about it")
        if fields and fields.about:  # raises an InputError, before anything is changed
            fields.of(_after(changes, gone, self._at_the_beginning, species_names))
        if self.watch is not None:
            self.watch.end_step()
        roster, clock = self._known_bodies(), self.clock
        if species_names:
            self.setup = replace(setup, bodies=replace(setup.bodies, species_names=species_names))
            roster.bodies = replace(roster.bodies, species_names=species_names)
        with np.errstate(all="ignore"):
            clock.synchronize()
            x, v = (each.astype(np.float64) for each in self.state.values("position", "velocity"))
            by_pairs = len(changes) * len(x) <= MOST_PAIRS
            before = 0.0 if by_pairs else _energy_of(self.motion)
            x, v, energy = roster.apply(changes, x, v, clock.time, by_pairs)
            self._go_on_with(roster.particles(x, v, clock.time, clock.step), "a change of the bodies")
            energy = energy if by_pairs else _energy_of(self.motion) - before
        roster.book(energy, collision=False)
        changes["time"], changes["step"], changes["energy_change"][0] = clock.time, clock.step + (not shown), energy
        self.events.append(changes)


def _after(changes: np.ndarray, gone: np.ndarray, present: Particles, names: tuple[str, ...]) -> Any:
    """The ids and species of the bodies that are there after changes."""
    new, stay = changes[np.isin(changes["kind"], ADDED)], ~np.isin(present.id, gone)
    ids, species = np.append(present.id[stay], new["id_1"]), np.append(present.species[stay], new["id_2"])
    return SimpleNamespace(id=ids, species=species, species_names=names or present.species_names)


def _frame_of(motion: Motion) -> Frame:
    motion.evaluate(motion.state.frames.outputs)
    return motion.state.frames.snapshot()


def _energy_of(motion: Motion) -> float:
    frame = _frame_of(motion).wait()
    energy = float(frame.sums[0] + frame.sums[1])
    frame.release()
    return energy
