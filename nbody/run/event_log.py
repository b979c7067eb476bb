"""The log of a run's events: what its ``events`` look for, collisions, and changes of its bodies."""

import time
from signal import SIGINT, raise_signal
from typing import TYPE_CHECKING

import numpy as np

from nbody.particles import body_names
from nbody.run.observers import Observer
from nbody.run.signals import stop_on_signals
from nbody.run.stepper import Stepper
from nbody.scenario.quantities import shown_time
from nbody.trajectory.reading.events import event_line, no_events
from nbody.trajectory.structure.layout import BOUNCE, CONTACT

if TYPE_CHECKING:
    from nbody.events.finder import Happened
    from nbody.run.event_watch import EventWatch


STEPS_PER_CALL, SECONDS_PER_CALL = 10_000, 0.05
"""The most steps of :meth:`EventLog.make_steps` before it looks for Ctrl-C. If they take longer than this, it looks after
each step."""


class EventLog(Observer):
    """Keeps the events, and does what they ask for: it ends the run, or calls a user's function.

    Args:
        stepper: gets what looks for the events of the run, if it has any besides collisions.
        recorded: the number of events in the file, an attribute too.

    Attributes:
        stopped: what has ended the last call, in words; empty if it was nothing here.
    """

    def __init__(self, stepper: Stepper, recorded: int = 0) -> None:
        super().__init__(stepper)
        self.recorded = recorded
        self._watch: EventWatch | None = None
        if stepper.setup.events:
            from nbody.run import event_watch  # events are imported only where there are some

            self._watch = event_watch.EventWatch(stepper, stepper.setup.events)
        stepper.watch = self._watch
        self._rows: list[np.ndarray] = []
        self._taken, self._warned, self.stopped, self._at_once = 0, False, "", 1
        self._alone = stop_on_signals(signals=(SIGINT,))  # of single steps: to make one takes as long

    @property
    def rows(self) -> np.ndarray:
        """The events since the simulation was made."""
        return np.concatenate([no_events(), *self._rows])

    def look(self) -> bool:
        stepper, watch = self._stepper, self._watch
        self._collect()
        if stepper.collisions and (touched := stepper.collisions.touched) is not None:
            stepper.collisions.touched = None
            first, second, time = touched
            factor, unit = self._shown_time()
            self._stop(f"bodies {first} and {second} (ids) touch at t = {factor * time:.9g} {unit}".rstrip())
        if watch is None or not (watch.happened or watch.acting or watch.failure):
            return True
        if watch.failure is not None:
            self.failure, watch.failure = watch.failure, None
            return stepper.moment.within  # the frames of a step that is shown partway come first
        self._rows += [each.row for each in watch.happened]
        acting = list(watch.acting)
        watch.happened.clear()
        watch.acting.clear()  # before a user's function looks at the events
        return not [each for each in acting if not self._act(each)]

    def _collect(self) -> None:
        """Take the collisions and changes of the stepper."""
        self._rows += [rows for rows in self._stepper.events if len(rows)]
        self._stepper.events.clear()

    def make_steps(self, n: int) -> None:
        """Let the stepper make ``n`` steps, or fewer if an event ends the run. Raises the error of a user's function."""
        stepper, stop, left = self._stepper, self._alone if n == 1 else stop_on_signals(), n
        self.go_on()
        stepper.begin()
        try:
            with stop:
                while left > 0 and not self.ended and not stop.requested:
                    began = time.perf_counter()
                    left -= stepper.advance(min(self._at_once, left))
                    short = time.perf_counter() - began < SECONDS_PER_CALL
                    self._at_once = min(8 * self._at_once, STEPS_PER_CALL) if short else 1
                    if self._watch is not None:
                        self.look()
                    if self.failure is not None:
                        raise self.failure
        finally:
            if stop.requested and n == 1:
                self._alone = stop_on_signals(signals=(SIGINT,))
                raise_signal(SIGINT)  # to the caller's handler
        if stop.requested and n > 1:
            raise KeyboardInterrupt(f"interrupted at step {stepper.clock.step}")

    def go_on(self) -> None:
        """Begin a call, which nothing has ended yet."""
        self.ended, self.stopped, self.failure = False, "", None

    def _stop(self, line: str) -> None:
        """End the run, and say why."""
        self.ended, self.stopped = True, line
        self._setup.notify(f"stopped: {line}")

    def _act(self, happened: "Happened") -> bool:
        """End the run, or call the user's function. Returns False if that has failed."""
        event = happened.event
        if event.stops:
            roster = self._stepper.roster
            names = body_names(self._setup.bodies if roster is None else roster.bodies)
            self._stop(event_line(happened.row[0], *self._shown_time(), names))
        if event.call is not None:
            try:
                self.ended |= not self._stepper.writable.show_to(event.call)
            except Exception as error:  # the file is finished in good order first
                self.failure = error
                return False
        return True

    def _shown_time(self) -> tuple[float, str]:
        """The unit in which times are shown, and how many of the scenario's it has."""
        units = self._setup.scenario.units
        return shown_time(units.time) if units else (1.0, "")

    # --- The file ---

    def begin_file(self) -> None:
        """Begin another file, which has the events from now on."""
        self.recorded, self._taken = 0, len(self._rows)

    @property
    def waiting(self) -> bool:
        """True if there are events that were not taken yet."""
        return bool(self._stepper.events) or len(self._rows) > self._taken

    def take(self) -> np.ndarray:
        """The events that were not taken yet, as far as the file has room."""
        self._collect()
        rows, self._taken = np.concatenate([no_events(), *self._rows[self._taken :]]), len(self._rows)
        capacity = self._setup.event_capacity
        limited = (rows["event"] >= 0) | np.isin(rows["kind"], (CONTACT, BOUNCE))  # the others change bodies
        kept = rows[~limited | (np.cumsum(limited) <= max(0, capacity - self.recorded))]
        if len(kept) < len(rows) and not self._warned:
            self._warned = True
            what, key = ("collisions", "collisions.most") if self._watch is None else ("events", "record.events")
            self._setup.notify(f"warning: the recording has room for {capacity} {what} ({key}); later ones are not recorded")
        self.recorded += len(kept)
        return kept
