"""``Collisions``: what happens to bodies that touch.

A merger empties the slot (:mod:`nbody.integrators.roster`) of the lighter body, of the later one if masses are equal; the
other slot then holds both: mass, momentum and centre of mass are conserved, and R³ = R₁³ + R₂³.
"""

import heapq

import numpy as np

from nbody.integrators.collisions.contact import any_contact_of_few, contacts, later_contacts, moment, paths
from nbody.integrators.collisions.orbit import orbit_moment
from nbody.integrators.collisions.span import Span
from nbody.integrators.roster import Roster
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.trajectory.structure.layout import CONTACT, EVENT_DTYPE, MERGER

Array = np.ndarray

FEW = 256
"""So few bodies are compared each with each: sorting them would take longer."""


TOUCH = np.dtype([("time", float), ("i", int), ("j", int), ("inner", int)])
"""The first contact of two bodies: when, in units of the step, and in which step of an encounter; see :data:`WHOLE`."""

WHOLE = -1
"""Marks a contact that was found on the paths of the whole step."""


class Collisions:
    """The contacts of one run.

    Args:
        roster: the bodies, which have radii.
        rule: ``merge``, ``stop`` or ``record``.
        gravity: the law between them.

    Attributes:
        touched: the pair (ids) and the time at which rule ``stop`` ended the run.
    """

    def __init__(self, roster: Roster, rule: str, gravity: Gravity) -> None:
        self.roster, self.rule, self._gravity = roster, rule, gravity
        self.touched: tuple[int, int, float] | None = None

    # --- A step ---

    @property
    def merges(self) -> bool:
        """True if bodies that touch become one."""
        return self.rule == "merge"

    @property
    def radii(self) -> Array:
        """(n,) the radii of the bodies that are left."""
        return self.roster.radii

    def touching(self, span: Span) -> bool:
        """True if two bodies touch in a step."""
        if len(self.roster.slots) <= FEW and span.x0.shape[1] == 3 and span.encounter is None:
            rows = (np.asarray(each, np.float64).T for each in span[:4])
            return bool(any_contact_of_few(*rows, span.end - span.begin, self.radii, self._attraction(span)))
        return len(self._found(span)[1]) > 0

    def _attraction(self, span: Span) -> Array | None:
        """G m h² of each body if they move on Kepler orbits about body 0; None if their paths are cubics."""
        return (
            self._gravity.G * (span.end - span.begin) ** 2 * self.roster.mass[self.roster.slots] if span.star else None
        )

    def resolve(self, span: Span, step: int, first: bool) -> tuple[Array, Particles | None]:
        """What happens in a step, in order of time.

        Args:
            step: the number of the step.
            first: True for the first step of the run. Pairs that touch at its beginning count as contacts; in later steps
                ``stop`` and ``record`` have noted them when they began to touch.

        Returns:
            Rows of :data:`layout.EVENT_DTYPE`, and the bodies after the step if some have merged.
        """
        control, found = self._found(span)
        if self.merges:
            return self._merge(control, found, span, step)
        found = found[(found["time"] > 0) | first]
        if self.rule == "stop":
            found = found[:1]
        events = [self._contact(control, touch, span, step) for touch in found.tolist()]
        if self.rule == "stop" and events:
            self.touched = int(events[0]["id_1"][0]), int(events[0]["id_2"][0]), float(events[0]["time"][0])
        self.roster.count += len(events)
        return _rows(events), None

    def _found(self, span: Span) -> tuple[Array, Array]:
        """The paths of a step, and :data:`TOUCH` rows in order of time."""
        control = paths(span.x0, span.v0, span.x1, span.v1, span.end - span.begin)
        found = _touches(*contacts(control, self.radii, self._attraction(span)))
        if (met := span.encounter) is None:
            return control, found
        # The cubic through a whole step is not the path of bodies that have met in it.
        parts = [found[~(np.isin(found["i"], met.bodies) & np.isin(found["j"], met.bodies))]]
        for k, (begin, end) in enumerate(met.times):
            pairs, times = contacts(_inner_paths(span, k), self.radii[met.bodies])
            new = (times > 0) | (begin == 0)  # the others have been found when they began to touch
            parts.append(_touches(met.bodies[pairs[new]], begin + times[new] * (end - begin), k))
        found = np.concatenate(parts)
        return control, found[np.argsort(found["time"], kind="stable")]

    def _merge(self, control: Array, found: Array, span: Span, step: int) -> tuple[Array, Particles | None]:
        """Merge in order of time. A merged body moves on the path of the centre of mass, and may meet others."""
        if not len(found):
            return _rows([]), None
        roster, slots = self.roster, self.roster.slots
        x, v = (np.array(rows, np.float64) for rows in (span.x1, span.v1))
        mass, radius, alive = roster.mass[slots], self.radii, np.ones(len(slots), bool)
        generation = np.zeros(len(alive), np.int64)  # a contact of a body that has merged since is out of date
        waiting = [(touch, 0, 0) for touch in found.tolist()]
        heapq.heapify(waiting)
        events, later = [], np.empty(len(alive))
        while waiting:
            (s, i, j, inner), of_i, of_j = heapq.heappop(waiting)
            if not (alive[i] and alive[j] and generation[i] == of_i and generation[j] == of_j):
                continue
            k, gone = (j, i) if mass[j] > mass[i] else (i, j)
            event = self._contact(control, (s, k, gone, inner), span, step)
            fraction = mass[gone] / (mass[k] + mass[gone]) if mass[k] > 0 else 0.5
            if (end := self._on_orbit(control, k, gone, s, 1.0, span)) is not None:
                _separate(x, end[0], k, gone, fraction)
                _separate(v, end[1], k, gone, fraction)
            before = roster.partial_energy(x, v, mass, [k, gone], span.end, alive)
            for rows in (x, v, control):
                rows[k] += fraction * (rows[gone] - rows[k])
            mass[k], radius[k] = mass[k] + mass[gone], np.cbrt(radius[k] ** 3 + radius[gone] ** 3)
            alive[gone], mass[gone] = False, 0.0
            change = roster.partial_energy(x, v, mass, [k], span.end, alive) - before
            event["kind"], event["energy_change"] = MERGER, change
            events.append(event)
            roster.book(change)
            roster.merge(slots[k], slots[gone], mass[k], radius[k])
            generation[k] += 1
            later_contacts(control, radius, k, s, self._attraction(span), later)
            for other in np.flatnonzero((later <= 1.0) & alive):
                a, b = sorted((k, int(other)))
                touch = float(later[other]), a, b, WHOLE
                heapq.heappush(waiting, (touch, int(generation[a]), int(generation[b])))
        self.roster.count += len(events)
        roster.settle()
        left = roster.particles(x[alive], v[alive], span.end, step)
        return _rows(events), left

    def _contact(self, control: Array, touch: tuple[float, int, int, int], span: Span, step: int) -> Array:
        """The event of two bodies that touch, a :data:`TOUCH`."""
        s, i, j, inner = touch
        (x1, v1), (x2, v2) = (moment(control[k], s, span.end - span.begin) for k in (i, j))
        relative, velocity = x2 - x1, v2 - v1
        if inner != WHOLE:
            relative, velocity = _inner_relative(span, touch)
        elif (orbit := self._on_orbit(control, i, j, s, s, span)) is not None:
            relative, velocity = orbit
        roster = self.roster
        first, second = roster.slots[i], roster.slots[j]
        event = np.zeros(1, EVENT_DTYPE)
        m1, m2 = roster.mass[first], roster.mass[second]
        fraction = m2 / (m1 + m2) if m1 + m2 > 0 else 0.5
        event["time"], event["step"] = span.begin + s * (span.end - span.begin), step
        event["kind"], event["event"] = CONTACT, -1
        event["distance"], event["speed"] = np.linalg.norm(relative), np.linalg.norm(velocity)
        for number, slot in (("1", first), ("2", second)):
            event[f"id_{number}"], event[f"mass_{number}"] = roster.bodies.id[slot], roster.mass[slot]
            event[f"radius_{number}"] = roster.radius[slot]
        event["x"], event["y"], event["z"] = x1 + fraction * (x2 - x1)
        event["vx"], event["vy"], event["vz"] = v1 + fraction * (v2 - v1)
        return event

    def _on_orbit(
        self, control: Array, i: int, j: int, touched: float, s: float, span: Span
    ) -> tuple[Array, Array] | None:
        """Position and velocity of body j relative to i at the moment s, on their orbit; None if they are on cubics, or have
        touched from the beginning."""
        attraction = self._attraction(span)
        if attraction is None or min(i, j) > 0 or touched == 0.0:
            return None
        x, v = orbit_moment(control[j] - control[i], attraction[i] + attraction[j], s)
        return x, v / (span.end - span.begin)


def _separate(rows: Array, relative: Array, k: int, j: int, fraction: float) -> None:
    """Put bodies k and j of (N, D) rows at ``relative`` of each other, about the same centre of mass: a scheme that is not
    accurate so close to body 0 does not change the energy that a merger removes."""
    centre, apart = rows[k] + fraction * (rows[j] - rows[k]), relative[: rows.shape[1]]
    rows[k], rows[j] = centre - fraction * apart, centre + (1 - fraction) * apart


def _touches(pairs: Array, times: Array, inner: int = WHOLE) -> Array:
    found = np.zeros(len(times), TOUCH)
    found["time"], found["i"], found["j"], found["inner"] = times, pairs[:, 0], pairs[:, 1], inner
    return found


def _inner_paths(span: Span, k: int) -> Array:
    """The paths of the bodies of an encounter in its step k."""
    assert span.encounter is not None
    begin, end = span.encounter.times[k]
    x0, v0, x1, v1 = (rows.T for rows in span.encounter.ends[k])
    return paths(x0, v0, x1, v1, (end - begin) * (span.end - span.begin))


def _inner_relative(span: Span, touch: tuple[float, int, int, int]) -> tuple[Array, Array]:
    """Position and velocity of body j relative to i when they touch in an encounter."""
    assert span.encounter is not None
    s, i, j, k = touch
    begin, end = span.encounter.times[k]
    first, second = _inner_paths(span, k)[np.searchsorted(span.encounter.bodies, [i, j])]
    return moment(second - first, (s - begin) / (end - begin), (end - begin) * (span.end - span.begin))


def _rows(events: list[Array]) -> Array:
    return np.concatenate(events) if events else np.zeros(0, EVENT_DTYPE)
