"""Dense output: the bodies at times within a step, or later, from a copy of the stepper."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.events.bodies import Bodies
from nbody.integrators.integrator import Integrator, Motion
from nbody.particles import Particles
from nbody.run.schedule import FOREVER, require_countable, same_time, steps_within
from nbody.run.stepper import Stepper
from nbody.state import Moment
from nbody.state.notes import NO_NOTES, StepNotes


def particles_at(stepper: Stepper, time: float) -> Particles:
    """The bodies at a time within the last step, or later; see :meth:`nbody.run.simulation.Simulation.at`. Raises
    InputError: the time is earlier."""
    copy = stepper.copy()
    with np.errstate(all="ignore"):
        earliest = reach(copy, time)
    if not same_time(copy.clock.time, time):
        before, first = ("before", "earliest") if copy.sign > 0 else ("after", "latest")
        raise InputError(
            f"at: {time:g} is {before} t = {earliest:g}, the {first} time that can be shown now; see Trajectory.at"
        )
    x, v = copy.vectors()
    return replace(stepper.particles(), position=x, velocity=v, time=float(time), step=copy.clock.step)


def reach(copy: Stepper, time: float) -> float:
    """Move a copy to a time, without looking for collisions. Returns the earliest time that could be reached."""
    scheme, begun, sign = copy.integrator, copy.clock.time, copy.sign
    if scheme.facts.adaptive:
        copy.advance(FOREVER, sign * time)
        return copy.clock.time  # if that is later, the beginning of the last step
    first = begun - (copy.dt if copy.moved else 0.0)
    require_countable("at: ", sign * (time - begun), scheme.dt)
    if (whole := steps_within(sign * (time - begun), abs(copy.dt), time)) > 0:
        copy.advance(whole)
    if sign * (time - first) >= 0 and not same_time(copy.clock.time, time):
        _part_of_a_step(copy, time)
    return first


def _part_of_a_step(copy: Stepper, time: float) -> None:
    """Make one step to ``time``, forward or back, by a scheme of fixed steps."""
    now, motion, scheme = copy.moment, copy.motion, copy.integrator
    copy.clock.set(Moment(0, now.time, now.time))
    dt, moves, length = scheme.dt, scheme.facts.moves, time - now.time
    with motion.state.moves.turned(time < now.time and not moves):
        scheme.dt = length if moves else abs(length)
        scheme.start(motion)
        scheme.advance(motion, 1)
        scheme.dt = dt
    copy.clock.set(Moment(now.step, copy.clock.time, now.time))


class NotedSteps:
    """Steps that a stepper makes in one call, with the bodies at their ends.

    Args:
        ids: those of the bodies that are returned; None: all.

    Attributes:
        shows: whether :meth:`within` can show the bodies within them.
    """

    def __init__(self, stepper: Stepper, ids: np.ndarray | None) -> None:
        self._stepper, self._ids, scheme = stepper, ids, stepper.integrator
        self._motion: Motion | None = None  # whose rows are those of ``ids``
        self.shows = not scheme.facts.adaptive or type(scheme).show_noted is not Integrator.show_noted

    @property
    def possible(self) -> bool:
        """True if :meth:`make` can make the next steps."""
        stepper = self._stepper
        whole = stepper.collisions is None and not stepper.moment.within
        return whole and stepper.integrator.facts.notes(stepper.motion)

    def make(self, steps: int, until: float) -> Bodies:
        """Make steps as :meth:`.Stepper.make`. Returns the bodies at the beginning and at the ends of the steps that are
        complete, with a first axis."""
        stepper, state, ids = self._stepper, self._stepper.motion.host, self._ids
        if self._motion is not stepper.motion:
            self._motion = stepper.motion
            self._rows: Any = slice(None) if ids is None else np.flatnonzero(np.isin(stepper.bodies().known.id, ids))
        now, turns, begun = stepper.bodies(ids), stepper.turns, stepper.moment.step
        times, vectors = np.empty(steps + 1), np.empty((steps + 1, 2, state.count, state.dimensions))
        times[0], vectors[0] = now.time, stepper.vectors()
        state.clock.notes = StepNotes(times[1:], vectors[1:])
        try:
            stepper.make(steps, until)
        finally:
            state.clock.notes = NO_NOTES
        made = stepper.moment.complete - begun
        if not stepper.integrator.facts.adaptive:
            times[1:] = state.clock.origin + (begun + 1 + np.arange(steps)) * stepper.dt
        elif turns:
            np.negative(times[1:], out=times[1:])
        if turns:
            np.negative(vectors[1:, 1], out=vectors[1:, 1])
        times, (x, v) = times[: made + 1], vectors[: made + 1].swapaxes(0, 1)
        self._all = now._replace(time=times, position=x, velocity=v)
        return self._all._replace(position=x[:, self._rows], velocity=v[:, self._rows])

    def within(self, steps: np.ndarray, times: np.ndarray, copied: Callable[[], Stepper]) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities, (n, K, D) each, of the K bodies ``ids`` at (n,) times within (n,) of these steps: as
        the scheme interpolates them, or by short steps from the ends of these steps. ``copied`` returns a copy of the
        stepper, at any moment."""
        stepper, rows, sign = self._stepper, self._rows, -1 if self._stepper.turns else 1
        ends = self._all.moments(steps + 1)
        made = sign * ends.time, ends.position, sign * ends.velocity
        if (found := stepper.integrator.show_noted(stepper.motion, steps, sign * times, made)) is not None:
            return found[0][:, rows], sign * found[1][:, rows]
        copy = copied()
        x, v, state = ends.position.copy(), ends.velocity.copy(), copy.motion.host
        for k in np.flatnonzero(times != ends.time):
            state.position[...], state.velocity[...] = ends.position[k], ends.velocity[k]
            copy.clock.set(Moment(0, float(ends.time[k])))
            state.invalidate()
            _part_of_a_step(copy, float(times[k]))
            x[k], v[k] = state.position, state.velocity
        return x[:, rows], v[:, rows]
