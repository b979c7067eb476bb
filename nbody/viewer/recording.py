"""The particles, speeds and caption of each frame of a trajectory, as the viewer draws them."""

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nbody.diagnostics.energy import relative_energy_error
from nbody.errors import InputError, printable, shortened
from nbody.trajectory import Trajectory
from nbody.viewer.camera import Camera

Array = np.ndarray

SAMPLES = 9
"""The number of frames that determine the speed scale, evenly spread over the run."""

PERCENTILES = (5.0, 98.0)
"""The percentiles of the speeds at the ends of the palette; slower and faster particles get the colour of the end."""

LARGE = 40
"""The picture has the scenario's units of length and speed where its numbers are between 2 to minus this power and 2 to
this power."""


LONGEST_NAME = 60
"""Characters of a name that are shown."""


@dataclass(frozen=True)
class Caption:
    """The facts shown about a frame. ``energy_error`` is (E - E₀)/|E₀|, NaN if no energy was recorded."""

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
        self.run = run
        self.name = shortened(printable(run.resolved.get("name", "")), LONGEST_NAME) or "run"
        self._choice: slice | Array = slice(None)
        self._scaled_at = 0
        if not len(run):
            raise InputError(f"{run.path}: has no frame yet; look again when the run has begun")
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

    def thin_out(self, budget: int) -> None:
        """Show at most ``budget`` particles: a random choice, the same in every frame."""
        if self.run.count > budget:
            self._choice = np.sort(np.random.default_rng(0).permutation(self.run.count)[:budget])

    @property
    def shown(self) -> int:
        """The number of particles that are drawn."""
        return self.run.count if isinstance(self._choice, slice) else len(self._choice)

    def particles(self, frame: int) -> tuple[Array, Array]:
        """Positions and velocities at ``frame``, (shown, 3) float32 each, in the picture's units; z is 0 in a plane.

        Raises:
            InputError: the frame is damaged.
        """
        position, velocity = self.run.position[frame], self.run.velocity[frame]
        return self._chosen(position, self._length), self._chosen(velocity, unit_near(self.speeds[1]))

    @property
    def palette_speeds(self) -> tuple[float, float]:
        """:attr:`speeds` in the picture's units."""
        unit = unit_near(self.speeds[1])
        return self.speeds[0] / unit, self.speeds[1] / unit

    @cached_property
    def _length(self) -> float:
        """The picture's unit of length."""
        with suppress(InputError):  # a damaged frame is reported when it is shown
            position = self.run.position[0]
            return unit_near(float(np.abs(position[np.isfinite(position)]).max(initial=0.0)))
        return 1.0

    @np.errstate(over="ignore")  # who is that far away is seen nowhere
    def _chosen(self, values: Array, unit: float) -> Array:
        out = np.zeros((self.shown, 3), np.float32)
        out[:, : values.shape[1]] = values[self._choice] / unit
        return out

    def home(self, frame: int = 0) -> Camera:
        """The initial view, in the picture's units, which frames the particles of ``frame``."""
        return Camera.framing(self.run.position[frame] / self._length, self.run.dimensions)

    def caption(self, frame: int) -> Caption:
        """The caption of ``frame``."""
        error = relative_energy_error(float(self._energy[frame]), float(self._energy[0]))
        time, step = float(self.run.time[frame]), int(self.run.step[frame])
        return Caption(self.name, time, step, frame, self.frames, error, self.run.count, self.shown, self.speeds)


def unit_near(size: float) -> float:
    """A power of two near ``size``; 1 for numbers of ordinary size. A graphics card computes in float32, also squares."""
    exponent = math.frexp(size)[1]
    return 1.0 if size == 0 or abs(exponent) <= LARGE else 2.0 ** min(exponent, 1023)


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
