"""The group ``collisions``: the radii of the bodies, and what happens when two of them touch."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, TypeAdapter, ValidationInfo

from nbody.given import shown
from nbody.scenario.fields import Count, Group, KeyProblem, LengthOrZero, Name, Positive, Quantity

RULES = {
    "merge": "two bodies that touch become one; mass and momentum are conserved",
    "stop": "the run ends",
    "record": "only the event is recorded; the bodies pass through each other",
}
"""What may happen when two bodies touch."""


class Density(Group):
    """The density of all bodies: R = (3 m/(4 π ρ))^(1/3)."""

    density: Annotated[Positive, Quantity("density")]


def _radius(value: Any, info: ValidationInfo) -> Any:
    """A radius, a radius of each species, or a density."""
    if isinstance(value, Density) or value is None:
        return value
    if isinstance(value, Mapping) and "density" in value:
        return Density.model_validate(value, context=info.context)
    if isinstance(value, Mapping) and not value:
        raise ValueError("must be a length, a length of each species, as in {stars: 0.01}, or {density: NUMBER}")
    kind: Any = dict[Name, LengthOrZero] if isinstance(value, Mapping) else LengthOrZero
    return TypeAdapter(kind).validate_python(value, context=info.context)


def _rule(value: Any) -> Any:
    if not isinstance(value, str) or value not in RULES:
        raise ValueError(f"must be one of {', '.join(RULES)}, got {shown(value)}")
    return value


class CollisionKeys(Group):
    """What happens when the distance of two bodies becomes the sum of their radii.

    ``rule``: :data:`RULES`. ``radius``: one for all bodies, one of each species, or ``{density: …}``; bodies that have radii
    of their own (``bodies: [{m: 1, radius: 0.005}]``, a column ``radius`` of a file) need none. ``most``: the number of
    events for which the file has room under ``record``. (Mergers always have room.)
    """

    rule: Annotated[Literal["merge", "stop", "record"], BeforeValidator(_rule)]
    radius: Annotated[Any, BeforeValidator(_radius)] = None
    most: Count | None = None

    def model_post_init(self, context: Any) -> None:
        """Refuse ``most`` where it has no meaning."""
        if self.most is not None and self.rule != "record":
            raise KeyProblem("most", f"belongs to rule 'record'; rule '{self.rule}' needs no limit, so remove it")


def collisions_from(values: Any, info: ValidationInfo) -> Any:
    """Convert the keys of ``collisions``; a name alone is the rule."""
    if isinstance(values, str):
        return CollisionKeys.model_validate({"rule": values}, context=info.context)
    return values
