"""One softening length per body: bodies of one length become a species."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nbody.errors import InputError, counted
from nbody.given import shown
from nbody.particles import MOST_SPECIES, Particles
from nbody.scenario import Scenario


def with_lengths(particles: Particles, values: Mapping[str, Any]) -> tuple[Particles, Mapping[str, Any]]:
    """The particles and keyword values with a length per species in place of one per body, ``softening=array`` (of
    Plummer's law), ``softening=("spline", array)`` or ``length=array``, as :func:`by_length` does. Raises InputError."""
    law: Any = values.get("softening")
    given = values.get("length")
    key = "softening" if given is None else "length"
    named = isinstance(law, tuple | list) and len(law) > 0 and isinstance(law[0], str)
    if named and len(law) != 2:
        raise InputError('softening: must be a law and its lengths, as in ("spline", 0.1)')
    if given is not None and (named or isinstance(law, Mapping | np.ndarray | list | tuple)):
        raise InputError("length: the softening has one too; write softening='plummer' with it, or leave it out")
    if given is None:
        law, given = law if named else ("plummer", law)
    if not isinstance(given, np.ndarray | list | tuple):
        return particles, values
    found, each = by_length(particles, given, f"{key}: ")
    return found, {**values, "length": None, "softening": (law or "plummer", each)}


def planned_lengths(scenario: Scenario, particles: Particles) -> tuple[Scenario, Particles]:
    """The scenario with a length per species in place of its list of one per body, and its particles, as :func:`by_length`
    makes them. Raises InputError."""
    found, each = by_length(particles, scenario.gravity.length, scenario.where("gravity.length"))
    values = scenario.source.values
    written = {**values, "gravity": {**values["gravity"], "length": each}}
    return Scenario.from_source(replace(scenario.source, values=written)), found


def by_length(particles: Particles, given: Any, where: str) -> tuple[Particles, dict[str, float]]:
    """The particles, of which those of one species have one softening length, and the length of each species.

    A species whose bodies have several lengths is divided into ``NAME length 0``, ``NAME length 1`` … (without a name
    ``length 0`` …), which count the different lengths of all bodies from the shortest on. A pair has the larger length of
    its bodies. Raises InputError, which begins with ``where``.
    """
    try:
        lengths = np.asarray(given)
    except ValueError:  # a list of lists of different lengths
        lengths = np.empty(0)
    if lengths.shape != particles.mass.shape or lengths.dtype.kind not in "fiu":
        what = shown(given) if len(given) == particles.count else f"a list of {len(given)}"
        raise InputError(
            f"{where}must be a number, or one for each of {counted(particles.count, 'body', 'bodies')}; got {what}"
        )
    different, which = np.unique(lengths, return_inverse=True)
    kinds, species = np.unique(np.stack([particles.species, which]), axis=1, return_inverse=True)
    if kinds.shape[1] > MOST_SPECIES:
        raise InputError(
            f"{where}a run has up to {counted(MOST_SPECIES, 'softening length')}, and there are {kinds.shape[1]} different "
            "ones; round them"
        )
    old, whole = particles.species_names, np.bincount(kinds[0]) == 1
    kept = [name != "" and " length " not in f" {name}" for name in old]  # names that no divided species can get
    names = [old[of] if whole[of] and kept[of] else f"{old[of]} length {rank}".lstrip() for of, rank in kinds.T]
    each = {name: float(different[rank]) for name, (_, rank) in zip(names, kinds.T, strict=True)}
    return replace(particles, species=species.reshape(-1), species_names=tuple(names)), each
