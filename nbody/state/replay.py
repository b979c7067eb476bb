"""Steps recorded as CUDA graphs and replayed: the launches of many steps cost as much as one."""

from collections.abc import Callable, Collection, Hashable
from typing import Any, NamedTuple

from nbody.compute import SIMULATED, Graph
from nbody.diagnostics.structure import NEIGHBOURS
from nbody.particles import Particles
from nbody.state.device_moves import THREADS, Area, DeviceMoves, PendingMove, blocks, copy_potential
from nbody.state.frames import COLUMNS, Frame, StateFrames
from nbody.state.graph_time import DeviceClock
from nbody.state.marks import DeviceProgress
from nbody.state.outputs import Outputs
from nbody.state.staging import DeviceBlock, Staging

STEPS_PER_GRAPH = 16
"""The most steps without frames per graph: between two graphs the device is idle for 1.6 µs (one H200)."""


class Replay(NamedTuple):
    """A graph, the results that are current after it, the moves that are still to be made after it, and its steps."""

    graph: Graph
    current: Outputs
    waiting: tuple[PendingMove, ...]
    steps: int


class Replays:
    """The graphs of one state.

    A graph depends on what is current and on the collected moves when it begins, so there is one graph for each such
    beginning. A step with a long evaluation is not recorded: a graph has no marks, and could not be interrupted.
    """

    def __init__(self, stream: Any, clock: DeviceClock, moves: DeviceMoves, progress: DeviceProgress) -> None:
        self._stream, self._clock, self._moves, self._progress = stream, clock, moves, progress
        self._compiled: dict[Hashable, Outputs] = {}  # current after a step, by kernels and what is current before
        self._replays: dict[Hashable, Replay] = {}

    def repeat(self, step: Callable[[], None], count: int, key: Hashable) -> None:
        """Make ``count`` steps."""
        while count:
            count -= self.make(step, STEPS_PER_GRAPH if count >= STEPS_PER_GRAPH else 1, key, key)

    def make(self, step: Callable[[], None], count: int, key: Hashable, kernels: Hashable) -> int:
        """Make ``count`` steps by replaying their graph, which is recorded at its first use; or make a single step.

        A single step is replayed if it is not yet known what is current after it. It is made without a graph if steps are
        long, or if no step with this beginning has launched the same ``kernels`` before (the launch compiles them).

        Returns:
            The number of steps made.
        """
        clock, moves = self._clock, self._moves
        beginning = kernels, clock.current
        if SIMULATED or beginning not in self._compiled or not self._progress.can_be_recorded():
            step()
            if not moves.has_moved:
                moves.flush()
            self._compiled[beginning] = clock.current
            return 1
        if (kernels, self._compiled[beginning]) not in self._compiled:
            count = 1

        def steps() -> None:
            for _ in range(count):
                step()

        origin = clock.origin if clock.time_dependent else None
        name = key, count, clock.current, tuple(moves.waiting), origin
        replay = self._replays.get(name)
        if replay is None:
            replay = self._replays[name] = self._record(steps)
        clock.set_start(self._stream)
        replay.graph.replay()
        if replay.steps:
            clock.end_steps(replay.steps)
        clock.current, moves.waiting = replay.current, list(replay.waiting)
        return count

    def _record(self, work: Callable[[], None]) -> Replay:
        clock, moves, progress = self._clock, self._moves, self._progress
        watch, progress.watch = progress.watch, None  # recording launches nothing
        current, waiting, time = clock.current, list(moves.waiting), (clock.made, clock.now)
        clock.recording = clock.made
        try:
            graph = Graph(self._stream, work)
            steps = clock.made - clock.recording
        except BaseException:  # none of the moves was made
            moves.forget()
            clock.current, moves.waiting = current, waiting
            raise
        finally:
            progress.watch, clock.recording = watch, None
            (clock.made, clock.now), clock.drifts = time, []
        return Replay(graph, clock.current, tuple(moves.waiting), steps)


class ReplayedFrames(StateFrames):
    """The repeated steps and the snapshots of a state on a GPU: many steps, and the packing of their frames, are one replay
    of a graph."""

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
        self._replays = Replays(stream, clock, moves, progress)
        self._staging: Staging | None = None  # made for the first snapshot
        if len(self._body) > NEIGHBOURS:
            self.offered = COLUMNS

    def request(self, names: Collection[str], particles: Particles) -> None:
        super().request(names, particles)
        if "density" in self.columns:
            from nbody.diagnostics.gpu_density import DeviceDensity

            self._density = DeviceDensity(particles, self._body.dtype)

    def repeat(self, step: Callable[[], None], count: int, key: Hashable) -> None:
        if key is None:
            return super().repeat(step, count, key)
        self._replays.repeat(step, count, key)

    def snapshot(self) -> Frame:
        staging = self._staging_area()
        block = staging.next_block()
        buffer = staging.buffer_for(block, self._stream)
        self._pack(buffer, 1)
        return staging.send(buffer, block, [self._clock.reached], self.slots, self._stream)[0]

    def snapshots(self, step: Callable[[], None], count: int, key: Hashable) -> list[Frame]:
        staging, clock = self._staging_area(), self._clock
        if staging.buffers == 1:  # the steps need not wait until the last frame is copied
            self.repeat(step, 1, key)
            return [self.snapshot()]
        block, (begun, _) = staging.next_block(), clock.reached
        buffer = staging.buffer_for(block, self._stream)
        if key is None:
            self._pack(buffer, count, step)
        else:
            self._replays.make(lambda: self._pack(buffer, count, step), 1, (key, count, buffer.number), key)
        every = (clock.reached[0] - begun) // count
        moments = [(begun + k * every, clock.time_at(begun + k * every)) for k in range(1, count + 1)]
        return staging.send(buffer, block, moments, self.slots, self._stream)

    def _staging_area(self) -> Staging:
        self._staging = self._staging or Staging(len(self._body), self._body.dtype, self.columns)
        return self._staging

    def _pack(self, buffer: DeviceBlock, count: int, step: Callable[[], None] | None = None) -> None:
        """Pack ``count`` frames, each after a call of ``step`` if it is given."""
        for area in buffer.areas[:count]:
            if step is not None:
                step()
            self._moves.pack(area, self._fill)
        self._moves.flush()

    def _fill(self, area: Area) -> None:
        """Fill the columns of a frame, whose rows have just been packed. (The bodies may have moved on.)"""
        for name, column in zip(self.columns, area.columns, strict=True):
            if name == "potential":
                copy_potential[blocks(len(self._body)), THREADS, self._stream](self._acceleration, column)
            else:
                self._density.launch(area.rows[0], self._body, column, self._stream)
