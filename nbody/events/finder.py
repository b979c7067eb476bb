"""Finds the events of a step, and locates them inside it.

An event is where a function g of the bodies changes its sign: between the ends of a step, or, if g has an extremum in it
(its derivative changes sign too), twice. A zero at the end of a step belongs to it, one at its beginning to the step before
(g ≥ 0 counts as positive), so that no division of a run finds an event twice or loses it. The time is a root on the path
that the scheme itself shows within the step.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from nbody.events import Event
from nbody.events.kinds import NONE, Bodies
from nbody.trajectory.structure.layout import EVENT_DTYPE

Array = np.ndarray

ROUNDING = 4
"""Units in the last place of the time to which an event is located."""

MOST_HALVINGS = 100


class Path(Protocol):
    """The bodies within a step."""

    def at(self, time: float) -> Bodies:
        """The bodies at a time."""


class Cubic(NamedTuple):
    """The path with the positions and velocities of both ends of a step: Hermite's interpolation, error ∝ dt⁴."""

    begin: Bodies
    end: Bodies

    def at(self, time: float) -> Bodies:
        (t0, x0, v0, *_), (t1, x1, v1, *_) = self
        h = t1 - t0
        s = (time - t0) / h
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
    """Where an event looks, and what it has seen: rows of the bodies (K,), and the function and its derivative."""

    i: Array
    j: Array
    g: Array
    slope: Array | None


class EventFinder:
    """Looks for events, step by step.

    Args:
        events: in the order of their numbers.

    Attributes:
        begin: the bodies at the beginning of the step.
        shown: within a step that is shown partway, the time up to which its events have been told.
    """

    begin: Bodies

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.shown = -math.inf
        self._looks: list[_Looks] = []

    def start(self, now: Bodies) -> None:
        """Note the bodies at the beginning of a step."""
        self.begin, self.shown = now, -math.inf
        self._looks = [_Looks(i, j, *event.kind.measure(now, i, j)) for event, i, j in self._rows(now, now.known.id)]

    def _rows(self, now: Bodies, ids: Array) -> list[tuple[Event, Array, Array]]:
        """Each event with the rows of the bodies at which it looks, if they are among ``ids``."""
        row = {int(each): k for k, each in enumerate(now.known.id)}
        present = {NONE, *map(int, ids)}
        row[NONE] = NONE
        found = []
        for event in self.events:
            pairs = [pair for pair in event.kind.targets(now.known.id) if present.issuperset(pair)]
            found.append((event, *(np.array([row[pair[side]] for pair in pairs], np.intp) for side in (0, 1))))
        return found  # type: ignore[return-value]

    def find(self, end: Bodies, step: int, path: Callable[[Bodies, Bodies], Path]) -> list[Happened]:
        """The events of the step that ends with the bodies ``end``, in order of time. ``path``: makes the path from its
        beginning to its end."""
        if end.known is not self.begin.known:
            self._match(end)
        found: list[Happened] = []
        within: Path | None = None
        for number, (event, looks) in enumerate(zip(self.events, self._looks, strict=True)):
            i, j, g0, slope0 = looks
            g1, slope1 = event.kind.measure(end, i, j)
            self._looks[number] = _Looks(i, j, g1, slope1)
            for k in _doubtful(g0, g1, slope0, slope1):
                within = within or path(self.begin, end)
                search = _Search(event, i[k : k + 1], j[k : k + 1], self.begin, end, within)
                found += [search.row(*each, number, step) for each in search.zeros() if search.counts(each[0])]
        self.begin = end
        return sorted(found, key=lambda each: each.time)

    def _match(self, end: Bodies) -> None:
        """Let the beginning of the step have the rows of the bodies at its end, after some have merged."""
        begin = self.begin
        both, rows, before = np.intersect1d(end.known.id, begin.known.id, return_indices=True)
        x, v = end.position.copy(), end.velocity.copy()
        x[rows], v[rows] = begin.position[before], begin.velocity[before]
        self.begin = now = end._replace(time=begin.time, position=x, velocity=v)
        self._looks = [_Looks(i, j, *event.kind.measure(now, i, j)) for event, i, j in self._rows(now, both)]


def _doubtful(g0: Array, g1: Array, slope0: Array | None, slope1: Array | None) -> list[int]:
    """Where a function changes its sign, or comes closer to zero and leaves it again."""
    changed = (g0 >= 0) != (g1 >= 0)
    if slope0 is not None and slope1 is not None:
        changed |= (g0 * slope0 < 0) & (g1 * slope1 > 0)
    return [k for k, each in enumerate(changed.tolist()) if each]


class _Search:
    """Looks for the zeros of one event's function, of one body i relative to j (rows, (1,)), in a step."""

    def __init__(self, event: Event, i: Array, j: Array, begin: Bodies, end: Bodies, path: Path) -> None:
        self._event, self._i, self._j = event, i, j
        self._begin, self._end, self._path = begin, end, path
        self._tolerance = ROUNDING * math.ulp(max(abs(begin.time), abs(end.time)))

    def _measure(self, now: Bodies) -> tuple[float, float]:
        g, slope = self._event.kind.measure(now, self._i, self._j)
        return float(g[0]), 0.0 if slope is None else float(slope[0])

    def _root(self, path: Path, a: float, fa: float, b: float, fb: float, of: int = 0) -> float:
        return root(lambda time: self._measure(path.at(time))[of], (a, fa), (b, fb), self._tolerance)

    def zeros(self) -> list[tuple[float, bool]]:
        """The times of the zeros that are events, and whether the function rises there."""
        a, b = self._begin.time, self._end.time
        (fa, slope_a), (fb, slope_b) = self._measure(self._begin), self._measure(self._end)
        if not math.isfinite(fa + fb):
            return []
        parts = [(a, fa, b, fb)]
        if (fa >= 0) == (fb >= 0):
            cubic = Cubic(self._begin, self._end)
            fm, _ = self._measure(cubic.at(self._root(cubic, a, slope_a, b, slope_b, 1)))
            if fm * fa > 0 and abs(fm) > abs(fa - fm):  # far from zero, by more than the error of the cubic
                return []
            m = self._root(self._path, a, slope_a, b, slope_b, 1)
            fm, _ = self._measure(self._path.at(m))
            parts = [(a, fa, m, fm), (m, fm, b, fb)]
        rises, falls = self._event.kind.directions()
        return [
            (self._root(self._path, *part), part[3] >= 0)
            for part in parts
            if (part[1] >= 0) != (part[3] >= 0) and (rises if part[3] >= 0 else falls)
        ]

    def counts(self, time: float) -> bool:
        """True if a zero at this time is an event."""
        return self._event.kind.counts(self._path.at(time), self._i, self._j)

    def row(self, time: float, rising: bool, number: int, step: int) -> Happened:
        """What the table of events says of a zero."""
        now, row = self._path.at(time), np.zeros(1, EVENT_DTYPE)
        row["time"], row["step"], row["event"] = time, step, number
        row["kind"] = self._event.kind.name(rising).encode()
        row["id_1"] = row["id_2"] = NONE
        if self._i[0] != NONE:
            (d,), (w,) = now.relative(self._i, self._j)
            row["distance"], row["speed"] = np.linalg.norm(d), np.linalg.norm(w)
            for name, value in zip("xyz", now.position[self._i[0]], strict=False):
                row[name] = value
            for name, value in zip(("vx", "vy", "vz"), now.velocity[self._i[0]], strict=False):
                row[name] = value
        for side, (k,) in (("1", self._i), ("2", self._j)):
            if k != NONE:
                row[f"id_{side}"], row[f"mass_{side}"] = now.known.id[k], now.known.mass[k]
                row[f"radius_{side}"] = now.known.radius[k] if len(now.known.radius) else 0.0
        return Happened(self._event, row)


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
