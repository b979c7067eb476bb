"""The camera: orbit, pan and zoom, and the initial framing.

Lengths are in the picture's unit. Positions in the picture are in pixels from its top left corner.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from nbody.viewer.sources.frames import Array

Size = tuple[int, int]  # width and height in pixels

FEW = 64  # up to this number of bodies, orbits are framed, and trails and sizes by mass are on unless the user chooses

FIELD = np.radians(35.0)  # field of view in radians, across the shorter side of the picture
INSIDE = 0.97  # the fraction of the particles that is framed: a few escapers must not shrink the others to a dot

MARGIN = 1.08
NEAREST, FARTHEST = 0.02, 50.0  # the clipping planes, in units of the distance from the camera to the centre


@dataclass
class Camera:
    """A view of the particles: ``centre`` (3,) is in the middle of the picture, ``radius`` from its nearer edges.

    Attributes:
        flat: the particles lie in a plane and are seen face on, without perspective: the view can be moved and zoomed,
            but not turned.
        azimuth, elevation: the camera's direction from the centre, in radians; at elevation π/2 it looks down on the
            x-y plane.
    """

    centre: Array = field(default_factory=lambda: np.zeros(3))
    radius: float = 1.0
    flat: bool = False
    azimuth: float = np.radians(-60.0)
    elevation: float = np.radians(25.0)

    @classmethod
    def framing(cls, position: Array, dimensions: int, centre: Array | None = None) -> "Camera":
        """A camera that frames :data:`INSIDE` of the particles around ``centre`` (3,), by default their median; ``position``
        is (N, D)."""
        finite = position[np.isfinite(position).all(axis=1)].astype(np.float64)
        if not len(finite):
            return cls(flat=dimensions == 2)
        if centre is None:
            centre = np.resize(np.append(np.median(finite, axis=0), 0.0), 3)
        distance = np.linalg.norm(finite - centre[: finite.shape[1]], axis=1)
        # "higher", so that all of three bodies are inside.
        radius = MARGIN * float(np.quantile(distance, INSIDE, method="higher"))
        return cls(centre, radius or 1.0, dimensions == 2)

    def copy(self) -> "Camera":
        return replace(self, centre=self.centre.copy())

    @property
    def distance(self) -> float:
        """The distance from the camera to the centre."""
        return self.radius / np.tan(FIELD / 2)

    def axes(self) -> Array:
        """Unit vectors of the directions right, up and towards the camera, the rows of a (3, 3) array."""
        if self.flat:
            return np.eye(3)
        (sa, ca), (se, ce) = ((np.sin(a), np.cos(a)) for a in (self.azimuth, self.elevation))
        return np.array([[-sa, ca, 0.0], [-ca * se, -sa * se, ce], [ca * ce, sa * ce, se]])

    def view(self) -> Array:
        """The (4, 4) matrix from space to camera coordinates, for column vectors: x right, y up, z towards the camera."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.axes()
        matrix[:3, 3] = -self.axes() @ self.centre
        matrix[2, 3] -= self.distance
        return matrix

    def projection(self, size: tuple[int, int]) -> Array:
        """The (4, 4) matrix from camera coordinates to clip space, for a picture of ``size`` (width, height)."""
        x, y = min(size) / size[0], min(size) / size[1]
        if self.flat:
            # No clipping in depth: all particles have the same depth.
            return np.diag([x / self.radius, y / self.radius, 0.0, 1.0])
        near, far = NEAREST * self.distance, FARTHEST * self.distance
        matrix = np.diag([x, y, 0.0, 0.0]) / np.tan(FIELD / 2)
        matrix[2, 2:] = (near + far) / (near - far), 2 * near * far / (near - far)
        matrix[3, 2] = -1.0
        return matrix

    def pixels_per_length(self, size: tuple[int, int]) -> float:
        """Pixels per unit of length at clip-space w = 1. Divide by w (the depth; 1 in a flat view) elsewhere."""
        return min(size) / 2 / (self.radius if self.flat else np.tan(FIELD / 2))

    def project(self, position: Array, size: tuple[int, int]) -> Array:
        """Project positions (N, 3) to pixels (N, 2) of a picture of ``size`` (width, height); NaN behind the camera."""
        columns = np.vstack([np.asarray(position, np.float64).T, np.ones(len(position))])
        clip = self.projection(size) @ self.view() @ columns
        depth = np.where(clip[3] > 0, clip[3], np.nan)
        return (np.array([1.0, -1.0]) * (clip[:2] / depth).T + 1) / 2 * size

    def nearest(self, position: Array, at: tuple[float, float], size: tuple[int, int], reach: float) -> int | None:
        """The row of ``position`` (N, 3) that is nearest to pixel ``at``; None if none is within ``reach`` pixels."""
        with np.errstate(invalid="ignore", over="ignore"):
            distance = np.hypot(*(self.project(position, size) - at).T)
        row = int(np.argmin(np.where(np.isfinite(distance), distance, np.inf)))
        return row if distance[row] <= reach else None

    def orbit(self, dx: float, dy: float, size: tuple[int, int]) -> None:
        """Turn by a drag of ``dx, dy`` pixels; a drag across the picture's shorter side is half a turn."""
        self.azimuth -= np.pi * dx / min(size)
        self.elevation = float(np.clip(self.elevation + np.pi * dy / min(size), -np.pi / 2, np.pi / 2))

    def look(self, dx: float, dy: float, size: tuple[int, int]) -> None:
        """Turn about the camera itself, so that what is seen follows a drag of ``dx, dy`` pixels."""
        eye = self.centre + self.distance * self.axes()[2]
        turn = FIELD / np.pi  # orbit() turns by pi across the shorter side
        self.orbit(-turn * dx, -turn * dy, size)
        self.centre = eye - self.distance * self.axes()[2]

    def fly(self, right: float, ahead: float) -> None:
        """Move to the right and ahead, in units of the radius."""
        self.centre = self.centre + self.radius * (right * self.axes()[0] - ahead * self.axes()[2])

    def pan(self, dx: float, dy: float, size: tuple[int, int]) -> None:
        """Move so that points at the centre's depth follow the mouse by ``dx, dy`` pixels."""
        right, up, _ = self.axes()
        self.centre = self.centre + (dy * up - dx * right) * 2 * self.radius / min(size)

    def magnify(self, factor: float) -> None:
        """Zoom about the middle of the picture."""
        self.radius /= factor

    def zoom(self, factor: float, at: tuple[float, float], size: tuple[int, int]) -> None:
        """Magnify by ``factor`` about pixel ``at``: the point there, at the centre's depth, does not move."""
        x, y = at[0] - size[0] / 2, at[1] - size[1] / 2
        self.pan(-x, -y, size)
        self.magnify(factor)
        self.pan(x, y, size)
