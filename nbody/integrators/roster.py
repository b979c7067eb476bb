"""``Roster``: which bodies of a run there are, and the energy that mergers and other changes have added.

Each body has a slot for the whole run, in the order in which they appear; slots and ids are never used again. The state is
compact: its rows are the bodies that are there, in the order of their slots. A merger empties the slot of one body, and its
other slot holds both.

A change is a row of the table of events (:data:`~nbody.trajectory.structure.layout.EVENT_DTYPE`), which holds the body after
it. So the file has all that is needed to say which bodies a frame has, and to make the changes again.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nbody.fields.added import AddedFields
from nbody.forces.reference import direct_sum
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.state import Slots
from nbody.trajectory.structure.layout import ADDED, REMOVED
from nbody.trajectory.writing.checkpoint import require_like

Array = np.ndarray

OWN = "collisions."
"""The prefix of these arrays in a checkpoint."""

LATER = ("id", "species", "position", "velocity")
"""What a checkpoint keeps of bodies that were added."""


class Roster:
    """The bookkeeping of one run. No array is changed in place.

    Args:
        bodies: all bodies at the beginning.
        gravity, fields: the forces, for the energy of a change.
        used: the ids of bodies that were there before the beginning.

    Attributes:
        bodies: (S,) one for each slot, as it was when it appeared.
        mass, radius: (S,) now; those of empty slots are the last ones they had. ``radius`` is empty if bodies have none.
        into: (S,) the slot that holds each body now: its own, or that of the body into which it merged; -1 if it is gone.
        slots: (n,) the slots of the bodies that are there.
        rows: (S,) the row of the state in which each slot's body is now; -1 if it is gone.
        collision_energy: what collisions have added to the total energy (a negative number, as a rule).
        booked_energy: what collisions and all other changes have added to it.
        count: the number of collisions so far.
        changed: bodies were added, removed or changed, other than by collisions.
        differs: others are there than at the beginning, or they have other masses.
    """

    def __init__(self, bodies: Particles, gravity: Gravity, fields: AddedFields | None, used: Array) -> None:
        self.bodies, self._gravity, self._fields, self._used = bodies, gravity, fields, used
        self._first = bodies.count
        self.mass, self.radius, self.into = bodies.mass, bodies.radius, np.arange(bodies.count)
        self.collision_energy = self.booked_energy = 0.0
        self.count, self.changed = 0, False
        self._note()

    def _note(self) -> None:
        """Derive what follows from ``bodies``, ``mass`` and ``into``."""
        self.slots: Array = np.flatnonzero(self.into == np.arange(len(self.into)))
        self.rows: Array = np.where(self.into < 0, -1, np.searchsorted(self.slots, self.into))
        bodies, law = self.bodies, self._gravity
        self._softening2 = law.squares(bodies.species, bodies.species_names) if law.per_species else None
        same = len(self.slots) == self._first == len(self.into)
        self.differs = not (same and np.array_equal(self.mass, bodies.mass))

    @property
    def present(self) -> Slots | None:
        """The bodies that are there; None if they are those of the beginning, with their masses."""
        return Slots(self.rows, self.slots, self.starting()) if self.differs else None

    def particles(self, position: Array, velocity: Array, time: float, step: int) -> Particles:
        """The bodies that are there, at these positions and velocities (n, D)."""
        bodies, slots = self.bodies, self.slots
        return replace(
            bodies, mass=self.mass[slots], position=position, velocity=velocity, id=bodies.id[slots],
            species=bodies.species[slots], radius=self.radii, time=time, step=step,
        )  # fmt: skip

    def starting(self) -> Particles:
        """The bodies that are there, where they appeared: the shape of a state that will be restored."""
        return self.particles(self.bodies.position[self.slots], self.bodies.velocity[self.slots], 0.0, 0)

    @property
    def ids(self) -> Array:
        """The ids that bodies have or had, before the beginning too."""
        return np.union1d(self._used, self.bodies.id)

    @property
    def radii(self) -> Array:
        """(n,) the radii of the bodies that are there; empty if they have none."""
        return self.radius[self.slots] if len(self.radius) else self.radius

    # --- Changes ---

    def book(self, energy: float, collision: bool = True) -> None:
        """Note what a collision or another change has added to the total energy."""
        self.booked_energy += energy
        if collision:
            self.collision_energy += energy
        else:
            self.changed = True

    def merge(self, kept: int, gone: int, mass: float, radius: float) -> None:
        """Let the slot ``kept`` hold the body of the slot ``gone`` too; call :meth:`settle` after the last one."""
        self.into = np.where(self.into == gone, kept, self.into)
        self.mass, self.radius = self.mass.copy(), self.radius.copy()
        self.mass[kept], self.radius[kept] = mass, radius

    def settle(self) -> None:
        """Let the rows be those of the state after mergers."""
        self._note()

    def apply(self, changes: Array, x: Array, v: Array, time: float, energy: bool = True) -> tuple[Array, Array, float]:
        """Add, remove and change bodies.

        Args:
            changes: (K,) rows of :data:`layout.EVENT_DTYPE`: the bodies after the change; of those that are added, ``id_2``
                is their species. What they were before is filled in.
            x, v: (n, D) float64, of the bodies that are there.
            energy: compute what it adds to the total energy, by sums over pairs.

        Returns:
            Positions and velocities of the bodies after it, and that energy.
        """
        kind, D = changes["kind"], x.shape[1]
        new, gone = np.isin(kind, ADDED), np.isin(kind, REMOVED)
        slots = self.slots_of(changes["id_1"][~new])
        rows, altered = self.rows[slots], ~gone[~new]
        before = self.partial_energy(x, v, self.mass[self.slots], rows, time) if energy else 0.0
        changes["mass_1"][~new] = self.mass[slots]
        if len(self.radius):
            changes["radius_1"][~new] = self.radius[slots]
        after = changes[~new][altered]
        xyz, speeds = (np.stack([changes[f"{each}{c}"] for c in "xyz"], axis=1)[:, :D] for each in ("", "v"))
        x, v, mass, radius, into = x.copy(), v.copy(), self.mass.copy(), self.radius.copy(), self.into.copy()
        x[rows[altered]], v[rows[altered]] = xyz[~new][altered], speeds[~new][altered]
        mass[slots[altered]] = after["mass_2"]
        if len(radius):
            radius[slots[altered]] = after["radius_2"]
        into[np.isin(into, slots[~altered])] = -1
        x, v = (np.delete(each, rows[~altered], axis=0) for each in (x, v))
        self.mass, self.radius, self.into = mass, radius, into
        if new.any():
            x, v = np.concatenate([x, xyz[new]]), np.concatenate([v, speeds[new]])
            self._append(changes[new], xyz[new], speeds[new])
        self._note()
        changed = self.rows[[*slots[altered], *range(len(into), len(self.into))]]
        return x, v, self.partial_energy(x, v, self.mass[self.slots], changed, time) - before if energy else 0.0

    def _append(self, new: Array, position: Array, velocity: Array) -> None:
        """Give new bodies slots."""
        bodies, has_radii = self.bodies, len(self.radius) > 0
        added: dict[str, Any] = {
            "mass": new["mass_2"], "position": position, "velocity": velocity, "id": new["id_1"], "species": new["id_2"],
            "radius": new["radius_2"] if has_radii else np.empty(0),
        }  # fmt: skip
        more: dict[str, Any] = {k: np.concatenate([getattr(bodies, k), each]) for k, each in added.items()}
        self.bodies = replace(bodies, **more)
        self.mass = np.concatenate([self.mass, added["mass"]])
        self.radius = np.concatenate([self.radius, added["radius"]])
        self.into = np.concatenate([self.into, np.arange(len(self.into), len(self.mass))])

    def slots_of(self, ids: Array) -> Array:
        """The slots of bodies with these ids, which have been there; -1 of others."""
        order = np.argsort(self.bodies.id, kind="stable")
        at = order[np.minimum(np.searchsorted(self.bodies.id, ids, sorter=order), len(order) - 1)]
        return np.where(self.bodies.id[at] == ids, at, -1)

    def attraction(self, x: Array, rows: list[int]) -> Array:
        """The accelerations of bodies in some rows by each other."""
        slots = self.slots[rows]
        softening2 = None if self._softening2 is None else self._softening2[slots]
        return direct_sum(x[rows], self.mass[slots], self._gravity, None, softening2)[0]

    def partial_energy(
        self, x: Array, v: Array, mass: Array, some: Array | list[int], time: float, alive: Array | None = None
    ) -> float:
        """The part of the total energy in which some rows take part: kinetic, among themselves, and with all others (those
        that are ``alive``)."""
        rows = np.arange(len(x)) if alive is None else np.flatnonzero(alive)
        energy = self._field_energy(x, v, mass, some, rows, time)
        if not len(some):
            return energy
        chosen, softening2 = np.searchsorted(rows, some), None
        if self._softening2 is not None:
            softening2 = self._softening2[self.slots]
        m, positions = mass[some], x[some]
        _, potential = direct_sum(
            x[rows], mass[rows], self._gravity, chosen, None if softening2 is None else softening2[rows]
        )
        _, inner = direct_sum(positions, m, self._gravity, None, None if softening2 is None else softening2[some])
        return energy + float(m @ (0.5 * (v[some] ** 2).sum(axis=1) + potential - 0.5 * inner))

    def _field_energy(self, x: Array, v: Array, mass: Array, some: Array | list[int], rows: Array, time: float) -> float:
        """That of some rows in external fields; of all if a field depends on other bodies."""
        if self._fields is None:
            return 0.0
        fields, chosen = (self._fields.of(self.starting().rows(rows)), rows) if self._fields.about else (self._fields, some)
        return float(mass[chosen] @ fields.at(x[chosen], time, v[chosen], mass[chosen])[1])

    # --- Checkpoints and frames ---

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint keeps, without a copy."""
        kept = {
            "mass": self.mass, "radius": self.radius, "into": self.into, "energy": np.array([self.collision_energy])
        }  # fmt: skip
        if self.changed:
            kept["booked"] = np.array([self.booked_energy, self.count])
        if len(self.into) > self._first:
            kept |= {name: getattr(self.bodies, name)[self._first :] for name in LATER}
        return {OWN + name: array for name, array in kept.items()}

    def restore(self, arrays: Mapping[str, Array], count: int) -> None:
        """Restore what :meth:`arrays` returned; ``count``: the number of events until then. Raises LookupError or ValueError
        if these are not arrays of such a run."""
        found = {name.removeprefix(OWN): array.copy() for name, array in arrays.items() if name.startswith(OWN)}
        first = self._first
        later = [found.get(name, getattr(self.bodies, name)[:0]) for name in LATER]
        into, size = found["into"], first + len(later[0])
        expected = {
            "mass": np.empty(size),
            "radius": np.empty(size if len(self.bodies.radius) else 0),
            "into": np.empty(size, np.int64),
            "energy": np.empty(1),
        }
        require_like(arrays, {OWN + name: array for name, array in expected.items()})
        if (into < -1).any() or (into >= size).any() or (into[into] != into)[into >= 0].any():
            raise ValueError("a body has merged into one that is not left")
        begin = {name: getattr(self.bodies, name)[:first] for name in (*LATER, "mass", "radius")}
        begin |= {name: np.concatenate([begin[name], each]) for name, each in zip(LATER, later, strict=True)}
        begin |= {name: np.concatenate([begin[name], found[name][first:]]) for name in ("mass", "radius")}
        self.bodies = replace(self.bodies, **begin)
        self.mass, self.radius, self.into = found["mass"], found["radius"], into
        self.collision_energy = self.booked_energy = float(found["energy"][0])
        self.count, self.changed = count, "booked" in found
        if self.changed:
            self.booked_energy, self.count = float(found["booked"][0]), int(found["booked"][1])
        self._note()

    def numbers(self, collide: bool, changes: bool) -> dict[str, float]:
        """:data:`~nbody.trajectory.reading.events.RECORDED` of a run with collisions, and ``BOOKED`` of one with others."""
        found = {"bodies": float(len(self.slots))} if collide or changes else {}
        found |= {"collision_energy": self.collision_energy} if collide else {}
        return found | ({"booked_energy": self.booked_energy} if changes else {})
