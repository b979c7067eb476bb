"""The schedule of a run: which moments become frames, and when the run ends, in steps or in time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from nbody.errors import InputError
from nbody.given import converted, number, shown, whole
from nbody.integrators.integrator import Integrator
from nbody.scenario import Scenario
from nbody.scenario.overrides import plain_python
from nbody.scenario.quantities import DIMENSIONS, is_quantity
from nbody.state import Moment
from nbody.whole_file import Notify

if TYPE_CHECKING:
    from nbody.run.plan import Plan

FRAMES = 100
"""The default number of frames of a run that ends at a time and has steps of different lengths."""

MOST = 2**53
"""The most steps, or frames, of a run: a float64 counts up to it."""


MOST_DENOMINATOR = 10**6
"""Of a time as a fraction, if a step that divides it is proposed."""

FOREVER = 1 << 62
"""A number of steps that no run makes."""

ROUNDING = 4
"""Units in the last place by which two times may differ and still be the same moment."""


@dataclass(frozen=True)
class StepSchedule:
    """Frames at step 0, every ``every``-th step and step ``last``, where the run ends. A moment within a step is
    neither: the step is not complete."""

    every: int
    last: int

    def ended(self, moment: Moment) -> bool:
        """True if the run has reached its end."""
        return moment.complete >= self.last

    def due(self, moment: Moment) -> bool:
        """True if this moment becomes a frame."""
        return self.regular(moment) or (moment.step == self.last and not moment.within)

    def regular(self, moment: Moment) -> bool:
        """True if this moment becomes a frame even if the run does not end here."""
        return moment.step % self.every == 0 and not moment.within

    def next(self, moment: Moment) -> tuple[int, float]:
        """The number of steps to begin until the next frame, and the latest time of these steps: t, or -t in a run that
        goes back in time, so that the first of several looks is the one of the smallest number."""
        return min((moment.complete // self.every + 1) * self.every, self.last) - moment.step, math.inf

    def regular_after(self, step: int) -> int:
        """The number of frames after ``step`` at intervals of ``every`` steps; 0 if the first interval is shorter."""
        return (self.last - step) // self.every if step % self.every == 0 else 0

    def count_after(self, moment: Moment) -> int:
        """The number of frames after a moment."""
        if (step := moment.complete) >= self.last:
            return 0
        return self.last // self.every - step // self.every + (self.last % self.every != 0)

    def ends_alone(self, time: float) -> "StepSchedule":
        """The schedule of the first and the last frame of a run from ``time`` on."""
        return replace(self, every=FOREVER)

    def ending(self, now: Moment) -> "Schedule":
        """The schedule of a run that begins and ends now, for further calls in the other direction of time."""
        return replace(self, last=now.step)

    def fraction(self, moment: Moment) -> float:
        """The fraction of the run that is done."""
        return min(1.0, moment.complete / self.last) if self.last else 1.0


@dataclass(frozen=True)
class TimeSchedule:
    """Frames at the time ``origin``, every ``interval`` after it, and at ``end``, where the run ends; ``origin`` may be the
    later one.

    The methods are those of :class:`StepSchedule`.
    """

    interval: float
    end: float
    origin: float

    @property
    def sign(self) -> int:
        """-1 if the run goes back in time, else 1."""
        return -1 if self.end < self.origin else 1

    def ended(self, moment: Moment) -> bool:
        return self.sign * (moment.time - self.end) >= 0

    def due(self, moment: Moment) -> bool:
        return self.regular(moment) or moment.time == self.end

    def regular(self, moment: Moment) -> bool:
        return moment.time == self._time(self._before(moment.time))

    def next(self, moment: Moment) -> tuple[int, float]:
        after = self._frame(self._before(moment.time) + 1)  # the interval may be less than the rounding of times
        return FOREVER, self.sign * (after if self.sign * (after - moment.time) > 0 else self.end)

    def count_after(self, moment: Moment) -> int:
        time = self.sign * max(self.sign * moment.time, self.sign * self.origin)
        if self.ended(moment):
            return 0
        whole = self._before(self.end) - self._before(time)
        return whole + (self._frame(self._before(self.end)) != self.end)

    def ends_alone(self, time: float) -> "TimeSchedule":
        return replace(self, interval=abs(self.end - time) or 1.0, origin=time)

    def ending(self, now: Moment) -> "TimeSchedule":
        return replace(self, end=now.time, origin=now.time)

    def fraction(self, moment: Moment) -> float:
        return min(1.0, (moment.time - self.origin) / (self.end - self.origin)) if self.end != self.origin else 1.0

    def _before(self, time: float) -> int:
        """The number of the last frame not after ``time``; the frame at the origin is 0. Frame times are rounded, so the
        quotient may be too large or too small by one."""
        number = math.floor(self.sign * (time - self.origin) / self.interval)
        number -= self.sign * (self._time(number) - time) > 0
        return number + (self.sign * (self._time(number + 1) - time) <= 0)

    def _time(self, number: int) -> float:
        return self.origin + number * self.sign * self.interval

    def _frame(self, number: int) -> float:
        return self.sign * min(self.sign * self._time(number), self.sign * self.end)


Schedule = StepSchedule | TimeSchedule


@dataclass(frozen=True)
class FramesAtTimes(StepSchedule):
    """Frames at ``times`` and at step ``last``, where the run ends. How many there are is known at the end."""

    times: TimeSchedule

    def regular(self, moment: Moment) -> bool:
        return self.times.regular(moment)

    def next(self, moment: Moment) -> tuple[int, float]:
        return self.last - moment.step, self.times.next(moment)[1]

    def count_after(self, moment: Moment) -> int:
        return min(FRAMES, self.last - moment.complete)

    def ends_alone(self, time: float) -> StepSchedule:
        return StepSchedule(FOREVER, self.last)

    def ending(self, now: Moment) -> "Schedule":
        return self.times.ending(now)


class CallTimes(TimeSchedule):
    """Calls at times. A time that differs by rounding from that of a call is that call's, so that a frame and a call are
    not made one after the other with a step between them (3 · 0.1 is not 0.3)."""

    def regular(self, moment: Moment) -> bool:
        return same_time(moment.time, self._time(self._before(moment.time)))

    def _before(self, time: float) -> int:
        number = round(self.sign * (time - self.origin) / self.interval)
        call = self._time(number)
        return number if self.sign * (call - time) <= 0 or same_time(call, time) else number - 1


def same_time(a: float, b: float) -> bool:
    """True if two times are equal except for rounding."""
    return math.isfinite(a - b) and abs(a - b) <= ROUNDING * math.ulp(max(abs(a), abs(b)))


def steps_given(where: str, value: object) -> int:
    """A number of steps, from a Python program. Raises InputError, which begins with ``where``."""
    steps = converted(where, whole, value)
    if not 0 <= steps <= MOST:
        raise InputError(f"{where}must be {'zero or more' if steps < 0 else 'at most 2^53'}, got {shown(value)}")
    return steps


def time_given(where: str, value: object, scenario: Scenario) -> float:
    """A time, from a Python program: a number, or with the scenario's units a text such as ``10 yr``, or a quantity of
    Astropy. Raises InputError, which begins with ``where``."""
    scale = scenario.source.scale

    def in_units(value: object) -> float:
        if scale and isinstance(value, str) and is_quantity(value):
            return scale.number(value, DIMENSIONS["time"])
        return number(value)

    found = converted(where, in_units, plain_python(value))
    if not math.isfinite(found):
        raise InputError(f"{where}must be a finite number, got {found}")
    return found


def schedule_for(scenario: Scenario, integrator: Integrator, origin: float = 0.0, step: int = 0) -> Schedule:
    """The schedule of a scenario whose run begins at the time ``origin``, with bodies that have made ``step`` steps. The
    scenario's ``steps`` counts these too.

    If all steps have the same length, times are converted to steps; they must be multiples of that length.

    Raises:
        InputError: times and steps that do not match.
    """
    chosen, record = scenario.integrator, scenario.record
    if not integrator.facts.adaptive:
        return _in_steps(scenario, chosen.dt or integrator.dt, origin, step)
    if chosen.end is None:
        assert chosen.steps is not None
        if record.every is None:
            return FramesAtTimes(1, chosen.steps, TimeSchedule(record.dt or 1.0, math.inf, origin))
        return StepSchedule(record.every, chosen.steps)
    if record.dt is None and "every" in dict(scenario.source.values.get("record") or {}):
        raise InputError(
            f"{scenario.where('record.every', 'integrator.scheme', 'integrator.end')}"
            "how many steps this scheme makes until 'end' is not known; write "
            "'dt: TIME' instead of 'every' (--set record.dt=TIME)"
        )
    length = abs(chosen.end - origin)
    interval = record.dt or length / FRAMES or 1.0
    require_countable(scenario.where("record.dt", "integrator.end"), length, interval)
    return TimeSchedule(interval, chosen.end, origin)


def directed(scenario: Scenario, begin: float, notify: Notify) -> tuple[Scenario, bool]:
    """The scenario of a run that begins at a time, with a ``dt`` whose sign is the direction of the run; and whether it goes
    back in time. Raises InputError: ``dt`` is negative, and ``end`` is later."""
    dt, end, where = scenario.integrator.dt, scenario.integrator.end, scenario.where
    backward = end < begin if end is not None and end != begin else dt is not None and dt < 0
    if dt is None and backward:
        notify(f"the run goes back in time: it ends at {end:g}, before the time of the bodies, {begin:g}")
    if dt is None or (dt < 0) == backward:
        return scenario, backward
    if not backward:
        raise InputError(
            f"{where('integrator.dt', 'integrator.end')}{dt:g} goes back in time from {begin:g}, and the end, {end:g}, is "
            f"later; write {-dt:g}, or an earlier end"
        )
    notify(f"dt: {-dt:g}, because the run ends at {end:g}, before the time of the bodies, {begin:g}")
    return scenario.override(dt=-dt), True


def _in_steps(scenario: Scenario, dt: float, origin: float, step: int) -> StepSchedule:
    """The schedule of steps of one length. Raises one InputError for all times that are no whole number of steps."""
    chosen, record = scenario.integrator, scenario.record
    times = {}
    if chosen.steps is None:
        times["integrator.end"] = float(chosen.end or 0) - origin, dt, origin
    if not record.every:
        times["record.dt"] = float(record.dt or 0), abs(dt), 0.0
    counts, refused = dict[str, int](), dict[str, InputError]()
    for key, (time, length, begin) in times.items():
        try:
            counts[key] = whole_steps(scenario.where(key, "integrator.dt"), time, length, begin)
        except InputError as error:
            refused[key] = error
    if len(refused) == 2 and (fitting := dividing(abs(dt), [abs(time) for time, _, _ in times.values()])):
        where = scenario.where("integrator.dt", "integrator.end", "record.dt")
        raise InputError(
            f"{where}neither the end, {chosen.end:.12g}, nor the interval of frames, {record.dt:.12g}, is a whole "
            f"number of steps of {abs(dt):g}; write {math.copysign(fitting, dt):.12g}"
        )
    if refused:
        raise next(iter(refused.values()))
    last = chosen.steps if chosen.steps is not None else step + counts["integrator.end"]
    return StepSchedule(max(1, record.every or counts["record.dt"]), last)


def dividing(dt: float, times: Sequence[float]) -> float:
    """The longest step, at most ``dt``, of which all times are whole numbers; 0 if they have no common divisor of few
    digits."""
    fractions = [Fraction(time).limit_denominator(MOST_DENOMINATOR) for time in times]
    if not all(math.isclose(each, time, rel_tol=1e-9) for each, time in zip(fractions, times, strict=True)):
        return 0.0
    denominator = math.lcm(*(each.denominator for each in fractions))
    common = math.gcd(*(int(each * denominator) for each in fractions)) / denominator
    return common / math.ceil(common / dt * (1 - 1e-12))


def schedule_of_call(plan: "Plan", now: Moment, steps: int | None, until: float | None, resumed: bool) -> Schedule:
    """The schedule of one call: the planned one, or that of the next ``steps`` steps, or that until a time. ``resumed``: the
    recording of an earlier process goes on. Raises InputError for what does not fit the steps."""
    planned, scenario, scheme = plan.schedule, plan.scenario, plan.integrator
    every = planned.every if isinstance(planned, StepSchedule) else 1
    times = planned.times if isinstance(planned, FramesAtTimes) else planned
    if steps is not None:
        last = now.step + steps_given("run: steps: ", steps)
        if isinstance(times, StepSchedule):
            return StepSchedule(every, last)
        return FramesAtTimes(every, last, replace(times, end=-math.inf if plan.backward else math.inf))
    if until is None:
        return planned
    if not scheme.facts.adaptive:
        more = whole_steps("integrate: until: ", until - now.time, scenario.integrator.dt or scheme.dt, now.time, True)
        return StepSchedule(every, now.step + more)
    if isinstance(times, TimeSchedule):
        return replace(times, end=until)
    if not resumed and "every" in dict(scenario.source.values.get("record") or {}):
        raise InputError(
            "integrate: how many steps this scheme makes until a time is not known, so 'every' can't be used; give "
            "record={'dt': TIME} instead"
        )
    return TimeSchedule(scenario.record.dt or abs(until - now.time) / FRAMES or 1.0, until, now.time)


def of_whole_run(planned: Schedule, call: Schedule) -> Schedule:
    """The schedule that a run has whose latest call is ``call``: to the further of the two ends, if both are steps, or
    times."""
    if isinstance(planned, StepSchedule) and isinstance(call, StepSchedule):
        return replace(call, last=max(planned.last, call.last))
    if isinstance(planned, TimeSchedule) and isinstance(call, TimeSchedule):
        return replace(call, end=call.sign * max(call.sign * planned.end, call.sign * call.end))
    return call


def written(schedule: Schedule) -> dict[str, float]:
    """The end of a schedule and its frames, as keys of a scenario."""
    if isinstance(schedule, FramesAtTimes):
        return {"steps": schedule.last, "dt": schedule.times.interval}
    if isinstance(schedule, StepSchedule):
        return {"steps": schedule.last, "every": schedule.every}
    return {"end": schedule.end, "dt": schedule.interval}


def require_countable(where: str, time: float, interval: float) -> None:
    """Raise an InputError, which begins with ``where``, if a time has more than 2^53 intervals."""
    if not time / interval <= MOST:
        raise InputError(f"{where}a time of {time:g} has more than 2^53 intervals of {interval:g}; use fewer")


def whole_steps(where: str, time: float, dt: float, origin: float = 0.0, program: bool = False) -> int:
    """The number of steps of ``dt`` from ``origin`` to ``origin`` + ``time``; both may be negative. Raises InputError, which
    begins with ``where``, if it is no whole number; it names what a Python ``program`` can do, or a scenario."""
    require_countable(where, time, dt)
    steps = round(time / dt)
    if abs(time - steps * dt) > 1e-6 * abs(dt) or (time and not steps):
        nearest, after = origin + max(1, steps) * dt, f" after {origin:.12g}" if origin else ""
        fitting = dividing(abs(dt), [abs(time)])
        other = f"integrator.dt: {math.copysign(fitting, dt):.12g}" if fitting else "change integrator.dt"
        if program:
            value = f"dt={math.copysign(fitting, dt):.12g}" if fitting else "dt=…"
            other = (
                f"look with simulation.at({origin + time:.12g}), or go on with other steps: Simulation(simulation.scenario, "
                f"particles=simulation.particles, {value}), or integrator='ias15', whose steps end at any time"
            )
        raise InputError(
            f"{where}{origin + time:.12g} is not a whole number of steps of {dt:g}{after}; write {nearest:.12g}, or {other}"
        )
    return steps


def steps_within(length: float, dt: float, time: float) -> int:
    """The number of whole steps in a ``length`` of time that ends at ``time``."""
    nearest = round(length / dt)
    if abs(nearest * dt - length) <= ROUNDING * math.ulp(max(abs(time), abs(length))):
        return nearest
    return math.floor(length / dt)
