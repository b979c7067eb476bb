"""What becomes of two bodies that touch and do not merge: they bounce, or a user's function says so.

Until the end of the step a body moves on the path that it had, and straight on by what the contact has changed of its
velocity: exact where the acceleration does not depend on the place.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nbody.errors import RunFailed
from nbody.given import shown
from nbody.particles import Particles

Array = np.ndarray

Outcome = Callable[[Particles], Particles | None]
"""Gets the two bodies at the moment of contact, and returns the bodies after it: see :func:`after`."""

MOST_BOUNCES = 100
"""The most contacts of one body in a step. (Inelastic bodies between others would bounce without end.)"""


class Meeting(NamedTuple):
    """Two bodies at the moment of contact.

    Attributes:
        centre, motion: (3,) position and velocity of their centre of mass.
        relative, velocity: (3,) of the second body relative to the first.
        fraction: the part of the mass that the second body has.
    """

    centre: Array
    motion: Array
    relative: Array
    velocity: Array
    fraction: float

    @property
    def approaching(self) -> bool:
        """True if they come closer."""
        return bool(self.relative @ self.velocity < 0)

    def bodies(self) -> tuple[Array, Array]:
        """Positions and velocities of both, (2, 3) each."""
        parts = np.array([[-self.fraction], [1 - self.fraction]])
        return self.centre + parts * self.relative, self.motion + parts * self.velocity

    def bounced(self, restitution: float) -> tuple[Array, float]:
        """What a bounce changes of the velocities, (2, 3), and of the energy per reduced mass: the component of the relative
        velocity along the line of centres is reversed, times the coefficient of restitution."""
        along = self.relative / np.linalg.norm(self.relative)
        normal = float(self.velocity @ along)
        change = -(1 + restitution) * normal * along
        return np.array([-self.fraction * change, (1 - self.fraction) * change]), -0.5 * (
            1 - restitution**2
        ) * normal**2


class Touches:
    """The contacts of a step in order of time, of which some are found while others are dealt with.

    Args:
        found: :data:`~.collisions.TOUCH` rows.
        count: the number of bodies.

    Attributes:
        alive: (count,) bodies that are still there.
    """

    def __init__(self, found: Array, count: int) -> None:
        self.alive, self._changes = np.ones(count, bool), np.zeros(count, np.int64)
        self._waiting = [(touch, 0, 0) for touch in found.tolist()]
        heapq.heapify(self._waiting)

    def __iter__(self) -> Iterator[tuple[float, int, int, int]]:
        alive, changes = self.alive, self._changes  # a contact of a body that has changed since is out of date
        while self._waiting:
            touch, of_i, of_j = heapq.heappop(self._waiting)
            _, i, j, _ = touch
            if alive[i] and alive[j] and changes[i] == of_i and changes[j] == of_j:
                yield touch

    def changed(self, *bodies: int) -> None:
        """Note that the contacts of these bodies, so far, are out of date."""
        for k in bodies:
            self._changes[k] += 1

    def add(self, k: int, later: Array, inner: int) -> None:
        """Add the contacts of body k at the times ``later`` (count,), up to 1."""
        changes = self._changes
        if changes[k] > MOST_BOUNCES:
            return
        for other in np.flatnonzero((later <= 1.0) & self.alive):
            a, b = sorted((k, int(other)))
            touch = float(later[other]), a, b, inner
            heapq.heappush(self._waiting, (touch, int(changes[a]), int(changes[b])))


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
