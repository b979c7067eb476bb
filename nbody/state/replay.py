"""Steps recorded as CUDA graphs and replayed: the launches of many steps cost as much as one."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from nbody.gpu import SIMULATED, Graph
from nbody.state.marks import MARK
from nbody.state.moves import Move
from nbody.state.want import Want

if TYPE_CHECKING:
    from nbody.state.device import DeviceState

STEPS_PER_GRAPH = 16
"""Steps without frames in one graph, if there are enough: between two graphs the device waits for 1.6 µs (one H200)."""


class Replay(NamedTuple):
    """A graph, what is current after it, and the moves that it leaves to be made."""

    graph: Graph
    current: Want
    waiting: tuple[Move, ...]


class Replays:
    """The graphs of one state.

    A graph depends on what is current and on the moves that wait when it begins, so there is one for each such
    beginning. A step whose evaluation is long is not recorded: a graph has no marks, and could not be interrupted.
    """

    def __init__(self) -> None:
        self._compiled: dict[Hashable, Want] = {}  # what was current after a step, by kernels and what was before it
        self._replays: dict[Hashable, Replay] = {}

    def repeat(self, state: "DeviceState", step: Callable[[], None], count: int, key: Hashable) -> None:
        """Make ``count`` steps."""
        while count:
            count -= self.make(state, step, STEPS_PER_GRAPH if count >= STEPS_PER_GRAPH else 1, key, key)

    def make(self, state: "DeviceState", step: Callable[[], None], count: int, key: Hashable, kernels: Hashable) -> int:
        """Make ``count`` steps by replaying their graph, which is recorded when it is first needed; or a single one.

        A single step is replayed if it is not yet known what the step after it begins with. It is made without a graph if
        no step with such a beginning has launched the same ``kernels`` before, which compiles them, or if a step is long.

        Returns:
            The number of steps made.
        """
        beginning = kernels, state.current
        if SIMULATED or beginning not in self._compiled or _is_long(state):
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

        name = key, count, state.current, tuple(state.waiting)
        replay = self._replays.get(name)
        if replay is None:
            replay = self._replays[name] = self._record(state, steps)
        replay.graph.replay()
        state.current, state.waiting = replay.current, list(replay.waiting)
        return count

    def _record(self, state: "DeviceState", work: Callable[[], None]) -> Replay:
        watch, state.watch = state.watch, None  # what is recorded has not been launched
        current, waiting = state.current, list(state.waiting)
        try:
            graph = Graph(state.stream, work)
        except BaseException:  # nothing of it has been done
            state.forget_moves()
            state.current, state.waiting = current, waiting
            raise
        finally:
            state.watch = watch
        return Replay(graph, state.current, tuple(state.waiting))


def _is_long(state: "DeviceState") -> bool:
    """True if a force evaluation is marked, and somebody watches the marks."""
    return state.watch is not None and state.count**2 >= MARK
