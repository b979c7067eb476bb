"""The series of a recording: recorded observables, and Lagrangian radii computed on a thread where none were recorded."""

import threading

import numpy as np

from nbody.diagnostics.energy import relative_energy_error
from nbody.diagnostics.lagrangian import FRACTIONS, lagrangian_radii
from nbody.errors import NBodyError
from nbody.particles import Particles
from nbody.trajectory import Trajectory
from nbody.viewer.sources.series import EMPTY, Curve, Series

RADII = "lagrangian_radii"

SAMPLES = 64
"""The number of frames whose Lagrangian radii are computed, evenly spread over the run."""


class RecordedSeries:
    """Reads the series of ``run``, also while it grows."""

    def __init__(self, run: Trajectory) -> None:
        self._run = run
        self._stop = threading.Event()
        self._radii: dict[int, np.ndarray] = {}  # by frame; only the thread writes
        self._thread: threading.Thread | None = None
        self._sampled = 0

    def read(self) -> Series:
        """The series as far as they are known."""
        run = self._run
        time, energy = run.time, run.energy_balance()
        known = np.isfinite(energy)
        error = np.array([relative_energy_error(each, energy[known][0]) for each in energy[known]])
        virial = run.observable("virial_ratio")
        finite = np.isfinite(virial)
        curves = Curve(time[known], error), Curve(time[finite], virial[finite])
        if RADII in run.observables:
            radii = run.observable(RADII).reshape(len(run), -1)
            return Series(*curves, Curve(time, radii), self._recorded_fractions(radii.shape[1]))
        self._sample()
        done = sorted(self._radii.copy().items())
        values = np.array([radii for _, radii in done])
        sampled = Curve(time[[k for k, _ in done]], values) if done else EMPTY
        return Series(*curves, sampled, FRACTIONS, complete=not (self._thread and self._thread.is_alive()))

    def _recorded_fractions(self, count: int) -> tuple[float, ...]:
        return FRACTIONS if count == len(FRACTIONS) else tuple(float("nan") for _ in range(count))

    def _sample(self) -> None:
        """Start the thread; also when the run has doubled."""
        if len(self._run) < 2 * self._sampled or (self._thread and self._thread.is_alive()):
            return
        self._sampled = len(self._run)
        self._thread = threading.Thread(target=self._work, args=(len(self._run),), name="series", daemon=True)
        self._thread.start()

    def _work(self, frames: int) -> None:
        for k in _coarse_to_fine(frames):
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


def _coarse_to_fine(frames: int) -> list[int]:
    """Up to :data:`SAMPLES` frames in an order in which the curve soon has its shape: every 8th, then those between."""
    chosen = sorted({round(k) for k in np.linspace(0, frames - 1, SAMPLES)})
    return chosen[::8] + [k for i, k in enumerate(chosen) if i % 8]
