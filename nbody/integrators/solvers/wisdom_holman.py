"""Wisdom and Holman's map for planetary systems, with symplectic correctors, and splittings of higher order.

Each step drifts every planet on its Kepler orbit about the bodies inside it, exactly (:mod:`.kepler`), and kicks it with the
remaining forces, which are small. So a step may be a twentieth of the shortest period, and the energy error stays bounded
(Wisdom & Holman 1991). A symplectic corrector removes the errors of first order in the planets' masses, up to a power of the
step (Wisdom, Holman & Touma 1996).

General relativity's term, per unit of the reduced mass -v⁴/8 - 3 μ v²/(2r) + μ²/(2r²) over c², is 3 K²/2 - v⁴/2 - μ²/r² with
Kepler's energy K = v²/2 - μ/r, where v is the momentum per mass (Saha & Tremaine 1994). The first term stretches the time of
the Kepler drift by 1 + 3 K/c², the second one shifts positions, the third one kicks.

The map is a drift of half a step, then kicks and drifts of whole steps (or those of a :mod:`.splitting`). It has coordinates
in columns of their own, half a step ahead of the state: the positions and velocities of frames are computed from them, and
never fed back. They are Jacobi's, or democratic: then each planet moves about the star at rest, and a kick begins and ends
with half of the star's own motion (Duncan, Levison & Lee 1998).

Five billion years of the Solar System's eight planets in steps of 5 days are 3.65e11 steps: 1.1 days on one core of an EPYC
with AVX-512 at 0.26 µs per step, 1.2 days with relativity.
"""

from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.errors import InputError, RunFailed
from nbody.fields.field import POSITIONS, POST_NEWTONIAN, VELOCITIES
from nbody.forces.layers.fields import fields_of
from nbody.integrators.facts import FLOAT64_ON_CPU, SchemeFacts
from nbody.integrators.few_bodies import components, few, map_coordinates, per_c2, require_star
from nbody.integrators.integrator import Integrator, Motion
from nbody.integrators.solvers.map_bodies import FIRST, keep, planets_of, present_of
from nbody.integrators.solvers.map_fields import map_fields
from nbody.integrators.solvers.map_steps import moving
from nbody.integrators.solvers.megno import add_growth, begin_growth
from nbody.integrators.solvers.splitting import SPLITTINGS, MapMoves, map_moves
from nbody.integrators.tangents import tangent_vectors
from nbody.scenario.values import Group, NotNegative, one_of
from nbody.state import Column
from nbody.state.notes import note


class WisdomHolman(Integrator):
    """Planets on orbits that do not come close to each other. Body 0 must be the star."""

    class Options(Group):
        """The options of the scheme.

        Attributes:
            coordinates: ``jacobi``, or ``democratic`` (heliocentric).
            splitting: the moves of a step: ``wh`` (one kick), ``wh_modified`` (two, of fourth order), ``saba2``,
                ``saba3``, ``saba4``, ``aba104``, ``aba864`` or ``aba1064`` (2, 3, 4, 7, 7 and 8 kicks).
            corrector: the order of the symplectic corrector, 0 for none.
            encounter: the distance of two planets, in mutual Hill radii, below which the run stops.
        """

        coordinates: Literal["jacobi", "democratic"] = "jacobi"
        splitting: Annotated[str, one_of("splitting", SPLITTINGS)] = "wh"
        corrector: Literal[0, 3, 5, 7, 11, 17] = 11
        encounter: NotNegative = 1.0

        @property
        def limits(self) -> tuple[float, bool]:
            """``options`` of :func:`.planets_of`."""
            return self.encounter, self.coordinates == "democratic"

        def moves(self, dt: float, motion: Motion) -> MapMoves:
            """Those of a map. Raises InputError if they do not go with the forces on the bodies."""
            jacobi, modified = self.coordinates == "jacobi", SPLITTINGS[self.splitting].shift
            if modified and (not jacobi or fields_of(motion.engine)):
                raise InputError(f"integrator: splitting {self.splitting} needs coordinates jacobi, and no fields")
            if not jacobi and per_c2(motion):
                raise InputError("fields: post_newtonian needs coordinates jacobi in this scheme")
            return map_moves(dt, self.corrector, self.splitting)

    _options: Options

    facts = SchemeFacts(
        order=2, source="Wisdom & Holman 1991; Wisdom, Holman & Touma 1996", own_forces=True, star=True,
        tangents=(POSITIONS, VELOCITIES, POST_NEWTONIAN), precisions=FLOAT64_ON_CPU,
        fields=(POSITIONS, VELOCITIES, POST_NEWTONIAN),
        columns=(Column("map_position", 3), Column("map_velocity", 3)), notes=few,
    )  # fmt: skip

    _order = np.zeros(0, np.int64)
    """The bodies in the order of the map."""

    def prepare(self, motion: Motion, contacts: bool = False) -> None:
        super().prepare(motion, contacts)
        self._order = np.arange(motion.state.count)

    def start(self, motion: Motion) -> None:
        # The planets are sorted by their distance from the star.
        require_star(motion.host.mass)
        state = motion.host
        x, v = components(state.position), components(state.velocity)
        distance = np.linalg.norm(x - x[:, :1], axis=0)
        self._order = np.argsort(distance, kind="stable")
        with tangent_vectors(state, self._tangents.count) as tangents:
            tangents[0] = self._tangents.first(state.count, state.dimensions)[..., self._order]
        self._call(motion, "begin", *(np.ascontiguousarray(each[:, self._order]) for each in (x, v)))

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        # ``until`` is ignored, since the run's schedule counts steps.
        state = motion.host
        x, v = (np.zeros((3, state.count)) for _ in range(2))
        done, i, j = self._call(motion, "advance", x, v, steps, state.clock.notes)
        state.clock.count_steps(done, self.dt)
        order = self._order
        if len(noted := state.clock.notes.vectors[:done]):
            noted[:, :, order] = noted.copy()
        state.position[order], state.velocity[order] = x.T[:, : state.dimensions], v.T[:, : state.dimensions]
        state.invalidate()
        if i:
            i, j = sorted((int(order[i]), int(order[j])))
            raise RunFailed(
                f"step {state.clock.step}: particles {i} and {j} (counted from 0) are closer than "
                f"{self._options.encounter:g} Hill radii, where the map fails (a planet's "
                "moon is no planet of the star); use scheme 'hybrid' or 'ias15'"
            )

    def show_noted(
        self, motion: Motion, steps: np.ndarray, times: np.ndarray, ends: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray] | None:
        # By a step of its own from each end, back with velocities turned round.
        if map_fields(motion, self._order, motion.host.mass) is not None:
            return None
        begun, x, v = ends
        lengths, sign = abs(times - begun), np.where(times < begun, -1.0, 1.0)[:, None, None]
        order = np.argsort(((x - x[:, :1]) ** 2).sum(axis=2), axis=1, kind="stable")
        rows = np.zeros((2, len(x), 3, x.shape[1]))
        for own, each in zip(rows, (x, sign * v), strict=True):
            own[:, : x.shape[2]] = np.take_along_axis(each, order[..., None], 1).transpose(0, 2, 1)
        powers = np.stack([lengths, lengths, lengths**2], axis=-1)[:, None]
        moves = [each * powers for each in self._options.moves(1.0, motion)]
        mass = motion.engine.gravity.G * motion.host.mass[order]
        _kernels(False).short_steps(*rows, mass, *moves, self._options.limits, per_c2(motion), np.empty((0, 2, 3, 0)))
        found = np.empty((2, *x.shape))
        for own, each in zip(found, rows.transpose(0, 1, 3, 2)[..., : x.shape[2]], strict=True):
            np.put_along_axis(own, order[..., None], each, 1)
        return found[0], sign * found[1]

    def _call(self, motion: Motion, kernel: str, x: np.ndarray, v: np.ndarray, *more: Any) -> Any:
        """Call a kernel with the map's coordinates, and the masses in the map's order."""
        chosen, clock = self._options, motion.state.clock
        moves = chosen.moves(self.dt, motion)
        mass = motion.engine.gravity.G * motion.host.mass[self._order]
        fields = map_fields(motion, self._order, motion.host.mass)
        moment = clock.origin, clock.step, self.dt
        coordinates, vectors = map_coordinates(motion.host), tangent_vectors(motion.host, self._tangents.count)
        with coordinates as (X, V), vectors as tangents:
            own = self._tangents
            if len(own.masses) and chosen.coordinates != "jacobi":
                raise InputError("integrator: derivatives by masses need coordinates jacobi")
            masses = np.zeros((len(own.masses), len(mass)))
            masses[:] = motion.engine.gravity.G * own.masses[:, self._order] if len(masses) else 0.0
            growth, call = (tangents[0], own.numbers[0], masses), getattr(_kernels(fields is not None), kernel)
            bodies = x, v, X, V, mass
            return call(bodies, moves, chosen.limits, per_c2(motion), fields, moment, growth, own.varied, *more)

    def _vectors(self, motion: Motion) -> np.ndarray:
        # Those of the map's coordinates are half a step ahead.
        bodies = motion.state.count
        found, (x, v) = np.empty((self._tangents.count, 2, 3, bodies)), np.empty((2, 3, bodies))
        self._call(motion, "vectors", x, v, found)
        back = np.argsort(self._order)
        return found[..., back]

    def arrays(self) -> dict[str, np.ndarray]:
        """The bodies in the order of their distances from the star."""
        return super().arrays() | {"order": self._order}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self._order = permutations(arrays["order"])


def permutations(order: np.ndarray) -> np.ndarray:
    """A copy of the rows (…, N) of a checkpoint. Raises ValueError unless each row is a permutation of 0 … N-1."""
    if (np.sort(order, axis=-1) != np.arange(order.shape[-1])).any():
        raise ValueError("the order of the planets is no permutation")
    return order.copy()


class FieldMapKernels(NamedTuple):
    """The kernels of the map in a sum of fields."""

    begin: Any
    advance: Any
    short_steps: Any
    vectors: Any


@cache
def _kernels(in_fields: bool) -> FieldMapKernels:
    (move, begin, present), note_step = moving(in_fields), inner(note)

    @compute.kernel("cpu")
    def begin_map(bodies, moves, options, per_c2, fields, moment, growth, varied):
        (x, v, X, V, m), (tangents, numbers, masses), (origin, first, dt) = bodies, growth, moment
        if in_fields:
            fields.clock[0] = origin + first * dt
        planets = planets_of(x, v, m, options, per_c2, fields, tangents, varied, masses)
        begin(x, v, moves.begin, planets)
        keep(planets, X, V, tangents)
        begin_growth(tangents, 1, numbers)

    @compute.kernel("cpu")
    def advance(bodies, moves, options, per_c2, fields, moment, growth, varied, steps, notes):
        """Make ``steps`` steps of X, V; x, v become the positions and velocities at their end.

        Args:
            bodies: x, v, X, V, (3, n) each, and G times the masses.
            options: see :func:`.planets_of`.
            moment: the time of step 0, the number of this step, and the time step.
            growth, varied: the tangent vectors of X and V, their numbers, and changes of masses; see :class:`.MapBodies`.
            notes: get the bodies after each step, in the order of the map.

        Returns:
            The number of steps, and two planets that were too close in the last one, or 0 and 0.
        """
        (x, v, X, V, m), (tangents, numbers, masses), (origin, begun, dt) = bodies, growth, moment
        planets, done = planets_of(X, V, m, options, per_c2, fields, tangents, varied, masses), 0
        met, ahead = planets.met, -moves.present[0, 1] / dt
        while done < steps and met[0] == 0:
            if in_fields:
                fields.clock[0] = origin + (begun + done + ahead) * dt
            move(moves.step, planets)
            if varied:
                add_growth(planets.tangents[:, :2], FIRST, dt, numbers)
            done += 1
            if notes.times.size > 0:
                if in_fields:
                    fields.clock[0] = origin + (begun + done + ahead) * dt
                present(moves.present, present_of(planets), x, v)
                note_step(notes, done - 1, 0.0, x.T, v.T)
        if in_fields:
            fields.clock[0] = origin + (begun + done + ahead) * dt
        keep(planets, X, V, tangents)
        present(moves.present, present_of(planets), x, v)
        return done, met[0], met[1]

    @compute.kernel("cpu")
    def short_steps(x, v, m, from_present, step, to_present, options, per_c2, tangents):
        """Make one step of each of n systems: positions and velocities (n, 3, N), with its own moves (n, M, 3)."""
        for k in range(len(x)):
            planets = planets_of(x[k], v[k], m[k], options, per_c2, None, tangents, (), np.zeros((0, m.shape[1])))
            begin(x[k], v[k], from_present[k], planets)
            move(step[k], planets)
            present(to_present[k], planets, x[k], v[k])

    @compute.kernel("cpu")
    def vectors(bodies, moves, options, per_c2, fields, moment, growth, varied, found):
        """``found``, (M, 2, 3, n), become the tangent vectors at the present."""
        (x, v, X, V, m), (tangents, _, masses), (origin, begun, dt) = bodies, growth, moment
        if in_fields:
            fields.clock[0] = origin + (begun - moves.present[0, 1] / dt) * dt
        planets = planets_of(X, V, m, options, per_c2, fields, tangents, varied, masses)
        present(moves.present, planets, x, v)
        keep(planets, x, v, found)

    return FieldMapKernels(begin_map, advance, short_steps, vectors)
