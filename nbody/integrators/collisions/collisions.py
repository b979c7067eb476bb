"""``Collisions``: what happens to bodies that touch.

A merger empties the slot (:mod:`nbody.integrators.roster`) of the lighter body, of the later one if masses are equal; the
other slot then holds both: mass, momentum and centre of mass are conserved, and R³ = R₁³ + R₂³.
"""

from dataclasses import replace

import numpy as np

from nbody.errors import RunFailed
from nbody.integrators.collisions.contact import any_contact_of_few, contacts, later_contacts, moment, paths
from nbody.integrators.collisions.orbit import NEVER, orbit_moment
from nbody.integrators.collisions.outcomes import Meeting, Outcome, Touches, after
from nbody.integrators.collisions.span import Span
from nbody.integrators.roster import Roster
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.groups import CHANGING
from nbody.trajectory.structure.layout import ADDED, BOUNCE, CHANGED, CONTACT, EVENT_DTYPE, MERGER, REMOVED, event_rows

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
        rule: of :data:`~nbody.scenario.groups.RULES`.
        gravity: the law between them.
        restitution: of bodies that bounce.
        outcome: the user's function of rule ``function``.

    Attributes:
        touched: the pair (ids) and the time at which rule ``stop`` ended the run.
    """

    def __init__(
        self, roster: Roster, rule: str, gravity: Gravity, restitution: float = 1.0, outcome: Outcome | None = None
    ) -> None:
        self.roster, self.rule, self._gravity = roster, rule, gravity
        self._restitution, self._outcome = restitution, outcome
        self.touched: tuple[int, int, float] | None = None

    # --- A step ---

    @property
    def changes(self) -> bool:
        """True if bodies that touch merge or become others."""
        return self.rule in CHANGING

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
        if self.changes:
            resolved = {"merge": self._merge, "bounce": self._bounce}.get(self.rule, self._by_function)
            return resolved(control, found, span, step)
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
        # The cubic through a whole step is not the path of bodies that have moved together in shorter ones.
        massive = self.roster.mass[self.roster.slots] > 0
        i, j = np.maximum(found["i"], found["j"]), np.minimum(found["i"], found["j"])
        with_star = (met.hurried[i] & (massive | met.hurried)[j]) | (met.hurried[j] & (massive | met.hurried)[i])
        paired = (np.stack([i, j], axis=1)[:, None] == met.pairs).all(axis=2).any(axis=1)
        parts = [found[(j == 0) | ~(with_star & (massive[i] | massive[j]) | paired)]]
        for k, (begin, end) in enumerate(met.times):
            bodies = np.flatnonzero(met.members[k])
            pairs, times = contacts(_inner_paths(span, k)[bodies], self.radii[bodies])
            pairs, new = (
                bodies[pairs],
                (times > 0) | (begin == 0),
            )  # the others have been found when they began to touch
            if owner := met.owners[k]:
                other = pairs.sum(axis=1) - owner
                new &= (pairs == owner).any(axis=1) & (massive[other] | (other < owner))
            parts.append(_touches(pairs[new], begin + times[new] * (end - begin), k))
        found = np.concatenate(parts)
        return control, found[np.argsort(found["time"], kind="stable")]

    def _merge(self, control: Array, found: Array, span: Span, step: int) -> tuple[Array, Particles | None]:
        """Merge in order of time. A merged body moves on the path of the centre of mass, and may meet others."""
        if not len(found):
            return _rows([]), None
        roster, slots = self.roster, self.roster.slots
        x, v = (np.array(rows, np.float64) for rows in (span.x1, span.v1))
        mass, radius, touches = roster.mass[slots], self.radii, Touches(found, len(slots))
        events, later, alive = [], np.empty(len(slots)), touches.alive
        for s, i, j, inner in touches:
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
            touches.changed(k)
            later_contacts(control, radius, k, s, self._attraction(span), later)
            touches.add(k, later, WHOLE)
        self.roster.count += len(events)
        roster.settle()
        left = roster.particles(x[alive], v[alive], span.end, step)
        return _rows(events), left

    def _bounce(self, control: Array, found: Array, span: Span, step: int) -> tuple[Array, Particles | None]:
        """Let bodies bounce in order of time, those that approach each other."""
        roster, slots, h = self.roster, self.roster.slots, span.end - span.begin
        x, v = (np.array(rows, np.float64) for rows in (span.x1, span.v1))
        mass, touches, D = roster.mass[slots], Touches(found, len(slots)), x.shape[1]
        events, later, radii = [], np.empty(len(slots)), self.radii
        for touch in touches:
            s, i, j, _ = touch
            meeting = self._meeting(control, touch, span)
            if not meeting.approaching:
                continue
            event = self._contact(control, touch, span, step)
            changes, energy = meeting.bounced(self._restitution)
            for k, change in zip((i, j), changes, strict=True):
                x[k] += (1 - s) * h * change[:D]
                v[k] += change[:D]
                control[k] += (np.arange(4)[:, None] / 3 - s) * h * change
            event["kind"], event["energy_change"] = (
                BOUNCE,
                energy * meeting.fraction * (mass[i] if mass[i] > 0 else 0.0),
            )
            roster.book(float(event["energy_change"][0]))
            events.append(event)
            touches.changed(i, j)
            for k, other in ((i, j), (j, i)):
                later_contacts(control, radii, k, s, self._attraction(span), later)
                later[other] = NEVER
                touches.add(k, later, WHOLE)
        roster.count += len(events)
        return _rows(events), roster.particles(x, v, span.end, step) if events else None

    def _by_function(self, control: Array, found: Array, span: Span, step: int) -> tuple[Array, Particles | None]:
        """Let a user's function say what becomes of bodies that touch and approach each other. Each body has one contact in
        a step."""
        assert self._outcome is not None
        roster, slots, rows, D = self.roster, self.roster.slots, [], span.x0.shape[1]
        free, next_id = np.ones(len(slots), bool), int(roster.ids.max()) + 1
        for touch in found.tolist():
            s, i, j, _ = touch
            meeting = self._meeting(control, touch, span)
            if not (free[i] and free[j] and meeting.approaching):
                continue
            free[[i, j]] = False
            event = self._contact(control, touch, span, step)
            position, velocity = (each[:, :D] for each in meeting.bodies())
            pair = roster.particles(span.x1, span.v1, float(event["time"][0]), step).rows(np.array([i, j]))
            pair.position, pair.velocity = position, velocity
            rows.append(event)
            if (left := after(self._outcome, pair)) is not None:
                end = [(1 - meeting.fraction) * each[i] + meeting.fraction * each[j] for each in (span.x1, span.v1)]
                rest = (1 - s) * (span.end - span.begin)
                centre, motion = meeting.centre[:D], meeting.motion[:D]
                left.position = left.position + left.velocity * rest + (end[0] - centre - motion * rest)
                left.velocity = left.velocity + (end[1] - motion)
                rows.append(outcome_rows(pair, left, next_id, float(event["time"][0]), step))
                next_id += max(0, left.count - 2)
        roster.count += sum(len(each) == 1 and each["kind"][0] == CONTACT for each in rows)
        changes = _rows([each for each in rows if each["kind"][0] != CONTACT])
        if not len(changes):
            return _rows(rows), None
        x, v = (np.array(each, np.float64) for each in (span.x1, span.v1))
        x, v, energy = roster.apply(changes, x, v, span.end)
        if not roster.mass[roster.slots].any():
            raise RunFailed(f"step {step}: the collision leaves no body with a mass")
        roster.book(energy)
        rows[0]["energy_change"] = energy
        contacts_only = [each for each in rows if each["kind"][0] == CONTACT]
        return _rows([*contacts_only, changes]), roster.particles(x, v, span.end, step)

    def _meeting(self, control: Array, touch: tuple[float, int, int, int], span: Span) -> Meeting:
        """Two bodies that touch, a :data:`TOUCH`, at that moment."""
        s, i, j, inner = touch
        (x1, v1), (x2, v2) = (moment(control[k], s, span.end - span.begin) for k in (i, j))
        relative, velocity = x2 - x1, v2 - v1
        if inner != WHOLE:
            relative, velocity = _inner_relative(span, touch)
        elif (orbit := self._on_orbit(control, i, j, s, s, span)) is not None:
            relative, velocity = orbit
        m1, m2 = self.roster.mass[self.roster.slots[[i, j]]]
        fraction = float(m2 / (m1 + m2)) if m1 + m2 > 0 else 0.5
        return Meeting(x1 + fraction * (x2 - x1), v1 + fraction * (v2 - v1), relative, velocity, fraction)

    def _contact(self, control: Array, touch: tuple[float, int, int, int], span: Span, step: int) -> Array:
        """The event of two bodies that touch, a :data:`TOUCH`."""
        s, i, j, _ = touch
        meeting, roster = self._meeting(control, touch, span), self.roster
        first, second = roster.slots[i], roster.slots[j]
        event = np.zeros(1, EVENT_DTYPE)
        event["time"], event["step"] = span.begin + s * (span.end - span.begin), step
        event["kind"], event["event"] = CONTACT, -1
        event["distance"], event["speed"] = np.linalg.norm(meeting.relative), np.linalg.norm(meeting.velocity)
        for number, slot in (("1", first), ("2", second)):
            event[f"id_{number}"], event[f"mass_{number}"] = roster.bodies.id[slot], roster.mass[slot]
            event[f"radius_{number}"] = roster.radius[slot]
        event["x"], event["y"], event["z"] = meeting.centre
        event["vx"], event["vy"], event["vz"] = meeting.motion
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
    """The paths of bodies in the shorter step k; of its members alone they mean something."""
    assert span.encounter is not None
    begin, end = span.encounter.times[k]
    x0, v0, x1, v1 = (rows.T for rows in span.encounter.ends[k])
    return paths(x0, v0, x1, v1, (end - begin) * (span.end - span.begin))


def _inner_relative(span: Span, touch: tuple[float, int, int, int]) -> tuple[Array, Array]:
    """Position and velocity of body j relative to i when they touch in an encounter."""
    assert span.encounter is not None
    s, i, j, k = touch
    begin, end = span.encounter.times[k]
    first, second = _inner_paths(span, k)[[i, j]]
    return moment(second - first, (s - begin) / (end - begin), (end - begin) * (span.end - span.begin))


def outcome_rows(pair: Particles, left: Particles, next_id: int, time: float, step: int) -> Array:
    """The rows of two bodies that have become ``left``; new bodies have the ids from ``next_id`` on."""
    kept, count = min(2, left.count), left.count
    ids = np.concatenate([pair.id[:kept], next_id + np.arange(count - kept)])
    of = np.concatenate([np.full(kept, -1), np.full(count - kept, pair.species[0])])
    bodies = replace(left, id=ids, species=np.zeros(count, np.int64), species_names=("",))
    rows = [event_rows(CHANGED[1], bodies.rows(np.arange(kept)), of[:kept])] if kept else []
    rows += [event_rows(REMOVED[1], pair.rows(np.arange(kept, 2)))] if kept < 2 else []
    rows += [event_rows(ADDED[1], bodies.rows(np.arange(kept, count)), of[kept:])] if count > kept else []
    found = np.concatenate(rows)
    found["time"], found["step"] = time, step
    return found


def _rows(events: list[Array]) -> Array:
    return np.concatenate(events) if events else np.zeros(0, EVENT_DTYPE)
