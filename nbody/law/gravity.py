"""The parameters of the law, and the registry of laws that a scenario may name."""

import math
from dataclasses import dataclass
from functools import cached_property

from nbody.errors import InputError
from nbody.registry import Entry, Registry

LAWS = Registry(
    "softening",
    {
        "plummer": Entry("nbody.law.plummer:PLUMMER", "distances become √(r² + length²)"),
        "spline": Entry("nbody.law.spline:SPLINE", "GADGET's: Newton's law beyond 2.8 length"),
        "cutoff": Entry("nbody.law.cutoff:CUTOFF", "no force at a distance of length or less: the lecture's rule"),
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
        length: ε of ``plummer`` and ``spline``, r_min of ``cutoff``; ``none`` ignores it.
    """

    G: float = 1.0
    dimensions: int = 3
    softening: str = "none"
    length: float = 0.0

    @cached_property
    def length2(self) -> float:
        """The length squared; 0 for a law without a length."""
        return float(self.length) ** 2 if LAWS.load(self.softening).has_length else 0.0

    def check(self, where: str = "") -> "Gravity":
        """Check the parameters; returns itself. Raises InputError for an unknown softening or a number out of range."""
        law = LAWS.load(self.softening, where)
        if self.dimensions not in (2, 3):
            raise InputError(f"{where}dimensions must be 2 or 3, got {self.dimensions}")
        if not (math.isfinite(self.G) and self.G >= 0):
            raise InputError(f"{where}G must be a finite number, zero or more, got {self.G}")
        if not (math.isfinite(self.length) and self.length >= 0):
            raise InputError(f"{where}softening length must be a finite number, zero or more, got {self.length}")
        if law.needs_length and self.length**2 == 0:
            raise InputError(
                f"{where}softening '{self.softening}' needs a length greater than 0, got {self.length}; "
                "for no softening say softening 'none'"
            )
        return self
