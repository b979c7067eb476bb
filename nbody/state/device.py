"""The state on a GPU, and the position-update kernels: the third kernel of the lecture.

Rows of four numbers, so that a body is one 128-bit load in float32:

    body         (N, 4)   x   y   z   m
    velocity     (N, 4)   vx  vy  vz  0
    acceleration (N, 4)   ax  ay  az  φ      (φ: potential per unit mass, or the energy's q, when asked for)

In 2-D, z = vz = az = 0. A kernel here touches each number once, so it is bound by memory traffic and launch time, not
by arithmetic: 20480 bodies are 0.3 MB, which an H200 moves in less than a launch takes.
"""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

from nbody.gpu import SIMULATED, Graph, cuda, mark, out_of_memory, wait_for
from nbody.particles import Particles
from nbody.state import Potential, Snapshot, State
from nbody.state.staging import Side, Staging

THREADS = 256

MARK = 1 << 34
"""Interactions between two marks in the stream, at least: 5 ms of work on an H200. So a step of few bodies has none."""

AHEAD = 1
"""Marks that may still be under way when the next is set: the device always has the piece after it."""


@cuda.jit
def _add_rows(target, rate, factor):
    """target[:, :3] += rate[:, :3] · factor: a kick (v += a dt) or a drift (x += v dt)."""
    i = cuda.grid(1)
    if i < target.shape[0]:
        for k in range(3):
            target[i, k] += rate[i, k] * factor


@cuda.jit
def _add_taylor(body, velocity, acceleration, dt, half_dt2):
    """x += v dt + a dt²/2."""
    i = cuda.grid(1)
    if i < body.shape[0]:
        for k in range(3):
            body[i, k] = body[i, k] + velocity[i, k] * dt + acceleration[i, k] * half_dt2


class Replay(NamedTuple):
    """A recorded step, and the flags that it leaves."""

    graph: Graph
    fresh: bool
    has_potential: Potential


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
        self.stream = cuda.stream()
        self._launch = (-(-self.count // THREADS), THREADS, self.stream)
        self._replays: dict[Hashable, Replay | None] = {}  # None: made once, not recorded yet
        self._unmarked = 0
        self._marks: deque[tuple[Any, int]] = deque()
        self._staging: Staging | None = None  # made for the first snapshot

    def _kick(self, dt) -> None:
        _add_rows[self._launch](self.velocity, self.acceleration, dt)

    def _drift(self, dt) -> None:
        _add_rows[self._launch](self.body, self.velocity, dt)

    def _drift_taylor(self, dt, half_dt2) -> None:
        _add_taylor[self._launch](self.body, self.velocity, self.acceleration, dt, half_dt2)

    def repeat(self, step: Callable[[], None], count: int, key: Hashable) -> None:
        """See :meth:`State.repeat`: from the second time on a step is one replay of a CUDA graph, for each state of the
        flags that it may begin with. (The first time compiles its kernels.) A long step is not: a graph has no marks."""
        for _ in range(count):
            begun = key, self.fresh, self.has_potential
            if SIMULATED or begun not in self._replays or self._is_long():
                step()
                self._replays.setdefault(begun, None)
                continue
            replay = self._replays[begun]
            if replay is None:
                replay = self._replays[begun] = self._recorded(step)
            replay.graph.replay()
            self.fresh, self.has_potential = replay.fresh, replay.has_potential

    def _is_long(self) -> bool:
        """True if a force evaluation is marked, and somebody looks at the marks."""
        return self.watch is not None and self.count**2 >= MARK

    def _recorded(self, step: Callable[[], None]) -> Replay:
        watch, self.watch = self.watch, None  # what is being recorded has not been asked for
        try:
            graph = Graph(self.stream, step)
        finally:
            self.watch = watch
        return Replay(graph, self.fresh, self.has_potential)

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
        self.repeat(lambda: self._pack(side, count, step), 1, (key, count, side.number))
        return staging.send(side, block, count, self.stream)

    def _frames_leave_by(self) -> Staging:
        self._staging = self._staging or Staging(self.count, self.dtype)
        return self._staging

    def _pack(self, side: Side, count: int, step: Callable[[], None] | None = None) -> None:
        """Pack so many frames, each after a step if there is one to make."""
        for k in range(count):
            if step is not None:
                step()
            side.pack(k, self.stream, self.body, self.velocity, self.acceleration)

    def forces(self) -> tuple[np.ndarray, np.ndarray]:
        """See :meth:`State.forces`."""
        self.synchronize()
        rows = self.acceleration.copy_to_host()
        return rows[:, : self.dimensions].copy(), rows[:, 3].copy()

    def arrays(self) -> dict[str, np.ndarray]:
        """See :meth:`State.arrays`."""
        self.synchronize()  # a copy would wait as well, but deaf to signals
        return {
            "body": self.body.copy_to_host(),
            "velocity": self.velocity.copy_to_host(),
            "acceleration": self.acceleration.copy_to_host(),
            "fresh": np.array([self.fresh, self.has_potential], np.uint8),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """See :meth:`State.restore`."""
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
