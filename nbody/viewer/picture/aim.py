"""Where the camera is and what it follows, by ``--camera`` and ``--track``; in a window, a picture and a movie alike."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nbody.diagnostics.structure import centre_of_mass, density_centre
from nbody.errors import InputError, shortened
from nbody.particles import Particles, body_names, rows_of
from nbody.scenario.packaged import SUFFIXES
from nbody.viewer.picture.look import Look
from nbody.viewer.sources.camera import Camera, Size
from nbody.viewer.sources.frames import Array, ShownFrame, ShownMoment, drawn
from nbody.viewer.sources.source import Source

RUN, FRAME = "run", "frame"

CENTRES = {"com": "centre of mass", "densest": "densest point"}  # what is no body, and how it is shown
SAMPLE = 4096  # the most bodies from which the densest point is estimated; 4096 take 10 ms per frame (an AMD EPYC)


class Follow:
    """A point that moves with the bodies of ``source``, in the picture's units. Raises InputError if there is no such body.

    Attributes:
        target: a word of :data:`CENTRES`, or the id or the name of a body.
        body: the body (0 to N-1) that is followed; None for the others.
    """

    def __init__(self, source: Source, target: str) -> None:
        self.source, self.target = source, target
        self.body: int | None = None
        self._name = ""
        self._known: dict[int, Array] = {}
        if target in CENTRES:
            return
        where = f"--track {shortened(target, 60)}: must be {', '.join(CENTRES)} or a body of the run: "
        self.body = int(rows_of(source.catalogue, target, where)[0])
        self._name = body_names(source.catalogue).get(int(source.catalogue.id[self.body]), f"body {target}")
        source.shown.always_draw(self.body)

    @property
    def label(self) -> str:
        """What is followed, in words."""
        return CENTRES.get(self.target, self._name)

    def point(self, moment: ShownMoment) -> Array:
        """The point (3,) at ``moment``; a NaN where the bodies have no finite positions."""
        if self.body is not None:
            row = self.source.shown.row(self.body)
            point = np.full(3, np.nan) if row is None else moment.positions(row)
            return point if drawn(point) else np.full(3, np.nan)
        first = self._centre(moment.first)
        if moment.second is None:
            return first
        return first + moment.fraction * (self._centre(moment.second) - first)

    def aim(self, camera: Camera, moment: ShownMoment) -> None:
        """Put the point in the middle of the picture; does nothing if it is not finite."""
        point = self.point(moment)
        if np.isfinite(point).all():
            camera.centre = point

    def _centre(self, frame: ShownFrame) -> Array:
        """The centre of a frame; that of the last two is known."""
        if frame.number not in self._known:
            self._known = {number: self._known[number] for number in list(self._known)[-1:]}
            self._known[frame.number] = self._computed(frame)
        return self._known[frame.number]

    def _computed(self, frame: ShownFrame) -> Array:
        stride = 1 if self.target == "com" else -(-len(frame.position) // SAMPLE)
        catalogue, shown = self.source.catalogue, self.source.shown
        position = frame.position[::stride, : catalogue.dimensions]
        mass = shown.of(frame.mass)[::stride]
        finite = drawn(position)
        if not mass[finite].any():
            return np.full(3, np.nan)
        bodies = Particles(mass[finite], position[finite], np.zeros_like(position[finite]))
        centre = (centre_of_mass if self.target == "com" else density_centre)(bodies)
        return np.resize(np.append(centre, 0.0), 3)


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
        if self.camera not in (RUN, FRAME) and Path(self.camera).suffix.lower() not in SUFFIXES:
            raise InputError(f"--camera {self.camera}: must be {RUN}, {FRAME} or a file that ends in {SUFFIXES[0]}")

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
        Raises InputError if there is no such body."""
        track = self.track or ("densest" if self.camera == RUN and source.leaves_view else "")
        return Follow(source, track) if track else None

    def moving(self, source: Source, spin: float = 0.0, path: Path | None = None) -> Callable[[float, float], Camera]:
        """The camera of a movie, from the second and the moment that it shows: it turns by ``spin`` degrees per second, or
        goes along the views of the file ``path`` (:mod:`.camera_file`). Raises InputError for a wrong file or spin."""
        from nbody.viewer.picture.camera_file import CameraMove, read_path

        home = self.start(source, 0)
        move = CameraMove(home, spin, None if path is None else read_path(path, home, source.length_unit))
        follow = None if path is not None and not self.track else self.follow(source)

        def camera_at(seconds: float, at: float) -> Camera:
            camera = move.at(seconds)
            if follow:
                follow.aim(camera, source.moment(at))
            return camera

        return camera_at

    def view(self, source: Source, at: float) -> Camera:
        """The camera of a picture of the moment ``at``."""
        camera, follow = self.start(source, at), self.follow(source)
        if follow:
            follow.aim(camera, source.moment(at))
        return camera


@dataclass(frozen=True)
class Display:
    """How a run is shown, in a window or a picture: ``size`` (width, height) is in pixels at scale 1; with ``hud`` there is
    text over it."""

    look: Look = field(default_factory=Look)
    aim: Aim = field(default_factory=Aim)
    size: Size = (1280, 720)
    hud: bool = True
