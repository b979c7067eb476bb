"""A simulation that is running, as a source of pictures."""

import queue
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from nbody.errors import printable, shortened
from nbody.run.live import LiveRun
from nbody.viewer.picture.camera import Camera
from nbody.viewer.sources.live_series import LiveSeries
from nbody.viewer.sources.recording import LONGEST_NAME
from nbody.viewer.sources.samples import SAMPLES, speed_scale
from nbody.viewer.sources.series import Series
from nbody.viewer.sources.source import Caption, Frame, Moment, Source, unit_near

if TYPE_CHECKING:
    from nbody.viewer.sources.device_frames import DeviceFrames

Array = np.ndarray

FRAMED = 100_000
"""The number of bodies that the initial view takes into account."""

SAMPLED = 4096
"""The number of bodies whose speeds determine the palette's ends."""

RATE_SECONDS = 1.0
"""The pictures per second are counted over this time."""


class Picture:
    """A frame with its step and time."""

    def __init__(self, frame: Frame, step: int, time: float) -> None:
        self.frame, self.step, self.time = frame, step, time

    def release(self) -> None:
        """Declare that it is no longer shown: device memory is reused."""
        if release := getattr(self.frame, "release", None):
            release()


class Live(Source):
    """The bodies of a run on its thread, at the latest step that is complete.

    The run's thread puts pictures into a queue of at most one, and the window takes them out: neither waits for the other.
    (A run that is shown step by step waits until its picture is shown, see :class:`~nbody.run.live.LiveRun`.)

    Raises:
        NBodyError: the error that prevented the simulation.
    """

    def __init__(self, run: LiveRun) -> None:
        super().__init__()
        bodies = run.bodies
        self.run, self.count, self.dimensions = run, bodies.count, bodies.dimensions
        self.mass, self.id = bodies.mass, bodies.id
        self.gravity = None if getattr(run.scenario, "fields", None) else run.scenario.gravity
        self.species, self.species_names = getattr(bodies, "species", None), getattr(bodies, "species_names", ("",))
        self.units = getattr(run.scenario, "units", None)
        self.name = shortened(printable(run.scenario.name), LONGEST_NAME) or "run"
        self.length_unit = unit_near(float(np.abs(bodies.position).max(initial=0.0)))
        stride = -(-self.count // FRAMED)
        self._home = Camera.framing(bodies.position[::stride] / self.length_unit, self.dimensions)
        self._sampled = np.sort(np.random.default_rng(0).permutation(self.count)[:SAMPLED])
        self._samples: deque[Array] = deque([bodies.velocity[self._sampled]], maxlen=SAMPLES)
        self._scaled_at = 0
        self.speeds = speed_scale(self._samples)
        self._speed_unit = unit_near(self.speeds[1])
        self._newest: queue.SimpleQueue[Picture] = queue.SimpleQueue()
        self._picture: Picture | None = None
        self._before: Picture | None = None  # the picture before it
        self._number = 0  # of the picture, counted from 0
        self._device: DeviceFrames | None = None
        self._taken: deque[float] = deque()
        self._series = LiveSeries(self)

    @property
    def speed_unit(self) -> float:
        # It is that of the initial speeds, also when the palette's ends change.
        return self._speed_unit

    @property
    def frames(self) -> int:
        """The pictures shown so far; only the present one can be shown."""
        return self._number + 1

    def home(self, frame: int | None = None) -> Camera:
        # The initial conditions, framed.
        return self._home.copy()

    def moment(self, at: float) -> Moment:
        """The latest picture; the first call begins the run."""
        return Moment((self._picture or self._begin()).frame)

    def caption(self, at: float) -> Caption:
        shown, error = self._picture or self._begin(), self.run.energy_error
        return Caption(
            self.name, shown.time, shown.step, 0, 0, error, self.count, self.shown, self.speeds, self.way,
            self.symbol("time"),
        )  # fmt: skip

    def series(self) -> Series:
        return self._series.read()

    @property
    def way(self) -> str:
        """How the bodies get to the picture."""
        if self._device is None:
            return "computed on the CPU" if self._number else ""
        if self._device.problem:
            return f"copied through the host ({self._device.problem})"
        return "from the GPU's memory (interop)"

    @property
    def pictures_per_s(self) -> float:
        """Pictures taken during the last second."""
        now = time.perf_counter()
        while self._taken and self._taken[0] < now - RATE_SECONDS:
            self._taken.popleft()
        return len(self._taken) / RATE_SECONDS

    def past(self, number: int) -> tuple[Frame, float] | None:
        # The present picture, and the one before it.
        for each in (self._picture, self._before):
            if each is not None and each.frame.number == number:
                return each.frame, each.time * self.speed_unit / self.length_unit
        return None

    def take(self) -> bool:
        """Show the newest picture from now on. Returns True if there is one that has not been shown."""
        try:
            newest = self._newest.get_nowait()
        except queue.Empty:
            return False
        if self._before:
            self._before.release()
        self._before, self._picture = self._picture, newest
        self._number += 1
        object.__setattr__(newest.frame, "number", self._number)  # a frozen dataclass
        self._taken.append(time.perf_counter())
        self._series.add(newest.time, self.run.energy, self.run.energy_error, lambda: newest.frame)
        self.run.pace.taken()
        return True

    # --- On the run's thread, except for the beginning ---

    def _begin(self) -> Picture:
        """The initial conditions as the first picture, perhaps before there is a simulation; then begin the run. (The number
        of shown bodies is known now.)"""
        bodies = self.run.bodies
        self._picture = Picture(self._on_host(bodies.position, bodies.velocity), bodies.step, bodies.time)
        self.run.begin(self.publish)
        return self._picture

    def _on_host(self, position: Array, velocity: Array) -> Frame:
        shown = self.chosen(position, self.length_unit), self.chosen(velocity, self.speed_unit)
        # The state's arrays change with the next step.
        return Frame(0, *(rows.copy() if rows.base is not None else rows for rows in shown))

    def publish(self, state: Any) -> None:
        """Make a picture of the state, which replaces one that the window has not taken."""
        if self._device is None and hasattr(state, "body"):  # on a GPU
            from nbody.viewer.sources.device_frames import DeviceFrames

            rows = np.empty(0, np.int64) if isinstance(self._choice, slice) else self._choice
            self._device = DeviceFrames(rows, self.shown, (self.length_unit, self.speed_unit))
        if state.slots is not None:
            frame = self._on_host(*(rows[state.slots] for rows in state.phase_space()))
        elif self._device is None:
            frame = self._on_host(state.position, state.velocity)
        else:
            frame = self._device.frame(state)
        if state.step >= 2 * self._scaled_at:
            self._rescale(state)
        with suppress(queue.Empty):
            self._newest.get_nowait().release()
        self._newest.put(Picture(frame, state.step, state.time))

    def _rescale(self, state: Any) -> None:
        """Let the palette's ends follow the speeds, each time that the number of steps has doubled."""
        self._scaled_at = max(1, state.step)
        if state.slots is not None:
            self._samples.append(state.phase_space()[1][state.slots[self._sampled]])
        elif self._device is None:
            self._samples.append(state.velocity[self._sampled])
        else:
            self._samples.append(self._device.velocities(state, self._sampled) * self.speed_unit)
        self.speeds = speed_scale(self._samples)
