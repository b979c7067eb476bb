"""Dense output: the bodies at times within a step, or later, from a copy of the stepper."""

from dataclasses import replace

import numpy as np

from nbody.errors import InputError
from nbody.particles import Particles
from nbody.run.choice import scheme_of
from nbody.run.schedule import FOREVER, require_countable, same_time, steps_within
from nbody.run.stepper import Stepper
from nbody.state import Moment


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
    now, motion = copy.moment, copy.motion
    scheme = scheme_of(copy.setup.scenario, time - now.time)
    copy.clock.set(Moment(0, now.time, now.time))
    with motion.state.moves.turned(time < now.time and not scheme.facts.moves):
        scheme.prepare(motion, copy.collisions is not None)
        scheme.start(motion)
        scheme.advance(motion, 1)
    copy.clock.set(Moment(now.step, copy.clock.time, now.time))
