"""Finds the events of a step, and locates them inside it.

An event is where a function g of the bodies changes its sign: between the ends of a step, or, if g has an extremum in it
(its derivative changes sign too), twice. A zero at the end of a step belongs to it, one at its beginning to the step before,
so that no division of a run finds an event twice or loses it; one at the beginning of the run is none. The time is a root on
the path that the scheme itself shows within the step.
"""

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from nbody.events.bodies import NONE, ORIGIN, Bodies, Rows
from nbody.events.chosen import Event
from nbody.trajectory.structure.layout import EVENT_DTYPE

Array = np.ndarray

ROUNDING = 4
"""Units in the last place of the time to which an event is located."""

NEAR = 1e-3
"""The part of a step to which an event is located on the cubic first."""

MOST_HALVINGS = 100


class Path(Protocol):
    """The bodies within a step."""

    def at(self, time: float) -> Bodies:
        """The bodies at a time."""


class Cubic(NamedTuple):
    """The path with the positions and velocities of both ends of a step: Hermite's interpolation, error ∝ dt⁴. Or the paths
    of several steps."""

    begin: Bodies
    end: Bodies

    def at(self, time: Any) -> Bodies:
        (t0, x0, v0, *_), (t1, x1, v1, *_) = self
        h = t1 - t0
        s = (time - t0) / h
        if np.ndim(h):
            h, s = h[:, None, None], s[:, None, None]
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
        """When."""
        return float(self.row["time"][0])


class _Looks(NamedTuple):
    """An event, and the rows of the bodies at which it looks."""

    event: Event
    i: Rows
    j: Rows

    def measure(self, now: Bodies) -> tuple[Any, Any]:
        """The function and its derivative."""
        return self.event.kind.measure(now, self.i, self.j)

    def doubtful(self, path: Bodies, finite: bool = False) -> Array:
        """In which of the steps between T moments the event may happen, (T - 1,) or (T - 1, K): where the function rises or
        falls through zero, as the event asks for, or comes close to zero and leaves it again; with ``finite`` also where it
        is not finite at the end."""
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
            return found
        which = np.nonzero(extremum)
        steps, pairs = which[0], (np.arange(len(which[0])), *which[1:])
        cubic = Cubic(path.moments(steps), path.moments(steps + 1))
        first, last = (vanishing[(k, *which[1:])] for k in (steps, steps + 1))
        f = size(cubic.at(turning(path.time[steps], first, path.time[steps + 1], last)), self.i, self.j)[pairs]
        found[which] = ~is_far(sizes[which], f) | ((slope is None) & (f > 0))
        return found

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

    def find(self, end: Bodies, step: int, path: Callable[[Bodies, Bodies], Path]) -> list[Happened]:
        """The events of the step that ends with the bodies ``end``, in order of time. ``path``: makes the path from its
        beginning to its end."""
        if end.known is not self.begin.known:
            self._match(end)
        found: list[Happened] = []
        within: Path | None = None
        both = _one_after_the_other(self.begin, end)
        for number, looks in enumerate(self._looks):
            doubtful = looks.doubtful(both)[0]
            if not doubtful.any():
                continue
            within = within or path(self.begin, end)
            for k in np.flatnonzero(doubtful):
                i, j = (int(each[k]) if isinstance(each, np.ndarray) else each for each in looks[1:])
                search = _Search(looks.event, i, j, self.begin, end, within)
                found += [search.row(*each, number, step) for each in search.zeros() if search.counts(each[0])]
        forward = end.time > self.begin.time
        return sorted(found, key=lambda each: each.time, reverse=not forward)

    def pass_over(self, path: Bodies, finite: Collection[int]) -> int:
        """Begin the step after those in which nothing happens, of the steps between T moments of which the first one is the
        beginning. Returns their number, at most T - 1. In the next one an event may happen, or the function of an
        event, one with these numbers, ceases to be finite."""
        passed = len(path.time) - 1
        for number, looks in enumerate(self._looks):
            doubtful = looks.doubtful(path, number in finite)
            if doubtful.any():
                passed = min(passed, int(np.nonzero(doubtful)[0][0]))
        self.go_on(path.moments(passed))
        return passed

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


def _one_after_the_other(begin: Bodies, end: Bodies) -> Bodies:
    """The bodies at two moments."""
    x, v = (np.stack(pair) for pair in ((begin.position, end.position), (begin.velocity, end.velocity)))
    return end._replace(time=np.array([begin.time, end.time]), position=x, velocity=v)


def _rows_of(rows: list[int], pairs: int) -> Rows:
    """The rows of one side of so many pairs."""
    return ORIGIN if pairs and not rows else rows[0] if pairs == 1 else np.array(rows, np.intp)


class _Search:
    """Looks for the zeros of one event's function, of body i relative to j, in a step."""

    def __init__(self, event: Event, i: int | None, j: int | None, begin: Bodies, end: Bodies, path: Path) -> None:
        self._event, self._i, self._j = event, i, j
        self._begin, self._end, self._path = begin, end, path
        self._tolerance = ROUNDING * math.ulp(max(abs(begin.time), abs(end.time)))

    def _measure(self, now: Bodies) -> tuple[float, float]:
        g, slope = self._event.kind.measure(now, self._i, self._j)
        return float(g), 0.0 if slope is None else float(slope)

    def _root(self, a: float, fa: float, b: float, fb: float, of: int = 0) -> float:
        """A zero on the path, which costs a short step per point: from that of the cubic, with its slope, on by secants; by
        :func:`root` alone where that does not lead on."""
        cubic, path = Cubic(self._begin, self._end), self._path
        near, f = (lambda time, p=each: self._measure(p.at(time))[of] for each in (cubic, path))
        if (ends := (near(a), near(b)))[0] * ends[1] < 0 and fb != 0:
            time, width = root(near, (a, ends[0]), (b, ends[1]), NEAR * abs(b - a)), NEAR * (b - a)
            slope, step, value = (near(time + width) - near(time - width)) / (2 * width), math.inf, f(time)
            while slope != 0 and abs(value / slope) < 0.5 * abs(step):
                before, step = value, -value / slope
                if abs(step) <= self._tolerance:
                    return time
                if not min(a, b) < time + step < max(a, b):
                    break
                time += step
                value = f(time)
                slope = (value - before) / step
        return root(f, (a, fa), (b, fb), self._tolerance)

    def zeros(self) -> list[tuple[float, bool]]:
        """The times of the zeros that are events, and whether the function rises with time there."""
        a, b = self._begin.time, self._end.time
        (fa, slope_a), (fb, slope_b) = self._measure(self._begin), self._measure(self._end)
        if not math.isfinite(fa + fb):
            return []
        parts = [(a, fa, b, fb)]
        if not crosses(fa, fb):
            fm, _ = self._measure(Cubic(self._begin, self._end).at(turning(a, slope_a, b, slope_b)))
            if is_far(fa, fm):
                return []
            m = self._root(a, slope_a, b, slope_b, 1)
            fm, _ = self._measure(self._path.at(m))
            parts = [(a, fa, m, fm), (m, fm, b, fb)]
        (rises, falls), forward = self._event.kind.directions(), b > a
        return [
            (self._root(*part), (part[1] < 0) == forward)
            for part in parts
            if crosses(part[1], part[3]) and (rises if (part[1] < 0) == forward else falls)
        ]

    def counts(self, time: float) -> bool:
        """True if a zero at this time is an event."""
        margin = self._event.kind.margin(self._path.at(time), self._i, self._j)
        return margin is None or bool(margin > 0)

    def row(self, time: float, rising: bool, number: int, step: int) -> Happened:
        """What the table of events says of a zero."""
        now, row = self._path.at(time), np.zeros(1, EVENT_DTYPE)
        row["time"], row["step"], row["event"] = time, step, number
        row["kind"] = self._event.kind.name(rising).encode()
        row["id_1"] = row["id_2"] = NONE
        if self._i is not None:
            d, w = now.relative(self._i, self._j)
            row["distance"], row["speed"] = np.linalg.norm(d), np.linalg.norm(w)
            for names, values in (("x y z", now.position), ("vx vy vz", now.velocity)):
                for name, value in zip(names.split(), values[self._i], strict=False):
                    row[name] = value
        for side, k in (("1", self._i), ("2", self._j)):
            if k is not None:
                row[f"id_{side}"], row[f"mass_{side}"] = now.known.id[k], now.known.mass[k]
                row[f"radius_{side}"] = now.known.radius[k] if len(now.known.radius) else 0.0
        return Happened(self._event, row)


def crosses(a: Any, b: Any) -> Any:
    """True if a value goes from a through zero, or to it, to b."""
    return ((a < 0) & (b >= 0)) | ((a > 0) & (b <= 0))


def turning(a: Any, slope_a: Any, b: Any, slope_b: Any) -> Any:
    """About where a slope vanishes between a and b: that of a squared distance is linear in time on straight paths."""
    return a - slope_a * (b - a) / (slope_b - slope_a)


def is_far(fa: Any, fm: Any) -> Any:
    """True if a value fm at an extremum is far from zero, by more than its error; fa: at the beginning of the step."""
    return (fm * fa > 0) & (abs(fm) > abs(fa - fm))


def root(f: Callable[[float], float], first: tuple[float, float], last: tuple[float, float], tolerance: float) -> float:
    """A zero of f between two points with values of different signs: inverse quadratic interpolation, or halving where that
    is not safe (Chandrupatla 1997, Advances in Engineering Software 28, 145)."""
    (a, fa), (b, fb) = first, last
    fraction = fa / (fa - fb) if fa != fb else 0.5
    for _ in range(MOST_HALVINGS):
        least = tolerance / abs(b - a) if a != b else 1.0
        best, value = (a, fa) if abs(fa) < abs(fb) else (b, fb)
        if least > 0.5 or value == 0.0:
            break
        x = a + min(1 - least, max(least, fraction)) * (b - a)
        fx = f(x)
        if (fx >= 0) == (fa >= 0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        along, values = (a - b) / (c - b), (fa - fb) / (fc - fb)
        if values * values < along and (1 - values) ** 2 < 1 - along:
            fraction = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        else:
            fraction = 0.5
    return best
