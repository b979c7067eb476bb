"""One force evaluation for arrays: what :func:`nbody.accelerations` and :func:`nbody.potential` call."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nbody.errors import InputError, unknown
from nbody.forces import AUTOMATIC, ENGINES, PRECISIONS, Notify, resolve
from nbody.forces.by_accuracy import Accuracy, check_accuracy
from nbody.forces.engine import Engine
from nbody.forces.memory import check_fits
from nbody.forces.range import check_range
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.fields import Group, validated
from nbody.scenario.source import Source
from nbody.state import Want

WHERE = "accelerations: "
"""What messages begin with."""

KEYWORDS = ("at", "G", "softening", "length", "engine", "precision", "potential", "notify")
"""The arguments of :func:`nbody.accelerations` that are no options of an engine."""


def evaluated(
    position: Any, mass: Any, at: Any, want: Want, G: float, softening: Any, length: float, engine: str, precision: str,
    notify: Notify, options: dict[str, Any],
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The accelerations and the potential (only if it is in ``want``) of the bodies, or at the points ``at``; the arguments
    are those of :func:`nbody.accelerations`."""
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS, WHERE)
    particles, points, gravity = bodies_and_law(position, mass, at, G, softening, length)
    name, options = _engine(engine, precision, particles.count, gravity, notify, options)
    kind = ENGINES.load(name)
    kind.require_device()
    kind.require_precision(precision, WHERE)
    check_fits(kind, particles.count, precision, WHERE)
    check_range(kind, gravity, precision, particles, WHERE)
    given = options_of(kind.Options, options)
    kind.check_options(given, precision, WHERE)
    machine = kind(gravity, precision, given)
    targets = np.arange(particles.count - points, particles.count) if points and kind.subsets else None
    with np.errstate(all="ignore"):  # bodies in the same place without softening have an infinite potential
        state = machine.load(particles)
        machine.evaluate(state, want, targets)
    a, phi = state.forces()
    return (a[-points:], phi[-points:]) if points else (a, phi)


def _engine(
    engine: str, precision: str, count: int, gravity: Gravity, notify: Notify, options: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The engine and its options: ``auto`` takes an accuracy, which direct sums do not need. Raises InputError."""
    accuracy = None
    if engine in AUTOMATIC:
        chosen = options_of(Accuracy, options)
        accuracy, options = chosen.accuracy, {}  # type: ignore[attr-defined]
        if accuracy is not None:
            check_accuracy(accuracy, precision, f"{WHERE}accuracy: ")

    def refusal(kind: type[Engine]) -> str:
        return "a tree has one softening length for all bodies" if gravity.per_species else ""

    name, _ = resolve(engine, precision, count, WHERE, notify, accuracy=accuracy, refusal=refusal)
    return name, {"accuracy": accuracy} if accuracy and ENGINES.load(name).approximate else options


def particles_of(position: Any, mass: Any, at: Any, where: str = WHERE) -> tuple[Particles, int]:
    """The bodies, and after them the points as bodies without mass; and the number of points. Raises InputError."""
    x, m = _real(position), _real(mass)
    if x.ndim != 2 or m.ndim != 1:
        raise InputError(f"{where}position must be (N, 2) or (N, 3), mass (N,); got {x.shape}, {m.shape}")
    points = 0
    if at is not None:
        y = points_of(at, x.shape[1], where)
        points = len(y)
        x, m = np.concatenate([x, y]), np.concatenate([m, np.zeros(points)])
    return Particles(m, x, np.zeros(x.shape)).check(where), points  # (zeros that no one writes take no memory)


def points_of(at: Any, dimensions: int, where: str) -> np.ndarray:
    """(M, D) points in float64. Raises InputError."""
    y = _real(at)
    if y.ndim != 2 or y.shape[1] != dimensions or not len(y):
        raise InputError(f"{where}at must be (M, {dimensions}), as position; got {y.shape}")
    if not (finite := np.isfinite(y).all(axis=1)).all():
        raise InputError(f"{where}point {finite.argmin()} of at (counted from 0) is not finite; correct or remove it")
    return y


def bodies_and_law(
    position: Any, mass: Any, at: Any, G: float, softening: Any, length: float, where: str = WHERE
) -> tuple[Particles, int, Gravity]:
    """:func:`particles_of`, and the law between them. Raises InputError."""
    if isinstance(softening, str) and softening == "none" and np.any(length):
        raise InputError(f"{where}length: softening is 'none', which has no length; say softening='plummer'")
    try:
        particles, points = particles_of(position, mass, at, where)
        return particles, points, Gravity(G, particles.dimensions, softening, length).check(where)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}arrays of numbers, and numbers, are needed ({error})") from error


def options_of(
    model: type[Group], given: dict[str, Any], where: str = WHERE, keywords: Sequence[str] = KEYWORDS
) -> Group:
    """The engine's options; ``keywords``: the arguments that are none. Raises InputError."""
    for name in given:
        if name not in model.model_fields:
            raise unknown("argument", name, [*model.model_fields, *keywords], where)
    return validated(model, given, Source(name=where.rstrip(": ")))


def _real(values: Any) -> np.ndarray:
    """``values`` in float64. Raises TypeError for strings, and for complex numbers (their imaginary part would be lost)."""
    found = np.asarray(values)
    if found.dtype.kind in "cSU":
        raise TypeError(f"not {found.dtype}")
    return found.astype(np.float64, copy=False)
