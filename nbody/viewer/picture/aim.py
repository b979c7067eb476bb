"""The view that a user asks for with ``--camera`` and ``--track``."""

from dataclasses import dataclass
from pathlib import Path

from nbody.errors import InputError
from nbody.viewer.picture.camera import Camera
from nbody.viewer.picture.follow import Follow
from nbody.viewer.sources.source import Source

RUN, FRAME = "run", "frame"
FILES = (".yaml", ".yml")


@dataclass(frozen=True)
class Aim:
    """Where the camera is, and what it follows.

    Attributes:
        camera: :data:`RUN`, one view for the whole run; :data:`FRAME`, a view that frames the bodies of the frame; or the
            name of a file (:mod:`.camera_file`).
        track: an argument of :class:`Follow`; empty for nothing.

    Raises:
        InputError: ``camera`` is none of them.
    """

    camera: str = RUN
    track: str = ""

    def __post_init__(self) -> None:
        if self.camera not in (RUN, FRAME) and Path(self.camera).suffix.lower() not in FILES:
            raise InputError(f"--camera {self.camera}: must be {RUN}, {FRAME} or a file that ends in {FILES[0]}")

    def start(self, source: Source, at: float) -> Camera:
        """The camera at first, if the moment ``at`` is shown. Raises InputError for a file that is wrong."""
        if self.camera == FRAME:
            return source.home(int(at))
        if self.camera == RUN:
            return source.home()
        from nbody.viewer.picture.camera_file import read_camera  # imports PyYAML and pydantic, 0.1 s

        return read_camera(Path(self.camera), source.home(), source.length_unit)

    def follow(self, source: Source) -> Follow | None:
        """What the camera follows: without ``track``, the densest point of bodies that together leave the view of the run.

        Raises:
            InputError: there is no such body."""
        track = self.track or ("densest" if self.camera == RUN and source.wanders else "")
        return Follow(source, track) if track else None

    def view(self, source: Source, at: float) -> Camera:
        """The camera of a picture of the moment ``at``."""
        camera, follow = self.start(source, at), self.follow(source)
        if follow:
            follow.aim(camera, source.moment(at))
        return camera
