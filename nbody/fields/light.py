"""The speed of light as a parameter of a field."""

from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo

from nbody.scenario.source import ScenarioText
from nbody.scenario.values import Positive, with_unit

LIGHT = "299792.458 km/s"


def _known(value: object, info: ValidationInfo) -> object:
    """Refuse the default value in a scenario without units."""
    if value is LIGHT and not (isinstance(info.context, ScenarioText) and info.context.scale):
        raise ValueError(
            "is missing; write the speed of light in the scenario's unit of velocity (173.14463 for au/day, 63241.077 for "
            "au/yr), or give the scenario units"
        )
    return value


SpeedOfLight = Annotated[Positive, with_unit("velocity"), BeforeValidator(_known)]
"""In a scenario with units it is known."""
