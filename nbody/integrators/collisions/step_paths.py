"""The paths of all bodies through one step, and which of them touch when, in order of time."""

import heapq
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from nbody.integrators.collisions.contact import contacts, later_contacts, moment, paths
from nbody.integrators.collisions.orbit import orbit_moment
from nbody.integrators.collisions.outcomes import Meeting, meeting_of
from nbody.integrators.collisions.span import Span
from nbody.integrators.roster import Roster

Array = np.ndarray
Touch = tuple[float, int, int, int]

TOUCH = np.dtype([("time", float), ("i", int), ("j", int), ("inner", int)])
"""The first contact of two bodies: when, in units of the step, and in which step of an encounter; see :data:`WHOLE`."""

WHOLE = -1
"""Marks a contact that was found on the paths of the whole step."""


MOST_BOUNCES = 100
"""The most contacts of one body in a step. (Inelastic bodies between others would bounce without end.)"""


class StepPaths:
    """The paths of the bodies of a roster, with their present masses, through a step.

    Attributes:
        control: (n, 4, 3) their control points (:func:`.contact.paths`); who changes a path writes into them.
    """

    def __init__(self, span: Span, roster: Roster, G: float) -> None:
        self.span, self._roster, self._G = span, roster, G
        self.h = span.end - span.begin

    @cached_property
    def control(self) -> Array:
        span = self.span
        return paths(span.x0, span.v0, span.x1, span.v1, self.h)

    @property
    def attraction(self) -> Array | None:
        """G m h² of each body if they move on Kepler orbits about body 0; None if their paths are cubics."""
        return self._G * self.h**2 * self._roster.mass[self._roster.slots] if self.span.star else None

    def end(self) -> tuple[Array, Array]:
        """Positions and velocities at the end of the step, (n, D) float64 each: copies."""
        return np.array(self.span.x1, np.float64), np.array(self.span.v1, np.float64)

    def touches(self) -> Array:
        """(K,) :data:`TOUCH`, in order of time."""
        radii, met = self._roster.radii, self.span.encounter
        found = _touches(*contacts(self.control, radii, self.attraction))
        if met is None:
            return found
        # The cubic through a whole step is not the path of bodies that have moved together in shorter ones.
        massive = self._roster.mass[self._roster.slots] > 0
        i, j = np.maximum(found["i"], found["j"]), np.minimum(found["i"], found["j"])
        paired = (np.stack([i, j], axis=1)[:, None] == met.pairs).all(axis=2).any(axis=1)
        parts = [found[(j == 0) | ~(met.hurried[i] | met.hurried[j] | paired)]]
        for k, (begin, end) in enumerate(met.times):
            bodies = np.flatnonzero(met.members[k])
            pairs, times = contacts(self._inner(k)[bodies], radii[bodies])
            pairs, new = bodies[pairs], (times > 0) | (begin == 0)  # the others were found when they began to touch
            if owner := met.owners[k]:
                other = np.where(pairs[:, 0] == owner, pairs[:, 1], pairs[:, 0])
                new &= (pairs == owner).any(axis=1) & (massive[other] | (other < owner))
            parts.append(_touches(pairs[new], begin + times[new] * (end - begin), k))
        found = np.concatenate(parts)
        return found[np.argsort(found["time"], kind="stable")]

    def later(self, k: int, s: float, radii: Array) -> Array:
        """(n,) the times from s on at which body k touches each other one."""
        found = np.empty(len(radii))
        later_contacts(self.control, radii, k, s, self.attraction, found)
        return found

    def meeting(self, touch: Touch) -> Meeting:
        """Two bodies that touch, a :data:`TOUCH`, at that moment."""
        s, i, j, inner = touch
        (x1, v1), (x2, v2) = (moment(self.control[k], s, self.h) for k in (i, j))
        relative, velocity = x2 - x1, v2 - v1
        if inner != WHOLE:
            relative, velocity = self._in_encounter(touch)
        elif (orbit := self.on_orbit(i, j, s, s)) is not None:
            relative, velocity = orbit
        return meeting_of((x1, x2), (v1, v2), self._roster.mass[self._roster.slots[[i, j]]], relative, velocity)

    def on_orbit(self, i: int, j: int, touched: float, s: float) -> tuple[Array, Array] | None:
        """Position and velocity of body j relative to i at the moment s, on their orbit; None if they are on cubics, or have
        ``touched`` from the beginning."""
        attraction = self.attraction
        if attraction is None or min(i, j) > 0 or touched == 0.0:
            return None
        x, v = orbit_moment(self.control[j] - self.control[i], attraction[i] + attraction[j], s)
        return x, v / self.h

    def _inner(self, k: int) -> Array:
        """The paths of bodies in the shorter step k of an encounter; of its members alone they mean something."""
        assert self.span.encounter is not None
        begin, end = self.span.encounter.times[k]
        x0, v0, x1, v1 = (rows.T for rows in self.span.encounter.ends[k])
        return paths(x0, v0, x1, v1, (end - begin) * self.h)

    def _in_encounter(self, touch: Touch) -> tuple[Array, Array]:
        """Position and velocity of body j relative to i when they touch in an encounter."""
        assert self.span.encounter is not None
        s, i, j, k = touch
        begin, end = self.span.encounter.times[k]
        first, second = self._inner(k)[[i, j]]
        return moment(second - first, (s - begin) / (end - begin), (end - begin) * self.h)


class Touches:
    """The contacts of a step in order of time, of which some are found while others are dealt with.

    Args:
        found: (K,) :data:`TOUCH`.
        count: the number of bodies.

    Attributes:
        alive: (count,) bodies that are still there.
    """

    def __init__(self, found: Array, count: int) -> None:
        self.alive, self._changes = np.ones(count, bool), np.zeros(count, np.int64)
        self._waiting = [(touch, 0, 0) for touch in found.tolist()]
        heapq.heapify(self._waiting)

    def __iter__(self) -> Iterator[Touch]:
        alive, changes = self.alive, self._changes  # a contact of a body that has changed since is out of date
        while self._waiting:
            touch, of_i, of_j = heapq.heappop(self._waiting)
            _, i, j, _ = touch
            if alive[i] and alive[j] and changes[i] == of_i and changes[j] == of_j:
                yield touch

    def changed(self, *bodies: int) -> None:
        """Note that the contacts of these bodies, so far, are out of date."""
        for k in bodies:
            self._changes[k] += 1

    def add(self, k: int, later: Array) -> None:
        """Add the contacts of body k at the times ``later`` (count,), up to 1."""
        changes = self._changes
        if changes[k] > MOST_BOUNCES:
            return
        for other in np.flatnonzero((later <= 1.0) & self.alive):
            a, b = sorted((k, int(other)))
            touch = float(later[other]), a, b, WHOLE
            heapq.heappush(self._waiting, (touch, int(changes[a]), int(changes[b])))


def _touches(pairs: Array, times: Array, inner: int = WHOLE) -> Array:
    found = np.zeros(len(times), TOUCH)
    found["time"], found["i"], found["j"], found["inner"] = times, pairs[:, 0], pairs[:, 1], inner
    return found
