"""The state on a GPU.

Rows of four numbers, so that a body is one 128-bit load in float32:

    body         (N, 4)   x   y   z   m
    velocity     (N, 4)   vx  vy  vz  0
    acceleration (N, 4)   ax  ay  az  φ      (φ: potential per unit mass, or the energy's q, when asked for)

In 2-D, z = vz = az = 0. Kicks, drifts and the packing of frames wait until a force evaluation, or the host, must see what
they come to, and are then made by one launch: :mod:`nbody.state.moves`.
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

from nbody.gpu import SIMULATED, Graph, cuda, mark, out_of_memory, wait_for
from nbody.particles import Particles
from nbody.state import Potential, Snapshot, State
from nbody.state.moves import BEND, DRIFT, KICK, MOST, NOTHING, PACK, THREADS, Area, Move, blocks, make_moves
from nbody.state.staging import Side, Staging
from nbody.state.sums import SUMS

MARK = 1 << 34
"""Interactions between two marks in the stream, at least: 5 ms of work on an H200. So a step of few bodies has none."""

AHEAD = 1
"""Marks that may still be under way when the next is set: the device always has the piece after it."""

STEPS_A_GRAPH = 16
"""Steps of which nothing is recorded that make a graph, if there are so many: between two graphs the device waits for 1.6 µs
(one H200)."""


class Replay(NamedTuple):
    """Recorded steps, the flags that they leave, and the moves that they leave to be made."""

    graph: Graph
    fresh: bool
    has_potential: Potential
    waiting: tuple[Move, ...]


class DeviceState(State):
    """Particles on the current CUDA device, in the layout above."""

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        super().__init__(particles, dtype)
        body, velocity = np.zeros((2, self.count, 4), dtype)
        body[:, : self.dimensions] = particles.position
        body[:, 3] = particles.mass
        velocity[:, : self.dimensions] = particles.velocity
        with out_of_memory(f"a state of {self.count} particles", 3 * body.nbytes):
            self.body = cuda.to_device(body)
            self.velocity = cuda.to_device(velocity)
            self.acceleration = cuda.to_device(np.zeros_like(body))
            self._no_area = Area(cuda.device_array((2, 0, 3), dtype), cuda.device_array((0, SUMS), np.float64))
        self.stream = cuda.stream()
        self._waiting: list[Move] = []
        self._has_moved = False
        self._area: Area | None = None  # for the frame that one of them packs
        self._compiled: dict[Hashable, tuple[bool, Potential]] = {}  # the flags that such a step left
        self._replays: dict[Hashable, Replay] = {}
        self._unmarked = 0
        self._marks: deque[tuple[Any, int]] = deque()
        self._staging: Staging | None = None  # made for the first snapshot

    def _kick(self, dt) -> None:
        self._note(KICK, dt)

    def _drift(self, dt) -> None:
        self._note(DRIFT, dt)

    def _drift_taylor(self, dt, half_dt2) -> None:
        self._note(DRIFT, dt)
        self._note(BEND, half_dt2)

    def _note(self, kind: int, factor, area: Area | None = None) -> None:
        """A move to be made, and the area that it packs into."""
        if len(self._waiting) == MOST or (area and self._area):
            self.settle()
        self._waiting.append(Move(kind, factor))
        self._area = area or self._area

    def settle(self) -> None:
        """Make the moves that were asked for. Who launches a kernel on the state's arrays begins with this."""
        moves, area = self._waiting, self._area or self._no_area
        self._waiting, self._area = [], None
        if moves:
            none = Move(NOTHING, self.dtype.type(0))
            kinds, factors = zip(*moves, *[none] * (MOST - len(moves)), strict=True)
            arrays = self.body, self.velocity, self.acceleration
            make_moves[blocks(self.count), THREADS, self.stream](*arrays, kinds, factors, *area)
            self._has_moved = True

    def repeat(self, step: Callable[[], None], count: int, key: Hashable) -> None:
        """See :meth:`State.repeat`: many steps are one replay of a CUDA graph."""
        while count:
            many = STEPS_A_GRAPH if count >= STEPS_A_GRAPH else 1
            count -= self._make(step, many, key, key)

    def _make(self, step: Callable[[], None], count: int, key: Hashable, kernels: Hashable) -> int:
        """Make so many steps by a replay of their graph, which is recorded the first time for the flags, and for the moves
        not made yet, that it begins with; or one, if the next would begin with flags of which the following is not known;
        or make one step, and no graph: if no step with such flags was made before that launched the same ``kernels`` (it
        compiles them), or if a step is long (a graph has no marks). Returns the number of steps made."""
        compiled = kernels, self.fresh, self.has_potential
        if SIMULATED or compiled not in self._compiled or self._is_long():
            step()
            if not self._has_moved:
                self.settle()
            self._compiled[compiled] = self.fresh, self.has_potential
            return 1
        if (kernels, *self._compiled[compiled]) not in self._compiled:
            count = 1

        def steps() -> None:
            for _ in range(count):
                step()

        begun = key, count, self.fresh, self.has_potential, tuple(self._waiting)
        replay = self._replays.get(begun)
        if replay is None:
            replay = self._replays[begun] = self._recorded(steps)
        replay.graph.replay()
        self.fresh, self.has_potential, self._waiting = replay.fresh, replay.has_potential, list(replay.waiting)
        return count

    def _is_long(self) -> bool:
        """True if a force evaluation is marked, and somebody looks at the marks."""
        return self.watch is not None and self.count**2 >= MARK

    def _recorded(self, work: Callable[[], None]) -> Replay:
        watch, self.watch = self.watch, None  # what is being recorded has not been asked for
        before = self.fresh, self.has_potential, list(self._waiting)
        try:
            graph = Graph(self.stream, work)
        except BaseException:
            self.fresh, self.has_potential, self._waiting = before  # nothing of it has been done
            self._area = None
            raise
        finally:
            self.watch = watch
        return Replay(graph, self.fresh, self.has_potential, tuple(self._waiting))

    def report(self, interactions: int) -> None:
        """See :meth:`State.report`. Without a watch nothing is marked, and nothing waited for."""
        if self.watch is None:
            return
        self.asked += interactions
        self._unmarked += interactions
        if self._unmarked >= MARK:
            self._mark()
            while len(self._marks) > AHEAD:
                self._pass_mark()

    def _mark(self) -> None:
        self._marks.append((mark(self.stream), self._unmarked))
        self._unmarked = 0

    def _pass_mark(self) -> None:
        """Wait for the oldest mark."""
        event, interactions = self._marks.popleft()
        wait_for(event, lambda: self._done(0))
        self._done(interactions)

    def snapshot(self) -> Snapshot:
        """See :meth:`State.snapshot`."""
        staging = self._frames_leave_by()
        block = staging.next_block()
        side = staging.side_for(block, self.stream)
        self._pack(side, 1)
        return staging.send(side, block, 1, self.stream)[0]

    def snapshots(self, step: Callable[[], None], count: int, key: Hashable) -> list[Snapshot]:
        """See :meth:`State.snapshots`: the steps, and the packing of their frames, are one replay."""
        staging = self._frames_leave_by()
        block = staging.next_block()
        side = staging.side_for(block, self.stream)
        self._make(lambda: self._pack(side, count, step), 1, (key, count, side.number), key)
        return staging.send(side, block, count, self.stream)

    def _frames_leave_by(self) -> Staging:
        self._staging = self._staging or Staging(self.count, self.dtype)
        return self._staging

    def _pack(self, side: Side, count: int, step: Callable[[], None] | None = None) -> None:
        """Pack so many frames, each after a step if there is one to make."""
        for area in side.areas[:count]:
            if step is not None:
                step()
            self._note(PACK, self.dtype.type(0), area)
        self.settle()

    def forces(self) -> tuple[np.ndarray, np.ndarray]:
        """See :meth:`State.forces`."""
        self.synchronize()
        rows = self.acceleration.copy_to_host()
        return rows[:, : self.dimensions].copy(), rows[:, 3].copy()

    def arrays(self) -> dict[str, np.ndarray]:
        """See :meth:`State.arrays`."""
        self.settle()
        self.synchronize()  # a copy would wait as well, but deaf to signals
        return {
            "body": self.body.copy_to_host(),
            "velocity": self.velocity.copy_to_host(),
            "acceleration": self.acceleration.copy_to_host(),
            "fresh": np.array([self.fresh, self.has_potential], np.uint8),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """See :meth:`State.restore`."""
        self._waiting, self._area = [], None
        for name in ("body", "velocity", "acceleration"):
            getattr(self, name).copy_to_device(arrays[name])
        fresh, potential = arrays["fresh"]
        self.fresh, self.has_potential = bool(fresh), Potential(int(potential))

    def synchronize(self, soon: bool = False) -> None:
        """See :meth:`State.synchronize`. Frames on their way to the host are not waited for."""
        self._mark()
        if soon:  # asked again and again, runs of short steps made 5526 steps/s, and 5629 so (H200, N = 20480)
            self._marks[-1][0].synchronize()
        while self._marks:
            self._pass_mark()
