"""What a benchmark says, as one JSON object with the machine and the rows, and how it is read again."""

from dataclasses import asdict, dataclass, field, make_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Union

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from nbody.bench import SUITES, card, part
from nbody.errors import InputError, printable
from nbody.scenario.source import open_regular
from nbody.trajectory.provenance import collect_provenance


class Machine(TypedDict):
    """What the tables show of the machine; a report holds more."""

    __pydantic_config__ = ConfigDict(strict=True, extra="allow")  # type: ignore[misc]

    cpu: str
    cores: int
    simd: str
    started: str
    version: str


@dataclass
class Report:
    """What was measured, and on what. ``absent`` has a clause on each competitor that could not take part."""

    machine: Machine
    rows: list[Any]
    absent: list[str] = field(default_factory=list)

    def of(self, suite: str) -> list[Any]:
        """The rows of one kind."""
        return [row for row in self.rows if row.suite == suite]

    @property
    def suites(self) -> list[str]:
        """The names in ``SUITES`` that the rows belong to."""
        there = {row.suite for row in self.rows}
        return [name for name in SUITES if there & set(part(name, "row").ROWS)]

    @property
    def device(self) -> str:
        """The machine in a few words: the card, if there is one, and the processor."""
        facts: Any = self.machine
        cpu = f"{facts['cpu']} ({facts['cores']} core{'s' * (facts['cores'] != 1)}, {facts['simd']})"
        return f"{facts['gpu']}, {cpu}" if facts.get("gpu") else cpu

    @property
    def provenance(self) -> str:
        """The machine, the date and the version."""
        return f"{self.device}, {self.machine['started'][:10]}, nbody {self.machine['version']}"

    def json(self, indent: int | None = None) -> str:
        """As one JSON object; what is not finite becomes null."""
        return _adapter().dump_json(self, indent=indent, warnings=False).decode()


def machine() -> Machine:
    """What the figures are measured on, and with; ``gpu`` is None, and ``no_gpu`` says why, where there is none."""
    reason = card.no_gpu()
    if reason:
        return collect_provenance(gpu=None, no_gpu=reason)  # type: ignore[return-value]
    from nbody import gpu

    return collect_provenance(gpu=gpu.facts().name, gpu_facts=asdict(gpu.facts()))  # type: ignore[return-value]


@cache
def _adapter() -> TypeAdapter:
    kinds = [kind for suite in SUITES for kind in part(suite, "row").ROWS.values()]
    row = Annotated[Union[tuple(kinds)], Field(discriminator="suite")]  # type: ignore[valid-type] # noqa: UP007
    return TypeAdapter(make_dataclass("Report", [("rows", list[row])], bases=(Report,)))  # type: ignore[valid-type]


def load(path: Path) -> Report:
    """A report that was written earlier, by this version or another; unknown keys are left out.

    Raises:
        InputError: there is no such file, or it is no report: the first mistake in it is named.
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
    keys = [str(key) for key in mistake["loc"] if key not in {kind for s in SUITES for kind in part(s, "row").ROWS}]
    if keys[:1] == ["rows"] and len(keys) > 1:
        keys[:2] = [f"row {int(keys[1]) + 1}"]
    given = mistake["input"]
    what = f", not {given!r:.40}" if isinstance(given, str | int | float) and keys else ""
    return printable(": ".join([*keys, mistake["msg"]]) + what)
