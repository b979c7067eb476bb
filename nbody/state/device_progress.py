"""The progress of the device: CUDA events in its stream of work, and waits for them."""

from collections import deque
from collections.abc import Callable
from typing import Any

from nbody.compute import mark, wait_for
from nbody.state.partition import WorkPartition
from nbody.state.progress import ForceProgress

EVENT_INTERACTIONS = 1 << 34
"""The fewest interactions between two events in the stream: 5 ms of work on an H200. A step of few bodies has no events."""

AHEAD = 1
"""Events that may be pending when the next is set, so that the device always has work queued."""


Computed = Callable[[int], None]


class StreamEvents:
    """The events of one stream.

    ``computed`` is called with the interactions between two events when the device has passed the second; and with 0 from
    time to time during a wait for an event. (It is an argument, since an attribute would make a cycle of references with the
    state. The garbage collector frees a cycle at any moment, which would abort the recording of a graph.)
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._since = 0
        self._pending: deque[tuple[Any, int]] = deque()

    def add(self, interactions: int, computed: Computed) -> None:
        """Note that ``interactions`` more are launched. Waits while the device is more than :data:`AHEAD` events behind."""
        self._since += interactions
        if self._since >= EVENT_INTERACTIONS:
            self._mark()
            while len(self._pending) > AHEAD:
                self._wait_for_oldest(computed)

    def wait_for_all(self, soon: bool, computed: Computed) -> None:
        """Return when the device has finished its work; if ``soon``, without handling signals meanwhile."""
        self._mark()
        if soon:  # repeated queries are slower: 5526 steps/s instead of 5629 (H200, N = 20480)
            self._pending[-1][0].synchronize()
        while self._pending:
            self._wait_for_oldest(computed)

    def _mark(self) -> None:
        self._pending.append((mark(self._stream), self._since))
        self._since = 0

    def _wait_for_oldest(self, computed: Computed) -> None:
        event, interactions = self._pending.popleft()
        wait_for(event, lambda: computed(0))
        computed(interactions)


class DeviceProgress(ForceProgress):
    """The progress of the force evaluations in a stream, and of the other devices and ranks that divide them."""

    def __init__(self, stream: Any, partition: WorkPartition) -> None:
        super().__init__()
        self._events, self._partition = StreamEvents(stream), partition

    def report(self, interactions: int) -> None:
        # Without a watch and other ranks it does nothing.
        self._partition.transport.wait()  # with a time limit, which events do not have
        if self.watch is not None:
            self.requested += interactions
            self._events.add(interactions, self._add_computed)

    def wait(self, soon: bool = False) -> None:
        # It does not wait for frames on their way to the host.
        self._partition.transport.wait()
        # A wait without signals would not see that a helper has failed.
        self._events.wait_for_all(soon and not self._partition.transport.helpers, self._add_computed)

    def can_be_recorded(self) -> bool:
        """True if a graph may contain an evaluation: a graph waits for no ranks, has no events, and can't be interrupted."""
        return self._partition.transport.ranks == 1 and (self.watch is None or self._partition.pairs < EVENT_INTERACTIONS)
