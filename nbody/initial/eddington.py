"""Spheres in equilibrium: the isotropic distribution function of any density (Eddington 1916), and bodies drawn from it.

Everything is in the units G = 1, total mass 1, scale radius 1. Ψ is minus the potential, E = Ψ − v²/2, and

    f(E) = 1/(√8 π²) ∫₀ᴱ d²ρ/dΨ² dΨ/√(E − Ψ)    (Binney & Tremaine 2008, eq. 4.46b; ρ and dρ/dΨ vanish at Ψ = 0)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

Array = np.ndarray

POINTS = 800
"""Grid points in ln r. With 800, Hernquist's distribution function is right to 1e-5."""

FLAT = 1e-3
"""The grid begins where −d ln ρ/d ln r exceeds this: within a core, rounding would hide the second derivative."""

NODES = 96
"""Gauss-Legendre nodes of Eddington's integral."""


@dataclass(frozen=True)
class Sphere:
    """A spherical model on a grid of radii.

    Attributes:
        radius: (K,), increasing, evenly spaced in ln r.
        mass: (K,), the mass within each radius, up to 1.
        psi: (K,), Ψ, decreasing; a body at rest there can reach Ψ = 0.
        log_f: (K,), ln f(E = psi).
        potential_energy: W < 0 of the whole sphere.
    """

    radius: Array
    mass: Array
    psi: Array
    log_f: Array
    potential_energy: float

    @property
    def virial_radius(self) -> float:
        """−1/(2W), in scale radii."""
        return -0.5 / self.potential_energy

    def f(self, energy: Array) -> Array:
        """The distribution function, interpolated; 0 for E ≤ 0."""
        log_psi = np.log(self.psi[::-1])
        return np.exp(np.interp(np.log(energy), log_psi, self.log_f[::-1]))

    def radii(self, uniform: Array, cut: float = math.inf) -> Array:
        """Radii at which the enclosed mass is ``uniform`` (in [0, 1)) times the mass within ``cut``."""
        log_m, log_r = np.log(self.mass), np.log(self.radius)
        log_within = np.log(np.maximum(uniform, 1e-300) * self.within(cut))
        inside = (log_within - log_m[0]) * (log_r[1] - log_r[0]) / (log_m[1] - log_m[0]) + log_r[0]  # a power law
        return np.exp(np.where(log_within < log_m[0], inside, np.interp(log_within, log_m, log_r)))

    def within(self, radius: float) -> float:
        """The mass within a radius."""
        return float(np.interp(math.log(min(radius, self.radius[-1])), np.log(self.radius), self.mass))

    def up_to(self, radius: float) -> tuple[Array, Array]:
        """The grid's radii up to ``radius``, and the mass within each."""
        inside = self.radius <= radius
        return self.radius[inside], self.mass[inside]

    def psi_at(self, radius: Array) -> Array:
        """Ψ at radii, interpolated."""
        return np.interp(np.log(radius), np.log(self.radius), self.psi)

    def speeds(self, radius: Array, rng: np.random.Generator) -> Array:
        """Speeds at the given radii, by rejection from v² f(Ψ − v²/2) dv."""
        x = np.linspace(0, 1, 401)[1:-1]
        largest = np.array([(x * x * self.f(psi * (1 - x * x))).max() for psi in self.psi])
        psi = self.psi_at(radius)
        bound = 1.1 * np.exp(np.interp(np.log(radius), np.log(self.radius), np.log(largest)))
        speed = np.empty_like(radius)
        left = np.arange(len(radius))
        while len(left):
            q, y = rng.random((2, len(left)))
            good = y * bound[left] < q * q * self.f(psi[left] * (1 - q * q))
            speed[left[good]] = q[good] * np.sqrt(2 * psi[left[good]])
            left = left[~good]
        return speed


def hernquist(r: Array, factor: Array | float = 1.0) -> Array:
    """The density of Hernquist's sphere up to a constant, times ``factor``."""
    return factor / (r * (1 + r) ** 3)


def tapering(r: Array, taper: float) -> Array:
    """The factor exp(−(r/taper)²), with which a density ends without an edge."""
    return np.exp(-((r / taper) ** 2))


def sphere(
    density: Callable[[Array], Array],
    innermost: float = 1e-5,
    outermost: float = 1e5,
    others: Callable[[Array], Array] | None = None,
    attracting: Callable[[Array], Array] | None = None,
) -> Sphere:
    """The sphere with the given density profile, in equilibrium and isotropic.

    Args:
        density: ρ(r) up to a factor, positive and smooth.
        innermost, outermost: the grid's ends. The mass outside must be negligible.
        others: the mass within r of everything else that attracts the bodies, in units of this sphere's mass.
        attracting: r² times the whole attraction at r, instead of this sphere's own mass and ``others``.

    Raises:
        ValueError: the mass is infinite, or f would be negative: no isotropic sphere has this density.
    """
    u = np.linspace(math.log(innermost), math.log(outermost), POINTS)
    r = np.exp(u)
    with np.errstate(all="ignore"):
        rho = np.asarray(density(r), float) * np.ones_like(r)
    _check_density(r, rho)
    keep = rho > 1e-250 * rho.max()
    keep[: np.argmax(np.gradient(np.log(np.maximum(rho, 1e-300)), u) < -FLAT)] = False
    u, r, rho = u[keep], r[keep], rho[keep]
    slope = CubicSpline(u, np.log(rho)).derivative()
    shells = CubicSpline(u, 4 * math.pi * rho * r**3)
    mass = shells.antiderivative()(u) + shells(u[0]) / (3 + slope(u[0]))
    if not slope(u[0]) > -3 or not shells(u[-1]) < 1e-3 * mass[-1]:
        raise ValueError("the mass of this density is infinite; give 'taper', where it shall end")
    rho, mass, total = rho / mass[-1], mass / mass[-1], mass[-1]
    if attracting is not None:
        whole = attracting(r)
    else:
        whole = mass if others is None else mass + others(r)
    force = CubicSpline(u, whole / r).antiderivative()
    psi = whole[-1] / r[-1] + force(u[-1]) - force(u)
    log_f = _eddington(u, rho, slope(u), whole, psi)
    energy = -float(CubicSpline(u, shells(u) / total * mass / r).integrate(u[0], u[-1]))
    return Sphere(r[: len(log_f)], mass[: len(log_f)], psi[: len(log_f)], log_f, energy)


def _check_density(r: Array, rho: Array) -> None:
    wrong = ~np.isfinite(rho) | (rho < 0)
    if wrong.any() or not rho.any():
        at = r[np.argmax(wrong)]
        raise ValueError(f"the density at r = {at:.3g} is not a number, zero or more; correct the formula")


def _eddington(u: Array, rho: Array, slope: Array, mass: Array, psi: Array) -> Array:
    """ln f at E = psi, without the last points, for which the grid has no room outside."""
    first = rho * -slope * np.exp(u) / mass  # dρ/dΨ, because dΨ/du = −M/r
    if not (first > 0).all():
        at = float(np.exp(u[np.argmax(~(first > 0))]))
        raise ValueError(f"the density must fall outwards, and does not at r = {at:.3g}")
    log_first, mass_at, psi_at = CubicSpline(u, np.log(first)), CubicSpline(u, mass), CubicSpline(u, psi)
    log_derivative = log_first.derivative()
    node, weight = np.polynomial.legendre.leggauss(NODES)
    count = int(np.searchsorted(u, u[-1] - 0.5))
    # With u = u_E + w² the root of E − Ψ, which grows as u − u_E, no longer makes the integrand infinite.
    width = np.sqrt(u[-1] - u[:count, None])
    w = width * (node + 1) / 2
    at = u[:count, None] + w * w
    # d²ρ/dΨ² dΨ = −d(dρ/dΨ) = −(dρ/dΨ)(ln dρ/dΨ)′ du
    second = -np.exp(log_first(at)) * log_derivative(at)
    root = np.sqrt(np.maximum(psi[:count, None] - psi_at(at), 1e-300))
    close = mass_at(at) / np.exp(at)
    root = np.where(w < 1e-4, w * np.sqrt(close), root)  # the difference of two close numbers has lost its digits
    f = (width / 2 * weight * second * 2 * w / root).sum(axis=1) / (math.sqrt(8) * math.pi**2)
    if not (f > 0).all():
        at_r = float(np.exp(u[np.argmax(~(f > 0))]))
        raise ValueError(f"no isotropic sphere has this density (f is negative near r = {at_r:.3g}); make it smoother")
    return np.log(f)
