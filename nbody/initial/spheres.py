"""Spheres whose velocities follow from their density by Eddington's inversion (:mod:`nbody.initial.eddington`): Hernquist,
isochrone, NFW, King, and any other.

Their random numbers pass through logarithms and exponentials, so the bits are the same for the same machine and versions
only.
"""

import math
from abc import abstractmethod
from functools import cache
from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field
from scipy.integrate import solve_ivp, trapezoid
from scipy.interpolate import CubicSpline
from scipy.special import erf

from nbody.given import KeyProblem
from nbody.initial.cluster import StarCluster
from nbody.initial.eddington import POINTS, Sphere, hernquist, sphere, tapering
from nbody.initial.formula import Function, compiled
from nbody.initial.sampling import on_sphere
from nbody.scenario.values import Finite, Positive, Text

Array = np.ndarray


class EddingtonSphere(StarCluster):
    """A cluster drawn from a distribution function on a grid.

    Attributes:
        cut: the largest distance of a body, in scale radii; the total mass is ``mass`` in any case.
    """

    cut: Positive = 1e4

    @abstractmethod
    def model(self) -> Sphere:
        """The model with mass, scale radius and G 1."""

    def model_scale_radius(self) -> float:
        return 1 / self.model().virial_radius

    def model_half_mass_radius(self) -> float:
        """Of the bodies within ``cut``, after they have been scaled to the energy of the whole model."""
        model = self.model()
        half = float(model.radii(np.array(0.5), self.cut))
        if not self.rescale or self.cut >= model.radius[-1]:
            return half
        whole, part = (trapezoid(m / r, m) for r, m in (model.up_to(math.inf), model.up_to(self.cut)))
        return half * float(part / model.within(self.cut) ** 2 / whole)

    def orbits(self, count: int, rng: np.random.Generator, length: float, speed: float) -> tuple[Array, Array, Array]:
        model = self.model()
        radius = model.radii(rng.random(count), self.cut)
        speeds = speed * model.speeds(radius, rng)
        psi = model.psi_at(radius)
        return (length * radius)[:, None] * on_sphere(rng, count), speeds[:, None] * on_sphere(rng, count), psi


class HernquistSphere(EddingtonSphere):
    """An elliptical galaxy or a bulge (Hernquist 1990): density 1/(r (1 + r)³) in scale radii, mass (r/(1 + r))². In Hénon
    units the scale radius is 1/3. Within ``cut`` is 99 % of the mass."""

    cut: Positive = 199.0

    @staticmethod
    @cache
    def model() -> Sphere:
        return sphere(hernquist)


class Isochrone(EddingtonSphere):
    """Potential −1/(1 + √(1 + r²)) in scale radii: the period of a star depends only on its energy (Hénon 1959). Within
    ``cut`` is 99 % of the mass."""

    cut: Positive = 200.0

    @staticmethod
    @cache
    def model() -> Sphere:
        def density(r: Array) -> Array:
            """Binney & Tremaine 2008, eq. 2.49, up to a factor."""
            a = np.sqrt(1 + r * r)
            return (3 * (1 + a) * a * a - r * r * (1 + 3 * a)) / ((1 + a) ** 3 * a**3)

        return sphere(density)


class NFWHalo(EddingtonSphere):
    """The halo of Navarro, Frenk & White (1997): density 1/(r (1 + r)²) in scale radii up to ``concentration``. Beyond, it
    falls as r^κ exp(−r/d) with the scale d = ``edge``·concentration and the exponent κ that keeps the slope continuous
    (Springel & White 1999). So the mass is finite; ``mass`` includes this outer part.

    Attributes:
        concentration: the radius in scale radii from which on the density falls exponentially.
        edge: the scale of this fall, in units of the concentration.
    """

    concentration: Annotated[Finite, Field(ge=1, le=100)] = 10.0
    edge: Annotated[Finite, Field(ge=0.1, le=1)] = 0.3

    def model(self) -> Sphere:
        return nfw_model(self.concentration, self.edge)


@cache
def nfw_model(c: float, edge: float) -> Sphere:
    """For the concentration ``c``."""
    d = edge * c
    kappa = c / d - (1 + 3 * c) / (1 + c)

    def density(r: Array) -> Array:
        outside = np.exp(kappa * np.log(np.maximum(r, c) / c) - (np.maximum(r, c) - c) / d) / (c * (1 + c) ** 2)
        return np.where(r < c, 1 / (r * (1 + r) ** 2), outside)

    return sphere(density, outermost=c + 60 * d)


class King(EddingtonSphere):
    """A globular cluster that ends at a tidal radius (King 1966): f(E) ∝ e^E − 1 in units of σ², an isothermal sphere
    without the stars that the tide has taken. The scale radius is the core radius r_c.

    Attributes:
        W0: the depth of the centre; r_t/r_c is 4.70 for 3, 18.0 for 6, 131 for 9.
    """

    W0: Annotated[Finite, Field(ge=0.5, le=14)] = 6.0

    def model(self) -> Sphere:
        return king_model(self.W0)


START = 1e-3
"""In core radii; within it the density of King's model is constant."""


@cache
def king_model(W0: float) -> Sphere:
    """With W = Ψ/σ² and x = r/r_c, ρ(W) ∝ e^W erf √W − √(4W/π)(1 + 2W/3) and W″ + 2W′/x = −9ρ/ρ₀."""

    def density(W: Array) -> Array:
        W = np.maximum(W, 0)
        series = 8 / (15 * math.sqrt(math.pi)) * W**2.5 * (1 + 2 * W / 7)  # the difference below loses its digits
        return np.where(W < 1e-3, series, np.exp(W) * erf(np.sqrt(W)) - np.sqrt(4 * W / math.pi) * (1 + 2 * W / 3))

    centre = float(density(np.array(W0)))

    def slope(x: float, y: Array) -> list[float]:
        return [y[1], -9 * float(density(np.array(y[0]))) / centre - 2 * y[1] / x]

    def edge(x: float, y: Array) -> float:
        return float(y[0])

    edge.terminal = True  # type: ignore[attr-defined]
    begin = [W0 - 1.5 * START**2, -3 * START]
    solved = solve_ivp(slope, (START, 1e5), begin, "DOP853", dense_output=True, events=edge, rtol=1e-11, atol=1e-13)
    x = np.geomspace(START, solved.t_events[0][0], POINTS)
    W, gradient = solved.sol(x)
    # −x²W′ is 9/(4πρ₀) times the mass within x: with the total mass 1 and G = 1, σ² = 1/(−x²W′ at the edge).
    within = -x * x * gradient
    mass, sigma2 = within / within[-1], 1 / within[-1]
    W[-1] = 1e-12
    energy = -float(CubicSpline(np.log(x), mass * mass / x).integrate(math.log(x[0]), math.log(x[-1]))) / 2 - 0.5 / x[-1]
    return Sphere(x, mass, sigma2 * W, np.log(np.expm1(W)), energy)


PROFILES = {
    "plummer": "(1+r**2)**-2.5",
    "hernquist": "1/(r*(1+r)**3)",
    "jaffe": "1/(r**2*(1+r)**2)",
    "modified hubble": "(1+r**2)**-1.5",
    "nfw": "1/(r*(1+r)**2)",
}
"""Names that may stand for a formula."""


def density_of(profile: str) -> Function:
    """The density ρ(r) of a formula, or of a name of :data:`PROFILES`. Raises ValueError."""
    return compiled(PROFILES.get(profile.lower(), profile), "r")


def _is_profile(text: str) -> str:
    density_of(text)
    return text


class ProfileSphere(EddingtonSphere):
    """``profile: 1/(r*(1+r)**3)``, any density in scale radii up to a factor, or the name of a density: plummer,
    hernquist, jaffe, modified hubble or nfw.

    Attributes:
        profile: the formula, with ``r``, ``pi``, + - * / ** and the functions of :mod:`nbody.initial.formula`.
        taper: multiplies the density by exp(−(r/taper)²), in scale radii: densities with infinite mass need it.
    """

    profile: Annotated[Text, AfterValidator(_is_profile)]
    taper: Annotated[Positive, Field(ge=1e-6, le=1e6)] | None = None

    def model(self) -> Sphere:
        try:
            return profile_model(self.profile, self.taper)
        except ValueError as error:
            raise KeyProblem("profile", str(error)) from None


@cache
def profile_model(profile: str, taper: float | None) -> Sphere:
    """Of a formula, or a name of :data:`PROFILES`."""
    density = density_of(profile)
    if taper is None:
        return sphere(density)
    return sphere(lambda r: density(r) * tapering(r, taper), innermost=1e-5 * min(1.0, taper), outermost=8 * taper)
