"""The particles at one moment, as the initial conditions, the engines and the file exchange them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

import numpy as np

from nbody.errors import InputError, counted, did_you_mean, refuse_attribute
from nbody.given import converted, number, shown, whole

Array = np.ndarray

MOST_SPECIES = 1000
"""The largest number of species."""


def _array(name: str, values: Any, dtype: type) -> Array:
    """A contiguous array of numbers. Raises InputError for texts, for complex numbers, for fractions in an int64, and for
    numbers with a unit (of Astropy or AMUSE), which NumPy would drop."""
    if unit := str(getattr(values, "unit", None) or ""):
        raise InputError(f"particles: {name}: has the unit '{unit}'; give plain numbers in the units of the run")
    try:
        given = np.asarray(() if values is None else values)
        if given.dtype.kind in "cSU":
            raise ValueError
        with np.errstate(invalid="ignore"):  # no int64 is a NaN
            found: Array = np.ascontiguousarray(given, dtype)
        if dtype is np.int64 and given.dtype.kind in "fu" and (found != given).any():
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        kind = "whole" if dtype is np.int64 else "real"
        raise InputError(f"particles: {name}: must be an array of {kind} numbers, got {shown(values)}") from None
    return found


@dataclass(repr=False, eq=False)
class Particles:
    """N bodies in D dimensions at one moment.

    ``particles[k]``, and ``particles["jupiter"]`` if they have names, is one of them (:class:`BodyRow`); a slice, a mask or
    several rows give particles.

    Attributes:
        mass: (N,) float64, not negative. Units: the scenario's.
        position: (N, D) float64, D is 2 or 3.
        velocity: (N, D) float64.
        id: (N,) int64, unique; 0 … N-1 by default.
        species: (N,) int64, the component to which each body belongs (disc, halo, …), as an index into
            ``species_names``; 0 by default, or 0 … N-1 if there is a name for each body.
        species_names: the name of each species; by default one species without a name, or "0", "1", … if there are
            several. That of a species with one body is the body's (:func:`body_names`).
        time: the time of this moment, in the scenario's unit.
        step: the number of steps made so far.
        radius: (N,) float64, not negative, for collisions; empty if the bodies have none.
    """

    mass: Array
    position: Array
    velocity: Array
    id: Array = field(default_factory=lambda: np.empty(0, np.int64))
    time: float = 0.0
    step: int = 0
    species: Array = field(default_factory=lambda: np.empty(0, np.int64))
    species_names: tuple[str, ...] = ("",)
    radius: Array = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        for name in ("mass", "position", "velocity", "radius"):
            setattr(self, name, _array(name, getattr(self, name), np.float64))
        self.species_names = tuple(map(str, self.species_names))
        named = len(self.species_names) == len(self.mass)
        for name, default in (("id", np.arange), ("species", np.arange if named else np.zeros)):
            found = _array(name, getattr(self, name), np.int64)
            setattr(self, name, found if len(found) else default(len(self.mass), dtype=np.int64))
        self.time = converted("particles: time: ", number, self.time)
        self.step = converted("particles: step: ", whole, self.step)
        if (self.mass.ndim, self.position.ndim) != (2, 3):  # with an axis for the systems of an ensemble
            self._check_shapes("particles: ")
        if self.species_names == ("",) and 0 < (last := int(self.species.max(initial=0))) < MOST_SPECIES:
            self.species_names = tuple(map(str, range(last + 1)))

    def __setattr__(self, name: str, value: object) -> None:
        if name not in Particles.__dataclass_fields__:
            refuse_attribute(self, name, "particles")
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        species = f" of {len(self.species_names)} species" if len(self.species_names) > 1 else ""
        particles = counted(self.count, "particle")
        return f"<{particles}{species} in {self.dimensions}-D at t = {self.time:.6g}, step {self.step}>"

    def __eq__(self, other: object) -> bool:
        """True if all numbers and names are equal."""
        if not isinstance(other, Particles):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self.__dataclass_fields__)

    def __len__(self) -> int:
        return self.count

    def __add__(self, others: object) -> NoReturn:
        raise InputError("particles: + does not join them; add others to a simulation: simulation.add(particles)")

    def __getitem__(self, chosen: Any) -> Any:
        if isinstance(chosen, str):
            return BodyRow(self, int(rows_of(self, chosen, "particles: ")[0]))
        if isinstance(chosen, int | np.integer) and not isinstance(chosen, bool):
            if not -self.count <= chosen < self.count:
                raise IndexError(f"there is no body {chosen}; particles[…] counts from 0 to {self.count - 1}")
            return BodyRow(self, int(chosen) % self.count)
        rows = np.arange(self.count)[chosen]
        if rows.ndim != 1:
            raise InputError(f"particles[…] takes a row, a name, a slice, several rows or a mask; got {shown(chosen)}")
        return self.rows(rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """One object to NumPy, not a sequence of bodies."""
        itself = np.empty((), object)
        itself[()] = self
        return itself

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            column, *axis = SHORT.get(name, ("",))
            hint = f"; it is particles.{column}" + "".join(f"[:, {k}]" for k in axis) if column else ""
            private = name[:1] == "_"  # a copy asks for some
            known = () if private else (*self.__dataclass_fields__, "count", "dimensions")
            raise AttributeError(f"particles have no attribute {name!r}{hint or did_you_mean(name, known)}")

    @property
    def count(self) -> int:
        """N."""
        return len(self.mass)

    @property
    def dimensions(self) -> int:
        """D, 2 or 3."""
        return self.position.shape[-1]

    def in_space(self) -> tuple[Array, Array]:
        """Positions and velocities, (N, 3) each, with z = 0 in two dimensions."""
        x, v = (np.pad(each, ((0, 0), (0, 3 - self.dimensions))) for each in (self.position, self.velocity))
        return x, v

    def rows(self, rows: Array) -> "Particles":
        """Some of the bodies: a mask (N,), or their row numbers."""
        each = ("mass", "position", "velocity", "id", "species", *(("radius",) if len(self.radius) else ()))
        return replace(self, **{name: getattr(self, name)[rows] for name in each})

    def check(self, where: str = "", ids: Array | None = None) -> "Particles":
        """Return these particles, if they are physically meaningful. ``ids``: errors name bodies by these, not by rows.

        Raises:
            InputError: different lengths, a dimension other than 2 or 3, no particles, a NaN or an infinity (the message
                names the first row), a negative mass or radius, only zero masses, repeated ids, a species
                without a name, or two species with one name.
        """
        self._check_shapes(where)
        if not self.count:
            raise InputError(f"{where}there are no particles; give at least one")
        fix = "correct or remove that row" if ids is None else "give it another one"
        for name in ("mass", "position", "velocity"):
            values = getattr(self, name)
            if not (finite := np.isfinite(values)).all():
                wrong = ~finite.reshape(self.count, -1).all(axis=1)
                _refuse(f"{where}{name}", wrong, lambda row: f"not a finite number; {fix}", ids)
        if not math.isfinite(self.time) or not 0 <= self.step <= 2**53:
            raise InputError(
                f"{where}time must be finite and step a number from 0 to 2^53; got {self.time:g} and {shown(self.step)}"
            )
        _refuse(f"{where}mass", self.mass < 0, lambda row: f"negative ({self.mass[row]:g}); masses are zero or more", ids)
        if len(self.radius):
            wrong = ~(np.isfinite(self.radius) & (self.radius >= 0))
            _refuse(f"{where}radius", wrong, lambda row: f"{self.radius[row]:g}; radii are zero or more", ids)
        if not self.mass.any():
            raise InputError(f"{where}every mass is zero; at least one particle needs a mass")
        ids = self.id
        if not (ids[1:] > ids[:-1]).all():
            ids = np.sort(ids)  # np.unique() would import another 10 ms of NumPy
        if (ids[1:] == ids[:-1]).any():
            raise InputError(f"{where}ids repeat; every particle needs its own")
        self._check_species(where)
        return self

    def _check_shapes(self, where: str) -> None:
        n = len(self.mass)
        if self.mass.ndim != 1 or self.position.ndim != 2 or self.velocity.ndim != 2:
            raise InputError(
                f"{where}mass must be (N,), position and velocity (N, 2) or (N, 3); "
                f"got {self.mass.shape}, {self.position.shape}, {self.velocity.shape}"
            )
        for name in ("position", "velocity", "id", "species"):
            shape = getattr(self, name).shape
            if shape[0] != n:
                fix = f"transpose it, {name}.T" if shape[1:] == (n,) else "every array needs one row per particle"
                raise InputError(f"{where}{name} has {shape[0]} rows but mass has {n}; {fix}")
            if name in ("id", "species") and len(shape) != 1:
                raise InputError(f"{where}{name} must have one number per particle, ({n},); got {shape}")
        if self.dimensions not in (2, 3) or self.velocity.shape != self.position.shape:
            raise InputError(
                f"{where}position {self.position.shape} and velocity {self.velocity.shape} "
                "must both be (N, 2) or both (N, 3)"
            )
        if len(self.radius) and self.radius.shape != self.mass.shape:
            raise InputError(f"{where}radius must have one number per particle, ({n},); got {self.radius.shape}")

    def _check_species(self, where: str) -> None:
        names, species = self.species_names, self.species
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{where}two species with one name, {name!a}; give each species its own name")
            if not name.isprintable() or len(name) > 40:
                raise InputError(f"{where}species_names: {name[:40]!a}: a name has at most 40 characters, on one line")
        if len(names) > MOST_SPECIES:
            raise InputError(f"{where}there are {len(names)} species; use at most {MOST_SPECIES}")
        known = f"and there are {len(names)} species_names; a species is a number from 0 to {len(names) - 1}"
        _refuse(f"{where}species", (species < 0) | (species >= len(names)), lambda row: f"{species[row]}, {known}")


def _refuse(name: str, wrong: Array, what: Callable[[int], str], ids: Array | None = None) -> None:
    """Raise an InputError that names the first of the ``wrong`` rows (N,), or its id, and says what it is."""
    if wrong.any():
        row = int(np.argmax(wrong))
        which = f"particle {row} (counted from 0)" if ids is None else f"the body with the id {ids[row]}"
        raise InputError(f"{name} of {which} is {what(row)}")


SHORT: dict[str, tuple[Any, ...]] = {"m": ("mass",), "r": ("radius",), "N": ("count",), "t": ("time",)}
SHORT |= {"pos": ("position",), "vel": ("velocity",)}
SHORT |= {v + "xyz"[k]: (name, k) for v, name in (("", "position"), ("v", "velocity")) for k in range(3)}
"""Short names of the numbers of a body, as REBOUND has them: an array of :class:`Particles`, and which of its columns."""


class BodyRow:
    """One of the :class:`Particles`: its ``mass``, ``position`` and ``velocity`` (D,), ``radius``, ``id``, ``species`` and
    ``name``; also ``m``, ``r``, ``x``, ``y``, ``z``, ``vx``, ``vy`` and ``vz``. What is set is set in the particles' arrays;
    it stays at their moment."""

    def __init__(self, particles: Particles, row: int) -> None:
        vars(self).update(_particles=particles, _row=row)

    def __reduce__(self) -> tuple[type, tuple[Particles, int]]:
        return BodyRow, (self._particles, self._row)

    def __getattr__(self, name: str) -> Any:
        if name == "name":
            return body_names(self._particles).get(int(self.id), "")
        array, at = self._place(name)
        return array[at]

    def __setattr__(self, name: str, value: Any) -> None:
        array, at = self._place("species" if name == "name" else name)  # whose names these are
        if name == "name" or not array.flags.writeable:
            fixed = name in ("id", "species", "name")
            why = "it is fixed at the beginning" if fixed else "these particles are of an earlier moment"
            raise InputError(f"particles: {name}: can't be set: {why}")
        try:
            array[at] = value
        except (TypeError, ValueError):
            shape = array[at].shape
            what = f"{shape[0]} numbers" if shape else "a number"
            raise InputError(f"particles: {name}: must be {what}, got {shown(value)}") from None

    def _place(self, name: str) -> tuple[Array, tuple[int, ...]]:
        """The array and the index of an attribute."""
        column, *axis = SHORT.get(name, (name,))
        array = vars(self._particles).get(column)
        if not isinstance(array, np.ndarray) or not len(array) or sum(axis) >= self._particles.dimensions:
            raise AttributeError(f"this body has no {name!r}; elements of orbits are simulation.orbits()")
        return array, (self._row, *axis)

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"<body {self.id}{name}: m = {self.m:.6g}, x = {self.position}, v = {self.velocity}>"


class Named(Protocol):
    """Bodies that are chosen by their ids or names: particles, a recording."""

    @property
    def id(self) -> Array: ...
    @property
    def species(self) -> Array: ...
    @property
    def species_names(self) -> tuple[str, ...]: ...


class NamedBodies(NamedTuple):
    """Some of them."""

    id: Array
    species: Array
    species_names: tuple[str, ...]


def first_system(bodies: Named, systems: int) -> NamedBodies:
    """The bodies of the first system of an ensemble, in which those of all others have the same places."""
    count = len(bodies.id) // systems
    return NamedBodies(bodies.id[:count], bodies.species[:count], bodies.species_names)


def body_names(bodies: Named) -> dict[int, str]:
    """The names of bodies by their ids: that of a species is the name of its body if it has only one, as planets are.
    (A number is no name.)"""
    alone = np.bincount(bodies.species, minlength=len(bodies.species_names)) == 1
    if not any(name and not name.isdecimal() for name in bodies.species_names) or not alone.any():
        return {}
    rows = np.flatnonzero(alone[bodies.species])
    named = ((int(bodies.id[row]), bodies.species_names[bodies.species[row]]) for row in rows)
    return {id: name for id, name in named if name and not name.isdecimal()}


def rows_of(bodies: Named, chosen: int | str | Sequence[int | str] | Array, where: str = "") -> Array:
    """The rows of bodies, chosen by ids or names, one or several, in their order. Raises InputError: there is no such
    body; its line begins with ``where``."""
    several = [chosen] if isinstance(chosen, str | int) or np.ndim(chosen) == 0 else chosen
    if not isinstance(several, np.ndarray) and any(isinstance(each, str) for each in several):
        ids = {name: id for id, name in body_names(bodies).items()}
        several = [_id_of(each, ids, where) if isinstance(each, str) else each for each in several]
    found = np.asarray(several)
    if found.ndim > 1 or (found.size and found.dtype.kind not in "iu"):
        mask = "; of a mask these are particles.id[mask]" if found.dtype == bool else ""
        raise InputError(f"{where}needs the id or the name of a body, or several; got {shown(chosen)}{mask}")
    order = np.argsort(bodies.id, kind="stable")
    at: Array = order[np.minimum(np.searchsorted(bodies.id, found, sorter=order), len(order) - 1)]
    if (wrong := bodies.id[at] != found).any():
        last = f"ids go from {bodies.id.min()} to {bodies.id.max()}"
        raise InputError(f"{where}there is no body with the id {found[wrong][0]}; {last}")
    return at


def _id_of(name: str, ids: dict[str, int], where: str) -> int:
    """The id that a text gives, or the name of a body."""
    if name in ids:
        return ids[name]
    if name.lstrip("-").isdecimal() and len(name) < 20:  # an id has 64 bits
        return int(name)
    known = did_you_mean(name, ids) or f"; names are {', '.join(list(ids)[:10])}" * bool(ids) or "; they have no names"
    raise InputError(f"{where}there is no body named {shown(name)}{known}")
