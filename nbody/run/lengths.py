"""One softening length per body, which a Python program gives: bodies of one length become a species."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nbody.errors import InputError, counted
from nbody.given import shown
from nbody.particles import MOST_SPECIES, Particles


def with_lengths(particles: Particles, values: Mapping[str, Any]) -> tuple[Particles, Mapping[str, Any]]:
    """The particles and keyword values with a length per species in place of one per body, ``softening=array`` (of
    Plummer's law), ``softening=("spline", array)`` or ``length=array``. A pair has the larger length of its bodies. The
    species are called ``length 0``, ``length 1`` … from the shortest length on, after the name that they had. Raises
    InputError."""
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
    try:
        lengths = np.asarray(given)
    except ValueError:  # a list of lists of different lengths
        lengths = np.empty(0)
    if lengths.shape != particles.mass.shape or lengths.dtype.kind not in "fiu":
        raise InputError(f"{key}: must be a number, or one for each of {particles.count} bodies; got {shown(given)}")
    different, which = np.unique(lengths, return_inverse=True)
    kinds, species = np.unique(np.stack([particles.species, which]), axis=1, return_inverse=True)
    if kinds.shape[1] > MOST_SPECIES:
        raise InputError(
            f"{key}: a run has up to {counted(MOST_SPECIES, 'softening length')}, and there are {kinds.shape[1]} different "
            "ones; round them"
        )
    names = [f"{particles.species_names[of]} length {rank}".lstrip() for of, rank in kinds.T]
    each = {name: float(different[rank]) for name, (_, rank) in zip(names, kinds.T, strict=True)}
    found = replace(particles, species=species.reshape(-1), species_names=tuple(names))
    return found, {**values, "length": None, "softening": (law or "plummer", each)}
