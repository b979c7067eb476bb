"""The contacts of a step on the path that its scheme shows: where a step ends, if bodies bounce there.

Cubics through the ends of the step say which bodies may touch. An event ``distance(i, j) < R`` of each pair locates the
contact on the scheme's own path, to rounding (:mod:`nbody.events.finder`).
"""

import heapq
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nbody.events.bodies import Bodies
from nbody.events.chosen import Event
from nbody.events.finder import ROUNDING, EventFinder
from nbody.events.kinds import Distance

Array = np.ndarray


class SpanPath(NamedTuple):
    """The bodies within a step; ``show``: see :class:`.Span`."""

    show: Callable[[float], tuple[Array, Array, int]]
    begin: Bodies
    end: Bodies

    def at(self, time: float) -> Bodies:
        """The bodies at a time."""
        for ends in (self.begin, self.end):
            if time == ends.time:
                return ends
        x, v, _ = self.show(time)
        return self.end._replace(time=time, position=x, velocity=v)


def in_order(path: SpanPath, touches: Array, radii: Array) -> Iterator[tuple[float, int, int]]:
    """The times of contacts and the rows of the bodies, in order of time.

    Args:
        touches: :data:`~.step_paths.TOUCH` rows of cubics, in order of time.
        radii: (n,).
    """
    begin, end = path.begin.time, path.end.time
    waiting = [(begin + s * (end - begin), i, j) for s, i, j, _ in touches.tolist()]
    found, error = list[tuple[float, int, int]](), 0.0
    while waiting or found:
        while waiting and not (found and waiting[0][0] > found[0][0] + 2 * error):
            by_cubic, i, j = waiting.pop(0)
            if (time := _located(path, i, j, float(radii[i] + radii[j]))) is not None:
                heapq.heappush(found, (time, i, j))
                error = max(error, abs(time - by_cubic))
        if found:
            yield heapq.heappop(found)


def _located(path: SpanPath, i: int, j: int, distance: float) -> float | None:
    """When two bodies first come within a distance; None if they do not. If they are within it at the beginning of the step,
    this is the beginning, or when they come closer again."""
    x, v = path.begin.relative(j, i)
    if (now := float(x @ x) ** 0.5) <= distance:
        if float(x @ v) < 0:
            return path.begin.time
        distance = now * (1 - ROUNDING * math.ulp(1.0))
    ids = path.begin.known.id
    finder = EventFinder([Event(Distance(bodies=(int(ids[i]), int(ids[j])), below=distance))])
    finder.start(path.begin)
    happened = finder.find(path.end, 0, lambda _, times: path.end.of(path.at, times))
    return happened[0].time if happened else None
