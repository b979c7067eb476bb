"""The row of a report: one measurement of any suite."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, Required, Self, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from nbody.bench import KINDS, SUITES, part
from nbody.bench.timing import Timing
from nbody.number_format import duration

Count = Annotated[int, Field(ge=0, lt=2**63)]
Amount = Annotated[float, Field(ge=0)]
"""Types of the numbers in a report; they are not negative."""

FLOPS = 20
"""Floating-point operations per interaction, by convention (Nyland, Harris & Prins 2007)."""


def suite_of(kind: str) -> str:
    """The suite of a kind of row. Raises ValueError if there is no such kind."""
    suites = {each: suite for suite in SUITES for each in KINDS.get(suite, (suite,))}
    if kind not in suites:
        raise ValueError(f"Input should be {', '.join(map(repr, suites))}")
    return suites[kind]


def _known(kind: str) -> str:
    suite_of(kind)
    return kind


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measurement. Times are in seconds; what was not measured is None. ``row["registers"]`` is a field or a fact.

    Attributes:
        suite: the kind of row: a suite, the force suite's ``lecture`` (its own run) and ``trees``, or ``few`` (small
            systems, of the integrators suite).
        name: what was measured: an engine, a scheme or a rung.
        backend, threads: ``cpu`` or ``gpu``, and CPU threads (0 on a GPU).
        clock: what has measured the time: ``host`` or ``device``; empty if it is not known.
        spread: the relative difference between the median and the fastest time.
        speedup: the speed relative to one core (forces), the naive kernel (matmul) or one GPU (scaling); for forces at the
            same N or the largest below it.
        error: the largest relative error; of an integrator the distance from the exact orbit, in semi-major axes.
        wrong: True if rounding does not explain the error.
        note: why nothing was measured, or what is special.
        facts: what else rows of this kind have: a dictionary of the type in ``FACTS`` of its suite.
    """

    suite: Annotated[str, AfterValidator(_known)]
    name: str
    device: str
    precision: str
    backend: str = ""
    clock: str = ""
    threads: Count | None = None
    particles: Count | None = None
    seconds: Amount | None = None
    spread: Amount | None = None
    interactions_per_s: Amount | None = None
    gflops: Amount | None = None
    speedup: Amount | None = None
    error: Amount | None = None
    wrong: bool = False
    note: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Row":
        """From the keys of a report. Unknown keys are ignored.

        Raises:
            ValidationError: pydantic's; a key is missing, or a value has the wrong type.
        """
        found = _keys(str(plain.get("suite"))).validate_python({k: v for k, v in plain.items() if v is not None})
        own = {key: found.pop(key) for key in FIELDS & found.keys()}
        return cls(**own, facts=found)

    def plain(self) -> dict[str, Any]:
        """The keys of a report: the fields, and all facts of the kind of row."""
        values = asdict(self)
        known = values.pop("facts")
        return values | dict.fromkeys(_facts_of(self.suite)) | known

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key) if key in FIELDS else self.facts.get(key)

    def extended(self, **facts: Any) -> Self:
        """A copy with more facts."""
        return replace(self, facts={**self.facts, **facts})

    def noted(self, note: str, wrong: bool = False) -> Self:
        """A copy with one more note."""
        return replace(self, note="; ".join(filter(None, (self.note, note))), wrong=self.wrong or wrong)

    def timed(self, time: Timing, interactions: float | None) -> Self:
        """A copy with a time and its clock, and the rates of this many interactions in it."""
        rate = ratio(interactions, time.median)
        gflops = None if rate is None else FLOPS * rate / 1e9
        row = replace(
            self, seconds=time.median, spread=time.spread, clock=time.clock, interactions_per_s=rate, gflops=gflops
        )
        return (
            row.noted(f"disturbed by other programs; the fastest took {duration(time.best)}") if time.disturbed else row
        )

    @property
    def count(self) -> int:
        """The number of particles; 0 if there are none."""
        return self.particles or 0

    @property
    def what(self) -> str:
        """The name, precision or problem, and size, for messages."""
        if self["problem"]:
            return f"{self.name} ({self['setting']}), {self['problem']}, N = {self.particles}"
        return f"{self.name} {self.precision}, " + (f"n = {self['size']}" if self["size"] else f"N = {self.particles}")


FIELDS = {each.name: each for each in fields(Row) if each.name != "facts"}


def _facts_of(kind: str) -> dict[str, Any]:
    """The names and types of the facts of a kind of row."""
    return get_type_hints(part(suite_of(kind), "tables").FACTS[kind], include_extras=True)


@cache
def _keys(kind: str) -> TypeAdapter:
    """What checks the keys of a row; of an unknown kind, the fields alone."""
    types = get_type_hints(Row, include_extras=True)
    types = {key: Required[types[key]] if each.default is MISSING else types[key] for key, each in FIELDS.items()}
    with suppress(ValueError):
        types |= _facts_of(kind)
    strict = with_config(ConfigDict(strict=True, allow_inf_nan=False))
    return TypeAdapter(strict(TypedDict("Keys", types, total=False)))  # type: ignore[operator, misc]


def ratio(numerator: float | None, denominator: float | None, scale: float = 1.0) -> float | None:
    """``scale`` times the ratio; None if one of the numbers is missing or zero."""
    return scale * numerator / denominator if numerator and denominator else None


def grouped(rows: Iterable[Row], *keys: str) -> dict[tuple, list[Row]]:
    """The rows by the values of these fields and facts, in their order."""
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups
