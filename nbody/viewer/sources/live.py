"""A simulation that is running, as a source of pictures."""

import math
import queue
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import numpy as np

from nbody.diagnostics.energy import virial_ratio
from nbody.diagnostics.structure import lagrangian_radii
from nbody.particles import Particles
from nbody.run.live import LiveRun
from nbody.scenario.quantities import Units
from nbody.state import State
from nbody.state.host import HostState
from nbody.viewer.sources.camera import FEW, Camera
from nbody.viewer.sources.frames import FAR, Array, Selection, ShownFrame, ShownMoment, drawn
from nbody.viewer.sources.history import MEMORY, History
from nbody.viewer.sources.samples import SAMPLES, speed_scale
from nbody.viewer.sources.source import Caption, Catalogue, Curve, Series, Source, unit_near

if TYPE_CHECKING:
    from nbody.state.device import DeviceState
    from nbody.viewer.sources.device_frames import DeviceFrames

Drawn = tuple[Catalogue, Selection]

FRAMED = 100_000  # the number of bodies that the initial view takes into account
SAMPLED = 4096  # the number of bodies whose speeds determine the palette's ends
INTERVAL = 0.25  # seconds between points of the series
RADII_SAMPLE = 4096  # the most bodies for Lagrangian radii: 10 ms per point for the density centre (an AMD EPYC)

OFTEN = 100_000
"""Up to this number of shown bodies, points are added at all times; with more, only while somebody looks at them, because
copying a picture from a GPU takes time."""

MOST_POINTS = 4000  # with more, every second point is forgotten


class Live(Source):
    """The bodies of a run on its thread: the latest state, which is the last frame, and as many of those that were shown
    before as fit into ``memory`` bytes (:class:`~.history.History`). Raises the error that prevented the run.

    The run's thread puts frames into a queue of at most one, and the window takes them out: neither waits for the other.
    (A run that is shown step by step waits until its picture is shown, see :class:`~nbody.run.live.LiveRun`.)
    """

    def __init__(self, run: LiveRun, memory: float = MEMORY) -> None:
        now, scenario = run.bodies, run.scenario
        self.run = run
        bodies = Catalogue(
            now.dimensions, now.mass, now.id, now.species, now.species_names,
            None if scenario.fields else scenario.gravity, scenario.units or Units(),
        )  # fmt: skip
        super().__init__(scenario.name, bodies, unit_near(float(np.abs(now.position).max(initial=0.0))))
        stride = -(-bodies.count // FRAMED)
        position = now.position[::stride] / self.length_unit
        planets = bodies.count <= FEW and now.mass.sum() > 0  # go around their centre of mass
        centre = np.resize(np.append(now.mass @ position / now.mass.sum(), 0.0), 3) if planets else None
        self._home = Camera.framing(position, bodies.dimensions, centre)
        self._sampled = np.sort(np.random.default_rng(0).permutation(bodies.count)[:SAMPLED])
        self._samples: deque[Array] = deque([now.velocity[self._sampled]], maxlen=SAMPLES)
        self._scaled_at = 0
        self.speeds = speed_scale(self._samples)
        self._speed_unit = unit_near(self.speeds[1])
        self._newest: queue.SimpleQueue[tuple[ShownFrame, Drawn]] = queue.SimpleQueue()
        self._history = History(memory)
        self._device: DeviceFrames | None = None
        self._series = LiveSeries(self)
        self._bodies: Particles | None = None  # those of the latest state, and what follows from them
        self._rows: Array | None = None
        self._mass = bodies.mass
        self._drawn: Drawn = bodies, self.shown  # the window takes them over with a frame

    @property
    def speed_unit(self) -> float:
        # It is that of the initial speeds, also when the palette's ends change.
        return self._speed_unit

    @property
    def frames(self) -> int:
        return max(1, len(self._history))

    def home(self, frame: int | None = None) -> Camera:
        # The initial conditions, framed.
        return self._home.copy()

    def moment(self, at: float) -> ShownMoment:
        # The first call begins the run.
        k = int(at)
        first = self._frame(k)
        return ShownMoment(first, self._frame(k + 1), at - k) if at > k else ShownMoment(first)

    def caption(self, at: float) -> Caption:
        k, bodies = int(at), self.catalogue
        now, after = self._frame(k), self._frame(math.ceil(at))
        time, step = (a + (at - k) * (b - a) for a, b in ((now.time, after.time), (now.step, after.step)))
        latest = self.run.energy_error
        energy_error = latest if k == self.frames - 1 else now.energy_error if k else 0.0 * latest
        return Caption(
            self.name, time * self.length_unit / self.speed_unit, int(step), 0, 0, energy_error, bodies.count,
            self.shown.count, self._line(k), bodies.units.symbol("time"),
        )  # fmt: skip

    def marks(self) -> Array:
        # The present, from which one may have gone back.
        return np.array([self.frames - 1.0])

    def series(self) -> Series:
        return self._series.read()

    def _line(self, k: int) -> str:
        """How the bodies get to the picture; of an earlier one, how many are kept."""
        if k < self.frames - 1:
            return f"of older pictures one in {stride} is kept" if (stride := self._history.stride) > 1 else ""
        if self._device is None:
            return "computed on the CPU" if self.frames > 1 else ""
        if self._device.problem:
            return f"copied through the host ({self._device.problem})"
        return "from the GPU's memory (interop)"

    def past(self, k: int) -> ShownFrame | None:
        return self._frame(k) if 0 <= k < len(self._history) else None

    def place(self, number: int) -> int:
        return self._history.place(number)

    def refresh(self) -> int:
        # Takes the newest frame over as the last one.
        with suppress(queue.Empty):
            newest, (self.catalogue, self.shown) = self._newest.get_nowait()
            self._history.add(newest)
            time = newest.time * self.length_unit / self.speed_unit
            self._series.add(time, self.run.energy, self.run.energy_error, newest)
            self.run.pace.taken()
        return self.frames

    def _frame(self, k: int) -> ShownFrame:
        """Frame ``k`` with the rows of the bodies that are drawn now; at first the initial conditions, perhaps before there
        is a simulation, and the run begins. (The bodies that are drawn are known then.)"""
        if not len(self._history):
            bodies = self.run.bodies
            self._history.add(self._on_host(bodies.position, bodies.velocity, bodies.step, bodies.time))
            self.run.begin(self._publish)
        frame, total = self._history[k], self.catalogue.count
        if len(frame.mass) != total:  # bodies were added
            frame = self._history[k] = frame.grown(self.shown.count, total)
        return frame

    # --- On the run's thread, except for the beginning ---

    def _on_host(self, position: Array, velocity: Array, step: int, time: float) -> ShownFrame:
        """A frame of all bodies of the catalogue."""
        chosen = self._drawn[1]
        shown = chosen.vectors(position, self.length_unit), chosen.vectors(velocity, self.speed_unit)
        # The state's arrays change with the next step.
        own, velocities = (rows.copy() if rows.base is not None else rows for rows in shown)
        time *= self.speed_unit / self.length_unit
        return ShownFrame(0, own, velocities, time, step, self.run.energy_error, self._mass)

    def _note(self, bodies: Particles) -> None:
        """Take note of which bodies a state has."""
        catalogue, shown = self._drawn
        new = ~np.isin(bodies.id, catalogue.id)
        if new.any():
            catalogue, self._device = catalogue.grown(bodies.rows(new)), None
            shown = shown.grown(catalogue.count)
        self._drawn, self._bodies, self._rows = (catalogue, shown), bodies, None
        if np.array_equal(bodies.id, catalogue.id):
            self._mass = catalogue.mass if np.array_equal(bodies.mass, catalogue.mass) else bodies.mass
            return
        order = np.argsort(bodies.id)
        at = order[np.searchsorted(bodies.id, catalogue.id, sorter=order).clip(max=bodies.count - 1)]
        self._rows = rows = np.where(bodies.id[at] == catalogue.id, at, -1)
        self._mass = np.where(rows < 0, 0.0, bodies.mass[rows])

    def _publish(self, state: State) -> None:
        """Make a frame of the state, which replaces one that the window has not taken."""
        if (bodies := state.frames.bodies) is not None and bodies is not self._bodies:
            self._note(bodies)
        rows, clock = self._rows, state.clock
        device = self._frames_of(state) if rows is None else None
        if device is not None:
            on_device = cast("DeviceState", state)
            frame: ShownFrame = device.frame(
                on_device, clock.time * self.speed_unit / self.length_unit, self.run.energy_error, self._mass
            )
            self._rescale(clock.step, lambda: device.velocities(on_device, self._sampled) * self.speed_unit)
        else:
            frame = self._of_host(state, rows)
            sampled = self._sampled if rows is None else rows[self._sampled]
            self._rescale(clock.step, lambda: state.values("velocity")[0][sampled[sampled >= 0]])
        with suppress(queue.Empty):
            self._newest.get_nowait()[0].release()
        self._newest.put((frame, self._drawn))

    def _of_host(self, state: State, rows: Array | None) -> ShownFrame:
        """A frame of a state through host memory. A body that has merged into another, or is gone, is not drawn."""
        position, velocity = state.values("position", "velocity", copy=rows is not None)
        if rows is None:
            return self._on_host(position, velocity, state.clock.step, state.clock.time)
        frame = self._on_host(position[rows], velocity[rows], state.clock.step, state.clock.time)
        hidden = self._drawn[1].of(rows < 0)
        frame.position[hidden], frame.velocity[hidden] = FAR, 0.0
        return frame

    def _rescale(self, step: int, velocities: Callable[[], Array]) -> None:
        """Let the palette's ends follow, each time that the steps have doubled."""
        if step >= 2 * self._scaled_at:
            self._scaled_at = max(1, step)
            self._samples.append(velocities())
            self.speeds = speed_scale(self._samples)

    def _frames_of(self, state: State) -> "DeviceFrames | None":
        """What makes frames of a state on a GPU; None for one in host memory."""
        if self._device is None and not isinstance(state, HostState):
            from nbody.viewer.sources.device_frames import DeviceFrames

            _, shown = self._drawn
            rows = np.empty(0, np.int64) if isinstance(shown.rows, slice) else shown.rows
            self._device = DeviceFrames(rows, shown.count, (self.length_unit, self.speed_unit))
        return self._device


class LiveSeries:
    """The series of a simulation that is running: points are added from the frames of ``source`` that are shown."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._points: list[tuple[float, float, float, Array]] = []
        self._added_at = self._read_at = -math.inf

    def add(self, moment: float, energy: float, error: float, frame: ShownFrame) -> None:
        """Add a point for time ``moment``, unless the last one has just been added. ``energy`` is the latest total energy
        (NaN if not known), ``error`` its relative error, and ``frame`` has the bodies."""
        now = time.monotonic()
        watched = self._source.shown.count <= OFTEN or now - self._read_at < 4 * INTERVAL
        if self._points and moment < self._points[-1][0]:  # the run was restarted
            self._points.clear()
        elif now - self._added_at < INTERVAL or not watched or (self._points and moment == self._points[-1][0]):
            return
        self._added_at = now
        self._points.append((moment, error, *self._measured(frame, energy)))
        if len(self._points) > MOST_POINTS:
            del self._points[1::2]

    def _measured(self, frame: ShownFrame, energy: float) -> tuple[float, Array]:
        """T/|W| with W = E - T, and the Lagrangian radii."""
        source, stride = self._source, -(-len(frame.position) // RADII_SAMPLE)
        total, mass = frame.mass.sum(), source.shown.of(frame.mass)
        velocity = frame.velocity.astype(np.float64) * source.speed_unit
        kinetic = 0.5 * float(mass @ np.einsum("ij,ij->i", velocity, velocity)) * total / mass.sum()
        rows = np.flatnonzero(drawn(frame.position))[::stride]
        bodies = Particles(mass[rows], frame.position[rows] * source.length_unit, velocity[rows])
        return math.nan if math.isnan(energy) else virial_ratio(kinetic, energy - kinetic), lagrangian_radii(bodies)

    def read(self) -> Series:
        """The points so far."""
        self._read_at = time.monotonic()
        if not self._points:
            return Series(complete=False)
        times, *values = (np.array(each) for each in zip(*self._points, strict=True))
        error, ratio, radii = (Curve(times, each) for each in values)
        return Series(error.known(), ratio.known(), radii, complete=False)
