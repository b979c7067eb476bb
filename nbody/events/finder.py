"""Finds the events of a step, and locates them inside it.

An event is where a function g of the bodies changes its sign: between the ends of a step, or, if g has an extremum in it
(its derivative changes sign too), twice. A zero at the end of a step belongs to it, one at its beginning to the step before,
so that no division of a run finds an event twice or loses it; one at the beginning of the run is none. The time is a root on
the path that the scheme itself shows within the step.
"""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from nbody.events.bodies import NONE, ORIGIN, Bodies, Rows
from nbody.events.chosen import Event
from nbody.trajectory.structure.layout import EVENT_DTYPE

Array = np.ndarray

ROUNDING = 4
"""Units in the last place of the time to which an event is located."""

POINTS = 9
"""Where the cubic is looked at first: an event is between two of them. (A call of many points takes as long as of one.)"""

MOST_AT_ONCE = 2**17
"""Numbers of bodies at the ends of steps: with more each point is a call."""

MOST_HALVINGS = 100


Show = Callable[[Array, Array], Bodies]
"""``show(steps, times)``: the bodies at (n,) times within (n,) steps, on the path that the scheme shows."""


class Cubic(NamedTuple):
    """The paths with the positions and velocities of both ends of (n,) steps: Hermite's interpolation, error ∝ dt⁴."""

    begin: Bodies
    end: Bodies

    def at(self, time: Any) -> Bodies:
        (t0, x0, v0, *_), (t1, x1, v1, *_) = self
        h = t1 - t0
        h, s = h[:, None, None], ((time - t0) / h)[:, None, None]
        a, b = h * v0 - (x1 - x0), (x1 - x0) - h * v1
        bend = a + (b - a) * s
        x = x0 + s * (x1 - x0) + s * (1 - s) * bend
        v = ((x1 - x0) + (1 - 2 * s) * bend + s * (1 - s) * (b - a)) / h
        return self.end._replace(time=time, position=x, velocity=v)


class Happened(NamedTuple):
    """An event that has happened: which of the finder's events, and its row (1,) of :data:`layout.EVENT_DTYPE`."""

    event: Event
    row: Array

    @property
    def time(self) -> float:
        return float(self.row["time"][0])

    @property
    def step(self) -> int:
        return int(self.row["step"][0])


class _Looks(NamedTuple):
    """An event, and the rows of the bodies at which it looks."""

    event: Event
    i: Rows
    j: Rows

    def measure(self, now: Bodies) -> tuple[Any, Any]:
        """The function and its derivative."""
        return self.event.kind.measure(now, self.i, self.j)

    def doubtful(self, path: Bodies, finite: bool = False) -> tuple[Array, ...]:
        """The steps between T moments in which the event may happen, (n,), and the numbers of the pairs, if it looks at
        several: where the function rises or falls through zero, as the event asks for, or comes close to zero and leaves it
        again; with ``finite`` also where it is not finite at the end."""
        kind, (g, slope) = self.event.kind, self.measure(path)
        forward, before, after = path.time[-1] > path.time[0], g[:-1], g[1:]
        rises, falls = kind.directions() if forward else kind.directions()[::-1]
        found: Array = (rises & (before < 0) & (after >= 0)) | (falls & (before > 0) & (after <= 0))
        if finite:
            found |= ~np.isfinite(after)
        extremum, vanishing, size = found, g, kind.margin
        if slope is not None:
            vanishing, size = slope, self._function
            toward, away = before * slope[:-1], after * slope[1:]
            extremum = ((toward < 0) & (away > 0) if forward else (toward > 0) & (away < 0)) & ~crosses(before, after)
        if not extremum.any() or (sizes := size(path, self.i, self.j)) is None:
            return np.nonzero(found)
        which = np.nonzero(extremum)
        steps, pairs = which[0], (np.arange(len(which[0])), *which[1:])
        cubic = Cubic(path.moments(steps), path.moments(steps + 1))
        first, last = (vanishing[(k, *which[1:])] for k in (steps, steps + 1))
        f = size(cubic.at(turning(path.time[steps], first, path.time[steps + 1], last)), self.i, self.j)[pairs]
        found[which] = ~is_far(sizes[which], f) | ((slope is None) & (f > 0))
        return np.nonzero(found)

    def _function(self, now: Bodies, i: Rows, j: Rows) -> Any:
        return self.event.kind.measure(now, i, j)[0]


class EventFinder:
    """Looks for events, step by step.

    Args:
        events: in the order of their numbers.

    Attributes:
        begin: the bodies at the beginning of the step.
        shown: if the step is shown partway, the time up to which its events have been reported; -inf at the beginning
            of a step. If the run goes back in time, this is -t.
    """

    begin: Bodies

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.shown = -math.inf
        self._looks: list[_Looks] = []

    def start(self, now: Bodies) -> None:
        """Note the bodies at the beginning of a step."""
        self.begin, self.shown = now, -math.inf
        self._looks = self._rows(now, now.known.id)

    def value(self, number: int) -> float:
        """The function of an event that looks at one pair, at the beginning of the step."""
        return float(self._looks[number].measure(self.begin)[0])

    def holding(self) -> list[str]:
        """A line about each event whose condition holds already at the beginning of the step, so that it does not happen."""
        found = []
        for number, looks in enumerate(self._looks):
            event, (rises, _) = looks.event, looks.event.kind.directions()
            if not event.kind.threshold:
                continue
            g = np.atleast_1d(looks.measure(self.begin)[0])
            if not (held := g > 0 if rises else g < 0).any():
                continue
            rows = np.atleast_1d(np.asarray(looks.i))[held].tolist() + ([looks.j] if isinstance(looks.j, int) else [])
            ids = self.begin.known.id[rows].tolist()
            shown = ", ".join(map(str, ids[:5])) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
            found.append(
                f"events.{number}: {event.kind.name(rises)} holds already at the beginning (ids {shown}); "
                f"it happens{' and stops the run' if event.stops else ''} only when it begins to hold again"
            )
        return found

    def _rows(self, now: Bodies, ids: Array) -> list[_Looks]:
        """Each event with the rows of the bodies at which it looks, if they are among ``ids``."""
        row: dict[int | str, int] = {int(each): k for k, each in enumerate(now.known.id)}
        present: set[int | str] = {NONE, *map(int, ids)}
        found = []
        for event in self.events:
            pairs = [pair for pair in event.kind.targets(now.known.id) if present.issuperset(pair)]
            sides = [[row[pair[side]] for pair in pairs if pair[side] != NONE] for side in (0, 1)]
            found.append(_Looks(event, *(_rows_of(side, len(pairs)) for side in sides)))
        return found

    def find(self, end: Bodies, step: int, show: Show) -> list[Happened]:
        """The events of the step with this number, which ends with the bodies ``end``, in order of time."""
        if end.known is not self.begin.known:
            self._match(end)
        ends = self.begin, end
        x, v = (np.stack([getattr(each, name) for each in ends]) for name in ("position", "velocity"))
        path = end._replace(time=np.array([each.time for each in ends]), position=x, velocity=v)
        return self.find_all(path, step, show)[0]

    def find_all(
        self, path: Bodies, step: int, show: Show | None, finite: Collection[int] = ()
    ) -> tuple[list[Happened], int]:
        """The events of the steps between T moments, the first of which is the beginning of the step with this number, in
        order of time. And how many of these steps need no further look: in the one after them the function of an event, one
        with the numbers ``finite``, ceases to be finite; or, without ``show``, an event may happen."""
        found, passed = list[Happened](), len(path.time) - 1
        for number, looks in enumerate(self._looks):
            which = looks.doubtful(path, number in finite)
            if not len(which[0]):
                continue
            if show is not None:
                search = _Search(looks, which, path, show)
                found += search.happened(number, step)
                which = (which[0][~search.finite],)
            passed = min([passed, *which[0].tolist()])
        return sorted(found, key=lambda each: each.time, reverse=bool(path.time[-1] < path.time[0])), passed

    def go_on(self, end: Bodies) -> None:
        """Begin the step after the one that :meth:`find` was asked for."""
        self.begin, self.shown = end, -math.inf

    def _match(self, end: Bodies) -> None:
        """Let the beginning of the step have the rows of the bodies at its end, after some have merged."""
        begin = self.begin
        both, rows, before = np.intersect1d(end.known.id, begin.known.id, return_indices=True)
        x, v = end.position.copy(), end.velocity.copy()
        x[rows], v[rows] = begin.position[before], begin.velocity[before]
        self.begin = end._replace(time=begin.time, position=x, velocity=v)
        self._looks = self._rows(self.begin, both)


def _rows_of(rows: list[int], pairs: int) -> Rows:
    """The rows of one side of so many pairs."""
    return ORIGIN if pairs and not rows else rows[0] if pairs == 1 else np.array(rows, np.intp)


class _Search:
    """Looks for the zeros of an event's function in steps of a path.

    Args:
        which: n steps, and the pairs of bodies, as :meth:`_Looks.doubtful` returns them.
        show: shows the bodies within the steps.

    Attributes:
        finite: (n,) whether the function is so at both ends of the step.
    """

    def __init__(self, looks: _Looks, which: tuple[Array, ...], path: Bodies, show: Show) -> None:
        self._looks, self._which, self._show = looks, which, show
        self._shown: dict[tuple[int, float], tuple[Array, Array]] = {}
        self._begin, self._end = path.moments(which[0]), path.moments(which[0] + 1)
        self._ends = [self._measure(now, slice(None)) for now in (self._begin, self._end)]
        self.finite = np.isfinite(self._ends[0][0] + self._ends[1][0])

    def _measure(self, now: Bodies, q: Any) -> tuple[Array, Array]:
        """The function and its derivative for the searches with numbers ``q``, (n,)."""
        g, slope = self._looks.measure(now)
        at = (np.arange(len(now.time)), *(pairs[q] for pairs in self._which[1:]))
        return g[at], np.zeros(len(now.time)) if slope is None else slope[at]

    def _at(self, q: Array, times: Array) -> Bodies:
        """The bodies on the path, which costs a step for each that was not shown lately."""
        steps = self._which[0][q]
        keys = list(zip(steps.tolist(), times.tolist(), strict=True))
        if new := [k for k, key in enumerate(keys) if key not in self._shown]:
            _, x, v, *_ = self._show(steps[new], times[new])
            self._shown.update(zip((keys[k] for k in new), zip(x, v, strict=True), strict=True))
        x, v = (np.array(rows) for rows in zip(*(self._shown[key] for key in keys), strict=True))
        return self._begin._replace(time=times, position=x, velocity=v)

    def _on_cubic(self, q: Array, times: Array) -> Bodies:
        return Cubic(self._begin.moments(q), self._end.moments(q)).at(times)

    def _roots(self, q: Array, first: tuple[Array, Array], last: tuple[Array, Array], of: int = 0) -> Array:
        """Zeros on the path, which costs a short step per point: from that of the cubic, with its slope, on by secants; by
        :func:`roots` alone where that does not lead on."""
        (a, _), (b, fb) = first, last
        tolerance = ROUNDING * np.spacing(np.maximum(abs(self._begin.time[q]), abs(self._end.time[q])))

        def on(bodies: Callable[[Array, Array], Bodies]) -> Callable[[Array, Array], Array]:
            return lambda k, times: self._measure(bodies(q[k], times), q[k])[of]

        near, f, found = on(self._on_cubic), on(self._at), np.full(len(q), np.nan)
        times = a + np.linspace(0.0, 1.0, POINTS)[:, None] * (b - a)
        parts = np.array_split(times, 1 if self._begin.position.size <= MOST_AT_ONCE else POINTS)
        values = np.concatenate([near(np.tile(np.arange(len(q)), len(t)), t.ravel()).reshape(t.shape) for t in parts])
        go = np.flatnonzero((values[0] * values[-1] < 0) & (fb != 0))
        if len(go):
            k = np.argmax(values[1:, go] * values[0, go] <= 0, axis=0)
            time, slope = times[k, go], (values[k + 1, go] - values[k, go]) / (times[k + 1, go] - times[k, go])
            time = time - values[k, go] / slope
            step, value = np.full(len(go), np.inf), f(go, time)
            while True:
                with np.errstate(divide="ignore", invalid="ignore"):
                    before, last_step, step = value, step, -value / slope
                there = abs(step) <= tolerance[go]
                found[go[there]] = time[there]
                low, high = np.minimum(a, b)[go], np.maximum(a, b)[go]
                on_way = ~there & (abs(step) < 0.5 * abs(last_step)) & (low < time + step) & (time + step < high)
                if not on_way.any():
                    break
                go, step, before, time = go[on_way], step[on_way], before[on_way], (time + step)[on_way]
                value = f(go, time)
                slope = (value - before) / step
        if len(rest := np.flatnonzero(np.isnan(found))):
            begin, end = ((time[rest], value[rest]) for time, value in (first, last))
            found[rest] = roots(lambda k, t: f(rest[k], t), begin, end, tolerance[rest])
        return found

    def happened(self, number: int, step: int) -> list[Happened]:
        """The zeros that are events of this number; ``step`` is that of the first step of the path."""
        a, b = self._begin.time, self._end.time
        (fa, slope_a), (fb, slope_b) = self._ends
        crossing = crosses(fa, fb) & self.finite
        q = np.flatnonzero(crossing)
        parts = [(q, a[q], fa[q], b[q], fb[q])]
        if len(q := np.flatnonzero(self.finite & ~crossing)):
            fm, _ = self._measure(self._on_cubic(q, turning(a, slope_a, b, slope_b)[q]), q)
            q = q[~is_far(fa[q], fm)]
        if len(q):
            m = self._roots(q, (a[q], slope_a[q]), (b[q], slope_b[q]), 1)
            fm, _ = self._measure(self._at(q, m), q)
            parts += [(q, a[q], fa[q], m, fm), (q, m, fm, b[q], fb[q])]
        q, a, fa, b, fb = (np.concatenate(each) for each in zip(*parts, strict=True))
        rising = (fa < 0) == (b > a)
        chosen = crosses(fa, fb) & np.where(rising, *self._looks.event.kind.directions())
        q, rising = q[chosen], rising[chosen]
        if not len(q):
            return []
        times = self._roots(q, (a[chosen], fa[chosen]), (b[chosen], fb[chosen]))
        now = self._at(q, times)
        if (margin := self._looks.event.kind.margin(now, self._looks.i, self._looks.j)) is not None:
            counts = margin[(np.arange(len(q)), *(pairs[q] for pairs in self._which[1:]))] > 0
            q, rising, now = q[counts], rising[counts], now.moments(counts)
        rows = self._rows(q, rising, now)
        rows["step"], rows["event"] = step + self._which[0][q], number
        return [Happened(self._looks.event, rows[k : k + 1]) for k in range(len(q))]

    def _rows(self, q: Array, rising: Array, now: Bodies) -> Array:
        """What the table of events says of zeros."""
        looks, rows, every = self._looks, np.zeros(len(q), EVENT_DTYPE), np.arange(len(q))
        rows["time"] = now.time
        called = [looks.event.kind.name(each).encode() for each in (True, False)]
        rows["kind"] = np.where(rising, *called)
        sides = [each[self._which[1][q]] if isinstance(each, np.ndarray) else each for each in (looks.i, looks.j)]
        if sides[0] is not ORIGIN:
            of = [(now.position[every, k], now.velocity[every, k]) if k is not ORIGIN else (0.0, 0.0) for k in sides]
            rows["distance"], rows["speed"] = (np.linalg.norm(x - y, axis=-1) for x, y in zip(*of, strict=True))
            for names, values in zip(("x y z", "vx vy vz"), of[0], strict=True):
                for name, value in zip(names.split(), values.T, strict=False):
                    rows[name] = value
        for side, k in zip("12", sides, strict=True):
            rows[f"id_{side}"] = NONE
            if k is not ORIGIN:
                rows[f"id_{side}"], rows[f"mass_{side}"] = now.known.id[k], now.known.mass[k]
                rows[f"radius_{side}"] = now.known.radius[k] if len(now.known.radius) else 0.0
        return rows


def crosses(a: Any, b: Any) -> Any:
    """True if a value goes from a through zero, or to it, to b."""
    return ((a < 0) & (b >= 0)) | ((a > 0) & (b <= 0))


def turning(a: Any, slope_a: Any, b: Any, slope_b: Any) -> Any:
    """About where a slope vanishes between a and b: that of a squared distance is linear in time on straight paths."""
    return a - slope_a * (b - a) / (slope_b - slope_a)


def is_far(fa: Any, fm: Any) -> Any:
    """True if a value fm at an extremum is far from zero, by more than its error; fa: at the beginning of the step."""
    return (fm * fa > 0) & (abs(fm) > abs(fa - fm))


def roots(
    f: Callable[[Array, Array], Array], first: tuple[Array, Array], last: tuple[Array, Array], tolerance: Array
) -> Array:
    """Zeros of functions between two points each, (n,), with values of different signs; ``f(which, at)``: those with these
    numbers at these points. Inverse quadratic interpolation, or halving where that is not safe (Chandrupatla 1997, Advances
    in Engineering Software 28, 145)."""
    (a, fa), (b, fb) = first, last
    fraction = np.where(fa != fb, fa / np.where(fa != fb, fa - fb, 1.0), 0.5)
    found, which = a.copy(), np.arange(len(a))
    for _ in range(MOST_HALVINGS):
        with np.errstate(divide="ignore"):
            least = np.where(a != b, tolerance / abs(b - a), 1.0)
        near = abs(fa) < abs(fb)
        best, value = np.where(near, a, b), np.where(near, fa, fb)
        found[which] = best
        on = (least <= 0.5) & (value != 0.0)
        if not on.any():
            break
        which, tolerance, a, fa, b, fb, least, fraction = (
            each[on] for each in (which, tolerance, a, fa, b, fb, least, fraction)
        )
        x = a + np.minimum(1 - least, np.maximum(least, fraction)) * (b - a)
        fx = f(which, x)
        same = (fx >= 0) == (fa >= 0)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        with np.errstate(divide="ignore", invalid="ignore"):
            along, values = (a - b) / (c - b), (fa - fb) / (fc - fb)
            inverse = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        fraction = np.where((values * values < along) & ((1 - values) ** 2 < 1 - along), inverse, 0.5)
    return found
