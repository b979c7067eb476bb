"""The series of a simulation that is running: points are added from the pictures that are shown."""

import math
import time
from collections.abc import Callable

import numpy as np

from nbody.diagnostics.energy import virial_ratio
from nbody.diagnostics.lagrangian import FRACTIONS, lagrangian_radii
from nbody.particles import Particles
from nbody.viewer.sources.series import EMPTY, Curve, Series
from nbody.viewer.sources.source import Frame, Source

INTERVAL = 0.25
"""Seconds between points."""

SAMPLE = 4096
"""The most bodies of which the radii are computed, 10 ms per point for the density centre (an AMD EPYC)."""

OFTEN = 100_000
"""Up to this number of shown bodies, points are added at all times; with more, only while somebody looks at them, because
copying a picture from a GPU takes time."""

MOST_POINTS = 4000
"""With more, every second point is forgotten."""


class LiveSeries:
    """Collects points.

    Args:
        source: the simulation.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._points: list[tuple[float, float, float, tuple[float, ...]]] = []
        self._added_at = self._read_at = -math.inf

    def add(self, moment: float, energy: float, error: float, frame: Callable[[], Frame]) -> None:
        """Add a point for time ``moment``, unless the last one has just been added.

        Args:
            energy: the latest total energy; NaN if not known.
            error: its relative error.
            frame: gives the picture's bodies.
        """
        now = time.monotonic()
        watched = self._source.shown <= OFTEN or now - self._read_at < 4 * INTERVAL
        if self._points and moment < self._points[-1][0]:  # the run was restarted
            self._points.clear()
        elif now - self._added_at < INTERVAL or not watched or (self._points and moment == self._points[-1][0]):
            return
        self._added_at = now
        self._points.append((moment, error, *self._measured(frame(), energy)))
        if len(self._points) > MOST_POINTS:
            del self._points[1::2]

    def _measured(self, frame: Frame, energy: float) -> tuple[float, tuple[float, ...]]:
        """T/|W| with W = E - T, and the Lagrangian radii."""
        source, stride = self._source, -(-len(frame.position) // SAMPLE)
        mass = source.shown_mass
        velocity = frame.velocity.astype(np.float64) * source.speed_unit
        kinetic = 0.5 * float(mass @ np.einsum("ij,ij->i", velocity, velocity)) * source.mass.sum() / mass.sum()
        bodies = Particles(mass[::stride], frame.position[::stride] * source.length_unit, velocity[::stride])
        ratio = math.nan if math.isnan(energy) else virial_ratio(kinetic, energy - kinetic)
        return ratio, tuple(map(float, lagrangian_radii(bodies)))

    def read(self) -> Series:
        """The points so far."""
        self._read_at = time.monotonic()
        if not self._points:
            return Series(complete=False)
        times, errors, ratios = (np.array([point[k] for point in self._points]) for k in range(3))
        radii = np.array([point[3] for point in self._points])
        known, finite = np.isfinite(errors), np.isfinite(ratios)
        error = Curve(times[known], errors[known]) if known.any() else EMPTY
        ratio = Curve(times[finite], ratios[finite]) if finite.any() else EMPTY
        return Series(error, ratio, Curve(times, radii), FRACTIONS, complete=False)
