"""Spheres beside a measured profile: King's, Plummer's, Hernquist's or an NFW halo, fitted, or as the scenario has it.

A model predicts the mass between two radii, so bins may be wide; and the velocity dispersion, from the same fit, by Jeans'
equation of an isotropic sphere. Softening is ignored.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from nbody.diagnostics import Profile
from nbody.errors import InputError
from nbody.initial.cluster import StarCluster
from nbody.initial.eddington import Sphere
from nbody.initial.make import parts_of
from nbody.initial.spheres import EddingtonSphere, king_model, nfw_model, profile_model
from nbody.scenario import Scenario
from nbody.trajectory import Trajectory

Array = np.ndarray

Shapes = tuple[Callable[[float], Sphere], str, tuple[float, float] | None]

MODELS: dict[str, Shapes] = {
    "king": (lambda W0: king_model(round(W0, 3)), "W0", (0.5, 14)),
    "plummer": (lambda _: profile_model("plummer", None), "", None),
    "hernquist": (lambda _: profile_model("hernquist", None), "", None),
    "nfw": (lambda c: nfw_model(round(c, 2), 0.3), "c", (1, 100)),
}
"""Models that are fitted: the sphere, and its parameter of shape with the range that is searched."""

TINY = 1e-9
"""Of a body where a model expects none: beyond its edge."""

GIVEN = "initial"
"""The name of the model that a scenario gives."""


@dataclass(frozen=True, eq=False)
class Model:
    """A sphere, in scale radii with mass 1; its scale radius ``length`` and mass, the gravitational constant, and the label
    of a legend."""

    sphere: Sphere
    length: float
    mass: float
    G: float
    label: str

    def density(self, inner: Array, outer: Array) -> Array:
        """The mean density between radii, (K,) each."""
        within = _within(self.sphere, np.stack([inner, outer]) / self.length)
        return self.mass * (within[1] - within[0]) / (4 / 3 * math.pi * (outer**3 - inner**3))

    def dispersion(self, radius: Array) -> Array:
        """The one-dimensional velocity dispersion, σ² = 1/ρ ∫ ρ G M(r)/r² dr from the radius (K,) outwards."""
        r, m = self.sphere.radius, self.sphere.mass
        u, shell = np.log(r), np.gradient(m, np.log(r))
        pieces = shell * m / r**4
        outside = np.append(np.cumsum(((pieces[1:] + pieces[:-1]) / 2 * np.diff(u))[::-1])[::-1], 0.0)
        variance = np.interp(np.log(radius / self.length), u, r**3 / shell * outside, right=0)
        return np.sqrt(self.G * self.mass / self.length * variance)


def _within(sphere: Sphere, radius: Array) -> Array:
    """The mass within radii in scale radii; near the centre the density is a power law."""
    log_r, log_m = np.log(sphere.radius), np.log(sphere.mass)
    slope = (log_m[1] - log_m[0]) / (log_r[1] - log_r[0])
    x = np.log(radius)
    return np.exp(np.where(x < log_r[0], log_m[0] + slope * (x - log_r[0]), np.interp(x, log_r, log_m)))


def fitted(name: str, profile: Profile, G: float = 1.0) -> Model:
    """The most likely model of a name of :data:`MODELS` for a spherical profile.

    Of n_i bodies in bin i, where the model expects n_i x_i, it minimizes Σ n_i (x_i − 1 − ln x_i) (Cash 1979), in which bins
    with few bodies do not pull the fit down as in least squares. n_i are effective numbers, (Σ m)²/Σ m².
    """
    sphere, parameter, limits = MODELS[name]
    n = (profile.density / profile.density_error) ** 2
    low, high = math.log(profile.inner[0]) - 5, math.log(profile.outer[-1]) + 2

    def with_size(model: Sphere, log_length: float) -> tuple[float, float]:
        """The misfit at a scale radius, and the best mass there, at which Σ n_i x_i is Σ n_i."""
        unit = Model(model, math.exp(log_length), 1.0, G, "").density(profile.inner, profile.outer)
        x = unit / profile.density
        mass = n.sum() / max(n @ x, TINY)
        return float(n @ (mass * x - 1 - np.log(np.maximum(mass * x, TINY)))), float(mass)

    def size(model: Sphere) -> Any:
        grid = np.linspace(low, high, 30)
        best = int(np.argmin([with_size(model, each)[0] for each in grid]))
        between = grid[best] - (grid[1] - grid[0]), grid[best] + (grid[1] - grid[0])
        return minimize_scalar(lambda each: with_size(model, each)[0], bounds=between, options={"xatol": 1e-4})

    shape = 0.0
    if limits:
        best = minimize_scalar(lambda s: size(sphere(math.exp(s))).fun, bounds=np.log(limits), options={"xatol": 1e-2})
        shape = math.exp(best.x)
    found = sphere(shape)
    log_length = float(size(found).x)
    length, mass = math.exp(log_length), with_size(found, log_length)[1]
    shown = f", {parameter} = {shape:.3g}" if parameter else ""
    return Model(found, length, mass, G, f"{name}: a = {length:.3g}, M = {mass:.3g}{shown}")


def given(run: Trajectory, species: str = "") -> Model:
    """The sphere that the scenario of a run has drawn its bodies from. (``rescale`` and ``cut`` count.)

    Args:
        species: of a ``combine``, the component with this name.

    Raises:
        InputError: the bodies are not those of one sphere.
    """
    parts = parts_of(Scenario.from_dict(run.resolved))
    named = [part for part in parts if getattr(part.chosen, "species", None) == species] or parts
    cluster = named[0].generator
    if len(named) > 1 or not isinstance(cluster, StarCluster):
        raise InputError(
            f"{run.path}: model {GIVEN}: its bodies do not come from one sphere; fit one of {', '.join(MODELS)}, or name a "
            "species"
        )
    sphere = cluster.model() if isinstance(cluster, EddingtonSphere) else profile_model("plummer", None)
    cut = cluster.cut if isinstance(cluster, EddingtonSphere) else math.inf
    # Rescaled bodies within a cut are more extended than the model.
    length = cluster.scale_length * cluster.model_half_mass_radius() / float(sphere.radii(np.array(0.5), cut))
    mass, label = cluster.mass / sphere.within(cut), f"{GIVEN}: a = {length:.3g}, M = {cluster.mass:.3g}"
    return Model(sphere, length, mass, run.G, label)
