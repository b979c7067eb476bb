"""What looks at a run: each observer says when it looks at the bodies between two steps. What none asks for is not computed.

:class:`Callback` calls a user's function, :class:`CollisionLog` keeps the collisions; frames, checkpoints and the limit of
the energy error are :class:`nbody.run.recording.Recording`. Progress, and a window that shows the run, look at the wall
clock instead: :class:`nbody.run.loop.Loop`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

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
from nbody.scenario.quantities import shown_time
from nbody.state import Moment
from nbody.trajectory.structure.layout import BOUNCE, CONTACT

Function = Callable[[Particles], Any]


class Observer:
    """Looks at the bodies of a stepper between two steps.

    Attributes:
        ended: True if the run has come to its end by what the observer has seen.
    """

    ended = False

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper

    def next(self, until: float) -> tuple[int, float]:
        """The number of steps to the next look, and the latest time of these steps, if others end them at ``until``."""
        return FOREVER, until

    def look(self) -> bool:
        """Look, if it is time. False asks the run to stop."""
        return True


class Callback(Observer):
    """Calls a user's function of the particles at the moments of a schedule, which counts from step ``first``. What it
    writes into them counts. The run stops if it returns False, or raises an error, the ``failure``."""

    def __init__(self, stepper: Stepper, function: Function, schedule: Schedule, first: int = 0) -> None:
        super().__init__(stepper)
        self._function, self._schedule, self._first = function, schedule, first
        self.failure: Exception | None = None
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
        if not self._schedule.regular(now):
            return True
        self._called = now
        if now.step == before.step and same_time(now.time, before.time):  # shown by rounding just before the step's end
            return True
        try:
            goes_on = self._function(self._stepper.shown()) is not False
            if (changes := self._stepper.written(freeze=False)) is not None:
                self._stepper.apply(changes)
            return goes_on
        except Exception as error:  # the file is finished in good order first
            self.failure = error
            return False


def callback_of(
    function: Function | None, every: int | None, interval: float | None, stepper: Stepper, setup: Setup
) -> Callback | None:
    """Calls after every ``every``-th step (1 by default), or after every ``interval`` of time from now. Raises InputError:
    one of them is out of range, or given without a function."""
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
        return Callback(stepper, function, StepSchedule(steps, FOREVER))
    interval = time_given("run: interval: ", interval, setup.scenario)
    if interval <= 0:
        raise InputError(f"run: interval: must be greater than 0, got {interval:g}")
    dt, clock = abs(setup.integrator.dt), stepper.clock
    if setup.integrator.facts.adaptive:
        return Callback(
            stepper, function, CallTimes(interval, -math.inf if setup.plan.backward else math.inf, clock.time)
        )
    return Callback(stepper, function, StepSchedule(whole_steps("run: interval: ", interval, dt), FOREVER), clock.step)


class CollisionLog(Observer):
    """The collisions of a run, and the changes of its bodies.

    Attributes:
        recorded: the number of events in the file.
    """

    def __init__(self, stepper: Stepper, setup: Setup, recorded: int = 0) -> None:
        super().__init__(stepper)
        self._setup, self.recorded = setup, recorded
        self._rows: list[np.ndarray] = []
        self._taken, self._warned = 0, False

    @property
    def rows(self) -> np.ndarray:
        """The events since the simulation was made."""
        return _joined(self._rows)

    def look(self) -> bool:
        stepper, setup = self._stepper, self._setup
        for events in stepper.events:
            room = max(0, setup.plan.event_capacity - self.recorded)
            counted = np.isin(events["kind"], (CONTACT, BOUNCE))  # the file grows for others, which change bodies
            kept = events[~counted | (np.cumsum(counted) <= room)]
            if len(kept) < len(events) and not self._warned:
                self._warned = True
                setup.notify(
                    f"warning: the recording has room for {setup.plan.event_capacity} collisions (collisions.most); later "
                    "ones are not recorded"
                )
            if len(kept):
                self._rows.append(kept)
                self.recorded += len(kept)
        stepper.events.clear()
        if stepper.collisions and (touched := stepper.collisions.touched) is not None:
            stepper.collisions.touched, self.ended = None, True
            (first, second, time), units = touched, setup.scenario.units
            factor, unit = shown_time(units.time) if units else (1.0, "")
            setup.notify(f"stopped: bodies {first} and {second} (ids) touch at t = {factor * time:.9g} {unit}".rstrip())
        return True

    def take(self) -> np.ndarray:
        """The events that were not taken yet."""
        rows, self._taken = self._rows[self._taken :], len(self._rows)
        return _joined(rows)


def _joined(rows: list[np.ndarray]) -> np.ndarray:
    from nbody.trajectory.reading.events import no_events

    return np.concatenate([no_events(), *rows])
