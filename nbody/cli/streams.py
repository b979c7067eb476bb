"""The only door to the terminal: nothing else in :mod:`nbody.cli` prints.

Texts from files (a scenario's name, a recording's provenance) are escaped here, so they cannot control the terminal. JSON
never contains NaN or infinity, which are not part of it. Printing also survives a closed pipe, a lost terminal and a full
disk.
"""

import contextlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from nbody import errors
from nbody.errors import printable, shortened

Json = dict[str, Any]  # an object, in types that JSON has

LONGEST_MESSAGE = 1000  # characters of a message: a path of 255, and what is wrong with it
LONGEST_LINE = 4000  # characters of a line of a page for people; '--json' prints everything

WIDEST_PAGE = 110  # columns of a text that is read

COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")

_last_message: list[str] = []


def prepare() -> None:
    """Call this before anything is printed."""
    errors.command_line = True
    if sys.stderr is None:  # the shell has closed it; print(file=None) would write into the results
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal without × or ε shows '?' instead of raising an error
        sys.stdout.reconfigure(errors="replace")


def mute() -> None:
    """Print nothing from now on: this process is not the one that speaks."""
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def unmute() -> None:
    """Print again."""
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # type: ignore[assignment]


def print_message(line: str) -> None:
    """Print one line on standard error. If it can't be written, the line is lost and the run continues."""
    _last_message[:] = [line]
    if sys.stderr is not None:  # print(file=None) would write to standard output
        with contextlib.suppress(OSError, ValueError):
            print(shortened(printable(line), LONGEST_MESSAGE), file=sys.stderr, flush=True)


def interrupt_reported() -> bool:
    """True if the last line of :func:`print_message` reported an interrupted run."""
    return any(line.startswith("interrupted ") for line in _last_message)


def status(line: str, columns: int) -> None:
    """Replace the last line of a terminal at standard error by this one, cut to its width."""
    print(f"\r\033[K{printable(line)[: columns - 1]}", end="", file=Unbroken(sys.stderr), flush=True)


def result(text: str) -> None:
    """Print a page for people on standard output. Raises OSError if it can't be written."""
    print("\n".join(shortened(printable(line), LONGEST_LINE) for line in text.split("\n")), flush=True)


def rows(found: Mapping[str, str], indent: str = "") -> None:
    """Print names with a line about each, in two columns. Raises as :func:`result`."""
    width = max(map(len, found), default=0)
    result("\n".join(f"{indent}{name:<{width}}  {about}" for name, about in found.items()))


def styled(text: str) -> None:
    """Print a page with the escapes for its colours, and no others. Raises OSError if it can't be written."""
    parts = COLOUR.split(text)
    parts[::2] = ["\n".join(map(printable, part.split("\n"))) for part in parts[::2]]
    print("".join(parts), end="", flush=True)


def pages(texts: Mapping[str, str]) -> None:
    """Print texts in Markdown with their titles. Raises as :func:`styled`."""
    from rich.console import Console
    from rich.markdown import Markdown

    terminal, found = Console(), io.StringIO()
    console = Console(file=found, width=min(terminal.width, WIDEST_PAGE), force_terminal=terminal.is_terminal)
    for title, text in texts.items():
        console.print(Markdown(f"## {title}\n\n{text}"), "")
    styled(found.getvalue())


def result_json(value: Any) -> None:
    """Print a result for programs, one line of JSON on standard output. A number that is not finite is null.

    Raises:
        OSError: it can't be written.
    """
    # JSON's own escapes leave DEL as it is, and it stands in texts only.
    print(json.dumps(_finite(value), allow_nan=False).replace("\x7f", "\\u007f"), flush=True)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lost_output() -> bool:
    """True if standard output takes nothing any more (a full disk behind it); it is then given up."""
    try:
        print(flush=True)  # a flush alone succeeds: what could not be written has been thrown away
    except OSError:
        discard(sys.stdout)
        return True
    return False


def flush() -> None:
    """Drop text that can't be written, else Python would print an error at exit and return 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            discard(stream)


def discard(stream: Any) -> None:
    """Redirect a stream that can't be written to the null device."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class Unbroken:
    """A stream that drops text that can't be written instead of raising an error."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write ``text``, or drop it."""
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush; ignores errors."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()
