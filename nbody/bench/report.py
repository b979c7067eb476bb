"""The report of a benchmark: the machine and the rows, written and read as one JSON object."""

from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from nbody.bench import SUITES, card
from nbody.bench.row import Row
from nbody.errors import InputError, printable
from nbody.machine import provenance
from nbody.scenario.source import open_regular

OF_SUITES = {"lecture": "forces", "trees": "forces", "few": "integrators"}
"""Kinds of rows that are not named after their suite, and that suite."""


class Machine(TypedDict):
    """The facts about the machine that tables show; a report contains more."""

    __pydantic_config__ = ConfigDict(strict=True, extra="allow")  # type: ignore[misc]

    cpu: str
    cores: int
    simd: str
    started: str
    version: str


@dataclass
class Report:
    """The rows and the machine. ``absent`` has one clause for each competitor that could not take part."""

    machine: Machine
    rows: list[Row]
    absent: list[str] = field(default_factory=list)

    def of(self, suite: str) -> list[Any]:
        """The rows of one suite."""
        return [row for row in self.rows if row.suite == suite]

    @property
    def suites(self) -> list[str]:
        """The names in ``SUITES`` that the rows belong to."""
        there = {OF_SUITES.get(row.suite, row.suite) for row in self.rows}
        return [name for name in SUITES if name in there]

    @property
    def device(self) -> str:
        """A short description of the machine: the GPU, if there is one, and the processor."""
        facts: Any = self.machine
        cpu = f"{facts['cpu']} ({facts['cores']} core{'s' * (facts['cores'] != 1)}, {facts['simd']})"
        return f"{facts['gpu']}, {cpu}" if facts.get("gpu") else cpu

    @property
    def provenance(self) -> str:
        """The machine, the date and the version."""
        return f"{self.device}, {self.machine['started'][:10]}, nbody {self.machine['version']}"

    def json(self, indent: int | None = None) -> str:
        """The report as one JSON object; numbers that are not finite become null."""
        return _adapter().dump_json(self, indent=indent, warnings=False).decode()


def machine() -> Machine:
    """The facts about this machine and program. Without a GPU ``gpu`` is None and ``no_gpu`` is the reason."""
    reason = card.no_gpu()
    if reason:
        return provenance(gpu=None, no_gpu=reason)  # type: ignore[return-value]
    from nbody import compute

    return provenance(gpu=compute.facts().name, gpu_facts=asdict(compute.facts()))  # type: ignore[return-value]


@cache
def _adapter() -> TypeAdapter:
    return TypeAdapter(Report)


def load(path: Path) -> Report:
    """Read a report written by this version or another; unknown keys are ignored.

    Raises:
        InputError: there is no such file, or it is not a report; the error names the first mistake.
    """
    with open_regular(path) as file:
        try:
            return _adapter().validate_json(file.read())
        except OSError as error:
            reason = error.strerror or str(error)
        except ValidationError as error:
            reason = _first(error)
    raise InputError(f"{printable(path)}: not a benchmark's report ({reason}); make one with 'nbody bench'")


def _first(error: ValidationError) -> str:
    mistake = error.errors(include_url=False)[0]
    keys = [str(key) for key in mistake["loc"]]
    if keys[:1] == ["rows"] and len(keys) > 1:
        keys[:2] = [f"row {int(keys[1]) + 1}"]
    given = mistake["input"]
    what = f", not {given!r:.40}" if isinstance(given, str | int | float) and keys else ""
    return printable(": ".join([*keys, mistake["msg"].removeprefix("Value error, ")]) + what)
