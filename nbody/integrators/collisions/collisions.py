"""``Collisions``: what happens to bodies that touch.

A merger empties the slot (:mod:`nbody.integrators.roster`) of the lighter body, of the later one if masses are equal; the
other slot then holds both: mass, momentum and centre of mass are conserved, and R³ = R₁³ + R₂³.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

import numpy as np

from nbody.errors import RunFailed
from nbody.events.bodies import Bodies
from nbody.integrators.collisions.contact import any_contact_of_few, contacts, later_contacts, moment, paths
from nbody.integrators.collisions.ending import SpanPath, in_order
from nbody.integrators.collisions.orbit import NEVER, orbit_moment
from nbody.integrators.collisions.outcomes import (
    MOST_BOUNCES,
    Bouncing,
    Meeting,
    Outcome,
    Touches,
    after,
    meeting_of,
)
from nbody.integrators.collisions.span import Span
from nbody.integrators.roster import OWN, Roster
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.groups import CHANGING
from nbody.trajectory.structure.layout import ADDED, BOUNCE, CHANGED, CONTACT, EVENT_DTYPE, MERGER, REMOVED, event_rows

Array = np.ndarray

FEW = 256
"""So few bodies are compared each with each: sorting them would take longer."""


TOUCH = np.dtype([("time", float), ("i", int), ("j", int), ("inner", int)])
"""The first contact of two bodies: when, in units of the step, and in which step of an encounter; see :data:`WHOLE`."""

SHORTEST_HOP = 1e-10
"""Bodies that move less between contacts, as a part of their distance, rest on one another."""

LONG_AGO = -1e300
"""Before every time, as a checkpoint holds it: a finite number."""

WHOLE = -1
"""Marks a contact that was found on the paths of the whole step."""


class Collisions:
    """The contacts of one run.

    Args:
        roster: the bodies, which have radii.
        rule: of :data:`~nbody.scenario.groups.RULES`.
        gravity: the law between them.
        bouncing: how bodies bounce.
        outcome: the user's function of rule ``function``.

    Attributes:
        touched: the pair (ids) and the time at which rule ``stop`` ended the run.
    """

    def __init__(
        self, roster: Roster, rule: str, gravity: Gravity, bouncing: Bouncing, outcome: Outcome | None = None
    ) -> None:
        self.roster, self.rule, self._gravity = roster, rule, gravity
        self._bouncing, self._outcome = bouncing, outcome
        self._last, self._at_once = LONG_AGO, 0  # the time of the last contact, and how many there were then
        self._begin, self._passed = LONG_AGO, 0  # of a step that is shown partway, and its contacts until then
        self.touched: tuple[int, int, float] | None = None

    @property
    def _next_id(self) -> int:
        """The first id that no body had."""
        return int(self.roster.ids.max()) + 1

    # --- A step ---

    @property
    def changes(self) -> bool:
        """True if bodies that touch merge or become others."""
        return self.rule in CHANGING

    @property
    def ends_steps(self) -> bool:
        """True if a step ends where two bodies touch, if the scheme can show the bodies then."""
        return self.rule in ("bounce", "function")

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

    def end_step(self, span: Span, until: float, begun: int) -> tuple[Array, Particles | None]:
        """Let a step end at the first contact that changes bodies, if there is one until a time. ``begun``: the number of
        steps, with this one.

        Returns:
            Rows of :data:`layout.EVENT_DTYPE` of the contacts until then that no earlier call has returned, and the bodies
            after the one that changes bodies, at whose time the state is then; None without one.
        """
        assert span.show is not None
        rows, (begin, end), radii = list[Array](), self._endings(span), self.radii
        path, passed = SpanPath(span.show, begin, end), self._passed if span.begin == self._begin else 0
        self._begin = LONG_AGO
        for time, i, j in islice(in_order(path, self._found(span)[1], radii), passed, None):
            if time > until:
                break
            passed += 1
            meeting = self._met(path.at(time), i, j)
            if not meeting.approaching:
                continue
            # The scheme would forget a step that it shows at its beginning.
            x, v, step = span.show(time) if time > span.begin else (begin.position.copy(), begin.velocity.copy(), begun)
            event = self._event(meeting, i, j, time, step)
            if self.rule == "bounce":
                v[[i, j]] += self._bounced(meeting, event)[:, : x.shape[1]]
                self.roster.count += 1
                self._require_progress(meeting, event)
                return event, self.roster.particles(x, v, time, step)
            rows += (asked := self._asked(meeting, event, [i, j], x, v))
            if len(asked) > 1:
                self._require_progress(meeting, event)
                return self._altered(rows, x, v, time, step)
        if span.end > until:  # a user's function is asked about each contact once, however a run is divided
            self._begin, self._passed = span.begin, passed
        return self._altered(rows, end.position, end.velocity, span.end, 0)

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint keeps besides the roster."""
        numbers = self._last, self._at_once, self._begin, self._passed
        return {OWN + "contacts": np.array(numbers, np.float64)} if self.ends_steps else {}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Restore what :meth:`arrays` returned; files of nbody 0.2 have none."""
        if OWN + "contacts" in arrays:
            self._last, at_once, self._begin, passed = arrays[OWN + "contacts"].tolist()
            self._at_once, self._passed = int(at_once), int(passed)

    def _endings(self, span: Span) -> tuple[Bodies, Bodies]:
        """The bodies at the beginning and at the end of a step."""
        known = self.roster.particles(span.x0.astype(np.float64), span.v0.astype(np.float64), span.begin, 0)
        begin = Bodies(span.begin, known.position, known.velocity, known, self._gravity)
        return begin, Bodies(span.end, span.x1.astype(np.float64), span.v1.astype(np.float64), known, self._gravity)

    def _met(self, now: Bodies, i: int, j: int) -> Meeting:
        """Bodies i and j at a moment."""
        more = (0, 0), (0, 3 - now.position.shape[1])
        x, v = (np.pad(each[[i, j]], more) for each in (now.position, now.velocity))
        return meeting_of(x, v, self.roster.mass[self.roster.slots[[i, j]]], x[1] - x[0], v[1] - v[0])

    def _require_progress(self, meeting: Meeting, event: Array) -> None:
        """Raise RunFailed after many contacts between which bodies hardly move."""
        time = float(event["time"][0])
        way, least = (time - self._last) * meeting.speed, SHORTEST_HOP * float(event["distance"][0])
        self._last, self._at_once = time, self._at_once + 1 if way <= least else 0
        if self._at_once > MOST_BOUNCES:
            first, second = int(event["id_1"][0]), int(event["id_2"][0])
            raise RunFailed(
                f"step {event['step'][0]}: bodies {first} and {second} (ids) rest on one another at t = {time:.9g}: they "
                "would bounce without end; give collisions.minimum_speed, at which they part, or 'collisions: merge'"
            )

    def _found(self, span: Span) -> tuple[Array, Array]:
        """The paths of a step, and :data:`TOUCH` rows in order of time."""
        control = paths(span.x0, span.v0, span.x1, span.v1, span.end - span.begin)
        found = _touches(*contacts(control, self.radii, self._attraction(span)))
        if (met := span.encounter) is None:
            return control, found
        # The cubic through a whole step is not the path of bodies that have moved together in shorter ones.
        massive = self.roster.mass[self.roster.slots] > 0
        i, j = np.maximum(found["i"], found["j"]), np.minimum(found["i"], found["j"])
        paired = (np.stack([i, j], axis=1)[:, None] == met.pairs).all(axis=2).any(axis=1)
        parts = [found[(j == 0) | ~(met.hurried[i] | met.hurried[j] | paired)]]
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
        touches, D = Touches(found, len(slots)), x.shape[1]
        events, later, radii = [], np.empty(len(slots)), self.radii
        for touch in touches:
            s, i, j, _ = touch
            meeting, rest = self._meeting(control, touch, span), (1 - s) * h
            if not meeting.approaching:
                continue
            events.append(self._event(meeting, i, j, span.begin + s * h, step))
            change, both = self._bounced(meeting, events[-1]), [i, j]
            before = roster.attraction(x, both)
            x[both] += rest * change[:, :D]
            further = roster.attraction(x, both) - before  # it has grown since the contact, in proportion to the time
            x[both] += rest**2 / 6 * further
            v[both] += change[:, :D] + rest / 2 * further
            control[both] += (np.arange(4)[:, None] / 3 - s) * h * change[:, None]
            touches.changed(i, j)
            for k, other in ((i, j), (j, i)):
                later_contacts(control, radii, k, s, self._attraction(span), later)
                later[other] = NEVER
                touches.add(k, later, WHOLE)
        roster.count += len(events)
        return _rows(events), roster.particles(x, v, span.end, step) if events else None

    def _bounced(self, meeting: Meeting, event: Array) -> Array:
        """What a bounce changes of the velocities, (2, 3); its event is completed."""
        change, energy = meeting.bounced(self._bouncing, self._gravity.G)
        event["kind"], event["energy_change"] = BOUNCE, energy
        self.roster.book(energy)
        return change

    def _by_function(self, control: Array, found: Array, span: Span, step: int) -> tuple[Array, Particles | None]:
        """Let a user's function say what becomes of bodies that touch and approach each other. Each body has one contact in
        a step."""
        rows, free = list[Array](), np.ones(len(self.roster.slots), bool)
        x, v = (np.array(each, np.float64) for each in (span.x1, span.v1))
        for touch in found.tolist():
            s, i, j, _ = touch
            meeting, rest = self._meeting(control, touch, span), (1 - s) * (span.end - span.begin)
            if not (free[i] and free[j] and meeting.approaching):
                continue
            free[[i, j]] = False
            rows += self._asked(meeting, self._event(meeting, i, j, span.end - rest, step), [i, j], x, v, rest)
        return self._altered(rows, x, v, span.end, step)

    def _asked(
        self, meeting: Meeting, event: Array, both: list[int], x: Array, v: Array, rest: float = 0.0
    ) -> list[Array]:
        """The rows of a contact, and of what the user's function makes of the bodies ``both``. ``x``, ``v``: of all bodies a
        time ``rest`` later."""
        assert self._outcome is not None
        time, step, D = float(event["time"][0]), int(event["step"][0]), x.shape[1]
        pair = self.roster.particles(x, v, time, step).rows(np.array(both))
        pair.position, pair.velocity = (each[:, :D] for each in meeting.bodies())
        if (left := after(self._outcome, pair)) is None:
            return [event]
        part = np.array([1 - meeting.fraction, meeting.fraction])
        centre, motion = meeting.centre[:D], meeting.motion[:D]
        left.position = left.position + left.velocity * rest + (part @ x[both] - centre - motion * rest)
        left.velocity = left.velocity + (part @ v[both] - motion)
        return [event, outcome_rows(pair, left, time, step)]

    def _altered(self, rows: list[Array], x: Array, v: Array, time: float, step: int) -> tuple[Array, Particles | None]:
        """Apply rows of :meth:`_asked` to the bodies at a time."""
        roster, events, changes = self.roster, list[Array](), list[Array]()
        for each in rows:
            if each["kind"][0] == CONTACT:
                events.append(each)
                continue
            new = np.isin(each["kind"], ADDED)
            each["id_1"][new] = self._next_id + np.arange(np.count_nonzero(new))
            x, v, energy = roster.apply(each, x, v, time)
            roster.book(energy)
            events[-1]["energy_change"] = energy
            changes.append(each)
        roster.count += len(events)
        if not changes:
            return _rows(events), None
        if not roster.mass[roster.slots].any():
            raise RunFailed(f"step {step}: the collision leaves no body with a mass")
        return _rows([*events, *changes]), roster.particles(x, v, time, step)

    def _meeting(self, control: Array, touch: tuple[float, int, int, int], span: Span) -> Meeting:
        """Two bodies that touch, a :data:`TOUCH`, at that moment."""
        s, i, j, inner = touch
        (x1, v1), (x2, v2) = (moment(control[k], s, span.end - span.begin) for k in (i, j))
        relative, velocity = x2 - x1, v2 - v1
        if inner != WHOLE:
            relative, velocity = _inner_relative(span, touch)
        elif (orbit := self._on_orbit(control, i, j, s, s, span)) is not None:
            relative, velocity = orbit
        return meeting_of((x1, x2), (v1, v2), self.roster.mass[self.roster.slots[[i, j]]], relative, velocity)

    def _contact(self, control: Array, touch: tuple[float, int, int, int], span: Span, step: int) -> Array:
        """The event of two bodies that touch, a :data:`TOUCH`."""
        s, i, j, _ = touch
        return self._event(self._meeting(control, touch, span), i, j, span.begin + s * (span.end - span.begin), step)

    def _event(self, meeting: Meeting, i: int, j: int, time: float, step: int) -> Array:
        """The event of the contact of bodies i and j."""
        roster, event = self.roster, np.zeros(1, EVENT_DTYPE)
        event["time"], event["step"] = time, step
        event["kind"], event["event"] = CONTACT, -1
        event["distance"], event["speed"] = np.linalg.norm(meeting.relative), np.linalg.norm(meeting.velocity)
        for number, slot in zip("12", roster.slots[[i, j]], strict=True):
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


def outcome_rows(pair: Particles, left: Particles, time: float, step: int) -> Array:
    """The rows of two bodies that have become ``left``; new bodies have no ids yet."""
    kept, count = min(2, left.count), left.count
    ids = np.concatenate([pair.id[:kept], np.full(count - kept, -1)])
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
