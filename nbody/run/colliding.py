"""Collisions in a run: their effect on the state, and their way to the file."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nbody.errors import InputError, RunFailed
from nbody.integrators.collisions.collisions import Collisions, SlotSnapshot
from nbody.integrators.collisions.radii import radii
from nbody.integrators.collisions.span import Span
from nbody.integrators.integrator import Integrator, Motion
from nbody.particles import Particles
from nbody.run.plan import Notify, Plan
from nbody.scenario.units import shown_time
from nbody.trajectory.events import no_events

if TYPE_CHECKING:
    from nbody.run.recording import Recording
    from nbody.trajectory import Checkpoint

RESOLUTION = 100
"""Radii should be at least this many times the spacing of float32 numbers at the farthest particle."""


class Colliding:
    """The collisions of one simulation.

    Args:
        plan: the run.
        bodies: all bodies at its beginning.
        notify: gets one line if radii are lost in float32, if the file has no more room, and if rule ``stop`` ends the
            run.

    Attributes:
        bodies: all bodies at the beginning, with their radii.
        recorded: the number of events in the file.
        stopped: True if two bodies have touched under rule ``stop`` since :meth:`begin`.
    """

    def __init__(self, plan: Plan, bodies: Particles, notify: Notify) -> None:
        scenario = plan.scenario
        assert scenario.collisions is not None
        self._plan, self._notify = plan, notify
        radius = radii(scenario, bodies)
        self.bodies = replace(bodies, radius=radius)
        fields = plan.fields if plan.fields is not None and plan.fields.functions else None
        self.now = Collisions(self.bodies, radius, scenario.collisions.rule, scenario.gravity, fields)
        self.recorded, self.stopped, self._warned = 0, False, False
        self._rows: list[np.ndarray] = []
        spacing = float(np.spacing(np.float32(np.abs(bodies.position).max())))
        smallest = float(radius[radius > 0].min())
        if scenario.precision == "float32" and smallest < RESOLUTION * spacing:
            notify(
                f"warning: in float32 positions are {spacing:.1e} apart at the farthest particle, and a radius is only "
                f"{smallest:g}; take --precision float64"
            )

    @property
    def rows(self) -> np.ndarray:
        """The events since the simulation was made."""
        return np.concatenate([no_events(), *self._rows])

    def summary(self) -> dict[str, Any]:
        """The values of a :class:`~nbody.run.progress.Summary`."""
        now = self.now
        return {"collisions": now.count, "particles_left": len(now.slots), "collision_energy": now.energy}

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint keeps."""
        return self.now.arrays()

    def restore(self, checkpoint: "Checkpoint") -> None:
        """Continue from a checkpoint. Raises LookupError, TypeError or ValueError if it is not one of these bodies."""
        checkpoint.check(self.arrays())
        self.recorded = int(checkpoint.meta.get("events", 0))
        self.now.restore(checkpoint.state, self.recorded)

    def snapshot(self, inner: Any) -> SlotSnapshot:
        """A snapshot of the state as a frame with all slots."""
        return SlotSnapshot(inner, self.now)

    def resolve(self, span: Span, motion: Motion, integrator: Integrator, recording: "Recording") -> Motion | None:
        """Act on a step in which bodies touch. Returns the motion of the bodies that are left if some have merged."""
        old = motion.state
        if self.now.merges:
            x, v = old.values("position", "velocity")
            span = span._replace(x1=x, v1=v)
        step = old.clock.step
        events, left = self.now.resolve(span, step, first=span.begin == self.bodies.time)
        self._record(events, recording)
        if self.now.touched is not None:
            self._stop()
        if left is None:
            return None
        state = motion.engine.load(left)
        state.clock.step, state.clock.time, state.clock.origin = step, old.clock.time, old.clock.origin
        state.frames.slots = self.now.rows
        state.frames.request(old.frames.columns, left)
        found = Motion(motion.engine, state)
        try:
            integrator.prepare(found, contacts=True)
            with np.errstate(all="ignore"):
                integrator.start(found)
        except InputError as error:
            raise RunFailed(f"step {step}: after a merger the scheme can't go on: {error}") from None
        return found

    def _record(self, events: np.ndarray, recording: "Recording") -> None:
        capacity = self._plan.event_capacity
        recorded = events[: max(0, capacity - self.recorded)]
        if len(recorded) < len(events) and not self._warned:
            self._warned = True
            self._notify(
                f"warning: the recording has room for {capacity} collisions (collisions.most); later ones are not recorded"
            )
        if len(recorded):
            self._rows.append(recorded)
            self.recorded += len(recorded)
            recording.events(recorded)

    def _stop(self) -> None:
        assert self.now.touched is not None
        first, second, time = self.now.touched
        self.now.touched, self.stopped = None, True
        units = self._plan.scenario.units
        factor, unit = shown_time(units.time) if units else (1.0, "")
        self._notify(f"stopped: bodies {first} and {second} (ids) touch at t = {factor * time:.9g} {unit}".rstrip())
