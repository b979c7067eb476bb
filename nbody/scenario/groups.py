"""The groups of keys in a scenario that have no file of their own, and whether their numbers fit a precision."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    BeforeValidator,
    PlainValidator,
    PrivateAttr,
    TypeAdapter,
    ValidationInfo,
    model_serializer,
    model_validator,
)

from nbody.diagnostics.observables import ALWAYS, OBSERVABLES, OF_TANGENTS
from nbody.errors import unknown
from nbody.given import shown
from nbody.law import LAWS, Gravity, Law
from nbody.scenario.bodies import Component
from nbody.scenario.options import AUTO
from nbody.scenario.quantities import Scale, is_quantity
from nbody.scenario.source import ScenarioText
from nbody.scenario.values import (
    Count,
    Finite,
    Group,
    KeyProblem,
    Length,
    LengthOrZero,
    Name,
    NotNegative,
    Positive,
    Text,
    Time,
    TimeStep,
    Whole,
    Written,
    one_of,
    short_name,
    unit_scale,
    validated,
    whole_number,
    with_unit,
)


class UnitKeys(Group):
    """The units of the scenario's numbers: three independent ones of these four. (The extra ``units`` installs astropy.)

    Attributes:
        length, mass, time, velocity: the symbol of a unit, such as pc, Msun, Myr and km/s.
    """

    length: Text | None = None
    mass: Text | None = None
    time: Text | None = None
    velocity: Text | None = None

    _scale: Scale = PrivateAttr()

    @model_validator(mode="after")
    def _sizes(self) -> Self:
        self._scale = Scale(self.model_dump(exclude_none=True))
        return self


def scale_from(source: ScenarioText) -> Scale | None:
    """The units that a scenario declares; None if it has none. Raises InputError: one line with the file and the line."""
    if "units" not in source.values:
        return None
    return validated(UnitKeys, source.values["units"], source, ("units",))._scale


def units_from(values: object, info: ValidationInfo) -> object:
    """The units that :func:`scale_from` has checked, with the symbols of all four."""
    return scale.units if (scale := unit_scale(info)) else values


class EngineChoice(Component):
    """The engine that computes the forces: ``engine: cpu``, or ``engine: {name: cpu-tree, accuracy: 1e-4}``.

    Attributes:
        name: of an engine, or ``auto``, ``gpu`` or ``tree``, which stand for one. Its options stand beside it.
    """

    named_by = "name"

    name: Name = "auto"

    @model_serializer
    def _short(self) -> str | dict[str, object]:
        return {"name": self.name, **self.options} if self.options else self.name


class FieldChoice(Component):
    """An external field, ``{field: plummer, mass: 1e5, b: 10}``, or its name.

    Attributes:
        field: its name. Its parameters stand beside it.
    """

    named_by = "field"

    field: Name


def fields_from(values: object) -> object:
    """Convert one field, or a list of fields, to a tuple; None if there are none."""
    if isinstance(values, Mapping | FieldChoice | str):
        return (values,)
    if values is not None and not isinstance(values, list | tuple):
        raise ValueError(f"must be a list of fields, as in '- {{field: point_mass, mass: 1}}', got {shown(values)}")
    return tuple(values) if values else None


def _not_a_length(value: object) -> object:
    """Refuse a length where the name of the softening belongs."""
    plain = is_quantity(value) or (isinstance(value, int | float) and not isinstance(value, bool))
    name, colon, length = ("plummer", ":", str(value)) if plain else str(value).partition(":")
    if colon and isinstance(value, str | int | float):
        written = f"softening: {name}, length: {length.strip()}"
        raise ValueError(f"names the softening, and 'length' is its length; write '{written}'")
    return value


def for_each_species(value: object, of_one: Any, of_each: Any, kinds: str, info: ValidationInfo) -> Any:
    """A value of the type ``of_one``, or a mapping from the names of species to values of the type ``of_each``."""
    if isinstance(value, Mapping) and not value:
        raise ValueError(f"must be {kinds}")
    kind = dict[Name, of_each] if isinstance(value, Mapping) else of_one
    return TypeAdapter(kind).validate_python(value, context=info.context)


def _length(value: object, info: ValidationInfo) -> float | dict[str, float] | tuple[float, ...]:
    kinds = "a length, a length of each species, as in {stars: 0.01, halo: 0.1}, or a list of one per body"
    if isinstance(value, list | tuple) and not value:
        raise ValueError(f"must be {kinds}")
    of_one: Any = tuple[Length, ...] if isinstance(value, list | tuple) else LengthOrZero
    found: float | dict[str, float] | tuple[float, ...] = for_each_species(value, of_one, Length, kinds, info)
    return found


G_TOLERANCE = 1e-3
"""The relative difference from which on a written G contradicts the units. (Values in books have four digits.)"""


class GravityKeys(Group):
    """The law of a pair, a :class:`~nbody.law.Gravity`.

    Attributes:
        G: the gravitational constant; with ``units`` it follows from them.
        dimensions: of space.
        softening: the law at small distances.
        length: its length, that of each species, as in ``{stars: 0.01, halo: 0.1}``, or a list of one per body, in their
            order, of which up to 1000 differ; the larger one of a pair counts. No length suits every unit, so a softening
            that needs one has no default.
    """

    G: Annotated[NotNegative, with_unit("gravitational constant")] = Gravity.G
    dimensions: Annotated[Literal[2, 3], BeforeValidator(whole_number)] = 3
    softening: Annotated[Name, one_of("softening", LAWS), BeforeValidator(_not_a_length)] = Gravity.softening
    length: Annotated[
        float | Mapping[str, float] | tuple[float, ...],
        PlainValidator(_length),
        Written("length ≥ 0, one per species, or a list of one per body"),
    ] = 0.0

    @model_validator(mode="before")
    @classmethod
    def _g_of_the_units(cls, values: object, info: ValidationInfo) -> object:
        scale = unit_scale(info)
        return {"G": scale.G, **values} if scale and isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _g_fits(self, info: ValidationInfo) -> Self:
        scale = unit_scale(info)
        if scale and not math.isclose(self.G, scale.G, rel_tol=G_TOLERANCE):
            raise KeyProblem("G", f"{self.G:g} contradicts the units, in which G is {scale.G:.9g}; remove G, or 'units'")
        return self

    @model_validator(mode="after")
    def _length_fits(self) -> Self:
        law: Law = LAWS.load(self.softening)
        if not law.has_length and self.length:
            others = " or ".join(f"'{name}'" for name in LAWS if LAWS.load(name).has_length)
            raise KeyProblem("length", f"has no meaning with softening '{self.softening}'; write 'softening:' {others}")
        if law.has_length and "length" not in self.model_fields_set:
            raise KeyProblem("length", f"is missing; softening '{self.softening}' needs one, as in 'length: 0.01'")
        Gravity(**self.model_dump()).check_length()
        return self


def gravity_from(values: object, info: ValidationInfo) -> Gravity:
    """Convert the keys of ``gravity`` to a :class:`~nbody.law.Gravity`."""
    if isinstance(values, Gravity):
        return values
    return Gravity(**GravityKeys.model_validate(values, context=info.context).model_dump())


class IntegratorKeys(Component):
    """The integration scheme, its time step and the end of the run: ``steps`` or ``end``.

    Attributes:
        scheme: its name. Its options stand beside these keys.
        dt: the time step; with a negative one the run goes back in time. For schemes that choose their steps the longest
            one, and not required.
        steps: the number of steps.
        end: the time of the end. It is absolute: bodies from a file may begin at another time than 0, and with an end before
            the beginning the run goes back in time.
    """

    named_by = "scheme"

    exclusive = (("steps", "end"),)

    scheme: Name = "leapfrog"
    dt: TimeStep | None = None
    steps: Whole | None = None
    end: Annotated[Finite, with_unit("time")] | None = None

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        if self.steps is None and self.end is None:
            raise KeyProblem("steps", "is missing; write 'steps: N' or 'end: TIME' to say where the run ends")
        return self


def _observables(names: object) -> list[str]:
    """The names of observables, each once; ``all`` stands for those of the bodies. Those that every run records may be named
    too."""
    if not isinstance(names, list | tuple):
        raise ValueError(f"must be a list of names, as in [half_mass_radius, escapers], got {shown(names)}")
    of_bodies = [name for name in OBSERVABLES if "all" in names and name not in OF_TANGENTS]
    found = dict.fromkeys([*of_bodies, *(short_name(name) for name in names if name != "all")])
    for name in found:
        if name not in OBSERVABLES and name not in ALWAYS:
            raise ValueError(str(unknown("observable", name, OBSERVABLES)) + "; or all")
    return [name for name in found if name in OBSERVABLES]


class Record(Group):
    """The moments that become frames, beside the first and the last, and what is recorded with each.

    Attributes:
        every: steps between frames; 1 if neither this nor ``dt`` is given.
        dt: time between frames.
        events: the number of events for which the file has room.
        observables: what is recorded beside the energies and momenta: a list of names, or ``all``.
    """

    exclusive = (("every", "dt"),)

    every: Count | None = None
    dt: Time | None = None
    events: Count | None = None
    observables: Annotated[list[str], BeforeValidator(_observables), Written("list of names")] | None = None

    @model_validator(mode="before")
    @classmethod
    def _every_step(cls, values: object) -> object:
        return {"every": 1, **values} if isinstance(values, Mapping) and not {"every", "dt"} & set(values) else values


class CheckpointKeys(Group):
    """How often the state is saved, from which ``nbody resume`` goes on.

    Attributes:
        minutes: of wall time between two checkpoints.
    """

    minutes: Positive = 5.0


class EnergyLimit(Group):
    """What to do if the energy of a frame is wrong.

    Attributes:
        limit: the largest relative error of the energy.
        action: warn once, or stop the run.
    """

    limit: Positive
    action: Literal["warn", "stop"] = "warn"


def check_precision(gravity: Gravity, integrator: IntegratorKeys, precision: str) -> None:
    """Raise a KeyProblem: a number that would overflow or underflow in this precision and become NaN."""
    real = np.finfo(np.float64 if precision in ("float64", AUTO) else np.float32)
    largest, smallest = float(real.max), float(real.tiny)
    fix = f"precision {precision}; use other units" + (", or float64" if real.bits == 32 else "")
    if largest < gravity.G:
        raise KeyProblem("gravity.G", f"{gravity.G:g} is too large for {fix}")
    written = gravity.length
    several = dict(enumerate(written)) if isinstance(written, tuple) else written
    each = {f"gravity.length.{n}": e for n, e in several.items()} if isinstance(several, Mapping) else {}
    for key, length in (each or {"gravity.length": gravity.shortest}).items():
        if length > math.sqrt(largest):
            raise KeyProblem(key, f"{length:g}, squared, is too large for {fix}")
        # At distance 0 the force is length⁻³ times 0, which is NaN if length⁻³ is infinite.
        if LAWS.load(gravity.softening).needs_length and length < largest ** (-1 / 3):
            raise KeyProblem(key, f"{length:g} is too small (1/length³ overflows) for {fix}")
    dt = integrator.dt
    if dt is None:
        return
    if not smallest <= abs(dt) <= largest:
        raise KeyProblem("integrator.dt", f"{dt:g} is too {'small' if abs(dt) < 1 else 'large'} for {fix}")
    end = integrator.end if integrator.steps is None else integrator.steps * dt
    if end and (not math.isfinite(end) or end - dt == end):
        raise KeyProblem("integrator.dt", f"{dt:g} is too small to change a time of {end:g}; use fewer steps")
