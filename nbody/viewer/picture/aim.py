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
        target: a word of :data:`CENTRES`, a species (its centre of mass), or the id or the name of a body.
        body: the body (0 to N-1) that is followed; None for the others.
    """

    def __init__(self, source: Source, target: str) -> None:
        self.source, self.target = source, target
        self.body: int | None = None
        self.label = CENTRES.get(target, "")  # what is followed, in words
        self._species: int | None = None
        self._known: dict[int, Array] = {}
        if self.label:
            return
        names, members = source.catalogue.species_names, np.bincount(source.catalogue.species)
        if target in names and members[(species := names.index(target))] > 1:
            self._species, self.label = species, f"centre of {target}"
            return
        where = f"--track {shortened(target, 60)}: must be {', '.join(CENTRES)}, a species or a body of the run: "
        self.body = int(rows_of(source.catalogue, target, where)[0])
        self.label = body_names(source.catalogue).get(int(source.catalogue.id[self.body]), f"body {target}")
        source.shown.always_draw(self.body)

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
        stride = -(-len(frame.position) // SAMPLE) if self.target == "densest" else 1
        catalogue, shown = self.source.catalogue, self.source.shown
        position = frame.position[::stride, : catalogue.dimensions]
        mass, chosen = shown.of(frame.mass)[::stride], drawn(position)
        if self._species is not None:
            chosen &= shown.of(catalogue.species) == self._species
            mass = mass if mass[chosen].any() else np.ones_like(mass)
        if not mass[chosen].any():
            return np.full(3, np.nan)
        bodies = Particles(mass[chosen], position[chosen], np.zeros_like(position[chosen]))
        centre = (density_centre if self.target == "densest" else centre_of_mass)(bodies)
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

    def follow(self, source: Source) -> Follow | None:
        """What the camera follows: without ``track``, the densest point of bodies that together leave the view of the run.
        Raises InputError if there is no such body."""
        track = self.track or ("densest" if self.camera == RUN and source.leaves_view else "")
        return Follow(source, track) if track else None

    def moving(self, source: Source, spin: float = 0.0, following: bool = True) -> Callable[[float, float], Camera]:
        """The camera of a movie, from the second and the moment that it shows: it turns by ``spin`` degrees per second, or
        goes along the views of a file, and moves with what it follows. Raises InputError for a wrong file or spin, or if
        there is no such body."""
        if spin and source.home().flat:
            raise InputError(f"--spin {spin:g}: this run is in a plane and seen face on; there is nothing to turn around")
        follow, path = self.follow(source) if following else None, None
        if self.camera not in (RUN, FRAME):
            from nbody.viewer.picture.camera_file import read_path  # imports PyYAML and pydantic, 0.1 s

            path = read_path(Path(self.camera), source.length_unit)

        def camera_at(seconds: float, at: float) -> Camera:
            camera = source.home(int(at) if self.camera == FRAME else None)
            camera = path(camera, seconds) if path else camera
            camera.azimuth += np.radians(spin) * seconds
            if follow:
                follow.aim(camera, source.moment(at))
            return camera

        return camera_at

    def view(self, source: Source, at: float) -> Camera:
        """The camera of a picture of the moment ``at``. Raises as :meth:`moving`."""
        return self.moving(source)(0.0, at)


@dataclass(frozen=True)
class Display:
    """How a run is shown, in a window or a picture: ``size`` (width, height) is in pixels at scale 1; with ``hud`` there is
    text over it."""

    look: Look = field(default_factory=Look)
    aim: Aim = field(default_factory=Aim)
    size: Size = (1280, 720)
    hud: bool = True
