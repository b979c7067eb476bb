"""The common attributes of the rows of all suites."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import ConfigDict, Field

Count = Annotated[int, Field(ge=0, lt=2**63)]
Amount = Annotated[float, Field(ge=0)]
"""Types of the numbers in a report; they are not negative."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measurement at one size. Times are in seconds, and None if nothing was measured; ``note`` then says why.

    ``error`` is the largest relative error; ``wrong`` is True if rounding does not explain it.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, allow_inf_nan=False)

    suite: str
    name: str
    device: str
    precision: str
    particles: Count | None = None
    seconds: Amount | None = None
    interactions_per_s: Amount | None = None
    gflops: Amount | None = None
    speedup: Amount | None = None
    error: Amount | None = None
    wrong: bool = False
    note: str = ""

    def noted(self, note: str, wrong: bool = False) -> Self:
        """A copy with one more note."""
        return replace(self, note="; ".join(filter(None, (self.note, note))), wrong=self.wrong or wrong)

    @property
    def what(self) -> str:
        """The name, precision and size, for messages."""
        return f"{self.name} {self.precision}, N = {self.particles}"


def ratio(numerator: float | None, denominator: float | None, scale: float = 1.0) -> float | None:
    """``scale`` times the ratio; None if one of the numbers is missing or zero."""
    return scale * numerator / denominator if numerator and denominator else None


def distinct(rows: Iterable[Any], *keys: str) -> list[tuple]:
    """The distinct combinations of these attributes, in the order of the rows."""
    return list(dict.fromkeys(tuple(getattr(row, key) for key in keys) for row in rows))
