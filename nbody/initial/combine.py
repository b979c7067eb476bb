"""Puts several sets of bodies together, each rotated, moved and named."""

from collections.abc import Callable, Sequence

import numpy as np

from nbody.errors import InputError
from nbody.particles import Particles
from nbody.scenario.bodies import GeneratedPart, Placed, Rotation

Array = np.ndarray


def apportioned(asked: Sequence[int], total: int) -> list[int]:
    """``total`` divided in the proportions of ``asked``, each at least 1: largest remainders (Hamilton's method)."""
    exact = [total * one / sum(asked) for one in asked]
    parts = [max(1, int(one)) for one in exact]
    order = sorted(range(len(asked)), key=lambda k: (parts[k] - exact[k], k))
    for k in (order * (1 + max(0, total - sum(parts))))[: max(0, total - sum(parts))]:
        parts[k] += 1
    while sum(parts) > total and max(parts) > 1:
        parts[parts.index(max(parts))] -= 1
    return parts


def rotation(angles: Rotation) -> Array:
    """The (3, 3) matrix R_z(node)·R_x(inclination)·R_z(argument), of angles in degrees."""

    def about(axis: int, degrees: float) -> Array:
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        i, j = [k for k in range(3) if k != axis]
        matrix = np.eye(3)
        matrix[i, i], matrix[i, j], matrix[j, i], matrix[j, j] = c, -s, s, c
        return matrix

    return about(2, angles.node) @ about(0, angles.inclination) @ about(2, angles.argument)


def placed(bodies: Particles, part: Placed, where: Callable[[str], str]) -> Particles:
    """Rotate the bodies about the origin, and then add the part's offset and velocity. Raises InputError: starting with
    ``where(key)``, for a vector of other dimensions, or an inclination in 2-D."""
    n = bodies.dimensions
    if part.rotate is not None:
        if n == 2 and part.rotate.inclination:
            raise InputError(f"{where('rotate.inclination')}a run in 2 dimensions has no inclinations; use 'node'")
        matrix = rotation(part.rotate)[:n, :n]
        # (Not @: the matrix product of a BLAS library has other bits on other processors.)
        bodies.position = (bodies.position[:, None, :] * matrix).sum(axis=2)
        bodies.velocity = (bodies.velocity[:, None, :] * matrix).sum(axis=2)
    for key, moved in (("offset", "position"), ("velocity", "velocity")):
        vector = getattr(part, key)
        if vector is None:
            continue
        if len(vector) != n:
            raise InputError(f"{where(key)}must have {n} numbers in a run in {n} dimensions, got {len(vector)}")
        setattr(bodies, moved, getattr(bodies, moved) + np.array(vector))  # a file's arrays may be read-only
    return bodies


def joined(parts: Sequence[Particles], names: Sequence[str], given: Sequence[bool], where: Sequence[str]) -> Particles:
    """One set of bodies, with new ids.

    A part without species becomes the species ``names[k]``; a part with species gets this name as a prefix if the user has
    ``given`` it. Other names that occur twice get a number. Raises InputError: starting with ``where[k]``, if the user has
    given two parts the same name."""
    found: list[str] = []
    species = []
    for k, (part, name) in enumerate(zip(parts, names, strict=True)):
        if given[k] and any(given[i] and names[i] == name for i in range(k)):
            raise InputError(f"{where[k]}two species with one name, {name!a}; give each part its own name")
        own: list[str] = []
        for inner in part.species_names:
            species_name = name if not inner else f"{name} {inner}" if given[k] else inner
            numbered = (species_name, *(f"{species_name} {i}" for i in range(2, 1000)))
            own.append(next(each for each in numbered if each not in found + own))
        species.append(part.species + len(found))
        found += own
    return concatenated(parts, species, tuple(found))


def concatenated(parts: Sequence[Particles], species: Sequence[Array], names: tuple[str, ...]) -> Particles:
    """The bodies of all parts, with new ids and these species; radii of 0 where only others have some."""
    radii = [part.radius if len(part.radius) else np.zeros(part.count) for part in parts]
    mass, position, velocity = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("mass", "position", "velocity")
    )
    return Particles(
        mass, position, velocity, species=np.concatenate(species), species_names=names,
        radius=np.concatenate(radii) if any(len(part.radius) for part in parts) else np.empty(0),
    )  # fmt: skip


def seeds(seed: int, parts: Sequence[Placed]) -> list[np.random.SeedSequence]:
    """The seed of each part: its own, or one derived from ``seed`` and its place in the list."""
    derived = np.random.SeedSequence(seed).spawn(len(parts))
    own = [part.seed if isinstance(part, GeneratedPart) else None for part in parts]
    return [one if given is None else np.random.SeedSequence(given) for one, given in zip(derived, own, strict=True)]
