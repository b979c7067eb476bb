"""Finds the body under the mouse."""

import numpy as np

from nbody.viewer.picture.camera import Camera
from nbody.viewer.sources.frames import ShownMoment

REACH = 14.0
"""The greatest distance of the mouse from a body, in pixels at scale 1."""


def nearest(
    moment: ShownMoment, camera: Camera, at: tuple[float, float], size: tuple[int, int], scale: float = 1.0
) -> int | None:
    """The row of the shown body nearest to pixel ``at`` of a picture of ``size``; None if there is none within
    :data:`REACH`."""
    pixels = camera.project(moment.positions(), size)
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.hypot(*(pixels - at).T)
    if not np.isfinite(distance).any():
        return None
    row = int(np.nanargmin(distance))
    return row if distance[row] <= REACH * scale else None
