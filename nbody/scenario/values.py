"""The types of values in a scenario, and the one-line errors for wrong values.

pydantic does the checks. This module makes them stricter (true is not a number, a number in quotes is text, but 1e6 is a
whole number) and turns pydantic's findings into one line with the file and the line of the key.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from typing import Annotated, ClassVar, NamedTuple, TypeVar

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from nbody.errors import InputError, did_you_mean, unknown
from nbody.given import KeyProblem, number, shown, whole
from nbody.scenario.quantities import DIMENSIONS, Scale, is_quantity
from nbody.scenario.source import SHORT, Keys, ScenarioText


def _number(value: object) -> float:
    return number(_without_unit(value))


def whole_number(value: object) -> int:
    """Convert a whole number without a unit; 1e6 is one."""
    return whole(_without_unit(value))


def _without_unit(value: object) -> object:
    if is_quantity(value):
        raise ValueError(f"must be a number, got {shown(value)}; this key takes a number without a unit")
    return value


def _text(value: object) -> str:
    """Check that a value is a short text on one line, and return it."""
    if not isinstance(value, str):
        raise ValueError(f"must be text, got {shown(value)}; put it in quotes if it is a name")
    if not value.strip() or not value.isprintable() or len(value) > 1000:
        raise ValueError(f"must be one short line of text, got {shown(value)}")
    return value


def short_name(value: object) -> str:
    """Check that a value can be a name in a registry (a text of at most 40 characters), and return it."""
    if len(_text(value)) > 40:
        raise ValueError(f"must be a name of at most 40 characters, got {shown(value)}")
    return _text(value)


def _body(value: object) -> object:
    return short_name(value) if isinstance(value, str) else whole_number(value)


def one_of(kind: str, known: Iterable[str]) -> AfterValidator:
    """A validator that refuses a name that is not ``known``: ``unknown softening 'plumer' (did you mean 'plummer'?) …``."""

    def check(name: str) -> str:
        if name not in known:
            raise ValueError(str(unknown(kind, name, known)))
        return name

    return AfterValidator(check)


def a_list(expected: str) -> Callable[[object], object]:
    """A validator that refuses what is not a list: ``must be a list of 2 or 3 numbers, got 5``."""

    def check(value: object) -> object:
        if not isinstance(value, list | tuple):
            raise ValueError(f"must be {expected}, got {shown(value)}")
        return value

    return check


def with_unit(dimension: str, to: str = "") -> BeforeValidator:
    """Declares the dimension of a scenario's key: ``Annotated[Positive, with_unit("length")]`` accepts ``0.01 pc`` too, and
    converts it to the scenario's units, or to the unit ``to`` if the key's numbers are always in that one."""
    return BeforeValidator(partial(in_scale, dimension=dimension, to=to))


def in_scale(value: object, info: ValidationInfo, *, dimension: str, to: str) -> object:
    """Convert a number with a unit, as :func:`with_unit` says."""
    if not isinstance(value, str) or not is_quantity(value):
        return value
    scale = unit_scale(info)
    if scale is None and isinstance(info.context, ScenarioText) and "G" in _group(info.context.values, "gravity"):
        raise ValueError(
            f"{shown(value)} has a unit, and a written G has none; remove the unit, or replace 'gravity: {{G: …}}' by "
            "units, as in 'units: {length: au, mass: Msun, time: day}'"
        )
    if scale is None:
        raise ValueError(
            f"{shown(value)} has a unit, and the scenario has no units; add 'units: {{length: pc, mass: Msun, "
            "velocity: km/s}', or remove the unit"
        )
    quantity = DIMENSIONS[dimension]
    return scale.number(value, quantity) / (scale.number(f"1 {to}", quantity) if to else 1.0)


def unit_scale(info: ValidationInfo) -> Scale | None:
    """The units of the scenario that is being checked."""
    return info.context.scale if isinstance(info.context, ScenarioText) else None


def _group(values: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = values.get(key)
    return found if isinstance(found, Mapping) else {}


def _not_zero(value: float) -> float:
    if not value:
        raise ValueError("must not be 0")
    return value


class Written(NamedTuple):
    """How a key is written, where its type does not say it: ``Annotated[Gravity, …, Written(GravityKeys)]``."""

    how: "str | type[Group]"


Finite = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Positive = Annotated[Finite, Field(gt=0)]
NotNegative = Annotated[Finite, Field(ge=0)]
Degrees = Annotated[Finite, Written("degrees")]
Length = Annotated[Positive, with_unit("length")]
LengthOrZero = Annotated[NotNegative, with_unit("length")]
Mass = Annotated[Positive, with_unit("mass")]
MassOrZero = Annotated[NotNegative, with_unit("mass")]
SolarMasses = Annotated[Positive, with_unit("mass", "Msun")]
Time = Annotated[Positive, with_unit("time")]
TimeStep = Annotated[Finite, AfterValidator(_not_zero), with_unit("time")]
SpeedOrZero = Annotated[NotNegative, with_unit("velocity")]
Whole = Annotated[int, BeforeValidator(whole_number), Field(ge=0, le=2**53)]
Count = Annotated[int, BeforeValidator(whole_number), Field(ge=1, le=2**53)]
Seed = Annotated[int, BeforeValidator(whole_number), Field(ge=0, le=2**63 - 1)]
TWO_OR_THREE = BeforeValidator(a_list("a list of 2 or 3 numbers")), Field(min_length=2, max_length=3)
Offset = Annotated[tuple[Annotated[Finite, with_unit("length")], ...], *TWO_OR_THREE]
Velocity = Annotated[tuple[Annotated[Finite, with_unit("velocity")], ...], *TWO_OR_THREE]
Flag = Annotated[bool, Field(strict=True)]
Text = Annotated[str, BeforeValidator(_text)]
Name = Annotated[str, BeforeValidator(short_name)]


Body = Annotated[int | str, BeforeValidator(_body), Written("id or name of a body")]
"""The id of a body, or its name."""


class Group(BaseModel):
    """A frozen group of keys. Unknown keys are errors; with ``extra="allow"`` they are kept for a later check."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    elsewhere: ClassVar[Mapping[str, str]] = {"dimensions": "belongs in 'gravity'; write 'gravity: {dimensions: 3}'"}
    """Keys that users write here, and where they belong."""
    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Sets of keys of which only one may be given."""

    @classmethod
    def _of_short(cls, value: object) -> object:
        """The group in whose place ``value`` stands, as in ``engine: cpu``; the value itself if it can't."""
        return value

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, values: object) -> object:
        if isinstance(values, BaseModel):
            return values
        given: dict[str, object] = dict(values) if isinstance(values, Mapping) else {SHORT: values}
        if SHORT in given:
            group = cls._of_short(given.pop(SHORT))
            values = group | given if isinstance(group, dict) else group
        if not isinstance(values, Mapping):
            raise ValueError(f"must be a group of keys ({', '.join(cls.model_fields)}), got {shown(values)}")
        for keys in cls.exclusive:
            first, *others = [key for key in keys if values.get(key) is not None] or [""]
            if others:
                raise KeyProblem(others[0], f"cannot be combined with '{first}'; remove one of the two")
        strange = [str(key) for key in values if key not in cls.__pydantic_fields__]
        if not strange:
            return values
        missing = [n for n, f in cls.model_fields.items() if f.is_required() and n not in values]
        if cls.model_config["extra"] == "allow":  # refuse only keys that look like a misspelt required key
            strange = [key for key in strange if get_close_matches(key, missing, n=1)]
        if strange and strange[0] in cls.elsewhere:
            raise KeyProblem(strange[0], cls.elsewhere[strange[0]])
        if strange:
            raise KeyProblem(strange[0], unknown_key(strange[0], missing or cls.model_fields, cls.model_fields))
        return values


MEANT = {
    "n": "particles", "count": "particles", "bodies": "particles", "e": "eccentricity", "ecc": "eccentricity e",
    "a": "semi_major_axis", "eps": "softening", "epsilon": "softening", "timestep": "dt", "tmax": "end", "until": "end",
    "scheme": "integrator", "eccentricity": "e", "i": "inc", "primary": "about around", "about": "around", "period": "P",
}  # fmt: skip
"""What other programs call a key, and its names."""


def meant_among(known: Iterable[str]) -> dict[str, str]:
    """What other programs call some of these keys, and their names."""
    known = set(known)
    return {name: each for name, meant in MEANT.items() for each in meant.split() if each in known}


def unknown_key(key: str, likely: Iterable[str], known: Iterable[str]) -> str:
    """The message for an unknown key: the nearest of the ``likely`` keys, else of all ``known`` keys, else the list."""
    known = list(known)
    hint = did_you_mean(key, likely) or did_you_mean(key, known, meant_among(known))
    return f"unknown key{hint}" if hint or not known else f"unknown key; the keys here are {', '.join(known)}"


@contextmanager
def arithmetic(source: ScenarioText, at: Keys = ()) -> Iterator[None]:
    """Read the values below ``at``, or compute with them: an overflow or a division by zero, of Python or NumPy, is the
    mistake of the number farthest from 1. Raises InputError: one line that names this number."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except ArithmeticError:
        keys, value = source.farthest(at)
        start = source.where(keys or at)
        raise InputError(
            f"{start}{shown(value)} leads to numbers beyond 1.8e308 or to a division by zero; use a number nearer to 1"
            if keys
            else f"{start}the values here lead to numbers beyond 1.8e308 or to a division by zero; change one"
        ) from None


M = TypeVar("M", bound=BaseModel)


def validated(model: type[M], values: object, source: ScenarioText, at: Keys = ()) -> M:
    """Convert ``values`` to a ``model``. ``at`` is their path in the scenario. Raises InputError: one line about the first
    mistake in the file."""
    try:
        with arithmetic(source, at):
            return model.model_validate(values, context=source)
    except ValidationError as error:
        problems = [((*at, *keys), message) for keys, message in _problems(error)]
        keys, message = min(problems, key=lambda problem: source.order(problem[0]))
        raise InputError(source.where(keys) + message) from None


def _problems(error: ValidationError) -> list[tuple[Keys, str]]:
    """pydantic's findings as (keys, message), with those of nested groups flattened into the same list."""
    found = []
    for each in error.errors(include_url=False):
        keys = tuple(map(str, each["loc"]))
        cause = each.get("ctx", {}).get("error")
        if isinstance(cause, ValidationError):
            found += [((*keys, *inner), message) for inner, message in _problems(cause)]
        elif isinstance(cause, KeyProblem):
            found.append(((*keys, *cause.keys), str(cause)))
        elif isinstance(cause, Exception):
            found.append((keys, str(cause)))
        elif each["type"] == "missing":
            found.append((keys, "is missing; add this key"))
        else:
            found.append((keys, f"{_in_short(each['msg'])}, got {shown(each['input'])}"))
    return found


def _in_short(message: str) -> str:
    """Shorten pydantic's ``Input should be greater than or equal to 1`` to ``must be at least 1``."""
    for theirs, ours in (
        ("Input should", "must"),
        ("greater than or equal to", "at least"),
        ("less than or equal to", "at most"),
    ):
        message = message.replace(theirs, ours)
    return message
