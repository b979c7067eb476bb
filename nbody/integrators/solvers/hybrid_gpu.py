""":mod:`.hybrid` on a GPU: kicks by an engine's forces, orbits, the search for encounters, and the motion of bodies that
meet in a step (:mod:`.encounters_gpu`). The host forms their groups (:mod:`.groups`), and decides if a step is made again.

The engine's forces have all pairs. Those that move together in a step are kicked back by their attraction: this loses the
digits by which it exceeds that of all others.
"""

from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import SIMULATED, cuda
from nbody.integrators.collisions.span import Span
from nbody.integrators.integrator import Motion
from nbody.integrators.solvers import encounters_gpu, hybrid_kernels
from nbody.integrators.solvers.encounters import falls
from nbody.integrators.solvers.encounters_gpu import LANES, STAR_THREADS
from nbody.integrators.solvers.groups import Groups, Kinds
from nbody.integrators.solvers.hybrid_kernels import SUMS, THREADS
from nbody.state import Outputs

FIRST_ROOM = 256
"""Pairs for which there is room at first: all that a copy of 2 KB brings to the host."""


class Near(NamedTuple):
    """What a search has found.

    Attributes:
        pairs: sorted numbers i N + j of the pairs i > j that are near each other, with (i, i) for a body near the star.
        soon: those that will probably be so at the end of the next step.
        falling: an orbit touches the star.
    """

    pairs: np.ndarray
    soon: np.ndarray
    falling: bool


class DeviceHybrid:
    """The steps of one state.

    Args:
        size: (N,) the critical distances, in units of those from the star.
        eta: the accuracy of encounters.
    """

    def __init__(self, motion: Motion, size: np.ndarray, eta: float) -> None:
        state: Any = motion.state
        self.state, self._engine, count = state, motion.engine, state.count
        self._mass = self.state.values("mass")[0].astype(np.float64)
        self._m, self._eta = motion.engine.gravity.G * self._mass, eta
        self._kernels, self._encounters, self._stream = hybrid_kernels.kernels(), encounters_gpu.kernels(), state.stream
        self._sizes, self._radius = cuda.to_device(size), cuda.to_device(np.zeros(count))
        self._kept, self._begin, self._ahead = (cuda.device_array((k, count, 4), np.float64) for k in (3, 2, 2))
        self._sums, self._others = (cuda.device_array((SUMS, 6), np.float64) for _ in range(2))
        self._float_rows = cuda.device_array((count, 8), np.float32)
        self._groups = Groups(self._mass, self._stream)
        self._make_room(FIRST_ROOM)
        if not SIMULATED:
            compute.compile_together(self._rehearse)

    def _make_room(self, pairs: int) -> None:
        self._close, self._near = (cuda.device_array((pairs + 1, 2), np.int32) for _ in range(2))
        self._found = cuda.pinned_array((pairs + 1, 2), np.int32)

    # --- Launches ---

    def _launch(self, name: str, *arguments: Any, threads: int = 0) -> None:
        blocks = -(-(threads or self.state.count) // THREADS)
        getattr(self._kernels, name)[blocks, THREADS, self._stream](*arguments)

    def _launch_groups(self, name: str, *arguments: Any, threads: int = LANES) -> None:
        getattr(self._encounters, name)[self._groups.room, threads, self._stream](self._groups.lists, *arguments)

    @property
    def _moving(self) -> tuple[Any, Any]:
        return self.state.body, self.state.velocity

    @property
    def _changing(self) -> tuple[Any, ...]:
        """What a step that is made again begins with."""
        return *self._moving, self.state.acceleration, self.state.next_step

    @property
    def _columns(self) -> tuple[Any, Any]:
        return self.state.map_position, self.state.map_velocity

    def _kick(self, h: float, sums: Any) -> None:
        self._launch("kick", *self._moving, self.state.acceleration, h, sums, threads=SUMS * THREADS)

    def _kick_apart(self, h: float, kinds: Kinds) -> None:
        """Kick all bodies, those that meet without each other."""
        if kinds.any:
            G = self._m[0] / self._mass[0]
            self._launch_groups("apart", h, G, *self._moving, self.state.acceleration)
        self._kick(h, self._sums)

    def _evaluate(self) -> None:
        """The accelerations of planets by each other."""
        self.state.clock.current = Outputs.NOTHING
        self._engine.evaluate(self.state)

    def _move(self, h: float, watched: bool, kinds: Kinds) -> None:
        """The Kepler part of a step, with half a jump before and after."""
        groups, star, half = self._groups, self._mass[0], 0.5 * h
        body, velocity = self._moving
        self._launch("drift", body, velocity, h, self._m[0], star, self._sums, self._begin)
        if kinds.any:
            if kinds.with_star:
                self._launch_groups("correct", half, star, self._sums, body, self._begin[0], self._begin[1])
            moving, watching = (body, velocity, self.state.next_step), (self._radius, watched, groups.outcome)
            how = h, self._eta, self._begin, moving, (star, self._m[0]), (self._sums, self._others), watching
            for with_star in range(1 + kinds.with_star):
                self._launch_groups("move", with_star, *how)
                if kinds.large:
                    self._launch_groups("move_large", with_star, *how, groups.memory)
                if kinds.with_star and not with_star:
                    self._kick(0.0, self._others)
            if kinds.with_star:
                ends = self._begin, body, velocity, (star, self._m[0]), (self._sums, self._others)
                self._launch_groups("pass_star", h, *ends, threads=STAR_THREADS)
        self._kick(0.0, self._sums)
        self._launch("jump", body, h, star, self._sums)
        if kinds.with_star:
            self._launch_groups("correct", half, star, self._sums, body, body, velocity)

    def _search(self, dt: float) -> None:
        """Look which bodies are near each other, and near the star, and which will be after a step."""
        rows, ahead, close, near, blocks = self._float_rows, self._ahead, self._close, self._near, self._blocks
        sizes = self._sizes, self._radius, self._m[0]
        self._launch("prepare", *self._moving, self.state.acceleration, *sizes, dt, rows, ahead, close, near)
        self._kernels.search[(blocks, blocks), THREADS, self._stream](rows, close)
        self._launch("look", close, *self._moving, ahead, *sizes, abs(dt), near)
        near.copy_to_host(self._found, stream=self._stream)

    @property
    def _blocks(self) -> int:
        return -(-self.state.count // THREADS)

    def _begin_step(self, dt: float, watched: bool, kinds: Kinds) -> None:
        """All until the next forces."""
        self._launch("keep", *self._changing, self._kept, *self._columns, dt)
        if kinds.any:
            self._groups.send()
        self._kick_apart(0.5 * dt, kinds)
        self._move(dt, watched, kinds)

    def _end_step(self, dt: float, kinds: Kinds) -> None:
        self._kick_apart(0.5 * dt, kinds)
        self._search(dt)
        if kinds.any:
            self._groups.fetch()

    def _restore(self) -> None:
        self._launch("restore", *self._changing, self._kept, self.state.map_position)

    def _rehearse(self) -> None:
        """Call the kernels of all steps but those with large groups."""
        self._begin_step(1.0, False, Kinds(True, True, False))
        self._end_step(1.0, Kinds(True, True, False))
        self._restore()
        self._load()
        self._store()

    def _load(self) -> None:
        self._launch("load", *self._columns, *self._moving)

    def _store(self) -> None:
        self._kick(0.0, self._sums)
        self._launch("store", *self._columns, *self._moving, self._sums, self._mass[0], self._mass.sum())

    # --- Steps ---

    def make(self, dt: float, steps: int, radius: np.ndarray) -> tuple[int, bool, Span | None]:
        """Make steps, until bodies of these radii may touch in one. Returns their number, False if an encounter could not be
        computed, and the step of the contact, which begins at the time 0."""
        self._radius.copy_to_device(radius)
        self._load()
        self._evaluate()
        self._search(dt)
        now, done, good, span = self._look(dt), 0, True, None
        while done < steps and good and span is None:
            after = self._step(dt, now, bool(radius.any()))
            done, good = done + 1, not self._groups.failed
            if radius.any() and (self._groups.touching or now.falling or after.falling):
                span = self._contact(radius, dt)
            now = after
        self._store()
        self.state.invalidate()
        self._stream.synchronize()
        return done, good, span

    def _step(self, dt: float, now: Near, watched: bool) -> Near:
        """Make a step; if other bodies meet at its end than was expected, again from its beginning, without guesses then:
        ``wanted`` are the pairs that have been found at an end of it. A guess ends no run."""
        groups, attempt, wanted = self._groups, np.union1d(now.pairs, now.soon), now.pairs
        groups.form(attempt)
        while True:
            kinds = groups.kinds
            key = kinds, groups.room, len(self._near), dt, watched
            self.state.moves.repeats.replay(lambda _, kinds=kinds: self._make_step(dt, watched, kinds), 1, key, key)
            after = self._look(dt)
            if groups.has_room():
                before, attempt = attempt, wanted if groups.failed else np.union1d(wanted, after.pairs)
                if np.array_equal(attempt, before) or not groups.form(attempt):
                    return after
                wanted = attempt
            else:
                groups.form(attempt)
            self._restore()

    def _make_step(self, dt: float, watched: bool, kinds: Kinds) -> None:
        self._begin_step(dt, watched, kinds)
        self._evaluate()
        self._end_step(dt, kinds)

    def _look(self, dt: float) -> Near:
        """What the last search has found."""
        while True:
            self._stream.synchronize()
            count, most = int(self._found[0, 0]), int(self._found[0].max())
            if most < len(self._found):
                break
            self._make_room(2 * most)
            self._search(dt)
        i, j = self._found[1 : count + 1].T
        pairs = i.astype(np.int64) * self.state.count + abs(j)
        return Near(np.sort(pairs[j > 0]), pairs[j < 0], bool((j == 0).any()))

    # --- Contacts ---

    def _contact(self, radius: np.ndarray, dt: float) -> Span | None:
        """The step, if two bodies may touch in it."""
        begin, end = (
            [np.ascontiguousarray(rows.copy_to_host()[:, :3].T) for rows in each]
            for each in ((self._kept[0], self._kept[1]), self._moving)
        )
        begin[0][:, 0] = 0.0  # there is the centre of mass
        met = self._groups.encounter(radius, dt)
        if not (len(met.times) or _fallen(*begin, *end, self._m, dt, radius)):
            return None
        centre, drift = (column[0].copy_to_host() for column in self._columns)
        x0, v0 = self._inertial(begin, centre - dt * drift, drift)
        x1, v1 = self._inertial(end, centre, drift)
        return Span(x0, v0, x1, v1, 0.0, dt, True, met)

    def _inertial(self, rows: list[np.ndarray], centre: np.ndarray, drift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities, (N, D), of the map's coordinates, and those of the centre of mass."""
        (Q, V), mass, axes = rows, self._mass, slice(self.state.dimensions)
        x, v = Q.T + (centre - Q @ mass / mass.sum()), V.T + drift
        v[0] -= V @ mass / mass[0]
        return x[:, axes], v[:, axes]


@compute.kernel("cpu")
def _fallen(begin_Q, begin_V, Q, V, m, h, radius):
    return falls(begin_Q, begin_V, Q, V, m, h, radius)
