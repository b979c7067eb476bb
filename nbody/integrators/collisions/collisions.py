"""``Collisions``: what happens to bodies that touch.

A merger empties the slot (:mod:`nbody.integrators.roster`) of the lighter body, of the later one if masses are equal; the
other slot then holds both: mass, momentum and centre of mass are conserved, and R³ = R₁³ + R₂³.
"""

from collections.abc import Mapping
from itertools import islice

import numpy as np

from nbody.errors import RunFailed
from nbody.events.bodies import Bodies
from nbody.integrators.collisions.contact import any_contact_of_few
from nbody.integrators.collisions.ending import SpanPath, in_order
from nbody.integrators.collisions.orbit import NEVER
from nbody.integrators.collisions.outcomes import Bouncing, Meeting, Outcome, after, meeting_of, outcome_rows
from nbody.integrators.collisions.span import Span
from nbody.integrators.collisions.step_paths import MOST_BOUNCES, StepPaths, Touch, Touches
from nbody.integrators.roster import OWN, Roster
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.collisions import CHANGING
from nbody.trajectory.structure.layout import ADDED, BOUNCE, CONTACT, EVENT_DTYPE, MERGER

Array = np.ndarray

FEW = 256
"""So few bodies are compared each with each: sorting them would take longer."""

SHORTEST_HOP = 1e-10
"""Bodies that move less between contacts, as a part of their distance, rest on one another."""

LONG_AGO = -1e300
"""Before every time, as a checkpoint holds it: a finite number."""


class Collisions:
    """The contacts of one run.

    Args:
        roster: the bodies, which have radii.
        rule: of :data:`~nbody.scenario.collisions.RULES`.
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
        paths = self._paths(span)
        if len(self.roster.slots) <= FEW and span.x0.shape[1] == 3 and span.encounter is None:
            rows = (np.asarray(each, np.float64).T for each in span[:4])
            return bool(any_contact_of_few(*rows, paths.h, self.radii, paths.attraction))
        return len(paths.touches()) > 0

    def _paths(self, span: Span) -> StepPaths:
        return StepPaths(span, self.roster, self._gravity.G)

    def resolve(self, span: Span, step: int, first: bool) -> tuple[Array, Particles | None]:
        """What happens in a step, in order of time.

        Args:
            step: the number of the step.
            first: True for the first step of the run. Pairs that touch at its beginning count as contacts; in later steps
                ``stop`` and ``record`` have noted them when they began to touch.

        Returns:
            Rows of :data:`layout.EVENT_DTYPE`, and the bodies after the step if some have merged.
        """
        paths = self._paths(span)
        if self.changes:
            return {"merge": self._merge, "bounce": self._bounce}.get(self.rule, self._by_function)(paths, step)
        found = paths.touches()
        found = found[(found["time"] > 0) | first]
        if self.rule == "stop":
            found = found[:1]
        events = [self._contact(paths, touch, step) for touch in found.tolist()]
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
        for time, i, j in islice(in_order(path, self._paths(span).touches(), radii), passed, None):
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

    def _merge(self, paths: StepPaths, step: int) -> tuple[Array, Particles | None]:
        """Merge in order of time. A merged body moves on the path of the centre of mass, and may meet others."""
        found, roster, slots = paths.touches(), self.roster, self.roster.slots
        if not len(found):
            return _rows([]), None
        (x, v), end = paths.end(), paths.span.end
        mass, radius, touches = roster.mass[slots], self.radii, Touches(found, len(slots))
        events, alive = [], touches.alive
        for s, i, j, inner in touches:
            k, gone = (j, i) if mass[j] > mass[i] else (i, j)
            event = self._contact(paths, (s, k, gone, inner), step)
            fraction = mass[gone] / (mass[k] + mass[gone]) if mass[k] > 0 else 0.5
            if (orbit := paths.on_orbit(k, gone, s, 1.0)) is not None:
                _separate(x, orbit[0], k, gone, fraction)
                _separate(v, orbit[1], k, gone, fraction)
            before = roster.partial_energy(x, v, mass, [k, gone], end, alive)
            for rows in (x, v, paths.control):
                rows[k] += fraction * (rows[gone] - rows[k])
            mass[k], radius[k] = mass[k] + mass[gone], np.cbrt(radius[k] ** 3 + radius[gone] ** 3)
            alive[gone], mass[gone] = False, 0.0
            change = roster.partial_energy(x, v, mass, [k], end, alive) - before
            event["kind"], event["energy_change"] = MERGER, change
            events.append(event)
            roster.book(change)
            roster.merge(slots[k], slots[gone], mass[k], radius[k])
            touches.changed(k)
            touches.add(k, paths.later(k, s, radius))
        roster.count += len(events)
        roster.settle()
        return _rows(events), roster.particles(x[alive], v[alive], end, step)

    def _bounce(self, paths: StepPaths, step: int) -> tuple[Array, Particles | None]:
        """Let bodies bounce in order of time, those that approach each other."""
        roster, span, h = self.roster, paths.span, paths.h
        (x, v), events, radii = paths.end(), list[Array](), self.radii
        touches, D = Touches(paths.touches(), len(radii)), x.shape[1]
        for touch in touches:
            s, i, j, _ = touch
            meeting, rest = paths.meeting(touch), (1 - s) * h
            if not meeting.approaching:
                continue
            events.append(self._event(meeting, i, j, span.begin + s * h, step))
            change, both = self._bounced(meeting, events[-1]), [i, j]
            before = roster.attraction(x, both)
            x[both] += rest * change[:, :D]
            further = roster.attraction(x, both) - before  # it has grown since the contact, in proportion to the time
            x[both] += rest**2 / 6 * further
            v[both] += change[:, :D] + rest / 2 * further
            paths.control[both] += (np.arange(4)[:, None] / 3 - s) * h * change[:, None]
            touches.changed(i, j)
            for k, other in ((i, j), (j, i)):
                later = paths.later(k, s, radii)
                later[other] = NEVER
                touches.add(k, later)
        roster.count += len(events)
        return _rows(events), roster.particles(x, v, span.end, step) if events else None

    def _bounced(self, meeting: Meeting, event: Array) -> Array:
        """What a bounce changes of the velocities, (2, 3); its event is completed."""
        change, energy = meeting.bounced(self._bouncing, self._gravity.G)
        event["kind"], event["energy_change"] = BOUNCE, energy
        self.roster.book(energy)
        return change

    def _by_function(self, paths: StepPaths, step: int) -> tuple[Array, Particles | None]:
        """Let a user's function say what becomes of bodies that touch and approach each other. Each body has one contact in
        a step."""
        rows, free, end = list[Array](), np.ones(len(self.roster.slots), bool), paths.span.end
        x, v = paths.end()
        for touch in paths.touches().tolist():
            s, i, j, _ = touch
            meeting, rest = paths.meeting(touch), (1 - s) * paths.h
            if not (free[i] and free[j] and meeting.approaching):
                continue
            free[[i, j]] = False
            rows += self._asked(meeting, self._event(meeting, i, j, end - rest, step), [i, j], x, v, rest)
        return self._altered(rows, x, v, end, step)

    def _asked(self, meeting: Meeting, event: Array, both: list[int], x: Array, v: Array, rest: float = 0.0) -> list[Array]:
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
            each["id_1"][new] = self.roster.ids.max() + 1 + np.arange(np.count_nonzero(new))  # ids that no body had
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

    def _contact(self, paths: StepPaths, touch: Touch, step: int) -> Array:
        """The event of two bodies that touch."""
        s, i, j, _ = touch
        return self._event(paths.meeting(touch), i, j, paths.span.begin + s * paths.h, step)

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


def _separate(rows: Array, relative: Array, k: int, j: int, fraction: float) -> None:
    """Put bodies k and j of (N, D) rows at ``relative`` of each other, about the same centre of mass: a scheme that is not
    accurate so close to body 0 does not change the energy that a merger removes."""
    centre, apart = rows[k] + fraction * (rows[j] - rows[k]), relative[: rows.shape[1]]
    rows[k], rows[j] = centre - fraction * apart, centre + (1 - fraction) * apart


def _rows(events: list[Array]) -> Array:
    return np.concatenate(events) if events else np.zeros(0, EVENT_DTYPE)
