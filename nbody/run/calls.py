"""Calls of a user's function during a run, at a fixed number of steps or at times."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from nbody.errors import InputError
from nbody.integrators.integrator import Integrator
from nbody.particles import Particles
from nbody.run.schedule import FOREVER, Schedule, StepSchedule, TimeSchedule, steps_given, time_given, whole_steps
from nbody.scenario import Scenario
from nbody.state import State
from nbody.state.clock import StateClock

ROUNDING = 4
"""Units in the last place by which two times may differ and still be the same moment."""

Callback = Callable[[Particles], Any]


class CallTimes(TimeSchedule):
    """Calls at times. A time that differs by rounding from that of a call is that call's, so that a frame and a call are
    not made one after the other with a step between them (3 · 0.1 is not 0.3)."""

    def regular(self, step: int, time: float) -> bool:
        return same_time(time, self.origin + self._before(time) * self.interval)

    def _before(self, time: float) -> int:
        number = round((time - self.origin) / self.interval)
        call = self.origin + number * self.interval
        return number if call <= time or same_time(call, time) else number - 1


def same_time(a: float, b: float) -> bool:
    """True if two times are equal except for rounding."""
    return math.isfinite(a - b) and abs(a - b) <= ROUNDING * math.ulp(max(abs(a), abs(b)))


class Calls(NamedTuple):
    """A function, and the moments at which it is called. If it returns False, the run ends. ``first``: the step from which
    the schedule counts."""

    function: Callback
    schedule: Schedule
    first: int = 0

    def next(self, state: State, until: float) -> tuple[int, float]:
        """The number of steps to the next call, and the latest time of these steps: at most ``until``."""
        steps, latest = self.schedule.next(state.clock.step - self.first, state.clock.time)
        return steps, until if same_time(latest, until) else min(latest, until)

    def due(self, state: State) -> bool:
        """True if the function is to be called now."""
        return self.schedule.regular(state.clock.step - self.first, state.clock.time)


def calls_of(
    callback: Callback | None,
    every: int | None,
    interval: float | None,
    scenario: Scenario,
    integrator: Integrator,
    clock: StateClock,
) -> Calls | None:
    """The calls of ``callback``: after every ``every``-th step (1 by default), or after every ``interval`` of time from now.

    Raises:
        InputError: ``every`` or ``interval`` is out of range, or given without a callback.
    """
    if callback is None:
        if every is not None or interval is not None:
            raise InputError("run: 'every' and 'interval' say when 'callback' is called; give callback=FUNCTION")
        return None
    if not callable(callback):
        raise InputError(f"run: callback must be a function of the particles, got {type(callback).__name__}")
    if every is not None and interval is not None:
        raise InputError("run: give 'every' (in steps) or 'interval' (in time), not both")
    if interval is None:
        steps = 1 if every is None else steps_given("run: every: ", every)
        if not steps:
            raise InputError("run: every: must be at least 1 step, got 0")
        return Calls(callback, StepSchedule(steps, FOREVER))
    interval = time_given("run: interval: ", interval, scenario)
    if interval <= 0:
        raise InputError(f"run: interval: must be greater than 0, got {interval:g}")
    if integrator.facts.adaptive:
        return Calls(callback, CallTimes(interval, math.inf, clock.time))
    return Calls(callback, StepSchedule(whole_steps("run: interval: ", interval, integrator.dt), FOREVER), clock.step)
