"""The report of a benchmark: the machine and the rows, written and read as one JSON object, with a picture beside it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from pydantic_core import to_json
from typing_extensions import TypedDict

from nbody.bench import SUITES, Measure, Notify, card, tables
from nbody.bench.row import Row
from nbody.errors import InputError, printable
from nbody.input_file import open_regular
from nbody.machine import provenance
from nbody.output_file import FileKind, as_input_error, checked_path, new_file

Kind = TypeVar("Kind", bound=Row)

REPORT = FileKind("report", "--output: ", "name another folder", b"", "bench.json")


@cache
def kinds() -> dict[str, tuple[str, type[Row]]]:
    """The suite and the class of each kind of row, by the name in a report."""
    return {kind.suite: (suite, kind) for suite in SUITES for kind in tables(suite).ROWS}


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
    """The rows and the machine.

    Attributes:
        absent: a clause for each competitor that could not take part.
        suite, options: what was measured, a name of ``SUITES``, and the arguments of its ``prepare``; reports of earlier
            versions have neither.
    """

    machine: Machine
    rows: Sequence[Row]
    absent: list[str] = field(default_factory=list)
    suite: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [row for row in self.rows if type(row) is kind]  # type: ignore[misc]

    @property
    def suites(self) -> list[str]:
        """The names in ``SUITES`` that the rows belong to."""
        there = {kinds()[row.suite][0] for row in self.rows}
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

    def about(self, explained: str, rows: Iterable[Row]) -> str:
        """The text below a table: the meaning of its columns and the missing competitors, unless ``explained`` is empty; and
        the rows' notes."""
        absent = f"Not in the table: {', '.join(self.absent)}." if explained and self.absent else ""
        return "\n".join(filter(None, [explained, *(f"{row.what}: {row.note}" for row in rows if row.note), absent]))

    def json(self, indent: int | None = None) -> str:
        """The report as one JSON object; numbers that are not finite become null."""
        plain = vars(self) | {"rows": [row.plain() for row in self.rows]}
        return to_json(plain, indent=indent, inf_nan_mode="null").decode()


@dataclass
class _Plain(Report):
    """A report before its rows and options are checked."""

    rows: list[dict]  # type: ignore[assignment]


def machine() -> Machine:
    """The facts about this machine and program. Without a GPU ``gpu`` is None and ``no_gpu`` is the reason."""
    reason = card.no_gpu()
    if reason:
        return provenance(gpu=None, no_gpu=reason)  # type: ignore[return-value]
    from nbody import compute

    return provenance(gpu=compute.facts().name, gpu_facts=asdict(compute.facts()))  # type: ignore[return-value]


def prepared(suite: str, options: Mapping[str, Any], notify: Notify) -> Measure:
    """Check the options of a suite; returns ``measure(notify) -> Report``. Raises the errors of the suite's ``prepare``."""
    measure = SUITES.load(suite)(notify, **options)
    return lambda notify: replace(measure(notify), suite=suite, options=dict(options))


def load(path: Path) -> Report:
    """Read a report written by this version or another; unknown keys are ignored.

    Raises:
        InputError: there is no such file, or it is not a report; the error names the first mistake.
    """
    where: tuple[str, ...] = ()
    names: Any = Literal[*kinds()]
    with open_regular(path) as file:
        try:
            plain, rows = TypeAdapter(_Plain).validate_json(file.read()), []
            for number, row in enumerate(plain.rows, 1):
                where = (f"row {number}", "suite")
                kind = TypeAdapter(names).validate_python(row.get("suite"))
                where = where[:1]
                rows.append(kinds()[kind][1].of(row))
            where = ("options",)
            options = _options_of(plain.suite).validate_python(plain.options) if plain.suite in SUITES else {}
            return Report(**vars(plain) | {"rows": rows, "options": options})
        except OSError as error:
            reason = error.strerror or str(error)
        except ValidationError as error:
            reason = _first(error, where)
    raise InputError(f"{printable(path)}: not a benchmark's report ({reason}); make one with 'nbody bench'")


@cache
def _options_of(suite: str) -> TypeAdapter:
    """What checks the options of a suite, the keyword arguments of its ``prepare``; unknown ones are ignored."""
    hints = get_type_hints(SUITES.load(suite))
    types = {name: kind for name, kind in hints.items() if name not in ("notify", "return")}
    strict = with_config(ConfigDict(strict=True))
    return TypeAdapter(strict(TypedDict("Options", types, total=False)))  # type: ignore[operator, misc]


def _first(error: ValidationError, where: Iterable[str]) -> str:
    """The first mistake in one clause."""
    mistake = error.errors(include_url=False)[0]
    keys = [*where, *map(str, mistake["loc"])]
    if keys[0:1] == ["rows"] and len(keys) > 1:
        keys[:2] = [f"row {int(keys[1]) + 1}"]
    given = mistake["input"]
    what = f", not {given!r:.40}" if isinstance(given, str | int | float) and keys else ""
    return printable(": ".join([*keys, mistake["msg"].removeprefix("Value error, ")]) + what)


def report_path(output: Path, stem: str) -> Path:
    """The report's file: ``output`` if it ends in .json, else ``stem``.json in the folder ``output``, which is created.

    Raises:
        InputError: the folder can't be created or written to. (Call this before measuring.)
    """
    path = output if output.suffix == ".json" else output / f"{stem}.json"
    with as_input_error(path.parent, REPORT):
        path.parent.mkdir(parents=True, exist_ok=True)
    checked_path(path, REPORT)
    return path


def write(found: Report, path: Path, plot: Callable[[Report, Path], None], notify: Notify) -> None:
    """Write the report and draw its picture. Older files keep a numbered name.

    Raises:
        RunFailed: the disk is full. A file that can't be written keeps its old content.
        InputError: the folder is gone.
    """
    writers: dict[str, Callable[[Path], object]] = {
        path.suffix: lambda part: part.write_text(found.json(indent=1) + "\n", encoding="utf-8"),
        ".png": lambda part: plot(found, part),
    }
    for suffix, writer in writers.items():
        file = path.with_suffix(suffix)
        with new_file(file, REPORT, False, notify) as part:
            writer(part)
        notify(f"wrote {file}")
