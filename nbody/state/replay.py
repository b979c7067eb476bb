"""Steps recorded as CUDA graphs and replayed: the launches of many steps cost as much as one."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from nbody.gpu import SIMULATED, Graph
from nbody.state.marks import MARK
from nbody.state.moves import PendingMove
from nbody.state.want import Want

if TYPE_CHECKING:
    from nbody.state.device import DeviceState

STEPS_PER_GRAPH = 16
"""The most steps without frames per graph: between two graphs the device is idle for 1.6 µs (one H200)."""


class Replay(NamedTuple):
    """A graph, the results that are current after it, the moves that are still to be made after it, and its steps."""

    graph: Graph
    current: Want
    waiting: tuple[PendingMove, ...]
    steps: int


class Replays:
    """The graphs of one state.

    A graph depends on what is current and on the collected moves when it begins, so there is one graph for each such
    beginning. A step with a long evaluation is not recorded: a graph has no marks, and could not be interrupted.
    """

    def __init__(self) -> None:
        self._compiled: dict[Hashable, Want] = {}  # current after a step, by kernels and what is current before
        self._replays: dict[Hashable, Replay] = {}

    def repeat(self, state: "DeviceState", step: Callable[[], None], count: int, key: Hashable) -> None:
        """Make ``count`` steps."""
        while count:
            count -= self.make(state, step, STEPS_PER_GRAPH if count >= STEPS_PER_GRAPH else 1, key, key)

    def make(self, state: "DeviceState", step: Callable[[], None], count: int, key: Hashable, kernels: Hashable) -> int:
        """Make ``count`` steps by replaying their graph, which is recorded at its first use; or make a single step.

        A single step is replayed if it is not yet known what is current after it. It is made without a graph if steps are
        long, or if no step with this beginning has launched the same ``kernels`` before (the launch compiles them).

        Returns:
            The number of steps made.
        """
        beginning = kernels, state.current
        if SIMULATED or state.ranks or beginning not in self._compiled or _is_long(state):
            step()
            if not state.has_moved:
                state.settle()
            self._compiled[beginning] = state.current
            return 1
        if (kernels, self._compiled[beginning]) not in self._compiled:
            count = 1

        def steps() -> None:
            for _ in range(count):
                step()

        origin = state.origin if state.time_dependent else None
        name = key, count, state.current, tuple(state.waiting), origin
        replay = self._replays.get(name)
        if replay is None:
            replay = self._replays[name] = self._record(state, steps)
        state.set_clock()
        replay.graph.replay()
        if replay.steps:
            state.end_steps(replay.steps)
        state.current, state.waiting = replay.current, list(replay.waiting)
        return count

    def _record(self, state: "DeviceState", work: Callable[[], None]) -> Replay:
        watch, state.watch = state.watch, None  # recording launches nothing
        current, waiting, time = state.current, list(state.waiting), (state.made, state.now)
        state.recording = state.made
        try:
            graph = Graph(state.stream, work)
            steps = state.made - state.recording
        except BaseException:  # none of the moves was made
            state.forget_moves()
            state.current, state.waiting = current, waiting
            raise
        finally:
            state.watch, state.recording = watch, None
            (state.made, state.now), state.drifts = time, []
        return Replay(graph, state.current, tuple(state.waiting), steps)


def _is_long(state: "DeviceState") -> bool:
    """True if a force evaluation is marked, and somebody watches the marks."""
    return state.watch is not None and state.pairs >= MARK
