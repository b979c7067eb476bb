""":mod:`.hybrid` on a GPU: kicks by an engine's forces, orbits and the search for encounters on the card, and the few bodies
that meet in a step on the host, by the functions of :mod:`.encounters`.

The engine's forces have all pairs. Those that move together in a step are few, and their velocities are kicked again on the
host without each other: this loses the digits by which their attraction exceeds that of all others.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.compute.compiling.cpu_inner import inner
from nbody.integrators.collisions.span import Encounter, Span
from nbody.integrators.integrator import Motion
from nbody.integrators.solvers.encounters import Contacts, Motions, falls, flow, jump, kick, move
from nbody.integrators.solvers.hybrid_kernels import ROW, SUMS, THREADS, kernels
from nbody.integrators.solvers.near import StarBodies, Survey, gather, no_company, no_survey
from nbody.integrators.solvers.systems.arrays import copy
from nbody.integrators.solvers.systems.chunks import divided
from nbody.state import Outputs

PER_CHUNK = 32
"""Bodies that a core moves before it looks for more: some 0.2 ms."""

FIRST_ROOM = 256
"""Pairs for which there is room at first: all that a copy of 2 KB brings to the host."""


NO_CONTACTS = Contacts(np.empty((0, 2)), np.empty((0, 4, 3, 0)), np.empty((0, 0), np.bool_), np.empty(0, np.int64))


class NearBodies(NamedTuple):
    """What a search has found: the pairs i > j that are near each other, the bodies near the star, and whether an orbit
    touches the star."""

    pairs: frozenset[tuple[int, int]]
    hurried: frozenset[int]
    falling: bool


def all_contacts(parts: list[Contacts]) -> Contacts:
    """Contacts of several calls."""
    return Contacts(*map(np.concatenate, zip(*parts, strict=True)))


class FewBodies:
    """The bodies that meet in a step, as a system of few bodies in which they have numbers of their own.

    Attributes:
        ids: (K,) the bodies; number k is ``ids[k - 1]``, 0 the star.
        company: a :class:`.Company`.
        found: all that is in it.
    """

    def __init__(self, found: NearBodies, bodies: StarBodies) -> None:
        self.ids = np.array(sorted({i for pair in found.pairs for i in pair} | found.hurried), np.int64)
        self.bodies = part_of(bodies, self.ids)
        pairs = 1 + np.searchsorted(self.ids, np.array(sorted(found.pairs), np.int64).reshape(-1, 2))
        hurried = np.isin(self.ids, list(found.hurried))
        self.company = company = _joined(self.bodies.m, pairs, np.concatenate([[False], hurried]))
        self.pairs = self.all_ids[company.pairs[: company.counts[0]]]
        self.found = NearBodies(
            frozenset(map(tuple, self.pairs.tolist())), frozenset(self.all_ids[company.hurried].tolist()), False
        )

    @property
    def all_ids(self) -> np.ndarray:
        """(K + 1,) with the star."""
        return np.concatenate([[0], self.ids])


def part_of(bodies: StarBodies, ids: np.ndarray) -> StarBodies:
    """The star and some others."""
    rows = np.concatenate([[0], ids])
    return StarBodies(bodies.m[rows], bodies.size[rows], bodies.radius[rows], bodies.half)


class HostRows(NamedTuple):
    """Some bodies on the host, with the star before them: (3, K + 1), and the first steps of encounters."""

    Q: np.ndarray
    V: np.ndarray
    a: np.ndarray
    guess: np.ndarray


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
        self._m, self._size, self._eta = motion.engine.gravity.G * self._mass, size, eta
        self._kernels, self._stream = kernels(), state.stream
        self._sizes, self._radius = cuda.to_device(size), cuda.to_device(np.zeros(count))
        self._kept, self._sums = cuda.device_array((3, count, 4), np.float64), cuda.device_array((SUMS, 6), np.float64)
        self._float_rows = cuda.device_array((count, 8), np.float32)
        self._rows = cuda.device_array((FIRST_ROOM, ROW), np.float64)
        self._make_room(FIRST_ROOM)

    def _make_room(self, pairs: int) -> None:
        self._close, self._near = (cuda.device_array((pairs + 1, 2), np.int32) for _ in range(2))

    def _rows_of(self, ids: np.ndarray) -> Any:
        """Rows on the card for these bodies."""
        if len(ids) > len(self._rows):
            self._rows = cuda.device_array((2 * len(ids), ROW), np.float64)
        return self._rows[: len(ids)]

    # --- Launches ---

    def _launch(self, name: str, *arguments: Any, threads: int = 0) -> None:
        blocks = -(-(threads or self.state.count) // THREADS)
        getattr(self._kernels, name)[blocks, THREADS, self._stream](*arguments)

    @property
    def _moving(self) -> tuple[Any, Any]:
        return self.state.body, self.state.velocity

    @property
    def _columns(self) -> tuple[Any, Any]:
        return self.state.map_position, self.state.map_velocity

    def _kick(self, h: float) -> None:
        self._launch("kick", *self._moving, self.state.acceleration, h, self._sums, threads=SUMS * THREADS)

    def _momentum(self) -> np.ndarray:
        """G times the planets' momentum, (3,)."""
        self._kick(0.0)
        sums = self._sums.copy_to_host(stream=self._stream)
        self._stream.synchronize()
        found: np.ndarray = self._m[0] / self._mass[0] * sums[:, 3:].sum(axis=0)
        return found

    def _fetch(self, ids: np.ndarray) -> HostRows:
        """Bodies from the card."""
        rows = np.zeros((len(ids), ROW))
        rows[:, 0] = ids
        part = self._rows_of(ids)
        part.copy_to_device(rows, stream=self._stream)
        arrays = *self._moving, self.state.acceleration, self.state.next_step
        self._launch("gather", part, len(ids), *arrays, threads=len(ids))
        part.copy_to_host(rows, stream=self._stream)
        self._stream.synchronize()
        with_star = np.concatenate([np.zeros((1, ROW)), rows]).T
        Q, V, a = (np.ascontiguousarray(with_star[k : k + 3]) for k in (1, 4, 7))
        return HostRows(Q, V, a, with_star[10].copy())

    def _send(self, ids: np.ndarray, few: HostRows) -> None:
        """Bodies to the card."""
        rows = np.zeros((len(ids), ROW))
        rows[:, 0], rows[:, 1:4], rows[:, 4:7], rows[:, 10] = ids, few.Q[:, 1:].T, few.V[:, 1:].T, few.guess[1:]
        part = self._rows_of(ids)
        part.copy_to_device(rows, stream=self._stream)
        self._launch("scatter", part, len(ids), *self._moving, self.state.next_step, threads=len(ids))

    # --- Steps ---

    def make(self, dt: float, steps: int, radius: np.ndarray) -> tuple[int, bool, Span | None]:
        """Make steps, until bodies of these radii may touch in one. Returns their number, False if an encounter could not be
        computed, and the step of the contact, which begins at the time 0."""
        bodies, state = StarBodies(self._m, self._size, radius, 0.5 * abs(dt)), self.state
        self._radius.copy_to_device(radius)
        self._launch("load", *self._columns, *self._moving)
        self._evaluate()
        now, done, good, span = self._look(bodies), 0, True, None
        while done < steps and good and span is None:
            self._launch("keep", *self._moving, state.acceleration, self._kept, *self._columns, dt)
            after, good, met, contacts = self._step(dt, bodies, now)
            done += 1
            if radius.any() and (len(contacts.times) or now.falling or after.falling):
                span = self._contact(bodies, dt, met, contacts)
            now = after
        self._kick(0.0)
        self._launch("store", *self._columns, *self._moving, self._sums, self._mass[0], self._mass.sum())
        state.invalidate()
        self._stream.synchronize()
        return done, good, span

    def _step(self, dt: float, bodies: StarBodies, now: NearBodies) -> tuple[NearBodies, bool, FewBodies, Contacts]:
        """Make a step; if bodies meet only at its end, again from its beginning."""
        found = now
        while True:
            met = FewBodies(found, bodies)
            good, contacts = self._move(dt, met, self._kick_apart(0.5 * dt, met))
            self._evaluate()
            self._kick_apart(0.5 * dt, met)
            after = self._look(bodies)
            if not good or (after.pairs <= met.found.pairs and after.hurried <= met.found.hurried):
                return after, good, met, contacts
            found = NearBodies(met.found.pairs | after.pairs, met.found.hurried | after.hurried, False)
            for column, kept in zip((*self._moving, self.state.acceleration), self._kept_arrays(), strict=True):
                column.copy_to_device(kept, stream=self._stream)

    def _evaluate(self) -> None:
        """The accelerations of planets by each other."""
        self.state.clock.current = Outputs.NOTHING
        self._engine.evaluate(self.state)

    @staticmethod
    def _divided(
        free: bool, drift: np.ndarray, Q: np.ndarray, V: np.ndarray, met: FewBodies, motions: Motions
    ) -> tuple[bool, Contacts]:
        """:func:`.move`, on all cores if there are many groups."""
        parts = -(-Q.shape[1] // PER_CHUNK)
        none = Contacts(
            np.empty((0, 2)), np.empty((0, 4, *Q.shape)), np.empty((0, Q.shape[1]), np.bool_), np.empty(0, np.int64)
        )
        found = divided(_moved, parts, free, drift, Q, V, met.bodies, motions, met.company, none)
        return all(good for good, _ in found), all_contacts([contacts for _, contacts in found])

    def _kept_arrays(self) -> Iterator[Any]:
        return (self._kept[k] for k in range(3))

    def _kick_apart(self, h: float, met: FewBodies) -> HostRows | None:
        """Kick all bodies, those that meet without each other; returns these."""
        few = self._fetch(met.ids) if len(met.ids) else None
        self._kick(h)
        if few:
            _kicked(few.Q, few.V, few.a, met.bodies.m, h, met.company)
            self._send(met.ids, few)
        return few

    def _move(self, h: float, met: FewBodies, few: HostRows | None) -> tuple[bool, Contacts]:
        """The Kepler part of a step, with half a jump before and after."""
        star, company, good, contacts = self._mass[0], met.company, True, NO_CONTACTS
        begin = self._momentum() if few else None
        self._launch("drift", *self._moving, h, self._m[0], star, self._sums)
        if few:
            Q, V, _, guess = few
            drift, motions = _begin_moves(Q, V, met.bodies, h, company, guess, self._eta, begin)
            good, contacts = self._divided(False, drift, Q, V, met, motions)
            if met.found.hurried:
                self._send(met.ids, few._replace(V=np.where(company.hurried, 0.0, V)))  # for the momentum of the others
                drift += 0.5 * self._momentum() / self._m[0]
                fine, of_hurried = self._divided(True, drift, Q, V, met, motions)
                good, contacts = good and fine, all_contacts([contacts, of_hurried])
            self._send(met.ids, few)
        self._kick(0.0)
        self._launch("jump", self.state.body, h, star, self._sums)
        if few and met.found.hurried:
            _last_jump(Q, V, met.bodies.m, h, company, self._momentum())
            self._send(met.ids, few)
        return good, contacts

    def _look(self, bodies: StarBodies) -> NearBodies:
        """Find which bodies are near each other, and near the star."""
        h, blocks = 2.0 * bodies.half, -(-self.state.count // THREADS)
        while True:
            rows, close, near = self._float_rows, self._close, self._near
            self._launch("prepare", *self._moving, self._sizes, self._radius, bodies.half, rows, close, near)
            self._kernels.search[(blocks, blocks), THREADS, self._stream](rows, close)
            self._launch("look", close, *self._moving, self._sizes, self._radius, self._m[0], h, near)
            found = near.copy_to_host(stream=self._stream)
            self._stream.synchronize()
            most = int(found[0].max())
            if most < len(found):
                break
            self._make_room(2 * most)
        found = found[1 : found[0, 0] + 1]
        (i, j), pairs = found.T, found[(found[:, 0] > found[:, 1]) & (found[:, 1] > 0)]
        return NearBodies(frozenset(map(tuple, pairs.tolist())), frozenset(i[i == j].tolist()), bool((j == 0).any()))

    # --- Contacts ---

    def _contact(self, bodies: StarBodies, dt: float, met: FewBodies, contacts: Contacts) -> Span | None:
        """The step, if two bodies may touch in it."""
        begin, end = (
            [np.ascontiguousarray(rows.copy_to_host()[:, :3].T) for rows in each]
            for each in ((self._kept[0], self._kept[1]), self._moving)
        )
        if not (len(contacts.times) or _fallen(*begin, *end, self._m, dt, bodies.radius)):
            return None
        count = self.state.count
        centre, drift = (column[0].copy_to_host() for column in self._columns)
        x0, v0 = self._inertial(begin, centre - dt * drift, drift)
        x1, v1 = self._inertial(end, centre, drift)
        ids, hurried = met.all_ids, np.zeros(count, np.bool_)
        hurried[ids] = met.company.hurried
        ends, members = np.zeros((len(contacts.times), 4, 3, count)), np.zeros((len(contacts.times), count), np.bool_)
        if len(contacts.times):
            ends[..., ids], members[:, ids] = contacts.ends, contacts.members
        encounter = Encounter(met.pairs, hurried, contacts.times, ends, members, ids[contacts.owners])
        return Span(x0, v0, x1, v1, 0.0, dt, True, encounter)

    def _inertial(self, rows: list[np.ndarray], centre: np.ndarray, drift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities, (N, D), of the map's coordinates, and those of the centre of mass."""
        (Q, V), mass, axes = rows, self._mass, slice(self.state.dimensions)
        x, v = Q.T + (centre - Q @ mass / mass.sum()), V.T + drift
        v[0] -= V @ mass / mass[0]
        return x[:, axes], v[:, axes]


# --- What the host computes of a few bodies -------------------------------------------------------------------------


@inner
def with_pairs(pairs, near, n):
    """A survey of n bodies that has found these pairs."""
    empty = no_survey(n)
    empty.counts[0] = len(pairs)
    return Survey(empty.a, pairs, near, empty.hurried, empty.falling, empty.critical, empty.counts)


@inner
def shares(V, m, hurried, total, momenta):
    """Fill in the momenta, (2, 3), of all planets that do not move with the star, and of those that do; ``total``: of
    all."""
    flow(V, m, hurried, momenta)
    for c in range(3):
        momenta[0, c] = total[c] - momenta[1, c]


@compute.kernel("cpu")
def _joined(m, pairs, hurried):
    """The company of pairs that are near each other, and bodies near the star."""
    found = with_pairs(pairs, np.ones(len(pairs), np.bool_), m.size)
    found.hurried[:] = hurried
    company, _ = gather(m, found, no_company(m.size))
    company.counts[1] += 1  # the card kicks comets, too
    return company


@compute.kernel("cpu")
def _kicked(Q, V, a, m, h, company):
    """Kick bodies by accelerations without those by bodies with which they move."""
    found, scratch = with_pairs(np.empty((0, 2), np.int64), np.empty(0, np.bool_), m.size), np.empty(a.shape)
    copy(a, found.a)
    kick(Q, V, m, h, found, company, scratch)


@compute.kernel("cpu")
def _begin_moves(Q, V, bodies, h, company, guess, eta, total):
    """As :func:`.move_all` begins, with the momentum of all planets."""
    momenta, drift, m = np.empty((2, 3)), np.empty(3), bodies.m
    shares(V, m, company.hurried, total, momenta)
    jump(Q, V, m, 0.5 * h, company, momenta)
    for c in range(3):
        drift[c] = 0.5 * momenta[0, c] / m[0]
    return drift, Motions(h, Q.copy(), V.copy(), guess, eta)


@compute.kernel("cpu")
def _moved(begin, end, free, drift, Q, V, bodies, motions, company, contacts):
    first, last = max(1, begin * PER_CHUNK), min(bodies.m.size, end * PER_CHUNK)
    return move(first, last, free, drift, Q, V, bodies, motions, company, contacts)


@compute.kernel("cpu")
def _last_jump(Q, V, m, h, company, total):
    momenta = np.empty((2, 3))
    shares(V, m, company.hurried, total, momenta)
    jump(Q, V, m, 0.5 * h, company, momenta)


@compute.kernel("cpu")
def _fallen(begin_Q, begin_V, Q, V, m, h, radius):
    return falls(begin_Q, begin_V, Q, V, m, h, radius)
