"""The bodies of a run at any time: dense output, from a copy that the run knows nothing of."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nbody.errors import InputError
from nbody.integrators.integrator import Integrator, Motion
from nbody.particles import Particles
from nbody.run.calls import ROUNDING, same_time
from nbody.run.plan import scheme_of
from nbody.run.schedule import FOREVER, require_countable

if TYPE_CHECKING:
    from nbody.run.simulation import Simulation


@np.errstate(all="ignore")
def bodies_at(run: "Simulation", time: float) -> Particles:
    """The bodies at a time; see :meth:`nbody.run.simulation.Simulation.at`."""
    scheme, motion = _copy_of(run)
    clock, dt, first = motion.state.clock, scheme.dt, run.time
    if scheme.facts.adaptive:
        scheme.advance(motion, FOREVER, time)
        first = clock.time  # if that is later, the beginning of the last step
    else:
        first -= dt if run.steps_made > run.bodies.step else 0.0
        require_countable("at: ", time - run.time, dt)
        if (whole := _whole_steps(time - run.time, dt, time)) > 0:
            scheme.advance(motion, whole)
        if time >= first and not same_time(clock.time, time):
            _part_of_a_step(run, motion, time)
    if not same_time(clock.time, time):
        raise InputError(
            f"at: {time:g} is before t = {first:g}, the earliest time that can be shown now; see Trajectory.at"
        )
    x, v = motion.state.values("position", "velocity")
    return replace(
        run.particles, position=x.astype(np.float64), velocity=v.astype(np.float64), time=float(time), step=clock.step
    )


def _copy_of(run: "Simulation") -> tuple[Integrator, Motion]:
    """The scheme and the motion of a run, ready for its next step, with memory of their own."""
    scheme, old = scheme_of(run.scenario, run.scenario.integrator.dt), run.state
    motion = Motion(run.engine, run.engine.load(run.bodies if run.colliding is None else run.colliding.now.starting()))
    clock = motion.state.clock
    clock.step, clock.time, clock.origin = old.clock.step, old.clock.time, old.clock.origin
    scheme.prepare(motion, run.colliding is not None)
    if run.begun or run.resumed:
        motion.state.restore(old.arrays())
        scheme.restore({name: array.copy() for name, array in run.integrator.arrays().items()})
    else:
        scheme.start(motion)
    return scheme, motion


def _whole_steps(length: float, dt: float, time: float) -> int:
    """The number of steps in ``length``, up to ``time``."""
    nearest = round(length / dt)
    return (
        nearest
        if abs(nearest * dt - length) <= ROUNDING * math.ulp(max(abs(time), abs(length)))
        else math.floor(length / dt)
    )


def _part_of_a_step(run: "Simulation", motion: Motion, time: float) -> None:
    """Make one step to ``time``, forward or back, by the run's scheme of fixed steps."""
    clock = motion.state.clock
    scheme, step = scheme_of(run.scenario, time - clock.time), clock.step
    clock.step, clock.origin = 0, clock.time
    scheme.prepare(motion, run.colliding is not None)
    scheme.start(motion)
    scheme.advance(motion, 1)
    clock.step = step
