"""The row of a report: one measurement of any suite. Each kind of row is a subclass with the columns of its tables."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, TypeAdapter

from nbody.bench.columns import TableColumn, relative_error
from nbody.bench.timing import Timing
from nbody.number_format import duration

Count = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Amount = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
"""Types of the numbers in a report; they are not negative."""

TIME = TableColumn("time", duration, if_wrong="WRONG")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measurement. Times are in seconds; what was not measured is None.

    Attributes:
        suite: the kind of row, by which a report names it.
        whole_run: True if a whole run is timed, which varies more than a kernel.
        name: what was measured: an engine, a scheme or a rung.
        backend: ``cpu`` or ``gpu``.
        clock: what has measured the time: ``host`` or ``device``; empty if it is not known.
        spread: the relative difference between the median and the fastest time.
        error: the largest relative error; of an integrator the distance from the exact orbit, in semi-major axes.
        wrong: True if rounding does not explain the error.
        note: why nothing was measured, or what is special.
    """

    suite: ClassVar[str]
    whole_run: ClassVar[bool] = False

    name: str
    device: str
    precision: Annotated[str, TableColumn("precision", left=True)]
    backend: Annotated[str, TableColumn("on", str.upper, left=True)] = ""
    clock: str = ""
    threads: Count | None = None
    particles: Annotated[Count | None, TableColumn("N")] = None
    seconds: Annotated[Amount | None, TIME] = None
    spread: Amount | None = None
    error: Annotated[Amount | None, TableColumn("error:\nlargest", relative_error)] = None
    wrong: bool = False
    note: str = ""

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """From the keys of a report. Unknown keys are ignored.

        Raises:
            ValidationError: pydantic's; a key is missing, or a value has the wrong type.
        """
        return _adapter(cls).validate_python({key: value for key, value in plain.items() if value is not None})

    def plain(self) -> dict[str, Any]:
        """The keys of a report."""
        return {"suite": self.suite, **asdict(self)}

    def noted(self, note: str, wrong: bool = False) -> Self:
        """A copy with one more note."""
        return replace(self, note="; ".join(filter(None, (self.note, note))), wrong=self.wrong or wrong)

    def timed(self, time: Timing) -> Self:
        """A copy with a time and its clock."""
        row = replace(self, seconds=time.median, spread=time.spread, clock=time.clock)
        if not time.disturbed:
            return row
        return row.noted(f"disturbed by other programs; the fastest took {duration(time.best)}")

    @property
    def what(self) -> str:
        """The name, precision and size, for messages."""
        return f"{self.name} {self.precision}, N = {self.particles}"


_adapter: Callable[[type], TypeAdapter] = cache(TypeAdapter)
