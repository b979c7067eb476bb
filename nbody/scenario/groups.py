"""The groups of keys in a scenario."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationInfo,
    model_serializer,
    model_validator,
)  # fmt: skip

from nbody.diagnostics.energy import ALWAYS
from nbody.diagnostics.observables import OBSERVABLES
from nbody.errors import InputError, did_you_mean, unknown
from nbody.law import LAWS, Gravity, Law
from nbody.scenario.fields import (
    Count,
    Finite,
    Group,
    KeyProblem,
    Length,
    LengthOrZero,
    Name,
    NotNegative,
    Offset,
    Positive,
    Quantity,
    Seed,
    Text,
    Time,
    Velocity,
    Whole,
    a_list,
    arithmetic,
    short_name,
    shown,
    unit_scale,
    unknown_key,
    validated,
)
from nbody.scenario.source import ScenarioText
from nbody.scenario.units import Scale, UnitProblem


class UnitKeys(Group):
    """The units of the scenario's numbers: three independent ones of length, mass, time and velocity."""

    length: Text | None = None
    mass: Text | None = None
    time: Text | None = None
    velocity: Text | None = None


def scale_from(source: ScenarioText) -> Scale | None:
    """The units that a scenario declares; None if it has none. Raises InputError: one line with the file and the line."""
    if "units" not in source.values:
        return None
    keys = validated(UnitKeys, source.values["units"], source, ("units",))
    try:
        with arithmetic(source, ("units",)):
            return Scale(keys.model_dump(exclude_none=True))
    except UnitProblem as error:
        at = ("units", error.key) if error.key else ("units",)
        raise InputError(source.where(at) + str(error)) from None


def units_from(values: Any, info: ValidationInfo) -> Any:
    """The units that :func:`scale_from` has checked, with the symbols of all four."""
    scale = unit_scale(info)
    return scale.units if scale else values


class Component(Group):
    """A group of keys that names a component and gives its options beside the name. The options are checked when the
    component is loaded, see :func:`nbody.scenario.components.component`."""

    model_config = ConfigDict(extra="allow")

    named_by: ClassVar[str]
    """The key that names the component."""

    @property
    def options(self) -> dict[str, Any]:
        """The component's options, as written."""
        return dict(self.model_extra or {})


class Generated(Component):
    """Bodies that a generator makes. Some generators make a fixed number of bodies; all others need ``particles``."""

    named_by = "generator"

    generator: Name
    particles: Count | None = None
    seed: Seed = 1


class EngineChoice(Component):
    """The engine that computes the forces: ``engine: cpu``, or ``engine: {name: matrix, …}`` with its options."""

    named_by = "name"

    name: Name = "auto"

    @model_serializer
    def _short(self) -> str | dict[str, Any]:
        return {"name": self.name, **self.options} if self.options else self.name


def engine_from(values: Any, info: ValidationInfo) -> EngineChoice:
    """Convert a name, or a group with a name and options, to an EngineChoice."""
    if isinstance(values, EngineChoice):
        return values
    keys = values if isinstance(values, Mapping) else {"name": short_name(values)}
    return EngineChoice.model_validate(keys, context=info.context)


class FieldChoice(Component):
    """An external field: ``{field: plummer, …}`` with its parameters."""

    named_by = "field"

    field: Name


def fields_from(values: Any) -> Any:
    """Convert one field, or a list of fields, to a tuple; None if there are none."""
    if isinstance(values, Mapping):
        return (values,)
    if values is not None and not isinstance(values, list | tuple):
        raise ValueError(f"must be a list of fields, as in '- {{field: point_mass, mass: 1}}', got {shown(values)}")
    return tuple(values) if values else None


PLACED = dict.fromkeys(
    ("offset", "velocity", "rotate", "species"),
    "only parts of 'combine' have it; write 'combine: [{…}]' around this one",
)
"""Keys of a part (:class:`Placed`) that bodies from one generator or file do not have."""


class FromFile(Group):
    """Bodies from a file: .npz, .csv, or a ``frame`` (the last one by default) of an earlier run's .h5."""

    elsewhere = PLACED

    file: Text
    frame: Whole | None = None


class FromArrays(Group):
    """Bodies that a Python program gave as arrays. Only their number is known here: they are in the recording's frames."""

    source: Literal["arrays"] = "arrays"
    particles: Count


class Rotation(Group):
    """A rotation by the angles of an orbit, in degrees: by ``argument`` about z, then by ``inclination`` about x, then by
    ``node`` about z."""

    inclination: Finite = 0.0
    node: Finite = 0.0
    argument: Finite = 0.0


class Placed(Group):
    """Where a part of ``combine`` goes: it is rotated, and then moved. ``species`` names its bodies."""

    offset: Offset | None = None
    velocity: Velocity | None = None
    rotate: Rotation | None = None
    species: Name | None = None


class GeneratedPart(Placed, Generated):
    """A part that a generator makes. Without ``seed`` it gets one from the scenario's seed and its place in the list."""

    seed: Seed | None = None  # type: ignore[assignment]


class FilePart(Placed, FromFile):
    """A part that comes from a file."""


def part_from(values: Any, info: ValidationInfo) -> GeneratedPart | FilePart:
    """Convert an item of ``combine`` to a part."""
    if isinstance(values, GeneratedPart | FilePart):
        return values
    return _either(values, GeneratedPart, FilePart, info)


class Combined(Group):
    """Bodies from several parts. ``particles`` is the number of generated bodies in all, if it differs from the sum of the
    parts' numbers, whose proportions then stay."""

    combine: Annotated[
        tuple[Annotated[GeneratedPart | FilePart, BeforeValidator(part_from)], ...],
        BeforeValidator(a_list("a list of parts, each with 'generator:' or 'file:'")),
        Field(min_length=1, max_length=100),
    ]
    particles: Count | None = None
    seed: Seed = 1


Initial = Generated | FromFile | FromArrays | Combined


def initial_from(values: Any, info: ValidationInfo) -> Initial:
    """Convert a group of keys to generated bodies (``generator``), bodies from a file (``file``), both
    (``combine``), or bodies that a program gave as arrays (``source: arrays``, in recordings)."""
    if isinstance(values, Initial):
        return values
    if isinstance(values, Mapping) and values.get("source") == "arrays":
        return FromArrays.model_validate(values, context=info.context)
    if isinstance(values, Mapping) and "combine" in values:
        return Combined.model_validate(values, context=info.context)
    return _either(values, Generated, FromFile, info)


def _either(values: Any, generated: type[Any], from_file: type[Any], info: ValidationInfo) -> Any:
    either = "needs 'generator: NAME' with 'particles: N', or 'file: PATH'"
    if not isinstance(values, Mapping):
        raise ValueError(f"{either}; got {shown(values)}")
    if "file" in values and "generator" in values:
        raise KeyProblem("file", "the bodies come from a file or from a generator, not both; remove one of the two")
    if "file" not in values and "generator" not in values:
        strange = [str(key) for key in values if did_you_mean(key, ("generator", "file", "combine"))]
        if strange:
            raise KeyProblem(strange[0], unknown_key(strange[0], ("generator", "file", "combine"), ()))
        raise ValueError(either)
    return (from_file if "file" in values else generated).model_validate(values, context=info.context)


def _not_a_length(value: Any) -> Any:
    """Refuse a length where the name of the softening belongs."""
    name, colon, length = value.partition(":") if isinstance(value, str) else ("plummer", "", str(value))
    if colon or (isinstance(value, int | float) and not isinstance(value, bool)):
        written = f"softening: {name}, length: {length.strip()}"
        raise ValueError(f"names the softening, and 'length' is its length; write '{written}'")
    return value


def _softening(name: str) -> str:
    if name not in LAWS:
        raise ValueError(str(unknown("softening", name, LAWS)))
    return name


def _length(value: Any, info: ValidationInfo) -> float | dict[str, float]:
    """A softening length, or a mapping from the names of species to their lengths."""
    if isinstance(value, Mapping) and not value:
        raise ValueError("must be a length, or a length of each species, as in {stars: 0.01, halo: 0.1}")
    kind: Any = dict[Name, Length] if isinstance(value, Mapping) else LengthOrZero
    found: float | dict[str, float] = TypeAdapter(kind).validate_python(value, context=info.context)
    return found


def _dimensions(number: int) -> int:
    if number not in (2, 3):
        raise ValueError(f"must be 2 or 3, got {shown(number)}")
    return number


G_TOLERANCE = 1e-3
"""The relative difference from which on a written G contradicts the units. (Values in books have four digits.)"""


class GravityKeys(Group):
    """The keys of :class:`~nbody.law.Gravity`. No softening length suits every unit, so ``length`` has no default for the
    softenings that need one, and the default softening is none. ``length: {stars: 0.01, halo: 0.1}`` gives each species
    a length."""

    G: Annotated[NotNegative, Quantity("gravitational constant")] = Gravity.G
    dimensions: Annotated[Whole, AfterValidator(_dimensions)] = Gravity.dimensions
    softening: Annotated[Name, AfterValidator(_softening), BeforeValidator(_not_a_length)] = Gravity.softening
    length: Annotated[Any, BeforeValidator(_length)] = Gravity.length

    @model_validator(mode="before")
    @classmethod
    def _g_of_the_units(cls, values: Any, info: ValidationInfo) -> Any:
        scale = unit_scale(info)
        return {"G": scale.G, **values} if scale and isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _g_fits(self, info: ValidationInfo) -> Self:
        scale = unit_scale(info)
        if scale and not math.isclose(self.G, scale.G, rel_tol=G_TOLERANCE):
            raise KeyProblem(
                "G", f"{self.G:g} contradicts the units, in which G is {scale.G:.9g}; remove G, or 'units'"
            )
        return self

    @model_validator(mode="after")
    def _length_fits(self) -> Self:
        law: Law = LAWS.load(self.softening)
        if not law.has_length and self.length:
            others = " or ".join(f"'{name}'" for name in LAWS if LAWS.load(name).has_length)
            raise KeyProblem("length", f"has no meaning with softening '{self.softening}'; write 'softening:' {others}")
        if law.has_length and "length" not in self.model_fields_set:
            raise KeyProblem("length", f"is missing; softening '{self.softening}' needs one, as in 'length: 0.01'")
        if isinstance(self.length, Mapping) and not law.needs_length:
            others = " or ".join(f"'{name}'" for name in LAWS if LAWS.load(name).needs_length)
            raise KeyProblem(
                "length", f"must be one number for softening '{self.softening}'; write 'softening:' {others}"
            )
        if law.needs_length and not self.length:
            raise KeyProblem(
                "length", f"must be greater than 0 for softening '{self.softening}'; or write 'softening: none'"
            )
        return self


def gravity_from(values: Any, info: ValidationInfo) -> Gravity:
    """Convert the keys of ``gravity`` to a :class:`~nbody.law.Gravity`."""
    if isinstance(values, Gravity):
        return values
    return Gravity(**GravityKeys.model_validate(values, context=info.context).model_dump())


class IntegratorKeys(Component):
    """The integration scheme, its time step ``dt``, and the end of the run: after ``steps`` steps, or at the time ``end``
    (absolute: bodies from a file may begin at a later time than 0). Times are in the scenario's unit of time."""

    named_by = "scheme"

    scheme: Name = "leapfrog"
    dt: Time | None = None
    steps: Whole | None = None
    end: Annotated[NotNegative, Quantity("time")] | None = None

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.steps is not None and self.end is not None:
            raise KeyProblem("end", "the run ends after 'steps' steps or at the time 'end'; remove one of the two")
        if self.steps is None and self.end is None:
            raise KeyProblem("steps", "is missing; write 'steps: N' or 'end: TIME' to say where the run ends")
        return self


def _observables(names: Any) -> list[str]:
    """The names of observables, each once; ``all`` stands for every one. Those that every run records may be named too."""
    if not isinstance(names, list | tuple):
        raise ValueError(f"must be a list of names, as in [half_mass_radius, escapers], got {shown(names)}")
    found = dict.fromkeys(OBSERVABLES if "all" in names else map(short_name, names))
    for name in found:
        if name not in OBSERVABLES and name not in ALWAYS:
            raise ValueError(str(unknown("observable", name, OBSERVABLES)) + "; or all")
    return [name for name in found if name in OBSERVABLES]


class Record(Group):
    """The moments that become frames: the first, every ``every``-th step or every ``dt`` of time, and the last; and the
    ``observables`` that are recorded with each of them, beside the energies and momenta."""

    every: Count | None = None
    dt: Time | None = None

    observables: Annotated[list[str], BeforeValidator(_observables)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_interval(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and not {"every", "dt"} & set(values):
            return {**values, "every": 1}
        if isinstance(values, Mapping) and values.get("every") is not None and values.get("dt") is not None:
            raise KeyProblem("dt", "frames follow every 'every' steps or every 'dt' of time; remove one of the two")
        return values


class CheckpointKeys(Group):
    """The time between checkpoints, in minutes of wall time."""

    minutes: Positive = 5.0


class EnergyLimit(Group):
    """What to do if the relative energy error of a frame exceeds ``limit``: ``warn`` once, or ``stop`` the run."""

    limit: Positive
    action: Literal["warn", "stop"] = "warn"
