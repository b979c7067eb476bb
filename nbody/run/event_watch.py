"""Makes the steps of a run one by one, and looks for events in each."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

import numpy as np

from nbody.events.bodies import Bodies
from nbody.events.chosen import Event
from nbody.events.finder import Cubic, EventFinder, Happened
from nbody.integrators.integrator import Motion
from nbody.run.dense import NotedSteps, reach
from nbody.run.schedule import same_time
from nbody.run.stepper import Stepper
from nbody.state import Moment

OWN = "events."
"""The prefix of these arrays in a checkpoint."""

FEWEST, MOST, MOST_NUMBERS = 8, 1024, 2**18
"""The fewest and the most steps of a block, and the most numbers that one notes (2 MB)."""


class StepPath:
    """The bodies at times within the last step of a stepper, as :mod:`nbody.run.dense` finds them. It moves a copy of the
    stepper, made when it is first needed.

    Args:
        copied: makes the copy, at the end of the step. Nothing else may move it afterwards.
        finder: has the bodies at the beginning of the step.
        end: the bodies at its end. If the scheme can't go back to a time, a cubic from the beginning to here is used.
        ids: of the bodies that are shown; None: all.
    """

    def __init__(
        self, copied: Callable[[], Stepper], finder: EventFinder, end: Bodies, ids: np.ndarray | None = None
    ) -> None:
        self._copied, self._finder, self._ids, self._end, self._last = copied, finder, ids, end, end

    @cached_property
    def _start(self) -> tuple[Stepper, dict[str, np.ndarray], Moment, Cubic]:
        copy = self._copied()
        return copy, copy.arrays(), copy.moment, Cubic(self._finder.begin, self._end)

    def show(self, steps: np.ndarray, times: np.ndarray) -> Bodies:
        """The bodies at (n,) times."""
        return self._end.of(self._at, times)

    def _at(self, time: float) -> Bodies:
        copy, arrays, moment, cubic = self._start
        for known in (self._last, *cubic):
            if time == known.time:
                return known
        copy.go_back(arrays, moment)
        with np.errstate(all="ignore"):
            reach(copy, time)
        if same_time(copy.clock.time, time):
            _, x, v, *_ = copy.bodies(self._ids)
            self._last = self._end._replace(time=time, position=x, velocity=v)
        else:
            begin, end = (each._replace(time=np.array([each.time])) for each in cubic)
            self._last = Cubic(begin, end).at(np.array([time])).moments(0)
        return self._last


def ids_of(events: Sequence[Event], ids: np.ndarray) -> np.ndarray | None:
    """The ids, among ``ids``, of the bodies at which events look; None if these are all, or about as many."""
    if any(event.kind.of_all for event in events):
        return None
    found = np.unique([pair for event in events for pair in event.kind.targets(ids)])
    return found if 4 * len(found) < len(ids) else None


class EventWatch:
    """Looks for the events of a run.

    Args:
        stepper: what makes the steps.
        events: in the order of their numbers.

    Attributes:
        happened: the events that nobody has taken yet.
        acting: those of the last step, if it is complete and the run has to do something about them.
        failure: the error of a user's function, which is raised when the frames until now are recorded.
    """

    def __init__(self, stepper: Stepper, events: Sequence[Event]) -> None:
        self._stepper, self._finder = stepper, EventFinder(events)
        self._ids = None if stepper.integrator.facts.adaptive else ids_of(events, stepper.setup.bodies.id)
        self._noted = NotedSteps(stepper, self._ids)
        self._ahead: list[Happened] | None = None  # those of a step that is shown partway
        self._block, self._singly = FEWEST, 0  # steps of the next block; the step before which there are none
        self._copied: tuple[Motion, Stepper] | None = None
        self._told = stepper.moved  # what holds at the beginning
        self.happened: list[Happened] = []
        self.acting: list[Happened] = []
        self.failure: Exception | None = None
        self._functions = [number for number, event in enumerate(events) if event.is_function]

    def advance(self, steps: int, until: float) -> None:
        """Make at most ``steps`` steps, to the time ``until`` at the latest; after one in which an event acts, or bodies
        touch, no more. None after an error of a user's function."""
        stepper = self._stepper
        begun = stepper.clock.step
        if not (stepper.moment.within or self._tried(self._start)):
            return
        while True:
            touched = False
            if stepper.moment.within or not self._pass_over(steps - (stepper.clock.step - begun), until):
                touched = stepper.make(0 if stepper.moment.within else 1, until)
            elif not stepper.moment.within or self.acting:
                return
            ends = not self._tried(self._look) or touched or bool(self.acting)
            now = stepper.moment
            if ends or now.within or stepper.sign * now.time >= until or now.step - begun >= steps:
                return

    def _pass_over(self, steps: int, until: float) -> bool:
        """Make steps in blocks, and find what happens in each together. Returns False if the next step must be searched by
        itself, and True at the end: in a step that has not been searched yet, or after one in which an event acts.

        A block in which there is such a step is made again up to it. The length of blocks follows how often that is, so that
        less is made twice than once.
        """
        stepper, finder = self._stepper, self._finder
        while steps > 0 and stepper.sign * stepper.clock.time < until:
            if not self._noted.possible or stepper.clock.step < self._singly:
                return False
            arrays, begun = stepper.moving_arrays(), stepper.moment
            count = min(steps, self._block, max(FEWEST, MOST_NUMBERS // stepper.state.count))
            show = self._show_noted if self._noted.shows else None
            try:
                path = self._noted.make(count, until)
                found, passed = finder.find_all(path, begun.step + 1, show, self._functions)
            except Exception:  # the step in which it is raised is to be found
                stepper.go_back(arrays, begun)
                self._singly = begun.step + count
                return False
            whole = len(path.time) - 1
            acts = min((each.step for each in found if each.event.acts), default=math.inf) - begun.step
            made = int(min(passed, acts))
            self.happened += [each for each in found if each.step - begun.step <= made]
            finder.go_on(path.moments(made))
            self._block = min(MOST, 2 * self._block) if made == whole else max(FEWEST, self._block // 2)
            if made < whole or (acts <= passed and stepper.moment.within):
                stepper.go_back(arrays, begun)
                if made:
                    stepper.make(made, until)
            if acts <= passed:
                self.acting = [each for each in found if each.event.acts and each.step - begun.step == acts]
                return True
            if passed < whole:
                return False
            steps -= stepper.clock.step - begun.step
        return True

    def _show_noted(self, steps: np.ndarray, times: np.ndarray) -> Bodies:
        """The bodies within steps of the block."""
        x, v = self._noted.within(steps, times, partial(self._copy, where=False))
        return self._finder.begin._replace(time=times, position=x, velocity=v)

    def _tried(self, look: Callable[[], None]) -> bool:
        """Look. Returns False if a user's function has raised an error."""
        try:
            look()
        except Exception as error:  # the frames of this moment are recorded first
            self.failure = error
        return self.failure is None

    def _start(self) -> None:
        stepper = self._stepper
        self._finder.start(stepper.bodies(self._ids))
        self._warn()
        if not (self._told or stepper.moved):
            self._told = True
            for line in self._finder.holding():
                stepper.setup.notify(line)

    def _warn(self) -> None:
        """Warn once about each user's function that is not finite at the beginning of the step."""
        for number, value in [(k, self._finder.value(k)) for k in self._functions]:
            if not math.isfinite(value):
                self._functions.remove(number)
                self._stepper.setup.warn(
                    f"warning: events.{number}: the function returns {value} at t = {self._finder.begin.time:.9g}; "
                    "it finds nothing where it is not finite"
                )

    def _look(self) -> None:
        stepper, finder = self._stepper, self._finder
        now, sign = stepper.moment, stepper.sign
        if now.within:
            self._look_ahead(self._copy)
            assert self._ahead is not None
            self.happened += [each for each in self._ahead if finder.shown < sign * each.time <= sign * now.time]
            finder.shown = sign * now.time
            return
        end = stepper.bodies(self._ids)
        if (cut := stepper.cut) is not None:
            self._look_ahead(lambda: cut)
            stepper.cut = None
        found = self._ahead and [each for each in self._ahead if sign * each.time <= sign * now.time]
        if found is None:
            found = finder.find(end, now.step, StepPath(self._copy, finder, end, self._ids).show)
        if found:
            self.happened += [each for each in found if sign * each.time > finder.shown]
            self.acting += [each for each in found if each.event.acts]
        self._ahead = None
        if cut is None:
            finder.go_on(end)
        else:
            finder.start(end)
        self._warn()

    def _copy(self, where: bool = True) -> Stepper:
        """The one copy of the stepper; ``where``: brought to where it is."""
        stepper = self._stepper
        if self._copied is None or self._copied[0] is not stepper.motion:
            self._copied = stepper.motion, stepper.copy()
        elif where:
            self._copied[1].go_back(stepper.moving_arrays(), stepper.moment)
        return self._copied[1]

    def _look_ahead(self, partway: Callable[[], Stepper]) -> None:
        """Find the events of a whole step, which is shown partway or has ended in a bounce, unless that is done.
        ``partway``: makes a copy of the stepper within it."""
        if self._ahead is None:
            whole = partway()
            whole.make(0)
            x, v = whole.vectors()
            end = self._stepper.bodies()._replace(time=whole.clock.time, position=x, velocity=v)
            step = self._stepper.moment.step
            self._ahead = self._finder.find(end, step, StepPath(lambda: whole, self._finder, end).show)

    def end_step(self) -> None:
        """A step that is shown partway is not made to its end: its events until now act now."""
        self.acting += [
            each for each in self._ahead or [] if each.event.acts and self._stepper.sign * each.time <= self._finder.shown
        ]
        self._ahead = None

    # --- Checkpoints ---

    def arrays(self) -> dict[str, np.ndarray]:
        """The bodies at the beginning of a step that is shown partway; the present ones at the end of a step."""
        now = self._finder.begin if self._stepper.moment.within else self._stepper.bodies()
        found = {"position": now.position, "velocity": now.velocity, "time": np.array([now.time])}
        return {OWN + name: array for name, array in found.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore what :meth:`arrays` returned, after the stepper."""
        self._ahead, self.happened, self.acting = None, [], []
        if self._stepper.moment.within and OWN + "time" in arrays:
            x, v, time = (arrays[OWN + name] for name in ("position", "velocity", "time"))
            self._finder.start(self._stepper.bodies()._replace(time=float(time[0]), position=x, velocity=v))
            self._finder.shown = self._stepper.sign * self._stepper.moment.time
        else:
            self._finder.shown = -math.inf
