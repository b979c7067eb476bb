"""The particles, speeds and caption of each frame of a trajectory, as the viewer draws them."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property

import numpy as np

from nbody.diagnostics.energy import relative_energy_error
from nbody.errors import InputError, printable, shortened
from nbody.trajectory import Trajectory
from nbody.viewer.picture.camera import Camera
from nbody.viewer.sources.source import Caption, Frame, Moment, Source, unit_near

Array = np.ndarray

SAMPLES = 9
"""The number of frames that determine the speed scale, evenly spread over the run."""

PERCENTILES = (5.0, 98.0)
"""The percentiles of the speeds at the ends of the palette; slower and faster particles get the colour of the end."""

LONGEST_NAME = 60
"""Characters of a name that are shown."""


class Recording(Source):
    """A trajectory, prepared for drawing.

    Raises:
        InputError: the trajectory has no frame yet.

    Attributes:
        run: the trajectory.
        name: the name of its scenario.
        speeds: (slow, fast), the speeds at the ends of the palette; the same in every frame, so that a constant speed
            has a constant colour.
    """

    def __init__(self, run: Trajectory) -> None:
        super().__init__()
        if not len(run):
            raise InputError(f"{run.path}: has no frame yet; look again when the run has begun")
        self.run, self.count, self.dimensions = run, run.count, run.dimensions
        self.name = shortened(printable(run.resolved.get("name", "")), LONGEST_NAME) or "run"
        self._scaled_at = 0
        self._read: dict[int, Frame] = {}
        self.update()

    def update(self) -> int:
        """Read the frames that :meth:`Trajectory.refresh` found. Returns the number of frames."""
        self._energy = self.run.observable("total_energy")
        # While a run grows, update the speed scale each time the number of frames has doubled, not for each frame.
        if self.frames >= 2 * self._scaled_at:
            self._scaled_at = self.frames
            self.speeds = speed_scale(self._readable_velocities())
        return self.frames

    def _readable_velocities(self) -> Iterator[Array]:
        for k in spread(self.frames, SAMPLES):
            with suppress(InputError):  # a damaged frame is reported when it is shown
                yield self.run.velocity[k]

    @property
    def frames(self) -> int:
        """The number of frames at the last :meth:`update`."""
        return len(self._energy)

    def index(self, frame: int) -> int:
        """The index of ``frame`` counted from the start; a negative ``frame`` counts from the end.

        Raises:
            InputError: there is no such frame.
        """
        if not -self.frames <= frame < self.frames:
            raise InputError(
                f"--frame {frame}: {self.run.path} has frames 0 to {self.frames - 1}, "
                f"or from the end -1 to -{self.frames}"
            )
        return frame % self.frames

    def moment(self, at: float) -> Moment:
        """See :meth:`Source.moment`."""
        k, share = int(at), at % 1.0
        if not share or k + 1 >= self.frames:
            return Moment(self.frame(k))
        unit = unit_near(self.speeds[1]) / self._length
        interval = float(self.run.time[k + 1] - self.run.time[k]) * unit
        return Moment(self.frame(k), self.frame(k + 1), share, interval)

    def frame(self, k: int) -> Frame:
        """Frame ``k``. Raises InputError if it is damaged."""
        if k not in self._read:
            position, velocity = self.run.position[k], self.run.velocity[k]
            frame = Frame(k, self.chosen(position, self._length), self.chosen(velocity, unit_near(self.speeds[1])))
            self._read = {number: each for number, each in self._read.items() if abs(number - k) == 1} | {k: frame}
        return self._read[k]

    @cached_property
    def _length(self) -> float:
        """The picture's unit of length."""
        with suppress(InputError):  # a damaged frame is reported when it is shown
            position = self.run.position[0]
            return unit_near(float(np.abs(position[np.isfinite(position)]).max(initial=0.0)))
        return 1.0

    def home(self, frame: int = 0) -> Camera:
        """The initial view, in the picture's units, which frames the particles of ``frame``."""
        return Camera.framing(self.run.position[frame] / self._length, self.run.dimensions)

    def caption(self, at: float) -> Caption:
        """See :meth:`Source.caption`. Between two frames, time and step are interpolated."""
        k = int(at)
        error = relative_energy_error(float(self._energy[k]), float(self._energy[0]))
        frames = np.arange(self.frames)
        time, step = float(np.interp(at, frames, self.run.time)), int(np.interp(at, frames, self.run.step))
        return Caption(self.name, time, step, k, self.frames, error, self.count, self.shown, self.speeds)


def spread(frames: int, samples: int) -> list[int]:
    """Up to ``samples`` frames from the first to the last, evenly spread."""
    return sorted({round(k) for k in np.linspace(0, frames - 1, samples)})


def speed_scale(velocities: Iterable[Array]) -> tuple[float, float]:
    """The speeds (slow, fast) at the ends of the palette, 0 < slow < fast: :data:`PERCENTILES` of all speeds.

    Both are positive because the palette is linear in the logarithm of the speed.

    Args:
        velocities: one (N, D) array per frame.
    """
    with np.errstate(over="ignore"):  # such a speed is left out
        speeds = [np.linalg.norm(velocity.astype(np.float64), axis=1) for velocity in velocities]
    speed = np.concatenate(speeds) if speeds else np.zeros(0)
    speed = speed[np.isfinite(speed)]
    slow, fast = np.percentile(speed, PERCENTILES) if len(speed) else (0.0, 0.0)
    fast = float(fast) or float(speed.max(initial=0.0)) or 1.0
    return min(max(float(slow), fast / 1000), fast / 1.01), fast
