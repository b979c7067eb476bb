"""Samples of a recording, from which its view, the scale of its colours and its diagrams are made."""

import math
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np

from nbody.analysis.data import spread
from nbody.diagnostics.energy import relative_energy_error
from nbody.diagnostics.structure import FRACTIONS, lagrangian_radii
from nbody.errors import InputError, NBodyError
from nbody.trajectory import Trajectory
from nbody.trajectory.reading.column import FrameColumn
from nbody.viewer.sources.camera import FEW, Camera
from nbody.viewer.sources.frames import Array
from nbody.viewer.sources.source import EMPTY, Curve, Series

SAMPLES = 9  # the number of frames that determine the speed scale and the initial view, evenly spread over the run
ORBIT_SAMPLES = 200  # the frames that determine the initial view of a few bodies
LARGEST_GROWTH = 3.0  # the radius of the initial view, at most, in units of the one that frames the first frame
SAMPLE = 2**17  # the most bodies of a frame for speed scale and initial view: 1e7 bodies would take seconds
RADII, RADII_FRAMES = "lagrangian_radii", 64  # the observable; the frames for which it is computed if not recorded

LOGARITHMIC, LINEAR, CATEGORIES = "logarithmic", "linear", "categories"

PERCENTILES = (5.0, 98.0)  # of the values at the ends of a logarithmic scale; bodies beyond get the colour of the end
STEEPEST = 1e6  # the largest ratio of the ends of a logarithmic scale


def sampled(values: FrameColumn, frames: Iterable[int]) -> Iterator[Array]:
    """Some rows of ``values`` (positions or velocities of a trajectory) in each of ``frames``, without damaged ones, which
    are reported when they are shown."""
    for k in frames:
        with suppress(InputError):
            yield values.sample(k, SAMPLE)


def whole_view(run: Trajectory, frames: int, length_unit: float) -> Camera:
    """A view that frames the bodies of samples of the run together."""
    few = run.count <= FEW
    samples = sampled(run.position, spread(frames, ORBIT_SAMPLES if few else SAMPLES))
    seen = [positions / length_unit for positions in samples]
    empty = np.zeros((0, run.dimensions))
    first, whole = (Camera.framing(np.concatenate(each or [empty]), run.dimensions) for each in (seen[:1], seen))
    if few:  # their orbits belong to the picture, also if they begin near the centre
        first.radius = float(np.median([Camera.framing(each, run.dimensions).radius for each in seen or [empty]]))
    if whole.radius > LARGEST_GROWTH * first.radius:  # bodies fly apart; the beginning must not be a dot
        whole, first.radius = first, LARGEST_GROWTH * first.radius
    whole.radius = max(first.radius, whole.radius)
    return whole


def leaves_view(run: Trajectory, frames: int, length_unit: float, view: Camera) -> bool:
    """True if the middle of the bodies leaves a view of the run."""
    samples = [each / length_unit for each in sampled(run.position, spread(frames, SAMPLES))]
    middles = [np.nanmedian(each, axis=0) for each in samples if np.isfinite(each).any(axis=0).all()]
    centre = view.centre[: run.dimensions]
    return any(bool(np.linalg.norm(middle - centre) > view.radius) for middle in middles)


def ends(values: Array, scale: str) -> tuple[float, float]:
    """The ends of a scale: :data:`PERCENTILES` of the finite values if it is logarithmic (zeros do not count), else their
    least and greatest. They are equal if all values are, and zero if there is none."""
    values = values[np.isfinite(values)].astype(np.float64)
    if scale == LOGARITHMIC:
        values = values[values > 0]
    if not len(values):
        return 0.0, 0.0
    low, high = np.percentile(values, PERCENTILES) if scale == LOGARITHMIC else (values.min(), values.max())
    if high <= low * (1 + 1e-6) if low > 0 else high == low:
        low, high = values.min(), values.max()  # most bodies have one value
    return float(max(low, high / STEEPEST) if scale == LOGARITHMIC else low), float(high)


def speed_scale(velocities: Iterable[Array]) -> tuple[float, float]:
    """The speeds (slow, fast) at the ends of the palette, by :func:`ends`: equal if all
    bodies have one speed, and zero if all are at rest. ``velocities``: one (N, D) array per frame."""
    with np.errstate(over="ignore"):  # such a speed is left out
        speeds = [np.linalg.norm(velocity.astype(np.float64), axis=1) for velocity in velocities]
    return ends(np.concatenate(speeds) if speeds else np.zeros(0), LOGARITHMIC)


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
        if RADII in run.widths:
            radii = run.observable(RADII).reshape(len(run), -1)
            unknown = (math.nan,) * radii.shape[1]
            return Series(*curves, Curve(time, radii), FRACTIONS if len(unknown) == len(FRACTIONS) else unknown)
        self._compute()
        complete = not (self._thread and self._thread.is_alive())  # before its results are read
        done = sorted(self._radii.copy().items())
        found = Curve(time[[k for k, _ in done]], np.array([radii for _, radii in done])) if done else EMPTY
        return Series(*curves, found, complete=complete)

    def _compute(self) -> None:
        """Start the thread; also when the run has doubled."""
        if len(self._run) < 2 * self._sampled or (self._thread and self._thread.is_alive()):
            return
        self._sampled = len(self._run)
        self._thread = threading.Thread(target=self._work, args=(len(self._run),), name="series", daemon=True)
        self._thread.start()

    def _work(self, frames: int) -> None:
        chosen = spread(frames, RADII_FRAMES)
        for k in chosen[::8] + [k for i, k in enumerate(chosen) if i % 8]:  # so that the curve soon has its shape
            if self._stop.is_set():
                return
            try:
                self._radii[k] = lagrangian_radii(self._run.particles(k))
            except (NBodyError, ValueError, IndexError):  # a damaged frame, a closed file, bodies added meanwhile
                continue

    def close(self) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
