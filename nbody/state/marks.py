"""How far the device is: marks in its stream of work, and waiting for them."""

from collections import deque
from collections.abc import Callable
from typing import Any

from nbody.gpu import mark, wait_for

MARK = 1 << 34
"""Interactions between two marks in the stream, at least: 5 ms of work on an H200. So a step of few bodies has none."""

AHEAD = 1
"""Marks that may still be pending when the next is set: the device always has the piece after it."""


Computed = Callable[[int], None]


class Marks:
    """The marks of one stream.

    ``computed`` is called with the interactions between two marks when the device has passed the second; and with 0 now
    and then while a mark is waited for. (It belongs to the state, so it is not kept here: states that are in a cycle of
    references would be freed at any moment, and that ends the recording of a graph.)
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._unmarked = 0
        self._pending: deque[tuple[Any, int]] = deque()

    def add(self, interactions: int, computed: Computed) -> None:
        """So many more interactions have been launched. Waits while the device is more than :data:`AHEAD` marks behind."""
        self._unmarked += interactions
        if self._unmarked >= MARK:
            self._set()
            while len(self._pending) > AHEAD:
                self._wait_for_oldest(computed)

    def wait_for_all(self, soon: bool, computed: Computed) -> None:
        """Return when the device has finished its work; ``soon``: without handling signals meanwhile."""
        self._set()
        if soon:  # with repeated queries, runs of short steps made 5526 steps/s instead of 5629 (H200, N = 20480)
            self._pending[-1][0].synchronize()
        while self._pending:
            self._wait_for_oldest(computed)

    def _set(self) -> None:
        self._pending.append((mark(self._stream), self._unmarked))
        self._unmarked = 0

    def _wait_for_oldest(self, computed: Computed) -> None:
        event, interactions = self._pending.popleft()
        wait_for(event, lambda: computed(0))
        computed(interactions)
