"""Trails: the ways that bodies came, as lines that fade with age."""

import numpy as np

from nbody.errors import InputError
from nbody.viewer.gl.lines import Ribbons
from nbody.viewer.picture.coloring import Coloring
from nbody.viewer.picture.look import Look
from nbody.viewer.sources.camera import FEW, Camera, Size
from nbody.viewer.sources.frames import UNRESOLVED, Array, ShownFrame, ShownMoment, drawn, interpolated
from nbody.viewer.sources.source import Source

MOST_BODIES = 512  # the most bodies with trails; of more, so many that are spread evenly over the bodies of the file
PIECES = 16_384  # the number of straight pieces of all trails, about
FINEST = 12  # the most pieces between two frames
BYTES = 2**26  # the most bytes of earlier frames that are read at once
BRIGHTNESS, WIDTH = 0.12, 1.6  # the light of a fresh trail in units of white, and its width in pixels at scale 1


def rows_with_trails(source: Source, look: Look) -> Array:
    """The rows of the bodies that have trails, by :attr:`Look.trails`."""
    if look.trails == "all" or (look.trails == "auto" and source.shown.count <= FEW):
        count = min(source.shown.count, MOST_BODIES)
        return np.arange(count) * source.shown.count // count
    ids = look.trail_ids()
    return np.flatnonzero(np.isin(source.shown.of(source.catalogue.id), ids))[:MOST_BODIES] if ids else np.arange(0)


def check_trails(source: Source, look: Look) -> None:
    """Raise InputError if :attr:`Look.trails` names an id that no body has."""
    ids = look.trail_ids()
    missing = np.setdiff1d(ids, source.catalogue.id) if ids else np.arange(0)
    if len(missing):
        raise InputError(f"--trails {look.trails}: there is no body with the id {int(missing[0])}")


class Trails:
    """The trails of some bodies: lines through earlier frames of a recording, or through those that have been shown.
    ``rows`` are those of the bodies."""

    def __init__(self, source: Source) -> None:
        self._source, self._ribbons = source, Ribbons()
        self.rows = np.arange(0)
        self._known: dict[int, tuple[Array, Array, float]] = {}  # position, velocity and time by frame
        self._loaded: tuple = ()
        self._now, self._memory = 0.0, 1.0

    def load(self, moment: ShownMoment, look: Look, coloring: Coloring) -> None:
        """Prepare the trails that end at ``moment``."""
        rows, first, second = rows_with_trails(self._source, look), moment.first, moment.second or moment.first
        if not np.array_equal(rows, self.rows):
            self.rows, self._known, self._loaded = rows, {}, ()
        self._now, self._memory = moment.number - first.number, float(look.trail_frames)
        valued = -1 if coloring.in_shader else coloring.values(first)[0]  # values may come later
        requested = (first.number, second.number, look.trail_frames, coloring, coloring.map, valued)
        if requested == self._loaded or not len(rows):
            return
        self._learn(moment, look.trail_frames)
        self._make(first, coloring)
        self._loaded = requested

    def draw(self, camera: Camera, size: Size, scale: float, white: float) -> None:
        """Draw the trails into the current target of light, in which ``white`` is drawn bright."""
        if len(self.rows):
            self._ribbons.draw(camera, size, WIDTH * scale, BRIGHTNESS * white, self._now, self._memory)

    def _learn(self, moment: ShownMoment, frames: int) -> None:
        """Take the bodies of the frames that are shown, and of ``frames`` earlier ones that are not known yet."""
        source, first, second = self._source, moment.first, moment.second or moment.first
        oldest = first.number - frames
        self._known = {n: known for n, known in self._known.items() if oldest <= n <= second.number}
        self._take(first)
        self._take(second)
        budget = BYTES // (24 * source.shown.count)
        known = {source.place(number) for number in self._known}
        for k in range(source.place(first.number) - 1, source.place(max(oldest, 0)) - 1, -1):
            if k not in known and budget > 0 and (past := source.past(k)):
                self._take(past)
                budget -= 1

    def _take(self, frame: ShownFrame) -> None:
        position, velocity = (each[self.rows].astype(float) for each in (frame.position, frame.velocity))
        self._known[frame.number] = position, velocity, frame.time

    def _make(self, first: ShownFrame, coloring: Coloring) -> None:
        """Make the pieces of all trails; their times count frames from ``first``."""
        numbers = sorted(self._known)
        if len(numbers) < 2:
            self._ribbons.clear()
            return
        position, velocity = (np.stack([self._known[n][k] for n in numbers]) for k in (0, 1))
        interval = np.diff([self._known[n][2] for n in numbers])[:, None, None]
        fractions = np.linspace(0, 1, 1 + int(np.clip(PIECES // (position[1:, :, 0].size), 1, FINEST)))
        tangents = interval * velocity[:-1], interval * velocity[1:]
        points = np.stack([interpolated(position[:-1], position[1:], *tangents, fraction) for fraction in fractions])
        weights = np.stack([1 - fractions, fractions], axis=1)  # of the frames before and after each point
        speed, frame = np.linalg.norm(velocity, axis=2), np.array(numbers, float) - first.number
        if coloring.in_shader:
            colour = coloring.colours(np.tensordot(weights, [speed[:-1], speed[1:]], 1))
        else:
            colour = np.broadcast_to(coloring.rows(first, self.rows), (*points.shape[:3], 3))
        colour = np.concatenate([colour, np.zeros((*colour.shape[:3], 1))], axis=3)
        time = np.broadcast_to(np.tensordot(weights, [frame[:-1], frame[1:]], 1)[:, :, None], points.shape[:3])
        out, into, chord = (np.linalg.norm(each, axis=2) for each in (*tangents, np.diff(position, axis=0)))
        known = out + into <= 2 * UNRESOLVED * chord  # else it turned in between, and its way is not known
        seen = np.broadcast_to(drawn(position[:-1]) & drawn(position[1:]) & known, (len(points) - 1, *known.shape))
        begin, end, begin_colour, end_colour, out, into = (
            each[part][seen] for each in (points, colour, time) for part in (slice(None, -1), slice(1, None))
        )
        self._ribbons.load(begin, end, begin_colour, end_colour, np.stack([out, into], axis=1))
