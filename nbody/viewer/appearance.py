"""What a run looks like as a whole: one framing and one scale of colours for all frames, so that nothing flickers."""

from dataclasses import dataclass

import numpy as np

from nbody.trajectory import Trajectory
from nbody.viewer.camera import Camera

SAMPLED_FRAMES = 5
SAMPLED_PARTICLES = 20_000


@dataclass(frozen=True)
class SpeedScale:
    """Speeds from ``slow`` to ``fast`` become 0 to 1, logarithmically."""

    slow: float
    fast: float

    def __call__(self, velocity: np.ndarray) -> np.ndarray:
        """(N,) float32 in [0, 1] for velocities (N, D)."""
        speed = np.maximum(np.linalg.norm(velocity, axis=1), np.finfo(np.float32).tiny)
        span = np.log(self.fast / self.slow)
        return np.clip(np.log(speed / self.slow) / span, 0, 1).astype(np.float32)


def speed_scale(run: Trajectory) -> SpeedScale:
    """From the 5th to the 95th percentile of the speeds in a few frames of the whole run."""
    frames = np.unique(np.linspace(0, len(run) - 1, SAMPLED_FRAMES).astype(int))
    every = max(1, run.count // SAMPLED_PARTICLES)
    speeds = np.concatenate([np.linalg.norm(run.velocity[int(k)][::every], axis=1) for k in frames])
    slow, fast = np.percentile(speeds[np.isfinite(speeds)], [5, 95])
    slow = max(float(slow), float(fast) * 1e-3, 1e-30)
    return SpeedScale(slow, max(float(fast), slow * 1.01))


def framing(run: Trajectory) -> Camera:
    """A camera that shows 97 % of the bodies of frame 0: a few far escapers do not shrink the rest to a dot."""
    position = np.zeros((run.count, 3))
    position[:, : run.dimensions] = run.position[0]
    centre = np.median(position, axis=0)
    radius = float(np.percentile(np.linalg.norm(position - centre, axis=1), 97))
    return Camera(centre, 1.08 * radius or 1.0, flat=run.dimensions == 2)
