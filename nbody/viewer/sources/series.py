"""Numbers of a run against time, for the small panel of the window: recorded ones, and those of a running simulation."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nbody.diagnostics.energy import relative_energy_error, virial_ratio
from nbody.diagnostics.structure import FRACTIONS, lagrangian_radii
from nbody.errors import NBodyError
from nbody.particles import Particles
from nbody.trajectory import Trajectory
from nbody.viewer.sources.frames import ShownFrame

if TYPE_CHECKING:
    from nbody.viewer.sources.source import Source

Array = np.ndarray

RADII = "lagrangian_radii"

FRAMES = 64
"""The number of frames whose Lagrangian radii are computed where none were recorded, evenly spread over the run."""

INTERVAL = 0.25
"""Seconds between points of a running simulation."""

SAMPLE = 4096
"""The most bodies of which the radii are computed, 10 ms per point for the density centre (an AMD EPYC)."""

OFTEN = 100_000
"""Up to this number of shown bodies, points are added at all times; with more, only while somebody looks at them, because
copying a picture from a GPU takes time."""

MOST_POINTS = 4000
"""With more, every second point is forgotten."""


@dataclass(frozen=True, eq=False)
class Curve:
    """``values`` (T,), or (T, F) for F curves, at ``time`` (T,), which increases."""

    time: Array
    values: Array

    def known(self) -> "Curve":
        """The points that are finite."""
        finite = np.isfinite(self.values)
        return Curve(self.time[finite], self.values[finite])


EMPTY = Curve(np.zeros(0), np.zeros(0))


@dataclass(frozen=True, eq=False)
class Series:
    """What is known of a run at present; a curve may have no point, and may miss times.

    Attributes:
        energy_error: (E - E₀)/|E₀|.
        virial_ratio: T/|W|.
        radii: the radii that contain the fractions ``fractions`` of the mass.
        complete: no point will be added unless the run goes on.
    """

    energy_error: Curve = EMPTY
    virial_ratio: Curve = EMPTY
    radii: Curve = EMPTY
    fractions: tuple[float, ...] = FRACTIONS
    complete: bool = True

    @property
    def times(self) -> Array:
        """The times of all curves: their number changes when there is something new to draw."""
        return np.concatenate([curve.time for curve in (self.energy_error, self.virial_ratio, self.radii)])


class RecordedSeries:
    """Reads the series of ``run``, also while it grows. Lagrangian radii that were not recorded are computed on a thread."""

    def __init__(self, run: Trajectory) -> None:
        self._run = run
        self._stop = threading.Event()
        self._radii: dict[int, Array] = {}  # by frame; only the thread writes
        self._thread: threading.Thread | None = None
        self._sampled = 0

    def read(self) -> Series:
        """The series as far as they are known."""
        run, time = self._run, self._run.time
        energy = Curve(time, run.energy_balance()).known()
        error = np.array([relative_energy_error(each, energy.values[0]) for each in energy.values])
        curves = Curve(energy.time, error), Curve(time, run.observable("virial_ratio")).known()
        if RADII in run.observables:
            radii = run.observable(RADII).reshape(len(run), -1)
            unknown = (math.nan,) * radii.shape[1]
            return Series(*curves, Curve(time, radii), FRACTIONS if len(unknown) == len(FRACTIONS) else unknown)
        self._sample()
        done = sorted(self._radii.copy().items())
        sampled = Curve(time[[k for k, _ in done]], np.array([radii for _, radii in done])) if done else EMPTY
        return Series(*curves, sampled, complete=not (self._thread and self._thread.is_alive()))

    def _sample(self) -> None:
        """Start the thread; also when the run has doubled."""
        if len(self._run) < 2 * self._sampled or (self._thread and self._thread.is_alive()):
            return
        self._sampled = len(self._run)
        self._thread = threading.Thread(target=self._work, args=(len(self._run),), name="series", daemon=True)
        self._thread.start()

    def _work(self, frames: int) -> None:
        chosen = sorted({round(k) for k in np.linspace(0, frames - 1, FRAMES)})
        for k in chosen[::8] + [k for i, k in enumerate(chosen) if i % 8]:  # so that the curve soon has its shape
            if self._stop.is_set():
                return
            try:
                position, velocity = self._run.position[k], self._run.velocity[k]
                self._radii[k] = lagrangian_radii(Particles(self._run.mass, position, velocity, self._run.id))
            except (NBodyError, ValueError):  # a damaged frame, or a file that has been closed
                continue

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread:
            self._thread.join()


class LiveSeries:
    """The series of a simulation that is running: points are added from the pictures of ``source`` that are shown."""

    def __init__(self, source: "Source") -> None:
        self._source = source
        self._points: list[tuple[float, float, float, Array]] = []
        self._added_at = self._read_at = -math.inf

    def add(self, moment: float, energy: float, error: float, frame: Callable[[], ShownFrame]) -> None:
        """Add a point for time ``moment``, unless the last one has just been added.

        Args:
            energy: the latest total energy; NaN if not known.
            error: its relative error.
            frame: gives the picture's bodies.
        """
        now = time.monotonic()
        watched = self._source.shown.count <= OFTEN or now - self._read_at < 4 * INTERVAL
        if self._points and moment < self._points[-1][0]:  # the run was restarted
            self._points.clear()
        elif now - self._added_at < INTERVAL or not watched or (self._points and moment == self._points[-1][0]):
            return
        self._added_at = now
        self._points.append((moment, error, *self._measured(frame(), energy)))
        if len(self._points) > MOST_POINTS:
            del self._points[1::2]

    def _measured(self, frame: ShownFrame, energy: float) -> tuple[float, Array]:
        """T/|W| with W = E - T, and the Lagrangian radii."""
        source, stride = self._source, -(-len(frame.position) // SAMPLE)
        mass = source.shown.of(source.catalogue.mass)
        velocity = frame.velocity.astype(np.float64) * source.speed_unit
        kinetic = (
            0.5 * float(mass @ np.einsum("ij,ij->i", velocity, velocity)) * source.catalogue.mass.sum() / mass.sum()
        )
        bodies = Particles(mass[::stride], frame.position[::stride] * source.length_unit, velocity[::stride])
        return math.nan if math.isnan(energy) else virial_ratio(kinetic, energy - kinetic), lagrangian_radii(bodies)

    def read(self) -> Series:
        """The points so far."""
        self._read_at = time.monotonic()
        if not self._points:
            return Series(complete=False)
        times, *values = (np.array(each) for each in zip(*self._points, strict=True))
        error, ratio, radii = (Curve(times, each) for each in values)
        return Series(error.known(), ratio.known(), radii, complete=False)
