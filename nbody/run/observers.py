"""What looks at a run: each observer says when it looks at the bodies between two steps. What none asks for is not computed.

:class:`Callback` calls a user's function, :class:`nbody.run.event_log.EventLog` keeps events; frames, checkpoints and the
limit of the energy error are :class:`nbody.run.recording.Recording`. Progress, and a window that shows the run, look at the
wall clock instead: :class:`nbody.run.loop.Loop`.
"""

import math
from collections.abc import Callable
from typing import Any

from nbody.errors import InputError
from nbody.particles import Particles
from nbody.run.schedule import (
    FOREVER,
    CallTimes,
    Schedule,
    StepSchedule,
    same_time,
    steps_given,
    time_given,
    whole_steps,
)
from nbody.run.setup import Setup
from nbody.run.stepper import Stepper
from nbody.scenario import Scenario
from nbody.state import Moment

Function = Callable[[Particles], Any]


class Observer:
    """Looks at the bodies of a stepper between two steps.

    Attributes:
        ended: True if the run has come to its end by what the observer has seen.
        failure: the error of a user's function, which is raised when the file is finished.
    """

    ended = False
    failure: Exception | None = None

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper

    @property
    def _setup(self) -> Setup:
        return self._stepper.setup

    def next(self, until: float) -> tuple[int, float]:
        """The number of steps to the next look, and the latest time of these steps, if others end them at ``until``."""
        return FOREVER, until

    def look(self) -> bool:
        """Look, if it is time. False asks the run to stop."""
        return True


class Callback(Observer):
    """Calls a user's function of the particles at the moments of a schedule, which counts from step ``first``. What it
    writes into them counts. The run stops if it returns False, or raises an error, the ``failure``.

    Attributes:
        each_step: no interval was given: the function is called after each step, and at the end of a call of the run, where
            the last step of an adaptive scheme goes beyond it.
        call: the schedule of this call.
    """

    call: Schedule | None = None
    each_step = False

    def __init__(self, stepper: Stepper, function: Function, schedule: Schedule, first: int = 0) -> None:
        super().__init__(stepper)
        self._function, self._schedule, self._first = function, schedule, first
        self._called = Moment(-1, math.nan)

    @property
    def _moment(self) -> Moment:
        now = self._stepper.moment
        return now._replace(step=now.step - self._first)

    def next(self, until: float) -> tuple[int, float]:
        steps, latest = self._schedule.next(self._moment)
        return steps, until if same_time(latest, until) else min(latest, until)

    def look(self) -> bool:
        now, before = self._moment, self._called
        ends = now.within and self.call is not None and self.call.ended(self._stepper.moment)
        if not (self._schedule.regular(now) or ends):
            return True
        self._called = now
        if now.step == before.step and same_time(now.time, before.time):  # shown by rounding just before the step's end
            return True
        try:
            return self._stepper.writable.show_to(self._function)
        except Exception as error:  # the file is finished in good order first
            self.failure = error
            return False


def callback_of(
    function: Function | None, every: int | None, interval: float | None, scenario: Scenario, stepper: Stepper | None
) -> Callback | None:
    """Calls after every ``every``-th step (1 by default), or after every ``interval`` of time from now; none without a
    ``stepper``, if there are no bodies yet. Raises InputError: one of them is out of range, or given without a function."""
    if function is None:
        if every is not None or interval is not None:
            raise InputError("run: 'every' and 'interval' say when 'callback' is called; give callback=FUNCTION")
        return None
    if not callable(function):
        raise InputError(f"run: callback must be a function of the particles, got {type(function).__name__}")
    if every is not None and interval is not None:
        raise InputError("run: give 'every' (in steps) or 'interval' (in time), not both")
    if interval is None:
        steps = 1 if every is None else steps_given("run: every: ", every)
        if not steps:
            raise InputError("run: every: must be at least 1 step, got 0")
        if stepper is None:
            return None
        found = Callback(stepper, function, StepSchedule(steps, FOREVER))
        found.each_step = every is None
        return found
    interval = time_given("run: interval: ", interval, scenario)
    if interval <= 0:
        raise InputError(f"run: interval: must be greater than 0, got {interval:g}")
    if stepper is None:
        return None
    setup = stepper.setup
    dt, clock, end = abs(setup.integrator.dt), stepper.clock, -math.inf if setup.plan.backward else math.inf
    if setup.integrator.facts.adaptive:
        return Callback(stepper, function, CallTimes(interval, end, clock.time))
    return Callback(stepper, function, StepSchedule(whole_steps("run: interval: ", interval, dt), FOREVER), clock.step)
