"""General relativity's first correction (1PN) to the attraction of a central body, with its reaction on that body.

Each body i moves relative to the heaviest body s by the Lagrangian of a test particle in Schwarzschild's metric, harmonic
coordinates, to order 1/c². With the separation r, the velocity v, μ = G (m_s + m_i) and the reduced mass
w = m_s m_i/(m_s + m_i),

    L_i = w/c² (v⁴/8 + 3 μ v²/(2r) - μ²/(2r²)),

    f_i = w/c² { [μ²/r⁴ - 3 μ v²/(2 r³)] r + [3 μ (r·v)/r³ - v·A] v - [v²/2 + 3 μ/r] A },

where A is the Newtonian acceleration of i relative to s by all bodies. Body i gets f_i and body s gets -f_i, so momentum
Σ m v is conserved; so is the energy with Σ w/c² (3 v⁴/8 + 3 μ v²/(2r) + μ²/(2r²)), up to terms in 1/c⁴. An ellipse turns by
6πμ/(c² a (1 - e²)) per period, for any ratio of the two masses. Terms of order m_i m_j/c² between other bodies are left out.
(Einstein, Infeld & Hoffmann 1938; Anderson et al. 1975; with A = -μ r/r³, f_i is Anderson's formula.)
"""

import math
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator, ValidationInfo, model_validator

from nbody.fields.field import VelocityField
from nbody.scenario.fields import Positive, Quantity
from nbody.scenario.source import ScenarioText

LIGHT = "299792.458 km/s"


def _known(value: object, info: ValidationInfo) -> object:
    """Refuse the default value in a scenario without units."""
    if value is LIGHT and not (isinstance(info.context, ScenarioText) and info.context.scale):
        raise ValueError(
            "is missing; write the speed of light in the scenario's unit of velocity (173.14463 for au/day, 63241.077 for "
            "au/yr), or give the scenario units"
        )
    return value


class PostNewtonian(VelocityField, validate_default=True):
    """The 1PN term of the heaviest body.

    Attributes:
        c: the speed of light. In a scenario with units it is known.
    """

    c: Annotated[Positive, Quantity("velocity"), BeforeValidator(_known)] = LIGHT  # type: ignore[assignment]

    @model_validator(mode="after")
    def _representable(self) -> Self:
        if not 0 < self.strength() < math.inf:
            raise OverflowError
        return self

    def strength(self) -> float:
        return 1.0 / self.c**2

    def add(self, state: Any, G: float, accelerations: bool, energy: bool) -> None:
        from nbody.fields.post_newtonian_kernel import add_energies, add_forces

        x, v, a = np.zeros((3, 3, state.count))
        for rows, given in ((x, state.position), (v, state.velocity), (a, state.acceleration)):
            rows[: state.dimensions] = given.T
        mass = state.mass.astype(np.float64)
        if energy:
            phi = np.zeros(state.count)
            add_energies(x, v, mass, G, self.strength(), phi)
            state.potential += 2 * phi
        if accelerations:
            add_forces(x, v, mass, G, self.strength(), a)
            state.acceleration[...] = a.T[:, : state.dimensions]
