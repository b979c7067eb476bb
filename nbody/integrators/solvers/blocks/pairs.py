"""Hard pairs: two bodies that the others hardly perturb move about each other on Kepler's orbit, and cost no block steps.

The first body of a formed pair becomes its centre of mass, an ordinary body of the block scheme with the mass of both; the
second one is parked: without mass, far away, and without steps. The relative motion is evaluated where it matters: in frames
and energies, and when the pair is dissolved. γ is the perturbation relative to the force between the two at apocentre, the
distance Q = a (1 + e): of all other bodies, of mass m at the distance r, the largest max(1, 2 m/M) (Q/r)³. (2 m/M: the tide
of the body on the pair; 1: also a light body should not feel the pair's quadrupole.)

- A pair forms if γ is below a quarter of the option ``pairs``, if both have just ended a step, each the other's nearest
  neighbour among those with short steps. The host looks for such pairs when a stretch begins and after each 1024 blocks,
  which a hard pair uses up quickly; so the search costs nothing where there is none, and its times depend on nothing but the
  number of blocks.
- A pair is dissolved if γ exceeds ``pairs``. The loop over blocks checks this at each step of the pair's centre of mass,
  which is shorter than a quarter of the time in which another body could arrive; so γ hardly exceeds the option by 1/(3/4)³.
  The loop then ends, and the host puts both bodies back. All other bodies keep their times and steps.

When a pair forms or is dissolved, its energy changes by about γ of itself, the potential of its quadrupole. Everything is in
the columns that checkpoints keep: the rows :data:`.formulas.SEPARATION` and :data:`.formulas.RELATIVE_VELOCITY` of the
parked body are those of the pair at the end of the parked body's last step, and the row :data:`.formulas.FIRST` is the
number of the first body. The host finds and moves pairs with the kernels of the CPU, also if the blocks are made on a GPU.
"""

import math
from typing import NamedTuple, Self

import numpy as np
from scipy.spatial import cKDTree

from nbody.integrators.solvers.blocks.bodies import PARKED, BlockBodies
from nbody.integrators.solvers.blocks.cpu_kernels import (
    in_ticks_now,
    kepler_motion,
    perturbation_now,
    prediction_for,
    start_for,
)
from nbody.integrators.solvers.blocks.fields import BlockFields
from nbody.integrators.solvers.blocks.formulas import (
    ACCELERATION,
    APPROACH,
    CRACKLE,
    FIRST,
    FORCES,
    FOREVER,
    PHASE,
    POSITION,
    RELATIVE_VELOCITY,
    SEPARATION,
    VELOCITY,
    first_steps,
)
from nbody.law import LAWS, Gravity

BLOCKS_PER_SEARCH = 1024
"""Blocks between two searches for pairs."""

FEWEST = 16
"""Fewer bodies are a system of planets or a multiple star, in which even weak perturbations add up over many orbits."""

SHORTER = 32
"""The steps of the two are shorter than those of most bodies by this factor, or a pair of them would save nothing."""

LONGEST = 4.0
"""The longest period of a pair that may form, in steps of most bodies. Longer ones are perturbed, so they are not tested."""

FORM_BELOW = 0.25
"""A pair forms below this fraction of the perturbation at which it is dissolved, so that it does not do both in turn."""


class Orbits(NamedTuple):
    """The formed pairs: numbers of the first and the second bodies (n,), separations x and velocities v (3, n) from the
    second to the first at the times ``since`` (n,) in ticks, G M (n,), and the second one's fraction of the mass (n,)."""

    first: np.ndarray
    second: np.ndarray
    x: np.ndarray
    v: np.ndarray
    since: np.ndarray
    mu: np.ndarray
    fraction: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, last: np.ndarray, step: np.ndarray, masses: np.ndarray, G: float) -> Self:
        """The pairs among bodies with these columns; ``masses``: of single bodies."""
        second = np.flatnonzero(step >= PARKED)
        first = rows[FIRST, second].astype(np.int64)
        total = masses[first] + masses[second]
        x, v = rows[SEPARATION, second].copy(), rows[RELATIVE_VELOCITY, second].copy()
        return cls(first, second, x, v, last[second], G * total, masses[second] / np.where(total > 0, total, 1.0))

    def at(self, now: float, tick: float) -> tuple[np.ndarray, np.ndarray]:
        """Separations and velocities at a time in ticks."""
        x, v = self.x.copy(), self.v.copy()
        if len(self.first):
            kepler_motion(x, v, self.mu, (now - self.since) * tick)
        return x, v

    def resolve(self, position: np.ndarray, velocity: np.ndarray, now: float, tick: float) -> None:
        """Replace the centres of mass among positions and velocities (N, D) by both bodies."""
        D = position.shape[1]
        for centre, relative in zip((position, velocity), self.at(now, tick), strict=True):
            middle = centre[self.first]
            centre[self.first] = middle + (self.fraction * relative[:D]).T
            centre[self.second] = middle - ((1 - self.fraction) * relative[:D]).T


def extremes(x: np.ndarray, v: np.ndarray, mu: float) -> tuple[float, float]:
    """The distances at pericentre and apocentre; infinity for an orbit that is not closed."""
    r = math.sqrt(x @ x)
    per_a = 2.0 / r - (v @ v) / mu if r > 0.0 < mu else 0.0
    if not per_a > 0.0:
        return math.inf, math.inf
    h = np.cross(x, v)
    e = math.sqrt(max(0.0, float(1.0 - (h @ h) / mu * per_a)))
    return (1.0 - e) / per_a, (1.0 + e) / per_a


def usual(step: np.ndarray) -> int:
    """The step in ticks that nine of ten bodies do not exceed; 0 if there are too few bodies for pairs to form."""
    single = step[step < PARKED]
    if len(single) < FEWEST:
        return 0
    return int(np.partition(single, 9 * len(single) // 10)[9 * len(single) // 10])


class Pairs:
    """Forms and dissolves pairs of bodies.

    Args:
        masses: (N,) of the single bodies.
        threshold: the γ at which a pair is dissolved; 0: none forms.
        fields: the external fields, whose tide perturbs pairs, too.
    """

    def __init__(
        self, gravity: Gravity, order: int, eta: float, masses: np.ndarray, threshold: float, fields: BlockFields
    ) -> None:
        self._gravity, self._order, self._eta, self._masses, self._fields = gravity, order, eta, masses, fields
        self.threshold = threshold if len(masses) >= FEWEST else 0.0
        self.formed = self.dissolved = 0

    def orbits(self, rows: np.ndarray, last: np.ndarray, step: np.ndarray) -> Orbits:
        """The formed pairs."""
        return Orbits.of(rows, last, step, self._masses, self._gravity.G)

    def masses_and_limits(self, orbits: Orbits) -> tuple[np.ndarray, np.ndarray]:
        """``mass`` and ``limit`` of :class:`BlockBodies`."""
        mass, limit = self._masses.copy(), np.zeros(len(self._masses))
        mass[orbits.first] += mass[orbits.second]
        mass[orbits.second] = 0.0
        for k, i in enumerate(orbits.first):
            limit[i] = self._limit(extremes(orbits.x[:, k], orbits.v[:, k], orbits.mu[k])[1], mass[i])
        return mass, limit

    def begin_stretch(self, b: BlockBodies, orbits: Orbits, now: int, tick: float) -> None:
        """Let the time ``now`` be 0: the times of all relative motions are moved there."""
        b.rows[SEPARATION, orbits.second], b.rows[RELATIVE_VELOCITY, orbits.second] = orbits.at(now, tick)
        b.last[orbits.second] = 0

    def disturbed(self, b: BlockBodies, orbits: Orbits, now: int, tick: float) -> bool:
        """Mark the pairs for :meth:`dissolve` that the tide of the fields perturbs too much, of those that have just ended a
        step. Returns False if there are none."""
        found = False
        for k, i in enumerate(orbits.first if self._fields.terms else ()):
            if b.last[i] == now and b.limit[i] > 0.0:
                apocentre = extremes(orbits.x[:, k], orbits.v[:, k], orbits.mu[k])[1]
                if self._fields.tide(b.rows[POSITION, i], apocentre, now * tick) > b.limit[i]:
                    b.limit[i], found = -b.limit[i], True
        return found

    def candidates(self, last: np.ndarray, step: np.ndarray, limit: np.ndarray, now: int) -> np.ndarray:
        """The bodies that have just ended a step, and that have shorter steps than most."""
        if self.threshold == 0.0:
            return np.empty(0, np.int64)
        return np.flatnonzero((last == now) & (limit == 0.0) & (step <= usual(step) // SHORTER))

    def form(self, b: BlockBodies, now: int, tick: float, largest: int) -> bool:
        """Form the pairs that are hardly perturbed. Returns False if there are none."""
        found = self.candidates(b.last, b.step, b.limit, now)
        if len(found) < 2:
            return False
        nearest = cKDTree(b.rows[POSITION, found].T).query(b.rows[POSITION, found].T, k=2)[1]
        other = np.where(nearest[:, 0] == np.arange(len(found)), nearest[:, 1], nearest[:, 0])
        mutual = [(found[k], found[other[k]]) for k in range(len(found)) if other[other[k]] == k and k < other[k]]
        longest = LONGEST * usual(b.step) * tick
        hard = [(i, j) for i, j in mutual if self._period(b, i, j) < longest]
        if not hard:
            return False
        p = self._predicted(b, now, tick)
        formed = [i for i, j in hard if self._form(b, p, i, j, now, tick)]
        if formed:
            self._begin(b, p, formed, now, tick, largest)
            self.formed += len(formed)
        return bool(formed)

    def dissolve(self, b: BlockBodies, now: int, tick: float, largest: int) -> None:
        """Put both bodies of the pairs back whose limits are exceeded."""
        orbits = self.orbits(b.rows, b.last, b.step)
        x, v = orbits.at(now, tick)
        p = self._predicted(b, now, tick)
        back: list[int] = []
        for k, (i, j) in enumerate(zip(orbits.first, orbits.second, strict=True)):
            if b.limit[i] < 0.0:
                relative, fraction = np.concatenate([x[:, k], v[:, k]]), orbits.fraction[k]
                centre = b.rows[PHASE, i].copy()
                b.rows[PHASE, i], b.rows[PHASE, j] = centre + fraction * relative, centre - (1 - fraction) * relative
                p[PHASE, i], p[PHASE, j], p[ACCELERATION, [i, j]] = b.rows[PHASE, i], b.rows[PHASE, j], 0.0
                b.mass[[i, j]], b.limit[i] = self._masses[[i, j]], 0.0
                back += [i, j]
        self._begin(b, p, back, now, tick, largest)
        self.dissolved += len(back) // 2

    def _predicted(self, b: BlockBodies, now: int, tick: float) -> np.ndarray:
        """Positions, velocities and accelerations of all bodies at one time, (9, N)."""
        p = np.empty((9, len(b.mass)))
        prediction_for(self._order)(b.rows, p, b.last, now, tick)
        parked = b.step >= PARKED
        p[:3, parked], p[3:, parked] = b.rows[POSITION, parked], 0.0
        return p

    def _period(self, b: BlockBodies, i: int, j: int) -> float:
        """The period of two bodies about each other; infinity if they are not bound."""
        relative, mu = b.rows[PHASE, i] - b.rows[PHASE, j], self._gravity.G * (b.mass[i] + b.mass[j])
        axis = 0.5 * sum(extremes(relative[POSITION], relative[VELOCITY], mu))
        return 2 * math.pi * math.sqrt(axis**3 / mu) if mu > 0 else math.inf

    def _form(self, b: BlockBodies, p: np.ndarray, i: int, j: int, now: int, tick: float) -> bool:
        """Form a pair, unless it is perturbed: its centre of mass is body i."""
        total, mu = b.mass[i] + b.mass[j], self._gravity.G * (b.mass[i] + b.mass[j])
        relative = b.rows[PHASE, i] - b.rows[PHASE, j]
        pericentre, apocentre = extremes(relative[POSITION], relative[VELOCITY], mu)
        if not (math.isfinite(apocentre) and self._is_newtonian(pericentre)):
            return False
        centre = (b.mass[i] * b.rows[PHASE, i] + b.mass[j] * b.rows[PHASE, j]) / total
        moved, masses = p.copy(), b.mass.copy()
        away = 8.0 * np.abs(p[:3, b.step < PARKED]).max()
        moved[:6, i], moved[:3, j], moved[3:, j], masses[i], masses[j] = centre, away, 0.0, total, 0.0
        limit = self._limit(apocentre, total)
        strongest, quickest = perturbation_now(i, moved, masses)
        strongest = max(strongest, self._fields.tide(centre[POSITION], apocentre, now * tick))
        if not (strongest < FORM_BELOW * limit and self._period(b, i, j) * math.sqrt(quickest) < APPROACH):
            return False
        p[:], b.mass[:] = moved, masses
        b.limit[i] = limit
        b.rows[PHASE, i], b.rows[:, j] = centre, 0.0
        b.rows[POSITION, j], b.rows[FIRST, j] = away, i
        b.rows[SEPARATION, j], b.rows[RELATIVE_VELOCITY, j] = relative[POSITION], relative[VELOCITY]
        b.last[j], b.step[j], b.required[j] = now, PARKED, FOREVER
        return True

    def _limit(self, apocentre: float, total: float) -> float:
        """max(M, 2 m)/r³ at which γ is the threshold."""
        return self.threshold * total / apocentre**3

    def _is_newtonian(self, pericentre: float) -> bool:
        """True if the softening changes the force by less than the threshold on the whole orbit."""
        law, length = LAWS.load(self._gravity.softening), math.sqrt(self._gravity.length2)
        if law.name == "plummer":
            return 1.5 * (length / pericentre) ** 2 < self.threshold if pericentre > 0 else False
        return length == 0.0 or law.support * length < pericentre

    def _begin(self, b: BlockBodies, p: np.ndarray, which: list[int], now: int, tick: float, largest: int) -> None:
        """Evaluate the derivatives of some bodies at the time ``now``, and give them first steps."""
        evaluate, G, length2 = start_for(self._gravity.softening), self._gravity.G, self._gravity.length2
        sums = np.empty((len(b.mass), 9))
        for _ in range(2):  # the second one knows the accelerations
            for i in which:
                evaluate(i, i + 1, p, b.mass, length2, G, sums)
            self._fields.add(np.array(which, np.int64), p, b.mass, now * tick, sums)
            b.rows[FORCES, which] = sums[which].T
            p[ACCELERATION, which] = b.rows[ACCELERATION, which]
        b.rows[CRACKLE, which] = 0.0
        b.required[which] = first_steps(self._order, self._eta, b.rows[:, which])
        while now % largest:
            largest >>= 1
        for i in which:
            b.last[i], b.step[i] = now, max(1, in_ticks_now(b.required[i], tick, largest))
