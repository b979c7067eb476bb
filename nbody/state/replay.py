"""Steps recorded as CUDA graphs and replayed: the launches of many steps cost as much as one."""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from nbody.compute import SIMULATED, Graph
from nbody.state.device_progress import DeviceProgress
from nbody.state.graph_time import DeviceClock
from nbody.state.moves import Repeats
from nbody.state.outputs import Outputs

STEPS_PER_GRAPH = 16
"""The most steps without frames per graph: between two graphs the device is idle for 1.6 µs (one H200)."""


class Replay(NamedTuple):
    """A graph, the results that are current after it, and its steps."""

    graph: Graph
    current: Outputs
    steps: int


class Replays(Repeats):
    """The graphs of one state.

    A graph depends on what is current when it begins, so there is one graph for each such beginning. A step with a long
    evaluation is not recorded: the host could not stop a graph between its launches.
    """

    def __init__(self, stream: Any, clock: DeviceClock, progress: DeviceProgress) -> None:
        self._stream, self._clock, self._progress = stream, clock, progress
        self._compiled: dict[Hashable, Outputs] = {}  # current after a step, by kernels and what is current before
        self._replays: dict[Hashable, Replay] = {}

    def make(self, make: Callable[[int], None], steps: int, key: Hashable) -> None:
        if key is None:
            make(steps)
            return
        while steps:
            steps -= self.replay(make, min(STEPS_PER_GRAPH, 1 << steps.bit_length() - 1), key, key)

    def replay(self, make: Callable[[int], None], count: int, key: Hashable, kernels: Hashable) -> int:
        """Call ``make(count)`` by replaying its graph, which is recorded at its first use; or call ``make(1)``.

        A single step is replayed if it is not yet known what is current after it. It is made without a graph if steps are
        long, or if no step with this beginning has launched the same ``kernels`` before (the launch compiles them).

        Returns:
            The number with which it was called.
        """
        clock = self._clock
        beginning = kernels, clock.current
        if SIMULATED or beginning not in self._compiled or not self._progress.can_be_recorded():
            make(1)
            self._compiled[beginning] = clock.current
            return 1
        if (kernels, self._compiled[beginning]) not in self._compiled:
            count = 1
        name = key, count, clock.current, clock.origin if clock.time_dependent else None
        replay = self._replays.get(name)
        if replay is None:
            replay = self._replays[name] = self._record(lambda: make(count))
        clock.set_start(self._stream)
        replay.graph.replay()
        if replay.steps:
            clock.end_steps(replay.steps)
        clock.current = replay.current
        return count

    def _record(self, work: Callable[[], None]) -> Replay:
        clock, progress = self._clock, self._progress
        watch, progress.watch = progress.watch, None  # recording launches nothing
        current, time = clock.current, (clock.made, clock.now)
        clock.recording = clock.made
        try:
            graph = Graph(self._stream, work)
            return Replay(graph, clock.current, clock.made - clock.recording)
        finally:
            progress.watch, clock.recording, clock.current = watch, None, current
            (clock.made, clock.now), clock.drifts = time, []
