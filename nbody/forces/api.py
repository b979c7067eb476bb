"""One force evaluation for arrays: :func:`nbody.accelerations`, :func:`nbody.potential` and :func:`nbody.tidal_tensor`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nbody.errors import InputError, unknown
from nbody.forces.choose import choose
from nbody.forces.engine import Engine
from nbody.forces.make import make_engine
from nbody.forces.options import Accuracy, gpus_asked
from nbody.forces.problem import PRECISIONS, Problem
from nbody.forces.range import check_range
from nbody.forces.reference import direct_tide
from nbody.forces.registry import AUTOMATIC, ENGINES
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.overrides import softening_keys
from nbody.scenario.source import ScenarioText
from nbody.scenario.values import Group, validated
from nbody.state import Outputs
from nbody.whole_file import Notify

WHERE = "accelerations: "
"""What messages begin with."""

KEYWORDS = ("at", "G", "softening", "length", "engine", "precision", "potential", "notify")
"""The arguments of :func:`nbody.accelerations` that are no options of an engine."""


def accelerations(
    position,
    mass=None,
    *,
    at=None,
    G=1.0,
    softening="none",
    length=0.0,
    engine="auto",
    precision="float64",
    potential=False,
    notify: Notify = lambda line: None,
    **options,
):
    """Accelerations of bodies, or at other points, a_i = G Σ_j m_j (x_j - x_i) f(r_ij), with f of :mod:`nbody.law`.

    Args:
        position: (N, D) array, D 2 or 3, any real dtype; or the bodies as :class:`~nbody.particles.Particles`.
        mass: (N,) array, not negative; that of the particles if these are given.
        at: (M, D) points at which to compute the accelerations instead of those of the bodies. A point is a body without
            mass: a body in the same place exerts no force on it.
        G: the gravitational constant, in the units of the arrays.
        softening: ``plummer``, ``spline``, ``cutoff`` or ``none``, or a number, Plummer's length.
        length: of the softening; of ``plummer``, ``spline`` also (N,), or a mapping from species; a pair has the larger one.
        engine: a name of :data:`ENGINES`, with its variant if it has variants; ``tree``; or ``auto``, which with an
            ``accuracy`` (the median relative error of the accelerations) takes a tree where that is faster.
        precision: a name of :data:`PRECISIONS` that the engine offers.
        potential: also return the potential per unit mass.
        notify: receives a line when ``auto`` first measures the card, which takes a few seconds, once.
        options: the engine's own options, as in a scenario.

    Returns:
        (N, D) accelerations, (M, D) with ``at``, in the engine's dtype; with ``potential`` a tuple of these and the (N,) or
        (M,) potential.

    Raises:
        InputError: arrays that do not fit or are not finite, a name that does not exist, more particles than fit, numbers
            beyond the range of the precision.
        DeviceError: a GPU engine was named and there is no GPU, or it has too little memory.
    """
    outputs = Outputs.POTENTIAL if potential else Outputs.ACCELERATION
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS, WHERE)
    particles, points, gravity = bodies_and_law(position, mass, at, G, softening, length)
    made = engine_for(engine, Problem(gravity, precision, particles.count, outputs), options, notify)
    check_range(made, gravity, precision, particles, WHERE)
    some = points and not made.supports(Problem(gravity, precision, particles.count, outputs, targets=True))
    targets = np.arange(particles.count - points, particles.count) if some else None
    with np.errstate(all="ignore"):  # bodies in the same place without softening have an infinite potential
        state = made.load(particles)
        made.evaluate(state, outputs, targets)
    a, phi = (each[-points:] for each in state.values("acceleration", "potential"))  # -0: all
    return (a, phi) if potential else a


def engine_for(name: str, problem: Problem, options: dict[str, Any], notify: Notify) -> Engine:
    """The engine that a name stands for, with its options. Raises InputError and DeviceError."""
    automatic = name in AUTOMATIC
    common = {key: each for key, each in options.items() if automatic or key in Accuracy.model_fields}
    asked: Any = options_of(Accuracy, common)
    problem = problem._replace(accuracy=asked.accuracy, gpus=gpus_asked(asked.gpus))
    chosen = choose(name, problem, where=WHERE, notify=notify).name
    kind = ENGINES.load(chosen)
    if automatic:  # direct sums have no accuracy: they are more accurate
        options = {key: each for key, each in asked if each is not None and key in kind.Options.model_fields}
    return make_engine(kind, chosen, options_of(kind.Options, options), problem, WHERE)


def potential(position, mass=None, *, at=None, **given):
    """The potential per unit mass of bodies, or at other points, φ_i = -G Σ_{j≠i} m_j u(r_ij), with u of :mod:`nbody.law`.

    Args:
        position, mass, at, given: as in :func:`accelerations`.

    Returns:
        (N,) or (M,) array in the engine's dtype.

    Raises:
        InputError, DeviceError: as :func:`accelerations`.
    """
    if "potential" in given:
        raise InputError("potential: potential is an argument of nbody.accelerations; leave it out")
    return accelerations(position, mass, at=at, potential=True, **given)[1]


def tidal_tensor(position, mass=None, *, at=None, G=1.0, softening="none", length=0.0):
    """The gradient of the acceleration at bodies or at other points, T_kl = ∂a_k/∂x_l = -∂²φ/∂x_k∂x_l, by a sum over all
    pairs in float64 (some 30 ns per pair): -G Σ_j m_j (f δ_kl + (1/r) df/dr d_k d_l) with d = x_j - x_i and f of
    :mod:`nbody.law`; of Newton's law G Σ_j m_j (3 d_k d_l/r⁵ - δ_kl/r³), whose trace is zero. Its eigenvalues stretch a body
    where they are positive.

    Args:
        position, mass, at, G, softening, length: as in :func:`accelerations`.

    Returns:
        (N, D, D) float64, (M, D, D) with ``at``; symmetric.

    Raises:
        InputError: as :func:`accelerations`.
    """
    where = "tidal_tensor: "
    particles, points, gravity = bodies_and_law(position, mass, at, G, softening, length, where)
    softening2 = gravity.squares(particles.species, particles.species_names, where) if gravity.per_species else None
    targets = np.arange(particles.count - points if points else 0, particles.count)
    return direct_tide(particles.position, particles.mass, gravity, targets, softening2)


def particles_of(position: Any, mass: Any, at: Any, where: str = WHERE) -> tuple[Particles, int]:
    """The bodies, and after them the points as bodies without mass, of the first species; and the number of points. Raises
    InputError."""
    species: dict[str, Any] = {}
    if isinstance(position, Particles):
        if mass is not None:
            raise InputError(f"{where}mass: the particles have masses; leave it out")
        species = {"species": position.species, "species_names": position.species_names}
        position, mass = position.position, position.mass
    if mass is None:
        raise InputError(f"{where}mass: is missing; give one for each body, (N,)")
    x, m = _real(position), _real(mass)
    if x.ndim != 2 or m.ndim != 1:
        raise InputError(f"{where}position must be (N, 2) or (N, 3), mass (N,); got {x.shape}, {m.shape}")
    points = 0
    if at is not None:
        y = points_of(at, x.shape[1], where)
        points = len(y)
        x, m = np.concatenate([x, y]), np.concatenate([m, np.zeros(points)])
        if species:
            species["species"] = np.append(species["species"], np.zeros(points, np.int64))
    # (Velocities of zeros that no one writes take no memory.)
    return Particles(m, x, np.zeros(x.shape), **species).check(where), points


def points_of(at: Any, dimensions: int, where: str) -> np.ndarray:
    """(M, D) points in float64. Raises InputError."""
    y = _real(at)
    if y.ndim != 2 or y.shape[1] != dimensions or not len(y):
        raise InputError(f"{where}at must be (M, {dimensions}), as position; got {y.shape}")
    if not (finite := np.isfinite(y).all(axis=1)).all():
        raise InputError(f"{where}point {finite.argmin()} of at (counted from 0) is not finite; correct or remove it")
    return y


def bodies_and_law(
    position: Any, mass: Any, at: Any, G: float, softening: Any, length: Any, where: str = WHERE
) -> tuple[Particles, int, Gravity]:
    """:func:`particles_of`, and the law between them. Raises InputError."""
    asked = softening_keys(softening, f"{where}softening")
    if ("length" in asked or asked["softening"] == "none") and (isinstance(length, Mapping) or np.any(length)):
        raise InputError(f"{where}length: softening is {softening!a}, which takes no length; say softening='plummer'")
    softening, length = asked["softening"], asked.get("length", length)
    try:
        particles, points = particles_of(position, mass, at, where)
        if not isinstance(length, Mapping) and np.ndim(length):
            length = _real(length)
            if length.shape != (particles.count - points,):
                raise InputError(f"{where}length must be one number, or one for each body; got {length.shape}")
            length = (*length.tolist(), *[float(length.min())] * points)
        return particles, points, Gravity(G, particles.dimensions, softening, length).check(where)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{where}arrays of numbers, and numbers, are needed ({error})") from error


def options_of(model: type[Group], given: dict[str, Any], where: str = WHERE, keywords: Sequence[str] = KEYWORDS) -> Group:
    """The engine's options; ``keywords``: the arguments that are none. Raises InputError."""
    for name in given:
        if name not in model.model_fields:
            raise unknown("argument", name, [*model.model_fields, *keywords], where)
    return validated(model, given, ScenarioText(name=where.rstrip(": ")))


def _real(values: Any) -> np.ndarray:
    """``values`` in float64. Raises TypeError for strings, and for complex numbers (their imaginary part would be lost)."""
    found = np.asarray(values)
    if found.dtype.kind in "cSU":
        raise TypeError(f"not {found.dtype}")
    return found.astype(np.float64, copy=False)
