"""Samples of a run, from which the view of the whole run and the scale of its colours are made."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np

from nbody.analysis.data import spread
from nbody.errors import InputError
from nbody.trajectory import Trajectory
from nbody.trajectory.column import FrameColumn
from nbody.viewer.picture.camera import Camera
from nbody.viewer.picture.colours.quantity import LOGARITHMIC, ends
from nbody.viewer.picture.look import FEW

Array = np.ndarray

SAMPLES = 9
"""The number of frames that determine the speed scale and the initial view, evenly spread over the run."""

ORBIT_SAMPLES = 200
"""The frames that determine the initial view of a few bodies."""

LARGEST_GROWTH = 3.0
"""The radius of the initial view, at most, in units of the one that frames the first frame."""

SAMPLE = 2**17
"""The most bodies of a frame that determine the speed scale and the initial view: 1e7 bodies would take seconds."""


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


def speed_scale(velocities: Iterable[Array]) -> tuple[float, float]:
    """The speeds (slow, fast) at the ends of the palette: see :func:`nbody.viewer.picture.colours.quantity.ends`.

    They are equal if all bodies have one speed, and zero if all are at rest.

    Args:
        velocities: one (N, D) array per frame.
    """
    with np.errstate(over="ignore"):  # such a speed is left out
        speeds = [np.linalg.norm(velocity.astype(np.float64), axis=1) for velocity in velocities]
    return ends(np.concatenate(speeds) if speeds else np.zeros(0), LOGARITHMIC)
