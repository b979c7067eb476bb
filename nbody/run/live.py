"""A simulation on a thread of its own, which a window controls: pause, single steps, speed, restart, recording.

    window ── toggle, step, faster, record … ──► LiveRun ◄── pace ── thread: Simulation.progress_events()
       ▲                                                               │
       └───────────── pictures (the caller's ``publish``) ◄────────────┘

All methods return at once, except :meth:`LiveRun.close` and :meth:`LiveRun.wait`. The threads share plain attributes and a
queue, since an interrupt inside a lock could leave it held.
"""

import math
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import TypeVar

from nbody.errors import InputError, NBodyError
from nbody.initial import check_initial, make_particles
from nbody.particles import Particles
from nbody.run.live_pace import UNLIMITED, LivePace
from nbody.run.loop import ProgressEvent
from nbody.run.progress import Progress, Summary
from nbody.run.signals import StopRequest, stop_on_signals
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario
from nbody.state import State
from nbody.whole_file import Notify

TIMEOUT = 2.0
"""Seconds that closing waits for the current step; then the step is abandoned."""

Publish = Callable[[State], None]
Made = TypeVar("Made")


class Command(Enum):
    """What the window asks of the thread between two steps."""

    RESTART, RECORD, STOP_RECORDING = range(3)


class _Left(Exception):
    """Ends the loop of a simulation that records nothing."""


class LiveRun:
    """Runs a scenario on a thread, from construction on; the first steps are made after :meth:`begin`.

    Args:
        scenario: what to simulate.
        output: the file that :meth:`record` writes.
        recording: record from the start, at full speed (``nbody run --view``). Such a run ends by itself, and can be paused,
            but not restarted.
        overwrite: replace an existing file instead of keeping it under a numbered name.
        notify, progress: get the lines of :class:`Simulation`, and the progress several times per second, on the thread.
        make: makes a simulation, called on the thread like the class :class:`Simulation`; for tests.

    Attributes:
        pace: pause, single steps and speed.
        energy_error: the relative energy error of the latest frame, since the run began; NaN before it.
        recording: the file being written; None if there is none.
        ended: True at the scenario's end.
        failure: the error that stopped the run; None if there was none.
    """

    def __init__(
        self,
        scenario: Scenario,
        output: Path = Path("output/run.h5"),
        recording: bool = False,
        overwrite: bool = False,
        notify: Notify = lambda line: None,
        progress: Callable[[Progress], None] = lambda now: None,
        make: Callable[..., Simulation] = Simulation,
    ) -> None:
        self.scenario, self.output, self._overwrite, self._records = scenario, output, overwrite, recording
        self._notify, self._show_progress, self._make = notify, progress, make
        self.pace, self.ended = LivePace(UNLIMITED if recording else 1.0), False
        self.progress: Progress | None = None
        self.energy_error = math.nan
        self.recording: Path | None = None
        self.failure: BaseException | None = None
        self.messages: queue.SimpleQueue[str] = queue.SimpleQueue()
        """Lines for the user, in order."""
        self._bodies: Particles | None = None
        self._simulation: Simulation | None = None
        self._publish: Publish | None = None
        self.begun, self._closing = False, False
        self._command: Command | None = None  # until the thread has handled it
        self._step = 0  # of the latest event
        self._first_energy = math.nan
        self._stop = StopRequest()
        self._ready: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._finished = False
        self.thread = threading.Thread(target=self._work, name="live run", daemon=True)
        self.thread.start()

    # --- Called by the window ---

    @property
    def bodies(self) -> Particles:
        """The initial conditions; waits until they are made, which is before an engine is loaded. Raises the error that
        prevented them."""
        return self._once_made(lambda: self._bodies)

    @property
    def simulation(self) -> Simulation:
        """The simulation; waits until it is made. Raises the error that prevented it."""
        return self._once_made(lambda: self._simulation)

    @property
    def prepared(self) -> bool:
        """True when there is a simulation, so that nobody waits for it."""
        return self._simulation is not None

    def _once_made(self, made: Callable[[], Made | None]) -> Made:
        while (found := made()) is None:
            if self._finished:
                raise self.failure or KeyboardInterrupt
            with suppress(queue.Empty):
                self._ready.get(timeout=0.1)
        return found

    @property
    def energy(self) -> float:
        """The total energy of the latest frame; NaN before it."""
        return self._first_energy + self.energy_error * (abs(self._first_energy) or 1.0)

    def begin(self, publish: Publish) -> None:
        """Begin to make steps. ``publish`` is called on the thread, between two steps, with each state to be shown."""
        self._publish, self.begun = publish, True
        self.pace.wake()

    def restart(self) -> None:
        """Go back to the initial conditions, and pause. A recording is ended first."""
        if self._records:
            self.messages.put("this run is recorded from its start to its end; it cannot be restarted")
            return
        self.pace.playing, self._command = False, Command.RESTART
        self.pace.wake()

    def record(self) -> None:
        """Start a recording that begins with the present state, or end it."""
        if self._records:
            self.messages.put(f"this run is recorded from its start to its end, in {self.output}")
            return
        self._command = Command.STOP_RECORDING if self.recording else Command.RECORD
        self.pace.wake()

    def detach(self) -> None:
        """The window is closed, and the run goes on at full speed, unpaused."""
        self._publish = None
        self.pace.detach()

    def close(self) -> None:
        """Stop, end a recording, and return when the thread has ended. A step that takes longer than :data:`TIMEOUT` is
        abandoned: the recording then ends with the last frame before it."""
        self._stop.silent = self._closing = self._stop.requested = True
        self._publish = None
        self.pace.wake()
        self.thread.join(TIMEOUT)
        self._stop.now = True
        self.thread.join()

    def wait(self) -> Summary | None:
        """Return when the run has ended, with its summary. The first Ctrl-C stops it after the current step, a second
        one within the step. Raises the error that ended the run; KeyboardInterrupt if it was stopped within a step."""
        try:
            with stop_on_signals() as signals:
                while self.thread.is_alive():
                    self.thread.join(0.05)
                    if signals.requested:
                        self.stop()
        except KeyboardInterrupt:  # a third one ends the process
            self._stop.now = True
            self.thread.join()
        if self.failure is not None:
            raise self.failure
        return self._simulation.summary if self._simulation else None

    def stop(self) -> None:
        """Stop after the current step, without waiting."""
        self._stop.requested = self._closing = True
        self.pace.wake()

    # --- The thread ---

    def _work(self) -> None:
        try:
            check_initial(self.scenario)
            self._bodies = make_particles(self.scenario, self._notify)
            self._ready.put(None)
            self._new(self.output if self._records else None)
            self._ready.put(None)
            while True:
                self._run(self.simulation)
                while not (self._records or self._command or self._closing):
                    self.pace.sleep(self.begun)
                if self._records or self._closing:
                    return
                self._handle()
        except BaseException as error:
            if not (self._closing and isinstance(error, _Left | KeyboardInterrupt) and not self._records):
                self.failure = error
        finally:
            self._finished, self.recording = True, None
            self._ready.put(None)

    def _new(self, output: Path | None = None) -> None:
        self._simulation = None  # frees its memory first
        self._simulation = self._make(
            self.scenario, output, self._overwrite, self._notify, particles=self._bodies, repeats=True
        )
        self.recording, self.ended, self.progress = output, False, None
        self._step = self._simulation.steps_made

    def _run(self, simulation: Simulation) -> None:
        """Run until the end, a command, or an error of the run, which the user is told."""
        self._stop = StopRequest()
        self._stop.requested = self._stop.silent = self._closing
        try:
            for event in simulation.progress_events(progress=self._note, pace=self):
                self._after(event)
            self.ended = not self._stop.requested
            self._show(simulation.state)
        except _Left:
            return
        except NBodyError as error:
            if self._records:
                raise
            self.messages.put(str(error))
            if isinstance(error, InputError) and self.recording:  # the file can't be written: go on without it
                self.recording, self._command = None, Command.STOP_RECORDING
                return
            self.pace.playing, self.ended = False, True
        if self.recording:
            self.messages.put(f"recorded: {self.recording}")
            self.recording = None

    def _handle(self) -> None:
        command, self._command = self._command, None
        if command is Command.RESTART:
            self._first_energy = self.energy_error = math.nan
            self._new()
            self._show(self.simulation.state)
        elif command is Command.STOP_RECORDING:
            self.simulation.record(None)
        else:
            try:
                self.simulation.record(self.output, self._overwrite)
                self.recording = self.output
            except InputError as error:
                self.messages.put(str(error))

    @contextmanager
    def stopping(self) -> Iterator[StopRequest]:
        yield self._stop

    def steps(self) -> int:
        """Waits for the window, the user, and the next picture's turn."""
        try:
            while not (self._closing or self._command):
                if self.begun and (now := self.pace.steps_now(self._publish is not None)):
                    self.pace.granted = now
                    return now
                if self.pace.unshown and not self.pace.playing:  # paused between two pictures
                    self._show(self.simulation.state)
                self.pace.sleep(self.begun)
            if self.recording is None:
                raise _Left
            self._stop.silent = self._stop.requested = True
            return 0
        finally:
            self.pace.work()

    def _after(self, event: ProgressEvent) -> None:
        """Take note of a progress event, and show the state if it is time."""
        progress = event.progress
        made, self._step = progress.step - self._step, progress.step
        if math.isnan(self._first_energy):
            self._first_energy = event.energies.initial
        if not math.isnan(event.energies.latest):
            error = (event.energies.latest - self._first_energy) / (abs(self._first_energy) or 1.0)
            self.energy_error = error if event.energies.conserved else math.nan
        self._note(progress)
        if self.pace.made(made):
            self._show(event.state)

    def _note(self, progress: Progress) -> None:
        self.progress = progress
        self._show_progress(progress)

    def _show(self, state: State) -> None:
        """Publish the state, unless the window has not taken the picture before."""
        publish = self._publish
        if publish is None or (not self.pace.shown and self.pace.playing and not self.ended):
            return
        self.pace.published()
        publish(state)
