"""What is shown: particles, speeds and captions of each frame of a trajectory."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from nbody.errors import InputError, printable, shortened
from nbody.run.diagnostics import relative_energy_error
from nbody.trajectory import Trajectory
from nbody.viewer.camera import Camera

Array = np.ndarray

SAMPLES = 9
"""Frames that the scale of colours is taken from, evenly spread over the run."""

PERCENTILES = (5.0, 98.0)
"""Speeds at the ends of the palette, in percent of all; slower and faster ones have the colour of the end."""


LONGEST_NAME = 60
"""Characters of a name that are shown."""


@dataclass(frozen=True)
class Caption:
    """What is said about a frame. ``energy_error`` is (E - E₀)/|E₀|, NaN where no energy was recorded."""

    name: str
    time: float
    step: int
    frame: int
    frames: int
    energy_error: float
    count: int
    shown: int
    speeds: tuple[float, float]


class Recording:
    """A trajectory as the viewer sees it.

    Raises:
        InputError: it has no frame yet.

    Attributes:
        run: the trajectory.
        name: its scenario's.
        speeds: (slow, fast), the ends of the palette; the same in every frame, so that a particle that keeps its speed
            keeps its colour.
    """

    def __init__(self, run: Trajectory) -> None:
        self.run = run
        self.name = shortened(printable(run.resolved.get("name", "")), LONGEST_NAME) or "run"
        self._choice: slice | Array = slice(None)
        self._scaled_at = 0
        if not len(run):
            raise InputError(f"{run.path}: has no frame yet; look again when the run has begun")
        self.update()

    def update(self) -> int:
        """Take in what :meth:`Trajectory.refresh` found. Returns the number of frames."""
        self._energy = self.run.observable("total_energy")
        # Of a run that goes on, the scale is taken again when it has doubled, not with each new frame.
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
        """How many frames there are, as of the last :meth:`update`."""
        return len(self._energy)

    def index(self, frame: int) -> int:
        """``frame``, which counts from the end if negative, counted from the start.

        Raises:
            InputError: there is no such frame.
        """
        if not -self.frames <= frame < self.frames:
            raise InputError(
                f"--frame {frame}: {self.run.path} has frames 0 to {self.frames - 1}, "
                f"or from the end -1 to -{self.frames}"
            )
        return frame % self.frames

    def thin_out(self, budget: int) -> None:
        """Show at most ``budget`` particles, chosen by lot once, the same in every frame."""
        if self.run.count > budget:
            self._choice = np.sort(np.random.default_rng(0).permutation(self.run.count)[:budget])

    @property
    def shown(self) -> int:
        """How many particles are drawn."""
        return self.run.count if isinstance(self._choice, slice) else len(self._choice)

    def particles(self, frame: int) -> tuple[Array, Array]:
        """Positions and velocities at ``frame``, (shown, 3) float32 each; z is 0 in a plane.

        Raises:
            InputError: the frame is damaged.
        """
        return self._chosen(self.run.position[frame]), self._chosen(self.run.velocity[frame])

    def _chosen(self, values: Array) -> Array:
        out = np.zeros((self.shown, 3), np.float32)
        out[:, : values.shape[1]] = values[self._choice]
        return out

    def home(self, frame: int = 0) -> Camera:
        """The view to begin with: a frame, the first one of a run that is played, well framed."""
        return Camera.framing(self.run.position[frame], self.run.dimensions)

    def caption(self, frame: int) -> Caption:
        """What to say about ``frame``."""
        error = relative_energy_error(float(self._energy[frame]), float(self._energy[0]))
        time, step = float(self.run.time[frame]), int(self.run.step[frame])
        return Caption(self.name, time, step, frame, self.frames, error, self.run.count, self.shown, self.speeds)


def spread(frames: int, samples: int) -> list[int]:
    """Up to ``samples`` frames from the first to the last, evenly spread."""
    return sorted({round(k) for k in np.linspace(0, frames - 1, samples)})


def speed_scale(velocities: Iterable[Array]) -> tuple[float, float]:
    """Speeds for the two ends of the palette: :data:`PERCENTILES` of all in ``velocities``, (N, D) arrays, one a frame.

    They are positive, and the first is less: the palette is spread over the logarithm of the speed.
    """
    speeds = [np.linalg.norm(velocity, axis=1) for velocity in velocities]
    speed = np.concatenate(speeds) if speeds else np.zeros(0)
    speed = speed[np.isfinite(speed)]
    slow, fast = np.percentile(speed, PERCENTILES) if len(speed) else (0.0, 0.0)
    fast = float(fast) or float(speed.max(initial=0.0)) or 1.0
    return min(max(float(slow), fast / 1000), fast / 1.01), fast
