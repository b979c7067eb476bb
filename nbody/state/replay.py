"""Steps recorded as CUDA graphs and replayed: the launches of many steps cost as much as one."""

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, NamedTuple

from nbody.compute import SIMULATED, Graph
from nbody.particles import Particles
from nbody.state.device_moves import THREADS, Area, DeviceMoves, Packing, blocks, copy_potential
from nbody.state.device_progress import DeviceProgress
from nbody.state.frames import COLUMNS, Frame, StateFrames
from nbody.state.graph_time import DeviceClock
from nbody.state.moves import MoveKind
from nbody.state.outputs import Outputs
from nbody.state.staging import Staging

STEPS_PER_GRAPH = 16
"""The most steps without frames per graph: between two graphs the device is idle for 1.6 µs (one H200)."""


class Replay(NamedTuple):
    """A graph, the results that are current after it, and its steps."""

    graph: Graph
    current: Outputs
    steps: int


class Replays:
    """The graphs of one state.

    A graph depends on what is current when it begins, so there is one graph for each such beginning. A step with a long
    evaluation is not recorded: the host could not stop a graph between its launches.
    """

    def __init__(self, stream: Any, clock: DeviceClock, progress: DeviceProgress) -> None:
        self._stream, self._clock, self._progress = stream, clock, progress
        self._compiled: dict[Hashable, Outputs] = {}  # current after a step, by kernels and what is current before
        self._replays: dict[Hashable, Replay] = {}

    def repeat(self, make: Callable[[int], None], steps: int, key: Hashable) -> None:
        """Let ``make`` make a number of steps."""
        while steps:
            steps -= self.make(make, min(STEPS_PER_GRAPH, 1 << steps.bit_length() - 1), key, key)

    def make(self, make: Callable[[int], None], count: int, key: Hashable, kernels: Hashable) -> int:
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


class ReplayedFrames(StateFrames):
    """The repeated steps and the snapshots of a state on a GPU: many steps, and the packing of their frames, are one replay
    of a graph."""

    offered = COLUMNS

    def __init__(
        self,
        arrays: tuple[Any, Any, Any],
        stream: Any,
        clock: DeviceClock,
        moves: DeviceMoves,
        progress: DeviceProgress,
    ) -> None:
        super().__init__(clock)
        (self._body, _, self._acceleration), self._stream, self._moves = arrays, stream, moves
        self._replays = Replays(stream, clock, progress)
        self._staging: Staging | None = None  # made for the first snapshot

    def request(self, names: Collection[str], particles: Particles) -> None:
        super().request(names, particles)
        if "density" in self.columns:
            from nbody.diagnostics.gpu_density import DeviceDensity

            self._density = DeviceDensity(particles, self._body.dtype)

    def repeat(self, make: Callable[[int], None], steps: int, key: Hashable) -> None:
        if key is None:
            return super().repeat(make, steps, key)
        self._replays.repeat(make, steps, key)

    def snapshot(self) -> Frame:
        staging = self._staging_area()
        block = staging.next_block()
        buffer = staging.buffer_for(block, self._stream)
        self._moves.make([(MoveKind.PACK, Packing(buffer.areas[0], self._fill))])
        return staging.send(buffer, block, [self._clock.reached], self.slots, self._stream)[0]

    def snapshots(self, make: Callable[[Sequence[Any]], None], count: int, key: Hashable) -> list[Frame]:
        staging, clock = self._staging_area(), self._clock
        if staging.buffers == 1:  # the steps need not wait until the last frame is copied
            self.repeat(lambda _: make([None]), 1, key)
            return [self.snapshot()]
        block, (begun, _) = staging.next_block(), clock.reached
        buffer = staging.buffer_for(block, self._stream)
        packings = [Packing(area, self._fill) for area in buffer.areas[:count]]
        if key is None:
            make(packings)
        else:
            self._replays.make(lambda _: make(packings), 1, (key, count, buffer.number), key)
        every = (clock.reached[0] - begun) // count
        moments = [(begun + k * every, clock.time_at(begun + k * every)) for k in range(1, count + 1)]
        return staging.send(buffer, block, moments, self.slots, self._stream)

    def _staging_area(self) -> Staging:
        self._staging = self._staging or Staging(len(self._body), self._body.dtype, self.columns)
        return self._staging

    def _fill(self, area: Area) -> None:
        """Fill the columns of a frame, whose rows have just been packed. (The bodies may have moved on.)"""
        for name, column in zip(self.columns, area.columns, strict=True):
            if name == "potential":
                copy_potential[blocks(len(self._body)), THREADS, self._stream](self._acceleration, column)
            else:
                self._density.launch(area.rows[0], self._body, column, self._stream)
