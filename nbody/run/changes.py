"""Changes of the bodies of a run, checked: rows as :meth:`nbody.integrators.roster.Roster.apply` takes them.

A user adds, removes and changes bodies between two steps by methods of :class:`~nbody.run.simulation.Simulation`, or writes
into the arrays of ``simulation.particles``.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nbody.errors import InputError, counted, unknown
from nbody.given import shown
from nbody.particles import MOST_SPECIES, Particles, body_names, rows_of
from nbody.scenario import Scenario
from nbody.scenario.overrides import plain_python
from nbody.scenario.quantities import Scale
from nbody.scenario.source import ScenarioText
from nbody.scenario.values import meant_among, validated
from nbody.trajectory.structure.layout import BY_CALL, event_rows

if TYPE_CHECKING:
    from nbody.run.stepper import Stepper

Array = np.ndarray

ADD, REMOVE, CHANGE = BY_CALL
WRITABLE = ("mass", "position", "velocity", "radius")


def added(
    given: Particles | None, values: dict[str, Any], now: Particles, used: Array, scenario: Scenario
) -> tuple[Array, tuple[str, ...]]:
    """Rows of the bodies that a user adds to those of ``now``, see :func:`new_bodies`, and the names of all species with
    theirs."""
    bodies = new_bodies(given, values, now, used, scenario)
    names, species = species_among(bodies, now)
    if scenario.gravity.per_species and (new := names[len(now.species_names) :]):
        known = ", ".join(filter(None, now.species_names)) or "without a name"
        raise InputError(f"add: the species {new[0]!a} has no softening length; those of the run are {known}")
    bodies = replace(bodies, species=species, species_names=names)
    if scenario.collisions is not None and scenario.collisions.radius is not None and not len(bodies.radius):
        from nbody.integrators.collisions.radii import radii

        bodies = replace(bodies, radius=radii(scenario, bodies))
    return event_rows(ADD, bodies, species), names


def new_bodies(
    given: Particles | None, values: dict[str, Any], now: Particles, used: Array, scenario: Scenario
) -> Particles:
    """The bodies that a user adds to those of ``now``, which may be none: ``given``, or of the ``values`` by name.
    ``used`` are the ids that bodies have or had; if one of the new bodies has such an id, they all get others. Raises
    InputError: it was given by name, or a value is wrong."""
    if given is None:
        given = _of_values(values, now, scenario)
    elif not isinstance(given, Particles) or (more := [name for name in values if name != "id"]):
        raise InputError(
            f"add: needs particles, or mass=…, position=… and velocity=…; got {shown(given)}"
            + (f" and {', '.join(more)}" if isinstance(given, Particles) else "")
        )
    elif values.get("id") is not None:
        given = replace(given, id=np.atleast_1d(values["id"]))
    massless = not given.mass.any() and (now.mass > 0).any()
    (replace(given, mass=given.mass + 1.0) if massless else given).check("add: ")
    if now.count and given.dimensions != now.dimensions:
        raise InputError(f"add: the bodies are in {given.dimensions}-D, and the run is in {now.dimensions}-D")
    if not (taken := np.isin(given.id, used)).any():
        return given
    if values.get("id") is not None:
        raise InputError(f"add: id {given.id[taken][0]} belongs to a body of this run, or did; leave id out to get new ones")
    return replace(given, id=used.max() + 1 + np.arange(given.count))


COMPONENTS = ("x", "y", "z", "vx", "vy", "vz")
ELEMENTS = ("a", "P", "q", "e", "inc", "Omega", "omega", "pomega", "f", "M", "E", "l", "T")
KEYS = ("mass", "m", "position", "velocity", "radius", "species", "name", "id", *COMPONENTS, *ELEMENTS, "about")
"""The names of values of a new body."""

VECTORS = ("position", "velocity")
EXCLUSIVE: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("m",), ("mass",)),
    (("name",), ("species",)),
    (VECTORS, COMPONENTS),
    ((*VECTORS, *COMPONENTS), (*ELEMENTS, "about")),
)
"""Groups of values that say the same in two ways: a body has some of one."""


def _of_values(values: dict[str, Any], now: Particles, scenario: Scenario) -> Particles:
    for name in values:
        if name not in KEYS:
            raise unknown("value", name, KEYS, "add: ", meant=meant_among(KEYS))
    found = {name: value for name, value in values.items() if value is not None}
    for groups in EXCLUSIVE:
        one, another = (next((name for name in found if name in group), None) for group in groups)
        if one and another:
            raise InputError(f"add: {one} and {another} exclude each other; leave one of them out")
    dimensions = now.dimensions if now.count else scenario.gravity.dimensions
    for name in ("z", "vz") if dimensions == 2 else ():
        if np.any(found.get(name, 0.0)):
            raise InputError(f"add: {name}: the run is in 2-D; leave it out")
    if isinstance(own := found.get("name"), str) and own in body_names(now).values():
        fix = f"give it another name, or species={own!a}, which is then the name of both together"
        raise InputError(f"add: name: there is a body {own!a}; {fix}")
    for name, other in (("m", "mass"), ("name", "species")):
        if name in found:
            found.setdefault(other, found.pop(name))
    if any(name in (*ELEMENTS, "about") for name in found):
        found |= _on_orbit(found, now, scenario)
    elif (
        "position" not in found
        and (given := {name: found.get(name, 0.0) for name in COMPONENTS})
        and (any(name in found for name in COMPONENTS) or not now.count)
    ):
        found |= {
            "position": [given[c] for c in "xyz"[:dimensions]],
            "velocity": [given["v" + c] for c in "xyz"[:dimensions]],
        }
    for name in ("mass", "position", "velocity"):
        if name not in found:
            raise InputError(f"add: {name} is missing; give particles, or mass=…, position=… and velocity=…")
    try:
        position, velocity = (np.atleast_2d(found[name]) for name in ("position", "velocity"))
    except ValueError:
        raise InputError("add: position and velocity must be (D,) of one body, or (N, D)") from None
    count = len(position)
    made: dict[str, Any] = {"position": position, "velocity": velocity}
    for name in ("mass", "radius", "id"):
        if name in found:
            each = np.atleast_1d(found[name])
            made[name] = np.repeat(each, count) if len(each) == 1 != count and name != "id" else each
    if (species := found.get("species")) is not None:
        names = now.species_names if now.count else ()
        if isinstance(species, str):
            names = names if species in names else (*names, species)
            species = names.index(species)
        made |= {"species": np.repeat(species, count) if np.ndim(species) == 0 else species, "species_names": names}
    return Particles(**made)


def _on_orbit(values: dict[str, Any], now: Particles, scenario: Scenario) -> dict[str, Any]:
    """Position and velocity of a body on an orbit about the centre of mass of the bodies of ``now``, or ``about`` one."""
    from nbody.initial.planets import Body

    if not now.count:
        raise InputError("add: the first body has no orbit; give it a mass, as in add(m=1.0)")
    values = plain_python(values)
    keys = {name: value for name, value in values.items() if name in ELEMENTS}
    units, scale = scenario.units, None
    if units and any(isinstance(value, str) for value in values.values()):
        scale = Scale({name: getattr(units, name) for name in ("length", "mass", "time")})
    source = ScenarioText(replaced_by={(k,): f"add: {k}" for k in (*keys, "m")}, scale=scale)
    body = validated(Body, {"m": values.get("mass", 0.0), **keys}, source)
    if body.a is None and body.P is None and body.q is None:
        raise InputError("add: a is missing; an orbit has a, P or q")
    if now.dimensions == 2 and abs(np.sin(np.radians(body.inc))) > 1e-12:
        raise InputError("add: inc: the run is in 2-D, which has no inclinations; leave it out")
    about = values.get("about")
    focus = now if about is None else now.rows(rows_of(now, about, "add: about: "))
    inner = focus.mass.sum()
    x, v = body.relative(scenario.gravity.G * (inner + body.m))
    weights, D = focus.mass / (inner or 1.0), now.dimensions
    return {"mass": body.m, "position": weights @ focus.position + x[:D], "velocity": weights @ focus.velocity + v[:D]}


def species_among(new: Particles, now: Particles) -> tuple[tuple[str, ...], Array]:
    """The names of the species of ``now`` and of new bodies, and (K,) which of them these are. Bodies without a name join
    the only species, unless that is the name of a body."""
    names, before = new.species_names, now.species_names if now.count else ()
    if names == ("",) and len(before) == 1 and (before == names or now.count > 1):
        return before, np.zeros(new.count, np.int64)
    after = tuple(dict.fromkeys((*before, *(names[k] for k in np.unique(new.species)))))
    if len(after) > MOST_SPECIES:
        raise InputError(f"add: there are {len(after)} species with these; use at most {MOST_SPECIES}")
    return after, np.array([after.index(names[k]) for k in new.species], np.int64)


def removed(ids: Any, now: Particles) -> Array:
    """Rows of the bodies with these ids. Raises InputError."""
    gone = np.unique(rows_of(now, ids, "remove: "))
    left = np.ones(now.count, bool)
    left[gone] = False
    if left.any() and not now.mass[left].any():
        raise InputError("remove: no body that is left would have a mass; a run needs one, or remove all")
    return event_rows(REMOVE, now.rows(gone))


def changed(ids: Any, values: dict[str, Any], now: Particles) -> tuple[Particles, Array]:
    """Give the bodies with these ids, or all if None, new ``values``: one for each body, or one for all. Returns all bodies
    after the change, and the row numbers of those that changed. Raises InputError."""
    chosen = np.arange(now.count) if ids is None else rows_of(now, ids, "change: ")
    if len(np.unique(chosen)) < len(chosen):
        raise InputError("change: an id is given twice; give each once")
    values = {name: value for name, value in values.items() if value is not None}
    if not values:
        raise InputError("change: to what? say change(ids, mass=…), position=…, velocity=… or radius=…")
    after = copy(now)
    for name, value in values.items():
        setattr(after, name, _changed(name, value, getattr(now, name), chosen))
    return after.check("change: ", now.id), np.sort(chosen)


def _changed(name: str, value: Any, now: Array, chosen: Array) -> Array:
    if not len(now):
        raise InputError(f"change: {name}: the bodies of this run have none; give radii at its beginning")
    shape, after = now[chosen].shape, now.copy()
    try:
        given = np.asarray(value, np.float64)
        # NumPy would take a number per body for all its coordinates, and drop a unit.
        if given.shape not in ((), shape[1:], shape) or str(getattr(value, "unit", None) or ""):
            raise ValueError
        after[chosen] = given
    except (TypeError, ValueError):
        raise InputError(
            f"change: {name}: must be plain numbers, one for all or one for each, {shape}; got {shown(value)}"
        ) from None
    return after


def altered(after: Particles, chosen: Array) -> Array:
    """The events of a change of the bodies ``chosen``, by their row numbers, to what they are in ``after``."""
    return event_rows(CHANGE, after.rows(chosen))


class NoRadii(np.ndarray):
    """The radii of bodies that have none: an empty array that refuses what is written into it."""

    def __setitem__(self, key: Any, value: Any) -> None:
        raise InputError("particles: radius: the bodies of this run have none; give radii at its beginning")


class WritableParticles:
    """The present particles of a run, for the user: what is written into them before the next step takes effect."""

    def __init__(self, stepper: "Stepper") -> None:
        self._stepper = stepper
        self._given: tuple[Particles, Particles] | None = None  # these particles, and what they were
        self._at: object = None

    def particles(self) -> Particles:
        """The particles at this moment, the same until the next step. Ids and species stay what they are. (A copy of a
        million bodies takes 10 to 50 ms.)"""
        stepper = self._stepper
        now = stepper.moment, stepper.clock.revision
        if self._given is None or self._at != now:
            x, v = stepper.state.values("position", "velocity")
            found = stepper.particles((x.astype(np.float64), v.astype(np.float64)))
            known = {"position": x, "velocity": v} if stepper.moved else {}  # else they may have other digits
            if stepper.roster is None:
                known |= {"mass": stepper.setup.bodies.mass, "radius": stepper.setup.bodies.radius}
            were = copy(found)
            for name in WRITABLE:
                setattr(were, name, known[name] if name in known else getattr(found, name).copy())
            if not len(found.radius):
                found.radius = found.radius.view(NoRadii)
            found.id.flags.writeable = found.species.flags.writeable = False
            self._given, self._at = (found, were), now
        return self._given[0]

    def show_to(self, function: Callable[[Particles], Any]) -> bool:
        """Call a user's function with them, and let what it writes count. Returns False if it returns False."""
        goes_on = function(self.particles()) is not False
        if (changes := self.written(freeze=False)) is not None:
            self._stepper.apply(changes)
        return goes_on

    def written(self, freeze: bool = True) -> Array | None:
        """Rows of the bodies that a user has changed, or None; call this before the next step. ``freeze``: refuse what is
        written later, which would not count. Raises InputError."""
        if self._given is None:
            return None
        (given, were), self._given = self._given, None
        arrays = [getattr(given, name) for name in WRITABLE]
        if freeze:
            for array in arrays:
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False
        same = all(_same(array, getattr(were, name)) for array, name in zip(arrays, WRITABLE, strict=True))
        for each in ("time", "step", "id", "species"):
            if not np.array_equal(getattr(given, each), getattr(were, each)):
                raise InputError(f"particles: {each}: can't be changed in a run")
        if same:
            return None
        after = replace(given)
        if after.position.shape != were.position.shape or after.mass.shape != were.mass.shape:
            raise InputError(
                f"particles: the run has {counted(were.count, 'body', 'bodies')}; use simulation.add() or remove()"
            )
        after.check("particles: ")
        differ = np.zeros(were.count, bool)
        for name in WRITABLE:
            now, before = getattr(after, name), getattr(were, name)
            if len(now) != len(before):
                raise InputError("particles: radius: the bodies of this run have none; give radii at its beginning")
            if len(now):
                differ |= (now != before).reshape(were.count, -1).any(axis=1)
        return altered(after, np.flatnonzero(differ)) if differ.any() else None


def _same(now: Any, before: Array) -> bool:
    """True if these are the same numbers, NaNs too. ``now`` was in float64."""
    if not isinstance(now, np.ndarray) or now.dtype != np.float64:
        return False
    # NaN is not equal to itself.
    return np.array_equal(now, before) or now.tobytes() == before.astype(np.float64).tobytes()
