"""What happens when two bodies touch: the group ``collisions``."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, PlainValidator, ValidationInfo, model_validator

from nbody.scenario.groups import for_each_species
from nbody.scenario.values import (
    Count,
    Group,
    KeyProblem,
    LengthOrZero,
    Name,
    NotNegative,
    Positive,
    Written,
    one_of,
    with_unit,
)

RULES = {
    "merge": "two bodies that touch become one; mass and momentum are conserved",
    "bounce": "hard spheres: the velocity along the line of centres is reversed, times 'restitution' (1: elastic)",
    "function": "a function in Python says what becomes of the two: Simulation(…, on_collision=FUNCTION)",
    "stop": "the run ends",
    "record": "only the event is recorded; the bodies pass through each other",
}
"""What may happen when two bodies touch."""

CHANGING = ("merge", "bounce", "function")
"""The rules by which bodies become others."""


class Density(Group):
    """The radii follow from the masses: R = (3 m/(4 π ρ))^(1/3).

    Attributes:
        density: ρ of all bodies.
    """

    density: Annotated[Positive, with_unit("density")]


def _radius(value: object, info: ValidationInfo) -> float | dict[str, float] | Density | None:
    if isinstance(value, Density) or value is None:
        return value
    if isinstance(value, Mapping) and "density" in value:
        return Density.model_validate(value, context=info.context)
    kinds = "a length, a length of each species, as in {stars: 0.01}, or {density: NUMBER}"
    found: float | dict[str, float] = for_each_species(value, LengthOrZero, LengthOrZero, kinds, info)
    return found


class CollisionKeys(Group):
    """What happens when the distance of two bodies becomes the sum of their radii.

    Attributes:
        rule: merge (two become one), bounce, stop (the run ends), record (they pass through each other), or function (of
            Python: ``Simulation(…, on_collision=FUNCTION)``).
        radius: one for all bodies, one of each species, or ``{density: …}``; bodies that have radii of their own (``bodies:
            [{m: 1, radius: 0.005}]``, a column ``radius`` of a file) need none.
        most: the number of contacts and bounces for which the file has room. (Mergers always have room.)
        restitution: of ``bounce``, the part that remains of the speed along the line of centres, from 0 to 1 (elastic; the
            default).
        minimum_speed: of ``bounce``, at which bodies part at least, so that those that rest on one another make small hops
            instead of bounces without end; by default 0.01 of the pair's escape speed if ``restitution`` is less than 1.
    """

    rule: Annotated[Name, one_of("rule", RULES)]
    radius: Annotated[
        float | dict[str, float] | Density | None,
        PlainValidator(_radius),
        Written("length ≥ 0, one per species, or a density"),
    ] = None
    most: Count | None = None
    restitution: Annotated[NotNegative, Field(le=1.0)] | None = None
    minimum_speed: Annotated[Positive, with_unit("velocity")] | None = None

    @classmethod
    def _of_short(cls, value: object) -> object:
        return {"rule": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if self.most is not None and self.rule in ("merge", "stop"):
            raise KeyProblem("most", f"belongs to rule 'record'; rule '{self.rule}' needs no limit, so remove it")
        for key in ("restitution", "minimum_speed"):
            if getattr(self, key) is not None and self.rule != "bounce":
                raise KeyProblem(key, f"belongs to rule 'bounce', and the rule is '{self.rule}'; remove it")
        return self
