"""Reads the part of YAML that scenarios use: mappings, lists and plain values.

YAML 1.1, which PyYAML follows, reads ``1e-3`` as text, ``1:30`` as 90, ``010`` as 8 and ``no`` as false, and keeps the
last of two equal keys. Here ``1e-3`` is a number; ``true``, ``false`` and ``null`` keep their meaning; any other plain
value is text. Tags, anchors, aliases, several documents and repeated keys are errors.

The reader uses PyYAML's events instead of its constructors, so a tag can never create an object, and the nesting depth
is checked before the recursion gets too deep.
"""

import math
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from nbody.errors import InputError, printable
from nbody.input_file import open_regular
from nbody.scenario import packaged
from nbody.scenario.source import Keys, ScenarioText

LARGEST = 1_000_000
"""The maximum size of a scenario in bytes."""

DEEPEST = 8
"""The maximum nesting depth; scenarios need 2."""

MOST = 10_000
"""The maximum number of values, which limits PyYAML's time (13 s for a list of 450 000)."""

NO_SCENARIO = "is not a scenario (.yaml); bodies in a file are a scenario's 'initial: {file: …}'"

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)")
_REAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")


def read_file(path: Path) -> ScenarioText:
    """Read a scenario file. Raises InputError: one line with the file's name."""
    path = packaged.locate(path)
    name = printable(path)
    with open_regular(path, known=[f"scenarios/{each}.yaml" for each in packaged.names()]) as file:
        data = file.read(LARGEST + 1)
    if data.startswith(b"\x89HDF"):
        raise InputError(f"{name}: {NO_SCENARIO}; a recording goes on with 'nbody resume'")
    if len(data) > LARGEST:
        raise InputError(f"{name}: is larger than 1 MB; a scenario is a short text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if b"\0" in data and not data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise InputError(f"{name}: {NO_SCENARIO}") from None
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: byte {error.start} is not UTF-8; save it as UTF-8 text") from None
    return read_text(text, name, path.parent)


def read_text(text: str, name: str, folder: Path) -> ScenarioText:
    """Read a scenario's text. Errors call it ``name``; relative paths start from ``folder``."""
    reader = _NodeReader(name)
    try:
        values = reader.document(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(f"{name}:{line}: character {error.character:#x} is not text; remove it") from None
    except yaml.MarkedYAMLError as error:
        line, problem = _problem(error)
        raise InputError(f"{name}:{line}: not valid YAML: {problem}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # an escape such as "\UFFFFFFFF"
        raise InputError(f"{name}: not valid YAML: {' '.join(str(error).split())[:120]}; correct it") from None
    return ScenarioText(name, folder, text, values, reader.lines)


def read_assignment(text: str, option: str = "--set") -> tuple[Keys, object]:
    """Split ``engine.theta=0.5`` into keys and value. Raises InputError, which begins with the option that gave it."""
    key, equals, value = text.partition("=")
    if not equals or not all(part.isidentifier() or part.isdecimal() for part in key.split(".")):
        raise InputError(f"{option}: must be KEY=VALUE, as in engine.theta=0.5, got {text[:60]!a}")
    return tuple(key.split(".")), read_text(f"value: {value}", f"{option} {key}", Path()).values["value"]


def dump(values: dict[str, object]) -> str:
    """Format values as YAML that :func:`read_text` reads back unchanged, one group per line."""
    return yaml.dump(values, Dumper=_Dumper, default_flow_style=None, sort_keys=False, allow_unicode=True, width=110)


class _NodeReader:
    """Builds plain values from a document's events and records the line of each key."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[Keys, int] = {}
        self.nodes = 0

    def error(self, event: yaml.Event, keys: Keys, message: str) -> InputError:
        start = ScenarioText(self.name, lines={keys: _line(event.start_mark)}).where(keys)
        return InputError(start + message)

    def document(self, events: Iterator[yaml.Event]) -> dict[str, object]:
        """Build the single mapping of the text."""
        values: dict[str, object] | None = None
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.error(event, (), "a second document begins here; write one only")
            elif isinstance(event, yaml.NodeEvent):
                found = self.node(event, events, ())
                values = found if isinstance(found, dict) else None
                if found is not None and values is None:
                    kind = "a list" if isinstance(found, list) else "a single value"
                    raise self.error(event, (), f"this is {kind}; write lines such as 'key: value'")
        if not values:
            raise InputError(f"{self.name}: is empty; write lines such as 'key: value'")
        return values

    def node(self, event: Any, events: Iterator[yaml.Event], keys: Keys) -> object:
        """Build the value that starts with ``event``."""
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            raise self.error(event, keys, "anchors and aliases (& and *) are not read here; write the value out")
        if event.tag is not None:
            raise self.error(event, keys, f"tags ({event.tag[:40]!a}) are not read here; write the plain value")
        self.nodes += 1
        if self.nodes > MOST:
            raise self.error(event, (), f"more than {MOST} values; a scenario is short, put bodies into a separate file")
        if len(keys) > DEEPEST:
            raise self.error(event, (), "nested too deep; a scenario has only groups of keys")
        if isinstance(event, yaml.ScalarEvent):
            return event.value if event.style is not None else self.plain(event, keys)
        if isinstance(event, yaml.SequenceStartEvent):
            items: list[object] = []
            while not isinstance(item := next(events), yaml.SequenceEndEvent):
                items.append(self.node(item, events, (*keys, str(len(items)))))
            return items
        return self.mapping(events, keys)

    def mapping(self, events: Iterator[yaml.Event], keys: Keys) -> dict[str, object]:
        values: dict[str, object] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or not event.value:
                raise self.error(event, keys, "a key must be a plain name; write 'name: value'")
            self.node(event, events, keys)  # refuses an anchor or a tag on the key
            below = (*keys, event.value)
            if event.value == "<<":
                raise self.error(event, keys, "merge keys (<<) are not read here; write the values out")
            if event.value in values:
                raise self.error(event, below, f"given twice (first on line {self.lines[below]}); remove one")
            self.lines[below] = _line(event.start_mark)
            values[event.value] = self.node(next(events), events, below)
        return values

    def plain(self, event: yaml.ScalarEvent, keys: Keys) -> object:
        """Convert an unquoted value: null, true or false, a number, or else text."""
        text = event.value
        value = _plain(text)
        if _LEADING_ZERO.fullmatch(text):
            message = f"{text} is octal to some readers and decimal to others; drop the zero, or put it in quotes"
            raise self.error(event, keys, message)
        if isinstance(value, float) and math.isinf(value) and not _SPECIAL.fullmatch(text):
            raise self.error(event, keys, f"{text} is beyond the largest number, 1.8e308; use other units")
        return value


def _plain(text: str) -> object:
    """The value of an unquoted text."""
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if len(text) > 60:  # not a meaningful number, and int() takes quadratic time in the digits
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    return float(text.replace(".", "")) if _SPECIAL.fullmatch(text) else text


class _Dumper(yaml.SafeDumper):
    """Writes YAML; quotes every text that :func:`_plain` would read as another type."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    ambiguous = _plain(text) != text or _LEADING_ZERO.fullmatch(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="'" if ambiguous else None)


_Dumper.add_representer(str, _represent_text)


def _line(mark: Any) -> int:
    """The line of a PyYAML mark, counted from 1."""
    return mark.line + 1


def _problem(error: yaml.MarkedYAMLError) -> tuple[int, str]:
    """The line of a syntax error, and its description with the likely fix."""
    problem, line = " ".join(str(error.problem or error.context).split())[:120], _line(error.problem_mark)
    if "'\\t'" in problem:
        return line, "a tab; indent with spaces"
    if "flow" in str(error.context):  # PyYAML reports the place where parsing failed, possibly many lines below
        opened = _line(error.context_mark)
        if "<stream end>" in problem:
            return opened, "the bracket opened here is not closed; close it"
        comma = "there is a comma missing" if opened == line else f"line {line} lacks a comma"
        return opened, f"the bracket opened here is not closed, or {comma} ({problem}); correct it"
    if "mapping values are not allowed" in problem:
        problem = "a ':' inside a value, or a line indented too far; put the text in quotes or correct the indentation"
        return line, problem
    if "quoted scalar" in str(error.context):
        return _line(error.context_mark), "the quote opened here is not closed; close it"
    return line, f"{problem}; correct this line or the one above"
