"""What becomes of two bodies that touch and do not merge: they bounce, or a user's function says so.

If the scheme shows the bodies at the moment of contact, the step ends there. Else a body moves on until the end of the step,
on the path that it had, and by what the contact has changed of its velocity; then the mutual attraction of the two is
corrected to first order. So a bounce costs an error of order dt², whatever the order of the scheme.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nbody.errors import RunFailed
from nbody.given import shown
from nbody.particles import Particles
from nbody.trajectory.structure.layout import ADDED, CHANGED, REMOVED, event_rows

Array = np.ndarray

Outcome = Callable[[Particles], Particles | None]
"""Gets the two bodies at the moment of contact, and returns the bodies after it: see :func:`after`."""

HOP = 0.01
"""The speed of bodies that rest on one another, as a part of their escape speed √(2Gm/R): a hop takes 0.03 √(R³/Gm)."""


class Bouncing(NamedTuple):
    """How bodies bounce.

    Attributes:
        restitution: the part of their speed along the line of centres that they keep.
        minimum_speed: they part at this speed at least, so that bodies that rest on one another make small hops (REBOUND's
            ``minimum_collision_velocity``). None: :data:`HOP` of their escape speed, if ``restitution`` is less than 1.
    """

    restitution: float = 1.0
    minimum_speed: float | None = None

    def parting(self, speed: float, escape_speed: float) -> float:
        """The speed along the line of centres after a contact."""
        least = self.minimum_speed
        if least is None:
            least = HOP * escape_speed if self.restitution < 1 else 0.0
        return max(self.restitution * speed, least)


class Meeting(NamedTuple):
    """Two bodies at the moment of contact.

    Attributes:
        centre, motion: (3,) position and velocity of their centre of mass.
        relative, velocity: (3,) of the second body relative to the first.
        masses: (2,).
    """

    centre: Array
    motion: Array
    relative: Array
    velocity: Array
    masses: Array

    @property
    def fraction(self) -> float:
        """The part of the mass that the second body has."""
        return second_part(self.masses)

    @property
    def speed(self) -> float:
        """At which they come closer, negative if they part."""
        return -float(self.velocity @ self.relative / np.linalg.norm(self.relative))

    @property
    def approaching(self) -> bool:
        """True if they come closer."""
        return bool(self.relative @ self.velocity < 0)

    def bodies(self) -> tuple[Array, Array]:
        """Positions and velocities of both, (2, 3) each."""
        parts = np.array([[-self.fraction], [1 - self.fraction]])
        return self.centre + parts * self.relative, self.motion + parts * self.velocity

    def bounced(self, bouncing: Bouncing, G: float) -> tuple[Array, float]:
        """What a bounce changes of the velocities, (2, 3), and of the energy."""
        distance, speed, fraction = float(np.linalg.norm(self.relative)), self.speed, self.fraction
        parting = bouncing.parting(speed, math.sqrt(2 * G * float(self.masses.sum()) / distance))
        change = (speed + parting) * (self.relative / distance)
        energy = 0.5 * fraction * float(self.masses[0]) * (parting**2 - speed**2)
        return np.array([-fraction * change, (1 - fraction) * change]), energy


def second_part(masses: Array) -> float:
    """The part of the mass of two bodies that the second one has; 0.5 if they have none."""
    return float(masses[1] / masses.sum()) if masses.any() else 0.5


def meeting_of(
    x: Sequence[Array] | Array, v: Sequence[Array] | Array, masses: Array, relative: Array, velocity: Array
) -> Meeting:
    """Two bodies at positions x and velocities v, (3,) each, of which the relative ones are better known."""
    part = second_part(masses)
    return Meeting(x[0] + part * (x[1] - x[0]), v[0] + part * (v[1] - v[0]), relative, velocity, masses)


def after(function: Outcome, pair: Particles) -> Particles | None:
    """The bodies after a contact, by a user's function; None if nothing happens.

    The first two rows that it returns are the two bodies, in their order, and further ones are new bodies (fragments). One
    row: the second body is gone, as after a merger; no row: both are.

    Raises:
        RunFailed: the function raised an error, or returned something else.
    """
    where = f"step {pair.step}: the outcome of the collision of {pair.id[0]} and {pair.id[1]} (ids)"
    try:
        found = function(pair)
    except Exception as error:
        raise RunFailed(f"{where}: the function raised {type(error).__name__}: {error}") from error
    if found is None:
        return None
    if not isinstance(found, Particles):
        raise RunFailed(f"{where}: the function must return Particles or None, got {shown(found)}")
    if len(found.radius) != found.count:
        raise RunFailed(f"{where}: the bodies need radii; give Particles(…, radius=…)")
    numbers = (found.mass, found.position, found.velocity, found.radius)
    if found.position.shape != (found.count, pair.dimensions) or found.velocity.shape != found.position.shape:
        raise RunFailed(f"{where}: position and velocity must be (K, {pair.dimensions})")
    if not all(np.isfinite(each).all() for each in numbers) or (found.mass < 0).any() or (found.radius < 0).any():
        raise RunFailed(f"{where}: numbers must be finite, and masses and radii not negative")
    return found


def outcome_rows(pair: Particles, left: Particles, time: float, step: int) -> Array:
    """The rows of two bodies that have become ``left``; new bodies have no ids yet."""
    kept, count = min(2, left.count), left.count
    ids = np.concatenate([pair.id[:kept], np.full(count - kept, -1)])
    of = np.concatenate([np.full(kept, -1), np.full(count - kept, pair.species[0])])
    bodies = replace(left, id=ids, species=np.zeros(count, np.int64), species_names=("",))
    rows = [event_rows(CHANGED[1], bodies.rows(np.arange(kept)), of[:kept])] if kept else []
    rows += [event_rows(REMOVED[1], pair.rows(np.arange(kept, 2)))] if kept < 2 else []
    rows += [event_rows(ADDED[1], bodies.rows(np.arange(kept, count)), of[kept:])] if count > kept else []
    found = np.concatenate(rows)
    found["time"], found["step"] = time, step
    return found
