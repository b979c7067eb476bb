"""The parameters of the law, and the registry of laws that a scenario may name."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nbody.errors import InputError, did_you_mean
from nbody.given import KeyProblem
from nbody.registry import Entry, Registry

LAWS = Registry(
    "softening",
    {
        "plummer": Entry("nbody.law.plummer:PLUMMER", "distances become √(r² + length²)"),
        "spline": Entry("nbody.law.spline:SPLINE", "GADGET's: Newton's law beyond 2.8 length"),
        "cutoff": Entry("nbody.law.cutoff:CUTOFF", "no force at a distance of length or less: the course's rule"),
        "none": Entry("nbody.law.cutoff:NONE", "Newton's law"),
    },
)
"""Every law a scenario may name."""


@dataclass(frozen=True)
class Gravity:
    """The law between the bodies of a run.

    Attributes:
        G: the gravitational constant in the scenario's units, not negative.
        dimensions: 2 or 3. (In 2-D the force is still proportional to 1/r²: three-dimensional gravity in a plane.)
        softening: a name of :data:`LAWS`.
        length: ε of ``plummer`` and ``spline``, r_min of ``cutoff``; ``none`` ignores it. For ``plummer`` and ``spline`` it
            may be a mapping from the names of species to their lengths. The ε of a pair is then the larger one of its two
            bodies, as in GADGET (Springel, Yoshida & White 2001, New Astronomy 6, 79): force and potential stay symmetric,
            so momentum and energy are conserved. It may also be a list of one length per body.
    """

    G: float = 1.0
    dimensions: int = 3
    softening: str = "none"
    length: float | Mapping[str, float] | tuple[float, ...] = 0.0

    @property
    def per_species(self) -> bool:
        """True if each species, or body, has a length; some engines compute that (``Abilities.species``)."""
        return isinstance(self.length, Mapping | tuple)

    @property
    def shortest(self) -> float:
        """The length; the shortest of several."""
        return min(self._each.values())

    @cached_property
    def length2(self) -> float:
        """:attr:`shortest` squared; 0 for a law without a length. (Step lengths and checks of the range follow from it.)"""
        return float(self.shortest) ** 2 if LAWS.load(self.softening).has_length else 0.0

    @property
    def _each(self) -> Mapping[str, float]:
        if isinstance(self.length, tuple):
            return {"": min(self.length, key=lambda length: (math.isfinite(length), length))}
        return self.length if isinstance(self.length, Mapping) else {"": self.length}

    def squares(self, species: np.ndarray, names: Sequence[str], where: str = "") -> np.ndarray:
        """The squares of the lengths of all bodies, (N,) float64.

        Args:
            species: (N,) the species of each body, an index into ``names``.

        Raises:
            InputError: a species of the bodies has no length, or a length belongs to no species. The line begins with
                ``where``.
        """
        if not isinstance(self.length, Mapping):
            return np.square(self.length) if isinstance(self.length, tuple) else np.full(len(species), self.length2)
        written = _listed(self.length)
        if tuple(names) == ("",):
            raise InputError(
                f"{where}the bodies have no species, and there are lengths for {written}; give one length, or name species "
                "with initial.combine"
            )
        for name in self.length:
            if name not in names:
                hint = did_you_mean(name, names) or f"; they are {_listed(names)}"
                raise InputError(f"{where}the bodies have no species {name!a}{hint}")
        for name in names:
            if name not in self.length:
                raise InputError(f"{where}the species {name!a} has no length; add it to those of {written}")
        return np.array([float(self.length[name]) ** 2 for name in names])[species]

    def check(self, where: str = "") -> "Gravity":
        """Check the parameters; returns itself. Raises InputError for an unknown softening or a number out of range."""
        LAWS.load(self.softening, where)
        if self.dimensions not in (2, 3):
            raise InputError(f"{where}dimensions must be 2 or 3, got {self.dimensions}")
        if not (math.isfinite(self.G) and self.G >= 0):
            raise InputError(f"{where}G must be a finite number, zero or more, got {self.G}")
        try:
            self.check_length()
        except KeyProblem as error:
            raise InputError(f"{where}{'.'.join(error.keys)}: {error}") from None
        return self

    def check_length(self) -> None:
        """Raise a KeyProblem unless the law can have this length, or these lengths."""
        needs_length = LAWS.load(self.softening).needs_length
        if self.per_species and not (needs_length and self.length):
            able = " or ".join(f"'{name}'" for name in LAWS if LAWS.load(name).needs_length)
            raise KeyProblem("length", f"must be one number for softening '{self.softening}'; write 'softening:' {able}")
        for name, length in self._each.items():
            key = f"length.{name}" if name else "length"
            if not (math.isfinite(length) and length >= 0):
                raise KeyProblem(key, f"must be a finite number, zero or more, got {length}")
            if needs_length and not length:
                raise KeyProblem(key, f"must be greater than 0 for softening '{self.softening}'; or write 'softening: none'")
            if needs_length and length**2 == 0:
                raise KeyProblem(key, f"{length:g} is too small (its square is 0); use other units")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
