"""An earlier report, read from its file: every row is checked before anything is made of it, and a bad one is one line."""

import json
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_type_hints

from annotated_types import Ge, Lt
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from nbody.bench.forces.lecture import LectureRow
from nbody.bench.forces.row import ForceRow
from nbody.bench.ladder.row import LadderRow
from nbody.bench.report import Report
from nbody.bench.roofline.row import RooflineRow
from nbody.errors import InputError, printable
from nbody.scenario.source import open_regular

KINDS: dict[str, type] = {"forces": ForceRow, "roofline": RooflineRow, "lecture": LectureRow, "matmul": LadderRow}
"""What a row of each suite is."""

WORDS = {
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "string_type": "must be a text",
    "string_unicode": "must be a text",
    "bool_type": "must be true or false",
    "greater_than_equal": "must not be negative",
    "less_than": "must be less than 2^63",
    "list_type": "must be a list",
    "dict_type": "must be an object",
}
"""What pydantic found, as a user would say it."""


class _Machine(BaseModel):
    """What is shown of the machine."""

    model_config = ConfigDict(strict=True)

    cpu: str
    cores: int
    simd: str
    started: str
    version: str
    gpu: str | None = None
    no_cublas: str | None = None


class _Beside(BaseModel):
    """What is shown of the rest of a report."""

    model_config = ConfigDict(strict=True)

    absent: list[str] = []


def read(path: Path) -> Report:
    """A file with the outline of a report, whatever its rows are.

    Raises:
        InputError: it is missing, no ordinary file, or no report.
    """
    with open_regular(path) as file:
        try:
            found = json.loads(file.read())
        except OSError as error:
            _refuse(path, error.strerror or str(error))
        except json.JSONDecodeError as error:
            _refuse(path, f"line {error.lineno} is no JSON: {error.msg}" if error.doc.strip() else "it is empty")
        except RecursionError:
            _refuse(path, "its lists are nested too deep")
        except ValueError:  # bytes that are no characters, a number of too many digits
            _refuse(path, "it is no JSON")
    for key, kind, what in (("machine", dict, "an object"), ("rows", list, "a list")):
        if not isinstance(found, dict) or not isinstance(found.get(key), kind):
            _refuse(path, f"it has no '{key}', {what}")
    return found


def load(path: Path) -> Report:
    """A report written earlier, fit to be shown. Keys of other versions of this program are left alone.

    Raises:
        InputError: as :func:`read`; or a key of the machine or of a row is missing, of another type, negative or no
            number.
    """
    found = read(path)
    for mistake in _mistakes(found):
        _refuse(path, mistake)
    return found


def _refuse(path: Path, reason: str) -> NoReturn:
    raise InputError(f"{printable(path)}: not a benchmark's report ({reason}); make one with 'nbody bench'")


def _mistakes(found: Report) -> Iterator[str]:
    """What is wrong, from the top."""
    yield from _told("machine: ", _Machine, found["machine"])
    yield from _told("", _Beside, found)
    for number, row in enumerate(found["rows"], 1):
        if not isinstance(row, dict):
            yield f"row {number} must be an object, is {_short(row)}"
        elif not isinstance(suite := row.get("suite"), str) or suite not in KINDS:
            yield f"row {number}: 'suite' must be one of {', '.join(KINDS)}, is {_short(suite)}"
        else:
            yield from _told(f"row {number}: ", _model(KINDS[suite]), row)


def _told(where: str, model: type[BaseModel], values: dict[str, Any]) -> Iterator[str]:
    try:
        model.model_validate(values)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            key = each["loc"][0]
            if each["type"] == "missing":
                yield f"{where}'{key}' is missing"
            else:
                yield f"{where}'{key}' {WORDS.get(each['type'], each['msg'])}, is {_short(each['input'])}"


def _short(value: Any) -> str:
    """The beginning of a value, on one line."""
    text = "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else json.dumps(value)
    return text if len(text) <= 40 else text[:40] + "…"


Count, Amount = Annotated[int, Ge(0), Lt(2**63)], Annotated[float, Ge(0)]
CHECKED = {int: Count, float: Amount, int | None: Count | None, float | None: Amount | None}
"""What a row's numbers are checked by: none of a report's is negative."""


@cache
def _model(kind: type) -> type[BaseModel]:
    """What a row of a kind is checked by."""
    if is_dataclass(kind):
        defaults = {field.name: ... if field.default is MISSING else field.default for field in fields(kind)}
    else:
        defaults = {key: ... if key in kind.__required_keys__ else None for key in kind.__annotations__}  # type: ignore
    hints = get_type_hints(kind)
    known: dict[str, Any] = {key: (CHECKED.get(hints[key], hints[key]), default) for key, default in defaults.items()}
    return create_model(kind.__name__, __config__=ConfigDict(strict=True, allow_inf_nan=False), **known)
