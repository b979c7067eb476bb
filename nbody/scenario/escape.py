"""Which bodies escape: the keys that the event ``escape`` and the group ``escape`` share, and that group."""

import math
from contextlib import suppress
from typing import Annotated, Literal, Self

from pydantic import PlainValidator, TypeAdapter, ValidationInfo, model_validator

from nbody.given import shown
from nbody.scenario.events import EventChoice
from nbody.scenario.values import Body, Count, Flag, Group, KeyProblem, Length, Written

HALF_MASS_RADIUS = "r_h"

DENSEST, ORIGIN = CENTRES = ("densest", "origin")
"""The places that no body is, about which a radius may be."""


def _radius(value: object, info: ValidationInfo) -> float | str | None:
    if isinstance(value, str) and value.strip().endswith(HALF_MASS_RADIUS):
        with suppress(ValueError):
            factor = float(value.strip().removesuffix(HALF_MASS_RADIUS))
            if 0 < factor < math.inf:
                return f"{factor:g} {HALF_MASS_RADIUS}"
        raise ValueError(f"must be a length, or a number of half-mass radii, as in '10 r_h', got {shown(value)}")
    found: float | None = TypeAdapter(Length | None).validate_python(value, context=info.context)
    return found


class EscapeLimit(Group):
    """Which bodies escape: those that are far away, unbound, or, with both keys, both.

    Attributes:
        radius: the distance, also as ``10 r_h``: in half-mass radii of the beginning.
        unbound: the energy in the field of the other bodies, relative to the centre of mass, is positive.
        about: from where the distance is: by default the centre of mass; densest (the density centre), origin, or a body.
    """

    radius: Annotated[float | str | None, PlainValidator(_radius), Written("length > 0, or a number of r_h")] = None
    unbound: Flag = False
    about: Body | None = None

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if self.radius is None and not self.unbound:
            raise KeyProblem("radius", "is missing; write 'escape(radius=10)' or 'escape(unbound=true)'")
        return self


class EscapeKeys(EscapeLimit):
    """Bodies that escape are removed, or end the run. The table of events has a row for each, and what its removal adds to
    the energy is booked (``booked_energy``).

    Attributes:
        action: what happens to them, or then: remove; stop and record are those of the event ``escape``.
        every: steps between two looks, of ``remove``.
    """

    action: Literal["remove", "stop", "record"] = "remove"
    every: Count = 10

    @classmethod
    def _of_short(cls, value: object) -> object:
        return {"radius": value}

    @model_validator(mode="after")
    def _looks(self) -> Self:
        if self.action != "remove" and "every" in self.model_fields_set:
            raise KeyProblem("every", f"'every' belongs to 'action: remove'; '{self.action}' looks at every step")
        return self

    def event(self) -> EventChoice:
        """The event in place of this group."""
        keys = {name: value for name in EscapeLimit.model_fields if (value := getattr(self, name)) not in (None, False)}
        return EventChoice.model_validate({"kind": "escape", "action": self.action, **keys})
